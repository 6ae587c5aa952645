"""Layers without a rule: Keras's own, on the paths of this library.

test_against_keras.py draws their options.
"""

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, normal, randomise, results_and_gradients, run
from keras import ops
from masks import MASKS

import keras_momentum_rnn as kmr
from keras_momentum_rnn.layers import plain
from keras_momentum_rnn.paths import registry
from keras_momentum_rnn.paths.devices import current_device
from keras_momentum_rnn.paths.native import runtime

BATCH, TIME, FEATURES, UNITS = 3, 6, 3, 4
SHAPE = (BATCH, TIME, FEATURES)
CLASSES = [(kmr.LSTM, keras.layers.LSTM), (kmr.GRU, keras.layers.GRU)]
CLASSES += [(kmr.SimpleRNN, keras.layers.SimpleRNN)]
each_class = pytest.mark.parametrize("ours, theirs", CLASSES, ids=lambda cls: cls.__name__)
lstm = pytest.mark.parametrize("ours, theirs", CLASSES[:1], ids=lambda cls: cls.__name__)
needs_native = pytest.mark.skipif(
    runtime.absence() is not None, reason=f"no native kernel: {runtime.absence()}"
)


def pair(ours, theirs, shape=SHAPE, **options):
    """Return our layer and Keras's with the same random weights."""
    layers = [cls(UNITS, seed=7, **options) for cls in (ours, theirs)]
    for layer in layers:
        layer.build(shape)
    randomise(layers[1], np.random.default_rng(0))
    layers[0].set_weights(layers[1].get_weights())
    return layers


def states(layer, seed=1):
    rng = np.random.default_rng(seed)
    return [normal(rng, BATCH, size) for size in layer.state_size]


def prepare(path, monkeypatch):
    """Make layers take a path where the backend has it."""
    if path == "native" and runtime.absence():
        pytest.skip(runtime.absence())
    if path == "fused":
        # As of a layer too wide for the native kernel.
        monkeypatch.setattr(registry, "CACHED_WEIGHTS", 0)
        monkeypatch.setattr(registry, "NATIVE_WEIGHTS", 0)


def paths_taken(monkeypatch):
    """Return a list that gets the path of each call that does not run as in Keras."""
    taken, run_path = [], plain.run
    monkeypatch.setattr(
        plain, "run", lambda plan, *rest: taken.append(plan.path) or run_path(plan, *rest)
    )
    return taken


