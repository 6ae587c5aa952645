"""Derivatives for Hessian-free optimisation on TensorFlow: the backward pass, twice.

TensorFlow's forward mode, `ForwardAccumulator`, gives wrong numbers through a loop in a graph.
"""

import contextlib

import tensorflow as tf

untracked = contextlib.nullcontext  # nothing is recorded unasked


def _gradient(tape, values, points, cotangents=None):
    gradient = tape.gradient(values, points, cotangents, unconnected_gradients="zero")
    return [tf.convert_to_tensor(g) for g in gradient]  # that of an embedding is sparse


def value_and_gradient(function, theta):
    """Return the value, what comes with it, and the gradient of `function(theta)`."""
    with tf.GradientTape() as tape:
        tape.watch(theta)
        value, more = function(theta)
    return value, more, _gradient(tape, value, theta)


def linearized(function, theta):
    """Return `around(v, middle)` = J' middle(y, J v), J the Jacobian of y = function(theta)."""

    def around(v, middle):
        # All of it anew: inside a loop no gradient can be taken of a loop outside it.
        with tf.GradientTape() as outer:
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(theta)
                outputs = function(theta)
            # J'u is linear in u, so that its own gradient, by u, is J.
            u = [tf.zeros_like(y) for y in outputs]
            outer.watch(u)
            pulled = _gradient(inner, outputs, theta, u)
        pushed = _gradient(outer, pulled, u, v)
        return _gradient(inner, outputs, theta, middle(outputs, pushed))

    return around


def hessian_product(function, point, v):
    """Return the Hessian of a scalar function of a list of tensors, times v."""
    with tf.GradientTape() as outer:
        outer.watch(point)
        with tf.GradientTape() as inner:
            inner.watch(point)
            value = function(point)
        gradient = _gradient(inner, value, point)
    return _gradient(outer, gradient, point, v)


def repeated_draws():
    """Return a function to contexts that all draw the same: the seeds are variables."""
    return contextlib.nullcontext
