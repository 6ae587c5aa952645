"""The recurrent layers by name."""

import keras

from keras_momentum_rnn import layers

KERAS_LAYERS = ("SimpleRNN", "LSTM", "GRU")


def available_layers():
    """Return the recurrent layers by name: those of Keras, and ours.

    Example:

    >>> from keras_momentum_rnn.layers.names import available_layers
    >>> list(available_layers())[:4]
    ['SimpleRNN', 'LSTM', 'GRU', 'RuleLSTM']
    """
    theirs = {name: getattr(keras.layers, name) for name in KERAS_LAYERS}
    return {**theirs, **{name: getattr(layers, name) for name in layers.__all__}}


def ready_layers():
    """Return those that need no rule to be given: all but `RuleLSTM` and its like."""
    return {n: cls for n, cls in available_layers().items() if not n.startswith("Rule")}
