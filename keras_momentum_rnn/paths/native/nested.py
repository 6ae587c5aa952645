"""The gates of an LSTM around a memory, a GRU or an LSTM whose h is the shell's c.

    i, f, a, o = split(drive + side + h U)
    c', inner' = memory([sigmoid(f) c, sigmoid(i) tanh(a)], c, inner)
    h' = sigmoid(o) tanh(c')

Of each step the shell's gates are kept, and then what `equations` keeps of the memory. The
states beside h, c and of an LSTM inner, stand side by side, and so does what the memory takes
in.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native import drive
from keras_momentum_rnn.paths.native.arrays import Step
from keras_momentum_rnn.paths.native.drive import (
    add_gradients,
    gather,
    gradient_of_first_h,
    gradient_of_h,
    gradient_of_x,
    hold_back,
    keep_slots,
    project,
    ring_row,
    rule_again,
    rule_row,
    rule_row_back,
)
from keras_momentum_rnn.paths.native.equations import (
    NONE,
    gru_row,
    gru_row_back,
    lstm_row,
    lstm_row_back,
)
from keras_momentum_rnn.paths.native.simd import (
    ONE,
    START,
    WIDTH,
    add_packed_product,
    add_product,
    add_to,
    clear,
    copy,
    copy_ragged,
    load,
    pointers,
    sigmoid,
    splat,
    store,
    tanh,
)
from keras_momentum_rnn.paths.native.subnormals import flush_subnormals, restore

# The codes of the memories.
GRU_INSIDE, LSTM_INSIDE = 4, 5


class NestedWeights(NamedTuple):
    """As `arrays.Weights`, and those of the memory, whose drive is `inner` wide.

    The rows of `memory_W` are padded as what the memory takes in, `(2 * padded, inner)`.
    """

    W: np.ndarray
    b: np.ndarray
    U: np.ndarray
    side: np.ndarray
    memory_W: np.ndarray
    memory_b: np.ndarray
    memory_U: np.ndarray
    memory_side: np.ndarray


@njit(inline="always")
def taken_in(input_gate, forget_gate, candidate, c, joined, j, padded):
    """Write what the memory takes in."""
    store(joined, j, forget_gate * c)
    store(joined, j + padded, input_gate * candidate)


@njit(inline="always")
def gates_row(z, i, gates, at, c, k, joined, j, padded):
    """Keep the shell's gates, and write what the memory takes in."""
    for n in range(0, padded, WIDTH):
        input_gate = sigmoid(load(z, i + n))
        forget_gate = sigmoid(load(z, i + padded + n))
        candidate = tanh(load(z, i + 2 * padded + n))
        store(gates, at + n, input_gate)
        store(gates, at + padded + n, forget_gate)
        store(gates, at + 2 * padded + n, candidate)
        store(gates, at + 3 * padded + n, sigmoid(load(z, i + 3 * padded + n)))
        taken_in(input_gate, forget_gate, candidate, load(c, k + n), joined, j + n, padded)


@njit(inline="always")
def output_row(gates, at, c, k, h, j, padded):
    """h' = sigmoid(o) tanh(c')."""
    for n in range(0, padded, WIDTH):
        store(h, j + n, load(gates, at + 3 * padded + n) * tanh(load(c, k + n)))


@njit(inline="always")
def output_row_back(gates, at, c, k, dh, d, dc, m, dz, i, padded):
    """From dh of a row's new h to its part of dz, and add to dc of its new c."""
    one = splat(ONE)
    for n in range(0, padded, WIDTH):
        output_gate, squashed = load(gates, at + 3 * padded + n), tanh(load(c, k + n))
        d_h = load(dh, d + n)
        d_output = d_h * squashed * output_gate * (one - output_gate)
        store(dz, i + 3 * padded + n, d_output)
        d_c = d_h * output_gate * (one - squashed * squashed)
        store(dc, m + n, load(dc, m + n) + d_c)


