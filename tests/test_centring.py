"""The recipe's centring needs nothing but Keras: Normalization of variance 1, a bias."""

import keras
import numpy as np
import pytest
from harness import array
from keras import ops

RNG = np.random.default_rng(4)
X = RNG.normal(loc=[3.0, -40.0], scale=[0.2, 25.0], size=(6, 9, 2)).astype("float32")


def centring(x):
    mean = x.mean(axis=(0, 1))
    return keras.layers.Normalization(mean=mean, variance=np.ones_like(mean))


def test_inputs_lose_their_mean_and_keep_their_scale():
    centred = array(centring(X)(X))
    np.testing.assert_allclose(centred, X - X.mean(axis=(0, 1)), atol=1e-5)
    assert centred.std(axis=(0, 1)) == pytest.approx(X.std(axis=(0, 1)), rel=1e-5)


def test_masks_pass_through_a_file_too(tmp_path):
    layers = [keras.layers.Masking(99.0), centring(X), keras.layers.SimpleRNN(4)]
    model = keras.Sequential([keras.Input((None, 2)), *layers])
    padded = np.concatenate([X, np.full((6, 3, 2), 99.0, "float32")], axis=1)
    expected = array(layers[2](ops.convert_to_tensor(X - X.mean(axis=(0, 1)))))
    model.save(tmp_path / "model.keras")
    for candidate in (model, keras.saving.load_model(tmp_path / "model.keras")):
        np.testing.assert_allclose(array(candidate(padded)), expected, atol=1e-5)


def test_output_bias_starts_at_the_mean_of_the_targets(tmp_path):
    targets = RNG.normal(loc=[5.0, -2.0, 0.5], size=(6, 3))
    inputs = keras.Input((None, 2))
    outputs = keras.layers.Dense(3)(keras.layers.SimpleRNN(4)(centring(X)(inputs)))
    model = keras.Model(inputs, outputs)
    model.layers[-1].bias.assign(targets.mean(axis=0))
    model.save(tmp_path / "model.keras")
    model = keras.saving.load_model(tmp_path / "model.keras")
    at_the_mean = np.broadcast_to(X.mean(axis=(0, 1)), (1, 1, 2))  # h = 0 there
    predicted = array(model(at_the_mean.astype("float32")))[0]
    np.testing.assert_allclose(predicted, targets.mean(axis=0), atol=1e-5)
