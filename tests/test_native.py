"""The native kernel: its numbers on every shape, and when it steps aside."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, normal, results_and_gradients
from masks import MASKS
from pairs import compare, pair, pair_of

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths.native import runtime

numba = pytest.importorskip("numba", reason="the native kernel needs it")

from keras_momentum_rnn.paths.native import kernel, subnormals  # noqa: E402

LAYERS = (
    "MomentumLSTM",
    "NAGLSTM",
    "SRLSTM-released",
    "AdamLSTM",
    "RMSPropLSTM",
    "SRGRU",
    "AdamGRU",
    "NAGRNN",
    "AdamRNN",
    "MomentumDTRIV",
    "AdamDTRIV",
    "MCRM",
    "MCRM-NAG",
    "MCRM-Adam",
    "NestedLSTM",
    "NestedLSTM-RMSProp",
    "NestedLSTM-ScheduledRestart",
)


SHAPES = {
    # Rows and columns that fill no tile, one sample and many, more steps than one chunk has.
    "one": ((1, 2, 1), 1),
    "ragged": ((3, 9, 5), 5),
    "wide": ((7, 5, 35), 37),
    "long": ((2, 150, 2), 16),
    "many": ((257, 4, 3), 19),
    "chunks": ((5, 40, 2), 130),
}


def shape_rows():
    for name in LAYERS:
        for shape in SHAPES:
            for count in (1, 3):  # one thread takes whole what several divide
                yield pytest.param(name, shape, count, {}, id=f"{count}-{name}-{shape}")
    # A sample's masks of h, behind the first samples of a thread and of a group, too.
    drops = {"recurrent_dropout": 0.4, "seed": 3}
    for name, count in (("NAGLSTM", 1), ("AdamGRU", 3)):
        yield pytest.param(name, "many", count, drops, id=f"{count}-{name}-many-drops")


@pytest.mark.parametrize("name, shape, count, options", shape_rows())
def test_every_shape_equals_the_steps(name, shape, count, options, monkeypatch):
    monkeypatch.setattr(runtime, "thread_count", lambda: count)
    shape, units = SHAPES[shape]
    layers = pair_of(name, shape, units, **options)
    assert layers[0].plan(training=True).path == "native"
    # Adam divides by the root of m, and multiplies what a small u was rounded by.
    tolerance = 1e-4 if layers[0].cell.rule.scaled else 1e-5
    compare(layers, shape, tolerance=tolerance)
    compare(layers, shape, MASKS["window"](*shape[:2]), tolerance)


@pytest.mark.parametrize("name", LAYERS)
def test_arrays_may_lie_in_any_order(name, monkeypatch):
    """As gradients do on PyTorch. Of 16 units none is copied to be padded."""
    forward, backward = kernel.forward, kernel.backward

    def turned(*arrays):
        return keras.tree.map_structure(lambda a: None if a is None else a.copy("F"), arrays)

    def turned_forward(equation, x, weights, states, *others, **options):
        return forward(equation, *turned(x, weights, states), *others, **options)

    def turned_backward(equation, x, weights, states, mask, kept, d, d_finals, **options):
        given = turned(x, weights, states)
        return backward(equation, *given, mask, kept, *turned(d, d_finals), **options)

    monkeypatch.setattr(kernel, "forward", turned_forward)
    monkeypatch.setattr(kernel, "backward", turned_backward)
    layers = pair_of(name, (3, 9, 5), units=16)
    compare(layers, (3, 9, 5), tolerance=1e-4 if layers[0].cell.rule.scaled else 1e-5)


@pytest.mark.parametrize("name", ["AdamGRU", "MCRM-NAG"])
def test_the_way_back_writes_to_its_own_memory_alone(name, monkeypatch):
    """One sample takes the last 62 steps alone; then the rings have room for all 16."""
    monkeypatch.setattr(runtime, "thread_count", lambda: 1)
    layers, guarded = pair_of(name, (16, 70, 2)), {}
    loops = kernel.RECURRENCES[layers[0].cell.recurrence_name].loops
    new_scratch = loops.new_scratch

    def with_guard(array):
        if isinstance(array, np.ndarray) and id(array) not in guarded:
            whole = np.append(array, np.ones(4096, array.dtype))
            guarded[id(array)] = whole[: array.size], whole[array.size :], array
        return guarded[id(array)][0] if id(array) in guarded else array

    def guarded_scratch(*sizes):
        return keras.tree.map_structure(with_guard, new_scratch(*sizes))

    monkeypatch.setattr(loops, "new_scratch", guarded_scratch)
    mask = np.arange(70) < np.where(np.arange(16) == 3, 70, 8)[:, None]
    compare(layers, (16, 70, 2), mask, tolerance=1e-4)
    assert guarded and all((guard == 1).all() for _, guard, _ in guarded.values())


@pytest.mark.skipif(not subnormals.on_x86(), reason="nothing is set on other processors")
@pytest.mark.parametrize("name", ["MomentumLSTM", "NestedLSTM"])
def test_gradients_that_vanish_are_zero_in_the_kernel_alone(name, monkeypatch):
    """Below 1.2e-38, where Intel's processors take ten times as long for a product."""
    monkeypatch.setattr(runtime, "thread_count", lambda: 1)
    backward, tiny, seen = kernel.backward, np.finfo("float32").tiny, []

    def vanishing(*arrays, **options):
        *rest, d, d_finals = arrays
        small = [None if a is None else tiny * a for a in (d, *d_finals)]
        gradients = keras.tree.flatten(backward(*rest, small[0], small[1:], **options))
        gradients = np.abs(np.concatenate([a.reshape(-1) for a in gradients]))
        seen.append((gradients > 0) & (gradients < tiny))
        return backward(*arrays, **options)

    monkeypatch.setattr(kernel, "backward", vanishing)
    compare(pair_of(name, (3, 9, 5)), (3, 9, 5), tolerance=1e-5)
    assert seen and not np.concatenate(seen).any()
    assert (tiny * np.full(3, 0.5, "float32") > 0).all()  # this thread computes as before


