"""Paths: none of them changes a result."""

import keras
import numpy as np
import pytest
from cases import CASES, REPRESENTATIVES
from fuzz_programs import Fading, Mean
from harness import (
    BACKEND,
    array,
    assert_close,
    normal,
    results_and_gradients,
    run,
    stepping_pair,
)
from keras import ops
from masks import MASKS
from pairs import compare
from reference import SCALED, rule_step

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths import plan as planning
from keras_momentum_rnn.paths.filtered import CHUNK, filtered, filtered_by

pytestmark = pytest.mark.usefixtures("no_native_kernel")

# Over more than one chunk of each path.
TIME = CHUNK + 7


def named(*names):
    return [case for case in CASES if case.id in names]


# A kernel serves their recurrence; fewer where each is compiled.
WITH_KERNEL = (
    [case for case in CASES if case.layer().cell.recurrence_name]
    if BACKEND == "torch"
    else named(
        "MomentumLSTM", "NAGGRU", "AdamLSTM", "RMSPropGRU", "MCRM-momentum", "NestedLSTM"
    )
)
IN_LOOPS = named("NAGLSTM", "SRGRU", "MomentumRNN", "MomentumDTRIV", "AdamLSTM", "RMSPropGRU")
FUSED = ("lstm", "gru", "elman")
NATIVE = ("lstm", "released", "gru", "elman", "modrelu", "nested_gru", "nested_lstm")
# Options of a layer, and whether its call is given slots that are not zero.
CALLS = {
    "plain": ({}, False),
    "slots": ({}, True),
    "dropout": ({"dropout": 0.4}, False),
    "gate-dropout": ({"dropout": 0.4, "implementation": 1}, False),
    "recurrent-dropout": ({"recurrent_dropout": 0.4}, True),
    # So little that no sample loses all of its input, where Adam would divide by a root of 0.
    "both-dropouts": ({"dropout": 0.1, "recurrent_dropout": 0.3}, False),
    "no-bias": ({"use_bias": False}, False),
    "recurrent-bias": ({"use_recurrent_bias": True}, False),
    "backwards": ({"go_backwards": True}, False),
    "last": ({"return_sequences": False}, True),
}
# Those that every path meets without a mask, too.
UNMASKED = ("plain", "dropout", "backwards", "last")


# Each is a program to compile but on PyTorch.
KERNEL_CALLS = CALLS if BACKEND == "torch" else ("plain", "slots", "recurrent-bias")


def kernel_rows():
    for case in WITH_KERNEL:
        nested = (case.layer().cell.recurrence_name or "").startswith("nested")
        for call in CALLS if nested else KERNEL_CALLS:
            if not (nested and "recurrent_dropout" in CALLS[call][0]):
                yield case, call
    if BACKEND != "torch":
        for case in named("NAGGRU", "AdamLSTM"):
            yield case, "both-dropouts"


@pytest.mark.parametrize("case, call", kernel_rows())
def test_kernels_equal_the_steps(case, call, device):
    options, slots = CALLS[call]
    if case.takes(options) != options:
        pytest.skip(f"{case.id} takes no {call}")
    served = {"native": NATIVE, "gpu": FUSED}.get(device)
    if served and case.layer().cell.recurrence_name not in served:
        pytest.skip(f"{case.id} takes the same path on every device")
    if device != "native" and "recurrent_dropout" in options:
        pytest.skip("of the native kernel alone")
    layers = pair(case, **options)
    path = layers[0].plan(training=True, slots=slots).path
    assert (path == "native") == (device == "native")
    assert path in ("fused", "drive") or device != "gpu" or BACKEND != "torch"
    if path == "step" or (path == "filter" and BACKEND != "torch"):
        pytest.skip("no kernel takes it")
    # Adam divides by the root of m, and multiplies what a small u was rounded by.
    tolerance = 1e-4 if case.rule in SCALED else 1e-5
    if path == "native" and case.rule in SCALED:
        # The steps in float32 may be off by 4e-4 of those in float64, the kernel by 2e-6.
        tolerance = 1e-3
    if path in ("fused", "drive", "native"):
        mask = "dead_row" if slots else "holes"
        # Where samples end at other times, the kernel has them in another order.
        mask = "right" if "recurrent_dropout" in options else mask
        assert_equal(layers, mask, slots, tolerance)
    unmasked = path == "filter" or call in UNMASKED
    if unmasked and (path == "native" or BACKEND == "torch"):
        assert_equal(layers, None, slots, tolerance)
    if "dropout" in options:  # which acts in training alone
        x = normal(np.random.default_rng(2), 3, TIME, 2)
        for actual, expected in zip(*(run(layer, x) for layer in layers)):
            assert_close(actual, expected, tolerance)


