"""Rule and recurrence in one loop on PyTorch, with a gradient written by hand.

Autograd would record about thirty operations per step; here a step is a few, and only what the
backward pass needs is stored. Everything is time-major: `(time, batch, size)`.
"""

import torch
from torch.autograd.function import once_differentiable

from keras_momentum_rnn.paths.filtered import unmasked
from keras_momentum_rnn.paths.masks import spread_out
from keras_momentum_rnn.paths.torch_nested import Nested
from keras_momentum_rnn.paths.torch_recurrences import (
    GRU,
    LSTM,
    Elman,
    ModReLU,
    ReleasedLSTM,
    go_back,
    take_steps,
)
from keras_momentum_rnn.paths.torch_rules import Given, Momentum, Scaled

RECURRENCES = {
    "lstm": LSTM,
    "gru": GRU,
    "elman": Elman,
    "modrelu": ModReLU,
    "nested_gru": Nested(GRU),
    "nested_lstm": Nested(LSTM),
}
# The loop runs over chunks of steps. A chunk's drive takes about so many numbers: of more, the
# CPU cache holds too little; of fewer, too much time goes into beginning chunks.
CHUNK_SIZE = 2**19
# It has so many rows, samples times steps, at least: each chunk adds to the weights' gradients.
CHUNK_ROWS = 512


def run_with_custom_gradient(cell, sequence, plan):
    """Run a sequence; the slots may start anywhere.

    Args:
        cell: a cell with a `recurrence_name`, whose rule is linear, scaled or none.
        sequence: a `run.Sequence`.
        plan: a `Plan`.

    Returns:
        h at all times, `(batch, time, units)`, and the final states.
    """
    mask, states = sequence.mask, sequence.states
    x, steps = unmasked(sequence.x, mask)
    steps = None if mask is None else steps
    outputs, finals = run_time_major(cell, sequence.training, x.transpose(0, 1), states, steps)
    outputs = outputs.transpose(0, 1)
    if mask is not None:
        outputs = spread_out(outputs, states[0], mask)
    return outputs, finals


def run_time_major(cell, training, x, states, steps):
    """Run the rule and the recurrence.

    Args:
        cell: as of `run_with_custom_gradient`.
        training: bool, whether dropout acts.
        x: tensor `(time, batch, features)`.
        states: list of the initial states, slots included.
        steps: int tensor `(batch, 1)`, after how many steps a sample ends, or None where all
            run to the end.

    Returns:
        h at all times, `(time, batch, units)`, undefined past a sample's end, and the states
        at the samples' ends.
    """
    project, weights, counters = cell.projection(training), cell.recurrent_weights(), []
    if cell.rule.linear:
        # The loop does not count: what a linear rule's counter will be is known before.
        own, (v, *counters) = cell.split(states)
        states = [*own, v]
    rows = max(CHUNK_ROWS, CHUNK_SIZE // cell.drive_width)
    chunk = max(1, rows // max(1, x.shape[1]))
    outputs = []
    for start in range(0, len(x), chunk):
        u = project(x[start : start + chunk]).contiguous()
        rule, recurrence = of_chunk(cell, u, [t + start for t in counters])
        ends = Ends(steps if steps is None else (steps - start).clamp(0, len(u)))
        h, *states = CustomGradientLoop.apply(recurrence, rule, ends, u, *weights, *states)
        outputs.append(h)
    ends = len(x) if steps is None else steps
    counters = [cell.rule.advance_counter(t, ends) for t in counters]
    return torch.cat(outputs), [*states, *counters]


def of_chunk(cell, u, counters):
    """Return rule and recurrence with their numbers for the steps of a chunk."""
    rule = cell.rule
    if cell.recurrence_name == "released":
        return Given(), ReleasedLSTM(*per_step(rule, u, *counters))
    recurrence = RECURRENCES[cell.recurrence_name]
    if rule.scaled:
        return Scaled(*rule.scaling, rule.beta, rule.epsilon), recurrence
    return Momentum(*per_step(rule, u, *counters)) if rule.linear else Given(), recurrence


def per_step(rule, u, t=None):
    """Return mu and s of a linear rule at each step, two lists of tensors `(batch or 1, 1)`."""
    if t is not None:
        t = t + torch.arange(len(u), dtype=t.dtype, device=t.device)[:, None, None]
    numbers = (torch.as_tensor(n, dtype=u.dtype, device=u.device) for n in rule.coefficients(t))
    return [(n if n.ndim else n.expand(len(u), 1, 1)).unbind() for n in numbers]


class Ends:
    """After how many steps of a chunk each sample ends: `steps`, `(batch, 1)`, or None."""

    def __init__(self, steps):
        self.steps = steps
        if steps is not None:
            self.index = steps[:, 0].long(), torch.arange(len(steps), device=steps.device)

    def of(self, x_all):
        """Return what `x_all`, `(time + 1, batch, size)`, is at the ends."""
        return x_all[-1].clone() if self.steps is None else x_all[self.index]

    def add(self, x_all, d):
        """Add d, `(batch, size)`, to `x_all` at the ends."""
        if self.steps is None:
            x_all[-1] += d
        else:
            x_all[self.index] += d


class CustomGradientLoop(torch.autograd.Function):
    """(u, weights, initial states) -> (h at all times, final states)."""

    @staticmethod
    def forward(ctx, recurrence, rule, ends, u, *inputs):
        weights, inputs = inputs[: recurrence.weights], inputs[recurrence.weights :]
        own, slots = inputs[: recurrence.states], inputs[recurrence.states :]
        drive, slots_all = rule.drive(u, *slots)
        finals = [ends.of(x) for x in slots_all]
        del slots_all
        states_all, kept = take_steps(recurrence, drive, weights, *own)
        ctx.recurrence, ctx.rule, ctx.ends = recurrence, rule, ends
        ctx.slots = len(slots)
        ctx.save_for_backward(u, *weights, *slots, *states_all, *kept)
        return states_all[0][1:], *(ends.of(x) for x in states_all), *finals

    @staticmethod
    @once_differentiable
    def backward(ctx, d_outputs, *d_finals):
        u, *kept = ctx.saved_tensors
        weights, kept = kept[: ctx.recurrence.weights], kept[ctx.recurrence.weights :]
        slots, kept = kept[: ctx.slots], kept[ctx.slots :]
        count = ctx.recurrence.states
        d_drive, d_weights, d_states = go_back(
            ctx.recurrence, weights, kept, d_outputs, d_finals[:count], ctx.ends
        )
        du, d_slots = ctx.rule.backward(u, slots, d_drive, d_finals[count:], ctx.ends)
        return None, None, None, du, *d_weights, *d_states, *d_slots