@pytest.mark.parametrize("name", ["NAGLSTM", "AdamGRU", "MCRM"])
@pytest.mark.parametrize("sequences", [True, False])
def test_inference_equals_the_steps(name, sequences, monkeypatch):
    """It keeps nothing for a way back, and has gradients all the same."""
    monkeypatch.setattr(runtime, "SMALL", 0)
    layers = pair_of(name, (3, 9, 5), return_sequences=sequences)
    assert layers[0].plan(training=False).path == "native"
    compare(layers, (3, 9, 5), MASKS["holes"](3, 9), 1e-4, training=False)


@pytest.mark.parametrize("name", ["NAGLSTM", "MCRM"])
@pytest.mark.parametrize("sequences", [True, False])
def test_predictions_keep_h_of_the_steps_that_are_wanted(name, sequences, monkeypatch):
    monkeypatch.setattr(runtime, "SMALL", 0)
    infer, shapes = kernel.infer, []

    def watched(*given):
        shapes.append(given[-1].shape)
        return infer(*given)

    monkeypatch.setattr(kernel, "infer", watched)
    layers = pair_of(name, (3, 9, 5), return_sequences=sequences, return_state=False)
    x = normal(np.random.default_rng(0), 3, 9, 5)
    x[~MASKS["holes"](3, 9)] = 0
    inputs = keras.Input((9, 5))
    masked = keras.layers.Masking()(inputs)
    fast, exact = (keras.Model(inputs, layer(masked)).predict(x, verbose=0) for layer in layers)
    assert_close(fast, exact, 1e-5)
    assert shapes == [(3, 9 if sequences else 1, 4)]


@pytest.mark.parametrize("name", ["AdamLSTM", "NestedLSTM"])
def test_a_batch_of_no_samples(name):
    layer = pair_of(name, (None, None, 3))[0]
    outputs, *states = layer(np.zeros((0, 5, 3), "float32"), training=True)
    assert outputs.shape == (0, 5, 4) and all(s.shape[0] == 0 for s in states)
    if BACKEND == "torch":
        outputs.sum().backward()
        for weight in layer.trainable_weights:
            assert not array(weight.value.grad).any()


@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamGRU", "NAGRNN", "MCRM-Adam"])
def test_an_input_without_features(name):
    """Of it there is the bias alone."""
    compare(pair_of(name, (3, 4, 0)), (3, 4, 0))


