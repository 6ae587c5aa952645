"""What the tests of the diagnostics share: layers, data and models."""

import keras
import numpy as np
import pytest
from harness import array, normal, randomise

import keras_momentum_rnn as kmr

BATCH, TIME, FEATURES, UNITS = 3, 5, 2, 4
LAYERS = {
    "SimpleRNN": lambda **k: keras.layers.SimpleRNN(UNITS, **k),
    "LSTM": lambda **k: keras.layers.LSTM(UNITS, **k),
    "GRU": lambda **k: keras.layers.GRU(UNITS, **k),
    "RNN(GRUCell)": lambda **k: keras.layers.RNN(keras.layers.GRUCell(UNITS), **k),
    "MomentumRNN": lambda **k: kmr.MomentumRNN(UNITS, **k),
    "AdamLSTM": lambda **k: kmr.AdamLSTM(UNITS, step_size=0.1, **k),
    "SRLSTM-released": lambda **k: kmr.SRLSTM(UNITS, formulation="released", **k),
    "MCRM": lambda **k: kmr.MCRM(UNITS, **k),
    "NestedLSTM": lambda **k: kmr.NestedLSTM(UNITS, rule=kmr.rules.HeavyBall(), **k),
}
NAMES = {
    "SimpleRNN": ["h"],
    "LSTM": ["h", "c"],
    "GRU": ["h"],
    "RNN(GRUCell)": ["h"],
    "MomentumRNN": ["h", "v"],
    "AdamLSTM": ["h", "c", "v", "m"],
    "SRLSTM-released": ["h", "c", "y", "t"],
    "MCRM": ["h", "c"],
    "NestedLSTM": ["h", "c", "inner c", "v"],
}
each_layer = pytest.mark.parametrize("name", LAYERS)


def data(seed=0):
    rng = np.random.default_rng(seed)
    return normal(rng, BATCH, TIME, FEATURES), normal(rng, BATCH, 1)


def model_of(layer, *before, readout=None, time=TIME):
    """A compiled regression model on `layer`, with random weights."""
    readout = readout or keras.layers.Dense(1)
    model = keras.Sequential([keras.Input((time, FEATURES)), *before, layer, readout])
    randomise(model, np.random.default_rng(1), scale=0.7)
    model.compile("sgd", "mse")
    return model


def readout_of(model):
    kernel, bias = model.layers[-1].weights
    return array(kernel).astype("float64"), array(bias).astype("float64")


def norm(gradient):
    return np.sqrt(np.sum(np.square(gradient, dtype="float64"), axis=(0, 2)))


def built(layer):
    layer.build((None, TIME, FEATURES))
    return layer
