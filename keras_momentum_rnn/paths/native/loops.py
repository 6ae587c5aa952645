"""A cell with a rule on its drive, over time, for some samples of a batch.

Arrays are flat. A width is padded to vectors: `units` numbers to `padded`, and the drive to
`wide`, gate by gate. Pads are zero in every weight, so they do nothing.
"""

from typing import NamedTuple

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
from keras_momentum_rnn.paths.native.memory import add_to, clear, copy, copy_ragged
from keras_momentum_rnn.paths.native.products import add_packed_product, add_product
from keras_momentum_rnn.paths.native.rules import (
    LINEAR,
    NONE,
    SCALED,
    linear_row,
    linear_row_back,
    scaled_row,
    scaled_row_again,
    scaled_row_back,
)
from keras_momentum_rnn.paths.native.vectors import WIDTH


class Shape(NamedTuple):
    """`every`: v and m of a scaled rule are kept before so many steps; `kept`: see `cells`.

    Where `driven`, x is the drive, padded gate by gate, and W does nothing.
    """

    cell: int
    batch: int
    time: int
    features: int
    units: int
    padded: int
    wide: int
    kept: int
    every: int
    driven: bool


class Numbers(NamedTuple):
    """A rule. mu is `(samples, time)`, `mu_row` apart, which is 0 where all share one row."""

    kind: int
    mu: np.ndarray
    mu_row: int
    gain: float
    factor: float
    beta: float
    epsilon: float


class Weights(NamedTuple):
    """W and U are `packed`, the biases one number for each of the drive."""

    W: np.ndarray
    b: np.ndarray
    U: np.ndarray
    side: np.ndarray


class States(NamedTuple):
    """h and c are `(batch, padded)`, the slots v and m `(batch, wide)`; or their gradients."""

    h: np.ndarray
    c: np.ndarray
    v: np.ndarray
    m: np.ndarray


class Kept(NamedTuple):
    """What the way back needs.

    h: `(batch, time, units)`, the outputs.
    c: `(time + 1, batch, padded)`, of an LSTM; the first is given.
    gates: `(time, batch, kept)`, see `cells`.
    v, m: `(chunks, batch, wide)`, before every chunk of steps.
    """

    h: np.ndarray
    c: np.ndarray
    gates: np.ndarray
    v: np.ndarray
    m: np.ndarray


class Sums(NamedTuple):
    """Gradients of the weights, to which is added: `(features or units, wide)`, `(wide,)`."""

    W: np.ndarray
    b: np.ndarray
    U: np.ndarray
    side: np.ndarray


