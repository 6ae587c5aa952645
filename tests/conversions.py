"""What the tests of conversion share: data, and that a model converts there and back."""

import keras
import numpy as np
from keras import layers, ops

from keras_momentum_rnn import MomentumLSTM, rules
from keras_momentum_rnn.convert import from_keras, to_keras
from keras_momentum_rnn.rebuilding import layers_in

PLAIN = {"momentum": 0.0, "step_size": 1.0}
BATCH, TIME, WIDTH, UNITS = 3, 5, 4, 3


class Subclassed(keras.Model):
    """A model that has no graph."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.memory = layers.LSTM(UNITS)

    def call(self, x):
        return self.memory(x)


class Averaging(rules.Rule):
    """A rule that no one registered."""

    def slots(self, width):
        return {"g": width}

    def update(self, u, slots):
        g = 0.9 * slots[0] + 0.1 * u
        return g, [g]


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def randomized(layer):
    """Return the layer with random numbers for all its weights, biases included."""
    for i, weight in enumerate(layer.weights):
        weight.assign(np.abs(random(*weight.shape, seed=i)) - 0.4)
    return layer


def sequences():
    """Return sequences that `Masking` masks right, left and in the middle."""
    x = random(BATCH, TIME, WIDTH)
    x[0, 3:] = x[1, :2] = x[2, 2] = 0
    return x


def arrays(outputs):
    return [ops.convert_to_numpy(ops.cast(y, "float32")) for y in keras.tree.flatten(outputs)]


def assert_same(one, two, inputs):
    """Compare the outputs of two layers or models, which must not be trivial."""
    one, two = arrays(one(inputs)), arrays(two(inputs))
    assert len(one) == len(two)
    for a, b in zip(one, two):
        assert np.abs(a).max() > 1e-2
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def assert_equal_arrays(one, two):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(*arrays([a, b]))


def distinct(layer, layer_class):
    """Return the distinct layers of a class inside a layer or model, by identity."""
    return {id(x): x for x in layers_in(layer) if isinstance(x, layer_class)}


def configs(layer):
    """Return names and options. The names of operations in a graph are of no account."""
    if isinstance(layer, keras.Model):
        return [layer.name, type(layer), [configs(x) for x in layer.layers]]
    return layer.get_config()


def assert_converts(model, inputs, count, ours=MomentumLSTM, plain=layers.LSTM):
    """Convert there and back; compare outputs, weights and configs; return the first."""
    before = model.get_weights()
    converted = from_keras(model, ours, **PLAIN)
    back = to_keras(converted)
    assert not distinct(converted, plain) and not distinct(back, ours)
    assert len(distinct(converted, ours)) == len(distinct(back, plain)) == count
    assert_same(model, converted, inputs)
    assert_same(model, back, inputs)
    assert configs(back) == configs(model)
    assert_equal_arrays(before, model.get_weights())
    assert_equal_arrays(before, back.get_weights())
    return converted


def functional(*inputs, outputs):
    return randomized(keras.Model(list(inputs), outputs))
