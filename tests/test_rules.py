"""Rules: their counters and derivatives, and rules that a user writes."""

import dataclasses

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, normal, randomise, run
from keras import ops
from reference import rule_step

import keras_momentum_rnn as kmr
from keras_momentum_rnn import rules
from keras_momentum_rnn.paths.native.runtime import SWITCH
from keras_momentum_rnn.second_moment import update_second_moment

X = normal(np.random.default_rng(2), 2, 9, 3)


def same_weights(*layers):
    rng = np.random.default_rng(4)
    for layer in layers:
        layer.build(X.shape)
    randomise(layers[0], rng)
    for layer in layers[1:]:
        layer.set_weights(layers[0].get_weights())
    return layers


@keras.saving.register_keras_serializable(package="tests")
class Averaging(rules.Rule):
    """g_t = decay g_{t-1} + (1 - decay) u_t."""

    def __init__(self, decay=0.9):
        self.decay = decay

    def slots(self, width):
        return {"g": width}

    def update(self, u, slots):
        (g,) = slots
        g = self.decay * g + (1 - self.decay) * u
        return g, [g]


def test_own_rule_computes_what_it_says():
    averaging, heavy_ball = same_weights(
        kmr.RuleLSTM(4, rule=Averaging(0.8)), kmr.MomentumLSTM(4, momentum=0.8, step_size=0.2)
    )
    assert_close(run(averaging, X)[0], run(heavy_ball, X)[0], tolerance=1e-6)


@keras.saving.register_keras_serializable(package="tests")
@dataclasses.dataclass
class Twice(rules.Rule):
    """The first of other rules, on inputs twice as large. As a dataclass it has no hash."""

    inner: list
    spare: dict

    def slots(self, width):
        return self.inner[0].slots(width)

    def update(self, u, slots):
        return self.inner[0].update(2 * u, slots)


class LearnedScale(rules.ScaledRule):
    """Its numbers are made of a weight, which it lacks before it is built."""

    def build(self, add_weight):
        self.numbers = add_weight(shape=(4,), initializer="zeros", name="numbers")

    def number(self, i):
        return ops.sigmoid(ops.convert_to_tensor(self.numbers)[i])

    beta = property(lambda self: self.number(0))
    epsilon = property(lambda self: self.number(1))
    scaling = property(lambda self: (self.number(2), self.number(3), 1.0))


def test_a_scaled_rule_may_learn_its_numbers():
    layer = kmr.RuleLSTM(4, rule=LearnedScale())
    model = keras.Sequential([keras.Input((None, 3)), layer])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(X, np.ones((2, 4)), verbose=0)
    assert layer.plan(training=True).path == "step"
    assert array(layer.rule.numbers).all()
    adam = kmr.AdamLSTM(4, momentum=0.5, step_size=0.5, beta=0.5, epsilon=0.5)
    adam.build(X.shape)
    layer.rule.numbers.assign(np.zeros(4))
    layer.set_weights([*adam.get_weights(), np.zeros(4)])
    assert_close(run(layer, X)[0], run(adam, X)[0], tolerance=1e-6)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="it alone has this gradient by hand")
def test_the_gradient_of_a_second_moment_is_the_same_in_a_graph():
    import tensorflow as tf

    rng = np.random.default_rng(0)
    u, dm, d_root = (tf.constant(normal(rng, 3, 4)) for _ in range(3))

    def gradient(u, m):
        with tf.GradientTape() as tape:
            tape.watch([u, m])
            results = update_second_moment(u, m, beta=0.6, epsilon=0.1)
        return tape.gradient(results, [u, m], [dm, d_root])

    graph = tf.function(gradient, autograph=False)  # as Keras, which does not convert
    for one, other in zip(*(f(u, dm**2) for f in (graph, gradient))):
        assert_close(array(one), array(other), 1e-6)


LEARNED = rules.LearnedMomentum(0.8, 0.3, "unit", True, (0.1, 0.9), 3)


