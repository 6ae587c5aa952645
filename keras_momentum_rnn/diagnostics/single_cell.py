"""Checks of a recurrent layer of one cell, and its initial states."""

import contextlib

import keras
from keras import ops, tree

from keras_momentum_rnn.rebuilding import is_loop


def recurrent(layer):
    """Return `layer`, or raise if it is no built recurrent layer of one cell."""
    if not isinstance(layer, keras.layers.RNN):
        raise ValueError(
            "`layer` must be a recurrent layer (`keras.layers.RNN`), of a wrapper the layer "
            f"inside. Received: layer={layer!r}"
        )
    if isinstance(layer.cell, keras.layers.StackedRNNCells):
        raise ValueError(
            "`layer` must have one cell, and not stacked ones, whose h is not one vector. "
            f"Received: layer={layer!r} with cell={layer.cell!r}"
        )
    if not layer.built:
        raise ValueError(f"`layer` must be built. Received: layer={layer!r}")
    if not is_loop(layer):
        raise ValueError(
            "`layer` must run the loop of a layer of Keras or ours: what a `call` of its own "
            f"does would not be seen. Received: layer={layer!r}"
        )
    return layer


def check_rank(name, shape):
    if len(shape) != 3:
        raise ValueError(f"`{name}` must be (batch, time, features). Received: {tuple(shape)}")


def initial_states(layer, batch_size, given):
    """Return all the states that a layer starts from, those that are left out at zero."""
    first = layer.get_initial_state(batch_size)
    if given is None:
        given = layer.states if layer.stateful else []
    given = tree.flatten(given)
    states = [ops.cast(state, zero.dtype) for state, zero in zip(given, first)]
    return [*states, *given[len(first) :], *first[len(given) :]]


@contextlib.contextmanager
def dropout_masks(cell, x, h):
    """Let a cell draw its dropout masks here, and not inside a loop that JAX traces."""
    if not hasattr(cell, "get_dropout_mask"):
        yield
        return
    cell.get_dropout_mask(x)
    cell.get_recurrent_dropout_mask(h)
    try:
        yield
    finally:
        cell.reset_dropout_mask()
        cell.reset_recurrent_dropout_mask()
