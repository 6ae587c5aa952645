"""MomentumSGD follows its equations while momentum changes, and however it is interrupted."""

import inspect

import keras
import numpy as np
import pytest
from harness import BACKEND, array
from keras import ops

from keras_momentum_rnn.optimizers import MomentumSGD
from keras_momentum_rnn.optimizers.schedules import NesterovMomentum, SteppedMomentum

BOTH_FORMS = pytest.mark.parametrize("nesterov", [False, True], ids=["classical", "nesterov"])
RNG = np.random.default_rng(3)
TABLE = np.array([0.3, 0.9, 0.0, 0.6, 0.99, 0.2, 0.2, 0.95, 0.5, 0.8, 0.1, 0.7, 0.4])
X, Y = RNG.normal(size=(8, 3)).astype("float32"), RNG.normal(size=(8, 1)).astype("float32")
START = RNG.normal(size=(3, 1)).astype("float32")


@keras.saving.register_keras_serializable(package="tests")
class Listed(keras.optimizers.schedules.LearningRateSchedule):
    """Momentum from the table."""

    def __call__(self, step):
        return ops.take(ops.convert_to_tensor(TABLE, dtype="float32"), step)

    def get_config(self):
        return {}


def gradient(w):
    """Of the mean squared error of the linear model."""
    return 2 / len(X) * X.T.astype("float64") @ (X @ w - Y)


def run_paper(gradient, w, rate, momentum, nesterov, updates, v=None):
    """Equations 1 to 4 as printed: return all w, and the last v."""
    w, v = w.astype("float64"), np.zeros(w.shape) if v is None else v
    path = [w]
    for t in range(updates):
        mu = momentum(t)
        v = mu * v - rate * gradient(w + mu * v if nesterov else w)
        w = w + v
        path.append(w)
    return np.array(path), v


def linear_model(optimizer, **compile_options):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, use_bias=False)])
    model.layers[0].kernel.assign(START)
    model.compile(optimizer, "mse", **compile_options)
    return model


def fit(model, updates, callbacks=(), **options):
    model.fit(X, Y, len(X), updates, verbose=0, callbacks=list(callbacks), **options)
    return array(model.layers[0].kernel)


def at_start(model):
    """Return the callback that the docstring shows."""
    return keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: model.optimizer.resume_variable_values(
            model.trainable_variables
        )
    )


# The equations


def slope_of_quadratic(dimensions, seed):
    """Return the gradient of a random convex quadratic."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dimensions, dimensions))
    a, b = root @ root.T / dimensions + 0.1 * np.eye(dimensions), rng.normal(size=dimensions)
    return lambda w: a @ w + b


def step(optimizer, gradient, variable):
    """Take one update with the gradient at the value of the variable."""
    slope = gradient(array(variable).astype("float64"))
    optimizer.apply([ops.convert_to_tensor(slope, dtype="float32")], [variable])


def follow(optimizer, gradient, w, updates):
    """Return the w of every update, the gradients being taken where the variable is."""
    variable = keras.Variable(w.astype("float32"))
    path = [array(variable).copy()]
    for _ in range(updates):
        optimizer.resume_variable_values([variable])
        step(optimizer, gradient, variable)
        optimizer.finalize_variable_values([variable])
        path.append(array(variable).copy())
    return np.array(path)


@BOTH_FORMS
@pytest.mark.parametrize("momentum", [0.0, 0.9, Listed(), SteppedMomentum(0.97, period=2)])
def test_equations(nesterov, momentum):
    slope = slope_of_quadratic(5, seed=1)
    start = np.random.default_rng(2).normal(size=5) / 4
    path = follow(MomentumSGD(0.1, momentum, nesterov), slope, start, 12)
    mu = (lambda t: float(momentum(t))) if callable(momentum) else (lambda t: momentum)
    np.testing.assert_allclose(
        path, run_paper(slope, path[0], 0.1, mu, nesterov, 12)[0], atol=1e-6
    )


@BOTH_FORMS
def test_variables_hold_the_points_of_the_gradients(nesterov):
    """Without finalisation: y_t = w_t + mu_t v_t where `nesterov`, w_t where not."""
    slope = slope_of_quadratic(4, seed=5)
    start = np.float32(np.random.default_rng(6).normal(size=4))
    variable, optimizer = keras.Variable(start), MomentumSGD(0.1, Listed(), nesterov)
    for t in range(1, len(TABLE)):
        step(optimizer, slope, variable)
        path, v = run_paper(slope, start, 0.1, TABLE.__getitem__, nesterov, t)
        point = path[-1] + (TABLE[t] * v if nesterov else 0)
        np.testing.assert_allclose(array(variable), point, atol=2e-6)


# In compiled training


class Change(keras.callbacks.Callback):
    """Set the momentum of the table before every update."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def on_train_batch_begin(self, batch, logs=None):
        self.model.optimizer.momentum = TABLE[self.count]
        self.count += 1


