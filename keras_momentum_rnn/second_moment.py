"""The second moment of Adam and RMSProp; on TensorFlow less of it is kept for going back."""

import math
from numbers import Real

import keras
from keras import ops

from keras_momentum_rnn.exports import traced_by_torch

# What a file may have to add, at least: PyTorch's ONNX exporter takes 1e-8 for 0.
SMALLEST_SUMMAND = 1e-6


def update_second_moment(u, m, beta, epsilon):
    """Return `m' = beta m + (1 - beta) u^2` and `1 / sqrt(m' + epsilon)`.

    Args:
        u, m: tensors `(batch, width)` of one dtype, m not negative.
        beta: float in [0, 1), or a tensor.
        epsilon: float above 0, or a tensor.

    Source: Nguyen et al. (2020), equations 14 and 15.
    """

    def update(u, m):
        m = beta * m + (1 - beta) * (u * u)
        if traced_by_torch():
            return m, scaled_root(m, epsilon)
        return m, reciprocal_root(m + epsilon)

    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        # Eagerly no loop stores anything, and a hand-written gradient has no second derivative,
        # nor one for numbers that are learned.
        fixed = isinstance(beta, Real) and isinstance(epsilon, Real)
        if fixed and not tf.executing_eagerly():
            return tf.custom_gradient(_keeping_less(update, beta))(u, m)
    return update(u, m)


def reciprocal_root(x):
    """Return `1 / sqrt(x)`, with a gradient that holds for large x.

    The gradient of `rsqrt` has the third power of the root, which float32 takes for 0 where x
    is beyond 1e25; on TensorFlow alone it has the square.
    """
    return ops.rsqrt(x) if keras.config.backend() == "tensorflow" else 1 / ops.sqrt(x)


def scaled_root(m, epsilon):
    """Return `1 / sqrt(m + epsilon)`, both times a power of 4, which rounds nothing."""
    doublings = max(0, math.ceil(math.log2(SMALLEST_SUMMAND / epsilon) / 2))
    factor = 2.0**doublings
    return factor * ops.rsqrt(factor**2 * m + factor**2 * epsilon)


def _keeping_less(update, beta):
    """Keep u and the root for the backward pass, and not the old m, u^2 and a sum, too."""

    def with_gradient(u, m):
        m, root = update(u, m)

        def gradient(dm, d_root):
            # A power of the root alone may be 0 in float32, and d_root is large where it is.
            dm = dm - 0.5 * (d_root * root * root * root)
            return 2 * (1 - beta) * (u * dm), beta * dm

        return (m, root), gradient

    return with_gradient
