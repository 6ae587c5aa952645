"""Elman cells whose input drive is accelerated by a momentum rule."""

from typing import Any, Literal

import keras
from keras import ops

from keras_momentum_rnn.annotations import Step, Tensor
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.checks import checked_choice
from keras_momentum_rnn.rules import register


@register
class RuleRNNCell(RuleCell, keras.layers.SimpleRNNCell):
    """Cell of `RuleRNN`, which gives equation and arguments.

    Arguments are those of `keras.layers.SimpleRNNCell`, and `rule`, `parameterization`. Call
    arguments and what Keras's RNN rounds: see `RuleLSTMCell`; the states are [h, slots].
    """

    keras_cell = keras.layers.SimpleRNNCell

    def __init__(
        self, *args: Any, parameterization: Literal["input", "hidden"] = "input", **kwargs: Any
    ) -> None:
        checked_choice("parameterization", parameterization, ("input", "hidden"))
        super().__init__(*args, **kwargs)
        self.parameterization = parameterization

    @property
    def extends_keras_cell(self) -> bool:
        return self.parameterization == "input"

    drive_from_input = extends_keras_cell

    @property
    def recurrence_name(self) -> str | None:
        return "elman" if self.parameterization == "input" else None

    def apply_rule(self, u: Tensor, slots: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        if self.parameterization == "input":
            return super().apply_rule(u, slots)
        v, scale, wide = self.rule.update_factored(u, [self.to_slot_dtype(s) for s in slots])
        kernel = ops.convert_to_tensor(self.recurrent_kernel, dtype=self.slot_dtype)
        slots = [ops.cast(new, old.dtype) for new, old in zip(wide, slots)]
        return ops.cast((v @ kernel) * scale, self.compute_dtype), slots

    def recurrence(self, training: bool = False, weights: list[Any] | None = None) -> Step:
        product = self.recurrent_product(training, weights)

        def step(drive, states):
            (h,) = states
            z = drive + product(h)
            h = self.activation(z)
            # On JAX Keras's tanh of float64 is in float32.
            return [h if h.dtype == z.dtype else ops.cast(h, z.dtype)]

        return step

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "parameterization": self.parameterization}