@njit(inline="always")
def gates_row_back(gates, at, c, k, d_joined, j, dc, m, dz, i, joined, n_joined, padded):
    """From the gradient of what the memory took in to dz, and add to dc of the old c.

    What it took in is written to `joined` again.
    """
    one = splat(ONE)
    for n in range(0, padded, WIDTH):
        input_gate = load(gates, at + n)
        forget_gate = load(gates, at + padded + n)
        candidate, old = load(gates, at + 2 * padded + n), load(c, k + n)
        d_held, d_new = load(d_joined, j + n), load(d_joined, j + padded + n)
        store(dz, i + n, d_new * candidate * input_gate * (one - input_gate))
        store(dz, i + padded + n, d_held * old * forget_gate * (one - forget_gate))
        d_candidate = d_new * input_gate * (one - candidate * candidate)
        store(dz, i + 2 * padded + n, d_candidate)
        store(dc, m + n, load(dc, m + n) + d_held * forget_gate)
        taken_in(input_gate, forget_gate, candidate, old, joined, n_joined + n, padded)


class NestedRoom(NamedTuple):
    """Memory of one call of the way forward, of a step each.

    memory_u and memory_y, `(rows, inner)`, are the memory's own input and recurrent product,
    which for an LSTM are added; joined, `(rows, 2 * padded)`, is what it takes in.
    """

    u: np.ndarray
    memory_u: np.ndarray
    memory_y: np.ndarray
    joined: np.ndarray
    x: np.ndarray


def new_room(shape, rows):
    sizes = shape.wide, shape.inner, shape.inner, 2 * shape.padded, shape.features
    # Beside a sample that holds, what it takes in is multiplied, too.
    room = NestedRoom(*(np.zeros(rows * size, np.float32) for size in sizes))
    return room if shape.cell == GRU_INSIDE else room._replace(memory_y=room.memory_u)


@njit(nogil=True, cache=True)
def forward(arrays, keeps, shape, first, rows):
    """As `loops.forward`, with `NestedWeights` and `NestedRoom`."""
    inputs, states, kept, room, counts = pointers(arrays)
    mode = flush_subnormals()
    batch, padded, wide, units = shape.batch, shape.padded, shape.wide, shape.units
    inner, c_row, is_gru = shape.inner, shape.memories * padded, shape.cell == GRU_INSIDE
    weights, numbers, active, order = (
        inputs.weights, inputs.numbers, inputs.active, inputs.order
    )  # fmt: skip
    u, memory_u, memory_y, joined, row = room
    for t in range(shape.time):
        count, before, after = counts[t], 0, 0
        step = Step(t, first, count, 0, 0, 0)
        if keeps:
            before, after = t, t + 1
            keep_slots(kept, states, numbers, shape, t, first, rows)
        c, c_new = (before * batch + first) * c_row, (after * batch + first) * c_row
        gates = (before * batch + first) * shape.kept
        project(u, START, row, inputs, shape, step)
        for r in range(count):
            if active[(first + r) * shape.time + t]:
                rule_row(u, r * wide, states, numbers, first + r, t, shape)
            add_to(u, r * wide, weights.side, START, wide)
        add_packed_product(
            u, START, wide, states.h, first * padded, padded, weights.U, START,
            count, wide, units,
        )  # fmt: skip
        for r in range(count):
            gates_row(
                u, r * wide, kept.gates, gates + r * shape.kept, kept.c, c + r * c_row,
                joined, r * 2 * padded, padded,
            )  # fmt: skip
            copy(memory_u, r * inner, weights.memory_b, START, inner)
            if is_gru:
                copy(memory_y, r * inner, weights.memory_side, START, inner)
            else:
                add_to(memory_u, r * inner, weights.memory_side, START, inner)
        add_packed_product(
            memory_u, START, inner, joined, START, 2 * padded, weights.memory_W, START,
            count, inner, 2 * padded,
        )  # fmt: skip
        add_packed_product(
            memory_y, START, inner, kept.c, c, c_row, weights.memory_U, START,
            count, inner, units,
        )  # fmt: skip
        for r in range(rows):
            sample, i, at = first + r, r * inner, gates + r * shape.kept
            old, new, h = c + r * c_row, c_new + r * c_row, sample * padded
            memory_at = at + 4 * padded
            if not active[sample * shape.time + t]:
                copy(kept.c, new, kept.c, old, c_row)
                if keeps:
                    clear(kept.gates, at, shape.kept)
            elif is_gru:
                copy(kept.c, new, kept.c, old, padded)
                gru_row(memory_u, i, memory_y, i, kept.gates, memory_at, kept.c, new, padded)
                output_row(kept.gates, at, kept.c, new, states.h, h, padded)
            else:
                lstm_row(
                    memory_u, i, kept.gates, memory_at, kept.c, old + padded, new + padded,
                    kept.c, new, padded,
                )  # fmt: skip
                output_row(kept.gates, at, kept.c, new, states.h, h, padded)
            output = order[sample] * shape.outputs + min(t, shape.outputs - 1)
            copy_ragged(kept.h, output * units, states.h, h, units)
    restore(mode)


