"""What a HessianFreeModel refuses to train."""

import keras
import numpy as np
import pytest
from test_hessian_free_model import X, Y, net, small

from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel


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


def test_stateful_layers_are_refused():
    inputs = keras.Input((4, 2), batch_size=3)
    hidden = keras.layers.SimpleRNN(2, stateful=True, name="carries")(inputs)
    model = HessianFreeModel(inputs, keras.layers.Dense(1)(hidden))
    with pytest.raises(ValueError, match="Received: the stateful layer 'carries'"):
        model.compile(HessianFree(), "mse")


def test_an_optimizer_of_other_variables_is_refused():
    model = small()
    optimizer, loss = model.optimizer, model.loss
    model.compile(optimizer, loss)  # of the same, it goes on
    model.layers[1].trainable = False
    with pytest.raises(
        ValueError, match=r"keeps to the variables.* Received: shapes \[\(4, 1\)"
    ):
        model.compile(optimizer, loss)


def test_layers_frozen_after_compile_are_refused_until_it_is_compiled_again():
    model = small()
    model.layers[1].trainable = False
    with pytest.raises(ValueError, match=r"compile with a new one.* Received: shapes \[\(4, 1"):
        model.fit(X, Y, verbose=0)
    model.compile(HessianFree(cg_steps=2), "mse")
    before = model.layers[1].get_weights()[0]
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(model.layers[1].get_weights()[0], before)


def test_nothing_to_train_is_refused():
    with pytest.raises(ValueError, match="needs weights to train"):
        net(keras.layers.Rescaling(2.0)).compile(HessianFree(), "mse")
