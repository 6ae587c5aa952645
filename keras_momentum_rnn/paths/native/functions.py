"""Functions of vectors: sigmoid and tanh in float32, to about 1e-7."""

import numpy as np
from numba import njit

from keras_momentum_rnn.paths.native.vectors import clip, multiply_add, saturated, splat

# From here on tanh is 1: exactly, so that a saturated gate of an LSTM neither adds to its
# memory nor takes from it. In float64 tanh is 1 - 2.3e-7 here.
BOUND = np.float32(7.99881172180175781)
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
def tanh(whole):
    x = clip(whole, splat(-BOUND), splat(BOUND))
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
    return saturated(clip(x * above / below, splat(-ONE), splat(ONE)), whole, splat(BOUND))


@njit(forceinline=True)
def sigmoid(x):
    half = splat(HALF)
    return multiply_add(half, tanh(half * x), half)
