"""LSTM, GRU and RNN layers for Keras 3 with momentum, RMSProp and Adam on their inputs."""

from keras_momentum_rnn import cells, initializers, layers, optimizers, rules
from keras_momentum_rnn.cells import *  # noqa: F403
from keras_momentum_rnn.layers import *  # noqa: F403

__version__ = "0.1.0"
__all__ = [
    "cells",
    "initializers",
    "layers",
    "optimizers",
    "rules",
    *cells.__all__,
    *layers.__all__,
]