class NestedScratch(NamedTuple):
    """`arrays.Scratch` of the shell, and of the memory `MemoryScratch`."""

    shell: tuple
    memory: tuple


class MemoryScratch(NamedTuple):
    """As `arrays.Scratch`: rings, and the gradient of what the memory took in.

    Rows of dy and du are `ring_row(inner)` apart; without a GRU they are the same.
    """

    dy: np.ndarray
    du: np.ndarray
    c: np.ndarray
    joined: np.ndarray
    d_joined: np.ndarray


def new_scratch(shape, rows, ring, kind):
    size, padded = ring * rows * ring_row.py_func(shape.inner), shape.padded
    dy = np.zeros(size, np.float32)
    du = np.zeros(size, np.float32) if shape.cell == GRU_INSIDE else dy
    c = np.zeros(ring * rows * padded, np.float32)
    joined = np.zeros(ring * rows * 2 * padded, np.float32)
    memory = MemoryScratch(dy, du, c, joined, np.zeros(rows * 2 * padded, np.float32))
    return NestedScratch(drive.new_scratch(shape, rows, ring, kind, kind != NONE), memory)


@njit(nogil=True, cache=True)
def backward(arrays, shape, first, rows, ring):
    """As `loops.backward`, with `NestedWeights` and `NestedScratch`.

    The memory's matrices come last in `transposed`.
    """
    inputs, saved, gradients, (scratch, memory), counts = pointers(arrays)
    mode = flush_subnormals()
    batch, time, padded, wide = shape.batch, shape.time, shape.padded, shape.wide
    inner, c_row, is_gru = shape.inner, shape.memories * padded, shape.cell == GRU_INSIDE
    x, numbers, active, order = inputs.x, inputs.numbers, inputs.active, inputs.order
    h_first, kept, states = saved.h_first, saved.kept, gradients.states
    rings, again, dh, carried = scratch.rings, scratch.again, scratch.dh, scratch.carried
    row, inner_row = ring_row(wide), ring_row(inner)
    now = after = rows_after = np.int64(0)
    for t in range(time - 1, -1, -1):
        count = max(counts[t], counts[min(t + 1, time - 1)])
        step = Step(t, first, count, now, after, rows_after)
        rule_again(scratch, inputs, kept, counts, shape, t, first, rows)
        gradient_of_h(scratch, inputs, saved, gradients, shape, step)
        hold_back(gradients, order, shape, t, first + count, first + rows)
        for r in range(count):
            sample, n = first + r, step.now + r
            i, j = n * row, n * inner_row
            gather(rings, n, x, h_first, kept.h, order, sample, t, shape)
            old = (t * batch + sample) * c_row
            copy(memory.c, n * padded, kept.c, old, padded)
            carried[r] = not active[sample * time + t]
            if carried[r]:
                copy(states.h, sample * padded, dh, r * padded, padded)
                clear(memory.dy, j, inner)
                clear(memory.du, j, inner)
                continue
            at, d_c = (t * batch + sample) * shape.kept, sample * c_row
            new = old + batch * c_row
            output_row_back(
                kept.gates, at, kept.c, new, dh, r * padded, states.c, d_c,
                rings.dy, i, padded,
            )  # fmt: skip
            if is_gru:
                gru_row_back(
                    kept.gates, at + 4 * padded, kept.c, old, states.c, d_c, states.c, d_c,
                    memory.dy, memory.du, j, padded,
                )  # fmt: skip
            else:
                lstm_row_back(
                    kept.gates, at + 4 * padded, kept.c, old + padded, new + padded,
                    states.c, d_c, states.c, d_c + padded, memory.dy, j, padded,
                )  # fmt: skip
                clear(states.c, d_c, padded)
        through_memory(memory, saved, states, shape, step)
        for r in range(count):
            sample, n = first + r, step.now + r
            i, j = n * row, n * 2 * padded
            if carried[r]:
                clear(rings.dy, i, wide)
                clear(rings.du, i, wide)
                clear(memory.joined, j, 2 * padded)
                continue
            at, old = (t * batch + sample) * shape.kept, (t * batch + sample) * c_row
            gates_row_back(
                kept.gates, at, kept.c, old, memory.d_joined, r * 2 * padded, states.c,
                sample * c_row, rings.dy, i, memory.joined, j, padded,
            )  # fmt: skip
            rule_row_back(rings.dy, rings.du, again, r, numbers, states, shape, step)
        if gradients.wants_x:
            gradient_of_x(scratch, order, saved, gradients, shape, step)
        after, rows_after, now = now, count, now + count
        if now + rows > ring * rows or t == 0:
            add_gradients(gradients.weights, scratch, inputs.dropout, now, shape, True)
            add_gradients_of_memory(gradients.weights, memory, now, shape)
            now = 0
    gradient_of_first_h(
        scratch, inputs.dropout, saved, gradients, shape, first, rows, after, rows_after
    )  # fmt: skip
    restore(mode)


