"""Hessian-free updates: exact products, limits that have a closed form, and safeguards."""

import inspect
import itertools

import keras
import numpy as np
import pytest
from harness import array, normal
from keras import ops

from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel, MomentumSGD
from keras_momentum_rnn.optimizers.hessian_free_model import Quadratic


def linear_model(optimizer, features=5):
    """Return a linear model with random weights."""
    inputs = keras.Input((features,))
    outputs = keras.layers.Dense(1, use_bias=False)(inputs)
    model = HessianFreeModel(inputs, outputs)
    model.set_weights([normal(np.random.default_rng(3), features, 1)])
    model.compile(optimizer, "mse")
    return model


def regression():
    """Return inputs, targets, and the matrix and vector of their squared error."""
    rng = np.random.default_rng(4)
    x, y = normal(rng, 64, 5), normal(rng, 64, 1)
    wide = x.astype("float64")
    return x, y, wide.T @ wide / 32, wide.T @ y[:, 0] / 32


def plain(**options):
    """Return an optimizer that does nothing but CG."""
    settings = {"tolerance": None, "damping": 0.0, "damping_factor": None}
    settings |= {"backtracking": False, "line_search": False}
    return HessianFree(**{**settings, **options})


# Limits in closed form


def test_one_step_of_cg_is_nesterovs_momentum():
    """With the learning rate r'r / r'Ar of each update."""
    x, y, a, b = regression()
    model = linear_model(plain(cg_steps=1, decay=0.9))
    nag = MomentumSGD(1.0, 0.9, nesterov=True)
    w = array(model.trainable_variables[0]).astype("float64")[:, 0]
    variable = keras.Variable(w.astype("float32"))
    v = np.zeros(5)
    for _ in range(10):
        model.train_on_batch(x, y)
        r = b - a @ (w + 0.9 * v)
        rate = r @ r / (r @ a @ r)
        v = 0.9 * v + rate * r
        w = w + v
        np.testing.assert_allclose(array(model.trainable_variables[0])[:, 0], w, atol=3e-6)
        nag.learning_rate = rate
        nag.resume_variable_values([variable])
        slope = a @ array(variable) - b
        nag.apply([ops.convert_to_tensor(slope.astype("float32"))], [variable])
        nag.finalize_variable_values([variable])
        np.testing.assert_allclose(array(variable), w, atol=3e-6)


@pytest.mark.parametrize("options", [{}, {"tolerance": None}, {"decay": 0.0}])
def test_a_quadratic_is_solved_in_two_updates(options):
    x, y, a, b = regression()
    model = linear_model(HessianFree(**{"damping": 1e-4, "cg_steps": 20, **options}))
    model.train_on_batch(x, y)
    model.train_on_batch(x, y)
    solution = np.linalg.solve(a, b)
    np.testing.assert_allclose(array(model.trainable_variables[0])[:, 0], solution, atol=2e-5)


class Rosenbrock(keras.Layer):
    """Outputs whose squared error to (1, 0) is (1 - a)^2 + 100 (b - a^2)^2."""

    def build(self, shape):
        self.w = self.add_weight(shape=(2,), initializer="zeros", name="w")

    def call(self, x):
        w = ops.convert_to_tensor(self.w)
        return ops.expand_dims(ops.stack([w[0], 10 * (w[1] - w[0] ** 2)]), 0) + 0 * x


def rosenbrock_model(optimizer):
    inputs = keras.Input((2,))
    model = HessianFreeModel(inputs, Rosenbrock()(inputs))
    model.set_weights([np.array([-1.2, 1.0])])
    model.compile(optimizer, lambda y, p: ops.sum((y - p) ** 2, axis=-1))
    return model


