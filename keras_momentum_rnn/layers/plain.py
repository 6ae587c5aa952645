"""The layers without a rule: Keras's own, run on the paths of this library."""

import dataclasses
from typing import Any, ClassVar

import keras
from keras import ops
from keras.tree import is_nested

from keras_momentum_rnn.annotations import Tensor
from keras_momentum_rnn.cells.plain import PlainCell, PlainGRUCell, PlainLSTMCell, PlainRNNCell
from keras_momentum_rnn.exports import traced_by_torch, traced_for_export
from keras_momentum_rnn.paths.devices import current_device
from keras_momentum_rnn.paths.masks import shown
from keras_momentum_rnn.paths.native import runtime
from keras_momentum_rnn.paths.plan import Plan, plan_once
from keras_momentum_rnn.paths.run import Sequence, run
from keras_momentum_rnn.paths.transforms import transform_is_active, varying_alike
from keras_momentum_rnn.recurrent import (
    alike,
    as_read,
    check_steps,
    refuse_to_repeat,
    states_or_seeds_changed,
)
from keras_momentum_rnn.rules import register

__all__ = ["LSTM", "GRU", "SimpleRNN"]


class PlainLayer:
    """What the plain layers share: a Keras layer whose loop over time may take a path.

    Arguments, weights, states, dropout, masks and config are those of the Keras layer that
    follows among the bases. Only `inner_loop` differs, which runs a sequence from given states.
    """

    keras_layer: ClassVar[type[keras.layers.RNN]]
    # How the paths see the cell, and the class of cell that they may see so.
    view: ClassVar[type[PlainCell]]
    keras_cell: ClassVar[type[keras.layers.Layer]]
    # Keras's SimpleRNN has no such argument; `False` means plain steps, as in our other layers.
    use_cudnn: bool | str = "auto"

    def plan(
        self,
        mask: bool = False,
        training: bool = False,
        features: int | None = None,
        transformed: bool = False,
    ) -> Plan:
        """Tell which path a call takes, and why.

        Args:
            mask: bool, whether the call has a mask.
            training: bool, as of the call.
            features: positive integer, the width of the input. Defaults to the width that
                the layer was built for, and to 1 before.
            transformed: bool, whether a transform of `torch.func`, such as `vmap`, acts on
                the call.

        Returns:
            A `keras_momentum_rnn.paths.Plan`, with `path`, `reason` and how the path runs. The
            path "keras" is the loop or the kernel of the Keras layer itself.

        Example:

        >>> import keras_momentum_rnn
        >>> plan = keras_momentum_rnn.LSTM(4, unroll=True).plan(training=True)
        >>> plan.path, plan.reason
        ('keras', 'unroll=True')
        """
        if features is None:
            features = self.cell.kernel.shape[0] if self.cell.built else 1
        call = {"mask": mask, "training": training, "transformed": transformed}
        return self._plan(self.view(self.cell), exported=None, features=features, **call)

    def _plan(self, cell, **call):
        call |= {"slots_given": False, "rule_overflows": False}
        call["device"] = current_device()
        # Keras does not see what is kept so, and takes it for no weight.
        plans = self.__dict__.setdefault("_plans", {})
        plan = plan_once(self, cell, plans, **call)
        if self.compute_dtype != cell.compute_dtype:
            return Plan("keras", f"layer: {self.compute_dtype}, cell: {cell.compute_dtype}")
        if plan.path != "step" or call["exported"]:
            return plan
        reasons = [reason for reason in plan.reason.split("; ") if reason != "no rule"]
        return dataclasses.replace(plan, path="keras", reason="; ".join(reasons))

    @property
    def supports_jit(self) -> bool:
        """Whether XLA may compile a model with this layer."""
        if keras.config.backend() != "tensorflow":
            return self._keras_supports_jit
        # XLA cannot call a function of this process.
        paths = {self.plan(training=t).path for t in (False, True)}
        return self._keras_supports_jit and "native" not in paths

    @supports_jit.setter
    def supports_jit(self, value: bool) -> None:
        self._keras_supports_jit = value

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool = False,
    ) -> Any:
        """Run the sequence, as in Keras; forget masks of dropout after an error, too."""
        check_steps(self, sequences)
        traced = self.stateful and traced_by_torch() is not None
        rates = self.cell.dropout, self.cell.recurrent_dropout
        unread = any(rates) and not training and traced_for_export(sequences, training)
        if unread:
            # A file needs no masks of dropout, and its sizes may be open: let Keras draw none.
            self.cell.dropout = self.cell.recurrent_dropout = 0.0
        if traced:
            # The layer would keep tensors of the trace, and the file start from them.
            self.stateful = False
            if initial_state is None:
                initial_state = [ops.copy(state) for state in self.states]
        try:
            return super().call(sequences, initial_state, mask, training)
        finally:
            self.stateful = self.stateful or traced
            if unread:
                self.cell.dropout, self.cell.recurrent_dropout = rates
            self.cell.reset_dropout_mask()
            self.cell.reset_recurrent_dropout_mask()

    def rematerialized_call(self, layer_call: Any, *args: Any, **kwargs: Any) -> Any:
        """Refuse to repeat, for `keras.RematScope`, a call that changes what it starts from."""
        call = super().rematerialized_call(layer_call, *args, **kwargs)
        if call is not layer_call:
            rates = self.cell.dropout or self.cell.recurrent_dropout
            drops = kwargs.get("training") and rates
            refuse_to_repeat(self, states_or_seeds_changed(self, drops))
        return call

    def inner_loop(
        self, sequences: Tensor, initial_state: Any, mask: Any, training: bool = False
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Run the sequence on the path that serves it, or as Keras does.

        Returns:
            The last output, the outputs `(batch, time, units)`, and the final states, a list.
        """
        if not ops.is_tensor(sequences) or hasattr(sequences, "assign"):
            sequences = ops.copy(sequences)  # it may be an array, or a variable of TensorFlow
        states = list(initial_state) if is_nested(initial_state) else [initial_state]
        if self.stateful:
            # PyTorch's `assign` writes into the tensor that the backward pass needs.
            states = [ops.copy(state) for state in states]
        mask = mask[0] if is_nested(mask) else mask
        if keras.config.backend() == "jax":  # whose loop asks for it, in a `jax.shard_map`
            states = varying_alike(states, like=(sequences, mask))
        if sequences.shape[1] == 1 and not traced_for_export(sequences, training):
            # Keras makes no loop of it; but PyTorch traces a file of any length with one step,
            # and Keras's loop of one step has no place in a file of LiteRT.
            return self._run_as_keras(sequences, states, mask, training)
        sequence = Sequence(
            x=sequences,
            states=states,
            mask=mask,
            training=training,
            unroll=self.unroll,
            all_outputs=self.return_sequences,
        )
        cell = self.view(self.cell)
        plan = self._plan_for(sequence, cell) if self._fits(sequence, cell) else None
        if plan is None or plan.path == "keras":
            return self._run_as_keras(sequences, states, sequence.mask, training)
        sequence = self._prepared(sequence, cell)
        outputs, states = run(plan, cell, sequence)
        if sequence.mask is not None:
            zero = self.zero_output_for_mask
            outputs = shown(outputs, sequence.mask, self.return_sequences, zero)
        return outputs[:, -1], outputs, list(states)

    def _run_as_keras(self, sequences, states, mask, training):
        """Run the sequence as the Keras layer does, but for its call of cuDNN on JAX.

        That one may read memory in another order than XLA has chosen: `paths.kernels.in_order`.

        Raises:
            ValueError: if `use_cudnn=True` asks for that call.
        """
        on_jax = keras.config.backend() == "jax" and current_device() == "gpu"
        if not (on_jax and isinstance(self, keras.layers.LSTM)):
            return super().inner_loop(sequences, states, mask, training=training)
        if self.use_cudnn is True and sequences.shape[1] != 1:
            raise ValueError(
                f"No fused kernel serves this call of {type(self).__name__}. Pass "
                f"`use_cudnn='auto'`. Received: use_cudnn={self.use_cudnn}"
            )
        return keras.layers.RNN.inner_loop(self, sequences, states, mask, training=training)

    def _fits(self, sequence, cell):
        """Return whether a call is as the paths need it; of any other Keras makes its own."""
        batch, time, features = sequence.x.shape
        states, mask = sequence.states, sequence.mask
        # Keras's LSTM and GRU take a rate of 1 for no dropout.
        drops = sequence.training and 1 in (cell.dropout, cell.recurrent_dropout)
        shapes = [(state.shape, (batch, size)) for state, size in zip(states, cell.state_size)]
        if mask is not None:
            shapes.append((mask.shape, (batch, time)))
        return (
            type(self.cell) is self.keras_cell
            and 0 not in (time, features)
            and not drops
            and features == cell.kernel.shape[0]
            and len(states) == len(cell.state_size)
            and all(alike(*pair) for pair in shapes)
        )

    def _plan_for(self, sequence, cell):
        """Return the plan of a call."""
        x, mask = sequence.x, sequence.mask
        tensors = [x, *sequence.states, *([] if mask is None else [mask])]
        call = {
            "mask": mask is not None,
            "training": sequence.training,
            "transformed": transform_is_active(tensors, cell),
            "exported": traced_for_export(x, sequence.training),
            "features": cell.kernel.shape[0],
        }
        plan = self._plan(cell, **call)
        if plan.path == "native" and not runtime.is_ready(cell.recurrence_name):
            # Known from now on, so another path is chosen.
            plan = self._plan(cell, **call)
        return plan

    def _prepared(self, sequence, cell):
        """Return the sequence forwards, in the dtype of the cell and zero where masked."""
        x, mask = ops.cast(sequence.x, cell.compute_dtype), sequence.mask
        if mask is not None:
            mask = ops.cast(mask, "bool")
        x, mask = as_read(x, mask, self.go_backwards)
        return dataclasses.replace(sequence, x=x, mask=mask)


@register
class LSTM(PlainLayer, keras.layers.LSTM):
    """`keras.layers.LSTM`, faster where this library has a faster path.

    ```
    i, f, c~, o = split(x_t W + b + h_{t-1} U)
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(c~)
    h_t = sigmoid(o) tanh(c_t)
    ```

    It is a `keras.layers.LSTM`: arguments, call arguments, results, weights, states, masks and
    weights files are Keras's. To load a `.keras` file of it you need this package. On a CPU the
    native kernel of the extra `cpu` trains it; on PyTorch `torch.nn.LSTM` runs what does not
    fit there. On a GPU of JAX it calls cuDNN with the order of memory fixed, which Keras's
    LSTM does not. All else runs as in Keras: other activations, half precision,
    `use_cudnn=False`, GPUs of TensorFlow. `plan()` says which path a call takes. A file for
    another runtime has a loop with open sizes.

    `keras_momentum_rnn.convert.accelerate` puts it in the place of Keras's in a model, and
    `convert.to_keras` puts Keras's back.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import LSTM
    >>> layer = LSTM(4, return_sequences=True)
    >>> tuple(layer(np.zeros((2, 10, 3), "float32")).shape)
    (2, 10, 4)

    Reference: Hochreiter and Schmidhuber (1997), "Long Short-Term Memory"; the forget gate is
    that of Gers et al. (2000), "Learning to Forget".
    """

    keras_layer = keras.layers.LSTM
    keras_cell = keras.layers.LSTMCell
    view = PlainLSTMCell


@register
class GRU(PlainLayer, keras.layers.GRU):
    """`keras.layers.GRU`, faster where this library has a faster path.

    ```
    x_z, x_r, x_h = split(x_t W + b)        y_z, y_r, y_h = split(h_{t-1} U + b_r)
    z, r = sigmoid(x_z + y_z), sigmoid(x_r + y_r)
    h_t = z h_{t-1} + (1 - z) tanh(x_h + r y_h)
    ```

    It is a `keras.layers.GRU`, as `LSTM` is Keras's. With `reset_after=False`, which has
    another equation, it runs as in Keras.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import GRU
    >>> tuple(GRU(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Cho et al. (2014), "Learning Phrase Representations using RNN Encoder-Decoder
    for Statistical Machine Translation"; the reset gate acts after the product, as in cuDNN.
    """

    keras_layer = keras.layers.GRU
    keras_cell = keras.layers.GRUCell
    view = PlainGRUCell


@register
class SimpleRNN(PlainLayer, keras.layers.SimpleRNN):
    """`keras.layers.SimpleRNN`, faster where this library has a faster path.

    ```
    h_t = tanh(x_t W + b + h_{t-1} U)
    ```

    It is a `keras.layers.SimpleRNN`, as `LSTM` is Keras's.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import SimpleRNN
    >>> tuple(SimpleRNN(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Elman (1990), "Finding Structure in Time".
    """

    keras_layer = keras.layers.SimpleRNN
    keras_cell = keras.layers.SimpleRNNCell
    view = PlainRNNCell