@pytest.mark.parametrize(
    "rule",
    [Averaging(0.7), LEARNED, Twice([Averaging(0.6)], {"spare": rules.NAG(0.2)})],
    ids=["fixed", "learned", "of_one"],
)
def test_a_rule_saves_with_the_model(rule, tmp_path):
    layer = keras.layers.Bidirectional(kmr.RuleLSTM(4, rule=rule))
    model = keras.Sequential([keras.Input((None, 3)), layer])
    randomise(layer.forward_layer, np.random.default_rng(0))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    again = loaded.layers[0].forward_layer.rule
    assert keras.saving.serialize_keras_object(again) == keras.saving.serialize_keras_object(
        rule
    )
    assert_close(loaded.predict(X, verbose=0), model.predict(X, verbose=0), tolerance=1e-6)


def test_two_layers_never_share_a_rule():
    one, other = kmr.RuleLSTM(2, rule=LEARNED), kmr.RuleLSTM(2, rule=LEARNED)
    one.build(X.shape)
    other.build(X.shape)
    assert one.rule.momentum_logit is not other.rule.momentum_logit


def test_two_rules_never_share_a_rule_inside_them():
    rule = Twice([LEARNED], {"spare": LEARNED})
    config = keras.saving.serialize_keras_object(rule)
    copied = rules.get(rule)
    assert copied.inner[0] is copied.spare["spare"]  # as it was
    for again in (copied, rules.get(config)):
        for inner in (again.inner[0], again.spare["spare"]):
            assert type(inner) is rules.LearnedMomentum and inner is not LEARNED


@dataclasses.dataclass(frozen=True)
class OfArrays(rules.LinearRule):
    """A rule that promises a hash, and has none."""

    mu: np.ndarray
    shared = False

    def coefficients(self, t):
        return self.mu, 1.0


@pytest.mark.parametrize("native", ["0", "1"])
def test_a_rule_may_hold_an_array(native, monkeypatch):
    monkeypatch.setenv(SWITCH, native)
    layer = kmr.RuleRNN(3, rule=OfArrays(np.float32([0.1, 0.5, 0.9])))
    own, each = run(layer, X)[0], kmr.RuleRNN(3, rule=rules.HeavyBall(0.5, 1.0))
    each.build(X.shape)
    each.set_weights(layer.get_weights())
    assert own.shape == (2, 3) and not np.allclose(own, run(each, X)[0])


