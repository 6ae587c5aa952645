"""HessianFreeModel is a Keras model like any other, and refuses what it cannot train."""

import keras
import numpy as np
import pytest
from harness import BACKEND, array, normal
from keras import ops

from keras_momentum_rnn import DTRIV, AdamLSTM, MomentumRNN
from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel, hessian_free_model

RNG = np.random.default_rng(0)
X = normal(RNG, 12, 5)
Y = normal(RNG, 12, 1)


def net(*layers, name=None):
    inputs = keras.Input((5,))
    outputs = inputs
    for layer in layers:
        outputs = layer(outputs)
    return HessianFreeModel(inputs, outputs, name=name)


def small(seed=0, **options):
    start = keras.initializers.GlorotUniform
    model = net(
        keras.layers.Dense(4, "tanh", kernel_initializer=start(seed)),
        keras.layers.Dense(1, kernel_initializer=start(seed + 1)),
    )
    model.compile(HessianFree(**{"cg_steps": 8, **options}), "mse")
    return model


def weights(model):
    return np.concatenate([array(w).ravel() for w in model.trainable_variables])


# As Keras has it


def test_fit_has_metrics_validation_callbacks_and_sample_weights():
    inputs = keras.Input((7, 3))
    h = keras.layers.Masking()(inputs)
    h = AdamLSTM(4, return_sequences=True)(h)
    classes = keras.layers.Dense(3, name="classes", kernel_regularizer="l2")(h)
    numbers = keras.layers.Dense(1, name="numbers")(h)
    model = HessianFreeModel(inputs, [classes, numbers])
    losses = [keras.losses.CategoricalCrossentropy(from_logits=True), "mse"]
    metrics = [["accuracy"], ["mae"]]
    model.compile(HessianFree(cg_steps=6), losses, metrics=metrics, loss_weights=[1.0, 0.5])
    rng = np.random.default_rng(1)
    x = normal(rng, 12, 7, 3)
    x[:6, 4:] = 0
    y = [np.eye(3, dtype="float32")[rng.integers(0, 3, (12, 7))], normal(rng, 12, 7, 1)]
    weight = rng.uniform(0.5, 1, (12, 7)).astype("float32")
    data = keras.utils.unpack_x_y_sample_weight((x, y))[:2]
    # Keras itself, before any update: the same loss and metrics.
    beside = keras.Model(inputs, [classes, numbers])
    beside.compile("sgd", losses, metrics=metrics, loss_weights=[1.0, 0.5])
    beside.optimizer.learning_rate = 0.0
    expected = beside.fit(x, y, 12, 1, verbose=0, sample_weight=[weight, weight]).history
    seen = []
    history = model.fit(
        *data,
        batch_size=12,
        epochs=4,
        verbose=0,
        sample_weight=[weight, weight],
        validation_data=data,
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=lambda e, logs: seen.append(e))],
    ).history
    assert seen == [0, 1, 2, 3]
    assert set(history) >= {"loss", "classes_loss", "numbers_loss", "classes_accuracy"}
    assert history["val_loss"][-1] < history["val_loss"][0]
    for name in ("loss", "classes_loss", "numbers_loss"):
        assert history[name][0] == pytest.approx(expected[name][0], rel=1e-5), name
    if BACKEND != "jax":  # there Keras's training loses the masks of metrics
        assert history["numbers_mae"][0] == pytest.approx(expected["numbers_mae"][0], rel=1e-5)


def test_inputs_and_outputs_by_name_through_a_layer_that_is_shared():
    inputs = {name: keras.Input((4, 2), name=name) for name in ("a", "b")}
    shared = MomentumRNN(3)
    h = keras.layers.Subtract()([shared(inputs["a"]), shared(inputs["b"])])
    outputs = {"p": keras.layers.Dense(1, name="p")(h), "q": keras.layers.Dense(3, name="q")(h)}
    model = HessianFreeModel(inputs, outputs)
    losses = {"p": "mse", "q": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}
    model.compile(HessianFree(cg_steps=5, curvature_fraction=0.5), losses, {"p": 1.0, "q": 0.5})
    rng = np.random.default_rng(3)
    x = {name: normal(rng, 12, 4, 2) for name in inputs}
    y, weight = {"p": Y, "q": np.arange(12) % 3}, {"p": np.ones(12), "q": np.linspace(0, 1, 12)}
    history = model.fit(x, y, 12, 4, verbose=0, sample_weight=weight).history
    assert history["loss"][-1] < history["loss"][0]
    assert {*model.predict(x, verbose=0)} == {"p", "q"}