@pytest.mark.parametrize("name", ["AdamLSTM", "RMSPropRNN"])
def test_a_second_moment_that_hardly_decays(name):
    """Of 1 - beta in float32 there would be one digit. A small step makes up for a small m."""
    shape, numbers = (3, 6, 2), {"beta": 1 - 1e-7, "epsilon": 1e-16, "step_size": 1e-3}
    rng = np.random.default_rng(1)
    layers = pair(getattr(kmr, name), shape, **numbers)
    x, cotangents = normal(rng, *shape), [normal(rng, 3, 6, 4)]
    (fast, by_fast), (exact, by_step) = (
        results_and_gradients(layer, x, cotangents, training=True) for layer in layers
    )
    assert_close(1e7 * fast[-1], 1e7 * exact[-1], 1e-5)
    for one, other in zip(fast, exact, strict=True):
        assert_close(one, other, 1e-5)
    for key, expected in by_step.items():
        assert_close(by_fast[key], expected, 1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamGRU", "MCRM-NAG", "NestedLSTM"])
def test_what_is_not_finite_stays_in_its_own_sample(name, value):
    layer = pair_of(name, (9, 6, 3))[0]
    x = normal(np.random.default_rng(0), 9, 6, 3)
    sound, *_ = map(array, layer(x, training=True))
    x[4, 2, 1] = value
    outputs, *_ = map(array, layer(x, training=True))
    others = np.arange(9) != 4
    assert np.array_equal(outputs[others], sound[others])
    assert np.array_equal(outputs[4, :2], sound[4, :2])
    if np.isnan(value):
        assert np.isnan(outputs[4, 2:]).all()


@pytest.mark.parametrize("counts", [False, True])
def test_a_step_size_that_is_a_tensor(counts):
    """In a graph it has no number that a compiled loop could hold."""

    class Scaled(kmr.rules.LinearRule):
        def coefficients(self, t):
            s = keras.ops.convert_to_tensor(0.7, dtype="float32")
            return (1 / (t + 2) if counts else 0.5), s

    Scaled.counts = counts
    layer = kmr.RuleLSTM(4, rule=Scaled())
    model = keras.Sequential([keras.Input((5, 3)), layer])
    step = kmr.RuleLSTM(4, rule=Scaled(), use_cudnn=False)
    step.build((None, 5, 3))
    step.set_weights(layer.get_weights())
    assert layer.plan(training=True).path == ("step" if counts else "native")
    x = normal(np.random.default_rng(0), 6, 5, 3)
    assert_close(array(layer(x, training=True)), array(step(x)), 1e-5)
    model.compile("sgd", "mse")
    model.fit(x, np.zeros((6, 4)), verbose=0)


class Turning(kmr.rules.LinearRule):
    """A rule that counts, with a number that may be a tensor."""

    counts = True

    def __init__(self, momentum=0.6):
        self.momentum = momentum

    def coefficients(self, t):
        return self.momentum * t / (t + 1), 0.5


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("rule", [Turning, kmr.rules.HeavyBall, kmr.rules.Adam])
def test_a_momentum_that_is_a_tensor_has_a_gradient(rule, training):
    layers = pair(kmr.RuleLSTM, (3, 5, 2), rule=rule(momentum=0.6), return_state=False)
    x = normal(np.random.default_rng(0), 3, 5, 2)

    def gradient(layer):
        layer(x, training=training)  # by a number, whose plan is kept

        def loss(momentum):
            layer.cell.rule.momentum = momentum
            return keras.ops.sum(layer(x, training=training) ** 2)

        if BACKEND == "jax":
            import jax

            return jax.grad(loss)(0.6)
        if BACKEND == "torch":
            import torch

            momentum = torch.tensor(0.6, requires_grad=True)
            return torch.autograd.grad(loss(momentum), momentum)[0]
        import tensorflow as tf

        momentum = tf.Variable(0.6)
        with tf.GradientTape() as tape:
            value = loss(momentum)
        return tape.gradient(value, momentum)

    assert layers[0].plan(training=True).path == "native"
    one, other = (array(gradient(layer)) for layer in layers)
    assert_close(one, other, 1e-5)
    assert abs(other) > 1e-3


@pytest.mark.parametrize(
    "gates, name", [(4, "lstm"), (3, "gru"), (1, "elman"), (4, "nested_gru")]
)
def test_what_is_kept_of_masked_steps_is_written(gates, name):
    """What memory held before may be NaN, which JAX's `debug_nans` finds."""
    rng, units = np.random.default_rng(0), 5
    shapes = [(3, gates * units), (gates * units,), (units, gates * units), (gates * units,)]
    if name == "nested_gru":
        shapes += [(2 * units, 3 * units), (3 * units,), (units, 3 * units), (3 * units,)]
    weights = [normal(rng, *shape) for shape in shapes]
    states = [normal(rng, 4, units) for _ in range(1 if name in ("gru", "elman") else 2)]
    equation = kernel.Equation(name, mu=np.zeros((1, 1), np.float32))
    kept = [np.full(s, np.nan, np.float32) for s in equation.kept_shapes(4, 6, units)]
    mask = np.arange(6) < np.array([[6], [3], [0], [4]])
    mask[0, 2] = False
    kernel.forward(equation, normal(rng, 4, 6, 3), weights, states, mask, kept)
    assert all(np.isfinite(each).all() for each in kept)


def test_a_tiny_epsilon_makes_no_nan_of_an_input_of_zero():
    layers = pair(kmr.AdamLSTM, (3, 4, 2), epsilon=1.2e-38, use_bias=False, return_state=False)
    x = normal(np.random.default_rng(0), 3, 4, 2)
    x[:, :2] = 0
    cotangents = [np.full((3, 4, 4), 1e4, "float32")]
    (_, one), (_, other) = (
        results_and_gradients(layer, x, cotangents, training=True) for layer in layers
    )
    for name, expected in other.items():
        assert_close(one[name], expected, 1e-5)


def test_a_memory_that_changes_does_not_end_the_kernel():
    layer, step = pair(kmr.NestedLSTM, (3, 4, 2), return_state=False)
    x = normal(np.random.default_rng(0), 3, 4, 2)
    before = array(layer(x, training=True))
    layer.cell.memory.activation = step.cell.memory.activation = keras.activations.relu
    after, exact = (array(each(x, training=True)) for each in (layer, step))
    assert_close(after, exact, 1e-5)
    assert np.abs(after - before).max() > 1e-3
    assert runtime.absence() is None


def test_arrays_that_do_not_fit_are_refused():
    """`TimeDistributed` passes over the check of its input; a failed call leaves its masks."""
    layer = keras.layers.TimeDistributed(kmr.MomentumLSTM(5))
    layer(np.ones((2, 2, 4, 3), "float32"))
    with pytest.raises(Exception, match=r"inputs must have the shape \(2, 4, 3\).*, 5\)"):
        layer(np.ones((2, 2, 4, 5), "float32"))
    gru = kmr.GRU(5, recurrent_dropout=0.5)
    gru.build((None, 4, 3))
    with pytest.raises(Exception, match=r"\b2\b"):
        gru(np.ones((2, 4, 2), "float32"), training=True)
    assert gru(np.ones((6, 4, 3), "float32"), training=True).shape == (6, 5)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_momenta_of_another_batch_are_refused(rows):
    equation = SimpleNamespace(
        recurrence=SimpleNamespace(own_states=1), mu=np.ones((rows, 4)), dropout=None
    )
    weights = [np.zeros((2, 5)), None, np.zeros((5, 5)), None]
    call = equation, np.zeros((3, 4, 2)), weights, [np.zeros((3, 5))], None
    if rows == 2:
        with pytest.raises(ValueError, match=r"momentum .* \(3, 4\). Received: \(2, 4\)"):
            kernel.check_sizes(*call)
    else:
        kernel.check_sizes(*call)


def test_a_mask_of_one_row_is_that_of_all_samples():
    """A graph of TensorFlow with an open batch passes it on."""
    one = np.array([[True, True, False, False]])
    all_rows, shown = (
        kernel.Schedule.of_mask(mask, 3, 4) for mask in (np.repeat(one, 3, 0), one)
    )
    assert np.array_equal(shown.spans, all_rows.spans) and shown.spans.shape == (3, 4)
    assert np.array_equal(shown.active, all_rows.active)


def test_modrelu_of_zero_is_zero():
    """Its sign is 0, whatever the bias adds."""
    layers = pair(kmr.MomentumDTRIV, (2, 6, 3), modrelu_bias_initializer="ones")
    x = np.zeros((2, 6, 3), "float32")
    x[0, 3:] = 1
    fast, step = (array(layer(x, training=True)[0]) for layer in layers)
    assert_close(fast, step, 1e-6)
    assert not fast[1].any() and fast[0, 3:].any()


@pytest.mark.parametrize("gate", [16.0, 100.0])
@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamLSTM", "NestedLSTM"])
def test_saturated_gates_hold_a_memory_to_the_last_bit(name, gate):
    """A forget gate of 1 and an input gate of 0 keep c for 10,000 steps, whatever c is."""
    nested = name == "NestedLSTM"
    # A bias beside the recurrent product is none of the rule's: the gates are what it says.
    options = {} if nested else {"use_recurrent_bias": True}
    layer = pair_of(name, (2, 10_000, 1), units=3, **options)[0]
    for weight in layer.weights:
        weight.assign(np.zeros(weight.shape, "float32"))
    bias = layer.cell.memory.bias if nested else layer.cell.recurrent_bias
    bias.assign(np.repeat(np.float32([-gate, gate, 0, gate]), 3))
    states = [np.zeros((2, size), "float32") for size in layer.state_size]
    held = 2 if nested else 1
    states[held] = np.float32([[1, -0.3, 1000], [1e-6, 12345.678, -1]])
    call = {"initial_state": list(map(keras.ops.convert_to_tensor, states)), "training": True}
    assert layer.plan(training=True).path == "native"
    _, *after = layer(np.zeros((2, 10_000, 1), "float32"), **call)
    assert np.array_equal(array(after[held]), states[held])


@pytest.mark.parametrize("name", ["MomentumGRU", "MCRM"])
def test_a_saturated_update_gate_holds_a_memory_to_the_last_bit(name):
    """Beside it the candidate is 1, so that its rounding would show in what is held."""
    layer = pair_of(name, (2, 100, 1), units=3)[0]
    for weight in layer.weights:
        weight.assign(np.zeros(weight.shape, "float32"))
    cell, held = (layer.cell, 0) if name == "MomentumGRU" else (layer.cell.memory, 1)
    cell.bias.assign(np.stack([np.zeros(9, "float32"), np.repeat(np.float32([100] * 3), 3)]))
    states = [np.zeros((2, size), "float32") for size in layer.state_size]
    states[held] = np.float32([[0.9, -0.3, 0.0021356821], [1e-6, 0.12345678, -1e-3]])
    call = {"initial_state": list(map(keras.ops.convert_to_tensor, states)), "training": True}
    assert layer.plan(training=True).path == "native"
    _, *after = layer(np.zeros((2, 100, 1), "float32"), **call)
    assert np.array_equal(array(after[held]), states[held])


def test_sigmoid_and_tanh_over_all_of_float32():
    """Off by at most 2e-7 of 1 anywhere; exactly at their bounds beyond 16 and 8."""
    from keras_momentum_rnn.paths.native import simd
    from keras_momentum_rnn.paths.native.simd import load, store

    @numba.njit
    def both(arrays, size):
        x, sigmoids, tanhs = simd.pointers(arrays)
        for i in range(0, size, 16):
            store(sigmoids, i, simd.sigmoid(load(x, i)))
            store(tanhs, i, simd.tanh(load(x, i)))

    # Every 2^12th of all numbers, infinities and NaN among them, and all near the bounds.
    bits = np.arange(0, 2**32, 2**12, dtype="uint32")
    x = np.concatenate([bits.view("float32"), np.linspace(-17, 17, 2**20, dtype="float32")])
    sigmoids, tanhs = np.empty_like(x), np.empty_like(x)
    both((x, sigmoids, tanhs), len(x))
    with np.errstate(over="ignore", invalid="ignore"):
        exact = x.astype("float64")
        assert np.nanmax(np.abs(tanhs - np.tanh(exact))) < 3e-7
        assert np.nanmax(np.abs(sigmoids - 1 / (1 + np.exp(-exact)))) < 2e-7
    assert (
        np.nanmax(np.abs(tanhs)) == 1 and np.nanmin(sigmoids) == 0 and np.nanmax(sigmoids) == 1
    )
    assert (tanhs[x >= 8] == 1).all() and (tanhs[x <= -8] == -1).all()
    assert (sigmoids[x >= 16] == 1).all() and (sigmoids[x <= -16] == 0).all()
    assert np.isnan(tanhs[np.isnan(x)]).all() and np.isnan(sigmoids[np.isnan(x)]).all()
