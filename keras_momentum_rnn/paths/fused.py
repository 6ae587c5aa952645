"""The recurrence left to a fused kernel, and before it the rule, for all times at once."""

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.paths.filtered import (
    filtered_by,
    filtered_by_element,
    filtered_by_rule,
    filtered_input,
    in_chunks,
    unmasked,
)
from keras_momentum_rnn.paths.kernels import fused_kernel, needs_stock_layer
from keras_momentum_rnn.paths.masks import at, spread_out, until

# With this in its preactivation a sigmoid is 0 or 1 exactly, unless the rest is as large. It
# must be finite in float16, where autocast may put it.
SATURATED = 6e4


def run_on_filtered_input(cell, sequence, plan):
    """Run a sequence whose rule is linear and whose slots start at zero: filter x.

    Where there is no rule, x is the filtered x.

    Args:
        cell: a cell whose recurrence has a fused kernel.
        sequence: a `run.Sequence`; the slots in its states are not read.
        plan: a `Plan`.

    Returns:
        h at all times, `(batch, time, units)`, and the final states, slots included.
    """
    x, steps = filtered_input(cell, sequence)
    if not cell.rule.linear:
        kernel = ops.convert_to_tensor(cell.kernel)
        return run_kernel(cell, sequence, x, kernel, steps, cell.input_bias)
    rows = cell.input_rows()
    outputs, final = run_kernel(cell, sequence, x, rows, steps)
    _, slots = cell.split(sequence.states)
    counters = [cell.rule.advance_counter(0, cell.to_slot_dtype(steps)) for _ in slots[1:]]
    return outputs, [*final, at(x, steps) @ rows, *counters]


def run_on_drive(cell, sequence, plan):
    """Run a sequence whose rule is linear or scaled: the kernel's input is the drive.

    Arguments and returns: as of `run_on_filtered_input`, but the slots may start anywhere.
    """
    x, steps = unmasked(sequence.x, sequence.mask)
    time = ops.shape(x)[1]
    # Zeros are added to the narrow x; otherwise each filter adds them to the wide u.
    u = cell.projection(sequence.training)(ops.swapaxes(in_chunks(x), 0, 1))
    _, slots = cell.split(sequence.states)
    u, is_masked = ops.swapaxes(u, 0, 1), sequence.mask is not None
    drive, slots = drives(cell.rule, u, slots, steps, is_masked)
    drive = ops.cast(drive[:, :time], cell.compute_dtype)
    identity = ops.eye(drive.shape[-1], dtype=drive.dtype)
    outputs, final = run_kernel(cell, sequence, drive, identity, steps)
    return outputs, [*final, *slots]


def drives(rule, u, slots, steps, is_masked):
    """Return the drive of a linear or scaled rule at all times, and the slots after `steps`."""
    if rule.linear:
        first, *t = slots
        if rule.shared:
            v = filtered_by_rule(rule, u, first, *t)
        else:
            v = filtered_by_element(*rule.coefficients(None), u, first)
        counters = [rule.advance_counter(t, ops.cast(steps, t.dtype)) for t in t]
        return v, [at(v, steps, first), *counters]
    mu, gain, factor = rule.scaling
    *v, m = slots
    # One name for the moments and their root, so that the moments are freed.
    root = second_moments(u, m, rule.beta)
    final = [at(root, steps, m)]
    root = ops.sqrt(root + rule.epsilon)
    if not v:
        return u / root * (gain * factor), final
    velocity = filtered_by(mu, gain, u, v[0])
    final = [at(velocity, steps, v[0]), *final]
    if is_masked:  # or the gradient of the root would be infinity times zero
        velocity = until(velocity, steps)
    return velocity / root * factor, final


def second_moments(u, m, beta):
    """Return m at all times. Once a square overflows m is infinite, as step by step.

    The filter takes finite numbers alone: in its products infinity times 0 would be NaN.
    """
    largest = float(np.finfo(keras.backend.standardize_dtype(u.dtype)).max)
    # `keras.ops.minimum` takes float64 to float32 on PyTorch.
    one = ops.ones((), dtype=u.dtype)  # without waiting, as in `unmasked`
    squares = u * u
    overflow, first = squares > largest, m > largest
    infinite = ops.logical_or(ops.cumsum(overflow, axis=1) > 0, ops.expand_dims(first, 1))
    squares = ops.where(overflow, largest * one, squares)
    moments = filtered_by(beta, 1 - beta, squares, ops.where(first, largest * one, m))
    return ops.where(infinite, float("inf") * one, moments)


def run_kernel(cell, sequence, x, rows, steps, bias=None):
    """Return h at all times and the final states of the recurrence on x @ rows + bias.

    Args:
        cell, sequence: as of `run_on_filtered_input`.
        x: tensor `(batch, time, width)`, without masked steps.
        rows: tensor `(width, drive width)`.
        steps: int tensor `(batch, 1)`, after how many steps each sample ends.
        bias: tensor `(drive width,)` or None.
    """
    mask = sequence.mask
    if mask is not None:
        x = until(x, steps)
    # A stock layer is built for one width, with a mask or without.
    if cell.recurrence_name == "lstm" and (mask is not None or needs_stock_layer(cell)):
        x, rows = holding(x, rows, steps, cell.units)
    x, rows = (ops.cast(a, cell.compute_dtype) for a in (x, rows))
    kernel = fused_kernel(cell, sequence.stock_layers)
    outputs, *final = kernel(cell, x, rows, sequence.states, bias)
    if mask is not None:
        outputs = spread_out(outputs, sequence.states[0], mask)
        final[0] = outputs[:, -1]
    return outputs, final


def holding(x, rows, steps, units):
    """Return x with a column more, and its row, which hold c from step `steps` on."""
    time = ops.expand_dims(ops.arange(ops.shape(x)[1], dtype="int32"), 0)
    idle = ops.expand_dims(ops.cast(time >= steps, x.dtype), -1)
    ones = ops.ones((1, units), dtype=x.dtype)
    row = ops.concatenate([-SATURATED * ones, SATURATED * ones, 0 * ones, 0 * ones], axis=1)
    x = ops.concatenate([x, idle], axis=-1)
    return x, ops.concatenate([rows, row], axis=0)
