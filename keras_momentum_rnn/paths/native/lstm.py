"""An LSTM with a rule on its drive, over time, for some samples of a batch.

Arrays are flat. Widths are padded to vectors: `units` numbers to `padded`, and the drive to
4 times that, gate by gate. Pads are zero in every weight, so they stay zero in every state.
"""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.functions import sigmoid, tanh
from keras_momentum_rnn.paths.native.products import add_product
from keras_momentum_rnn.paths.native.rules import (
    LINEAR,
    ONE,
    SCALED,
    linear_row,
    linear_row_back,
    scaled_row,
    scaled_row_again,
    scaled_row_back,
)
from keras_momentum_rnn.paths.native.vectors import WIDTH, load, splat, store

ZERO = np.float32(0)


@njit(forceinline=True)
def copy(target, i, source, j, width):
    for k in range(0, width, WIDTH):
        store(target, i + k, load(source, j + k))


@njit(forceinline=True)
def copy_ragged(target, i, source, j, width):
    """As `copy`, where the width need not be a multiple of 16."""
    whole = width // WIDTH * WIDTH
    copy(target, i, source, j, whole)
    for k in range(whole, width):
        target[i + k] = source[j + k]


@njit(forceinline=True)
def clear(target, i, width):
    for k in range(0, width, WIDTH):
        store(target, i + k, splat(ZERO))


@njit(forceinline=True)
def add_to(target, i, source, j, width):
    for k in range(0, width, WIDTH):
        store(target, i + k, load(target, i + k) + load(source, j + k))


@njit(forceinline=True)
def gate(z, i, c, j, c_new, h, k, padded):
    """Turn the preactivations of a row into its gates, and take its step."""
    for n in range(0, padded, WIDTH):
        input_gate = sigmoid(load(z, i + n))
        forget_gate = sigmoid(load(z, i + padded + n))
        candidate = tanh(load(z, i + 2 * padded + n))
        output_gate = sigmoid(load(z, i + 3 * padded + n))
        store(z, i + n, input_gate)
        store(z, i + padded + n, forget_gate)
        store(z, i + 2 * padded + n, candidate)
        store(z, i + 3 * padded + n, output_gate)
        cell = forget_gate * load(c, j + n) + input_gate * candidate
        store(c, c_new + n, cell)
        store(h, k + n, output_gate * tanh(cell))


@njit(forceinline=True)
def gate_back(gates, i, c, j, c_new, dh, l, dc, k, dz, at, padded):
    """From dh and dc of a row's new states to dz, and to dc of its old."""
    one = splat(ONE)
    for n in range(0, padded, WIDTH):
        input_gate = load(gates, i + n)
        forget_gate = load(gates, i + padded + n)
        candidate = load(gates, i + 2 * padded + n)
        output_gate = load(gates, i + 3 * padded + n)
        squashed = tanh(load(c, c_new + n))
        d_h = load(dh, l + n)
        d_c = load(dc, k + n) + d_h * output_gate * (one - squashed * squashed)
        store(dz, at + n, d_c * candidate * input_gate * (one - input_gate))
        d_forget = d_c * load(c, j + n) * forget_gate * (one - forget_gate)
        store(dz, at + padded + n, d_forget)
        store(dz, at + 2 * padded + n, d_c * input_gate * (one - candidate * candidate))
        d_output = d_h * squashed * output_gate * (one - output_gate)
        store(dz, at + 3 * padded + n, d_output)
        store(dc, k + n, d_c * forget_gate)


