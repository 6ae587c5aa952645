"""Training of the orthogonal family, beside optimizers in NumPy: bases, rates, resumption."""

import keras
import numpy as np
import pytest
import reference
from harness import BACKEND, array, assert_close, normal, weights_of

import keras_momentum_rnn as kmr

UNITS, UPDATES = 3, 7
RNG = np.random.default_rng(4)
X = normal(RNG, UPDATES, 4, 3, 2, scale=0.7)
Y = (X.sum(axis=2) @ normal(RNG, 2, UNITS, scale=0.5)).astype("float32")


class SGD:
    def __init__(self, rate):
        self.rate = rate

    def step(self, g):
        return self.rate * g


class RMSprop:
    def __init__(self, rate):
        self.rate, self.v = rate, 0

    def step(self, g):
        self.v = 0.9 * self.v + 0.1 * g * g
        return self.rate * g / np.sqrt(self.v + 1e-7)


class Adam:
    def __init__(self, rate):
        self.rate, self.m, self.v, self.t = rate, 0, 0, 0

    def step(self, g):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.999 * self.v + 0.001 * g * g
        rate = self.rate * np.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        return rate * self.m / (np.sqrt(self.v) + 1e-7)


def trained_in_numpy(layer, optimizer_of, rebase_every=None, penalty=0.0):
    """Train as the papers do: S has an optimizer of its own, and is zeroed between updates.

    Returns the weights, and Q.
    """
    cell = reference.DTRIV(layer.parametrization)
    weights = weights_of(layer)
    weights["skew"] = weights["skew"] * layer.recurrent_lr_multiplier
    optimizers = {name: optimizer_of(name) for name in weights if name != "base"}
    for update in range(UPDATES):
        if rebase_every and update and update % rebase_every == 0:
            weights["base"] = cell.orthogonal(weights)
            weights["skew"] = 0 * weights["skew"]

        def loss(moved, weights=weights, update=update):
            moved = {**weights, **moved}
            outputs, _ = reference.run(cell, "Identity", {}, moved, X[update])
            error = np.mean((outputs[:, -1] - Y[update]) ** 2)
            return error + penalty * np.sum(moved["skew"] ** 2)

        gradients = reference.gradients(loss, {name: weights[name] for name in optimizers})
        for name, optimizer in optimizers.items():
            weights[name] = weights[name] - optimizer.step(gradients[name])
    return weights, cell.orthogonal(weights)


def model_of(**options):
    keras.utils.set_random_seed(5)
    # A positive bias: no unit is silent, and every gradient is one.
    options = {"modrelu_bias_initializer": keras.initializers.Constant(0.5), **options}
    layer = kmr.DTRIV(UNITS, unroll=True, **options)
    return keras.Sequential([keras.Input((3, 2)), layer]), layer


def compile_for(model, optimizer):
    """XLA would take seconds for each model; JAX without it, too."""
    model.compile(optimizer, "mse", jit_compile=BACKEND == "jax")


def train(model, updates=range(UPDATES)):
    for update in updates:
        model.train_on_batch(X[update], Y[update])


def assert_trained_alike(layer, expected):
    weights, q = expected
    assert_close(array(layer.cell.recurrent_matrix()), q, tolerance=5e-5)
    for name in ("kernel", "modrelu_bias"):
        assert_close(array(getattr(layer.cell, name)), weights[name], tolerance=5e-5)


@pytest.mark.parametrize(
    "optimizer, multiplier, rebase_every",
    [(SGD, 0.3, 3), (RMSprop, 0.3, None), (RMSprop, 1.0, 1), (Adam, 0.3, 1)],
)
def test_one_optimizer_is_two_in_numpy(optimizer, multiplier, rebase_every):
    """Rates, moments and bases are those of the papers' code.

    S = m s would differ under SGD, by m, and under RMSprop and Adam, which would not see m.
    """
    start = "skew" if rebase_every == 3 else "base"
    model, layer = model_of(
        recurrent_lr_multiplier=multiplier, rebase_every=rebase_every, initial_rotation=start
    )
    rate = 0.05 if optimizer is SGD else 0.03
    expected = trained_in_numpy(
        layer,
        lambda name: optimizer(rate * multiplier if name == "skew" else rate),
        rebase_every,
    )
    compile_for(model, getattr(keras.optimizers, optimizer.__name__)(rate))
    before = array(layer.cell.recurrent_matrix())
    train(model)
    assert np.abs(array(layer.cell.recurrent_matrix()) - before).max() > 0.01
    assert np.abs(array(layer.cell.displacement())).max() > 1e-4
    assert_trained_alike(layer, expected)


