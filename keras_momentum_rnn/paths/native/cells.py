"""A step of a cell on rows of vectors, and the way back.

Of each step a row of numbers is kept, so many times `padded`: of an LSTM its gates i, f, a and
o; of a GRU z, r, a and q, the recurrent part of the candidate a; of the others h.
"""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.functions import ONE, sigmoid, tanh
from keras_momentum_rnn.paths.native.vectors import (
    WIDTH,
    absolute,
    clip,
    load,
    signed,
    splat,
    store,
)

LSTM, GRU, ELMAN, MODRELU = 0, 1, 2, 3
ZERO, INFINITY = np.float32(0), np.float32(np.inf)


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
        store(h, k + n, update * load(h, k + n) + (one - update) * candidate)


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
        size = clip(absolute(moved) + load(b, n), splat(ZERO), splat(INFINITY))
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