def test_batches_that_do_not_divide_and_class_weights():
    model = net(keras.layers.Dense(3))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(HessianFree(cg_steps=3, curvature_fraction=0.5), loss)
    classes = np.arange(12) % 3
    model.fit(X, classes, 5, verbose=0, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
    assert int(model.optimizer.iterations) == 3
    assert np.isfinite(weights(model)).all()


def test_the_curvature_of_a_part_has_the_masks_of_that_part():
    x = keras.Input((5, 2))
    y = MomentumRNN(3, return_sequences=True)(keras.layers.Masking()(x))
    model = HessianFreeModel(x, keras.layers.TimeDistributed(keras.layers.Dense(1))(y))
    model.compile(HessianFree(cg_steps=3, curvature_fraction=0.5), "mse")
    data = normal(np.random.default_rng(0), 4, 5, 2)
    data[1, 3:] = 0
    assert np.isfinite(model.train_on_batch(data, np.ones((4, 5, 1))))


def test_the_loss_of_an_epoch_is_the_mean_over_its_samples():
    # A rate of almost nothing: the weights stay. Batches of 5, 5 and 2.
    model = small(learning_rate=1e-12, cg_steps=1, line_search=False)
    (loss,) = model.fit(X, Y, 5, verbose=0, shuffle=False).history["loss"]
    assert loss == pytest.approx(model.evaluate(X, Y, 12, verbose=0), rel=1e-5)


def test_sparse_gradients_of_an_embedding():
    inputs = keras.Input((2,), dtype="int32")
    h = keras.layers.Flatten()(keras.layers.Embedding(6, 2)(inputs))
    model = HessianFreeModel(inputs, keras.layers.Dense(1)(h))
    model.compile(HessianFree(cg_steps=10, damping=1e-3), "mse")
    tokens = np.array([[0, 1], [2, 3], [1, 0]])
    before = array(model.layers[1].embeddings).copy()
    model.fit(tokens, np.ones((3, 1)), 3, 5, verbose=0)
    change = np.abs(array(model.layers[1].embeddings) - before).max(axis=1)
    assert (change[:4] > 1e-4).all() and (change[4:] == 0).all()


def test_constraints_hold():
    model = net(keras.layers.Dense(1, kernel_constraint="non_neg"))
    model.compile(HessianFree(damping=1e-3), "mse")
    model.train_on_batch(X, -X.sum(axis=1, keepdims=True))
    assert array(model.layers[-1].kernel).min() == 0


def test_on_a_gpu_recurrent_layers_run_their_steps(monkeypatch):
    """Its kernels have no second derivatives."""
    monkeypatch.setattr(hessian_free_model, "current_device", lambda: "gpu")
    layer = AdamLSTM(4)
    model = net(keras.layers.Reshape((5, 1)), layer, keras.layers.Dense(1))
    model.compile(HessianFree(), "mse")
    assert layer.use_cudnn is False


def test_an_output_without_a_loss_or_a_weight():
    inputs = keras.Input((5,))
    model = HessianFreeModel(
        inputs, [keras.layers.Dense(1)(inputs), keras.layers.Rescaling(2.0)(inputs)]
    )
    model.compile(HessianFree(cg_steps=10, damping=1e-4), ["mse", None])
    losses = [np.max(model.train_on_batch(X, [Y, X])) for _ in range(3)]
    expected = np.linalg.lstsq(np.c_[X, np.ones(12)], Y, rcond=None)[1] / 12
    assert losses[-1] == pytest.approx(float(expected[0]), rel=1e-3)


@pytest.mark.skipif(BACKEND == "torch", reason="Keras's PyTorch has neither")
def test_compiled_with_several_steps_at_once():
    # Without decisions, which rounding might turn.
    options = {"cg_steps": 4, "damping_factor": None, "tolerance": None}
    options |= {"backtracking": False, "line_search": False}
    model, other = small(**options), small(**options)
    model.compile(HessianFree(**options), "mse", jit_compile=True, steps_per_execution=2)
    for m in (model, other):
        m.fit(X, Y, 6, 2, verbose=0, shuffle=False)
    np.testing.assert_allclose(weights(model), weights(other), atol=1e-4)


# Random numbers and states


class Noted(keras.layers.Layer):
    """Its input, of which each evaluation is noted, and a count of training calls."""

    def build(self, shape):
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, name="n")

    def call(self, x, training=False):
        if training:
            self.calls.assign(self.calls + 1)
        return x


