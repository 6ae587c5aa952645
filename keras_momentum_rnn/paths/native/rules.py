"""A step of a rule on rows of vectors, and the way back.

The drive of a row takes the place of its u = W x + b. `rule` is one of the codes below; of
`SCALED`, v' = mu v + gain u, m' = beta m + share u^2, drive = factor v' / sqrt(m' + eps).
"""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.vectors import (
    WIDTH,
    load,
    multiply_add,
    splat,
    square_root,
    store,
)

NONE, LINEAR, SCALED = 0, 1, 2
ONE, TWO, HALF = np.float32(1), np.float32(2), np.float32(0.5)


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
    """u becomes the drive. `numbers` are `loops.Numbers`."""
    mu, gain, factor = splat(numbers.mu[0]), splat(numbers.gain), splat(numbers.factor)
    share, beta = splat(numbers.share), splat(numbers.beta)
    epsilon = splat(numbers.epsilon)
    for k in range(0, width, WIDTH):
        velocity, moment = advanced(load(u, i + k), v, m, j + k, mu, gain, beta, share)
        store(u, i + k, factor * velocity / square_root(moment + epsilon))


@njit(forceinline=True)
def scaled_row_again(u, r, i, v, m, v_all, j, width, numbers):
    """As `scaled_row`, but u stays; v' goes to `v_all` and 1 / sqrt(m' + eps) to r."""
    mu, gain, one = splat(numbers.mu[0]), splat(numbers.gain), splat(ONE)
    share, beta = splat(numbers.share), splat(numbers.beta)
    epsilon = splat(numbers.epsilon)
    for k in range(0, width, WIDTH):
        velocity, moment = advanced(load(u, i + k), v, m, j + k, mu, gain, beta, share)
        store(v_all, i + k, velocity)
        store(r, i + k, one / square_root(moment + epsilon))


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
        d_moment = load(dm, j + k) - half * d * load(v_all, at + k) * (root * root)
        d_velocity = load(dv, j + k) + d
        store(du, i + k, multiply_add(share * load(u, at + k), d_moment, gain * d_velocity))
        store(dv, j + k, mu * d_velocity)
        store(dm, j + k, beta * d_moment)
