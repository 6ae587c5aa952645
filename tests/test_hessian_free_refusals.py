"""What a HessianFreeModel refuses to train, and the check of derivatives before it does."""

import warnings

import keras
import numpy as np
import pytest
from harness import BACKEND
from test_hessian_free_model import X, Y, net, small, weights

from keras_momentum_rnn import AdamLSTM
from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel, hessian_free_model

# The check of derivatives


class Handmade(keras.layers.Layer):
    """The cube of its input, by a kernel whose second derivative is wrong, or by steps."""

    def __init__(self, use_cudnn=True, broken_steps=False, **options):
        super().__init__(**options)
        self.use_cudnn, self.broken_steps = use_cudnn, broken_steps

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1],), initializer="ones", name="w")

    def call(self, x):
        x = x * self.w
        return kernel(x) if self.use_cudnn or self.broken_steps else x**3


def kernel(x):
    """x^3 with its gradient, which is detached from x: or one that JAX cannot push forward."""
    if BACKEND == "jax":
        import jax

        cube = jax.custom_vjp(lambda x: x**3)
        cube.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))
        return cube(x)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        @tf.custom_gradient
        def cube(x):
            return x**3, lambda g: 3 * x**2 * tf.stop_gradient(g)

        return cube(x)
    import torch

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * g.detach()

    return Cube.apply(x)


def test_a_layer_without_second_derivatives_is_refused():
    model = net(Handmade(use_cudnn=False, broken_steps=True), keras.layers.Dense(1))
    model.compile(HessianFree(), "mse")
    before = weights(model)
    with pytest.raises(ValueError, match="second derivatives, and those of this model are"):
        model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(weights(model), before)


def test_a_fused_layer_without_second_derivatives_is_stepped():
    layer = Handmade()
    model = net(keras.layers.Dense(3), keras.Sequential([layer]), keras.layers.Dense(1))
    model.compile(HessianFree(cg_steps=3), "mse")
    with pytest.warns(UserWarning, match=f"now stepped, with `use_cudnn=False`: {layer.name}"):
        model.train_on_batch(X, Y)
    assert layer.use_cudnn is False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.train_on_batch(X, Y)


@pytest.mark.parametrize("wrapper", [keras.layers.Bidirectional, lambda layer: layer])
def test_the_layers_of_the_package_pass(wrapper):
    inputs = keras.Input((None, 3))
    hidden = wrapper(AdamLSTM(2))(inputs)
    model = HessianFreeModel(inputs, keras.layers.Dense(1)(hidden))
    model.compile(HessianFree(), "mse")
    with warnings.catch_warnings():
        if BACKEND != "jax":  # there the native kernel has no forward mode: it is put on steps
            warnings.simplefilter("error")
        model.check_derivatives()
    assert any(isinstance(part, AdamLSTM) for part in hessian_free_model.layers_of(model))


# What is refused


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


PROBABILITIES = {
    "name": "binary_crossentropy",
    "function": keras.losses.sparse_categorical_crossentropy,
    "object": keras.losses.CategoricalCrossentropy(),
    "name of a class": "CategoricalCrossentropy",
    "focal": "categorical_focal_crossentropy",
    "chosen by Keras": "crossentropy",
    "one of several": ["mse", "categorical_crossentropy"],
    "by output": {"a": keras.losses.BinaryCrossentropy()},
}


@pytest.mark.parametrize("loss", PROBABILITIES.values(), ids=list(PROBABILITIES))
def test_probabilities_are_warned_of(loss):
    with pytest.warns(UserWarning, match="make the outputs logits"):
        net(keras.layers.Dense(1)).compile(HessianFree(), loss)


@pytest.mark.parametrize(
    "loss",
    ["mse", keras.losses.BinaryCrossentropy(from_logits=True), lambda y, p: (y - p) ** 2, None],
    ids=["mse", "logits", "own", "none"],
)
def test_logits_and_squares_are_not(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(keras.layers.Dense(1)).compile(HessianFree(), loss)


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
