"""`.keras` files: round trips, fresh processes, other backends, files of earlier releases."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from cases import CASES, EVERY_RULE_AND_CELL
from harness import array, assert_close, normal, randomise

import keras_momentum_rnn as kmr

pytestmark = pytest.mark.keras_nightly

GOLDEN = Path(__file__).parent / "golden"
X = normal(np.random.default_rng(8), 2, 5, 3)

LOAD = """
import sys
import numpy as np
import keras
before = set(sys.modules)
import keras_momentum_rnn
model = keras.models.load_model(sys.argv[1])
np.save(sys.argv[3], model.predict(np.load(sys.argv[2]), verbose=0))
from keras_momentum_rnn import *
"""


def model_of(*layers):
    model = keras.Sequential([keras.Input((None, 3)), *layers, keras.layers.Dense(2)])
    randomise(model, np.random.default_rng(9))
    return model


def all_layers():
    """One model that holds every rule and every cell, some wrapped."""
    layers = []
    for i, case in enumerate(EVERY_RULE_AND_CELL):
        layer = case.layer(3, return_sequences=True, dropout=0.1)
        layers.append(layer if i % 4 else keras.layers.Bidirectional(layer))
    return model_of(*layers, keras.layers.RNN(CASES[0].layer(3).cell))


def predict_elsewhere(path, folder, backend, x=X):
    """Load and predict in a fresh process that imports the package and nothing more."""
    np.save(folder / "x.npy", x)
    subprocess.run(
        [sys.executable, "-c", LOAD, path, folder / "x.npy", folder / "y.npy"],
        check=True,
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
    )
    return np.load(folder / "y.npy")


def recurrent_layers(model):
    """The first layer of a model, or both directions of it."""
    layer = model.layers[0]
    if isinstance(layer, keras.layers.Bidirectional):
        return [layer.forward_layer, layer.backward_layer]
    return [layer]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("wrapped", [False, True], ids=["bare", "bidirectional"])
def test_round_trip(case, wrapped, tmp_path):
    options = {
        "return_sequences": True,
        "use_recurrent_bias": True,
        "recurrent_dropout": 0.2,
        "kernel_regularizer": "l2",
        "seed": 3,
        "use_cudnn": False,
    }
    layer = case.layer(4, **case.takes(options))
    model = model_of(keras.layers.Bidirectional(layer) if wrapped else layer)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for old, new in zip(recurrent_layers(model), recurrent_layers(loaded)):
        assert new.get_config() == old.get_config()
    assert_close(loaded.predict(X, verbose=0), model.predict(X, verbose=0), tolerance=1e-7)


def test_weights_file_round_trip(tmp_path):
    model = all_layers()
    model.save_weights(tmp_path / "model.weights.h5")
    expected = model.predict(X, verbose=0)
    for weight in model.trainable_weights:
        weight.assign(np.zeros(weight.shape))
    model.load_weights(tmp_path / "model.weights.h5")
    assert_close(model.predict(X, verbose=0), expected, tolerance=1e-7)


def test_the_next_backend_predicts_the_same_in_a_fresh_process(tmp_path):
    """Each writes a file, and each reads one: the next of those that are installed."""
    backends = list(filter(importlib.util.find_spec, ("tensorflow", "jax", "torch")))
    if len(backends) == 1:
        pytest.skip("needs a second backend")
    following = dict(zip(backends, [*backends[1:], backends[0]]))[keras.config.backend()]
    model = all_layers()
    model.save(tmp_path / "model.keras")
    expected = model.predict(X, verbose=0)
    assert np.ptp(expected) > 0.1
    actual = predict_elsewhere(tmp_path / "model.keras", tmp_path, following)
    assert_close(actual, expected, tolerance=1e-5)


@pytest.mark.parametrize("backend, package", [("numpy", "jax"), ("openvino", "openvino")])
def test_a_backend_that_only_predicts_predicts_the_same(backend, package, tmp_path):
    if not importlib.util.find_spec(package):
        pytest.skip(f"Keras's backend {backend} needs {package}")
    masking = [keras.Input((None, 3)), keras.layers.Masking()]
    model = keras.Sequential([*masking, *all_layers().layers])
    x = np.concatenate([X, X], axis=1)
    x[0, 6:], x[1, :2] = 0, 0
    model.save(tmp_path / "model.keras")
    expected = model.predict(x, verbose=0)
    assert np.ptp(expected) > 0.1
    actual = predict_elsewhere(tmp_path / "model.keras", tmp_path, backend, x)
    # On processors with products in bfloat16 OpenVINO takes them.
    assert_close(actual, expected, tolerance=1e-2 if backend == "openvino" else 1e-5)


@pytest.mark.skipif(keras.config.backend() != "tensorflow", reason="files of TensorFlow")
def test_checkpoints_and_saved_models_of_tensorflow(tmp_path):
    import tensorflow as tf

    rule = kmr.rules.LearnedMomentum(per="unit")
    model = keras.Sequential([keras.Input(batch_shape=(2, 5, 3)), kmr.RuleLSTM(4, rule=rule)])
    stateful = kmr.AdamLSTM(4, stateful=True)
    model = keras.Sequential([*model.layers, keras.layers.RepeatVector(3), stateful])
    x = normal(np.random.default_rng(0), 2, 5, 3)
    model(x)
    variables = [*model.trainable_variables, *stateful.states]
    kept = [array(variable) for variable in variables]
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "checkpoint"))
    expected = array(model(x))
    for variable in variables:
        variable.assign(variable + 7)
    tf.train.Checkpoint(model=model).restore(path)
    for variable, value in zip(variables, kept, strict=True):
        np.testing.assert_array_equal(array(variable), value)
    tf.saved_model.save(model, str(tmp_path / "saved"))
    call = tf.saved_model.load(str(tmp_path / "saved")).signatures["serving_default"]
    (actual,) = call(tf.constant(x)).values()
    assert_close(array(actual), expected, tolerance=1e-6)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.keras")), ids=lambda path: path.stem)
def test_file_of_an_earlier_release_loads(path):
    model = keras.models.load_model(path)
    with np.load(path.with_suffix(".predictions.npz")) as file:
        assert_close(model.predict(file["x"], verbose=0), file["y"], tolerance=1e-5)


def test_names_are_registered_under_the_package():
    for case in CASES:
        for cls in (case.layer_class, type(case.layer().cell)):
            name = keras.saving.get_registered_name(cls)
            assert name == f"keras_momentum_rnn>{cls.__name__}"
