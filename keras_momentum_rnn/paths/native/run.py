"""A sequence on the native kernel."""

import importlib
from dataclasses import dataclass
from numbers import Real

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.paths.filtered import filters_drive
from keras_momentum_rnn.paths.native.kernel import Equation
from keras_momentum_rnn.paths.steps import scan_steps

# The kernel as an operation of the active backend.
run_cell = importlib.import_module(f"{__package__}.{keras.config.backend()}_call").run_cell


@dataclass(frozen=True)
class Problem:
    """What the kernel computes, beside its inputs: x, the weights and the states.

    Attributes:
        cell: the cell, whose own steps are the definition.
        equation: a `kernel.Equation` without its mu.
        mu: float32 tensor `(1 or batch, time)`, or `(1, 1)` where it is one number, then an
            array where it can be.
        dropout: float32 tensor `(batch, gates * units)`, the dropout masks of h, or None.
        counters: list of a counting rule's counter at the first step.
        mask: bool tensor `(batch, time)` or None. Where it is False every state is held.
        training: bool; where it is False, nothing is kept for a way back.
        all_outputs: bool; False where only the last h is wanted, and no way back.
    """

    cell: object
    equation: Equation
    mu: object
    dropout: object
    counters: list
    mask: object
    training: bool
    all_outputs: bool

    def run_steps(self, *inputs):
        """Run the cell's own steps: operations that every derivative and transform knows.

        Return h, at all times or the last one, and the final states. Where W has no rows, x is
        u. Where the rule was filtered before, x is the drive and the states are the cell's own.
        """
        x, (W, b, *weights), states = self.equation.divided(inputs)
        with self.cell.recurrent_masks_given(self.dropout):
            if filters_drive(self.cell.rule):
                step = self.cell.recurrence(weights=weights)
            else:
                step = self.cell.step_from_projection(weights=weights)
        u = x @ W if W.shape[0] else x
        if b is not None:
            u = u + b
        states = [*states, *self.counters]
        outputs, finals = scan_steps(step, u, states, self.mask, all_outputs=self.all_outputs)
        return outputs, finals[: len(finals) - len(self.counters)]


def run_native(cell, sequence, plan):
    """Run a sequence; the slots may start anywhere.

    Args:
        cell: a cell of one of `RECURRENCES`, whose rule is linear, scaled or none.
        sequence: a `run.Sequence`.
        plan: a `Plan`.

    Returns:
        h at all times, `(batch, time, units)`, and the final states.
    """
    x, mask, rule, training = sequence.x, sequence.mask, cell.rule, sequence.training
    dropped = cell.get_dropout_mask(x[:, 0]) if training and cell.dropout else None
    # Under a mask for each gate, the product with x is not the kernel's.
    by_gate = isinstance(dropped, list)
    if dropped is not None and not by_gate:
        x = x * ops.expand_dims(dropped, 1)
    states, counters, slots = sequence.states, [], []
    weights = [cell.kernel, cell.input_bias, *cell.recurrent_weights(training)]
    weights = [None if w is None else ops.convert_to_tensor(w) for w in weights]
    if by_gate or filters_drive(rule):
        x = projected(cell, x, by_gate)
        weights[:2] = ops.zeros((0, cell.drive_width), dtype=x.dtype), None
    if filters_drive(rule):
        states, (first,) = cell.split(states)
        x, slots = filtered_drive(cell, x, first, mask)
    elif rule.linear:
        own, (v, *counters) = cell.split(states)
        states = [*own, v]
    equation, mu = equation_and_mu(cell, x, counters, mask)
    dropout = recurrent_masks(cell, training)
    all_outputs = training or sequence.all_outputs
    problem = Problem(cell, equation, mu, dropout, counters, mask, training, all_outputs)
    outputs, finals = run_cell(problem, x, weights, states)
    if counters:
        steps = (
            ops.shape(x)[1]
            if mask is None
            else ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
        )
        steps = ops.cast(steps, counters[0].dtype)
        counters = [cell.rule.advance_counter(t, steps) for t in counters]
    if not sequence.all_outputs:
        # A copy: what a caller does to the state must not reach the output.
        outputs = ops.expand_dims(ops.copy(finals[0]), 1)
    return outputs, [*finals, *slots, *counters]


def projected(cell, x, drops):
    """Return u at all times; `drops`: whether x is under a mask for each gate."""
    if drops:  # which fits each step, not all of them
        u = ops.swapaxes(cell.projection(drops)(ops.swapaxes(x, 0, 1)), 0, 1)
    else:  # of a matrix: TensorFlow's `vectorized_map` spoils products of more axes
        u = cell.projection()(ops.reshape(x, (-1, cell.kernel.shape[0])))
        u = ops.reshape(u, (*ops.shape(x)[:2], cell.drive_width))
    # Under `torch.autocast` the product is in half precision.
    return cell.to_slot_dtype(u)


def recurrent_masks(cell, training):
    """Return the dropout masks of h gate by gate, `(batch, gates * units)`, or None."""
    masks = cell.recurrent_masks(training)
    if masks is None:
        return None
    masks = masks if isinstance(masks, list) else [masks] * cell.gates
    return ops.cast(ops.concatenate(masks, axis=-1), "float32")


def filtered_drive(cell, u, first, mask):
    """Return the drive of all times of a rule that is filtered before the loop, and its end."""
    mu, s = (ops.convert_to_tensor(n, dtype=u.dtype) for n in cell.rule.coefficients(None))
    # Of few numbers in the CPU cache, steps are faster than the filter in chunks.
    return scan_steps(lambda u, v: [mu * v[0] + u], s * u, [first], mask=mask)


def equation_and_mu(cell, x, counters, mask):
    """Return a `kernel.Equation` and mu at each step, `(1 or batch, time)`."""
    name, rule = cell.recurrence_name, cell.rule
    if rule.scaled:
        mu, gain, factor = rule.scaling
        beta, epsilon = rule.beta, rule.epsilon
        equation = Equation(name, "scaled", gain, factor, beta, 1 - beta, epsilon)
        return equation, row_of(mu)
    if not rule.linear or filters_drive(rule):
        return Equation(name), row_of(0)
    if not counters:
        mu, gain = rule.coefficients(None)
        return Equation(name, "linear", gain), row_of(mu)
    if mask is None:
        time = ops.expand_dims(ops.arange(ops.shape(x)[1], dtype="float32"), 0)
    else:  # a masked step does not count
        time = ops.cumsum(ops.cast(mask, "float32"), axis=1) - 1
    mu, gain = rule.coefficients(*(t + time for t in counters))
    kind = ("whole", -gain) if name == "released" else ("linear", gain)
    return Equation(name, *kind), mu * ops.ones_like(time)


def row_of(mu):
    """Return one number as a row: an array where it can be, which costs less than a tensor."""
    if isinstance(mu, Real):
        return np.full((1, 1), mu, np.float32)
    return ops.reshape(ops.cast(mu, "float32"), (1, 1))