@njit(inline="always")
def through_memory(memory, saved, states, shape, step):
    """Go back through the memory's two products, to what it took in and to its old h, c."""
    first, rows, now = step.first, step.rows, step.now
    padded, inner, c_row = shape.padded, shape.inner, shape.memories * shape.padded
    row, (_, _, Wt, Ut) = ring_row(inner), saved.transposed
    clear(memory.d_joined, START, rows * 2 * padded)
    add_packed_product(
        memory.d_joined, START, 2 * padded, memory.du, now * row, row, Wt, START,
        rows, 2 * padded, inner,
    )  # fmt: skip
    add_packed_product(
        states.c, first * c_row, c_row, memory.dy, now * row, row, Ut, START,
        rows, padded, inner,
    )  # fmt: skip


@njit(inline="always")
def add_gradients_of_memory(sums, memory, count, shape):
    """Add the first `count` rows of the memory's rings to the gradients of its weights."""
    padded, inner, row = shape.padded, shape.inner, ring_row(shape.inner)
    add_product(
        sums.memory_U, START, inner, memory.c, padded, memory.dy, START, row,
        shape.units, inner, count,
    )  # fmt: skip
    add_product(
        sums.memory_W, START, inner, memory.joined, 2 * padded, memory.du, START, row,
        2 * padded, inner, count,
    )  # fmt: skip
    for r in range(count):
        add_to(sums.memory_b, START, memory.du, r * row, inner)
        add_to(sums.memory_side, START, memory.dy, r * row, inner)
