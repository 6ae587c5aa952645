"""Products of small matrices that stay in the cache, cut into tiles."""

import llvmlite.binding
import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.vectors import TILE_ROWS, WIDTH, tile

ROWS = TILE_ROWS[-1]
# The widest panel, in vectors: a register of AVX2 holds half of one, of NEON a quarter.
VECTORS = 4 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 1


@njit(nogil=True, cache=True)
def panel_width(columns):
    """Return how many vectors the next panel of so many columns has: a power of 2."""
    vectors = VECTORS
    while vectors * WIDTH > columns:
        vectors //= 2
    return vectors


@njit(nogil=True, cache=True)
def add_tiles(C, c, c_row, A, a, a_row, a_column, P, p, p_row, rows, inner, vectors):
    """Add to a panel of C, `rows` by `vectors`, in tiles of alike height."""
    blocks = -(-rows // ROWS)
    small, larger = rows // blocks, rows % blocks
    row = 0
    for block in range(blocks):
        count = small + 1 if block < larger else small
        tile(
            count, vectors, C, c + row * c_row, c_row,
            A, a + row * a_row, a_row, a_column, P, p, p_row, inner,
        )  # fmt: skip
        row += count


@njit(nogil=True, cache=True)
def add_packed_product(C, c, c_row, A, a, a_row, P, rows, columns, inner):
    """C += A P: rows of A and C so far apart, P `packed`, its columns a multiple of 16."""
    column = 0
    while rows and column < columns:
        vectors = panel_width(columns - column)
        add_tiles(
            C, c + column, c_row, A, a, a_row, 1,
            P, column * inner, vectors * WIDTH, rows, inner, vectors,
        )  # fmt: skip
        column += vectors * WIDTH


@njit(nogil=True, cache=True)
def add_product(C, c_row, A, a_row, P, p_row, rows, columns, inner):
    """C += A' P, A' the transpose of A, the columns of P a multiple of 16."""
    column = 0
    while rows and column < columns:
        vectors = panel_width(columns - column)
        add_tiles(C, column, c_row, A, 0, 1, a_row, P, column, p_row, rows, inner, vectors)
        column += vectors * WIDTH


@njit(nogil=True, cache=True)
def packed(matrix):
    """Return a matrix, its columns a multiple of 16, as flat panels that are read in order."""
    inner, columns = matrix.shape
    out = np.empty(inner * columns, np.float32)
    column, k = 0, 0
    while column < columns:
        width = panel_width(columns - column) * WIDTH
        for i in range(inner):
            for j in range(column, column + width):
                out[k] = matrix[i, j]
                k += 1
        column += width
    return out