def test_rosenbrock_is_minimised_in_under_40_updates():
    model = rosenbrock_model(HessianFree(cg_steps=5, decay=0.0))
    x, y = np.zeros((1, 2), "float32"), np.array([[1, 0]], "float32")
    losses = [float(np.max(model.train_on_batch(x, y))) for _ in range(40)]
    assert losses[0] == pytest.approx(24.2, rel=1e-5)
    assert min(losses) < 1e-8
    assert all(b <= a for a, b in itertools.pairwise(losses))  # the line search sees to it


def test_the_learning_rate_is_the_first_that_is_tried():
    x, y, a, b = regression()
    start = None
    for line_search in (False, True):
        model = linear_model(plain(cg_steps=20, line_search=line_search, learning_rate=0.25))
        start = array(model.trainable_variables[0])[:, 0].copy()
        model.train_on_batch(x, y)
        end = array(model.trainable_variables[0])[:, 0]
        np.testing.assert_allclose(end, 0.75 * start + 0.25 * np.linalg.solve(a, b), atol=1e-5)


# The damping


def test_the_damping_falls_where_the_model_is_good_and_is_bounded():
    x, y, _, _ = regression()
    model = linear_model(HessianFree(damping=1.0, cg_steps=2))
    dampings = []
    for _ in range(3):
        model.train_on_batch(x, y)
        dampings.append(float(model.optimizer.damping))
    np.testing.assert_allclose(dampings, (2 / 3) ** np.arange(1, 4), rtol=1e-5)
    model.optimizer.damping = 1.2e-8
    model.train_on_batch(x, y)
    assert float(model.optimizer.damping) == pytest.approx(1e-8)


def test_the_damping_rises_where_the_model_is_bad():
    """Near a saddle of Rosenbrock's kind, the full step overshoots."""
    model = rosenbrock_model(HessianFree(cg_steps=5, damping=1e-3, backtracking=False))
    model.set_weights([np.array([-1.2, 1.44])])
    x, y = np.zeros((1, 2), "float32"), np.array([[1, 0]], "float32")
    model.train_on_batch(x, y)
    assert float(model.optimizer.damping) == pytest.approx(1.5e-3)


@pytest.mark.parametrize(
    ("share", "factor"), [(0.2, 1.5), (0.3, 1.0), (0.7, 1.0), (0.8, 2 / 3)]
)
def test_the_damping_changes_by_the_share_of_what_was_promised(share, factor):
    """CG steps by 1, for which the model promises 1/2."""
    optimizer, w = HessianFree(damping=1e-3), keras.Variable([0.0])
    optimizer.build([w])
    quadratic = Quadratic(
        theta=ops.zeros(1),
        value=ops.convert_to_tensor(1.0),
        gradient=-ops.ones(1),
        product=lambda v: v,
        objective=lambda w: 1.0 - share / 2 * w[0],
    )
    optimizer.update(quadratic)
    assert float(optimizer.damping) == pytest.approx(1e-3 * factor)


def test_the_ratio_is_that_of_the_undamped_model():
    """With damping 100 the damped model promises half as much of a step as small as that."""
    x, y, _, _ = regression()
    model = linear_model(HessianFree(damping=100.0, cg_steps=20, line_search=False))
    model.train_on_batch(x, y)
    assert float(model.optimizer.damping) == pytest.approx(200 / 3)


def test_the_damping_stays_where_rounding_hides_what_the_model_promises():
    """At a minimum it would rise with every update."""
    x, y, _, _ = regression()
    model = linear_model(HessianFree(cg_steps=20))
    for _ in range(10):
        model.train_on_batch(x, y)
    damping = float(model.optimizer.damping)
    assert damping < 0.5
    for _ in range(10):
        model.train_on_batch(x, y)
    assert float(model.optimizer.damping) <= damping


def test_the_damping_stays_at_an_objective_of_exactly_zero():
    """The last direction still starts CG there, which cannot promise anything."""
    x, y = np.eye(2, dtype="float32"), np.float32([[0.5], [-2]])
    model = linear_model(HessianFree(cg_steps=10, decay=1.0), features=2)
    dampings = []
    for _ in range(20):
        damping, loss = float(model.optimizer.damping), model.evaluate(x, y, verbose=0)
        model.train_on_batch(x, y)
        if loss == 0:
            dampings += [damping, float(model.optimizer.damping)]
    assert len(dampings) >= 10 and len(set(dampings)) == 1


