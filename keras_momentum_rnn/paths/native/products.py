"""Products of small matrices that stay in the cache, cut into tiles."""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.vectors import WIDTH, tile

# A tile's rows, and its columns in vectors: its sums fill the registers.
ROWS, VECTORS = 6, 4


@njit(nogil=True, cache=True)
def take_tile(rows, vectors, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner):
    if vectors == 4:
        if rows == 6:
            tile(6, 4, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        elif rows == 5:
            tile(5, 4, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        elif rows == 4:
            tile(4, 4, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        elif rows == 3:
            tile(3, 4, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        elif rows == 2:
            tile(2, 4, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        else:
            tile(1, 4, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
    elif vectors == 2:
        if rows == 6:
            tile(6, 2, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        elif rows == 5:
            tile(5, 2, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        elif rows == 4:
            tile(4, 2, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        elif rows == 3:
            tile(3, 2, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        elif rows == 2:
            tile(2, 2, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
        else:
            tile(1, 2, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
    elif rows == 6:
        tile(6, 1, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
    elif rows == 5:
        tile(5, 1, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
    elif rows == 4:
        tile(4, 1, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
    elif rows == 3:
        tile(3, 1, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
    elif rows == 2:
        tile(2, 1, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)
    else:
        tile(1, 1, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner)


@njit(nogil=True, cache=True)
def panel_width(columns, most):
    """Return how many vectors the next panel of so many columns has: a power of 2."""
    vectors = most
    while vectors * WIDTH > columns:
        vectors //= 2
    return vectors


@njit(nogil=True, cache=True)
def add_product(
    C, c, c_row, A, a, a_row, a_column, P, p, p_row, rows, columns, inner, most, packed
):
    """Add to `rows` by `columns` of C; the columns are a multiple of 16.

    Args:
        most: 4, 2 or 1, the vectors of a panel.
        packed: bool, whether P is a matrix of `packed`; otherwise its rows are `p_row` apart.
    """
    if rows == 0:
        return
    blocks = -(-rows // ROWS)
    small, larger = rows // blocks, rows % blocks
    column = 0
    while column < columns:
        vectors = panel_width(columns - column, most)
        width = vectors * WIDTH
        panel, panel_row = p + column, p_row
        if packed:
            panel, panel_row = p + column * inner, width
        row = 0
        for block in range(blocks):
            count = small + 1 if block < larger else small
            take_tile(
                count, vectors, C, c + row * c_row + column, c_row,
                A, a + row * a_row, a_row, a_column, P, panel, panel_row, inner,
            )  # fmt: skip
            row += count
        column += width


@njit(nogil=True, cache=True)
def packed(matrix, most):
    """Return a matrix, its columns a multiple of 16, as flat panels that are read in order."""
    inner, columns = matrix.shape
    out = np.empty(inner * columns, np.float32)
    column, k = 0, 0
    while column < columns:
        width = panel_width(columns - column, most) * WIDTH
        for i in range(inner):
            for j in range(column, column + width):
                out[k] = matrix[i, j]
                k += 1
        column += width
    return out
