"""Gradients by the hidden state over time."""

import contextlib
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_momentum_rnn.diagnostics.single_cell import (
    check_rank,
    dropout_masks,
    initial_states,
    recurrent,
)
from keras_momentum_rnn.optimizers.derivatives import derivatives
from keras_momentum_rnn.recurrent import RuleLayer


def gradient_norms(
    model: keras.Model, x: Any, y: Any, layer: keras.layers.Layer | str
) -> np.ndarray:
    """Return how much the loss depends on the hidden state at each time: |dL/dh_t|.

    ```
    norm_t = || dL/dh_t ||_2                                over batch and units
    dL/dh_t = (dL/dh_t by the output at t) + (dh_{t+1}/dh_t)^T dL/dh_{t+1}
    ```

    The derivative is total: it goes through the outputs and all later steps, with the layer's
    other states (c, the rule's slots) held. L is the loss of the batch, as it is minimised,
    with its regularisation.
    The norm is that of its derivatives, an array `(batch, units)`, as in the paper's Figure 2.
    If the loss is a mean over samples, the norm falls as 1 / sqrt(batch): compare batches of
    one size.

    A zero is added to h at every step, and one backward pass gives the exact gradient by these
    zeros. A `keras.layers.RNN` steps the cell for this, not the layer's own loop, so
    half-precision policies round the slots, too. Dropout is off. Weights, states and seeds of
    the model do not change.

    Args:
        model: a built and compiled model. While this runs, `layer.call` is replaced.
        x: inputs of the model.
        y: targets.
        layer: the recurrent layer, or its name if it is a layer of the model itself: ours or
            Keras's, or `keras.layers.RNN(cell)` of one cell whose first state is its output.
            For a wrapper, or a model in the model, pass the layer inside, such as
            `bidirectional.forward_layer`.

    Returns:
        Array `(time,)` in float64. t is the time of the inputs, also with `go_backwards`, where
        h_t is the state after the step that read x_t. A step that a mask skips has no h of
        its own: the sample adds 0 there.

    Raises:
        ValueError: if the model is not built or not compiled with a loss; if it has no such
            layer, or runs it more than once; if the layer is not recurrent or has a `call` of
            its own, or h is not one vector (`StackedRNNCells`, `ConvLSTM2D`).

    Example:

    >>> import keras, numpy as np
    >>> from keras_momentum_rnn import MomentumRNN
    >>> from keras_momentum_rnn.diagnostics import gradient_norms
    >>> layers = [keras.Input((5, 3)), MomentumRNN(4, name="rnn"), keras.layers.Dense(1)]
    >>> model = keras.Sequential(layers)
    >>> model.compile("sgd", "mse")
    >>> gradient_norms(model, np.ones((2, 5, 3)), np.zeros((2, 1)), "rnn").shape
    (5,)

    References: Nguyen et al. (2020), section 2.3, equation 11 and Figure 2.
    """
    layer = _layer_of(model, layer)
    if not model.compiled or model.loss is None:
        raise ValueError(
            f"`model` must be compiled with a loss. Received: a model {model.name!r} without"
        )
    x, y = tree.map_structure(ops.convert_to_tensor, (x, y))
    batch_size, time, _ = _sequence_shape(model, x, layer)

    def loss_by(probes):
        (probe,) = probes
        # Keras reads the weights that are regularized from the scope.
        values = [(v, v.value) for v in model.variables]
        scope = keras.StatelessScope(values, collect_losses=True)
        with scope, _replaced_call(layer, _probed_call(layer, probe)):
            y_pred = model(x, training=False)
            return model.compute_loss(x=x, y=y, y_pred=y_pred, training=False), None

    units = layer.state_size[0]
    probe = ops.zeros((batch_size, time, units), dtype=layer.cell.compute_dtype)
    _, _, (gradient,) = derivatives().value_and_gradient(loss_by, [probe])
    if layer.compute_dtype in ("float16", "bfloat16"):  # NumPy has no bfloat16
        gradient = ops.cast(gradient, "float32")
    gradient = ops.convert_to_numpy(gradient).astype("float64")
    return np.sqrt(np.sum(gradient**2, axis=(0, 2)))


def _layer_of(model, layer):
    """Return the recurrent layer of `model` that is given by itself or by name."""
    if not isinstance(model, keras.Model) or not model.built:
        raise ValueError(f"`model` must be a built keras.Model. Received: model={model!r}")
    if isinstance(layer, str):
        named = [candidate for candidate in model.layers if candidate.name == layer]
        if not named:
            names = [candidate.name for candidate in model.layers]
            raise ValueError(
                f"`layer` must be one of the model's layers, {names}. Received: layer={layer!r}"
            )
        (layer,) = named
    return recurrent(layer)


def _sequence_shape(model, x, layer):
    """Return the shape of the sequences that reach `layer`, which must be run once."""
    shapes, call = [], layer.call

    def recorded(sequences, initial_state=None, mask=None, training=False):
        shapes.append(tuple(sequences.shape))
        return call(sequences, initial_state=initial_state, mask=mask, training=training)

    with keras.StatelessScope(), _replaced_call(layer, recorded):
        model(x, training=False)
    if len(shapes) != 1:
        raise ValueError(
            f"`layer` must be run once by the model {model.name!r}. Received: "
            f"layer={layer!r}, which it runs {len(shapes)} times"
        )
    check_rank("inputs of the layer", shapes[0])
    return shapes[0]


@contextlib.contextmanager
def _replaced_call(layer, call):
    layer.call = call
    try:
        yield
    finally:
        del layer.call


def _probed_call(layer, probe):
    """Return a `call` for `layer` which adds `probe`, `(batch, time, units)`, to h."""
    names = ("return_sequences", "return_state", "go_backwards")
    options = {name: getattr(layer, name) for name in names}
    options["zero_output_for_mask"] = layer.zero_output_for_mask
    # Keras's unrolled loop treats masked steps otherwise, and ours does not.
    options["unroll"] = layer.unroll and not isinstance(layer, RuleLayer)
    rnn = keras.layers.RNN(_ProbedCell(layer.cell), dtype=layer.dtype_policy, **options)

    def call(sequences, initial_state=None, mask=None, training=False):
        states = initial_states(layer, len(sequences), initial_state)
        sequences = ops.cast(sequences, probe.dtype)
        if mask is not None:  # what is masked may be NaN
            seen = ops.reshape(ops.convert_to_tensor(mask, "bool"), (*sequences.shape[:2], 1))
            sequences = ops.where(seen, sequences, ops.zeros_like(sequences))
        with dropout_masks(layer.cell, sequences[:, 0], states[0]):
            inputs = ops.concatenate([sequences, probe], axis=-1)
            return rnn(inputs, initial_state=states, mask=mask, training=training)

    return call


class _ProbedCell(keras.layers.Layer):
    """A cell which adds the last columns of its input to h, as output and as carried on."""

    def __init__(self, cell):
        super().__init__(dtype=cell.dtype_policy)
        self.cell = cell
        self.state_size = cell.state_size

    def build(self, input_shape):
        self.built = True

    def call(self, inputs, states):
        units = states[0].shape[-1]
        output, states = self.cell(inputs[:, :-units], states)
        h, *others = tree.flatten(states)
        if output is not h:
            raise ValueError(
                "`layer` must have a cell whose first state is its output, h. Received: "
                f"cell={self.cell!r}"
            )
        h = h + inputs[:, -units:]
        return h, [h, *others]
