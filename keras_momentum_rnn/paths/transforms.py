"""Whether a function transform of the backend is tracing a call."""

import keras


def transform_is_active(tensors):
    """Return whether `torch.func` (grad, vmap, jvp, ...) or forward-mode autograd acts on any.

    Fused kernels and gradients by hand have no rules for them. JAX and TensorFlow need none:
    their loops are made of operations which every transform knows.

    Args:
        tensors: inputs, states and weights of a call.
    """
    if keras.config.backend() != "torch":
        return False
    import torch

    if torch.compiler.is_compiling():
        return False
    return any(is_wrapped(tensor) for tensor in tensors)


def is_wrapped(tensor):
    from torch.autograd import forward_ad

    # What `torch.func` hands on has no storage of its own; PyTorch has no other public sign.
    try:
        tensor.data_ptr()
    except RuntimeError:
        return True
    return forward_ad.unpack_dual(tensor).tangent is not None