@pytest.mark.parametrize("case", IN_LOOPS)
def test_loops_equal_the_steps(case, monkeypatch):
    """Filtered, or with what the steps computed kept for the backward pass."""
    monkeypatch.setattr(type(case.layer().cell), "recurrence_name", None)
    # With masks of h a cell of several gates has some for each gate, which filters nothing.
    dropped = 0.3 if case.layer().cell.gates == 1 else 0.0
    layers = pair(case, dropout=0.4, recurrent_dropout=dropped)
    scaled = case.rule in SCALED
    assert layers[0].plan(training=True).path == ("step" if scaled else "filter")
    assert layers[0].cell.cheap_steps == (case.id in ("SRGRU", "AdamLSTM", "RMSPropGRU"))
    assert_equal(layers, "holes", tolerance=1e-4 if scaled else 1e-5)


def test_one_feature_is_filtered_as_the_steps_do():
    options = {"return_sequences": True, "return_state": True}
    layers = stepping_pair(lambda: kmr.MomentumGRU(4, reset_after=False, **options), (3, 9, 1))
    assert layers[0].plan(training=True).path == "filter"
    compare(layers, (3, 9, 1), slots=False)


@pytest.mark.parametrize("name", ["AdamLSTM", "MomentumLSTM", "RMSPropGRU"])
def test_no_samples(name, device):
    if (BACKEND, device) == ("tensorflow", "gpu") and "LSTM" in name:
        pytest.skip("Keras's LSTM itself takes no samples there")
    layer = getattr(kmr, name)(4, return_sequences=True)
    assert run(layer, np.zeros((0, TIME, 3), "float32"))[0].shape == (0, TIME, 4)


@pytest.mark.parametrize(
    "case",
    named("AdamLSTM", "SRLSTM-released", "MomentumRNN", "AdamRNN-hidden", "MCRM-momentum"),
)
@pytest.mark.parametrize(
    "options", [{}, {"dropout": 0.4, "recurrent_dropout": 0.3}], ids=["plain", "dropout"]
)
def test_large_products_before_the_loop_equal_those_in_it(case, options, monkeypatch):
    monkeypatch.setattr(type(case.layer().cell), "recurrence_name", None)
    (layer, _) = pair(case, **options)
    assert layer.plan(training=True).path in ("filter", "step")
    assert not layer.plan(training=True).projects_before_loop
    rng = np.random.default_rng(1)
    x, mask = normal(rng, 3, TIME, 2), MASKS["holes"](3, TIME)
    cotangents = [normal(rng, 3, TIME, 5), *(normal(rng, 3, s) for s in layer.state_size)]
    call = {"training": True, "mask": mask}
    exact, by_step = results_and_gradients(layer, x, cotangents, None, **call)
    monkeypatch.setattr(planning, "LARGE", 1)
    layer = pair(case, **options)[0]
    assert layer.plan(training=True).projects_before_loop
    before, by_all = results_and_gradients(layer, x, cotangents, None, **call)
    for actual, expected in zip([*before, *by_all.values()], [*exact, *by_step.values()]):
        assert_close(actual, expected, tolerance=1e-4)


def pair(case, dtype="float32", **options):
    """Two layers alike, but that the second one steps."""
    options = {"return_sequences": True, "return_state": True, "seed": 3, **options}
    layers = stepping_pair(lambda: case.layer(5, dtype=dtype, **options), (3, TIME, 2))
    layers[1].cell.cheap_steps = False
    return layers


def assert_equal(layers, mask, slots=False, tolerance=1e-5):
    """Compare results and gradients of two layers in training."""
    shape = (3, TIME, 2)
    mask = None if mask is None else MASKS[mask](*shape[:2])
    compare(layers, shape, mask, tolerance, slots=slots)


@pytest.mark.skipif(BACKEND != "torch", reason="the others have no kernel in float64")
@pytest.mark.parametrize("device", ["cpu", "gpu"], indirect=True)
@pytest.mark.parametrize("case", WITH_KERNEL)
def test_kernels_equal_the_steps_in_float64(case, device):
    assert_equal(pair(case, "float64"), "holes", tolerance=1e-12)