@njit(forceinline=True)
def project(u, i, x, weights, t, shape, first, rows):
    """u = W x + b of a step, or x, the drive."""
    if shape.driven:
        for r in range(rows):
            at = ((first + r) * shape.time + t) * shape.wide
            copy(u, i + r * shape.wide, x, at, shape.wide)
        return
    for r in range(rows):
        copy(u, i + r * shape.wide, weights.b, 0, shape.wide)
    add_packed_product(
        u, i, shape.wide,
        x, (first * shape.time + t) * shape.features, shape.time * shape.features,
        weights.W, rows, shape.wide, shape.features,
    )  # fmt: skip


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
        if keeps and numbers.kind == SCALED and t % shape.every == 0:
            i, j = (t // shape.every * batch + first) * wide, first * wide
            copy(kept.v, i, states.v, j, rows * wide)
            copy(kept.m, i, states.m, j, rows * wide)
        project(u, 0, x, weights, t, shape, first, rows)
        for r in range(rows):
            sample, i, j = first + r, r * wide, (first + r) * wide
            if t < lengths[sample]:
                if numbers.kind == LINEAR:
                    mu = numbers.mu[sample * numbers.mu_row + t]
                    linear_row(u, i, states.v, j, wide, mu, numbers.gain)
                elif numbers.kind == SCALED:
                    scaled_row(u, i, states.v, states.m, j, wide, numbers)
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


@njit(forceinline=True)
def rule_again(
    x, weights, states, numbers, lengths, shape, first, rows, start, stop, u, v_all, r_all
):  # fmt: skip
    """Compute u, v' and 1 / sqrt(m' + eps) of the steps from `start` to `stop` again."""
    for t in range(start, stop):
        z = (t - start) * rows * shape.wide
        project(u, z, x, weights, t, shape, first, rows)
        for r in range(rows):
            if t < lengths[first + r]:
                i, j = z + r * shape.wide, r * shape.wide
                scaled_row_again(
                    u, r_all, i, states.v, states.m, v_all, j, shape.wide, numbers
                )  # fmt: skip


@njit(nogil=True, cache=True)
def backward(
    x, weights, Wt, Ut, numbers, lengths, shape, first, rows, h_first, kept, d_outputs,
    has_d_outputs, gradients, dx, wants_dx, sums, ring,
):  # fmt: skip
    """Go back over what `forward` did, for the same samples.

    Args:
        Wt, Ut: `packed` transposes of W and U, their columns padded.
        h_first: `(batch, padded)`, h before the first step.
        d_outputs: `(batch, time, units)`, read if `has_d_outputs`.
        gradients: `States`, the gradients of the final states, and then those of the first.
        dx: `(batch, time, features)`, written if `wants_dx`.
        sums: `Sums`, the gradients of the weights are added to it.
        ring: int, so many steps are gathered before they are multiplied.
    """
    batch, time, features = shape.batch, shape.time, shape.features
    units, padded, wide, every = shape.units, shape.padded, shape.wide, shape.every
    padded_x = -(-features // WIDTH) * WIDTH
    scaled = numbers.kind == SCALED
    # Whether the drive's gradient, du, is another than that of the recurrent product, dy.
    apart = numbers.kind != NONE or shape.cell == GRU
    # Rows a power of 2 apart would share few places of the cache.
    row = wide + WIDTH
    dy = np.zeros(ring * rows * row, np.float32)
    du = np.zeros(ring * rows * row, np.float32) if apart else dy
    h_ring = np.zeros(ring * rows * padded, np.float32)
    x_ring = np.zeros(WIDTH if shape.driven else ring * rows * features, np.float32)
    dh = np.zeros(rows * padded, np.float32)
    dx_step = np.zeros(rows * padded_x, np.float32)
    chunk = every * rows * wide if scaled else WIDTH
    u, v_all = np.empty(chunk, np.float32), np.empty(chunk, np.float32)
    r_all = np.empty(chunk, np.float32)
    slots = rows * wide if scaled else WIDTH
    v, m = np.empty(slots, np.float32), np.empty(slots, np.float32)
    # Whether `gradients.h` goes to h before the step, past the recurrent product.
    carried = np.ones(rows, np.bool_)
    for t in range(time - 1, -1, -1):
        if scaled and (t == time - 1 or t % every == every - 1):
            i = (t // every * batch + first) * wide
            copy(v, 0, kept.v, i, rows * wide)
            copy(m, 0, kept.m, i, rows * wide)
            rule_again(
                x, weights, States(v, v, v, m), numbers, lengths, shape, first, rows,
                t // every * every, t + 1, u, v_all, r_all,
            )  # fmt: skip
        slot = (time - 1 - t) % ring
        now, before = slot * rows, (slot - 1) % ring * rows
        for r in range(rows):
            if has_d_outputs:
                out = ((first + r) * time + t) * units
                copy_ragged(dh, r * padded, d_outputs, out, units)
            else:
                clear(dh, r * padded, padded)
            if carried[r]:
                add_to(dh, r * padded, gradients.h, (first + r) * padded, padded)
        if t < time - 1:
            add_packed_product(dh, 0, padded, dy, before * row, row, Ut, rows, padded, wide)
        for r in range(rows):
            sample, i, j = first + r, (now + r) * row, (first + r) * wide
            state, h_before = sample * padded, (now + r) * padded
            at = (sample * time + t) * features
            if not shape.driven:
                copy_ragged(x_ring, (now + r) * features, x, at, features)
            if t == 0:
                copy(h_ring, h_before, h_first, state, padded)
            else:
                copy_ragged(h_ring, h_before, kept.h, (sample * time + t - 1) * units, units)
            held = t >= lengths[sample]
            carried[r] = held or shape.cell == GRU
            if held:
                copy(gradients.h, state, dh, r * padded, padded)
                clear(dy, i, wide)
                clear(du, i, wide)
                continue
            gates, c = (t * batch + sample) * shape.kept, (t * batch + sample) * padded
            if shape.cell == GRU:
                gru_row_back(
                    kept.gates, gates, h_ring, h_before, dh, r * padded, gradients.h, state,
                    dy, du, i, padded,
                )  # fmt: skip
                d_drive = du
            elif shape.cell == ELMAN:
                elman_row_back(kept.gates, gates, dh, r * padded, dy, i, padded)
                d_drive = dy
            elif shape.cell == MODRELU:
                modrelu_row_back(
                    kept.gates, gates, dh, r * padded, dy, i, sums.side, padded
                )  # fmt: skip
                d_drive = dy
            else:
                lstm_row_back(
                    kept.gates, gates, kept.c, c, c + batch * padded, dh, r * padded,
                    gradients.c, state, dy, i, padded,
                )  # fmt: skip
                d_drive = dy
            if numbers.kind == LINEAR:
                mu = numbers.mu[sample * numbers.mu_row + t]
                linear_row_back(d_drive, du, i, gradients.v, j, wide, mu, numbers.gain)
            elif scaled:
                at = (t % every * rows + r) * wide
                scaled_row_back(
                    d_drive, du, i, u, v_all, r_all, at, gradients.v, gradients.m, j, wide,
                    numbers,
                )  # fmt: skip
        if wants_dx and shape.driven:
            for r in range(rows):
                copy(dx, ((first + r) * time + t) * wide, du, (now + r) * row, wide)
        elif wants_dx:
            clear(dx_step, 0, rows * padded_x)
            add_packed_product(
                dx_step, 0, padded_x, du, now * row, row, Wt, rows, padded_x, wide
            )  # fmt: skip
            for r in range(rows):
                at = ((first + r) * time + t) * features
                copy_ragged(dx, at, dx_step, r * padded_x, features)
        if slot == ring - 1 or t == 0:
            count = (slot + 1) * rows
            add_product(sums.U, wide, h_ring, padded, dy, row, units, wide, count)
            if not shape.driven:
                add_product(sums.W, wide, x_ring, features, du, row, features, wide, count)
            for r in range(count):
                add_to(sums.b, 0, du, r * row, wide)
                if shape.cell != MODRELU:
                    add_to(sums.side, 0, dy, r * row, wide)
    # The gradient of the first h.
    for r in range(rows):
        if carried[r]:
            copy(dh, r * padded, gradients.h, (first + r) * padded, padded)
        else:
            clear(dh, r * padded, padded)
    if time:
        last = (time - 1) % ring * rows * row
        add_packed_product(dh, 0, padded, dy, last, row, Ut, rows, padded, wide)
    copy(gradients.h, first * padded, dh, 0, rows * padded)