@njit(nogil=True, cache=True)
def forward(
    x, features, W, b, U, side, most, h, v, m, rule, mu, mu_row, gain, factor, beta, epsilon,
    lengths, time, batch, first, rows, units, padded, outputs, C, gates, v_kept, m_kept, every,
):  # fmt: skip
    """Run `rows` samples from sample `first` on.

    Args:
        x: `(batch, time, features)`.
        W, U: `packed`, panels of `most` vectors. b, side: one number for each of the drive.
        h: `(batch, padded)`, and v and m `(batch, 4 padded)`: states, changed in place.
        mu: `(samples, time)`, those of a sample `mu_row` apart, 0 where all share one row.
        lengths: `(batch,)`, after how many steps each sample ends.
        outputs: `(batch, time, units)`, written.
        C: `(time + 1, batch, padded)`; the first is given, the others are written.
        gates: `(time, batch, 4 padded)`, written.
        v_kept, m_kept: `(chunks, batch, 4 padded)`, written: v and m before every chunk of
            `every` steps, for `backward` to compute the others from.
    """
    wide = 4 * padded
    for t in range(time):
        z = (t * batch + first) * wide
        if rule == SCALED and t % every == 0:
            kept = (t // every * batch + first) * wide
            copy(v_kept, kept, v, first * wide, rows * wide)
            copy(m_kept, kept, m, first * wide, rows * wide)
        for r in range(rows):
            copy(gates, z + r * wide, b, 0, wide)
        add_product(
            gates, z, wide, x, (first * time + t) * features, time * features, 1,
            W, 0, 0, rows, wide, features, most, True,
        )  # fmt: skip
        for r in range(rows):
            sample, i, j = first + r, z + r * wide, (first + r) * wide
            if t < lengths[sample]:
                if rule == LINEAR:
                    linear_row(gates, i, v, j, wide, mu[sample * mu_row + t], gain)
                elif rule == SCALED:
                    scaled_row(
                        gates, i, v, m, j, wide, mu[0], gain, factor, beta, epsilon
                    )  # fmt: skip
            add_to(gates, i, side, 0, wide)
        add_product(
            gates, z, wide, h, first * padded, padded, 1,
            U, 0, 0, rows, wide, units, most, True,
        )  # fmt: skip
        for r in range(rows):
            sample = first + r
            c, c_new = (t * batch + sample) * padded, ((t + 1) * batch + sample) * padded
            if t < lengths[sample]:
                gate(gates, z + r * wide, C, c, c_new, h, sample * padded, padded)
            else:
                copy(C, c_new, C, c, padded)
            out, state = (sample * time + t) * units, sample * padded
            copy_ragged(outputs, out, h, state, units)


@njit(nogil=True, cache=True)
def rule_again(
    x, features, W, b, most, v, m, mu, gain, beta, epsilon, lengths, time, batch, first, rows,
    wide, start, stop, u, v_all, r_all,
):  # fmt: skip
    """Compute u, v' and 1 / sqrt(m' + eps) of the steps from `start` to `stop` again."""
    for t in range(start, stop):
        z = (t - start) * rows * wide
        for r in range(rows):
            copy(u, z + r * wide, b, 0, wide)
        add_product(
            u, z, wide, x, (first * time + t) * features, time * features, 1,
            W, 0, 0, rows, wide, features, most, True,
        )  # fmt: skip
        for r in range(rows):
            if t < lengths[first + r]:
                i, j = z + r * wide, r * wide
                scaled_row_again(
                    u, r_all, i, v, m, v_all, j, wide, mu[0], gain, beta, epsilon
                )  # fmt: skip


@njit(nogil=True, cache=True)
def backward(
    x, features, W, b, most, Wt, Ut, most_x, most_h, padded_x, rule, mu, mu_row, gain, factor,
    beta, epsilon, lengths, time, batch, first, rows, units, padded, outputs, h_first, C, gates,
    v_kept, m_kept, every, d_outputs, has_d_outputs, carry, dc, dv, dm, dx, wants_dx,
    dW, db, dU, d_side, ring,
):  # fmt: skip
    """Go back over what `forward` did, for the same samples.

    Args:
        Wt, Ut: `packed` transposes, their columns `padded_x` and `padded`.
        h_first: `(batch, padded)`, h before the first step.
        d_outputs: `(batch, time, units)`, read if `has_d_outputs`.
        carry, dc: `(batch, padded)`, the gradients of the final h and c, and then those of
            the first. dv, dm: `(batch, 4 padded)`, likewise of the slots.
        dx: `(batch, time, features)`, written if `wants_dx`.
        dW, db, dU, d_side: sums of the weights' gradients, `(features, 4 padded)`,
            `(4 padded,)`, `(units, 4 padded)` and `(4 padded,)`, to which is added.
        ring: int, so many steps are gathered before they are multiplied.
    """
    wide = 4 * padded
    # Rows a power of 2 apart would share few places of the cache.
    apart = wide + WIDTH
    has_rule = rule != 0
    dz = np.zeros(ring * rows * apart, np.float32)
    du = np.zeros(ring * rows * apart if has_rule else WIDTH, np.float32)
    h_ring = np.zeros(ring * rows * padded, np.float32)
    x_ring = np.zeros(ring * rows * features, np.float32)
    dh = np.zeros(rows * padded, np.float32)
    dx_step = np.zeros(rows * padded_x, np.float32)
    chunk = every * rows * wide if rule == SCALED else WIDTH
    u, v_all, r_all = np.empty(chunk, np.float32), np.empty(chunk, np.float32), np.empty(
        chunk, np.float32
    )
    slots = rows * wide if rule == SCALED else WIDTH
    v, m = np.empty(slots, np.float32), np.empty(slots, np.float32)
    carried = np.ones(rows, np.bool_)
    for t in range(time - 1, -1, -1):
        if rule == SCALED and (t == time - 1 or t % every == every - 1):
            start = t // every * every
            kept = (t // every * batch + first) * wide
            copy(v, 0, v_kept, kept, rows * wide)
            copy(m, 0, m_kept, kept, rows * wide)
            rule_again(
                x, features, W, b, most, v, m, mu, gain, beta, epsilon, lengths, time, batch,
                first, rows, wide, start, t + 1, u, v_all, r_all,
            )  # fmt: skip
        slot = (time - 1 - t) % ring
        now, before = slot * rows, (slot - 1) % ring * rows
        for r in range(rows):
            state = (first + r) * padded
            if has_d_outputs:
                out = ((first + r) * time + t) * units
                copy_ragged(dh, r * padded, d_outputs, out, units)
            else:
                clear(dh, r * padded, padded)
            if carried[r]:
                add_to(dh, r * padded, carry, state, padded)
        if t < time - 1:
            add_product(
                dh, 0, padded, dz, before * apart, apart, 1,
                Ut, 0, 0, rows, padded, wide, most_h, True,
            )  # fmt: skip
        for r in range(rows):
            sample, i, j = first + r, (now + r) * apart, (first + r) * wide
            state = sample * padded
            carried[r] = t >= lengths[sample]
            here = (sample * time + t) * features
            copy_ragged(x_ring, (now + r) * features, x, here, features)
            if t == 0:
                copy(h_ring, (now + r) * padded, h_first, state, padded)
            else:
                out = (sample * time + t - 1) * units
                copy_ragged(h_ring, (now + r) * padded, outputs, out, units)
            if carried[r]:
                copy(carry, state, dh, r * padded, padded)
                clear(dz, i, wide)
                if has_rule:
                    clear(du, i, wide)
                continue
            gate_back(
                gates, (t * batch + sample) * wide, C, (t * batch + sample) * padded,
                ((t + 1) * batch + sample) * padded, dh, r * padded, dc, state, dz, i, padded,
            )  # fmt: skip
            if rule == LINEAR:
                linear_row_back(dz, du, i, dv, j, wide, mu[sample * mu_row + t], gain)
            elif rule == SCALED:
                at = ((t % every) * rows + r) * wide
                scaled_row_back(
                    dz, du, i, u, v_all, r_all, at, dv, dm, j, wide, mu[0], gain, factor, beta
                )  # fmt: skip
        d_drive = du if has_rule else dz
        if wants_dx:
            clear(dx_step, 0, rows * padded_x)
            add_product(
                dx_step, 0, padded_x, d_drive, now * apart, apart, 1,
                Wt, 0, 0, rows, padded_x, wide, most_x, True,
            )  # fmt: skip
            for r in range(rows):
                here = ((first + r) * time + t) * features
                copy_ragged(dx, here, dx_step, r * padded_x, features)
        if slot == ring - 1 or t == 0:
            count = (slot + 1) * rows
            add_product(
                dU, 0, wide, h_ring, 0, 1, padded, dz, 0, apart, units, wide, count, most, False
            )  # fmt: skip
            add_product(
                dW, 0, wide, x_ring, 0, 1, features, d_drive, 0, apart,
                features, wide, count, most, False,
            )  # fmt: skip
            for r in range(count):
                add_to(db, 0, d_drive, r * apart, wide)
                add_to(d_side, 0, dz, r * apart, wide)
    # The gradient of the first h; a sample of no step has it in `carry` already.
    for r in range(rows):
        clear(dh, r * padded, padded)
        if carried[r]:
            copy(dh, r * padded, carry, (first + r) * padded, padded)
    last = (time - 1) % ring * rows
    if time:
        add_product(
            dh, 0, padded, dz, last * apart, apart, 1, Ut, 0, 0, rows, padded, wide, most_h, True
        )  # fmt: skip
    for r in range(rows):
        copy(carry, (first + r) * padded, dh, r * padded, padded)
