"""A cell with a rule on its drive, over time, for some samples of a batch."""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.cells import (
    ELMAN,
    GRU,
    LSTM,
    MODRELU,
    elman_row,
    elman_row_back,
    gru_row,
    gru_row_back,
    lstm_row,
    lstm_row_back,
    modrelu_row,
    modrelu_row_back,
)
from keras_momentum_rnn.paths.native.drive import (
    add_gradients,
    gather,
    gradient_of_first_h,
    gradient_of_h,
    gradient_of_x,
    keep_slots,
    new_again,
    new_rings,
    project,
    ring_row,
    rule_again,
    rule_row,
    rule_row_back,
)
from keras_momentum_rnn.paths.native.memory import add_to, clear, copy, copy_ragged
from keras_momentum_rnn.paths.native.products import add_packed_product
from keras_momentum_rnn.paths.native.rules import NONE
from keras_momentum_rnn.paths.native.vectors import WIDTH


@njit(nogil=True, cache=True)
def forward(x, weights, states, numbers, lengths, shape, first, rows, kept, keeps):
    """Run `rows` samples from sample `first` on.

    Args:
        x: `(batch, time, features)`.
        weights: `Weights`.
        states: `States`, changed in place. c is in `kept`.
        numbers: `Numbers`.
        lengths: `(batch,)`, after how many steps each sample ends.
        shape: `Shape`.
        kept: `Kept`, written.
        keeps: bool; False where nothing goes back. Then gates and c are kept of one step.
    """
    batch, padded, wide, units = shape.batch, shape.padded, shape.wide, shape.units
    u, y = np.empty(rows * wide, np.float32), np.empty(rows * wide, np.float32)
    for t in range(shape.time):
        step, step_after = (t, t + 1) if keeps else (0, 0)
        if keeps:
            keep_slots(kept, states, numbers, t, shape, first, rows)
        project(u, 0, x, weights, t, shape, first, rows)
        for r in range(rows):
            i = r * wide
            if t < lengths[first + r]:
                rule_row(u, i, states, numbers, first + r, t, shape)
            if shape.cell == GRU:
                copy(y, i, weights.side, 0, wide)
            elif shape.cell != MODRELU:
                add_to(u, i, weights.side, 0, wide)
        add_packed_product(
            y if shape.cell == GRU else u, 0, wide, states.h, first * padded, padded,
            weights.U, rows, wide, units,
        )  # fmt: skip
        for r in range(rows):
            sample = first + r
            state, at = sample * padded, (step * batch + sample) * shape.kept
            c, c_new = (step * batch + sample) * padded, (step_after * batch + sample) * padded
            if t < lengths[sample]:
                if shape.cell == GRU:
                    gru_row(u, r * wide, y, r * wide, kept.gates, at, states.h, state, padded)
                elif shape.cell == ELMAN:
                    elman_row(u, r * wide, kept.gates, at, states.h, state, padded)
                elif shape.cell == MODRELU:
                    modrelu_row(
                        u, r * wide, weights.side, kept.gates, at, states.h, state, padded
                    )  # fmt: skip
                else:
                    lstm_row(
                        u, r * wide, kept.gates, at, kept.c, c, c_new, states.h, state, padded
                    )  # fmt: skip
            elif shape.cell == LSTM:
                copy(kept.c, c_new, kept.c, c, padded)
            copy_ragged(kept.h, (sample * shape.time + t) * units, states.h, state, units)


@njit(nogil=True, cache=True)
def backward(
    x, weights, transposed, numbers, lengths, shape, first, rows, h_first, kept, d_outputs,
    has_d_outputs, gradients, dx, wants_dx, sums, ring,
):  # fmt: skip
    """Go back over what `forward` did, for the same samples.

    Args:
        transposed: tuple of the `packed` transposes of W and U, their columns padded.
        h_first: `(batch, padded)`, h before the first step.
        d_outputs: `(batch, time, units)`, read if `has_d_outputs`.
        gradients: `States`, the gradients of the final states, and then those of the first.
        dx: `(batch, time, features)`, written if `wants_dx`.
        sums: `Weights`, the gradients of the weights are added to it.
        ring: int, so many steps are gathered before they are multiplied.
    """
    batch, time, padded, wide = shape.batch, shape.time, shape.padded, shape.wide
    Wt, Ut = transposed
    row, padded_x = ring_row(wide), -(-shape.features // WIDTH) * WIDTH
    # Whether the drive's gradient, du, is another than that of the recurrent product, dy.
    rings = new_rings(shape, rows, ring, numbers.kind != NONE or shape.cell == GRU)
    again = new_again(shape, rows, numbers)
    dh = np.zeros(rows * padded, np.float32)
    dx_step = np.zeros(rows * padded_x, np.float32)
    # Whether `gradients.h` goes to h before the step, past the recurrent product.
    carried = np.ones(rows, np.bool_)
    for t in range(time - 1, -1, -1):
        rule_again(again, kept, x, weights, numbers, lengths, t, shape, first, rows)
        slot = (time - 1 - t) % ring
        now, before = slot * rows, (slot - 1) % ring * rows
        gradient_of_h(
            dh, rings, before, d_outputs, has_d_outputs, gradients, carried, Ut, t, shape,
            first, rows,
        )  # fmt: skip
        for r in range(rows):
            sample, i, state = first + r, (now + r) * row, (first + r) * padded
            gather(rings, now + r, x, h_first, kept, sample, t, shape)
            held = t >= lengths[sample]
            carried[r] = held or shape.cell == GRU
            if held:
                copy(gradients.h, state, dh, r * padded, padded)
                clear(rings.dy, i, wide)
                clear(rings.du, i, wide)
                continue
            gates, c = (t * batch + sample) * shape.kept, (t * batch + sample) * padded
            if shape.cell == GRU:
                gru_row_back(
                    kept.gates, gates, rings.h, (now + r) * padded, dh, r * padded,
                    gradients.h, state, rings.dy, rings.du, i, padded,
                )  # fmt: skip
                d_drive = rings.du
            elif shape.cell == ELMAN:
                elman_row_back(kept.gates, gates, dh, r * padded, rings.dy, i, padded)
                d_drive = rings.dy
            elif shape.cell == MODRELU:
                modrelu_row_back(
                    kept.gates, gates, dh, r * padded, rings.dy, i, sums.side, padded
                )  # fmt: skip
                d_drive = rings.dy
            else:
                lstm_row_back(
                    kept.gates, gates, kept.c, c, c + batch * padded, dh, r * padded,
                    gradients.c, state, rings.dy, i, padded,
                )  # fmt: skip
                d_drive = rings.dy
            rule_row_back(
                d_drive, rings, i, again, gradients, numbers, sample, t, shape, r, rows
            )  # fmt: skip
        if wants_dx:
            gradient_of_x(dx, dx_step, rings, now, Wt, t, shape, first, rows)
        if slot == ring - 1 or t == 0:
            add_gradients(sums, rings, (slot + 1) * rows, shape, shape.cell != MODRELU)
    last = (time - 1) % ring * rows
    gradient_of_first_h(dh, rings, last, gradients, carried, Ut, shape, first, rows)
