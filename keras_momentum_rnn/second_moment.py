"""The second moment of Adam and RMSProp, with a gradient that is cheap at every step."""

import keras
from keras import ops


def updated(u, m, beta, epsilon):
    """Return `m' = beta m + (1 - beta) u^2` and `1 / sqrt(m' + epsilon)`.

    Args:
        u, m: tensors of one shape.
        beta, epsilon: floats.
    """
    update = {"tensorflow": _on_tensorflow, "jax": _on_jax}.get(keras.config.backend(), _plain)
    return update(u, m, beta, epsilon)


def _plain(u, m, beta, epsilon, rsqrt=ops.rsqrt):
    m = beta * m + (1 - beta) * (u * u)
    return m, rsqrt(m + epsilon)


def _on_tensorflow(u, m, beta, epsilon):
    """A loop keeps u and the root for the backward pass, and not the square and the old m."""
    import tensorflow as tf

    if tf.executing_eagerly():
        # There the gradient of a gradient by hand would be wrong, and there is no loop.
        return _plain(u, m, beta, epsilon)

    @tf.custom_gradient
    def update(u, m):
        m, root = _plain(u, m, beta, epsilon)

        def gradient(dm, d_root):
            dm = dm - 0.5 * (d_root * root * (root * root))
            return 2 * (1 - beta) * (u * dm), beta * dm

        return (m, root), gradient

    return update(u, m)


def _on_jax(u, m, beta, epsilon):
    """The derivative of the root is a product of roots, where JAX would divide."""
    import jax

    @jax.custom_jvp
    def rsqrt(x):
        return jax.lax.rsqrt(x)

    @rsqrt.defjvp
    def _(primals, tangents):
        root = rsqrt(*primals)
        return root, -0.5 * root * root * root * tangents[0]

    return _plain(u, m, beta, epsilon, rsqrt)
