"""The layers: named ones choose a Keras layer, a cell and a rule; plain ones have no rule."""

from keras_momentum_rnn.layers import gru, lstm, nested, orthogonal, plain, simple_rnn
from keras_momentum_rnn.layers.gru import *  # noqa: F403
from keras_momentum_rnn.layers.lstm import *  # noqa: F403
from keras_momentum_rnn.layers.nested import *  # noqa: F403
from keras_momentum_rnn.layers.orthogonal import *  # noqa: F403
from keras_momentum_rnn.layers.plain import *  # noqa: F403
from keras_momentum_rnn.layers.simple_rnn import *  # noqa: F403

__all__ = [
    *lstm.__all__,
    *simple_rnn.__all__,
    *gru.__all__,
    *orthogonal.__all__,
    *nested.__all__,
    *plain.__all__,
]
