"""A cell with a rule on its drive, over time, for some samples of a batch; see `drive`."""

from typing import NamedTuple

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native import drive
from keras_momentum_rnn.paths.native.arrays import Step
from keras_momentum_rnn.paths.native.drive import (
    add_gradients,
    add_recurrent_product,
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
    rule_row_after_product,
    rule_row_back,
)
from keras_momentum_rnn.paths.native.equations import (
    GRU,
    LSTM,
    MODRELU,
    NONE,
    before_product,
    cell_row,
    cell_row_back,
)
from keras_momentum_rnn.paths.native.simd import START, clear, copy, copy_ragged, pointers
from keras_momentum_rnn.paths.native.subnormals import flush_subnormals, restore


class Room(NamedTuple):
    """Memory of one call of the way forward, of a step each.

    u, y: `(rows, wide)`, what comes of x, and beside it what comes of h of a GRU.
    x, h: `(rows, features)` and `(rows, padded)`, what is multiplied.
    """

    u: np.ndarray
    y: np.ndarray
    x: np.ndarray
    h: np.ndarray


def new_room(shape, rows):
    sizes = shape.wide, shape.wide, shape.features, shape.padded
    return Room(*(np.empty(rows * size, np.float32) for size in sizes))


def new_scratch(shape, rows, ring, kind):
    return drive.new_scratch(shape, rows, ring, kind, kind != NONE or shape.cell == GRU)


@njit(nogil=True, cache=True)
def forward(arrays, keeps, shape, first, rows):
    """Run `rows` samples from sample `first` on.

    Args:
        arrays: tuple of `Inputs`; `States`, changed in place, but c is in `Kept`, which is
            written; `Room`; and counts, int array `(time,)`: of these samples, the first so
            many may take a step.
        keeps: bool; False where nothing goes back. Then gates and c are kept of one step.
        shape: `Shape`.
    """
    inputs, states, kept, room, counts = pointers(arrays)
    mode = flush_subnormals()
    cell, batch, padded, wide = shape.cell, shape.batch, shape.padded, shape.wide
    numbers, active, order = inputs.numbers, inputs.active, inputs.order
    U, side, h_all = inputs.weights.U, inputs.weights.side, states.h
    u, y, row, dropped = room
    product, dropout = y if cell == GRU else u, inputs.dropout
    for t in range(shape.time):
        step, before, after = Step(t, first, counts[t], 0, 0, 0), 0, 0
        if keeps:
            before, after = t, t + 1
            keep_slots(kept, states, numbers, shape, t, first, rows)
        project(u, START, row, inputs, shape, step)
        for r in range(step.rows):
            if active[(first + r) * shape.time + t]:
                rule_row(u, r * wide, states, numbers, first + r, t, shape)
            before_product(cell, u, y, r * wide, side, wide)
        add_recurrent_product(product, h_all, U, dropout, dropped, shape, step)
        for r in range(rows):
            sample = first + r
            h, at = sample * padded, (before * batch + sample) * shape.kept
            c, c_new = (before * batch + sample) * padded, (after * batch + sample) * padded
            if active[sample * shape.time + t]:
                rule_row_after_product(u, r * wide, states, numbers, sample, t, shape)
                cell_row(
                    cell, u, y, r * wide, side, kept.gates, at, kept.c, c, c_new,
                    h_all, h, padded,
                )  # fmt: skip
            else:
                if cell == LSTM:
                    copy(kept.c, c_new, kept.c, c, padded)
                if keeps:  # no way back reads this, but JAX looks for NaN there
                    clear(kept.gates, at, shape.kept)
            # Where the last h is enough, each step writes over the one before.
            output = order[sample] * shape.outputs + min(t, shape.outputs - 1)
            copy_ragged(kept.h, output * shape.units, h_all, h, shape.units)
    restore(mode)


@njit(nogil=True, cache=True)
def backward(arrays, shape, first, rows, ring):
    """Go back over what `forward` did, for the same samples.

    Args:
        arrays: tuple of `Inputs`, `Saved`, `Gradients`, `Scratch` and the counts.
        ring: int, so many steps are gathered before they are multiplied.
    """
    inputs, saved, gradients, scratch, counts = pointers(arrays)
    mode = flush_subnormals()
    cell, batch, time, padded = shape.cell, shape.batch, shape.time, shape.padded
    x, numbers, active, order = inputs.x, inputs.numbers, inputs.active, inputs.order
    h_first, kept, dropout = saved.h_first, saved.kept, inputs.dropout
    states, side = gradients.states, gradients.weights.side
    row = ring_row(shape.wide)
    rings, again, dh, carried = scratch.rings, scratch.again, scratch.dh, scratch.carried
    d_drive = rings.du if cell == GRU else rings.dy
    now = after = rows_after = np.int64(0)
    for t in range(time - 1, -1, -1):
        # One more step for those whose first step was the one after.
        count = max(counts[t], counts[min(t + 1, time - 1)])
        step = Step(t, first, count, now, after, rows_after)
        rule_again(scratch, inputs, kept, counts, shape, t, first, rows)
        gradient_of_h(scratch, inputs, saved, gradients, shape, step)
        hold_back(gradients, order, shape, t, first + count, first + rows)
        for r in range(count):
            sample, n = first + r, step.now + r
            i, state = n * row, sample * padded
            gather(rings, n, x, h_first, kept.h, order, sample, t, shape)
            held = not active[sample * time + t]
            carried[r] = held or cell == GRU
            if held:
                copy(states.h, state, dh, r * padded, padded)
                clear(rings.dy, i, shape.wide)
                clear(rings.du, i, shape.wide)
                continue
            at, c = (t * batch + sample) * shape.kept, (t * batch + sample) * padded
            cell_row_back(
                cell, kept.gates, at, kept.c, c, c + batch * padded, rings.h, n * padded,
                dh, r * padded, states.h, states.c, state, side, rings.dy, rings.du, i, padded,
            )  # fmt: skip
            rule_row_back(d_drive, rings.du, again, r, numbers, states, shape, step)
        if gradients.wants_x:
            gradient_of_x(scratch, order, saved, gradients, shape, step)
        after, rows_after, now = now, count, now + count
        if now + rows > ring * rows or t == 0:
            add_gradients(gradients.weights, scratch, dropout, now, shape, cell != MODRELU)
            now = 0
    gradient_of_first_h(
        scratch, dropout, saved, gradients, shape, first, rows, after, rows_after
    )  # fmt: skip
    restore(mode)
