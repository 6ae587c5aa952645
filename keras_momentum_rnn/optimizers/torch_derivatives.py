"""Derivatives for Hessian-free optimisation on PyTorch: the backward pass, twice."""

import contextlib

import torch

untracked = torch.no_grad  # nothing is recorded for a gradient


def _leaves(tensors):
    return [tensor.detach().clone().requires_grad_() for tensor in tensors]


def _gradient(values, points, cotangents=None, **options):
    """Return the gradient, zero where a point has no part in it."""
    cotangents = [None] * len(values) if cotangents is None else cotangents
    pairs = [(v, c) for v, c in zip(values, cotangents) if v.requires_grad]
    if not pairs:
        return [torch.zeros_like(point) for point in points]
    values, cotangents = zip(*pairs)
    gradient = torch.autograd.grad(
        values, points, cotangents, materialize_grads=True, **options
    )
    return list(gradient)


def value_and_gradient(function, theta):
    """Return the value, what comes with it, and the gradient of `function(theta)`."""
    theta = _leaves(theta)
    with torch.enable_grad():
        value, more = function(theta)
        gradient = _gradient([value], theta)
    return value.detach(), more, gradient


def linearized(function, theta):
    """Return `around(v, middle)` = J' middle(y, J v), J the Jacobian of y = function(theta)."""
    theta = _leaves(theta)
    with torch.enable_grad():
        outputs = function(theta)
        # J'u is linear in u, so that its own gradient, by u, is J.
        u = [torch.zeros_like(y, requires_grad=True) for y in outputs]
        pulled = _gradient(outputs, theta, u, create_graph=True)

    def around(v, middle):
        pushed = _gradient(pulled, u, v, retain_graph=True)
        returned = middle([y.detach() for y in outputs], pushed)
        return _gradient(outputs, theta, returned, retain_graph=True)

    return around


def hessian_product(function, point, v):
    """Return the Hessian of a scalar function of a list of tensors, times v."""
    point = _leaves(point)
    with torch.enable_grad():
        gradient = _gradient([function(point)], point, create_graph=True)
        return _gradient(gradient, point, v)


def repeated_draws():
    """Return a function to contexts that all draw the random numbers that come next.

    Where a layer has no seed, Keras draws from PyTorch's own generators.
    """
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    start = torch.get_rng_state()
    starts = [torch.cuda.get_rng_state(gpu) for gpu in gpus]

    @contextlib.contextmanager
    def same_draws():
        with torch.random.fork_rng(gpus):
            torch.set_rng_state(start)
            for gpu, state in zip(gpus, starts):
                torch.cuda.set_rng_state(state, gpu)
            yield

    return same_draws
