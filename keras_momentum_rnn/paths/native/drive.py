"""What the loops over time share: their arrays, the rule, and the products with x and h.

Arrays are flat, and the loops see their `simd.pointers`. A width is padded to vectors: `units`
numbers to `padded`, and the drive to `wide`, gate by gate. Pads are zero in every weight, so
they do nothing.

A call of a loop takes some samples, `rows` of them, through time together, so that weights are
read from the cache. Samples are put in the `order` in which they end, the last first, so that
at step t the first `counts[t]` of them are all that there is to compute. x and h at all times
stay in the order given; all else, from states to what is kept, is put in order. Forward, step t
writes what the way back needs:

    kept.h      h after the step, which is the output
    kept.c      c before every step, and after the last
    kept.gates  what `equations` says of each cell
    kept.v, .m  of a scaled rule: v and m before every chunk of `every` steps

Back, from the last step to the first:

    rings.dy of step t + 1 -- times U' --+
    gradients.outputs of step t ---------+--> dh, of the h after step t
    gradients.states.h, if carried ------+     |
                                               | the cell, by kept.gates and kept.c
                                               v
    gradients.states.c  <------------------- rings.dy of step t
                                               |
                                               | the rule, by `again`: the steps of a chunk,
                                               | computed once more from kept.v and kept.m
                                               v
    gradients.states.v, .m  <--------------- rings.du of step t -- times W' --> gradients.x

The gradients of the states are those after step t before it is undone, and those before it
afterwards, in the same memory. That of h goes mostly through the recurrent product, that is
through rings.dy. What goes past it is "carried" in gradients.states.h: of a GRU z dh, and all
of dh where a sample has ended.

A ring has room for some steps, the last one first. When it is full, its rows are multiplied at
once: the gradient of U is the sum of h' dy over them, that of W the sum of x' du.

A sample whose first step is t still has dh, of the h before it, at step t - 1: there it is in
the count of the way back, but held.

What runs once a step is `inline="always"`: Numba puts it into its caller, and does not compile
it a second time on its own, which halves the time of compilation. What runs once a row is
inlined by LLVM (`forceinline`), which is up to a twentieth faster where layers are small.
"""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.arrays import Again, Rings, Scratch, Step
from keras_momentum_rnn.paths.native.equations import (
    LINEAR,
    SCALED,
    WHOLE,
    gain_row,
    linear_row,
    linear_row_back,
    scaled_row,
    scaled_row_again,
    scaled_row_back,
    whole_row,
    whole_row_back,
)
from keras_momentum_rnn.paths.native.simd import (
    START,
    WIDTH,
    add_packed_product,
    add_product,
    add_to,
    clear,
    copy,
    copy_ragged,
    scale,
)

# Forward


@njit(inline="always")
def project(u, i, row, inputs, shape, step):
    """u = W x + b of a step, or x; `row` has room for the x of all samples."""
    t, first, rows = step.t, step.first, step.rows
    x, order, time, wide = inputs.x, inputs.order, shape.time, shape.wide
    if shape.driven:
        for r in range(rows):
            copy(u, i + r * wide, x, (order[first + r] * time + t) * wide, wide)
        return
    W, b, features = inputs.weights.W, inputs.weights.b, shape.features
    for r in range(rows):
        copy(u, i + r * wide, b, START, wide)
        at = (order[first + r] * time + t) * features
        copy_ragged(row, r * features, x, at, features)
    add_packed_product(u, i, wide, row, START, features, W, START, rows, wide, features)


@njit(inline="always")
def add_recurrent_product(product, h, U, dropout, dropped, shape, step):
    """Add h U of a step to `product`, of each gate with its mask on h."""
    first, rows = step.first, step.rows
    padded, wide, units = shape.padded, shape.wide, shape.units
    if not shape.drops:
        add_packed_product(
            product, START, wide, h, first * padded, padded, U, START, rows, wide, units
        )  # fmt: skip
        return
    for gate in range(0, wide, padded):
        for r in range(rows):
            i = first + r
            scale(dropped, r * padded, h, i * padded, dropout, i * wide + gate, padded)
        add_packed_product(
            product, gate, wide, dropped, START, padded, U, gate * units, rows, padded, units
        )  # fmt: skip


