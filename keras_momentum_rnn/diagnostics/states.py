"""Every state of a recurrent layer over time."""

from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.cells.lstm import ReleasedSRLSTMCell
from keras_momentum_rnn.cells.nested import NestedCell
from keras_momentum_rnn.diagnostics.single_cell import (
    check_rank,
    dropout_masks,
    initial_states,
    recurrent,
)
from keras_momentum_rnn.paths.steps import scan_steps


def memory_map(
    layer: keras.layers.RNN, x: Any, initial_state: Any = None, mask: Any = None
) -> dict[str, np.ndarray]:
    """Return every state of a recurrent layer at every time.

    Args:
        layer: a built recurrent layer, ours or Keras's, or `keras.layers.RNN(cell)` of one
            cell. Dropout is off.
        x: inputs of the layer, `(batch, time, features)`.
        initial_state: as the layer takes it. Defaults to zeros, or to the states of a stateful
            layer, which do not change.
        mask: bool array `(batch, time)` or None. Where it is `False`, states keep their values.

    Returns:
        dict from the name of the state to its array `(batch, time, size)` in float32 (in
        float64 under that policy), after the step of the input at that time. The order is
        that of the layer's states: "h", "c"; the other states of a memory, such as "inner c";
        the rule's slots, "v", "m", "t", and "y" for the preactivation in
        `SRLSTM(formulation="released")`. States of cells and rules of your own are called
        "state 1", ...; slots of rules of your own have the names that the rule gives them.

    Raises:
        ValueError: if the layer is not recurrent, is not built, has a `call` of its own or
            holds stacked cells, or if `x` does not have three dimensions, or `mask` not its
            first two.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import NestedLSTM
    >>> from keras_momentum_rnn.diagnostics import memory_map
    >>> layer = NestedLSTM(4)
    >>> layer.build((None, 7, 3))
    >>> states = memory_map(layer, np.zeros((2, 7, 3)))
    >>> {name: state.shape for name, state in states.items()}
    {'h': (2, 7, 4), 'c': (2, 7, 4), 'inner c': (2, 7, 4)}

    References: Mohamed and Claudel (2018), Figure 7.
    """
    cell = recurrent(layer).cell
    rule_cell = isinstance(cell, RuleCell)
    x = ops.convert_to_tensor(x, dtype=cell.slot_dtype if rule_cell else cell.compute_dtype)
    check_rank("x", x.shape)
    if mask is not None:
        mask = ops.convert_to_tensor(mask, dtype="bool")
        if mask.shape != x.shape[:2]:
            raise ValueError(
                f"`mask` must have the shape (batch, time) = {tuple(x.shape[:2])}. Received: a "
                f"mask of shape {tuple(mask.shape)}"
            )
    if layer.go_backwards:
        x, mask = (None if a is None else ops.flip(a, axis=1) for a in (x, mask))
    wide = "float64" if cell.compute_dtype == "float64" else "float32"
    ends = np.cumsum(layer.state_size).tolist()
    slices = [slice(end - size, end) for size, end in zip(layer.state_size, ends)]
    with keras.StatelessScope():
        states = initial_states(layer, len(x), initial_state)
        dtypes = [keras.backend.standardize_dtype(s.dtype) for s in states]
        step = cell.step_from_input() if rule_cell else lambda x, states: cell(x, states)[1]

        def packed_step(x, packed):
            states = [ops.cast(packed[0][:, s], d) for s, d in zip(slices, dtypes)]
            return [pack(step(x, states))]

        def pack(states):
            return ops.concatenate([ops.cast(s, wide) for s in tree.flatten(states)], axis=-1)

        with dropout_masks(cell, x[:, 0], states[0]):
            result, _ = scan_steps(packed_step, x, [pack(states)], mask=mask)
    if layer.go_backwards:
        result = ops.flip(result, axis=1)
    return dict(zip(state_names(cell), np.split(ops.convert_to_numpy(result), ends, axis=-1)))


def state_names(cell: keras.layers.Layer) -> list[str]:
    """Return the names of a cell's states, in their order: see `memory_map`."""
    names = ["h", "c"] if isinstance(cell, keras.layers.LSTMCell) else ["h"]
    if isinstance(cell, NestedCell):
        names += [f"inner {name}" for name in state_names(cell.memory)[1:]]
    slots = list(cell.rule.slots(cell.drive_width)) if isinstance(cell, RuleCell) else []
    slots = ["y", "t"] if isinstance(cell, ReleasedSRLSTMCell) else slots
    count = len(tree.flatten(cell.state_size)) - len(slots)
    return names + [f"state {i}" for i in range(len(names), count)] + slots