@pytest.mark.parametrize("device", ["native"], indirect=True)
@pytest.mark.parametrize("memory_class", [keras.layers.GRUCell, keras.layers.LSTMCell])
def test_the_kernel_of_a_memory_without_bias(memory_class, device):
    (case,) = named("MCRM-momentum")
    layers = pair(case, memory=memory_class(5, use_bias=False), use_recurrent_bias=True)
    assert layers[0].plan(training=True).path == "native"
    assert_equal(layers, "holes", slots=memory_class is keras.layers.GRUCell)


@pytest.mark.parametrize("device", ["gpu"], indirect=True)
@pytest.mark.parametrize("name", ["MomentumLSTM", "RMSPropGRU"])
def test_kernels_in_half_precision_equal_the_steps(name, device):
    (case,) = named(name)
    layers = pair(case, "mixed_bfloat16")
    # JAX's cuDNN, of LSTMs alone, has float32 alone.
    loops = BACKEND == "jax" and name == "MomentumLSTM"
    assert layers[0].plan(training=True).path == ("filter" if loops else "drive")
    # A bfloat16 has 8 bits; the drive has all of float32 on both ways, and h and c have not.
    assert_equal(layers, "holes", tolerance=2e-2)


@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamLSTM", "RMSPropGRU", "MCRM-momentum"])
def test_stateful_layers_go_on_from_their_slots(name, device):
    (case,) = named(name)
    if device == "gpu" and case.layer().cell.recurrence_name not in FUSED:
        pytest.skip("the same path on every device")
    layers = pair(case, stateful=True)
    path = layers[0].plan().path
    assert path == {"native": "native", "cpu": "step", "gpu": "drive"}[device]
    x = normal(np.random.default_rng(2), 2, 3, TIME, 2)
    for part in x:
        for actual, expected in zip(*(run(layer, part) for layer in layers)):
            assert_close(actual, expected, tolerance=1e-5)


@pytest.mark.skipif(BACKEND != "torch", reason="a context of PyTorch")
@pytest.mark.parametrize("device", ["native", "cpu"], indirect=True)
@pytest.mark.parametrize(
    "layer_class, rule",
    [
        (kmr.AdamLSTM, None),
        (kmr.NAGGRU, None),
        (kmr.MomentumDTRIV, None),
        (kmr.MCRM, None),
        (kmr.RuleLSTM, kmr.rules.LearnedMomentum()),
    ],
)
def test_half_precision_around_the_layer(layer_class, rule, device):
    """A product without a bias is then in half precision."""
    import torch

    options = {} if rule is None else {"rule": rule}
    layer = layer_class(4, use_bias=False, return_sequences=True, **options)
    x = normal(np.random.default_rng(2), 3, TIME, 5)
    states = [np.zeros((3, size), "float32") for size in layer.state_size]
    expected = run(layer, x, initial_state=states)[0]
    with torch.autocast("cpu", torch.bfloat16):
        actual = layer(x, initial_state=states)
        actual.float().sum().backward()
    # In the loop over steps the products with h are in half precision, too.
    assert_close(array(actual.float()), expected, 3e-2 if device == "native" else 1e-1)


@pytest.mark.skipif(BACKEND != "torch", reason="a context of PyTorch")
@pytest.mark.parametrize("device", ["cpu"], indirect=True)
@pytest.mark.parametrize("layer_class", [kmr.LSTM, kmr.MomentumLSTM])
def test_half_precision_around_a_fused_kernel(layer_class, device):
    import torch

    layer, x = layer_class(4), torch.ones((2, TIME, 3))
    expected = array(layer(x))
    assert layer.plan(training=True).path == "fused"
    with torch.autocast("cpu", torch.bfloat16):
        # The products of a filter are in half precision.
        assert_close(array(layer(x, training=True).float()), expected, 1e-2)


@pytest.mark.parametrize("shape", [(2, 1), (2, 6), (0, 5), (2, 5, 2), (10,)])
def test_a_mask_of_another_shape_is_refused(shape):
    layer = kmr.MomentumLSTM(4)
    with pytest.raises(ValueError, match=r"`mask` of MomentumLSTM.*\(2, 5\)"):
        layer(np.zeros((2, 5, 3), "float32"), mask=np.ones(shape, "bool"))