def test_the_damping_stays_where_no_sample_counts():
    x, y, _, _ = regression()
    model = linear_model(HessianFree(cg_steps=5))
    model.train_on_batch(x, y)
    weights, damping = model.get_weights()[0], float(model.optimizer.damping)
    model.train_on_batch(x, y, sample_weight=np.zeros(len(x)))
    np.testing.assert_allclose(model.get_weights()[0], weights, atol=1e-6)
    assert float(model.optimizer.damping) == pytest.approx(damping)


@pytest.mark.parametrize("line_search", [False, True])
def test_an_update_that_is_not_finite_leaves_the_weights_alone(line_search):
    x, y, _, _ = regression()
    model = linear_model(HessianFree(line_search=line_search, cg_steps=3))
    model.train_on_batch(x, y)
    before, damping = model.get_weights()[0], float(model.optimizer.damping)
    spoiled = x.copy()
    spoiled[0, 0] = np.nan
    model.train_on_batch(spoiled, y)
    np.testing.assert_array_equal(model.get_weights()[0], before)
    assert float(model.optimizer.damping) == pytest.approx(1.5 * damping)
    assert all(np.isfinite(array(v)).all() for v in model.optimizer.variables)
    loss = float(np.max(model.train_on_batch(x, y)))
    assert np.isfinite(loss) and float(np.max(model.test_on_batch(x, y))) < loss
    model.optimizer.damping = 9e7
    model.train_on_batch(spoiled, y)
    assert float(model.optimizer.damping) == pytest.approx(1e8)


@pytest.mark.parametrize("line_search", [False, True])
def test_a_gradient_that_is_not_finite_leaves_the_weights_alone(line_search):
    """The objective is finite, and so is what CG starts from."""
    nan = ops.convert_to_tensor([float("nan"), 0.0])
    optimizer, new = updated(
        HessianFree(line_search=line_search), nan, lambda v: v, lambda w: 1.0 + 0 * w[0], [1, 1]
    )
    assert new.tolist() == [0, 0] and array(optimizer._directions[0]).tolist() == [0, 0]


# One update of a quadratic


def updated(optimizer, gradient, product, objective, direction=None):
    """Return an optimizer after an update from weights of 0, and the new weights."""
    gradient = ops.convert_to_tensor(gradient)
    theta = ops.zeros_like(gradient)
    optimizer.build([keras.Variable(array(theta))])
    if direction is not None:
        optimizer._directions[0].assign(direction)
    value = ops.convert_to_tensor(objective(theta))
    new = optimizer.update(Quadratic(theta, value, gradient, product, objective))
    return optimizer, array(new)


def test_the_next_update_starts_from_the_last_iterate():
    """Of which backtracking took an earlier one."""
    a, b = np.diag([1.0, 2, 5, 9]).astype("float32"), np.float32([1, -2, 3, 0.5])
    optimizer = HessianFree(damping=0.0, cg_steps=4, tolerance=None, line_search=False)
    matrix = ops.convert_to_tensor(a)
    optimizer, new = updated(
        optimizer, -b, lambda v: ops.matmul(matrix, v), lambda w: 0.01 * ops.sum(w * w)
    )
    solution = np.linalg.solve(a, b)
    np.testing.assert_allclose(array(optimizer._directions[0]), solution, rtol=1e-4)
    assert np.abs(new - solution).max() > 0.1


def test_the_line_search_begins_at_the_learning_rate():
    """w^2 / 2 - w falls at rate 1 and rises at rate 4."""
    optimizer = HessianFree(4.0, damping=0.0, damping_factor=None, tolerance=None, cg_steps=1)
    _, new = updated(optimizer, [-1.0], lambda v: v, lambda w: 0.5 * w[0] ** 2 - w[0])
    assert new == pytest.approx(4 * 0.8**4)  # the first rate below 2


