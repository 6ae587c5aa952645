"""What the loops of all recurrences share: their arrays, the rule, and the sides of x and h.

Arrays are flat. A width is padded to vectors: `units` numbers to `padded`, and the drive to
`wide`, gate by gate. Pads are zero in every weight, so they do nothing.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.memory import add_to, clear, copy, copy_ragged
from keras_momentum_rnn.paths.native.products import add_packed_product, add_product
from keras_momentum_rnn.paths.native.rules import (
    LINEAR,
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

    `memories` are the cell's states beside h, and `inner` is the width of the drive of a
    nested memory. Where `driven`, x is the drive, padded gate by gate, and W does nothing.
    """

    cell: int
    batch: int
    time: int
    features: int
    units: int
    padded: int
    wide: int
    memories: int
    inner: int
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
    share: float
    epsilon: float


class Weights(NamedTuple):
    """W and U are `packed`, the biases one number for each of the drive.

    Or their gradients, to which is added: `(features or units, wide)`, `(wide,)`.
    """

    W: np.ndarray
    b: np.ndarray
    U: np.ndarray
    side: np.ndarray


class States(NamedTuple):
    """h is `(batch, padded)`, the slots v and m `(batch, wide)`; or their gradients.

    c is `(batch, memories * padded)`, the cell's other states side by side.
    """

    h: np.ndarray
    c: np.ndarray
    v: np.ndarray
    m: np.ndarray


class Kept(NamedTuple):
    """What the way back needs.

    h: `(batch, time, units)`, the outputs.
    c: `(time + 1, batch, memories * padded)`; the first is given.
    gates: `(time, batch, kept)`, see `cells`.
    v, m: `(chunks, batch, wide)`, before every chunk of steps.
    """

    h: np.ndarray
    c: np.ndarray
    gates: np.ndarray
    v: np.ndarray
    m: np.ndarray


class Rings(NamedTuple):
    """Rows of some steps, gathered before they are multiplied for gradients of the weights.

    dy and du are the gradients of the recurrent product and of u, `ring_row(wide)` apart.
    """

    dy: np.ndarray
    du: np.ndarray
    h: np.ndarray
    x: np.ndarray


class Again(NamedTuple):
    """A scaled rule, computed again: u, v' and 1 / sqrt(m' + eps) of a chunk of steps."""

    u: np.ndarray
    v_all: np.ndarray
    r_all: np.ndarray
    v: np.ndarray
    m: np.ndarray


# Forward


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


