"""The recurrence left to a fused kernel, and before it the rule, for all times at once."""

import keras
from keras import ops

from keras_momentum_rnn.paths.filter import filtered, filtered_input, unmasked
from keras_momentum_rnn.paths.masks import at, spread_out

# With this in its preactivation a sigmoid is 0 or 1 exactly.
SATURATED = 1e4


def run(cell, kernel, x, states, mask=None, training=False):
    """Run a sequence whose rule is linear and whose slots start at zero: filter x.

    Args:
        cell: a cell with `fused_kernel`.
        kernel: function that runs the recurrence, of `kernels.py`.
        x: tensor `(batch, time, features)`.
        states: list of the initial states; the slots are not read.
        mask: bool tensor `(batch, time)` or None.
        training: bool, whether dropout acts.

    Returns:
        h at all times, `(batch, time, units)`, and the final states, slots included.
    """
    x, steps = filtered_input(cell, x, mask, training)
    rows = cell.input_rows()
    slots = [at(x, steps) @ rows]
    if len(states) > len(cell.cell_state_size) + 1:
        slots.append(cell.rule.count(0, cell.wide(steps)))
    outputs, final = recurrence(cell, kernel, x, rows, states, mask, steps)
    return outputs, [*final, *slots]


def run_drive(cell, kernel, x, states, mask=None, training=False):
    """Run a sequence whose rule is linear or scaled: the kernel's input is the drive.

    Arguments and returns: as of `run`, but the slots may start anywhere.
    """
    x, steps = unmasked(x, mask)
    u = cell.projection(training)(ops.swapaxes(x, 0, 1))
    count = len(cell.cell_state_size)
    drive, slots = drives(cell.rule, ops.swapaxes(u, 0, 1), states[count:], steps)
    drive = ops.cast(drive, cell.compute_dtype)
    identity = ops.eye(drive.shape[-1], dtype=drive.dtype)
    outputs, final = recurrence(cell, kernel, drive, identity, states, mask, steps)
    return outputs, [*final, *slots]


def drives(rule, u, slots, steps):
    """Return the drive of a linear or scaled rule at all times, and the slots after `steps`."""
    if rule.linear:
        first, *t = slots
        v = filtered(rule.coefficients, u, first, *t)
        return v, [at(v, steps, first), *(rule.count(t, ops.cast(steps, t.dtype)) for t in t)]
    mu, gain, factor = rule.velocity
    *v, m = slots
    moments = filtered(lambda t: (rule.beta, 1 - rule.beta), u * u, m)
    scale = factor * ops.rsqrt(moments + rule.epsilon)
    final = [at(moments, steps, m)]
    if not v:
        return gain * u * scale, final
    velocity = filtered(lambda t: (mu, gain), u, v[0])
    return velocity * scale, [at(velocity, steps, v[0]), *final]


def recurrence(cell, kernel, x, rows, states, mask, steps):
    """Return h at all times and the final states of the recurrence on x @ rows."""
    # The layers of the other backends are built for one width, with a mask or without.
    if cell.fused_kernel == "lstm" and not (mask is None and keras.config.backend() == "torch"):
        x, rows = holding(x, rows, steps, cell.units)
    x, rows = (ops.cast(a, cell.compute_dtype) for a in (x, rows))
    outputs, *final = kernel(cell, x, rows, states)
    if mask is not None:
        outputs = spread_out(outputs, states[0], mask)
        final[0] = outputs[:, -1]
    return outputs, final


def holding(x, rows, steps, units):
    """Return x with a column more, and its row, which hold c from step `steps` on."""
    time = ops.expand_dims(ops.arange(ops.shape(x)[1], dtype="int32"), 0)
    idle = ops.expand_dims(ops.cast(time >= steps, x.dtype), -1)
    ones = ops.ones((1, units), dtype=x.dtype)
    row = ops.concatenate([-SATURATED * ones, SATURATED * ones, 0 * ones, 0 * ones], axis=1)
    # Past its last step a sample's velocity goes on by itself: silence it.
    x = ops.concatenate([x * (1 - idle), idle], axis=-1)
    return x, ops.concatenate([rows, row], axis=0)
