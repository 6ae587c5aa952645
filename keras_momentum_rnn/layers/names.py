"""The former place of `keras_momentum_rnn.layers.registry`."""

from keras_momentum_rnn.layers.registry import (  # noqa: F401
    KERAS_LAYERS,
    available_layers,
    ready_layers,
)