@pytest.mark.parametrize("seed", [None, 1])
def test_dropout_is_the_same_in_every_evaluation_of_an_update(seed):
    model = net(
        keras.layers.Dense(16, "tanh"), keras.layers.Dropout(0.5, seed=seed),
        keras.layers.Dense(1), Noted(),
    )  # fmt: skip
    model.compile(HessianFree(cg_steps=4, decay=0.0), "mse")
    quadratic = model.quadratic(X, Y)
    values = [float(ops.stop_gradient(quadratic.objective(quadratic.theta))) for _ in range(3)]
    assert values == [pytest.approx(float(quadratic.value), rel=1e-6)] * 3
    # The slope of the objective is the gradient, so that they see the same units.
    v = normal(np.random.default_rng(2), quadratic.theta.shape[0])
    step = 1e-2 * ops.convert_to_tensor(v)
    ends = [quadratic.objective(quadratic.theta + s * step) for s in (1, -1)]
    slope = (float(ends[0]) - float(ends[1])) / 2e-2
    assert slope == pytest.approx(float(ops.sum(quadratic.gradient * v)), rel=2e-2)
    # So is the curvature that of those units: in the kernel of the last layer the objective is
    # quadratic, so that second differences are exact.
    for unit in range(0, 16, 3):
        u = np.zeros(quadratic.theta.shape[0], "float32")
        u[5 * 16 + 16 + unit] = 1
        u = ops.convert_to_tensor(u)
        ends = [float(quadratic.objective(quadratic.theta + s * u)) for s in (1, -1)]
        second = sum(ends) - 2 * float(quadratic.value)
        assert float(ops.sum(u * quadratic.product(u))) == pytest.approx(second, abs=1e-4)


def test_dropout_draws_anew_for_the_next_update():
    model = net(
        keras.layers.Dense(32, "tanh"), keras.layers.Dropout(0.5), keras.layers.Dense(1)
    )
    # A rate of almost nothing: the weights stay, and what differs is the dropout.
    model.compile(HessianFree(1e-12, cg_steps=1, line_search=False), "mse")
    losses = [float(np.max(model.train_on_batch(X, Y))) for _ in range(3)]
    assert len({round(loss, 4) for loss in losses}) == 3


def test_states_of_layers_move_as_in_one_training_step():
    def batch_normalised():
        inputs = keras.Input((5,))
        h = keras.layers.BatchNormalization(momentum=0.7)(inputs)
        return inputs, keras.layers.Dense(1)(Noted()(h))

    plain, model = keras.Model(*batch_normalised()), HessianFreeModel(*batch_normalised())
    plain.compile(keras.optimizers.SGD(0.0), "mse")
    model.compile(HessianFree(cg_steps=5), "mse")
    plain.train_on_batch(X, Y)
    model.train_on_batch(X, Y)
    for one, other in zip(model.non_trainable_variables, plain.non_trainable_variables):
        np.testing.assert_allclose(array(one), array(other), atol=1e-6)
    assert float(model.layers[2].calls) == 1


def test_states_of_layers_do_not_become_nan():
    model = net(keras.layers.BatchNormalization(), keras.layers.Dense(1))
    model.compile(HessianFree(cg_steps=5), "mse")
    model.train_on_batch(np.full_like(X, np.nan), Y)
    assert all(np.isfinite(array(v)).all() for v in model.variables)


# Saving and resuming


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_an_interrupted_training_equals_an_uninterrupted_one(tmp_path, dropout):
    def new():
        model = net(
            keras.layers.Dense(
                6, "tanh", kernel_initializer=keras.initializers.GlorotUniform(2)
            ),
            keras.layers.Dropout(dropout, seed=1),
            keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(3)),
            name="resumed",
        )
        decay = keras.optimizers.schedules.PolynomialDecay(0.5, 6, 0.95)
        model.compile(HessianFree(cg_steps=7, decay=decay, damping=0.1), "mse")
        return model

    whole, part = new(), new()
    whole.fit(X, Y, 12, 6, verbose=0, shuffle=False)
    part.fit(X, Y, 12, 3, verbose=0, shuffle=False)
    part.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is HessianFreeModel and type(again.optimizer) is HessianFree
    if dropout:  # Keras's files do not hold the states of seeds
        for variable, value in zip(again.variables, part.variables):
            variable.assign(array(value))
    again.fit(X, Y, 12, 6, initial_epoch=3, verbose=0, shuffle=False)
    np.testing.assert_array_equal(weights(again), weights(whole))
    for one, other in zip(again.optimizer.variables, whole.optimizer.variables):
        np.testing.assert_array_equal(array(one), array(other))


# float64


@pytest.fixture
def float64():
    """Losses are in Keras's float, whatever the layers are in."""
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx("float32")