@BOTH_FORMS
def test_a_callback_changes_the_momentum_of_a_compiled_step(nesterov):
    model = linear_model(MomentumSGD(0.05, 0.5, nesterov), jit_compile=BACKEND != "torch")
    w = fit(model, len(TABLE), [Change()])
    # The look-ahead of update t was made with the momentum that was set before update t - 1.
    mu = (lambda t: TABLE[t - 1] if t else 0.5) if nesterov else TABLE.__getitem__
    path, _ = run_paper(gradient, START, 0.05, mu, nesterov, len(TABLE))
    np.testing.assert_allclose(w, path[-1], atol=1e-6)
    assert float(model.optimizer.momentum) == pytest.approx(TABLE[-1])


@BOTH_FORMS
def test_training_goes_on_from_w(nesterov, tmp_path):
    """Two calls of fit, with a file between them, are one; a third without resuming is not."""
    model = linear_model(MomentumSGD(0.05, Listed(), nesterov))
    w = fit(model, 4)
    path, v = run_paper(gradient, START, 0.05, TABLE.__getitem__, nesterov, 7)
    np.testing.assert_allclose(w, path[4], atol=1e-6)
    model.optimizer.finalize_variable_values(model.trainable_variables)
    np.testing.assert_array_equal(array(model.layers[0].kernel), w)
    model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(fit(model, 3, [at_start(model)]), path[7], atol=1e-6)

    v_next = TABLE[7] * v - 0.05 * gradient(path[7])  # the gradient at w itself
    rest, _ = run_paper(
        gradient, path[7] + v_next, 0.05, lambda t: TABLE[8 + t], nesterov, 1, v_next
    )
    np.testing.assert_allclose(fit(model, 2), rest[-1], atol=1e-6)


@BOTH_FORMS
def test_a_checkpoint_of_a_running_fit_goes_on_exactly(nesterov, tmp_path):
    path = tmp_path / "{epoch}.keras"
    model = linear_model(MomentumSGD(0.05, NesterovMomentum(), nesterov))
    w = fit(model, 6, [keras.callbacks.ModelCheckpoint(path)])
    again = keras.saving.load_model(tmp_path / "3.keras")
    resumed = fit(again, 6, [at_start(again)], initial_epoch=3)  # y already: nothing moves
    np.testing.assert_allclose(resumed, w, rtol=0, atol=1e-7)


OPTIONS = {
    "clipnorm": {"clipnorm": 0.3},
    "clipvalue": {"clipvalue": 0.2},
    "global_clipnorm": {"global_clipnorm": 0.3},
    "decay": {"weight_decay": 0.2},
    "average": {"use_ema": True, "ema_momentum": 0.7},
    "everything": {"clipnorm": 0.4, "weight_decay": 0.1, "use_ema": True, "ema_momentum": 0.6},
}


@BOTH_FORMS
@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_options_of_keras(nesterov, options):
    """Clipped gradients enter the velocity; decay does not; y is what decays and averages."""
    variable, optimizer = keras.Variable(START), MomentumSGD(0.1, Listed(), nesterov, **options)
    updates, rate = 6, 0.1
    for _ in range(updates):
        step(optimizer, gradient, variable)
    optimizer.finalize_variable_values([variable])
    y, v, average = START.astype("float64"), np.zeros((3, 1)), None
    for t in range(updates):
        g, norm = gradient(y), options.get("clipnorm", options.get("global_clipnorm"))
        if norm:
            g = g * min(1, norm / np.linalg.norm(g))
        if "clipvalue" in options:
            g = np.clip(g, -0.2, 0.2)
        y = y - rate * options.get("weight_decay", 0) * y
        v = TABLE[t] * v - rate * g
        y = y - rate * g + TABLE[t + 1] * v if nesterov else y + v
        decay = options.get("ema_momentum", 0) if t else 0
        average = y if average is None else decay * average + (1 - decay) * y
    end = average if "use_ema" in options else y - TABLE[updates] * v if nesterov else y
    np.testing.assert_allclose(array(variable), end, atol=1e-6)


@BOTH_FORMS
def test_momentum_counts_updates_where_gradients_are_accumulated(nesterov):
    model = linear_model(MomentumSGD(0.1, Listed(), nesterov, gradient_accumulation_steps=2))
    w = fit(model, 8)
    path, _ = run_paper(gradient, START, 0.1, TABLE.__getitem__, nesterov, 4)
    np.testing.assert_allclose(w, path[4], atol=1e-6)
    model.fit(X, Y, len(X), 1, verbose=0)  # half an update: w stays
    np.testing.assert_allclose(array(model.layers[0].kernel), path[4], atol=1e-6)


@BOTH_FORMS
def test_loss_scaling_in_half_precision(nesterov):
    """An update whose scaled gradients overflow is skipped, and the others are exact."""
    keras.config.set_dtype_policy("mixed_float16")
    optimizer = MomentumSGD(0.05, Listed(), nesterov)
    scaled = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0**18)
    w = fit(linear_model(scaled), 8)
    updates = int(optimizer.iterations)
    assert 2 < updates < 8
    path, _ = run_paper(gradient, START, 0.05, TABLE.__getitem__, nesterov, updates)
    np.testing.assert_allclose(w, path[-1], atol=4e-3)
    assert np.abs(path[-1] - path[-2]).max() > 0.02