@njit(forceinline=True)
def keep_slots(kept, states, numbers, t, shape, first, rows):
    """Keep v and m of a scaled rule before a chunk of steps."""
    if numbers.kind == SCALED and t % shape.every == 0:
        i, j = (t // shape.every * shape.batch + first) * shape.wide, first * shape.wide
        copy(kept.v, i, states.v, j, rows * shape.wide)
        copy(kept.m, i, states.m, j, rows * shape.wide)


@njit(forceinline=True)
def rule_row(u, i, states, numbers, sample, t, shape):
    """u of a row becomes its drive."""
    j = sample * shape.wide
    if numbers.kind == LINEAR:
        mu = numbers.mu[sample * numbers.mu_row + t]
        linear_row(u, i, states.v, j, shape.wide, mu, numbers.gain)
    elif numbers.kind == SCALED:
        scaled_row(u, i, states.v, states.m, j, shape.wide, numbers)


# Back


@njit(forceinline=True)
def ring_row(width):
    """Return how far apart rows are: a power of 2 apart they share few places of the cache."""
    return width + WIDTH


@njit(forceinline=True)
def new_rings(shape, rows, ring, apart):
    """Return `Rings` of so many steps; `apart` is whether du is another than dy."""
    size = ring * rows * ring_row(shape.wide)
    dy = np.zeros(size, np.float32)
    du = np.zeros(size, np.float32) if apart else dy
    h = np.zeros(ring * rows * shape.padded, np.float32)
    x = np.zeros(WIDTH if shape.driven else ring * rows * shape.features, np.float32)
    return Rings(dy, du, h, x)


@njit(forceinline=True)
def new_again(shape, rows, numbers):
    scaled = numbers.kind == SCALED
    chunk = shape.every * rows * shape.wide if scaled else WIDTH
    slots = rows * shape.wide if scaled else WIDTH
    return Again(
        np.empty(chunk, np.float32), np.empty(chunk, np.float32), np.empty(chunk, np.float32),
        np.empty(slots, np.float32), np.empty(slots, np.float32),
    )  # fmt: skip


@njit(forceinline=True)
def rule_again(again, kept, x, weights, numbers, lengths, t, shape, first, rows):
    """At the last step t of a chunk compute a scaled rule of its steps again."""
    wide, every = shape.wide, shape.every
    if numbers.kind != SCALED or not (t == shape.time - 1 or t % every == every - 1):
        return
    i = (t // every * shape.batch + first) * wide
    copy(again.v, 0, kept.v, i, rows * wide)
    copy(again.m, 0, kept.m, i, rows * wide)
    start = t // every * every
    for s in range(start, t + 1):
        z = (s - start) * rows * wide
        project(again.u, z, x, weights, s, shape, first, rows)
        for r in range(rows):
            if s < lengths[first + r]:
                i, j = z + r * wide, r * wide
                scaled_row_again(
                    again.u, again.r_all, i, again.v, again.m, again.v_all, j, wide, numbers
                )  # fmt: skip


@njit(forceinline=True)
def gradient_of_h(
    dh, rings, before, d_outputs, has_d_outputs, gradients, carried, Ut, t, shape, first, rows
):
    """Set dh of a step's new h; the next step's rows of `rings` begin at row `before`."""
    time, units, padded, wide = shape.time, shape.units, shape.padded, shape.wide
    for r in range(rows):
        if has_d_outputs:
            copy_ragged(dh, r * padded, d_outputs, ((first + r) * time + t) * units, units)
        else:
            clear(dh, r * padded, padded)
        if carried[r]:
            add_to(dh, r * padded, gradients.h, (first + r) * padded, padded)
    if t < time - 1:
        row = ring_row(wide)
        add_packed_product(
            dh, 0, padded, rings.dy, before * row, row, Ut, rows, padded, wide
        )  # fmt: skip


@njit(forceinline=True)
def gather(rings, n, x, h_first, kept, sample, t, shape):
    """Copy x and the old h of a sample's step to row n of the rings."""
    features, units, padded = shape.features, shape.units, shape.padded
    if not shape.driven:
        at = (sample * shape.time + t) * features
        copy_ragged(rings.x, n * features, x, at, features)
    if t == 0:
        copy(rings.h, n * padded, h_first, sample * padded, padded)
    else:
        at = (sample * shape.time + t - 1) * units
        copy_ragged(rings.h, n * padded, kept.h, at, units)


@njit(forceinline=True)
def rule_row_back(d_drive, rings, i, again, gradients, numbers, sample, t, shape, r, rows):
    """From the gradient of a row's drive to du."""
    wide = shape.wide
    j = sample * wide
    if numbers.kind == LINEAR:
        mu = numbers.mu[sample * numbers.mu_row + t]
        linear_row_back(d_drive, rings.du, i, gradients.v, j, wide, mu, numbers.gain)
    elif numbers.kind == SCALED:
        at = (t % shape.every * rows + r) * wide
        scaled_row_back(
            d_drive, rings.du, i, again.u, again.v_all, again.r_all, at,
            gradients.v, gradients.m, j, wide, numbers,
        )  # fmt: skip


@njit(forceinline=True)
def gradient_of_x(dx, dx_step, rings, now, Wt, t, shape, first, rows):
    """Write dx of a step, whose rows of `rings` begin at row `now`."""
    time, features, wide = shape.time, shape.features, shape.wide
    row, padded_x = ring_row(wide), len(dx_step) // rows
    if shape.driven:
        for r in range(rows):
            copy(dx, ((first + r) * time + t) * wide, rings.du, (now + r) * row, wide)
        return
    clear(dx_step, 0, rows * padded_x)
    add_packed_product(
        dx_step, 0, padded_x, rings.du, now * row, row, Wt, rows, padded_x, wide
    )  # fmt: skip
    for r in range(rows):
        at = ((first + r) * time + t) * features
        copy_ragged(dx, at, dx_step, r * padded_x, features)


@njit(forceinline=True)
def add_gradients(sums, rings, count, shape, has_side):
    """Add the first `count` rows of the rings to the gradients of W, b, U and side."""
    padded, wide, features = shape.padded, shape.wide, shape.features
    row = ring_row(wide)
    add_product(sums.U, wide, rings.h, padded, rings.dy, row, shape.units, wide, count)
    if not shape.driven:
        add_product(sums.W, wide, rings.x, features, rings.du, row, features, wide, count)
    for r in range(count):
        add_to(sums.b, 0, rings.du, r * row, wide)
        if has_side:
            add_to(sums.side, 0, rings.dy, r * row, wide)


@njit(forceinline=True)
def gradient_of_first_h(dh, rings, last, gradients, carried, Ut, shape, first, rows):
    """Write it to `gradients.h`; the first step's rows of `rings` begin at row `last`."""
    padded, row = shape.padded, ring_row(shape.wide)
    for r in range(rows):
        if carried[r]:
            copy(dh, r * padded, gradients.h, (first + r) * padded, padded)
        else:
            clear(dh, r * padded, padded)
    if shape.time:
        add_packed_product(
            dh, 0, padded, rings.dy, last * row, row, Ut, rows, padded, shape.wide
        )  # fmt: skip
    copy(gradients.h, first * padded, dh, 0, rows * padded)
