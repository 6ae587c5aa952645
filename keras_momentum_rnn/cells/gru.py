"""GRU cells whose input drive is accelerated by a momentum rule."""

from typing import Any

import keras
from keras import ops

from keras_momentum_rnn.annotations import Step
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.rules import register


@register
class RuleGRUCell(RuleCell, keras.layers.GRUCell):
    """Cell of `RuleGRU`, which gives equation and arguments.

    Arguments are those of `keras.layers.GRUCell`, and `rule`. Call arguments and what Keras's
    RNN rounds: see `RuleLSTMCell`; the states are [h, slots].
    """

    keras_cell = keras.layers.GRUCell
    gates = 3
    cheap_steps = True

    @property
    def recurrence_name(self) -> str | None:
        return "gru" if self.reset_after else None

    @property
    def input_bias(self) -> Any:
        two = self.use_bias and self.reset_after
        return ops.convert_to_tensor(self.bias)[0] if two else self.bias

    @property
    def recurrent_side_bias(self) -> Any:
        two = self.use_bias and self.reset_after
        return ops.convert_to_tensor(self.bias)[1] if two else None

    def recurrence(self, training: bool = False, weights: list[Any] | None = None) -> Step:
        if not self.reset_after:
            return self._reset_before(training, weights)
        product = self.recurrent_product(training, weights)
        return lambda drive, states: [gru_step(self, drive, product(states[0]), states[0])]

    def _reset_before(self, training, weights):
        """The reset gate acts on h, so the candidate's product must wait for it."""
        sigmoid, tanh = self.recurrent_activation, self.activation
        masks = self.recurrent_masks(training)
        first, last = (masks[:2], masks[2:]) if isinstance(masks, list) else (masks, masks)
        kernel, _ = self.recurrent_weights() if weights is None else weights
        kernel = ops.convert_to_tensor(kernel)
        split = 2 * self.units
        gates = self._product(kernel[:, :split], None, first, self.compute_dtype)
        candidate = self._product(kernel[:, split:], None, last, self.compute_dtype)

        def step(drive, states):
            (h,) = states
            x_z, x_r, x_h = ops.split(drive, 3, axis=-1)
            y_z, y_r = ops.split(gates(h), 2, axis=-1)
            z, r = sigmoid(x_z + y_z), sigmoid(x_r + y_r)
            return [z * h + (1 - z) * tanh(x_h + candidate(r * h))]

        return step


def gru_step(cell, drive, product, h):
    """Return the new h of a GRU cell whose reset gate acts on the product, h U and its bias."""
    sigmoid, tanh = cell.recurrent_activation, cell.activation
    x_z, x_r, x_h = ops.split(drive, 3, axis=-1)
    y_z, y_r, y_h = ops.split(product, 3, axis=-1)
    z, r = sigmoid(x_z + y_z), sigmoid(x_r + y_r)
    return z * h + (1 - z) * tanh(x_h + r * y_h)
