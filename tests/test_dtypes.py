"""Dtype policies: everything finite, and slots in float32 within a call."""

import functools
import itertools

import keras
import numpy as np
import pytest
import reference
from cases import EVERY_RULE_AND_CELL as CASES
from cases import REPRESENTATIVES
from harness import (
    BACKEND,
    array,
    assert_close,
    normal,
    randomise,
    results_and_gradients,
    run,
    weights_of,
)
from keras import ops

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths.filtered import filtered

POLICIES = ["float32", "mixed_bfloat16", "mixed_float16"]
if BACKEND != "jax":  # JAX computes in float64 only where a flag says so
    POLICIES.append("float64")
INPUTS = {
    "zero": lambda rng: np.zeros((2, 20, 3), "float32"),
    "huge": lambda rng: normal(rng, 2, 20, 3, scale=1e3),
    "long": lambda rng: normal(rng, 1, 4096, 3),
}


def kinds():
    for case in CASES:
        for policy in POLICIES:
            for kind in INPUTS:
                # A long loop takes seconds: in the narrowest type alone, and once for each
                # kind of states.
                if kind != "long" or (policy == "mixed_float16" and case in REPRESENTATIVES):
                    yield case, policy, kind


@pytest.mark.parametrize("case, policy, kind", kinds())
def test_finite(case, policy, kind):
    rng = np.random.default_rng(0)
    x = INPUTS[kind](rng)
    layer = case.layer(4, dtype=policy, return_sequences=True, return_state=True)
    layer.build(x.shape)
    # h at all times counts, the final states do not.
    shapes = [(*x.shape[:2], 4), *((len(x), size) for size in layer.state_size)]
    cotangents = [np.ones(shapes[0], "float32"), *(np.zeros(s, "float32") for s in shapes[1:])]
    results, by_all = results_and_gradients(layer, x, cotangents)
    for values in [*results, *by_all.values()]:
        assert np.all(np.isfinite(values.astype("float32")))


@pytest.mark.skipif(
    BACKEND == "jax", reason="JAX computes in float64 only where a flag says so"
)
@pytest.mark.parametrize("case", CASES)
def test_float64_is_exact(case):
    rng = np.random.default_rng(0)
    x = normal(rng, 2, 30, 3)
    layer = case.layer(4, dtype="float64", return_sequences=True)
    layer.build(x.shape)
    randomise(layer, rng)
    expected, _ = reference.run(
        case.cell(),
        case.rule,
        case.numbers,
        weights_of(layer),
        x.astype("float64"),
        formulation=case.formulation,
    )
    np.testing.assert_allclose(array(layer(x)), expected, atol=1e-12)


@pytest.mark.parametrize(
    "stateful, policy", itertools.product([False, True], ["mixed_bfloat16", "mixed_float16"])
)
def test_velocity_does_not_stall_in_half_precision(policy, stateful):
    """A constant input at momentum 0.99 and step size 0.6 drives v to 60.

    In bfloat16 it would stop at 32.5, and rounded to it between calls alone, at 59.75.
    """
    layer = kmr.MomentumLSTM(
        2, momentum=0.99, stateful=stateful, return_state=True, dtype=policy
    )
    x = np.ones((1, 50, 1), "float32")
    layer.build(x.shape)
    layer.cell.kernel.assign(np.ones((1, 8)))
    layer.cell.bias.assign(np.zeros(8))
    if stateful:
        for _ in range(20):
            run(layer, x)
        v = array(layer.states[2])
    else:
        states = []
        for _ in range(20):  # carried by hand, as an encoder and a decoder do
            _, *states = layer(x, initial_state=states or None)
        v = array(states[2])
    np.testing.assert_allclose(v, 60, rtol=1e-4)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "bfloat16"])
def test_counter_does_not_stop_at_256(policy):
    layer = kmr.NAGLSTM(
        2,
        return_state=True,
        stateful=True,
        dtype=policy,
        recurrent_initializer="zeros",  # PyTorch draws no orthogonal matrix in bfloat16
    )
    for _ in range(2):  # 259 is 260 in bfloat16
        run(layer, np.zeros((1, 259, 1), "float32"))
    assert array(layer.states[3]).item() == 518