@pytest.mark.skipif(
    BACKEND != "tensorflow",
    reason="on JAX float64 needs a flag, and on PyTorch Keras multiplies in float32",
)
def test_float64_is_exact(float64):
    keras.config.set_dtype_policy("float64")
    model = net(keras.layers.Dense(1, use_bias=False))
    # Without searches, which cannot tell values apart that differ by rounding.
    options = {"tolerance": None, "damping": 0.0, "damping_factor": None}
    options |= {"backtracking": False, "line_search": False}
    model.compile(HessianFree(cg_steps=40, **options), "mse")
    x, y = RNG.normal(size=(12, 5)), RNG.normal(size=(12, 1))
    for _ in range(3):
        model.train_on_batch(x, y)
    solution = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(array(model.trainable_variables[0]), solution, atol=1e-9)


# Refusals


def test_another_optimizer_is_refused():
    model = net(keras.layers.Dense(1))
    with pytest.raises(
        ValueError, match=r"compiled with a `HessianFree`.* Received: optimizer="
    ):
        model.compile("adam", "mse")


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_is_refused(policy):
    model = net(keras.layers.Dense(2), keras.layers.Dense(1, dtype=policy, name="half"))
    with pytest.raises(ValueError, match=r"half precision.* Received: a layer 'half'"):
        model.compile(HessianFree(), "mse")
    keras.config.set_dtype_policy(policy)
    model = net(keras.layers.Dense(1))
    with pytest.raises(ValueError, match="half precision"):
        model.compile(HessianFree(), "mse")


class Holder(keras.layers.Layer):
    def __init__(self, layer):
        super().__init__()
        self.held = [layer]

    def build(self, shape):
        self.held[0].build(shape)

    def call(self, x):
        return self.held[0](x)


@pytest.mark.parametrize("around", [lambda layer: layer, Holder], ids=["itself", "held"])
def test_stateful_layers_are_refused(around):
    inputs = keras.Input((4, 2), batch_size=3)
    hidden = around(keras.layers.SimpleRNN(2, stateful=True, name="carries"))(inputs)
    model = HessianFreeModel(inputs, keras.layers.Dense(1)(hidden))
    with pytest.raises(ValueError, match="Received: the stateful layer 'carries'"):
        model.compile(HessianFree(), "mse")


def test_a_multiple_of_the_learning_rate_is_refused():
    inputs = keras.Input((4, 2))
    model = HessianFreeModel(inputs, DTRIV(2, recurrent_lr_multiplier=0.3)(inputs))
    with pytest.raises(ValueError, match=r"Received: .* recurrent_lr_multiplier=0\.3"):
        model.compile(HessianFree(), "mse")


def test_an_optimizer_of_other_variables_is_refused():
    model = small()
    optimizer, loss = model.optimizer, model.loss
    model.compile(optimizer, loss)  # of the same, it goes on
    model.layers[1].trainable = False
    with pytest.raises(
        ValueError, match=r"keeps to the variables.* Received: .* of shapes \[\(4, 1\)"
    ):
        model.compile(optimizer, loss)
    with pytest.raises(ValueError, match="keeps to the variables"):
        small().compile(optimizer, loss)  # of equal shapes


def test_quantized_layers_are_refused():
    model = net(keras.layers.Dense(1))
    model.quantize("float8")
    with pytest.raises(ValueError, match=r"does not train quantized layers.* Received: dense"):
        model.compile(HessianFree(), "mse")


def test_layers_frozen_after_compile_are_refused_until_it_is_compiled_again():
    model = small()
    model.layers[1].trainable = False
    with pytest.raises(ValueError, match=r"compile with a new one.* of shapes \[\(4, 1"):
        model.fit(X, Y, verbose=0)
    model.compile(HessianFree(cg_steps=2), "mse")
    before = model.layers[1].get_weights()[0]
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(model.layers[1].get_weights()[0], before)


def test_a_fraction_of_a_sum_is_refused():
    model = net(keras.layers.Dense(1))
    loss = keras.losses.MeanSquaredError(reduction="sum")
    with pytest.raises(ValueError, match=r"curvature_fraction=0\.5 with the loss"):
        model.compile(HessianFree(curvature_fraction=0.5), loss)
    model.compile(HessianFree(), loss)


def test_nothing_to_train_is_refused():
    with pytest.raises(ValueError, match="needs weights to train"):
        net(keras.layers.Rescaling(2.0)).compile(HessianFree(), "mse")


@pytest.mark.skipif(BACKEND != "torch", reason="XLA compiles it")
def test_compiling_on_pytorch_is_refused():
    with pytest.raises(ValueError, match="Received: jit_compile=True"):
        net(keras.layers.Dense(1)).compile(HessianFree(), "mse", jit_compile=True)