@BOTH_FORMS
def test_training_goes_on_from_an_average(nesterov):
    model = linear_model(MomentumSGD(0.05, 0.5, nesterov, use_ema=True, ema_momentum=0.6))
    fit(model, 3)
    before = array(model.layers[0].kernel).copy()
    assert not np.array_equal(fit(model, 3), before)


def test_only_its_own_variables_land():
    own, other = keras.Variable(START), keras.Variable(START)
    optimizer = MomentumSGD(0.1, 0.9, nesterov=True)
    optimizer.apply([ops.ones(START.shape)], [own])
    optimizer.finalize_variable_values([other, own])
    np.testing.assert_array_equal(array(other), START)
    np.testing.assert_allclose(array(own), START - 0.1, atol=1e-6)


def test_scales_of_quantized_layers_have_no_velocity():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.quantize("float8")
    model.compile(MomentumSGD(0.05, 0.5, nesterov=True), "mse")
    assert np.isfinite(model.fit(X, Y, verbose=0).history["loss"]).all()


def test_constraints_hold_where_training_ends():
    w = keras.Variable([0.6, 0.8], name="w")
    w.constraint = keras.constraints.UnitNorm()
    optimizer = MomentumSGD(1.0, 0.9, nesterov=True)
    for slope in ([-1.0, 0.4], [1.5, 0.0]):
        optimizer.apply([ops.convert_to_tensor(slope)], [w])
    optimizer.finalize_variable_values([w])  # takes the look-ahead away
    np.testing.assert_allclose(np.linalg.norm(array(w)), 1, atol=1e-6)


@BOTH_FORMS
def test_rows_of_an_embedding_that_no_input_names_keep_their_velocity(nesterov):
    """Sparse gradients, as TensorFlow has them, act as dense ones."""
    inputs = keras.Input((1,), dtype="int32")
    table = keras.layers.Embedding(3, 1, embeddings_initializer="ones")
    model = keras.Model(inputs, keras.layers.Flatten()(table(inputs)))
    model.compile(MomentumSGD(0.1, 0.5, nesterov), "mse")
    first, second = np.array([[0]]), np.array([[1]])
    model.fit(first, np.zeros((1, 1)), verbose=0)
    model.fit(second, np.zeros((1, 1)), verbose=0)
    # v = -0.1 * 2 for row 0, and half as much again.
    np.testing.assert_allclose(array(table.embeddings)[:, 0], [0.7, 0.8, 1.0], atol=1e-6)


# As an object


def test_config_has_every_argument_and_rebuilds_the_optimizer():
    optimizer = MomentumSGD(0.2, Listed(), True, weight_decay=0.1, clipnorm=2.0, name="nag")
    config = optimizer.get_config()
    own = set(inspect.signature(MomentumSGD.__init__).parameters) - {"self", "options"}
    assert own < set(config)
    before = {**config}
    again = MomentumSGD.from_config(config)
    assert config == before and isinstance(again._momentum, Listed)
    assert again.get_config() == config
    by_name = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(by_name) is MomentumSGD and by_name.get_config() == config


def test_config_has_the_momentum_that_was_set():
    optimizer = MomentumSGD(momentum=0.25)
    optimizer.momentum = 0.75
    assert MomentumSGD.from_config(optimizer.get_config()).get_config()["momentum"] == 0.75


@pytest.mark.parametrize("momentum", [-0.1, 1, 1.5, float("nan"), "0.9", None, True])
def test_bad_momentum_is_refused(momentum):
    with pytest.raises(ValueError, match=r"`momentum` must be a number in \[0, 1\)\. Received"):
        MomentumSGD(0.1, momentum)
    optimizer = MomentumSGD(0.1, 0.5)
    with pytest.raises(ValueError, match="Received: momentum="):
        optimizer.momentum = momentum
    assert float(optimizer.momentum) == 0.5


def test_a_momentum_that_float32_rounds_to_1_is_refused():
    with pytest.raises(ValueError, match="when rounded to float32"):
        MomentumSGD(0.1, 1 - 2**-25)
    optimizer = MomentumSGD(0.1, np.nextafter(1 - 2**-25, 0))
    assert MomentumSGD.from_config(optimizer.get_config()).momentum < 1


def test_bad_form_is_refused():
    with pytest.raises(ValueError, match=r"`nesterov` must be one of .* Received: nesterov=1"):
        MomentumSGD(0.1, 0.5, nesterov=1)


def test_the_momentum_of_a_schedule_is_not_set_but_read():
    optimizer = MomentumSGD(0.1, Listed())
    optimizer.iterations.assign(4)
    assert float(optimizer.momentum) == pytest.approx(TABLE[4])
    with pytest.raises(TypeError, match=r"where it is a schedule.*Received: momentum=0.5"):
        optimizer.momentum = 0.5
