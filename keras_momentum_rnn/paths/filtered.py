"""A linear rule, v_t = mu_t v_{t-1} + s u_t, applied to the input.

It commutes with u_t = x_t W + b: filtering [x, 1] and projecting the result by [W, b] gives v,
and [x, 1] is the narrower of the two. Step by step, or for all times at once.
"""

from numbers import Real

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.paths.masks import at, compacted, spread_out
from keras_momentum_rnn.paths.steps import scan_options, scan_steps

CHUNK = 64
# Where the momentum of a rule that counts is looked at.
SAMPLED_STEPS = np.float32([*range(CHUNK), *(2**n for n in range(6, 25))])[:, None]


def run_filtering_steps(cell, sequence, plan):
    """Run the loop with the filtered [x, 1] in place of v, which starts at zero.

    Args:
        cell: a cell with a linear rule and `drive_from_input`.
        sequence: a `run.Sequence`; v in its states is not read.
        plan: a `Plan`.

    Returns:
        The first state at all times, `(batch, time, size)`, and the final states.
    """
    projects, mask, training = plan.projects_before_loop, sequence.mask, sequence.training
    if keras.config.backend() == "jax" and not projects:
        # XLA fuses the filter into the step, where it costs nothing.
        return filter_in_steps(cell, sequence, plan)
    own, slots = cell.split(sequence.states)
    rows = cell.input_rows()
    recur = cell.recurrence(training)
    x, steps = filtered_input(cell, sequence)
    counters = [cell.rule.advance_counter(0, cell.to_slot_dtype(steps)) for _ in slots[1:]]
    final_slots = [at(x, steps) @ rows, *counters]
    if mask is not None:
        x = spread_out(x, ops.zeros_like(x[:, 0]), mask)
    if projects:
        x = ops.cast(x @ rows, cell.compute_dtype)

    def step(x, states):
        return recur(x if projects else ops.cast(x @ rows, cell.compute_dtype), states)

    outputs, final = scan_steps(step, x, own, **scan_options(sequence, plan))
    return outputs, [*final, *final_slots]


def filter_in_steps(cell, sequence, plan):
    """As `run_filtering_steps`, each step filtering its own input."""
    x = sequence.x
    own, (_, *counters) = cell.split(sequence.states)
    narrow = ops.zeros((ops.shape(x)[0], x.shape[-1] + 1), dtype=cell.slot_dtype)
    step = cell.step_from_filtered_input(sequence.training)
    states = [*own, narrow, *counters]
    outputs, states = scan_steps(step, x, states, **scan_options(sequence, plan))
    v = len(own)
    states[v] = states[v] @ cell.input_rows()
    return outputs, states


def filtered_input(cell, sequence):
    """Return the filtered [x, 1], or x if there is no rule, and the number of its steps.

    Masked steps are left out.
    """
    x = cell.to_slot_dtype(sequence.x)
    if sequence.training and cell.dropout:
        x = x * ops.expand_dims(cell.to_slot_dtype(cell.get_dropout_mask(x[:, 0])), 1)
    x, steps = unmasked(x, sequence.mask)
    if not cell.rule.linear:
        return x, steps
    x = ops.concatenate([x, ops.ones_like(x[..., :1])], axis=-1)
    return filtered_by_rule(cell.rule, x), steps


def unmasked(x, mask):
    """Return x without its masked steps, and after how many steps each sample ends."""
    if mask is None:
        # On PyTorch `keras.ops.full` waits for the GPU, to move the number there and back.
        return x, ops.shape(x)[1] * ops.ones((ops.shape(x)[0], 1), dtype="int32")
    return compacted(x, mask)


def filtered_by_rule(rule, x, first=None, *start):
    """Return v of a linear rule at all times; `first` and `start` as of `filtered`."""
    if rule.counts:
        return filtered(rule.coefficients, x, first, *start)
    return filtered_by(*rule.coefficients(None), x, first)


