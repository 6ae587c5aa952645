"""The rule that learns its momentum: its start, its gradients on every path, conversion."""

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, normal, randomise, run, stepping_pair
from keras import ops
from masks import MASKS
from pairs import compare

import keras_momentum_rnn as kmr
import keras_momentum_rnn.convert
from keras_momentum_rnn import diagnostics, rules
from keras_momentum_rnn.paths.filtered import CHUNK

PER = ("scalar", "gate", "unit")
LAYERS = {
    "LSTM": (kmr.RuleLSTM, kmr.MomentumLSTM, {}),
    "GRU": (kmr.RuleGRU, kmr.MomentumGRU, {}),
    "RNN": (kmr.RuleRNN, kmr.MomentumRNN, {}),
    "hidden": (kmr.RuleRNN, kmr.MomentumRNN, {"parameterization": "hidden"}),
    "DTRIV": (kmr.RuleDTRIV, kmr.MomentumDTRIV, {}),
    "MCRM": (kmr.MCRM, None, {}),
}
X = normal(np.random.default_rng(2), 3, 9, 2)
GATES = {"LSTM": 4, "MCRM": 4, "GRU": 3}


def learned(name, units=5, rule=None, **options):
    cls, _, own = LAYERS[name]
    return cls(units, rule=rule or rules.LearnedMomentum(per="unit"), **own, **options)


def fixed(name, momentum, step_size, units=5):
    _, cls, own = LAYERS[name]
    if cls is None:
        return kmr.MCRM(units, rule=rules.HeavyBall(momentum, step_size))
    return cls(units, momentum=momentum, step_size=step_size, **own)


@pytest.mark.parametrize("tied", [False, True], ids=["free", "tied"])
@pytest.mark.parametrize("per", PER)
@pytest.mark.parametrize("name", LAYERS)
def test_it_starts_as_heavy_ball(name, per, tied):
    rule = rules.LearnedMomentum(0.8, 0.3, per=per, tied=tied)
    ours, plain = learned(name, rule=rule), fixed(name, 0.8, 0.3)
    for layer in (ours, plain):
        layer.build(X.shape)
    randomise(plain, np.random.default_rng(0))
    assign(ours, {w.path.split("/", 1)[1]: w for w in plain.weights})
    assert_close(run(ours, X)[0], run(plain, X)[0], tolerance=1e-6)
    gates = GATES.get(name, 1)
    shape = {"scalar": (), "gate": (gates,), "unit": (5 * gates,)}[per]
    assert [getattr(ours.cell.rule, n).shape for n in rule.weight_names] == [shape, shape]


def assign(layer, weights):
    """Give a layer the weights of another by their paths within it."""
    for weight in layer.weights:
        name = weight.path.split("/", 1)[1]
        if name in weights:
            weight.assign(weights.pop(name))
    assert not weights


@pytest.mark.parametrize("dtype", ["mixed_float16", "bfloat16", "float64"])
def test_its_numbers_are_as_exact_as_the_slots(dtype):
    ours, plain = (
        cls(5, dtype=dtype, recurrent_initializer="glorot_uniform", **numbers)
        for cls, numbers in (
            (kmr.RuleLSTM, {"rule": rules.LearnedMomentum(0.99, 0.3, "unit")}),
            (kmr.MomentumLSTM, {"momentum": 0.99, "step_size": 0.3}),
        )
    )
    for layer in (ours, plain):
        layer.build(X.shape)
    plain.set_weights(ours.get_weights()[:3])
    wide = "float64" if dtype == "float64" else "float32"
    # Two paths, and h is rounded to half precision at each step.
    tolerance = 2e-2
    if dtype == "float64":
        tolerance = 1e-6 if BACKEND == "jax" else 1e-12  # JAX computes in float32 by default
    assert_close(run(ours, X)[0], run(plain, X)[0], tolerance)
    assert ours.cell.rule.momentum_logit.dtype == wide


@pytest.mark.parametrize("momentum", [0.0, 1e-5, 0.05, 0.999, 0.9999999])
@pytest.mark.parametrize("step_size", [1e-30, 1e-3, 1.0, 1e3, 1e30])
@pytest.mark.parametrize("tied", [False, True], ids=["free", "tied"])
def test_the_first_numbers_are_those_given(momentum, step_size, tied):
    layer = learned("RNN", rule=rules.LearnedMomentum(momentum, step_size, tied=tied))
    layer.build(X.shape)
    mu, s = map(array, layer.cell.rule.coefficients(None))
    np.testing.assert_allclose(mu, momentum, rtol=1e-6, atol=6e-8)
    # A float32 next to 1 has 24 bits for what is left of it.
    np.testing.assert_allclose(s, step_size, rtol=3e-5)