@pytest.mark.parametrize(
    "rule, numbers",
    [
        ("HeavyBall", {"momentum": 0.95, "step_size": 0.7}),
        ("HeavyBall", {"momentum": 0.0, "step_size": 0.7}),
        ("NAG", {"step_size": 0.7}),
        ("ScheduledRestart", {"restart_period": 40, "step_size": 0.7}),
        ("ScheduledRestart", {"restart_period": 1, "step_size": 0.7}),
    ],
)
@pytest.mark.parametrize("time", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 1000])
def test_filter_equals_the_steps_of_the_rule(rule, numbers, time):
    x = normal(np.random.default_rng(0), 2, time, 3)
    slots = [np.zeros((2, 3)), np.zeros((2, 1))][: 1 if rule == "HeavyBall" else 2]
    expected = []
    for t in range(time):
        drive, slots = rule_step(rule, numbers, x[:, t].astype("float64"), slots)
        expected.append(drive)
    actual = filtered(
        getattr(kmr.rules, rule)(**numbers).coefficients, ops.convert_to_tensor(x)
    )
    assert_close(array(actual), np.stack(expected, axis=1), tolerance=2e-6)


@pytest.mark.parametrize("two", [2, np.int64(2), np.float16(2)])
def test_numbers_of_any_type_filter_alike(two):
    """Powers of an integer would overflow, and of half precision round."""
    x = ops.convert_to_tensor(normal(np.random.default_rng(0), 2, TIME, 3))
    expected = array(filtered_by(2.0, 1.0, x))
    np.testing.assert_array_equal(array(filtered_by(two, 1, x)), expected)
    assert np.isfinite(expected).all() and np.abs(expected[:, -1]).min() > 2**60


def test_a_rule_is_linear_or_scaled_by_its_class():
    assert Fading().linear and not Fading().scaled
    assert kmr.rules.Adam().scaled and not kmr.rules.Adam().linear
    for base, instead in ((kmr.rules.HeavyBall, "coefficients"), (kmr.rules.Adam, "scaling")):
        for name in ("update", "update_factored", "slots"):
            own = {name: lambda self, *args: None}
            for bases, members in (((base,), own), ((type("Mixin", (), own), base), {})):
                with pytest.raises(TypeError, match=f"not override `{name}`.*`{instead}`"):
                    type("Squashed", bases, members)


class Offset(kmr.MomentumLSTM):
    """Its states, velocity included, start elsewhere than at zero."""

    def get_initial_state(self, batch_size=None):
        return [state + 0.5 for state in super().get_initial_state(batch_size)]


def test_slots_of_a_subclass_start_where_it_says(device):
    layers = stepping_pair(lambda: Offset(4), (3, TIME, 2))
    x = normal(np.random.default_rng(0), 3, TIME, 2)
    assert_close(*(run(layer, x)[0] for layer in layers), 1e-6)
    assert layers[0].plan().path in ("native", "step", "drive")


def test_states_of_a_subclass_start_where_it_says():
    layer, stateful = Offset(4), Offset(4, stateful=True)
    x = normal(np.random.default_rng(0), 3, TIME, 2)
    for each in (layer, stateful):
        each.build(x.shape)
    stateful.set_weights(layer.get_weights())
    assert_close(run(stateful, x)[0], run(layer, x)[0], tolerance=1e-6)


class LearnedMean(Mean):
    """One whose inputs have a weight, which is known once the layer is built."""

    def build(self, add_weight):
        self.scale = add_weight(shape=(), initializer="ones", name="scale")

    def coefficients(self, t):
        mu, s = super().coefficients(t)
        return mu, s * ops.convert_to_tensor(self.scale)


class Saturating(kmr.rules.LinearRule):
    """It counts in its own way: to 4."""

    counts = True

    def coefficients(self, t):
        return t / (t + 3), 0.5

    def advance_counter(self, t, steps=1):
        return ops.minimum(t + steps, 4.0)


class Table(kmr.rules.LinearRule):
    """Its momenta stand in a table, which has no more of them than steps."""

    counts = True

    def coefficients(self, t):
        return ops.take(ops.convert_to_tensor(self.table()), ops.cast(t, "int32")), 1.0

    def table(self):
        return np.full(CHUNK + 1, 0.5, "float32")


class LearnedTable(Table):
    def build(self, add_weight):
        self.momenta = add_weight(shape=(CHUNK + 1,), initializer="ones", name="momenta")

    def table(self):
        return self.momenta


class FadingAgain(kmr.rules.ScheduledRestart):
    """Its momentum falls, and from the start at every restart."""

    def __init__(self):
        super().__init__(restart_period=4)

    def coefficients(self, t):
        return 1 / (t + 2), 1.0


