"""Whether a transform of the backend acts on a call, and what it is not to trace."""

import functools
import itertools

import keras


def untraced(function):
    """Return a function that `torch.compile` calls, and does not look into.

    It takes and returns plain values. Compilers and imports are nothing that it could trace.
    """
    if keras.config.backend() != "torch":
        return function
    import torch

    return torch.compiler.assume_constant_result(function)


def transform_is_active(tensors, cell):
    """Return whether `torch.func`, forward-mode autograd or `make_fx` acts on a call.

    Fused kernels and gradients by hand have no rules for them. JAX and TensorFlow need none:
    their loops are made of operations which every transform knows.

    Args:
        tensors: input and states of the call.
        cell: the cell, whose weights count too.
    """
    if keras.config.backend() != "torch":
        return False
    import torch

    if torch.compiler.is_compiling():
        return transform_of_compiled()
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    if get_proxy_mode() is not None:  # `make_fx` would take a kernel's result for a constant
        return True
    weights = (weight.value for weight in cell.weights)
    wrapped = any(map(is_wrapped, itertools.chain(tensors, weights)))
    # `vmap` wraps only what it maps: x and weights may be plain, and the dropout mapped.
    return wrapped or (not torch.jit.is_tracing() and functions_are_refused())


@untraced
def transform_of_compiled():
    """Return whether `torch.func` acts inside, or around, what `torch.compile` traces."""
    return functions_are_refused()


def functions_are_refused():
    """Return whether a transform of `torch.func` acts: it refuses functions without a rule."""
    try:
        function_without_rule()()
    except RuntimeError:
        return True
    return False


@functools.cache
def function_without_rule():
    """Return a function of PyTorch that has no rule for `torch.func`."""
    import torch

    class WithoutRule(torch.autograd.Function):
        @staticmethod
        def forward(ctx):
            return None

    return WithoutRule.apply


def is_wrapped(tensor):
    from torch.autograd import forward_ad

    # What `torch.func` hands on has no storage of its own, and tensors without values have one
    # on the device "meta"; PyTorch has no other public sign.
    try:
        if tensor.untyped_storage().device.type == "meta":
            return True
    except RuntimeError:
        return True
    return forward_ad.unpack_dual(tensor).tangent is not None


def varying_alike(arrays, like=()):
    """Let all arrays vary over the axes of `jax.shard_map` over which one does, or `like`.

    JAX does so to the arguments of its own operations. Without it, gradients lack their sums
    over devices.

    Args:
        arrays: arrays of JAX in any structure.
        like: as `arrays`.
    """
    import jax

    if not hasattr(jax, "typeof"):  # such a version asks for no such thing
        return arrays
    traced = (t for t in jax.tree.leaves((arrays, like)) if isinstance(t, jax.core.Tracer))
    axes = frozenset().union(*(varying_axes(jax.typeof(t)) for t in traced))

    def cast(array):
        missing = tuple(axes - varying_axes(jax.typeof(array)))
        if not missing:
            return array
        if hasattr(jax.lax, "pcast"):
            return jax.lax.pcast(array, missing, to="varying")
        return jax.lax.pvary(array, missing)

    return jax.tree.map(cast, arrays) if axes else arrays


def varying_axes(kind):
    """Return the axes of `jax.shard_map` over which arrays of a type of JAX vary."""
    renamed = getattr(kind, "manual_axis_type", None)
    return getattr(kind, "vma", frozenset()) if renamed is None else renamed.varying