# What the call is like: options of the layer, and its mask.
CALLS = {
    "plain": ({}, None),
    "backwards": ({"go_backwards": True, "return_sequences": False}, None),
    "dropout": ({"dropout": 0.4}, None),
    "recurrent-dropout": ({"recurrent_dropout": 0.4}, "holes"),
    "both-dropouts": ({"dropout": 0.3, "recurrent_dropout": 0.4}, None),
    "no-bias": ({"use_bias": False}, "right"),
    "holes": ({"go_backwards": True}, "holes"),
    "zeros": ({"zero_output_for_mask": True}, "dead_row"),
    "last-of-dead-row": ({"return_sequences": False}, "dead_row"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("path", ["native", "fused"])
@each_class
def test_values_and_gradients_are_those_of_keras(ours, theirs, path, call, monkeypatch):
    prepare(path, monkeypatch)
    options, mask = CALLS[call]
    if path == "fused" and "recurrent_dropout" in options:
        pytest.skip("no fused kernel has recurrent dropout")
    layers = pair(ours, theirs, **{"return_sequences": True, "return_state": True, **options})
    rng, first = np.random.default_rng(2), states(layers[0])
    x = normal(rng, *SHAPE)
    outputs = (BATCH, TIME, UNITS) if layers[0].return_sequences else (BATCH, UNITS)
    cotangents = [normal(rng, *outputs), *states(layers[0], seed=3)]
    mask = MASKS[mask](BATCH, TIME) if mask else None
    taken = paths_taken(monkeypatch)
    (results, by_all), (expected, expected_by_all) = (
        results_and_gradients(layer, x, cotangents, first, mask, training=True)
        for layer in layers
    )
    assert set(taken) == ({path} if path == "native" or BACKEND == "torch" else set())
    for one, other in zip(results, expected, strict=True):
        assert_close(one, other, 1e-5)
    assert by_all.keys() == expected_by_all.keys()
    for name, gradient in expected_by_all.items():
        assert_close(by_all[name], gradient, 1e-5)


class Doubled(keras.layers.LSTMCell):
    def call(self, inputs, states, training=False):
        return super().call(2 * inputs, states, training=training)


def with_own_cell(layer):
    layer.cell.__class__ = Doubled


def with_own_activation(layer):
    layer.cell.activation = keras.activations.softsign


LSTM, GRU = CLASSES[:2]
# What runs as in Keras: our class and Keras's, options, and the reason.
AS_IN_KERAS = {
    "activation": (LSTM, {"activation": "softsign"}, "tanh and sigmoid alone"),
    "unroll": (LSTM, {"unroll": True}, "unroll=True"),
    "stepped": (LSTM, {"use_cudnn": False}, "use_cudnn=False"),
    "half": (LSTM, {"dtype": "mixed_bfloat16"}, "computes in bfloat16"),
    "reset-before": (GRU, {"reset_after": False}, "has no native kernel"),
}


@pytest.mark.parametrize(
    "classes, options, reason", AS_IN_KERAS.values(), ids=list(AS_IN_KERAS)
)
def test_what_no_path_serves_runs_as_in_keras(classes, options, reason, monkeypatch):
    layers, taken = pair(*classes, **options), paths_taken(monkeypatch)
    plan = layers[0].plan(training=True)
    assert plan.path == "keras" and reason in plan.reason and "no rule" not in plan.reason
    x = normal(np.random.default_rng(1), *SHAPE)
    one, other = (run(layer, x, training=True)[0] for layer in layers)
    np.testing.assert_array_equal(one, other)
    assert not taken


@pytest.mark.parametrize("change", [with_own_activation, with_own_cell])
@lstm
def test_a_cell_that_changes_runs_as_in_keras(ours, theirs, change):
    layers = pair(ours, theirs)
    x = normal(np.random.default_rng(1), *SHAPE)
    # Without a mask, Keras's own LSTM does not call its cell on PyTorch.
    call = {"training": True, "mask": MASKS["holes"](BATCH, TIME)}
    before = run(layers[0], x, **call)[0]  # by a plan that must not serve what follows
    for layer in layers:
        change(layer)
    one, other = (run(layer, x, **call)[0] for layer in layers)
    np.testing.assert_array_equal(one, other)
    assert np.abs(one - before).max() > 1e-2


@lstm
def test_calls_that_do_not_fit_are_left_to_keras(ours, theirs, monkeypatch):
    """The kernel would read beyond the memory of what is too small."""
    layers, taken = pair(ours, theirs), paths_taken(monkeypatch)
    x = normal(np.random.default_rng(1), *SHAPE)
    if BACKEND == "torch":  # the loops of the others refuse it
        one_for_all = [state[:1] for state in states(layers[0])]
        one, other = (run(layer, x, initial_state=one_for_all)[0] for layer in layers)
        np.testing.assert_array_equal(one, other)
    for wrong in (x[..., :2], x[:, :0]):
        with pytest.raises(Exception):  # noqa: B017
            layers[0](wrong)
    assert not taken


@pytest.mark.skipif(current_device() == "gpu", reason="Keras has two answers there")
@each_class
def test_a_dropout_rate_of_one_does_as_in_keras(ours, theirs):
    one, other = pair(ours, theirs, dropout=1.0)
    x = normal(np.random.default_rng(1), *SHAPE)
    np.testing.assert_array_equal(*(run(layer, x, training=True)[0] for layer in (one, other)))


@lstm
def test_training_may_be_a_bool_of_numpy(ours, theirs):
    layer = pair(ours, theirs, dropout=0.4)[0]
    x = normal(np.random.default_rng(1), *SHAPE)
    for training in (np.bool_(True), np.bool_(False), ops.convert_to_tensor(True)):
        layer(x, training=training)
    assert len(layer._plans) == 2


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
@needs_native
@lstm
def test_numbers_that_torch_keeps_negated(ours, theirs):
    import torch

    x = torch.tensor(normal(np.random.default_rng(1), *SHAPE))
    negated = torch.complex(x, -x).conj().imag
    assert negated.is_neg()
    layer = pair(ours, theirs)[0]
    np.testing.assert_array_equal(*(array(layer(values)) for values in (x, negated)))


@pytest.mark.skipif(BACKEND != "torch", reason="Keras's own loops stay on the other backends")
@pytest.mark.parametrize("path", ["native", "fused"])
@lstm
def test_what_is_masked_may_be_nan(ours, theirs, path, monkeypatch):
    prepare(path, monkeypatch)
    layers, mask = pair(ours, theirs), MASKS["holes"](BATCH, TIME)
    x = normal(np.random.default_rng(1), *SHAPE)
    expected = run(layers[1], x, mask=mask)[0]
    x[~mask] = np.nan
    assert_close(run(layers[0], x, mask=mask, training=True)[0], expected, 1e-6)


@pytest.mark.skipif(BACKEND != "torch", reason="elsewhere Keras's loop serves every dtype")
@pytest.mark.parametrize("ours, theirs", CLASSES[:2], ids=lambda cls: cls.__name__)
def test_float64_is_exact(ours, theirs):
    layers = pair(ours, theirs, dtype="float64", return_sequences=True)
    assert layers[0].plan().path == "fused"
    # Under a mask, and in SimpleRNN, Keras rounds the outputs to float32.
    x = np.random.default_rng(1).normal(size=SHAPE)
    one, other = (array(layer(x)) for layer in layers)
    assert one.dtype == np.float64
    np.testing.assert_allclose(one, other, atol=1e-14)


@each_class
def test_a_stateful_layer_trains_on_from_its_states(ours, theirs):
    """Its states are written in place, and the way back needs what they were before."""
    rng, histories = np.random.default_rng(1), []
    x, y = normal(rng, 4 * BATCH, TIME, FEATURES), normal(rng, 4 * BATCH, UNITS)
    layers = pair(ours, theirs, stateful=True)
    if BACKEND == "torch":  # where Keras's own cannot be trained without it
        layers[1].use_cudnn = False
    for layer in layers:
        model = keras.Sequential([keras.Input(batch_shape=SHAPE), layer])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        fitted = [
            model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0).history["loss"][0]
            for _ in range(2)
        ]
        kept = array(layer.states[0])
        layer.reset_state()
        histories.append([*fitted, *kept.ravel(), np.abs(array(layer.states[0])).max()])
    assert_close(*histories, tolerance=1e-5)


@each_class
def test_arguments_config_and_names_are_those_of_keras(ours, theirs):
    options = {"dropout": 0.1, "kernel_regularizer": "l2", "name": "memory", "seed": 3}
    layers = [cls(UNITS, **options) for cls in (ours, theirs)]
    assert isinstance(layers[0], theirs)
    configs = [layer.get_config() for layer in layers]
    assert configs[0] == configs[1]
    assert ours.from_config(configs[1]).get_config() == configs[0]
    for layer in layers:
        layer.build(SHAPE)
    paths = [[weight.path for weight in layer.weights] for layer in layers]
    assert paths[0] == paths[1]


def model_of(cls):
    model = keras.Sequential(
        [
            keras.Input((None, FEATURES)),
            keras.layers.Bidirectional(cls(UNITS, return_sequences=True)),
            cls(UNITS, dropout=0.1),
            keras.layers.Dense(2),
        ]
    )
    randomise(model, np.random.default_rng(4))
    return model


@each_class
def test_files(ours, theirs, tmp_path):
    """Keras's weights load into ours and back; a saved model of ours has our layers."""
    x = normal(np.random.default_rng(1), *SHAPE)
    model = model_of(theirs)
    expected = model.predict(x, verbose=0)
    for name, cls in (("one", ours), ("two", theirs)):
        path = tmp_path / f"{name}.weights.h5"
        model.save_weights(path)
        model = keras.models.clone_model(model_of(cls))
        model.load_weights(path)
        assert_close(model.predict(x, verbose=0), expected, 1e-6)
    model = model_of(ours)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.layers[0].backward_layer) is type(loaded.layers[1]) is ours
    assert_close(loaded.predict(x, verbose=0), expected, 1e-6)