def test_an_objective_that_becomes_infinite_is_not_stepped_to():
    options = {"line_search": False, "backtracking": False, "damping": 0.0}
    optimizer, new = updated(
        HessianFree(**options),
        [-1.0],
        lambda v: v,
        lambda w: ops.where(w[0] > 0, float("inf"), 0.0),
    )
    assert new == 0 and array(optimizer._directions[0]) == 0


# As an object


def test_config_has_every_argument_and_rebuilds_the_optimizer():
    schedule = keras.optimizers.schedules.PolynomialDecay(0.5, 10, 0.9)
    rate = keras.optimizers.schedules.ExponentialDecay(1.0, 10, 0.5)
    optimizer = HessianFree(rate, 7, None, schedule, 2.0, 0.5, 0.5, False, False)
    config = optimizer.get_config()
    own = set(inspect.signature(HessianFree.__init__).parameters) - {"self"}
    assert own == set(config)
    before = {**config}
    again = HessianFree.from_config(config)
    assert config == before and again.get_config() == config
    by_name = keras.optimizers.deserialize(keras.optimizers.serialize(HessianFree(decay=0.5)))
    assert type(by_name) is HessianFree and by_name.get_config()["decay"] == 0.5
    optimizer.iterations.assign(5)
    assert float(optimizer.decay) == pytest.approx(0.7)
    with pytest.raises(TypeError, match=r"where it is a schedule.*Received: decay=0.5"):
        optimizer.decay = 0.5


@pytest.mark.parametrize("scheduled", [False, True], ids=["set", "scheduled"])
def test_decay_and_learning_rate_change_from_update_to_update(scheduled):
    """Set between two calls of fit, or by schedules that count the updates."""
    x, y, a, b = regression()
    decays, rates = [0.9, 0.3, 0.0], [1.0, 0.5, 0.25]
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay
    options = {"decay": 0.9, "learning_rate": 1.0}
    if scheduled:
        options = {"decay": schedule([0, 1], decays), "learning_rate": schedule([0, 1], rates)}
    model = linear_model(plain(cg_steps=1, **options))
    w, v = array(model.trainable_variables[0])[:, 0].astype("float64"), np.zeros(5)
    for decay, rate in zip(decays, rates):
        if not scheduled:
            model.optimizer.decay, model.optimizer.learning_rate = decay, rate
        model.fit(x, y, batch_size=len(x), verbose=0)
        r = b - a @ (w + decay * v)
        v = decay * v + r @ r / (r @ a @ r) * r
        w = w + rate * v
        np.testing.assert_allclose(array(model.trainable_variables[0])[:, 0], w, atol=1e-5)
    assert int(model.optimizer.total_cg_steps) == 3
    if not scheduled:
        assert model.optimizer.get_config()["decay"] == 0.0


BAD = {
    "learning_rate": [0, -1.0, "fast"],
    "cg_steps": [0, 2.5, None],
    "tolerance": [0, -1e-3],
    "decay": [-0.1, 1.1, "0.9", None],
    "damping": [-1.0, float("nan")],
    "damping_factor": [0, 1, 1.5],
    "curvature_fraction": [0, 1.5, None],
    "backtracking": [1, None],
    "line_search": [0, "yes"],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, some in BAD.items() for v in some])
def test_bad_arguments_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"`\w*{name.partition('_')[2] or name}`") as error:
        HessianFree(**{name: value})
    assert f"{name}={value}" in str(error.value).replace("'", "")


def test_a_plain_model_is_refused():
    inputs = keras.Input((5,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    model.compile(HessianFree(), "mse")
    x, y, _, _ = regression()
    with pytest.raises(TypeError, match=r"compile a `HessianFreeModel\(inputs, outputs\)`"):
        model.fit(x, y, verbose=0)