@pytest.mark.skipif(
    not hasattr(keras.optimizers, "MultiOptimizer"), reason="this Keras has no MultiOptimizer"
)
def test_multi_optimizer_trains_the_skew_part_by_another_kind():
    model, layer = model_of(rebase_every=2)
    expected = trained_in_numpy(
        layer, lambda name: RMSprop(0.02) if name == "skew" else Adam(0.05), rebase_every=2
    )
    of_skew = keras.optimizers.RMSprop(0.02)
    choice = keras.optimizers.OptimizerMap(keras.optimizers.Adam(0.05), {".*/skew": of_skew})
    compile_for(model, keras.optimizers.MultiOptimizer(choice))
    train(model)
    assert_trained_alike(layer, expected)


def test_regulariser_penalises_the_skew_part_as_it_counts_from_the_base():
    model, layer = model_of(
        rebase_every=3,
        recurrent_lr_multiplier=0.5,
        recurrent_regularizer=keras.regularizers.L2(0.2),
    )
    expected = trained_in_numpy(
        layer,
        lambda name: SGD(0.03) if name == "skew" else SGD(0.06),
        rebase_every=3,
        penalty=0.2,
    )
    compile_for(model, keras.optimizers.SGD(0.06))
    train(model)
    assert_trained_alike(layer, expected)
    moved = array(layer.cell.displacement())
    assert np.abs(moved).max() > 1e-3
    np.testing.assert_allclose(array(layer.losses[0]), 0.2 * np.sum(moved**2), rtol=1e-4)


@pytest.mark.parametrize("parametrization", ["expm", "cayley"])
def test_a_new_base_leaves_the_function_as_it_is(parametrization):
    model, layer = model_of(parametrization=parametrization, rebase_every=4)
    compile_for(model, keras.optimizers.SGD(0.06))
    train(model, range(4))
    cell = layer.cell
    base, skew, q = (array(a) for a in (cell.base, cell.skew, cell.recurrent_matrix()))
    assert np.abs(array(cell.displacement())).max() > 0.01
    layer(X[0], training=True)  # the fifth call: four updates are over
    assert_close(array(cell.recurrent_matrix()), q, tolerance=1e-6)
    assert np.abs(array(cell.base) - base).max() > 0.01
    np.testing.assert_array_equal(array(cell.skew), skew)
    np.testing.assert_array_equal(array(cell.displacement()), 0 * skew)
    for _ in range(3):  # calls outside of training do not count
        layer(X[0])
    assert array(cell.calls_at_base) == 1


def test_a_frozen_layer_does_not_move_its_base():
    layer = kmr.DTRIV(UNITS, rebase_every=3)
    layer.build((None, 3, 2))
    layer.trainable = False
    before = [array(weight) for weight in layer.weights]
    layer(X[0], training=True)
    for one, other in zip(before, layer.weights, strict=True):
        np.testing.assert_array_equal(one, array(other))


def test_a_bare_cell_does_not_move_its_base():
    cell = kmr.MomentumDTRIV(UNITS, rebase_every=1).cell
    model = keras.Sequential([keras.layers.RNN(cell)])
    model.compile("sgd", "mse")
    model.fit(X[:1].reshape(4, 3, 2), Y[:1].reshape(4, UNITS), verbose=0)
    before = array(cell.base).copy()
    model.fit(X[:1].reshape(4, 3, 2), Y[:1].reshape(4, UNITS), epochs=3, verbose=0)
    np.testing.assert_array_equal(array(cell.base), before)
    assert np.abs(array(cell.skew)).max() > 0