@needs_native
@pytest.mark.parametrize("jit_compile", ["auto"] + [True] * (BACKEND != "torch"))
@lstm
def test_fit_takes_the_kernel(ours, theirs, jit_compile, monkeypatch):
    """XLA on TensorFlow cannot call it, so there Keras compiles the model without XLA."""
    rng, losses, taken = np.random.default_rng(1), [], paths_taken(monkeypatch)
    x, y = normal(rng, 8, TIME, FEATURES), normal(rng, 8, 2)
    for cls in (ours, theirs):
        model = model_of(cls)
        model.layers[1].cell.dropout = 0.0
        model.compile("sgd", "mse", jit_compile=jit_compile)
        history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
        losses.append(history["loss"])
    # PyTorch finds out shapes on a device without numbers, where the kernel does not run.
    assert taken[-1] == "native" and set(taken) <= {"native", "fused"}
    assert_close(*losses, tolerance=1e-5)


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
@each_class
def test_inputs_of_inference_mode_train_a_layer(ours, theirs):
    """As those of a frozen model; Keras's SimpleRNN refuses them."""
    import torch

    x = normal(np.random.default_rng(1), *SHAPE)
    with torch.inference_mode():
        frozen = torch.tensor(x) * 1
    layers = pair(ours, theirs)
    for layer, inputs in zip(layers, (frozen, torch.tensor(x))):
        layer(inputs, training=True).sum().backward()
    for one, other in zip(*(layer.trainable_weights for layer in layers)):
        assert_close(array(one.value.grad), array(other.value.grad), 1e-5)


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
@each_class
def test_function_transforms_and_compilers_of_torch(ours, theirs):
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    layers = pair(ours, theirs)
    x = torch.tensor(normal(np.random.default_rng(1), 2, *SHAPE))
    one, other = (torch.func.vmap(layer)(x) for layer in layers)
    assert_close(array(one), array(other), 1e-6)
    # Where nothing of the layer is mapped, and where its dropout alone is.
    one, other = (torch.func.vmap(lambda e, f=f: f(x[0]) * e)(torch.ones(2)) for f in layers)
    assert_close(array(one), array(other), 1e-6)
    dropping = ours(UNITS, dropout=0.5)

    def drawn(e):
        return dropping(x[0], training=True) * e

    samples = torch.func.vmap(drawn, randomness="different")(torch.ones(2))
    assert not torch.equal(*samples)
    masks = torch.tensor(MASKS["holes"](2 * BATCH, TIME)).reshape(2, BATCH, TIME)
    for actual, mask in zip(torch.func.vmap(lambda m: layers[0](x[0], mask=m))(masks), masks):
        assert_close(array(actual), array(layers[1](x[0], mask=mask)), 1e-6)
    assert layers[0].plan(transformed=True).path == "keras"
    for mode in ("real", "symbolic"):  # not with the result of a kernel as a constant
        options = {"tracing_mode": mode, "_allow_non_fake_inputs": True}
        with torch.no_grad():
            traced = make_fx(layers[0], **options)(x[0])
            assert_close(array(traced(x[1])), array(layers[1](x[1])), 1e-6)
    layers = pair(ours, theirs)  # never called before
    compiled = torch.compile(layers[0], backend="eager", fullgraph=True)
    assert_close(array(compiled(x[0])), array(layers[1](x[0])), 1e-6)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="variables of TensorFlow")
def test_an_input_may_be_a_variable_and_has_a_gradient():
    import tensorflow as tf

    x = normal(np.random.default_rng(1), *SHAPE)
    variable = tf.Variable(x)
    dropping = kmr.LSTM(UNITS, dropout=1e-9, recurrent_dropout=1e-9)
    for layer in (kmr.MomentumLSTM(UNITS, use_cudnn=False), dropping):
        outputs, gradients = [], []
        for given in (tf.constant(x), variable):
            with tf.GradientTape() as tape:
                tape.watch(given)
                outputs.append(layer(given, training=True))
            gradients.append(tape.gradient(outputs[-1], given))
        assert_close(*map(array, outputs), 1e-6)
        assert_close(*map(array, gradients), 1e-6)