@pytest.mark.parametrize(
    "rule",
    [
        Fading,
        Mean,
        LearnedMean,
        kmr.rules.Identity,
        Saturating,
        Table,
        LearnedTable,
        FadingAgain,
    ],
)
@pytest.mark.parametrize("time", [9, CHUNK + 1])
def test_linear_rules_of_every_kind_equal_the_steps(time, rule, device):
    x = normal(np.random.default_rng(0), 2, time, 3)
    fast, step = stepping_pair(lambda: kmr.RuleLSTM(4, rule=rule()), x.shape)
    if rule in (Fading, kmr.rules.Identity) and (device == "native" or BACKEND == "torch"):
        path = fast.plan(training=True).path
        assert path == ("native" if device == "native" else "fused")
    assert_close(run(fast, x, training=True)[0], run(step, x)[0], tolerance=1e-6)


@pytest.mark.masked_nan
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("case", REPRESENTATIVES)
def test_what_is_masked_may_be_nan_or_infinite(case, value):
    rng = np.random.default_rng(0)
    x, mask = normal(rng, 3, 6, 3), MASKS["holes"](3, 6)
    layer = case.layer(4, return_sequences=True, return_state=True)
    layer.build(x.shape)
    cotangents = [normal(rng, 3, 6, 4), *(normal(rng, 3, size) for size in layer.state_size)]
    expected, by_expected = results_and_gradients(layer, x, cotangents, mask=mask)
    x[~mask] = value
    actual, by_actual = results_and_gradients(layer, x, cotangents, mask=mask)
    for one, other in zip([*actual, *by_actual.values()], [*expected, *by_expected.values()]):
        assert_close(one, other, tolerance=1e-6)
    assert not by_actual["x"][~mask].any()


@pytest.mark.parametrize("device", ["cpu", "gpu"], indirect=True)
@pytest.mark.parametrize("mask", [None, "holes"])
def test_an_unmasked_nan_reaches_few_steps_before_it(mask, device):
    """Those of its chunk, where the rule filters the input of all steps at once."""
    time, at = 3 * CHUNK, 3 * CHUNK - 2
    x = normal(np.random.default_rng(0), 2, time, 3)
    x[0, at, 1] = np.nan
    counted = np.ones((2, time), bool) if mask is None else MASKS[mask](2, time)
    counted[0, at] = True
    call = {} if mask is None else {"mask": counted}
    spoilt = np.isnan(run(kmr.MomentumLSTM(4, return_sequences=True), x, **call)[0]).any(-1)
    first = spoilt[0].argmax()
    assert spoilt[0, at:].all() and not spoilt[1].any()
    assert counted[0, first:at].sum() < CHUNK == 64


@pytest.mark.skipif(BACKEND != "torch", reason="on the others inference runs the steps")
@pytest.mark.parametrize("device", ["native"], indirect=True)
@pytest.mark.parametrize("case", [c for c in WITH_KERNEL if c.formulation != "released"])
def test_bidirectional_and_models_take_the_fast_path(case, device, monkeypatch):
    def refused(*args, **kwargs):
        raise AssertionError("stepped")

    x = normal(np.random.default_rng(0), 4, 6, 3)
    model = keras.Sequential(
        [
            keras.layers.Masking(),
            keras.layers.Bidirectional(case.layer(3, return_sequences=True, dropout=0.1)),
            case.layer(2),
        ]
    )
    model.compile("sgd", "mse")
    monkeypatch.setattr(case.layer().cell_class, "recurrence", refused)
    model.fit(x, np.zeros((4, 2)), verbose=0)
    assert run(model, x)[0].shape == (4, 2)


@pytest.mark.parametrize("device", ["gpu"], indirect=True)
def test_an_input_wider_than_the_drive_is_driven_on_a_gpu(device):
    x = normal(np.random.default_rng(0), 2, 9, 20)
    driven, step = stepping_pair(lambda: kmr.MomentumLSTM(4), x.shape)
    assert driven.plan(training=True).path == "drive"
    assert_close(run(driven, x)[0], run(step, x)[0], tolerance=1e-5)


@pytest.mark.skipif(BACKEND != "jax", reason="a program of JAX")
def test_unrolled_steps_are_no_loop():
    import jax

    for unroll in (False, True):
        layer = kmr.AdamLSTM(4, unroll=unroll)
        layer.build((2, TIME, 3))
        program = str(jax.make_jaxpr(layer)(np.zeros((2, TIME, 3), "float32")))
        assert ("scan" in program) is not unroll


def test_a_rule_made_of_none_is_stepped():
    class Doubled(kmr.rules.Identity):
        def update(self, u, slots):
            return 2 * u, []

    layer = kmr.RuleLSTM(4, rule=Doubled())
    layer.build((None, None, 3))
    assert layer.plan(training=True).path == "step"