def test_a_saved_model_goes_on_where_it_stopped(tmp_path):
    model, layer = model_of(rebase_every=3, recurrent_lr_multiplier=0.5)
    compile_for(model, keras.optimizers.Adam(0.05))
    train(model, range(5))
    model.save(tmp_path / "model.keras")
    train(model, range(5, UPDATES))
    loaded = keras.models.load_model(tmp_path / "model.keras")
    train(loaded, range(5, UPDATES))
    for old, new in zip(model.weights, loaded.weights, strict=True):
        assert_close(array(new), array(old), tolerance=1e-6)
    assert array(layer.cell.calls_at_base) == 1


@pytest.mark.skipif(BACKEND == "torch", reason="Keras runs PyTorch one step at a time")
@pytest.mark.parametrize("parametrization", ["expm", "cayley"])
def test_several_steps_in_one_compiled_execution(parametrization):
    ends = []
    several = {"steps_per_execution": 2, "jit_compile": True}
    for options in (several, {"jit_compile": BACKEND == "jax"}):
        model, layer = model_of(rebase_every=2, parametrization=parametrization)
        model.compile(keras.optimizers.SGD(0.06), "mse", **options)
        x, y = X[:6].reshape(24, 3, 2), Y[:6].reshape(24, UNITS)
        model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
        assert array(layer.cell.calls_at_base) == 2
        ends.append([array(w) for w in model.weights])
    for one, other in zip(*ends, strict=True):
        assert_close(one, other, tolerance=1e-5)


def test_a_layer_that_is_called_twice_in_an_update_counts_two():
    """A base that moves between the calls must not spoil the first one's gradient."""
    layer = kmr.DTRIV(UNITS, rebase_every=3)
    one, two = keras.Input((3, 2)), keras.Input((3, 2))
    model = keras.Model([one, two], keras.layers.subtract([layer(one), layer(two)]))
    compile_for(model, keras.optimizers.SGD(0.06))
    before = array(layer.cell.recurrent_matrix())
    for update in range(2):
        model.train_on_batch([X[update], X[update + 1]], Y[update])
    q = array(layer.cell.recurrent_matrix())
    assert np.abs(q - before).max() > 0.01
    assert_close(q.T @ q, np.eye(UNITS), tolerance=1e-6)
    assert array(layer.cell.calls_at_base) == 1  # the fourth call had a new base


@pytest.mark.parametrize(
    "updates, rebase_every, policy",
    [
        (100, 1, "float32"),
        (1000, 1, "float32"),
        (1000, 100, "mixed_bfloat16"),
        (1000, None, "mixed_float16"),
    ],
)
def test_orthogonal_after_many_updates(updates, rebase_every, policy):
    units = 16
    rng = np.random.default_rng(0)
    layer = kmr.MomentumDTRIV(units, rebase_every=rebase_every, dtype=policy, unroll=True)
    model = keras.Sequential([keras.Input((2, 3)), layer])
    compile_for(model, keras.optimizers.RMSprop(1e-2))
    before = array(layer.cell.recurrent_matrix())
    x, y = normal(rng, 2 * updates, 2, 3), normal(rng, 2 * updates, units)
    model.fit(x, y, batch_size=2, verbose=0)
    q = array(layer.cell.recurrent_matrix())
    assert q.dtype == np.float32
    assert np.abs(q - before).max() > 0.1
    assert np.abs(q.T.astype("float64") @ q - np.eye(units)).max() < 1e-5


@pytest.mark.parametrize("parametrization", ["expm", "cayley"])
def test_many_bases_at_full_size_stay_orthogonal(parametrization):
    cell = kmr.DTRIVCell(512, parametrization=parametrization)
    cell.build((None, 1))
    rng = np.random.default_rng(0)
    size = cell.skew.shape[0]
    for _ in range(3):
        cell.skew.assign(array(cell.skew) + normal(rng, size, scale=0.05))
        cell.rebase(1)
    q = array(cell.recurrent_matrix()).astype("float64")
    assert np.abs(q.T @ q - np.eye(512)).max() < 2e-6
