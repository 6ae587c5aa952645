"""Moves between flat arrays, by vectors."""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.vectors import WIDTH, load, splat, store

ZERO = np.float32(0)


@njit(forceinline=True)
def copy(target, i, source, j, width):
    """Copy `width` numbers, a multiple of 16."""
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
