"""LSTM cells whose input drive is accelerated by a momentum rule."""

from typing import Any

import keras
from keras import ops

from keras_momentum_rnn import rules
from keras_momentum_rnn.annotations import Step
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.checks import checked_choice
from keras_momentum_rnn.initializers import ForgetGateBias
from keras_momentum_rnn.rules import register


@register
class RuleLSTMCell(RuleCell, keras.layers.LSTMCell):
    """Cell of `RuleLSTM`, which gives equation and arguments.

    Runs alone in `keras.layers.RNN` and `keras.layers.StackedRNNCells`. There Keras rounds
    the slots to the compute dtype at every step, which the layer does not.

    Arguments are those of `keras.layers.LSTMCell`, and `rule`, `use_recurrent_bias`.

    Call arguments:
        inputs: tensor `(batch, features)`.
        states: list [h, c, slots of the rule], each `(batch, size)`.
        training: bool, whether dropout acts.

    A call returns h and the list of the new states.
    """

    keras_cell = keras.layers.LSTMCell
    gates = 4
    recurrent_bias: keras.Variable | None
    recurrence_name = "lstm"
    cheap_steps = True

    def __init__(self, *args: Any, use_recurrent_bias: bool = False, **kwargs: Any) -> None:
        checked_choice("use_recurrent_bias", use_recurrent_bias, (True, False))
        super().__init__(*args, **kwargs)
        if isinstance(self.bias_initializer, ForgetGateBias) and self.unit_forget_bias:
            # Keras would call it for some gates alone.
            raise ValueError(
                "`ForgetGateBias` needs `unit_forget_bias=False`. Received: "
                f"bias_initializer={self.bias_initializer!r}, unit_forget_bias=True"
            )
        self.use_recurrent_bias = use_recurrent_bias
        self.recurrent_bias = None
        # What a linear rule adds to a step takes longer to compute again than to store.
        self.cheap_steps = self.cheap_steps and self.rule.scaled

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        super().build(input_shape)
        if self.use_recurrent_bias:
            self.recurrent_bias = self.add_weight(
                shape=(4 * self.units,),
                name="recurrent_bias",
                initializer=self._initial_recurrent_bias,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def _initial_recurrent_bias(self, shape, dtype=None):
        """Start as Keras starts the bias: by its initializer, the forget gate at 1."""
        if not self.unit_forget_bias:
            return self.bias_initializer(shape, dtype=dtype)
        return ops.concatenate(
            [
                self.bias_initializer((self.units,), dtype=dtype),
                ops.ones((self.units,), dtype=dtype),
                self.bias_initializer((2 * self.units,), dtype=dtype),
            ]
        )

    @property
    def recurrent_side_bias(self) -> Any:
        return self.recurrent_bias

    def recurrence(self, training: bool = False, weights: list[Any] | None = None) -> Step:
        product = self.recurrent_product(training, weights)

        def step(drive, states):
            h, c = states
            return lstm_step(self, drive + product(h), c)

        return step

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "use_recurrent_bias": self.use_recurrent_bias}


def lstm_step(cell, z, c):
    """Return the new [h, c] of an LSTM cell, z the preactivations of the gates i, f, c, o."""
    sigmoid, tanh = cell.recurrent_activation, cell.activation
    i, f, c_tilde, o = ops.split(z, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(c_tilde)
    return [sigmoid(o) * tanh(c), c]


@register
class ReleasedSRLSTMCell(RuleLSTMCell):
    """Cell of `SRLSTM(formulation="released")`, which gives equation and arguments.

    The momentum acts on the whole preactivation y, recurrent product included. So no
    fused kernel serves it, but the native kernel does.
    The states are [h, c, y, t].
    """

    rule_class = rules.ScheduledRestart
    extends_keras_cell = False
    recurrence_name = "released"
    drive_from_input = False

    def step_from_projection(
        self, training: bool = False, weights: list[Any] | None = None
    ) -> Step:
        product = self.recurrent_product(training, weights)

        def step(u, states):
            h, c, y_before, t = states
            mu, step_size = self.rule.coefficients(self.to_slot_dtype(t))
            y = self.to_slot_dtype(product(h)) - step_size * u
            z = y + mu * (y - self.to_slot_dtype(y_before))
            h, c = lstm_step(self, ops.cast(z, self.compute_dtype), c)
            t = ops.cast(self.rule.advance_counter(self.to_slot_dtype(t)), t.dtype)
            return [h, c, ops.cast(y, y_before.dtype), t]

        return step
