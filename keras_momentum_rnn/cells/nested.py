"""LSTM cells whose memory is itself a recurrent cell."""

from typing import Any

import keras
from keras import ops

from keras_momentum_rnn import rules
from keras_momentum_rnn.annotations import Step, Tensor
from keras_momentum_rnn.arguments import functions_of
from keras_momentum_rnn.cells.gru import gru_step
from keras_momentum_rnn.cells.lstm import RuleLSTMCell, lstm_step
from keras_momentum_rnn.exports import traced_by_torch
from keras_momentum_rnn.rules import Rule, register


class NestedCell(RuleLSTMCell):
    """The gates of an LSTM around a memory, any Keras cell of as many units.

    A subclass names the default cell of the memory (`memory_class`).
    """

    memory_class = None
    extends_keras_cell = False
    cheap_steps = False

    def __init__(
        self,
        *args: Any,
        memory: keras.layers.Layer | dict[str, Any] | None = None,
        rule: Rule | dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        rule = rules.Identity() if rule is None else rule
        super().__init__(*args, rule=rule, **kwargs)
        self.memory = self._copied(memory)
        if not self.trainable:
            self.memory.trainable = False  # Keras freezes what is there when it is told to
        inner = keras.tree.flatten(self.memory.state_size)
        if inner[0] != self.units:
            raise ValueError(
                "`memory` must have as many units as its shell, since its h is the shell's c. "
                f"Received: a memory of {inner[0]} units in a shell of {self.units}"
            )
        self._set_states([self.units, *inner])

    def _copied(self, memory):
        """Return the memory, as a copy of its own: two cells never share weights."""
        if memory is None:
            return self.memory_class(self.units, dtype=self.dtype_policy, name="memory")
        if isinstance(memory, dict):
            memory = keras.saving.deserialize_keras_object(memory)
        sizes = keras.tree.flatten(getattr(memory, "state_size", None))
        if (
            isinstance(memory, keras.layers.RNN | keras.layers.StackedRNNCells)
            or not sizes
            or not all(isinstance(size, int) for size in sizes)
        ):
            raise ValueError(
                "`memory` must be one Keras cell, such as keras.layers.GRUCell(units). "
                f"Received: memory={memory!r}"
            )
        config = memory.get_config()
        return type(memory).from_config(config | functions_of(memory, config))

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        super().build(input_shape)
        self.memory.build((input_shape[0], 2 * self.units))

    def recurrence(self, training: bool = False, weights: list[Any] | None = None) -> Step:
        product = self.recurrent_product(training, weights)
        sigmoid, tanh = self.recurrent_activation, self.activation
        memory_step = self._memory_step(training, weights)

        def step(drive, states):
            h, c, *inner = states
            i, f, c_tilde, o = ops.split(drive + product(h), 4, axis=-1)
            kept, new = sigmoid(f) * c, sigmoid(i) * tanh(c_tilde)
            memory = memory_step(ops.concatenate([kept, new], axis=-1), [c, *inner])
            return [sigmoid(o) * tanh(memory[0]), *memory]

        return step

    def _memory_step(self, training, weights):
        """Return one step of the memory, a function (x, states) -> states."""
        memory, kind = self.memory, self._plain_memory()
        if kind is None or (training and (memory.dropout or memory.recurrent_dropout)):
            kwargs = {"training": training} if self._memory_drops_out() else {}

            # `__call__` writes into the layer, which a loop of `torch.export` cannot.
            exported = traced_by_torch() in ("graph", "open graph")
            casts = memory.compute_dtype != memory.variable_dtype
            step = memory.call if exported and not casts else memory

            def called(x, states):
                _, states = step(x, states, **kwargs)
                return [ops.cast(s, self.compute_dtype) for s in states]

            return called
        # Calling a Keras cell, with its checks and slices, takes longer than the step itself.
        own = self._memory_weights() if weights is None else weights[2:]
        kernel, bias, recurrent_kernel, recurrent_bias = own
        project = self._product(kernel, bias, None, self.compute_dtype)
        recur = self._product(recurrent_kernel, recurrent_bias, None, self.compute_dtype)
        if kind == "lstm":
            return lambda x, states: lstm_step(memory, project(x) + recur(states[0]), states[1])
        return lambda x, states: [gru_step(memory, project(x), recur(states[0]), states[0])]

    def _plain_memory(self):
        """Return "gru" or "lstm", for a cell of Keras as it comes, or None."""
        memory = self.memory
        if (
            memory.compute_dtype != self.compute_dtype
            or memory.activity_regularizer is not None
        ):
            return None
        if type(memory) is keras.layers.LSTMCell:
            return "lstm"
        return "gru" if type(memory) is keras.layers.GRUCell and memory.reset_after else None

    def _memory_weights(self):
        """Return kernel, bias, recurrent kernel and recurrent bias of a plain memory."""
        memory = self.memory
        bias, recurrent_bias = memory.bias if memory.use_bias else None, None
        if self._plain_memory() == "gru" and memory.use_bias:
            bias, recurrent_bias = ops.unstack(ops.convert_to_tensor(bias))
        return memory.kernel, bias, memory.recurrent_kernel, recurrent_bias

    @property
    def recurrence_name(self) -> str | None:
        """That of a plain memory with the usual activations and without dropout."""
        memory, kind = self.memory, self._plain_memory()
        if (
            kind is None
            or memory.dropout
            or memory.recurrent_dropout
            or memory.activation is not keras.activations.tanh
            or memory.recurrent_activation is not keras.activations.sigmoid
        ):
            return None
        return f"nested_{kind}"

    def recurrent_weights(self, training: bool = False) -> list[Any]:
        memory = [] if self._plain_memory() is None else self._memory_weights()
        return [*super().recurrent_weights(training), *memory]

    def _memory_drops_out(self):
        """Whether the memory is a cell of Keras with dropout; others may not know training."""
        return hasattr(self.memory, "get_dropout_mask")

    @property
    def has_dropout(self) -> bool:
        # `torch.compile` cannot trace a property of `super()`.
        rates = "dropout", "recurrent_dropout"
        return any(getattr(cell, name, 0) for cell in (self, self.memory) for name in rates)

    def get_recurrent_dropout_mask(self, step_input: Tensor) -> Any:
        """Draw the masks of the memory, too: Keras asks for them once before the loop."""
        if self._memory_drops_out():
            c = ops.zeros_like(step_input)
            self.memory.get_dropout_mask(ops.concatenate([c, c], axis=-1))
            self.memory.get_recurrent_dropout_mask(c)
        return super().get_recurrent_dropout_mask(step_input)

    def reset_recurrent_dropout_mask(self) -> None:
        if self._memory_drops_out():
            self.memory.reset_dropout_mask()
            self.memory.reset_recurrent_dropout_mask()
        super().reset_recurrent_dropout_mask()

    def get_config(self) -> dict[str, Any]:
        memory = keras.saving.serialize_keras_object(self.memory)
        return {**super().get_config(), "memory": memory}


@register
class MCRMCell(NestedCell):
    """Cell of `MCRM`, which gives equation and arguments."""

    memory_class = keras.layers.GRUCell


@register
class NestedLSTMCell(NestedCell):
    """Cell of `NestedLSTM`, which gives equation and arguments."""

    memory_class = keras.layers.LSTMCell