def filtered_by(mu, s, x, first=None):
    """As `filtered`, with the same coefficients at every step."""
    if not (isinstance(mu, Real) and isinstance(s, Real)):
        return filtered(lambda t: (mu, s), x, first)
    mu, s = float(mu), float(s)  # a NumPy number would keep its few bits
    batch, time, width = ops.shape(x)
    chunks, length = chunks_of(time)
    # Time comes first, as a kernel of a GPU has it, and all samples are columns of one product.
    x = ops.reshape(ops.swapaxes(in_chunks(x), 0, 1), (chunks, length, batch * width))
    steps = ops.arange(length, dtype=x.dtype)
    past = ops.expand_dims(steps, 1) - steps
    v = (s * mu ** ops.relu(past) * ops.cast(past >= 0, x.dtype)) @ x
    first = ops.zeros_like(v[:1, 0]) if first is None else ops.reshape(first, (1, -1))
    carry, ends = mu**length, ops.expand_dims(v[:, -1], 0)
    lasts, _ = scan_steps(lambda end, last: [end + carry * last[0]], ends, [first])
    before = ops.concatenate([first, lasts[0, :-1]])
    v = plus_product(v, ops.expand_dims(mu ** (steps + 1), 1), ops.expand_dims(before, 1))
    return ops.swapaxes(ops.reshape(v, (chunks * length, batch, width)), 0, 1)[:, :time]


