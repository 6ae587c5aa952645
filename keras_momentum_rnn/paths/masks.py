"""Masks by moving steps: each sample's unmasked steps first, and the outputs back in place.

A masked sample equals the sample without its masked steps. Once unmasked steps come first, a
path needs only each sample's length.
"""

import keras
from keras import ops


def compacted(x, mask):
    """Return x with each sample's unmasked steps first, in their order, and their number."""
    # Sorting distinct numbers keeps the order, however a backend sorts.
    length = ops.shape(x)[1]
    time = ops.arange(length, dtype="int32")
    order = ops.argsort(time + length * ops.cast(ops.logical_not(mask), "int32"), axis=1)
    x = ops.take_along_axis(x, ops.expand_dims(order, -1), axis=1)
    return x, ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)


def at(x, steps, first=None):
    """Return x after so many steps, and `first`, or zero, after none, `(batch, width)`."""
    some = steps > 0
    # Not `ops.maximum`, which on PyTorch waits for the GPU, to move the number 0 there.
    index = ops.expand_dims((steps - 1) * ops.cast(some, steps.dtype), -1)
    last = ops.take_along_axis(x, index, axis=1)[:, 0]
    return ops.where(some, last, ops.zeros_like(last) if first is None else first)


def until(x, steps):
    """Return x with zeros behind each sample's last step, where a velocity may overflow."""
    time = ops.expand_dims(ops.arange(ops.shape(x)[1], dtype="int32"), 0)
    return ops.where(ops.expand_dims(time < steps, -1), x, ops.zeros_like(x))


def spread_out(outputs, h, mask):
    """Return the outputs of the compacted steps where they belong, held where masked."""
    count = ops.expand_dims(ops.cumsum(ops.cast(mask, "int32"), axis=1), -1)
    outputs = ops.concatenate([ops.expand_dims(h, 1), outputs], axis=1)
    return ops.take_along_axis(outputs, count, axis=1)


def shown(outputs, mask, all_outputs, zero):
    """Return the outputs as Keras shows them where the mask is False.

    There it repeats the last output, or shows zero with `zero_output_for_mask`. Before the
    first step, JAX repeats the initial h and the other backends show zero.

    Args:
        outputs: tensor `(batch, time, units)`, or with the last step alone.
        mask: bool tensor `(batch, time)`.
        all_outputs: bool, whether the outputs are those of all steps.
        zero: bool, the `zero_output_for_mask` of the layer.
    """
    if not zero:
        if keras.config.backend() == "jax":
            return outputs
        mask = ops.cumsum(ops.cast(mask, "int32"), axis=1) > 0
    if not all_outputs:
        mask = mask[:, -1:]
    return ops.where(ops.expand_dims(mask, -1), outputs, ops.zeros_like(outputs))
