"""A step of a rule and a step of a cell on rows of vectors, and the ways back.

A row is one sample's. Each function takes arrays and, behind each, where the row begins in it.

The drive of a row takes the place of its u = W x + b. Of the rule `SCALED`, v' = mu v + gain u,
m' = beta m + share u^2, drive = factor v' / sqrt(m' + epsilon). Of the rule `WHOLE`,
which acts after the recurrent product, y = gain u + h U, z = y + mu (y - v), v' = y.

Of each step of a cell a row of numbers is kept, so many times `padded`: of an LSTM its gates
i, f, a and o; of a GRU z, r, a and y, the recurrent part of the candidate a; of the others h.
"""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.simd import (
    HALF,
    ONE,
    START,
    TWO,
    WIDTH,
    ZERO,
    add_to,
    clip,
    copy,
    inverse_root,
    load,
    multiply_add,
    ordered_product,
    sigmoid,
    signed,
    splat,
    store,
    tanh,
)

# Rules
NONE, LINEAR, SCALED, WHOLE = 0, 1, 2, 3
# Cells
LSTM, GRU, ELMAN, MODRELU = 0, 1, 2, 3
INFINITY = np.float32(np.inf)


# Rules


@njit(forceinline=True)
def linear_row(u, i, v, j, width, mu, gain):
    """v' = mu v + gain u; u becomes v'."""
    mu, gain = splat(mu), splat(gain)
    for k in range(0, width, WIDTH):
        new = multiply_add(mu, load(v, j + k), gain * load(u, i + k))
        store(v, j + k, new)
        store(u, i + k, new)


@njit(forceinline=True)
def advanced(x, v, m, j, mu, gain, beta, share):
    """Return v' and m' of a vector of u, and write them."""
    velocity = multiply_add(mu, load(v, j), gain * x)
    moment = multiply_add(beta, load(m, j), share * (x * x))
    store(v, j, velocity)
    store(m, j, moment)
    return velocity, moment


@njit(forceinline=True)
def scaled_row(u, i, v, m, j, width, numbers):
    """u becomes the drive. `numbers` are `arrays.Numbers`."""
    mu, gain, factor = splat(numbers.mu[0]), splat(numbers.gain), splat(numbers.factor)
    share, beta = splat(numbers.share), splat(numbers.beta)
    epsilon = splat(numbers.epsilon)
    for k in range(0, width, WIDTH):
        velocity, moment = advanced(load(u, i + k), v, m, j + k, mu, gain, beta, share)
        store(u, i + k, factor * velocity * inverse_root(moment + epsilon))


@njit(forceinline=True)
def scaled_row_again(u, r, i, v, m, v_all, j, width, numbers):
    """As `scaled_row`, but u stays; v' goes to `v_all` and 1 / sqrt(m' + eps) to r."""
    mu, gain = splat(numbers.mu[0]), splat(numbers.gain)
    share, beta = splat(numbers.share), splat(numbers.beta)
    epsilon = splat(numbers.epsilon)
    for k in range(0, width, WIDTH):
        velocity, moment = advanced(load(u, i + k), v, m, j + k, mu, gain, beta, share)
        store(v_all, i + k, velocity)
        store(r, i + k, inverse_root(moment + epsilon))


@njit(forceinline=True)
def linear_row_back(d_drive, du, i, dv, j, width, mu, gain):
    """dv holds the gradient of the step's v', and then that of its v."""
    mu, gain = splat(mu), splat(gain)
    for k in range(0, width, WIDTH):
        d = load(d_drive, i + k) + load(dv, j + k)
        store(du, i + k, gain * d)
        store(dv, j + k, mu * d)


@njit(forceinline=True)
def scaled_row_back(d_drive, du, i, u, v_all, r, at, dv, dm, j, width, numbers):
    """dv and dm hold the gradients of the step's v' and m', and then those of its v and m."""
    mu, gain, factor = splat(numbers.mu[0]), splat(numbers.gain), splat(numbers.factor)
    share, beta = splat(TWO * numbers.share), splat(numbers.beta)
    half = splat(HALF)
    for k in range(0, width, WIDTH):
        root = load(r, at + k)
        d = factor * load(d_drive, i + k) * root
        # In another order the third power of the root comes first, of large u 0 in float32, or
        # d times the root, of a tiny epsilon infinite.
        drive = ordered_product(load(v_all, at + k), root)
        d_moment = load(dm, j + k) - half * ordered_product(ordered_product(drive, d), root)
        d_velocity = load(dv, j + k) + d
        store(du, i + k, multiply_add(share * load(u, at + k), d_moment, gain * d_velocity))
        store(dv, j + k, mu * d_velocity)
        store(dm, j + k, beta * d_moment)


