"""A cell with a rule on its drive, over time, for some samples of a batch; see `drive`."""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.drive import (
    Step,
    add_gradients,
    add_recurrent_product,
    gather,
    gradient_of_first_h,
    gradient_of_h,
    gradient_of_x,
    hold_back,
    keep_slots,
    new_scratch,
    project,
    ring_row,
    rule_again,
    rule_row,
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
from keras_momentum_rnn.paths.native.simd import START, clear, copy, copy_ragged


@njit(nogil=True, cache=True)
def forward(inputs, states, kept, keeps, shape, counts, first, rows):
    """Run `rows` samples from sample `first` on.

    Args:
        inputs: `Inputs`.
        states: `States`, changed in place. c is in `kept`.
        kept: `Kept`, written.
        keeps: bool; False where nothing goes back. Then gates and c are kept of one step.
        shape: `Shape`.
        counts: int array `(time,)`: of these samples, the first so many may take a step.
    """
    cell, batch, padded, wide = shape.cell, shape.batch, shape.padded, shape.wide
    numbers, active, order = inputs.numbers, inputs.active, inputs.order
    U, side, h_all = inputs.weights.U, inputs.weights.side, states.h
    u, y = np.empty(rows * wide, np.float32), np.empty(rows * wide, np.float32)
    product = y if cell == GRU else u
    dropout, dropped = inputs.dropout, np.zeros(rows * padded, np.float32)
    row = np.empty(rows * shape.features, np.float32)
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
                cell_row(
                    cell, u, y, r * wide, side, kept.gates, at, kept.c, c, c_new,
                    h_all, h, padded,
                )  # fmt: skip
            elif cell == LSTM:
                copy(kept.c, c_new, kept.c, c, padded)
            output = (order[sample] * shape.time + t) * shape.units
            copy_ragged(kept.h, output, h_all, h, shape.units)


@njit(nogil=True, cache=True)
def backward(inputs, saved, gradients, shape, counts, first, rows, ring):
    """Go back over what `forward` did, for the same samples.

    Args:
        inputs, saved, gradients: `Inputs`, `Saved` and `Gradients`.
        shape, counts: as of `forward`.
        ring: int, so many steps are gathered before they are multiplied.
    """
    cell, batch, time, padded = shape.cell, shape.batch, shape.time, shape.padded
    x, numbers, active, order = inputs.x, inputs.numbers, inputs.active, inputs.order
    h_first, kept, dropout = saved.h_first, saved.kept, inputs.dropout
    states, side = gradients.states, gradients.weights.side
    apart = numbers.kind != NONE or cell == GRU
    scratch, row = new_scratch(shape, rows, ring, numbers, apart), ring_row(shape.wide)
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
