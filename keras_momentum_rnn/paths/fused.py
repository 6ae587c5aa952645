"""The recurrence left to a kernel of the backend: PyTorch's native LSTM and GRU."""

from keras import ops

from keras_momentum_rnn.paths.filter import filtered
from keras_momentum_rnn.paths.masks import at, compacted, spread_out

# With this in its preactivation a sigmoid is 0 or 1 exactly.
SATURATED = 1e4


def run(cell, x, states, mask=None, training=False):
    """Run a sequence whose rule is linear and whose slots start at zero.

    Args:
        cell: a cell with `fused_kernel`.
        x: tensor `(batch, time, features)`.
        states: list of the initial states; the slots are not read.
        mask: bool tensor `(batch, time)` or None.
        training: bool, whether dropout acts.

    Returns:
        h at all times, `(batch, time, units)`, and the final states, slots included.
    """
    x = cell.wide(x)
    if training and cell.dropout:
        x = x * ops.expand_dims(cell.wide(cell.get_dropout_mask(x[:, 0])), 1)
    steps = ops.full((x.shape[0], 1), x.shape[1], dtype="int32")
    if mask is not None:
        # What is masked may be anything, NaN too: the filter would multiply it by 0.
        x = ops.where(ops.expand_dims(mask, -1), x, ops.zeros_like(x))
        x, steps = compacted(x, mask)
    x = ops.concatenate([x, ops.ones_like(x[..., :1])], axis=-1)
    x = filtered(cell.rule, x)
    kernel = ops.concatenate([cell.wide(cell.kernel), input_bias_row(cell)], axis=0)
    last = x[:, -1] if mask is None else at(x, steps)
    slots = [last @ kernel]
    if len(states) > len(cell.cell_state_size) + 1:
        slots.append(cell.rule.count(0, cell.wide(steps)))
    if mask is not None and cell.fused_kernel == "lstm":
        x, kernel = holding(x, kernel, steps, cell.units)
    outputs, *final = KERNELS[cell.fused_kernel](cell, x, kernel, states)
    if mask is not None:
        outputs = spread_out(outputs, states[0], mask)
        final[0] = outputs[:, -1]
    return outputs, [*final, *slots]


def input_bias_row(cell):
    """Return the bias that rides with the input as a row of the kernel."""
    if cell.input_bias is None:
        return ops.zeros((1, cell.gates * cell.units), dtype=cell.slot_dtype)
    return ops.expand_dims(cell.wide(cell.input_bias), 0)


def holding(x, kernel, steps, units):
    """Return x and kernel with a column more, which holds c from step `steps` on."""
    time = ops.expand_dims(ops.arange(x.shape[1], dtype="int32"), 0)
    idle = ops.expand_dims(ops.cast(time >= steps, x.dtype), -1)
    ones = ops.ones((1, units), dtype=kernel.dtype)
    row = ops.concatenate([-SATURATED * ones, SATURATED * ones, 0 * ones, 0 * ones], axis=1)
    # Past its last step a sample's velocity goes on by itself: silence it.
    x = ops.concatenate([x * (1 - idle), idle], axis=-1)
    return x, ops.concatenate([kernel, row], axis=0)


def torch_lstm(cell, x, kernel, states):
    import torch

    module = torch.nn.LSTM(x.shape[-1], cell.units, batch_first=True, device="meta")
    h, c = (s.unsqueeze(0).contiguous() for s in states[:2])
    outputs, (h, c) = torch.func.functional_call(
        module, torch_weights(cell, kernel, lambda w: w), (x, (h, c))
    )
    return outputs, h[0], c[0]


def torch_gru(cell, x, kernel, states):
    import torch

    def reset_first(weight):
        """PyTorch's gates are r, z, h, Keras's z, r, h."""
        z, r, h = ops.split(weight, 3, axis=-1)
        return ops.concatenate([r, z, h], axis=-1)

    module = torch.nn.GRU(x.shape[-1], cell.units, batch_first=True, device="meta")
    h = states[0].unsqueeze(0).contiguous()
    outputs, h = torch.func.functional_call(
        module, torch_weights(cell, kernel, reset_first), (x, h)
    )
    return outputs, h[0]


def torch_weights(cell, kernel, ordered):
    """Return PyTorch's parameters; the input bias is a row of the kernel already."""
    none = ops.zeros((cell.gates * cell.units,), dtype=cell.compute_dtype)
    side = cell.recurrent_side_bias
    return {
        "weight_ih_l0": ordered(kernel).T,
        "weight_hh_l0": ordered(cell.wide(cell.recurrent_kernel)).T,
        "bias_ih_l0": none,
        "bias_hh_l0": none if side is None else ordered(cell.wide(side)),
    }


KERNELS = {"lstm": torch_lstm, "gru": torch_gru}