OF_FLOAT32 = {
    "Adam": lambda: kmr.AdamLSTM(4),
    "steps": lambda: kmr.AdamLSTM(4, use_cudnn=False),
    "learned": lambda: kmr.RuleLSTM(4, rule=kmr.rules.LearnedMomentum(per="unit")),
}


@pytest.mark.parametrize("layer_class", [kmr.MomentumLSTM, kmr.LSTM])
def test_a_policy_that_is_set_later_holds_from_then_on(layer_class):
    x = normal(np.random.default_rng(0), 3, 7, 2)
    layer = layer_class(4, return_state=True)
    layer(x)
    fresh = layer_class(4, return_state=True, dtype="mixed_bfloat16")
    fresh.build(x.shape)
    fresh.set_weights(layer.get_weights())
    for part in (layer, layer.cell):
        part.dtype_policy = "mixed_bfloat16"
    for actual, expected in zip(layer(x), fresh(x), strict=True):
        assert actual.dtype == expected.dtype
        assert_close(array(ops.cast(actual, "float32")), array(ops.cast(expected, "float32")))


@pytest.mark.parametrize("name", OF_FLOAT32)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_inputs_of_another_dtype(name, dtype):
    x = np.random.default_rng(0).integers(-3, 4, size=(2, 5, 3)).astype("float32")
    layer = OF_FLOAT32[name]()
    states = [np.ones((2, size), "float32") for size in layer.state_size]
    for given in ([x], [x, *states]):
        cast = [ops.cast(ops.convert_to_tensor(a), dtype) for a in given]
        expected, actual = (
            run(layer, x, initial_state=states or None, training=True)[0]
            for x, *states in (given, cast)
        )
        assert_close(actual, expected)


def test_dropout_of_whole_numbers():
    """What is kept grows by 1 / (1 - rate), which is no whole number."""
    layer, twin = (kmr.MomentumLSTM(4, dropout=0.4, seed=3) for _ in range(2))
    x = np.ones((2, 5, 3), "int32")
    for each in (layer, twin):
        each.build(x.shape)
    twin.set_weights(layer.get_weights())
    actual = run(layer, ops.convert_to_tensor(x), training=True)[0]
    assert_close(actual, run(twin, x.astype("float32"), training=True)[0])


