"""Where powers, squares and velocities overflow, paths give what the steps give."""

import numpy as np
import pytest
from harness import assert_close, normal, results_and_gradients, run, stepping_pair
from keras import ops
from pairs import pair_of

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths.filtered import CHUNK

pytestmark = pytest.mark.usefixtures("no_native_kernel")

TIME = CHUNK + 7  # more than one chunk of a filter


class Growing(kmr.rules.LinearRule):
    """Its momentum is large and negative at every other step."""

    counts = True

    def coefficients(self, t):
        return 0.9 - 20 * (t % 2), 1.0


class Learned(kmr.rules.HeavyBall):
    """Its momentum is a weight that nothing bounds."""

    def build(self, add_weight):
        self.momentum = add_weight(shape=(), initializer="zeros", name="momentum")


@pytest.mark.parametrize("name", ["MomentumLSTM", "MomentumGRU", "AdamLSTM", "RuleLSTM"])
@pytest.mark.filterwarnings("ignore:With `momentum` of 1 or more")
def test_behind_the_last_step_of_a_sample_nothing_overflows(name, device):
    numbers = {"rule": Learned()} if name == "RuleLSTM" else {"momentum": 1.5}
    options = {"return_state": True, **numbers}
    layers = stepping_pair(lambda: getattr(kmr, name)(4, **options), (2, 300, 2))
    for layer in layers if name == "RuleLSTM" else ():
        layer.cell.rule.momentum.assign(1.5)
    x, mask = normal(np.random.default_rng(0), 2, 300, 2), np.zeros((2, 300), bool)
    mask[0, :10] = mask[1, 3:9] = True
    sizes = [4, *layers[0].state_size]
    cotangents = [np.ones((2, size), "float32") for size in sizes]
    (fast, by_fast), (exact, by_step) = (
        results_and_gradients(layer, x, cotangents, mask=mask, training=True)
        for layer in layers
    )
    for one, other in zip([*fast, *by_fast.values()], [*exact, *by_step.values()]):
        assert_close(one, other, 1e-4)


@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamLSTM", "RuleLSTM"])
@pytest.mark.filterwarnings("ignore:With `momentum` of 1 or more")
def test_powers_of_a_large_momentum_overflow_on_no_path(name, device):
    """Only the last three steps are not zero: a filter in chunks would make NaN of the rest."""
    numbers = {"rule": Growing()} if name == "RuleLSTM" else {"momentum": 4.0}
    options = {"return_state": True, "use_bias": False, **numbers}
    layers = stepping_pair(lambda: getattr(kmr, name)(4, **options), (3, 80, 2))
    x = np.zeros((3, 80, 2), "float32")
    x[:, -3:] = normal(np.random.default_rng(0), 3, 3, 2)
    plan = layers[0].plan(training=True)
    assert plan.path == ("native" if device == "native" else "step")
    (fast, exact) = (run(layer, x, training=True) for layer in layers)
    for one, other in zip(fast, exact):
        assert_close(one, other, 1e-5)


class GrowingLate(kmr.rules.LinearRule):
    """Its momentum is above 4 from step 4,000 on."""

    counts = True

    def coefficients(self, t):
        return t / 1000, 1.0


def test_a_momentum_that_grows_late_is_seen():
    assert kmr.RuleLSTM(4, rule=GrowingLate()).plan(training=True, features=2).path == "step"


OVERFLOWING = [(name, "native") for name in ("RMSPropLSTM", "AdamGRU", "AdamRNN", "MCRM-Adam")]
OVERFLOWING += [("RMSPropLSTM", "cpu"), ("RMSPropLSTM", "gpu"), ("AdamGRU", "gpu")]


@pytest.mark.parametrize(("name", "device"), OVERFLOWING, indirect=["device"])
def test_a_second_moment_that_overflows_is_infinite_from_then_on(name, device):
    """u is finite and its square is not: the drive is 0, results and gradients are finite."""
    shape = (3, TIME, 2)
    layers = pair_of(name, shape)
    x = normal(np.random.default_rng(0), *shape)
    # Of 1e20 some squares would be finite, and JAX takes such roots' products for 0.
    x[1, 9] = 1e30
    shapes = [(3, TIME, 4), *((3, size) for size in layers[0].state_size)]
    # Nothing goes back from an infinite m.
    cotangents = [np.ones(shapes[0], "float32"), *(np.zeros(s, "float32") for s in shapes[1:])]
    (fast, by_fast), (exact, by_step) = (
        results_and_gradients(layer, x, cotangents, training=True) for layer in layers
    )
    assert np.isinf(exact[-1][1]).any() and np.array_equal(
        *map(np.isinf, (fast[-1], exact[-1]))
    )
    for one, other in zip(fast[:-1], exact[:-1]):
        assert_close(one, other, 1e-4)
    for key, expected in by_step.items():
        assert_close(by_fast[key], expected, 1e-3)


@pytest.mark.parametrize("device", ["gpu"], indirect=True)
def test_a_second_moment_that_is_infinite_at_first_stays_so(device):
    """The powers of a small beta are 0, and 0 times infinity would be NaN."""
    layers = pair_of("RMSPropLSTM", (3, TIME, 2), beta=0.01)
    x = normal(np.random.default_rng(0), 3, TIME, 2)
    states = [np.zeros((3, size), "float32") for size in layers[0].state_size]
    states[-1][1, 3] = np.inf
    first = list(map(ops.convert_to_tensor, states))
    fast, exact = (run(layer, x, initial_state=first) for layer in layers)
    assert np.isinf(exact[-1]).any() and np.array_equal(*map(np.isinf, (fast[-1], exact[-1])))
    for one, other in zip(fast[:-1], exact[:-1]):
        assert_close(one, other, 1e-4)