@pytest.mark.parametrize(
    "rule",
    [
        rules.HeavyBall(0.3, 0.4),
        rules.NAG(0.5),
        rules.ScheduledRestart(7, 0.4),
        rules.Adam(0.3, 0.4, 0.5, 1e-7),
        rules.RMSProp(0.4, 0.5, 1e-7),
        LEARNED,
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_rules_serialise(rule):
    config = keras.saving.serialize_keras_object(rule)
    again = rules.get(config)
    assert type(again) is type(rule)
    assert vars(again) == vars(rule)
    assert config["registered_name"] == f"keras_momentum_rnn>{type(rule).__name__}"


def test_a_counter_restarts_at_every_multiple_of_its_period():
    """On JAX compiled, where the quotient of a multiple may be rounded down."""
    t = np.arange(1000, dtype="float32")
    for period in (1, 41, 47, 123):
        advance = rules.ScheduledRestart(period).advance_counter
        if BACKEND == "jax":
            import jax

            advance = jax.jit(advance)
        after = array(advance(ops.convert_to_tensor(t)))
        np.testing.assert_array_equal(after, (t + 1) % period)


def test_a_rule_that_keeps_no_argument_is_told_to():
    class Forgetful(Averaging):
        def __init__(self, rate=0.9):
            super().__init__(rate)

    with pytest.raises(NotImplementedError, match=r"Forgetful must keep .* as `self\.rate`"):
        kmr.RuleLSTM(2, rule=Forgetful())


class Named(Averaging):
    """A slot that has the name of a state."""

    def slots(self, width):
        return {"c": width}


class Mean(rules.HeavyBall):
    def __init__(self, momentum=0.9, step_size=1.0):
        super().__init__(momentum, step_size * (1 - momentum))


class Elementwise(rules.HeavyBall):
    def coefficients(self, t):
        return ops.convert_to_tensor(np.linspace(0, 1, 8, dtype="float32")), 1.0


class Unused(rules.RMSProp):
    scaling = (0.5, 1.0, 1.0)


class Returning(Averaging):
    """Its `update` returns what `change` makes of the drive and the slot."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def update(self, u, slots):
        drive, (g,) = super().update(u, slots)
        return self.change(drive, g)


@pytest.mark.parametrize(
    "rule, message",
    [
        (Returning(lambda drive, g: (drive, g)), r"of Returning must .*, the slots in a "),
        (Returning(lambda drive, g: (drive, {"g": g})), "the slots in a dict"),
        (Returning(lambda drive, g: (drive, [g, g])), r"\[\('batch', 8\), \('batch', 8\)\]"),
        (Returning(lambda drive, g: (drive, [])), r"batch of 2: \[\(2, 8\)\], the slots in a"),
        (
            Returning(lambda drive, g: (drive, [g[:, :1]])),
            r"batch of 2: \[\(2, 8\), \(2, 1\)\]",
        ),
        (
            Returning(lambda drive, g: (drive[:, :1], [g])),
            r"batch of 2: \[\(2, 1\), \(2, 8\)\]",
        ),
        (Mean(), "`step_size` of Mean must be kept as it was given"),
        (Elementwise(), r"Elementwise must set `shared = False`.*\(8,\)"),
        (Unused(), "Unused has no velocity, so mu must be 0.*0.5"),
        (Named(), r"must not be named h or c.*\['c'\] of Named"),
    ],
    ids=[
        *("a_tensor_of_slots", "a_dict_of_slots", "a_surplus_slot", "a_missing_slot"),
        *("a_narrow_slot", "a_narrow_drive"),
        *("changed_by_copies", "elementwise", "unused_mu", "named"),
    ],
)
def test_a_rule_that_would_be_mistaken_is_refused(rule, message):
    with pytest.raises(ValueError, match=message):
        kmr.RuleLSTM(2, rule=rule)(X)


@pytest.mark.parametrize(
    "name, numbers",
    [
        ("Adam", {"momentum": 0.7, "step_size": 0.8, "beta": 0.9, "epsilon": 1e-2}),
        ("Adam", {"momentum": 0.7, "beta": 0.9, "epsilon": 1e-2, "relaxed": False}),
        ("RMSProp", {"step_size": 0.8, "beta": 0.8, "epsilon": 1e-2}),
    ],
    ids=["adam", "equation14", "rmsprop"],
)
def test_derivatives_of_both_orders_are_differences(name, numbers):
    """Compiled, where the second moment has a gradient of its own."""
    rng, rule = np.random.default_rng(0), getattr(rules, name)(**numbers)
    numbers = rule.get_config()
    shapes = [(2, 3)] * (1 + len(rule.slots(3)))
    point = [normal(rng, *shape) for shape in shapes]
    point[-1] = np.abs(point[-1])
    cotangents, first, second = ([normal(rng, *s) for s in shapes] for _ in range(3))

    def value(*point):
        drive, slots = rule.update(point[0], list(point[1:]))
        return along([drive, *slots], cotangents)

    def value_at(s, t):
        u, *slots = (p.astype("float64") + s * a + t * b for p, a, b in moved)
        drive, slots = rule_step(name, numbers, u, slots)
        return sum(np.sum(a * b) for a, b in zip([drive, *slots], cotangents))

    moved, e = list(zip(point, first, second)), 1e-4
    by_first = (value_at(e, 0) - value_at(-e, 0)) / (2 * e)
    corners = [s * t * value_at(s * e, t * e) for s in (1, -1) for t in (1, -1)]
    by_both = sum(corners) / (4 * e * e)
    actual = DERIVATIVES[BACKEND](value, point, first, second)
    assert_close(array(actual[0]), by_first, tolerance=1e-4)
    assert_close(array(actual[1]), by_both, tolerance=1e-3)


def along(gradient, direction):
    return sum(ops.sum(a * ops.convert_to_tensor(b)) for a, b in zip(gradient, direction))


def tensorflow_derivatives(value, point, first, second):
    import tensorflow as tf

    @tf.function
    def derivatives(point):
        with tf.GradientTape() as outer:
            outer.watch(point)
            with tf.GradientTape() as inner:
                inner.watch(point)
                result = value(*point)
            by_first = along(inner.gradient(result, point), first)
        return by_first, along(outer.gradient(by_first, point), second)

    return derivatives([tf.constant(p) for p in point])


def jax_derivatives(value, point, first, second):
    import jax

    def by_first(point):
        return along(jax.grad(lambda point: value(*point))(point), first)

    # The second one forward, as `jax.hessian` goes.
    return jax.jit(lambda point: jax.jvp(by_first, (point,), (second,)))(point)


def torch_derivatives(value, point, first, second):
    import torch

    point = [torch.tensor(p, requires_grad=True) for p in point]
    by_all = torch.autograd.grad(value(*point), point, create_graph=True)
    by_first = along(by_all, map(torch.tensor, first))
    by_both = torch.autograd.grad(by_first, point, materialize_grads=True)
    return by_first, along(by_both, map(torch.tensor, second))


DERIVATIVES = {
    "tensorflow": tensorflow_derivatives,
    "jax": jax_derivatives,
    "torch": torch_derivatives,
}


# In the last row the square of the root, too, is 0: JAX's quotient takes it.
LARGE = [(1.0, 1), (1e15, 1), (1e18, 1), *([] if BACKEND == "jax" else [(1.5e19, 1e6)])]


@pytest.mark.parametrize("size, factor", LARGE)
def test_the_slope_of_a_scaled_drive_holds_for_large_inputs(size, factor):
    """Compiled. The root is 1 / size, whose third or second power float32 takes for 0."""
    rule = rules.RMSProp(step_size=1.0, beta=0.5)
    u, m = (np.full((1, 1), number, "float32") for number in (size, size**2))
    slope, _ = DERIVATIVES[BACKEND](
        lambda u, m: ops.sum(factor * rule.update(u, [m])[0]),
        [u, m],
        [u, 0 * m],
        [0 * u, 0 * m],
    )
    # u (1 / sqrt(m) - 0.5 u^2 / sqrt(m)^3), where m = u^2
    assert_close(array(slope) / factor, 0.5, tolerance=1e-4)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow has graphs")
@pytest.mark.parametrize(
    "layer_class",
    [
        kmr.AdamLSTM,
        kmr.RMSPropGRU,
        kmr.AdamDTRIV,
        lambda *args, **options: kmr.RuleLSTM(*args, rule=LearnedScale(), **options),
    ],
)
@pytest.mark.parametrize("mask", [None, [[True] * 6 + [False] * 3, [False] + [True] * 8]])
def test_a_loop_in_a_graph_has_the_gradients_of_eager_execution(layer_class, mask):
    import tensorflow as tf

    layer = layer_class(4, return_sequences=True)
    layer.build(X.shape)
    randomise(layer, np.random.default_rng(0))
    weights = [w.value for w in layer.trainable_variables]

    def slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            mask_now = None if mask is None else tf.constant(mask)
            value = tf.reduce_sum(layer(x, mask=mask_now) ** 2)
        return tape.gradient(value, [x, *weights])

    x = tf.constant(X)
    for actual, expected in zip(tf.function(slopes)(x), slopes(x), strict=True):
        assert_close(array(actual), array(expected))
