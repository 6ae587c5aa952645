"""Widths padded to vectors, gate by gate."""

import numpy as np

from keras_momentum_rnn.paths.native.vectors import WIDTH


def padded_width(width):
    return -(-width // WIDTH) * WIDTH


def flat(array):
    return np.ascontiguousarray(array, np.float32).reshape(-1)


def padded_columns(matrix, width):
    """Return a copy with so many columns, the further ones zero."""
    out = np.zeros((len(matrix), width), np.float32)
    out[:, : matrix.shape[1]] = matrix
    return out


def by_gate(array, units):
    """Return a copy of `(..., gates * units)` with each gate padded."""
    *lead, width = array.shape
    gates = width // units
    padded = padded_width(units)
    out = np.zeros((*lead, gates, padded), np.float32)
    out[..., :units] = array.reshape(*lead, gates, units)
    return out.reshape(*lead, gates * padded)


def from_gates(array, units):
    """Return `(..., gates * units)` of what `by_gate` padded."""
    *lead, width = array.shape
    padded = padded_width(units)
    gates = width // padded
    out = array.reshape(*lead, gates, padded)[..., :units]
    return np.ascontiguousarray(out).reshape(*lead, gates * units)
