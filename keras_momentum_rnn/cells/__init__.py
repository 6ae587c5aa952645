"""Recurrent cells; each runs alone in `keras.layers.RNN`, too."""

from keras_momentum_rnn.cells import named
from keras_momentum_rnn.cells.gru import RuleGRUCell
from keras_momentum_rnn.cells.lstm import ReleasedSRLSTMCell, RuleLSTMCell
from keras_momentum_rnn.cells.named import *  # noqa: F403
from keras_momentum_rnn.cells.nested import MCRMCell, NestedLSTMCell
from keras_momentum_rnn.cells.orthogonal import RuleDTRIVCell
from keras_momentum_rnn.cells.simple_rnn import RuleRNNCell

__all__ = [
    "RuleLSTMCell",
    "RuleRNNCell",
    "RuleGRUCell",
    "RuleDTRIVCell",
    *named.__all__,
    "MCRMCell",
    "NestedLSTMCell",
    "ReleasedSRLSTMCell",
]
