"""Rule and recurrence in one loop on PyTorch, with a gradient written by hand.

Autograd would record about thirty operations per step; here a step is a few, and only what the
backward pass needs is stored. A gradient that is to be differentiated again is computed by
autograd from the cell's own steps. Everything is time-major: `(time, batch, size)`.
"""

from dataclasses import dataclass

import torch
from keras import ops

from keras_momentum_rnn.paths.filtered import filtered_before, unmasked
from keras_momentum_rnn.paths.masks import spread_out
from keras_momentum_rnn.paths.torch_again import by_autograd, gradients_by_autograd
from keras_momentum_rnn.paths.torch_filter import ElementwiseFilter
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
# The loop runs over chunks of steps. A chunk's drive has about so many numbers: more do not fit
# in the CPU cache, and with fewer, starting chunks takes too much time.
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
    project, counters = cell.projection(training), []
    filters = filtered_before(cell.rule)
    weights = [None if w is None else cell.to_slot_dtype(w) for w in cell.recurrent_weights()]
    if cell.rule.linear:
        # The loop does not count: a linear rule's counter is known in advance.
        own, (v, *counters) = cell.split(states)
        states = own if filters else [*own, v]
    if filters:
        mu, s = (
            ops.convert_to_tensor(n, v.dtype).expand(cell.drive_width)
            for n in cell.rule.coefficients(None)
        )
    rows = max(CHUNK_ROWS, CHUNK_SIZE // cell.drive_width)
    chunk = max(1, rows // max(1, x.shape[1]))
    outputs = []
    for start in range(0, len(x), chunk):
        # Under `torch.autocast` a product is in half precision, and the loop is in one dtype.
        u = cell.to_slot_dtype(project(x[start : start + chunk])).contiguous()
        ends = Ends(steps if steps is None else (steps - start).clamp(0, len(u)))
        if filters:
            u, v = ElementwiseFilter.apply(ends, s * u, mu, v)
        chunk_of_steps = new_chunk(cell, u, [t + start for t in counters], ends)
        h, *states = CustomGradientLoop.apply(chunk_of_steps, u, *weights, *states)
        outputs.append(h)
    ends = len(x) if steps is None else steps
    counters = [cell.rule.advance_counter(t, ends) for t in counters]
    slots = [v, *counters] if filters else counters
    return torch.cat(outputs), [*states, *slots]


@dataclass(frozen=True)
class Chunk:
    """How some steps on end are run.

    Attributes:
        recurrence: the cell's equation with its gradient, of `RECURRENCES`.
        rule: the rule with its gradient, of `torch_rules`.
        ends: `Ends`, where samples end among these steps.
        cell: the cell, whose own steps are the definition of both.
        counters: list, of a linear rule its counter at the first step.
    """

    recurrence: object
    rule: object
    ends: object
    cell: object
    counters: list

    def split(self, inputs):
        """Return the weights, the cell's own states and the slots, three lists."""
        first, second = (
            self.recurrence.weights,
            self.recurrence.weights + self.recurrence.states,
        )
        return list(inputs[:first]), list(inputs[first:second]), list(inputs[second:])

    def run_steps(self, u, *inputs):
        """Return h at all steps and the final states, by operations that autograd records."""
        weights, own, slots = self.split(inputs)
        if filtered_before(self.cell.rule):
            step = self.cell.recurrence(weights=weights)
        else:
            step = self.cell.step_from_projection(weights=weights)
        states, outputs = [*own, *slots, *self.counters], []
        for t, u_t in enumerate(u.unbind()):
            new_states = step(u_t, states)
            if self.ends.steps is not None:
                goes_on = t < self.ends.steps
                pairs = zip(new_states, states)
                new_states = [torch.where(goes_on, new, old) for new, old in pairs]
            states = new_states
            outputs.append(states[0])
        return torch.stack(outputs), *states[: len(states) - len(self.counters)]


def new_chunk(cell, u, counters, ends):
    """Return the `Chunk` of a cell for the steps of u, with their numbers."""
    rule, name = cell.rule, cell.recurrence_name
    by_hand, recurrence = Given(), RECURRENCES.get(name)
    if name == "released":
        recurrence = ReleasedLSTM(*per_step(rule, u, *counters))
    elif rule.scaled:
        by_hand = Scaled(*rule.scaling, rule.beta, rule.epsilon)
    elif rule.linear and not filtered_before(rule):
        by_hand = Momentum(*per_step(rule, u, *counters))
    return Chunk(recurrence, by_hand, ends, cell, counters)


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
    def forward(ctx, chunk, u, *inputs):
        weights, own, slots = chunk.split(inputs)
        drive, slots_all = chunk.rule.drive(u, *slots)
        finals = [chunk.ends.of(x) for x in slots_all]
        del slots_all
        states_all, kept = take_steps(chunk.recurrence, drive, weights, *own)
        ctx.chunk, ctx.inputs = chunk, len(inputs)
        ctx.save_for_backward(u, *inputs, *states_all, *kept)
        return states_all[0][1:], *(chunk.ends.of(x) for x in states_all), *finals

    @staticmethod
    def backward(ctx, d_outputs, *d_finals):
        u, *kept = ctx.saved_tensors
        inputs, kept = kept[: ctx.inputs], kept[ctx.inputs :]
        d_results = [d_outputs, *d_finals]
        if by_autograd(d_results):
            run = ctx.chunk.run_steps
            return None, *gradients_by_autograd(run, [u, *inputs], d_results)
        recurrence, ends = ctx.chunk.recurrence, ctx.chunk.ends
        weights, _, slots = ctx.chunk.split(inputs)
        count = recurrence.states
        d_drive, d_weights, d_states = go_back(
            recurrence, weights, kept, d_outputs, d_finals[:count], ends
        )
        du, d_slots = ctx.chunk.rule.backward(u, slots, d_drive, d_finals[count:], ends)
        return None, du, *d_weights, *d_states, *d_slots