@njit(forceinline=True)
def gain_row(u, i, width, gain):
    """u becomes gain u."""
    for k in range(0, width, WIDTH):
        store(u, i + k, splat(gain) * load(u, i + k))


@njit(forceinline=True)
def whole_row(y, i, v, j, width, mu):
    """y becomes z = y + mu (y - v); v' = y."""
    for k in range(0, width, WIDTH):
        new = load(y, i + k)
        store(y, i + k, multiply_add(splat(mu), new - load(v, j + k), new))
        store(v, j + k, new)


@njit(forceinline=True)
def whole_row_back(dy, du, i, dv, j, width, mu, gain):
    """dy holds the gradient of z, and then that of y; dv that of the step's v', then of v."""
    for k in range(0, width, WIDTH):
        d_z = load(dy, i + k)
        d = multiply_add(splat(mu), d_z, d_z) + load(dv, j + k)
        store(dy, i + k, d)
        store(du, i + k, splat(gain) * d)
        store(dv, j + k, splat(-mu) * d_z)


# Cells, each by its number


@njit(forceinline=True)
def before_product(cell, u, y, i, side, wide):
    """Add the bias beside the recurrent product to it: to y of a GRU, else to u."""
    if cell == GRU:
        copy(y, i, side, START, wide)
    elif cell != MODRELU:
        add_to(u, i, side, START, wide)


@njit(forceinline=True)
def cell_row(cell, u, y, i, side, gates, at, c, j, c_new, h, k, padded):
    """From the drive of a row and its recurrent product to its new states."""
    if cell == GRU:
        gru_row(u, i, y, i, gates, at, h, k, padded)
    elif cell == ELMAN:
        elman_row(u, i, gates, at, h, k, padded)
    elif cell == MODRELU:
        modrelu_row(u, i, side, gates, at, h, k, padded)
    else:
        lstm_row(u, i, gates, at, c, j, c_new, h, k, padded)


@njit(forceinline=True)
def cell_row_back(cell, gates, at, c, j, c_new, h, n, d, r, dh, dc, k, side, dy, du, i, padded):
    """From the gradient of a row's new h to dy, that of the recurrent product, and du.

    Args:
        h: the old ones.
        d: the gradient of the new h.
        dh, dc: gradients of the new states, and then of the old. Of a GRU dh is then what
            goes past the recurrent product.
        side: the gradient of the bias beside the product, to which that of modrelu is added.
    """
    if cell == GRU:
        gru_row_back(gates, at, h, n, d, r, dh, k, dy, du, i, padded)
    elif cell == ELMAN:
        elman_row_back(gates, at, d, r, dy, i, padded)
    elif cell == MODRELU:
        modrelu_row_back(gates, at, d, r, dy, i, side, padded)
    else:
        lstm_row_back(gates, at, c, j, c_new, d, r, dc, k, dy, i, padded)


@njit(forceinline=True)
def lstm_row(z, i, gates, at, c, j, c_new, h, k, padded):
    """c' = sigmoid(f) c + sigmoid(i) tanh(a); h' = sigmoid(o) tanh(c')."""
    for n in range(0, padded, WIDTH):
        input_gate = sigmoid(load(z, i + n))
        forget_gate = sigmoid(load(z, i + padded + n))
        candidate = tanh(load(z, i + 2 * padded + n))
        output_gate = sigmoid(load(z, i + 3 * padded + n))
        store(gates, at + n, input_gate)
        store(gates, at + padded + n, forget_gate)
        store(gates, at + 2 * padded + n, candidate)
        store(gates, at + 3 * padded + n, output_gate)
        cell = forget_gate * load(c, j + n) + input_gate * candidate
        store(c, c_new + n, cell)
        store(h, k + n, output_gate * tanh(cell))


