"""The input product of all times at once, then rule and recurrence in one lean loop."""

from keras import ops

from keras_momentum_rnn.paths.masks import compacted, spread_out


def run(cell, x, states, mask=None, training=False):
    """Run a sequence on PyTorch; the slots may start anywhere.

    Args:
        cell: a cell with `fused_kernel` and a linear or scaled rule.
        x: tensor `(batch, time, features)`.
        states: list of the initial states, slots included.
        mask: bool tensor `(batch, time)` or None.
        training: bool, whether dropout acts.

    Returns:
        h at all times, `(batch, time, units)`, and the final states.
    """
    from keras_momentum_rnn.paths import torch_loop

    steps = None
    if mask is not None:
        # What is masked may be anything, NaN too, and its gradient would be 0 times that.
        x = ops.where(ops.expand_dims(mask, -1), x, ops.zeros_like(x))
        x, steps = compacted(x, mask)
    u = cell.projection(training)(ops.swapaxes(x, 0, 1))
    outputs, finals = torch_loop.run(cell, u, states, steps)
    outputs = ops.swapaxes(outputs, 0, 1)
    if mask is not None:
        outputs = spread_out(outputs, states[0], mask)
    return outputs, finals
