"""`scale_free=True`: the gain of the input drops out, wherever the layer goes."""

import keras
import numpy as np
import pytest
from harness import array

import keras_momentum_rnn as kmr
from keras_momentum_rnn import convert

LAYERS = (kmr.AdamLSTM, kmr.RMSPropLSTM)
# So small that the inputs of these tests do not feel it at any gain.
EPSILON = 1e-20
X = np.random.default_rng(0).normal(size=(3, 20, 4)).astype("float32")


def built(layer_class, **options):
    """Return a layer with random biases, forget gates of 1 included."""
    layer = layer_class(5, epsilon=EPSILON, seed=0, **options)
    layer.build(X.shape)
    rng = np.random.default_rng(1)
    for weight in layer.weights:
        if weight.name in ("bias", "recurrent_bias"):
            weight.assign(rng.normal(1, 1, weight.shape))
    return layer


@pytest.mark.parametrize("gain", [1 / 4, 4.0, 100.0])
@pytest.mark.parametrize("layer_class", LAYERS)
def test_the_gain_of_the_input_changes_nothing(layer_class, gain):
    layer = built(layer_class, scale_free=True, return_sequences=True)
    expected = array(layer(X))
    np.testing.assert_allclose(array(layer(gain * X)), expected, atol=1e-5)
    # With the bias inside the rule it does.
    inside = built(layer_class, return_sequences=True)
    assert np.abs(array(inside(gain * X)) - array(inside(X))).max() > 0.05


@pytest.mark.parametrize("gain", [1 / 4, 4.0])
@pytest.mark.parametrize("layer_class", LAYERS)
def test_drives_far_above_the_default_epsilon_do_not_feel_it(layer_class, gain):
    layer = layer_class(5, scale_free=True, seed=0)
    np.testing.assert_allclose(array(layer(gain * X)), array(layer(X)), atol=1e-3)


@pytest.mark.parametrize("layer_class", LAYERS)
def test_it_is_the_layer_with_the_two_flags(layer_class):
    layer = built(layer_class, scale_free=True)
    flags = built(layer_class, use_bias=False, use_recurrent_bias=True)
    assert not layer.use_bias and layer.use_recurrent_bias and not flags.scale_free
    assert [w.name for w in layer.weights] == [w.name for w in flags.weights]
    flags.set_weights(layer.get_weights())
    np.testing.assert_array_equal(array(layer(X)), array(flags(X)))


@pytest.mark.parametrize("given", [{"use_bias": True}, {"use_recurrent_bias": False}])
def test_flags_that_say_otherwise_are_refused(given):
    (name,) = given
    with pytest.raises(ValueError, match=f"`{name}` must be .*scale_free.*Received: {name}="):
        kmr.RMSPropLSTM(5, scale_free=True, **given)


@pytest.mark.parametrize("layer_class", LAYERS)
def test_use_bias_by_its_place(layer_class):
    layer = layer_class(5, "tanh", "sigmoid", False, scale_free=True)
    assert not layer.use_bias and layer.use_recurrent_bias
    with pytest.raises(ValueError, match=r"`use_bias` must be False .*Received: use_bias=True"):
        layer_class(5, "tanh", "sigmoid", True, scale_free=True)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("layer_class", LAYERS)
def test_a_trained_lstm_keeps_its_bias(layer_class, use_bias):
    plain = keras.layers.LSTM(5, use_bias=use_bias)
    plain.build(X.shape)
    ours = convert.from_keras(plain, layer_class, scale_free=True)
    assert ours.scale_free and not ours.use_bias
    expected = array(plain.cell.bias) if use_bias else np.zeros(20)
    np.testing.assert_array_equal(array(ours.cell.recurrent_bias), expected)
    np.testing.assert_array_equal(array(ours.cell.kernel), array(plain.cell.kernel))
    with pytest.warns(UserWarning, match="differ by up to"):
        back = convert.to_keras(ours)
    np.testing.assert_array_equal(array(back.cell.bias), expected)
