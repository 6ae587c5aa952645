"""Orthogonal matrices from skew-symmetric ones, and these from packed numbers.

A skew-symmetric S of `units` rows, S' = -S, is stored as what stands above its diagonal, row by
row: `units (units - 1) / 2` numbers. Everything here keeps the dtype that it gets.
"""

import contextlib
import functools
import math

import keras
from keras import ops

from keras_momentum_rnn.paths.devices import current_device

# The exponential by scaling and squaring: A / 2^k has at most this 1-norm, so that the Taylor
# polynomial of degree 16 is exact to rounding, in float64 too.
SCALED_NORM = 0.5
SQUARINGS = 16
# Newton's steps to an inverse: enough for a condition of 1e4.
INVERSE_STEPS = 32


def packed_size(units):
    """Return how many numbers a skew-symmetric matrix of `units` rows has."""
    return units * (units - 1) // 2


def unpacked(numbers, units):
    """Return the skew-symmetric matrix `(units, units)` of its packed numbers."""
    if units == 1:
        # One row has no packed numbers: their sum is 0, and connects S to the weight.
        return ops.zeros((1, 1), dtype=numbers.dtype) + ops.sum(numbers)
    i = ops.expand_dims(ops.arange(0, units, dtype="int32"), 1)
    j = ops.transpose(i)
    row, column = ops.minimum(i, j), ops.maximum(i, j)
    # The diagonal has no number: its index is any valid one, and its sign 0.
    place = row * units - row * (row + 1) // 2 + column - row - 1
    sign = ops.cast(ops.sign(j - i), numbers.dtype)
    return sign * ops.take(numbers, ops.maximum(place, 0))


def expm(skew):
    """Return the matrix exponential, a rotation, `(units, units)`, with its gradient.

    JAX and PyTorch have their own. TensorFlow's has no gradient under XLA.
    """
    backend = keras.config.backend()
    if backend == "jax":
        from jax.scipy.linalg import expm as jax_expm

        return jax_expm(skew)
    if backend == "torch":
        import torch

        return torch.linalg.matrix_exp(skew)
    return scaled_and_squared(skew)


def scaled_and_squared(matrix, unroll=False):
    """Return exp(A) = exp(A / 2^k)^(2^k), the inner one by its Taylor polynomial.

    Args:
        matrix: square matrix.
        unroll: True to write the squarings out, without a loop.
    """
    norm = ops.stop_gradient(ops.max(ops.sum(ops.abs(matrix), axis=0)))
    doublings = ops.ceil(ops.log2(ops.maximum(norm / SCALED_NORM, 1.0)))
    doublings = ops.minimum(doublings, float(SQUARINGS))
    a = matrix * ops.power(ops.cast(0.5, matrix.dtype), doublings)
    a2 = a @ a
    a3, a4 = a2 @ a, a2 @ a2
    powers = [ops.eye(matrix.shape[0], dtype=matrix.dtype), a, a2, a3]
    result = powers[0] / float(math.factorial(16))
    for k in (12, 8, 4, 0):  # Horner's scheme in A^4
        cubic = sum(p / float(math.factorial(k + i)) for i, p in enumerate(powers))
        result = cubic + a4 @ result
    if unroll:
        for k in range(SQUARINGS):
            result = ops.where(k < doublings, result @ result, result)
        return result
    doublings = ops.cast(doublings, "int32")
    _, result = ops.while_loop(
        lambda k, _: k < doublings,
        lambda k, e: (k + 1, e @ e),
        (ops.cast(0, "int32"), result),
        maximum_iterations=SQUARINGS,
    )
    return result


def cayley(skew):
    """Return `(I + S)^-1 (I - S)`, a rotation, `(units, units)`, with its gradient."""
    eye = ops.eye(skew.shape[0], dtype=skew.dtype)
    return ops.solve(eye + skew, eye - skew)


PARAMETRIZATIONS = {"expm": expm, "cayley": cayley}


def portable_cayley(skew):
    """Return `(I + S)^-1 (I - S) = 2 (I + S)^-1 - I` by products alone."""
    eye = ops.eye(skew.shape[0], dtype=skew.dtype)
    matrix = eye + skew
    size = ops.abs(matrix)
    # The largest singular value, squared, is at most this.
    bound = ops.max(ops.sum(size, axis=0)) * ops.max(ops.sum(size, axis=1))
    inverse = ops.transpose(matrix) / bound
    for _ in range(INVERSE_STEPS):
        inverse = inverse @ (2.0 * eye - matrix @ inverse)
    return 2.0 * inverse - eye


# For files: no format has an exponential of matrices, and few can solve linear equations.
PORTABLE = {
    "expm": functools.partial(scaled_and_squared, unroll=True),
    "cayley": portable_cayley,
}


def nearer_orthogonal(matrix):
    """Take one Newton-Schulz step, `1.5 Q - 0.5 Q Q'Q`, towards the nearest orthogonal matrix.

    An error e becomes e^2: in float32 what rounding left over vanishes. A move along the
    orthogonal matrices passes unchanged, so gradients do.
    """
    return 1.5 * matrix - 0.5 * matrix @ (ops.transpose(matrix) @ matrix)


def rotation(base, skew, parametrization, portable=False):
    """Return the orthogonal matrix `base exp(S)`, or with the Cayley transform of S.

    Args:
        base: orthogonal matrix `(units, units)`.
        skew: skew-symmetric matrix `(units, units)`.
        parametrization: name in `PARAMETRIZATIONS`.
        portable: True to compute it by operations that every file format has.
    """
    functions = PORTABLE if portable else PARAMETRIZATIONS
    with _exact_products(base):
        base, wide = (ops.cast(m, _exact_dtype(m.dtype)) for m in (base, skew))
        matrix = nearer_orthogonal(base @ functions[parametrization](wide))
    return ops.cast(matrix, skew.dtype)


# On GPUs of today JAX and TensorFlow round float32 numbers to 11 bits to multiply them, unless
# told otherwise, which would leave Q orthogonal to 1e-3 and no better. So does PyTorch within
# `torch.autocast`.


def _exact_products(like):
    """Return a context in which JAX and PyTorch do not, on the device of a tensor."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        return jax.default_matmul_precision("highest")
    if backend == "torch":
        import torch

        device = like.device.type
        if torch.amp.is_autocast_available(device):
            return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()


def _exact_dtype(dtype):
    """Return the dtype to compute in. TensorFlow has a global switch alone, so float64."""
    on_tensorflow = keras.config.backend() == "tensorflow"
    return "float64" if on_tensorflow and current_device() == "gpu" else dtype
