"""Weights and states as the loops take them: widths padded to whole vectors, and back."""

import itertools

import numpy as np

from keras_momentum_rnn.paths.native.arrays import States
from keras_momentum_rnn.paths.native.simd import WIDTH, packed


def padded_width(width):
    return -(-width // WIDTH) * WIDTH


def flat(array):
    """Return the numbers in a row, in memory that may be written to.

    The compiled loops know this kind of array alone: a second one would be compiled anew.
    """
    return np.require(array, np.float32, ["C", "W"]).reshape(-1)


def by_gate(array, units):
    """Return `(..., gates * units)` with each gate padded, a copy where it must be."""
    *lead, width = array.shape
    gates = width // units
    padded = padded_width(units)
    if padded == units:
        return array
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


def padded_states(states, equation, shape):
    """Return copies of the states, in rows, as `States`; of what there is not, zeros."""
    own = equation.recurrence.own_states
    h, *memories = states[:own]
    given = dict(zip(equation.slot_names(len(states)), states[own:]))
    none = np.zeros((shape.batch, shape.wide), np.float32)
    c = by_gate(np.concatenate(memories, 1), shape.units) if memories else none
    slots = (by_gate(given[n], shape.units) if n in given else none for n in "vm")
    return States(*(state.copy() for state in (by_gate(h, shape.units), c, *slots)))


def own_shapes(padded, equation, count, shape):
    """Return the `count` states of `padded_states` in the shapes that were given."""
    units, names = shape.units, equation.slot_names(count)
    memories = (
        padded.c[:, i * shape.padded :][:, :units] for i in range(equation.recurrence.memories)
    )
    slots = (from_gates(getattr(padded, name), units) for name in names)
    return [
        np.ascontiguousarray(padded.h[:, :units]),
        *map(np.ascontiguousarray, memories),
        *slots,
    ]


def padded_weights(weights, equation, shape):
    """Return the weights by gate, a missing bias as zeros.

    The rows of the matrix of what a nested memory takes in are padded by gate, too.
    """
    named = dict(zip(equation.recurrence.weights._fields, weights))
    matrices = {n: by_gate(w, shape.units) for n, w in list(named.items())[::2]}
    if shape.inner:
        matrices["memory_W"] = by_gate(matrices["memory_W"].T, shape.units).T
    biases = [
        np.zeros(matrix.shape[1], np.float32) if b is None else flat(by_gate(b, shape.units))
        for matrix, b in zip(matrices.values(), weights[1::2])
    ]
    return list(matrices.values()), biases


def packed_weights(matrices, biases, equation):
    """Return padded weights as the loops take them."""
    parts = parts_of(matrices, equation)
    matrices = [packed_parts(m, count, axis=1) for m, count in zip(matrices, parts)]
    return equation.recurrence.weights(*itertools.chain(*zip(matrices, biases)))


def parts_of(matrices, equation):
    """Return into how many parts each matrix is packed: U, under dropout, gate by gate."""
    gates = 1 if equation.dropout is None else equation.recurrence.gates
    return [1, gates, *(1 for _ in matrices[2:])]


def packed_parts(matrix, count, axis):
    """Return a matrix, cut into so many parts along an axis, one packed part after another."""
    parts = [packed(np.ascontiguousarray(part)) for part in np.split(matrix, count, axis)]
    return parts[0] if count == 1 else np.concatenate(parts)


def padded_dropout(equation, units):
    """Return the dropout masks of h, or no numbers where there are none."""
    dropout = equation.dropout
    return np.zeros(0, np.float32) if dropout is None else flat(by_gate(dropout, units))


def gradients_of_weights(sums, equation, matrices, units):
    """Return sums of padded gradients in the shapes of the weights."""
    found = []
    for matrix, d_matrix, d_bias in zip(matrices, sums[::2], sums[1::2]):
        found += [from_gates(d_matrix.reshape(matrix.shape), units), from_gates(d_bias, units)]
    if equation.recurrence.inner:
        place = equation.recurrence.weights._fields.index("memory_W")
        found[place] = np.ascontiguousarray(from_gates(found[place].T, units).T)
    return found
