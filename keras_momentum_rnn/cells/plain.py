"""Keras's own cells as the paths take a cell: with a rule that does nothing."""

import keras

from keras_momentum_rnn.arguments import delegate
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.cells.gru import RuleGRUCell
from keras_momentum_rnn.cells.lstm import RuleLSTMCell
from keras_momentum_rnn.cells.simple_rnn import RuleRNNCell
from keras_momentum_rnn.rules import Identity

# What the paths read of a cell; a cell without gates lacks some.
READ = (
    *("kernel", "recurrent_kernel", "bias", "weights", "variables", "compute_dtype"),
    *("units", "activation", "recurrent_activation", "use_bias", "implementation"),
    *("reset_after", "dropout", "recurrent_dropout", "get_dropout_mask"),
    *("_dropout_mask", "_recurrent_dropout_mask"),
)


class PlainCell(RuleCell):
    """A view of a Keras cell, and no layer: it reads all numbers from that cell.

    A subclass borrows its equation from the cell of the same kind that has a rule.

    Args:
        cell: the cell, of the class that the subclass is for.
    """

    rule = Identity()

    def __init__(self, cell: keras.layers.Layer) -> None:
        self.cell = cell
        self.state_size = keras.tree.flatten(cell.state_size)
        self.own_state_count = len(self.state_size)


delegate(PlainCell, READ, "cell")


class PlainRNNCell(PlainCell):
    """A view of `keras.layers.SimpleRNNCell`."""

    recurrence_name = "elman"
    recurrence = RuleRNNCell.recurrence


class PlainLSTMCell(PlainCell):
    """A view of `keras.layers.LSTMCell`."""

    gates = 4
    recurrence_name = "lstm"
    recurrence = RuleLSTMCell.recurrence


class PlainGRUCell(PlainCell):
    """A view of `keras.layers.GRUCell`."""

    gates = 3
    recurrence_name = RuleGRUCell.recurrence_name
    input_bias = RuleGRUCell.input_bias
    recurrent_side_bias = RuleGRUCell.recurrent_side_bias
    recurrence = RuleGRUCell.recurrence
    _reset_before = RuleGRUCell._reset_before
