"""Derivatives for Hessian-free optimisation on JAX: forward mode, and its transpose."""

import contextlib

import jax

untracked = contextlib.nullcontext  # nothing is recorded unasked


def value_and_gradient(function, theta):
    """Return the value, what comes with it, and the gradient of `function(theta)`."""
    (value, more), gradient = jax.value_and_grad(function, has_aux=True)(theta)
    return value, more, gradient


def linearized(function, theta):
    """Return `around(v, middle)` = J' middle(y, J v), J the Jacobian of y = function(theta)."""
    outputs, forward = jax.linearize(function, theta)
    backward = jax.linear_transpose(forward, theta)

    def around(v, middle):
        return backward(middle(outputs, forward(v)))[0]

    return around


def hessian_product(function, point, v):
    """Return the Hessian of a scalar function of a list of tensors, times v."""
    return jax.jvp(jax.grad(function), (point,), (v,))[1]


def repeated_draws():
    """Return a function to contexts that all draw the same: the seeds are variables."""
    return contextlib.nullcontext