def chunks_of(time):
    """Return into how many chunks so many steps are cut, and the length of each."""
    # Not -(-time // CHUNK): ONNX rounds the quotient of a negative number up.
    chunks = (time + CHUNK - 1) // CHUNK
    return chunks, ((time + chunks - 1) // chunks if isinstance(time, int) else CHUNK)


def in_chunks(x):
    """Return x, `(batch, time, width)`, with zeros up to a whole number of chunks."""
    time = ops.shape(x)[1]
    chunks, length = chunks_of(time)
    if isinstance(time, int) and time == chunks * length:
        return x
    return ops.pad(x, [[0, 0], [0, chunks * length - time], [0, 0]])


def plus_product(v, column, row):
    """Return v + column * row, on PyTorch without the product in memory."""
    if keras.config.backend() == "torch":
        import torch

        return torch.addcmul(v, column, row)
    return v + column * row


def filtered(coefficients, x, first=None, start=None, constant=False):
    """Return v at all times, `(batch, time, width)`.

    The sequence is cut into chunks. Within one, v is a triangular matrix of products of
    coefficients times x; between two, the last v is carried. No ratio and no logarithm is
    taken, so a coefficient of 0 is no special case.

    Args:
        coefficients: function of step numbers, `(steps,)` or `(batch, steps)`, to mu and s,
            each of the same shape or a number.
        x: tensor `(batch, time, width)`.
        first: tensor `(batch, width)`, v before the first step. Defaults to zero.
        start: tensor `(batch, 1)`, the numbers of the first step. Defaults to 0.
        constant: bool, whether the coefficients do not depend on the numbers of the steps.
            Defaults to `False`.
    """
    batch, time, width = ops.shape(x)
    chunks, length = chunks_of(time)
    # Samples that share their step numbers are columns of one product.
    lanes, wide = (1, batch * width) if start is None else (batch, width)
    x = ops.reshape(ops.swapaxes(in_chunks(x), 0, 1), (chunks, length, lanes, wide))
    x = ops.swapaxes(x, 1, 2)
    # With `set_floatx("float16")` Keras counts in int16, which ends at 32767.
    steps = ops.arange(chunks * length, dtype="int32")
    # Behind the last step a rule may have no numbers; it has those of step 0.
    steps = steps * ops.cast(steps < time, "int32")
    t = ops.reshape(ops.cast(steps, x.dtype), (chunks, 1, length))
    if constant:
        t = t[:1]
    inner, carry = chunk_coefficients(coefficients, t if start is None else start + t)
    v = inner @ x
    if constant:
        carry = carry + ops.zeros_like(v[..., :1])

    def last_of_chunk(chunk, last):
        inner, carry = chunk
        return [inner + carry * last[0]]

    first = ops.zeros_like(v[0, :, 0]) if first is None else ops.reshape(first, (lanes, wide))
    ends = [ops.swapaxes(end[:, :, -1], 0, 1) for end in (v, carry)]
    lasts, _ = scan_steps(last_of_chunk, ends, [first])
    before = ops.concatenate([ops.expand_dims(first, 1), lasts[:, :-1]], axis=1)
    v = plus_product(v, carry, ops.expand_dims(ops.swapaxes(before, 0, 1), 2))
    v = ops.reshape(ops.swapaxes(v, 1, 2), (chunks * length, batch, width))
    return ops.swapaxes(v[:time], 0, 1)


def filters_drive(rule):
    """Return whether a linear rule has numbers that only a filter of the drive can take.

    They are learned, are vectors, or are tensors, which a compiled loop cannot hold.
    """
    return rule.linear and (rule.learns or not rule.shared or not has_fixed_numbers(rule))


def has_fixed_numbers(rule):
    """Return whether the coefficients of a linear rule are numbers; if it counts, s alone."""
    mu, s = rule.coefficients(ops.ones((1, 1)) if rule.counts else None)
    return is_number(s) and (rule.counts or is_number(mu))


def is_number(n):
    """Return whether something is a number, not a tensor."""
    return isinstance(n, Real) or (isinstance(n, np.ndarray) and n.ndim == 0)


def powers_overflow(rule):
    """Return whether the momentum of a rule, to the power of a chunk's length, overflows.

    Then its filter would multiply infinity by zero.
    """
    if rule.has_weights:  # it may not have them yet
        return False
    if rule.scaled:
        mu, _, _ = rule.scaling
    elif rule.linear:
        steps = ops.convert_to_tensor(SAMPLED_STEPS) if rule.counts else None
        try:
            mu, _ = rule.coefficients(steps)
        except Exception:  # of the user: a table may end before
            return True
    else:
        return False
    if not isinstance(mu, (Real, np.ndarray)):
        try:
            mu = ops.convert_to_numpy(mu)
        except Exception:  # each backend has another, for a number that a trace does not know
            return False
    return float(np.max(np.abs(mu))) >= float(np.finfo("float32").max) ** (1 / CHUNK)


def filtered_by_element(mu, s, u, first):
    """Return v at all times where each element of u has numbers of its own, constant in time.

    Args:
        mu, s: tensors `(width,)`, or one number for all.
        u: tensor `(batch, time, width)`.
        first: tensor `(batch, width)`, v before the first step.
    """
    mu = ops.broadcast_to(ops.convert_to_tensor(mu, dtype=u.dtype), (u.shape[2],))
    # Elements take the place of samples, which may have coefficients of their own.
    elements, first = ops.transpose(s * u, (2, 1, 0)), ops.transpose(first)
    start = ops.zeros((u.shape[2], 1), dtype=u.dtype)

    def coefficients(t):
        return ops.expand_dims(mu, 1) + 0 * t, 1.0

    v = filtered(coefficients, elements, first, start, constant=True)
    return ops.transpose(v, (2, 1, 0))


def chunk_coefficients(coefficients, t):
    """Return the weights of a chunk's x, and of the v before it, in its v.

    Args:
        coefficients: as of `filtered`.
        t: tensor `(..., length)`, the numbers of the chunk's steps.

    Returns:
        The triangle `(..., length, length)`, s_j times mu_{j+1} ... mu_i at (i, j), and the
        column `(..., length, 1)`, mu_0 ... mu_i.
    """
    mu, s = coefficients(t)
    mu, s = ops.ones_like(t) * mu, ops.ones_like(t) * s
    steps = ops.arange(t.shape[-1], dtype="int32")
    i, j = ops.expand_dims(steps, 1), ops.expand_dims(steps, 0)
    column = ops.expand_dims(mu, -1)
    factors = ops.where(i > j, column, ops.ones_like(column))
    triangle = cumulative_product(factors) * ops.cast(i >= j, t.dtype)
    return ops.expand_dims(s, -2) * triangle, mu[..., :1, None] * triangle[..., :1]


def cumulative_product(x):
    """Return the products from the top of a matrix down."""
    if keras.config.backend() == "torch":
        # `keras.ops.cumprod` takes float64 to float32.
        return x.cumprod(-2)
    return ops.cumprod(x, axis=-2)
