"""Functions of vectors: sigmoid and tanh in float32, to about 1e-7."""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.vectors import clip, multiply_add, splat

# tanh is 1 in float32 from here on.
BOUND = np.float32(7.90531110763549805)
HALF, ONE = np.float32(0.5), np.float32(1.0)
# The quotient of two polynomials in x^2 that Eigen and XLA use.
ABOVE = tuple(
    np.float32(c)
    for c in (
        -2.76076847742355e-16,
        2.00018790482477e-13,
        -8.60467152213735e-11,
        5.12229709037114e-08,
        1.48572235717979e-05,
        6.37261928875436e-04,
        4.89352455891786e-03,
    )
)
BELOW = tuple(
    np.float32(c)
    for c in (
        1.19825839466702e-06,
        1.18534705686654e-04,
        2.26843463243900e-03,
        4.89352518554385e-03,
    )
)


@njit(forceinline=True)
def tanh(x):
    x = clip(x, splat(-BOUND), splat(BOUND))
    y = x * x
    above = splat(ABOVE[0])
    above = multiply_add(above, y, splat(ABOVE[1]))
    above = multiply_add(above, y, splat(ABOVE[2]))
    above = multiply_add(above, y, splat(ABOVE[3]))
    above = multiply_add(above, y, splat(ABOVE[4]))
    above = multiply_add(above, y, splat(ABOVE[5]))
    above = multiply_add(above, y, splat(ABOVE[6]))
    below = splat(BELOW[0])
    below = multiply_add(below, y, splat(BELOW[1]))
    below = multiply_add(below, y, splat(BELOW[2]))
    below = multiply_add(below, y, splat(BELOW[3]))
    return x * above / below


@njit(forceinline=True)
def sigmoid(x):
    half = splat(HALF)
    return multiply_add(half, tanh(half * x), half)