@njit(forceinline=True)
def keep_slots(kept, states, numbers, shape, t, first, rows):
    """Keep v and m of a scaled rule before a chunk of steps."""
    if numbers.kind == SCALED and t % shape.every == 0:
        i, j = (t // shape.every * shape.batch + first) * shape.wide, first * shape.wide
        copy(kept.v, i, states.v, j, rows * shape.wide)
        copy(kept.m, i, states.m, j, rows * shape.wide)


@njit(forceinline=True)
def rule_row(u, i, states, numbers, sample, t, shape):
    """u of a row becomes its drive; of the rule `WHOLE`, gain u, the part of y without h U."""
    j = sample * shape.wide
    if numbers.kind == LINEAR:
        mu = numbers.mu[sample * numbers.mu_row + t]
        linear_row(u, i, states.v, j, shape.wide, mu, numbers.gain)
    elif numbers.kind == SCALED:
        scaled_row(u, i, states.v, states.m, j, shape.wide, numbers)
    elif numbers.kind == WHOLE:
        gain_row(u, i, shape.wide, numbers.gain)


@njit(forceinline=True)
def rule_row_after_product(y, i, states, numbers, sample, t, shape):
    """y of a row, gain u + h U, becomes z of the rule `WHOLE`."""
    if numbers.kind == WHOLE:
        mu = numbers.mu[sample * numbers.mu_row + t]
        whole_row(y, i, states.v, sample * shape.wide, shape.wide, mu)


# Back


@njit(inline="always")
def ring_row(width):
    """Return how far apart rows are: a power of 2 apart they share few places of the cache."""
    return width + WIDTH


@njit(inline="always")
def padded_features(shape):
    return -(-shape.features // WIDTH) * WIDTH


def new_scratch(shape, rows, ring, kind, apart):
    """Return `Scratch` with rings of so many steps; `apart`: is du another than dy?"""
    size = ring * rows * ring_row.py_func(shape.wide)
    dy = np.zeros(size, np.float32)
    du = np.zeros(size, np.float32) if apart else dy
    h = np.zeros(ring * rows * shape.padded, np.float32)
    x = np.zeros(WIDTH if shape.driven else ring * rows * shape.features, np.float32)
    scaled = kind == SCALED
    chunk = shape.every * rows * shape.wide if scaled else WIDTH
    slots = rows * shape.wide if scaled else WIDTH
    again = Again(
        np.empty(chunk, np.float32), np.empty(chunk, np.float32), np.empty(chunk, np.float32),
        np.empty(slots, np.float32), np.empty(slots, np.float32), slots,
    )  # fmt: skip
    dh = np.zeros(rows * shape.padded, np.float32)
    dropped = np.zeros((ring * rows if shape.drops else 1) * shape.padded, np.float32)
    dx = np.zeros(rows * padded_features.py_func(shape), np.float32)
    rings = Rings(dy, du, h, x, np.zeros(ring * rows, np.int64))
    return Scratch(rings, again, dh, dx, np.full(rows, True), dropped)


@njit(forceinline=True)
def hold_back(gradients, order, shape, t, first, last):
    """Go back over a step of samples that only hold: the output was h, and x did nothing."""
    units, features = shape.units, shape.wide if shape.driven else shape.features
    for sample in range(first, last):
        at, h = order[sample] * shape.time + t, sample * shape.padded
        if gradients.has_outputs:
            for k in range(units):
                gradients.states.h[h + k] += gradients.outputs[at * units + k]
        if gradients.wants_x:
            for k in range(features):
                gradients.x[at * features + k] = 0


@njit(inline="always")
def rule_again(scratch, inputs, kept, counts, shape, t, first, rows):
    """At the last step of a chunk compute a scaled rule of its steps again."""
    wide, every, again = shape.wide, shape.every, scratch.again
    if inputs.numbers.kind != SCALED or not (t == shape.time - 1 or t % every == every - 1):
        return
    i = (t // every * shape.batch + first) * wide
    copy(again.v, START, kept.v, i, rows * wide)
    copy(again.m, START, kept.m, i, rows * wide)
    for s in range(t // every * every, t + 1):
        z = s % every * rows * wide
        project(again.u, z, scratch.dx, inputs, shape, Step(s, first, counts[s], 0, 0, 0))
        for r in range(counts[s]):
            if inputs.active[(first + r) * shape.time + s]:
                scaled_row_again(
                    again.u, again.inverse_root, z + r * wide,
                    again.v, again.m, again.velocity, r * wide, wide, inputs.numbers,
                )  # fmt: skip


@njit(inline="always")
def gradient_of_h(scratch, inputs, saved, gradients, shape, step):
    """Set dh, of the h after a step."""
    t, first, rows, _, after, rows_after = step
    time, units, padded = shape.time, shape.units, shape.padded
    dh, carried, order, masks = scratch.dh, scratch.carried, inputs.order, inputs.dropout
    d_outputs, has_outputs, d_h = gradients.outputs, gradients.has_outputs, gradients.states.h
    for r in range(rows):
        if has_outputs:
            copy_ragged(dh, r * padded, d_outputs, (order[first + r] * time + t) * units, units)
        else:
            clear(dh, r * padded, padded)
        if carried[r]:
            add_to(dh, r * padded, d_h, (first + r) * padded, padded)
    add_through_recurrent_product(scratch, masks, saved, shape, first, rows_after, after)


@njit(inline="always")
def add_through_recurrent_product(scratch, dropout, saved, shape, first, rows, now):
    """Add to dh what comes from dy of a step, whose rows begin there in the ring."""
    padded, wide, row = shape.padded, shape.wide, ring_row(shape.wide)
    dh, dy, Ut, dropped = scratch.dh, scratch.rings.dy, saved.transposed[1], scratch.dropped
    if not shape.drops:
        add_packed_product(
            dh, START, padded, dy, now * row, row, Ut, START, rows, padded, wide
        )  # fmt: skip
        return
    for gate in range(0, wide, padded):
        clear(dropped, START, rows * padded)
        add_packed_product(
            dropped, START, padded, dy, now * row + gate, row, Ut, gate * padded,
            rows, padded, padded,
        )  # fmt: skip
        for r in range(rows):
            i, mask = r * padded, (first + r) * wide + gate
            scale(dropped, i, dropped, i, dropout, mask, padded)
            add_to(dh, i, dropped, i, padded)


@njit(forceinline=True)
def gather(rings, n, x, h_first, h_all, order, sample, t, shape):
    """Copy x and the old h of a sample's step to row n of the rings."""
    rings.sample[n] = sample
    features, units, padded = shape.features, shape.units, shape.padded
    given = order[sample] * shape.time + t
    if not shape.driven:
        at = given * features
        copy_ragged(rings.x, n * features, x, at, features)
    if t == 0:
        copy(rings.h, n * padded, h_first, sample * padded, padded)
    else:
        at = (given - 1) * units
        copy_ragged(rings.h, n * padded, h_all, at, units)


@njit(forceinline=True)
def rule_row_back(d_drive, du, again, r, numbers, states, shape, step):
    """From the gradient of a row's drive, in a ring, to du."""
    wide, sample, t = shape.wide, step.first + r, step.t
    i, j = (step.now + r) * ring_row(wide), sample * wide
    if numbers.kind == LINEAR:
        mu = numbers.mu[sample * numbers.mu_row + t]
        linear_row_back(d_drive, du, i, states.v, j, wide, mu, numbers.gain)
    elif numbers.kind == WHOLE:
        mu = numbers.mu[sample * numbers.mu_row + t]
        whole_row_back(d_drive, du, i, states.v, j, wide, mu, numbers.gain)
    elif numbers.kind == SCALED:
        at = t % shape.every * again.apart + r * wide
        scaled_row_back(
            d_drive, du, i, again.u, again.velocity, again.inverse_root, at,
            states.v, states.m, j, wide, numbers,
        )  # fmt: skip


@njit(inline="always")
def gradient_of_x(scratch, order, saved, gradients, shape, step):
    """Write dx of a step."""
    t, first, rows, now = step.t, step.first, step.rows, step.now
    time, features, wide, row = shape.time, shape.features, shape.wide, ring_row(shape.wide)
    du, d_x, dx, Wt = scratch.rings.du, gradients.x, scratch.dx, saved.transposed[0]
    if shape.driven:
        for r in range(rows):
            copy(d_x, (order[first + r] * time + t) * wide, du, (now + r) * row, wide)
        return
    padded_x = padded_features(shape)
    clear(dx, START, rows * padded_x)
    add_packed_product(
        dx, START, padded_x, du, now * row, row, Wt, START, rows, padded_x, wide
    )  # fmt: skip
    for r in range(rows):
        copy_ragged(d_x, (order[first + r] * time + t) * features, dx, r * padded_x, features)


@njit(inline="always")
def add_gradients(sums, scratch, dropout, count, shape, has_side):
    """Add the first `count` rows of the rings to the gradients of W, b, U and side."""
    padded, wide, features, units = shape.padded, shape.wide, shape.features, shape.units
    dropped, row, b, side = scratch.dropped, ring_row(wide), sums.b, sums.side
    dy, du, h, x, sample = scratch.rings
    if shape.drops:
        for gate in range(0, wide, padded):
            for n in range(count):
                i, mask = n * padded, sample[n] * wide + gate
                scale(dropped, i, h, i, dropout, mask, padded)
            add_product(
                sums.U, gate, wide, dropped, padded, dy, gate, row, units, padded, count
            )  # fmt: skip
    else:
        add_product(sums.U, START, wide, h, padded, dy, START, row, units, wide, count)
    if not shape.driven:
        add_product(
            sums.W, START, wide, x, features, du, START, row, features, wide, count
        )  # fmt: skip
    for r in range(count):
        add_to(b, START, du, r * row, wide)
        if has_side:
            add_to(side, START, dy, r * row, wide)


@njit(inline="always")
def gradient_of_first_h(scratch, dropout, saved, gradients, shape, first, rows, after, count):
    """Write the gradient of the h before all steps; `count` rows of the first begin there."""
    padded, dh, h = shape.padded, scratch.dh, gradients.states.h
    for r in range(rows):
        if scratch.carried[r]:
            copy(dh, r * padded, h, (first + r) * padded, padded)
        else:
            clear(dh, r * padded, padded)
    add_through_recurrent_product(scratch, dropout, saved, shape, first, count, after)
    copy(h, first * padded, dh, START, rows * padded)