@njit(forceinline=True)
def lstm_row_back(gates, at, c, j, c_new, dh, d, dc, k, dz, i, padded):
    """From dh and dc of a row's new states to dz, and to dc of its old."""
    one = splat(ONE)
    for n in range(0, padded, WIDTH):
        input_gate = load(gates, at + n)
        forget_gate = load(gates, at + padded + n)
        candidate = load(gates, at + 2 * padded + n)
        output_gate = load(gates, at + 3 * padded + n)
        squashed = tanh(load(c, c_new + n))
        d_h = load(dh, d + n)
        d_c = load(dc, k + n) + d_h * output_gate * (one - squashed * squashed)
        store(dz, i + n, d_c * candidate * input_gate * (one - input_gate))
        d_forget = d_c * load(c, j + n) * forget_gate * (one - forget_gate)
        store(dz, i + padded + n, d_forget)
        store(dz, i + 2 * padded + n, d_c * input_gate * (one - candidate * candidate))
        d_output = d_h * squashed * output_gate * (one - output_gate)
        store(dz, i + 3 * padded + n, d_output)
        store(dc, k + n, d_c * forget_gate)


@njit(forceinline=True)
def gru_row(u, i, y, j, kept, at, h, k, padded):
    """h' = z h + (1 - z) tanh(u_a + r y_a), z and r from u + y; y = h U + b."""
    one = splat(ONE)
    for n in range(0, padded, WIDTH):
        update = sigmoid(load(u, i + n) + load(y, j + n))
        reset = sigmoid(load(u, i + padded + n) + load(y, j + padded + n))
        recurrent = load(y, j + 2 * padded + n)
        candidate = tanh(load(u, i + 2 * padded + n) + reset * recurrent)
        store(kept, at + n, update)
        store(kept, at + padded + n, reset)
        store(kept, at + 2 * padded + n, candidate)
        store(kept, at + 3 * padded + n, recurrent)
        # Not a sum of products: in another order, candidate + update (h - candidate), an h that
        # is held would take the rounding of the candidate.
        store(h, k + n, multiply_add(update, load(h, k + n), (one - update) * candidate))


@njit(forceinline=True)
def gru_row_back(kept, at, h, j, dh, d, carry, k, dy, du, i, padded):
    """From dh of a row's new h to du, dy, and in `carry` what goes past y to its old."""
    one = splat(ONE)
    for n in range(0, padded, WIDTH):
        update, reset = load(kept, at + n), load(kept, at + padded + n)
        candidate = load(kept, at + 2 * padded + n)
        d_h = load(dh, d + n)
        d_candidate = d_h * (one - update) * (one - candidate * candidate)
        d_update = d_h * (load(h, j + n) - candidate) * update * (one - update)
        recurrent = load(kept, at + 3 * padded + n)
        d_reset = d_candidate * recurrent * reset * (one - reset)
        store(du, i + n, d_update)
        store(dy, i + n, d_update)
        store(du, i + padded + n, d_reset)
        store(dy, i + padded + n, d_reset)
        store(du, i + 2 * padded + n, d_candidate)
        store(dy, i + 2 * padded + n, d_candidate * reset)
        store(carry, k + n, d_h * update)


@njit(forceinline=True)
def elman_row(z, i, kept, at, h, k, padded):
    """h' = tanh(z)."""
    for n in range(0, padded, WIDTH):
        state = tanh(load(z, i + n))
        store(kept, at + n, state)
        store(h, k + n, state)


@njit(forceinline=True)
def elman_row_back(kept, at, dh, d, dz, i, padded):
    one = splat(ONE)
    for n in range(0, padded, WIDTH):
        state = load(kept, at + n)
        store(dz, i + n, load(dh, d + n) * (one - state * state))


@njit(forceinline=True)
def modrelu_row(z, i, b, kept, at, h, k, padded):
    """h' = sign(z) max(|z| + b, 0)."""
    for n in range(0, padded, WIDTH):
        moved = load(z, i + n)
        size = signed(moved, moved)  # |z|
        size = clip(size + load(b, n), splat(ZERO), splat(INFINITY))
        state = signed(size, moved)
        store(kept, at + n, state)
        store(h, k + n, state)


@njit(forceinline=True)
def modrelu_row_back(kept, at, dh, d, dz, i, db, padded):
    """Where h' is not 0 it has the sign of z, and |z| + b is above 0."""
    for n in range(0, padded, WIDTH):
        state = load(kept, at + n)
        d_bias = signed(load(dh, d + n), state)
        store(db, n, load(db, n) + d_bias)
        store(dz, i + n, signed(d_bias, state))