@pytest.mark.parametrize("name", OF_FLOAT32)
def test_gradients_by_inputs_in_half_precision(name):
    """As behind a layer that computes in it."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, size=(2, 5, 3)).astype("float32")
    layer = OF_FLOAT32[name]()
    layer.build(x.shape)
    cotangents = [normal(rng, 2, 4)]
    expected = results_and_gradients(layer, x, cotangents, training=True)[1]
    actual = results_and_gradients(layer, x.astype("float16"), cotangents, training=True)[1]
    assert actual["x"].dtype == "float16"
    for key, gradient in expected.items():
        assert_close(actual[key], gradient, tolerance=1e-3 if key == "x" else 2e-5)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_second_moment_neither_overflows_nor_vanishes_in_half_precision(policy):
    layer = kmr.RMSPropLSTM(2, step_size=1.0, epsilon=1e-16, dtype=policy)
    layer.build((1, 5, 1))
    layer.cell.kernel.assign(np.ones((1, 8)))
    layer.cell.bias.assign(np.zeros(8))
    states = [ops.zeros((1, size)) for size in layer.state_size]
    drives = []
    for scale in (1e-3, 1e3):  # squares of 1e-6, and of 1e6, beyond float16
        u = ops.cast(ops.cast(np.full((1, 8), scale), layer.compute_dtype), "float32")
        drive, slots = layer.cell.apply_rule(u, states[2:])
        np.testing.assert_allclose(array(slots[0]), 0.1 * scale**2, rtol=1e-2)
        drives.append(array(ops.cast(drive, "float32")))
    np.testing.assert_allclose(drives, 1 / np.sqrt(0.1), rtol=1e-2)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_close_to_float32(case, policy):
    rng = np.random.default_rng(0)
    x = normal(rng, 2, 12, 3)
    layer = case.layer(4)
    layer.build(x.shape)
    randomise(layer, rng, scale=0.3)
    config = {**layer.get_config(), "dtype": policy}
    half = case.layer_class.from_config(config)
    half.build(x.shape)
    half.set_weights(layer.get_weights())
    assert keras.backend.standardize_dtype(half(x).dtype) == half.compute_dtype
    assert_close(run(half, x)[0], run(layer, x)[0], tolerance=0.05)


@pytest.mark.parametrize("case", CASES)
def test_trains_in_mixed_precision(case):
    rng = np.random.default_rng(0)
    x = normal(rng, 8, 5, 3)
    model = keras.Sequential(
        [case.layer(4, dtype="mixed_float16", dropout=0.1), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    history = model.fit(x, x.sum(axis=(1, 2)), epochs=2, verbose=0)
    assert np.all(np.isfinite(history.history["loss"]))


@pytest.mark.parametrize("name", ["LSTM", "SimpleRNN", "MCRM"])
def test_a_layer_whose_cell_computes_in_another_dtype(name):
    """Its weights must not be rounded for the layer."""
    stepping = getattr(keras.layers, name, functools.partial(kmr.MCRM, use_cudnn=False))
    layers = [getattr(kmr, name)(16), stepping(16)]
    for layer in layers:
        layer.build((3, 6, 5))
    randomise(layers[0], np.random.default_rng(0))
    layers[1].set_weights(layers[0].get_weights())
    x = ops.cast(normal(np.random.default_rng(0), 3, 6, 5), "bfloat16")
    for layer in layers:
        layer.dtype_policy = keras.dtype_policies.DTypePolicy("mixed_bfloat16")
    assert layers[0].plan().path == ("step" if name == "MCRM" else "keras")
    outputs = [layer(x) for layer in layers]
    assert [keras.backend.standardize_dtype(y.dtype) for y in outputs] == ["bfloat16"] * 2
    np.testing.assert_array_equal(*(array(ops.cast(y, "float32")) for y in outputs))


@pytest.mark.parametrize("name", ["AdamLSTM", "SRGRU", "MomentumDTRIV", "MCRM"])
def test_a_graph_knows_the_dtype_of_each_state(name):
    layer = getattr(kmr, name)(4, dtype="mixed_float16", return_state=True)
    symbolic = layer(keras.Input((5, 3)))
    actual = layer(np.zeros((2, 5, 3), "float32"))
    assert [x.dtype for x in symbolic] == [
        keras.backend.standardize_dtype(x.dtype) for x in actual
    ]


def test_in_both_directions_the_values_of_slots_are_exact():
    layer = kmr.AdamLSTM(4, dtype="mixed_float16", return_state=True)
    both = keras.layers.Bidirectional(layer, dtype="mixed_float16")
    actual = [keras.backend.standardize_dtype(x.dtype) for x in both(np.zeros((2, 5, 3)))]
    of_one = ["float16", "float16", "float32", "float32"]  # h, c, v, m
    assert actual == ["float16", *of_one, *of_one]


def test_where_keras_itself_is_set_to_half_precision(request):
    """There `keras.ops` makes float16 and int16 of what has no dtype."""
    x = ops.convert_to_tensor(normal(np.random.default_rng(0), 1, 2**15 + 100, 1))
    found = []
    request.addfinalizer(lambda: keras.config.set_floatx("float32"))
    for dtype in ("float32", "float16"):
        keras.config.set_floatx(dtype)
        found.append(array(filtered(kmr.rules.NAG().coefficients, x)))
    assert_close(*found, 1e-6)
    layer = kmr.NAGLSTM(4, dtype="float32")
    model = keras.Sequential([keras.Input((None, 3)), layer])
    assert model.predict(np.zeros((2, 5, 3)), verbose=0).shape == (2, 4)
    with pytest.warns(UserWarning, match="computes another function"):
        kmr.convert.to_keras(layer)