def test_spread_is_uniform_in_the_logarithm_of_the_time_scale():
    rule = rules.LearnedMomentum(0.6, 0.5, per="unit", spread=(0.0, 0.99), tied=True, seed=1)
    first, again, other = (
        learned("LSTM", 500, rule=rules.LearnedMomentum(**{**rule.get_config(), "seed": seed}))
        for seed in (1, 1, 2)
    )
    for layer in (first, again, other):
        layer.build((None, None, 2))
    mu, s = map(array, first.cell.rule.coefficients(None))
    quantiles = np.quantile(np.log(1 / (1 - mu)) / np.log(100), [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(quantiles, [0, 0.25, 0.5, 0.75, 1], atol=0.04)
    np.testing.assert_allclose(s, 0.5 / 0.4 * (1 - mu), rtol=1e-4)
    assert np.array_equal(mu, array(again.cell.rule.coefficients(None)[0]))
    assert not np.allclose(mu, array(other.cell.rule.coefficients(None)[0]))


@pytest.mark.parametrize(
    "numbers, message",
    [
        ({"momentum": 1.0}, r"`momentum` must be a number in \[0, 1\)"),
        ({"momentum": -0.1}, "`momentum` must be"),
        ({"step_size": 0.0}, "`step_size` must be"),
        ({"per": "layer"}, "`per` must be one of"),
        ({"tied": 1}, "`tied` must be one of"),
        ({"spread": (0.9, 0.1)}, "`spread` must be an interval"),
        ({"spread": (0.1, 1.0)}, "`spread` must be a number in"),
        ({"spread": 0.5}, "`spread` must be an interval"),
        ({"seed": 0.5}, "`seed` must be an integer"),
    ],
)
def test_a_number_out_of_range_is_refused(numbers, message):
    with pytest.raises(ValueError, match=message):
        rules.LearnedMomentum(**numbers)


def steps_of(rule, x, first):
    """v at all times by the equation, in float64."""
    a, c = (array(getattr(rule, n)).astype("float64") for n in rule.weight_names)
    mu, s = 1 / (1 + np.exp(-a)), np.log1p(np.exp(c))
    s = s * (1 - mu) if rule.tied else s
    if rule.per == "gate":
        mu, s = (np.repeat(n, x.shape[-1] // len(n)) for n in (mu, s))
    v, velocities = first, []
    for u in np.moveaxis(x.astype("float64"), 1, 0):
        v = mu * v + s * u
        velocities.append(v)
    return np.stack(velocities, 1)


@pytest.mark.parametrize("tied", [False, True], ids=["free", "tied"])
@pytest.mark.parametrize("per", PER)
def test_a_step_is_its_equation(per, tied):
    rng = np.random.default_rng(3)
    layer = learned("LSTM", rule=rules.LearnedMomentum(per=per, tied=tied))
    layer.build(X.shape)
    randomise(layer, rng)
    x, slots = normal(rng, 3, 9, 20), [ops.convert_to_tensor(normal(rng, 3, 20))]
    expected = steps_of(layer.cell.rule, x, array(slots[0]))
    for t in range(9):
        drive, slots = layer.cell.rule.update(ops.convert_to_tensor(x[:, t]), slots)
        assert_close(array(drive), expected[:, t], tolerance=1e-6)


# The paths


TIME = CHUNK + 7
# Options of a layer, whether the call is given slots, and its mask.
CALLS = {
    "plain": ({}, False, None),
    "holes": ({}, False, "holes"),
    "slots": ({}, True, "dead_row"),
    "dropout": ({"dropout": 0.4}, False, None),
    "backwards": ({"go_backwards": True}, False, "holes"),
}
ROWS = [
    *((name, per, "holes") for name in ("LSTM", "GRU", "RNN") for per in PER),
    *((name, "unit", "slots") for name in LAYERS),
    *(("LSTM", "unit", call) for call in CALLS if call not in ("holes", "slots")),
    ("LSTM", "scalar", "slots"),
    ("LSTM", "gate", "slots"),
]


def pair(name, per, **options):
    """Two layers alike, the second of which steps."""
    options = {"return_sequences": True, "return_state": True, **options}
    if name != "MCRM":
        options["seed"] = 3
    rule = rules.LearnedMomentum(per=per)
    return stepping_pair(lambda: learned(name, rule=rule, **options), (3, TIME, 2))


NATIVE, FUSED = ("LSTM", "GRU", "RNN", "DTRIV", "MCRM"), ("LSTM", "GRU", "RNN")


@pytest.mark.parametrize(("name", "per", "call"), ROWS)
def test_every_path_equals_the_steps(name, per, call, device):
    options, slots, mask = CALLS[call]
    if device != "cpu" and name not in (NATIVE if device == "native" else FUSED):
        pytest.skip("the same path on every device")
    layers, shape = pair(name, per, **options), (3, TIME, 2)
    plan = layers[0].plan(training=True, slots=slots, mask=mask is not None)
    assert (plan.path == "native") == (device == "native")
    if BACKEND == "torch" and device != "native" and name in FUSED:
        driven = "drive" if device == "gpu" else "step"
        assert plan.path == ("fused" if per == "scalar" and not slots else driven)
    if plan.path != "step":
        mask = None if mask is None else MASKS[mask](*shape[:2])
        compare(layers, shape, mask, slots=slots)
    elif per != "scalar" and name in FUSED:
        assert "LearnedMomentum has other numbers for each gate or unit" in plan.reason


class Comb(rules.LinearRule):
    """Every other number of the drive has a longer memory; nothing is learned."""

    shared = False

    def coefficients(self, t):
        return ops.convert_to_tensor([0.5, 0.9, 0.5, 0.9, 0.5], dtype="float32"), 0.8


class Drifting(Comb):
    """One that counts has no path but the steps."""

    counts = True


def test_numbers_that_differ_need_not_be_learned(device):
    x = normal(np.random.default_rng(0), 2, TIME, 2)
    layer = kmr.RuleRNN(5, rule=Comb(), return_sequences=True)
    layer.build(x.shape)
    on_torch = {"gpu": "drive", "cpu": "step", "native": "native"}
    elsewhere = "native" if device == "native" else "step"
    assert layer.plan().path == (on_torch[device] if BACKEND == "torch" else elsewhere)
    expected = run(layer, x)[0]
    layer.use_cudnn = False
    assert layer.plan().path == "step"
    assert_close(expected, run(layer, x)[0], tolerance=3e-6)
    assert kmr.RuleRNN(5, rule=Drifting()).plan(features=2).path == "step"


# Conversion and training


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_a_layer_of_keras_starts_at_momentum_0(name):
    plain = {"LSTM": keras.layers.LSTM, "GRU": keras.layers.GRU, "RNN": keras.layers.SimpleRNN}
    plain = plain[name](5, return_sequences=True)
    x = normal(np.random.default_rng(0), 3, 200, 2)
    plain.build(x.shape)
    rule = rules.LearnedMomentum(0.0, 1.0, per="unit")
    ours = kmr.convert.from_keras(plain, LAYERS[name][0], rule=rule)
    assert_close(run(ours, x)[0], run(plain, x)[0], tolerance=1e-6)
    with pytest.warns(UserWarning, match="LearnedMomentum"):
        kmr.convert.to_keras(ours)
    with pytest.raises(ValueError, match="without such a filter"):
        kmr.convert.to_keras(ours, exact=True)


def test_time_scales_are_those_that_were_learned():
    layer = learned("GRU", rule=rules.LearnedMomentum(0.75, 0.5, per="unit"))
    model = keras.Sequential([keras.Input((9, 2)), layer, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.1), "mse")
    start = diagnostics.time_scales(layer)
    model.fit(X, np.ones((3, 1)), epochs=4, verbose=0)
    end = diagnostics.time_scales(layer)
    assert {n: a.shape for n, a in start.items()} == dict.fromkeys(start, (3, 5))
    for name, first in (("momentum", 0.75), ("step_size", 0.5), ("time_scale", 4.0)):
        np.testing.assert_allclose(start[name], first, rtol=1e-6)
        assert np.abs(end[name] - first).mean() > 1e-2
    mu = array(layer.cell.rule.coefficients(None)[0])
    np.testing.assert_allclose(end["momentum"].ravel(), mu, rtol=1e-6)
    np.testing.assert_allclose(end["time_scale"], 1 / (1 - end["momentum"]), rtol=1e-5)
    with pytest.raises(ValueError, match="must have the rule"):
        diagnostics.time_scales(built(kmr.MomentumGRU(5)))


@pytest.mark.parametrize(("per", "shape"), [("scalar", (1, 1)), ("gate", (4, 1))])
def test_time_scales_that_are_shared(per, shape):
    rule = rules.LearnedMomentum(1 - 1e-6, 0.5, per=per, tied=True)
    maps = diagnostics.time_scales(built(learned("LSTM", rule=rule)))
    assert {a.shape for a in maps.values()} == {shape}
    np.testing.assert_allclose(maps["step_size"], 0.5, rtol=1e-5)
    # As many digits as the logit, which 1 - momentum has not.
    np.testing.assert_allclose(maps["time_scale"], 1e6, rtol=1e-5)


def built(layer):
    layer.build(X.shape)
    return layer
