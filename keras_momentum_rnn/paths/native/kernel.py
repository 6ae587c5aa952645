"""A cell with a rule on its drive, on NumPy arrays: forward, and back."""

import dataclasses
import itertools
from dataclasses import dataclass, field

import numpy as np

from keras_momentum_rnn.paths.native import loops, nested
from keras_momentum_rnn.paths.native.arrays import (
    Gradients,
    Inputs,
    Kept,
    Numbers,
    Saved,
    Shape,
    States,
    Weights,
)
from keras_momentum_rnn.paths.native.equations import (
    ELMAN,
    GRU,
    LINEAR,
    LSTM,
    MODRELU,
    NONE,
    SCALED,
    WHOLE,
)
from keras_momentum_rnn.paths.native.nested import GRU_INSIDE, LSTM_INSIDE, NestedWeights
from keras_momentum_rnn.paths.native.padding import (
    by_gate,
    flat,
    from_gates,
    gradients_of_weights,
    own_shapes,
    packed_parts,
    packed_weights,
    padded_dropout,
    padded_states,
    padded_weights,
    padded_width,
    parts_of,
)
from keras_momentum_rnn.paths.native.runtime import run_all, shares, workspace

KINDS = {"none": NONE, "linear": LINEAR, "scaled": SCALED, "whole": WHOLE}
# So many samples go through time together, so that weights are read from the cache.
SAMPLES = {NONE: 32, LINEAR: 32, SCALED: 16, WHOLE: 32}
# Rows, samples times steps, that are gathered for the gradients of the weights.
RING_ROWS = 64
# Numbers of each of the three arrays of a scaled rule that are computed again at once.
CHUNK = 2**16


@dataclass(frozen=True)
class Recurrence:
    """What is kept of a recurrence, and its weights. Widths are multiples of that of h.

    Attributes:
        code: number by which the loops know it.
        gates: the width of the drive.
        kept: the width of what is kept of a step.
        memories: how many states there are beside h, each as wide.
        inner: the width of the drive of a nested memory, or 0.
        weights: class of the named weights, matrices and biases in turn, as loops take them.
        loops: module with the functions `forward` and `backward`.
    """

    code: int
    gates: int
    kept: int
    memories: int = 0
    inner: int = 0
    weights: type = Weights
    loops: object = loops

    @property
    def own_states(self):
        """The number of its states, h first."""
        return 1 + self.memories


# By their names in `paths.registry`. A new one is a row of `equations`, or loops of its own as
# those of `nested`, and an entry here.
RECURRENCES = {
    "lstm": Recurrence(LSTM, gates=4, kept=4, memories=1),
    "released": Recurrence(LSTM, gates=4, kept=4, memories=1),  # always with the kind "whole"
    "gru": Recurrence(GRU, gates=3, kept=4),
    "elman": Recurrence(ELMAN, gates=1, kept=1),
    "modrelu": Recurrence(MODRELU, gates=1, kept=1),
    "nested_gru": Recurrence(GRU_INSIDE, 4, 8, 1, 3, NestedWeights, nested),
    "nested_lstm": Recurrence(LSTM_INSIDE, 4, 8, 2, 4, NestedWeights, nested),
}


@dataclass(frozen=True)
class Equation:
    """A cell and its rule.

    Attributes:
        cell: a name of `RECURRENCES`.
        kind: "none", "linear", "scaled", or "whole" where the rule acts after the product.
        gain, factor, beta, epsilon: floats, as of `rules.ScaledRule`.
        share: float, 1 - beta; of a beta near 1 in float32 it would have few digits.
        mu: float32 array `(1 or batch, time)`, or `(1, 1)` where it is one number.
        dropout: float32 array `(batch, gates * units)`, by which each gate multiplies h before
            the recurrent product, or None.
    """

    cell: str = "lstm"
    kind: str = "none"
    gain: float = 1.0
    factor: float = 1.0
    beta: float = 0.0
    share: float = 1.0
    epsilon: float = 1.0
    mu: object = field(default_factory=lambda: np.zeros((1, 1), np.float32), compare=False)
    dropout: object = field(default=None, compare=False)

    def with_arrays(self, mu, dropout):
        """Return the equation of a call; `dropout` may hold no numbers for None."""
        dropout = None if dropout is None or dropout.size == 0 else dropout
        return dataclasses.replace(self, mu=mu, dropout=dropout)

    def sorted(self, schedule):
        """Return the equation with its arrays in the order of a `Schedule`."""
        mu = schedule.sorted(self.mu) if len(self.mu) > 1 else self.mu
        dropout = None if self.dropout is None else schedule.sorted(self.dropout)
        return dataclasses.replace(self, mu=mu, dropout=dropout)

    def as_numbers(self):
        """Return all but the arrays as floats, for backends that know no other options."""
        cell, kind = list(RECURRENCES).index(self.cell), list(KINDS).index(self.kind)
        own = self.gain, self.factor, self.beta, self.share, self.epsilon
        return [float(number) for number in (cell, kind, *own)]

    @classmethod
    def of_numbers(cls, numbers):
        cell, kind, *own = map(float, numbers)
        return cls(list(RECURRENCES)[int(cell)], list(KINDS)[int(kind)], *own)

    @property
    def recurrence(self):
        return RECURRENCES[self.cell]

    def divided(self, inputs):
        """Return x, the weights and the states of a list [x, *weights, *states]."""
        x, *others = inputs
        count = len(self.recurrence.weights._fields)
        return x, others[:count], others[count:]

    def slot_names(self, count):
        """Return the names of the slots, where there are so many states."""
        # RMSProp has m alone; the velocity of its equation is u.
        both = count - self.recurrence.own_states == 2
        slots = "vm" if both else "m" if self.kind == "scaled" else "v"
        return slots[: count - self.recurrence.own_states]

    def outputs_shape(self, x, states, all_outputs):
        """Return the shape of h at all times, or of the last one."""
        return x.shape[0], x.shape[1] if all_outputs else 1, states[0].shape[-1]

    def numbers(self, time):
        row = self.mu.shape[1] if len(self.mu) > 1 else 0
        mu = np.full(time, self.mu[0, 0]) if self.mu.size == 1 else flat(self.mu)
        numbers = self.gain, self.factor, self.beta, self.share, self.epsilon
        return Numbers(KINDS[self.kind], mu, row, *map(np.float32, numbers))

    def shape(self, batch, time, features, units, driven=False):
        padded, recurrence = padded_width(units), self.recurrence
        wide = recurrence.gates * padded
        return Shape(
            recurrence.code, batch, time,
            features=wide if driven else features,
            units=units,
            padded=padded,
            wide=wide,
            memories=recurrence.memories,
            inner=recurrence.inner * padded,
            kept=recurrence.kept * padded,
            every=max(1, CHUNK // (SAMPLES[KINDS[self.kind]] * wide)),
            outputs=time,
            driven=driven,
            drops=self.dropout is not None,
        )  # fmt: skip

    def kept_shapes(self, batch, time, units, keeps=True):
        """Return the shapes of the arrays of `Kept`."""
        shape = self.shape(batch, time, 1, units)
        memories, steps = shape.memories * shape.padded, time if keeps else 1
        scaled = self.kind == "scaled" and keeps
        slots = (-(-time // shape.every) if scaled else 0, batch, shape.wide)
        c = (steps + keeps, batch, memories) if memories else (0, 0, 0)
        return (batch, time, units), c, (steps, batch, shape.kept), slots, slots


@dataclass(frozen=True)
class Schedule:
    """When each sample takes its steps. Samples are in the order in which they end, last first.

    Attributes:
        order: int array `(batch,)`, which of the given samples each one is.
        active: bool array `(batch * time,)`, whether a sample takes a step.
        spans: bool array `(batch, time)`, whether a step lies between its first and its last.
        changes: bool, whether the order is another one than that given.
    """

    order: np.ndarray
    active: np.ndarray
    spans: np.ndarray
    changes: bool

    @classmethod
    def of_mask(cls, mask, batch, time):
        """Return the schedule of a mask `(batch, time)`; None or empty where there is none."""
        order = np.arange(batch)
        if mask is None or mask.size == 0:
            active = np.full((batch, time), True)
            return cls(order, active.reshape(-1), active, False)
        mask = np.broadcast_to(mask.astype(bool), (batch, time))
        begin, end = mask.argmax(1), time - mask[:, ::-1].argmax(1)
        end[~mask.any(1)] = 0
        order, t = np.lexsort((begin, -end)), np.arange(time)
        spans = (begin[order, None] <= t) & (t < end[order, None])
        return cls(order, mask[order].reshape(-1), spans, True)

    def sorted(self, array):
        """Return an array whose rows are the samples as given, in this order."""
        return array[self.order] if self.changes else array

    def as_given(self, array):
        """Return an array whose rows are in this order as the samples were given."""
        return array[np.argsort(self.order)] if self.changes else array

    def groups(self, samples, most):
        """Return a thread's samples as groups of alike size, `(counts, first, size)`.

        counts: int array `(time,)`, so many of them, from the first on, may take a step.
        """
        first, last = samples
        count = -(-(last - first) // most)
        cuts = [first + (last - first) * i // count for i in range(count + 1)]
        numbers = np.arange(1, most + 2)
        return [
            ((self.spans[a:b] * numbers[: b - a, None]).max(0), a, b - a)
            for a, b in itertools.pairwise(cuts)
        ]


def prepared(equation, x, weights, mask, reads_x=True):
    """Return what both ways begin with: how samples and sizes are arranged, and `Inputs`.

    Args:
        equation, x, weights, mask: as of `forward`. Where W has no rows, x is the drive.
        reads_x: bool; False where the loops do not read an x that is the drive.

    Returns:
        The `Schedule`, the `Equation` in its order, `Shape`, the padded matrices and biases,
        and `Inputs`.
    """
    batch, time, features = x.shape
    units, driven = weights[2].shape[0], len(weights[0]) == 0
    schedule = Schedule.of_mask(mask, batch, time)
    equation = equation.sorted(schedule)
    shape = equation.shape(batch, time, features, units, driven)
    if driven:
        x = by_gate(x, units) if reads_x else x[:0]
    matrices, biases = padded_weights(weights, equation, shape)
    inputs = Inputs(
        flat(x), packed_weights(matrices, biases, equation), equation.numbers(time),
        schedule.active, schedule.order, padded_dropout(equation, units),
    )  # fmt: skip
    return schedule, equation, shape, matrices, biases, inputs


def check_sizes(equation, x, weights, states, mask):
    """Refuse arrays of sizes that do not fit: the loops would read beyond their ends.

    A graph of TensorFlow does not know all sizes, and `TimeDistributed` calls layers past
    their checks.

    Args:
        equation, x, weights, states, mask: as of `forward`.

    Raises:
        ValueError: with the shape that is needed, and that received.
    """
    batch, time = x.shape[:2]
    units, wide = weights[2].shape
    own = equation.recurrence.own_states
    expected = [("inputs", x, (batch, max(time, 1), len(weights[0]) or wide))]
    expected += [
        (f"state {i}", state, (batch, units if i < own else wide))
        for i, state in enumerate(states)
    ]
    if mask is not None and mask.size:
        expected.append(("the mask", mask, (batch if len(mask) > 1 else 1, time)))
    if equation.mu.size > 1:
        expected.append(
            ("the momentum", equation.mu, (batch if len(equation.mu) > 1 else 1, time))
        )
    if equation.dropout is not None:
        expected.append(("the dropout masks of h", equation.dropout, (batch, wide)))
    for name, array, shape in expected:
        if array.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}. Received: {array.shape}")


def forward(equation, x, weights, states, mask=None, kept=None, keeps=True):
    """Run a cell.

    Args:
        equation: `Equation`.
        x: float32 array `(batch, time, features)`, or u, where the kernel has no rows.
        weights: list of the kernel, its bias or None, the recurrent kernel, and the bias that
            is outside of the rule or None; of "modrelu" that of its function. Then a nested
            memory's own, of what it takes in and of its h.
        states: list of the cell's own states, `(batch, units)`, and the slots that the rule
            has, `(batch, gates * units)`.
        mask: array `(batch, time)`, 0 where a sample's states are held; None or empty where
            none is.
        kept: list of arrays of `kept_shapes` to write to, or None for new ones.
        keeps: bool; False where nothing goes back.

    Returns:
        The list of the final states, and `Kept`, whose h are the outputs.
    """
    check_sizes(equation, x, weights, states, mask)
    schedule, equation, shape, _, _, inputs = prepared(equation, x, weights, mask)
    if kept is None:
        outputs, *shapes = equation.kept_shapes(*x.shape[:2], shape.units, keeps)
        kept = [np.empty(outputs, np.float32), *map(workspace, shapes)]
    kept = Kept(*kept)
    shape = shape._replace(outputs=kept.h.shape[1])
    padded = padded_states(list(map(schedule.sorted, states)), equation, shape)
    if shape.memories:
        kept.c[0] = padded.c
    loops = equation.recurrence.loops
    flat_states, flat_kept = States(*map(flat, padded)), Kept(*(a.reshape(-1) for a in kept))

    def run(samples):
        for counts, first, rows in schedule.groups(samples, SAMPLES[inputs.numbers.kind]):
            room = loops.new_room(shape, rows)
            arrays = inputs, flat_states, flat_kept, room, counts
            loops.forward(arrays, keeps, shape, first, rows)

    if shape.batch:
        run_all(run, shares(shape.batch))
    if shape.memories:
        # A copy: what a caller does to his state must not reach what is kept.
        padded = padded._replace(c=kept.c[-1].copy())
    finals = own_shapes(padded, equation, len(states), shape)
    return list(map(schedule.as_given, finals)), kept


def infer(equation, x, weights, states, mask, outputs):
    """Run a cell, and return the final states.

    outputs: float32 array `(batch, time, units)` to which h at all times is written, or
        `(batch, 1, units)` for the last one.
    """
    _, *shapes = equation.kept_shapes(*x.shape[:2], outputs.shape[2], keeps=False)
    kept = [outputs, *map(workspace, shapes)]
    return forward(equation, x, weights, states, mask, kept, keeps=False)[0]


def backward(
    equation, x, weights, states, mask, kept, d_outputs, d_finals, wants_dx=True, dx=None
):
    """Go back.

    Args:
        equation, x, weights, states, mask: as of `forward`, and `kept` what it returned.
        d_outputs: float32 array `(batch, time, units)` or None.
        d_finals: list of the gradients of the final states, each an array or None.
        wants_dx: bool, whether the gradient of x is wanted.
        dx: array to write it to, or None for a new one.

    Returns:
        The gradient of x or None, the list of those of the weights, and that of the states.
    """
    # Only a scaled rule is computed again.
    schedule, equation, shape, matrices, biases, inputs = prepared(
        equation, x, weights, mask, reads_x=equation.kind == "scaled"
    )
    batch, time, units, kind, result = *x.shape[:2], shape.units, inputs.numbers.kind, dx
    if shape.driven:
        dx = np.empty((batch, time, shape.wide) if wants_dx else 0, np.float32)
    transposed = tuple(
        packed_parts(by_gate(m.T, max(len(m), 1)), parts, axis=0)
        for m, parts in zip(matrices, parts_of(matrices, equation))
    )
    given = [np.zeros_like(s) if d is None else d for d, s in zip(d_finals, states)]
    d_states = padded_states(list(map(schedule.sorted, given)), equation, shape)
    if dx is None:
        dx = np.empty(x.shape if wants_dx else 0, np.float32)
    h_first = flat(by_gate(schedule.sorted(states[0]), units))
    saved = Saved(h_first, Kept(*map(flat, kept)), transposed)
    sizes = [array.size for pair in zip(matrices, biases) for array in pair]
    loops = equation.recurrence.loops

    def run(samples):
        sums = equation.recurrence.weights(*(np.zeros(n, np.float32) for n in sizes))
        gradients = Gradients(
            outputs=flat(dx[:0] if d_outputs is None else d_outputs),
            has_outputs=d_outputs is not None,
            states=States(*(g.reshape(-1) for g in d_states)),
            x=dx.reshape(-1),
            wants_x=wants_dx,
            weights=sums,
        )
        for counts, first, rows in schedule.groups(samples, SAMPLES[kind]):
            ring = max(1, min(time, -(-RING_ROWS // rows)))
            scratch = loops.new_scratch(shape, rows, ring, kind)
            arrays = inputs, saved, gradients, scratch, counts
            loops.backward(arrays, shape, first, rows, ring)
        return sums

    nothing = [[np.zeros(n, np.float32) for n in sizes]]
    parts = run_all(run, shares(batch)) if batch else nothing
    sums = [sum(part[1:], part[0]) for part in zip(*parts)]
    d_weights = gradients_of_weights(sums, equation, matrices, units)
    d_states = own_shapes(d_states, equation, len(states), shape)
    d_states = list(map(schedule.as_given, d_states))
    if shape.driven and wants_dx:
        dx = from_gates(dx, units)
        if result is not None:
            result[...] = dx
    return dx if wants_dx else None, d_weights, d_states


def try_out(cell="lstm"):
    """Run a step of a recurrence and go back, so that everything is compiled."""
    equation = Equation(cell)
    recurrence = equation.recurrence

    def ones(*shape):
        return np.ones(shape, np.float32)

    x, gates, inner = ones(1, 1, 1), recurrence.gates, recurrence.inner
    weights = [ones(1, gates), None, ones(1, gates), None]
    if inner:
        weights += [ones(2, inner), None, ones(1, inner), None]
    states = [ones(1, 1)] * recurrence.own_states
    finals, kept = forward(equation, x, weights, states)
    backward(equation, x, weights, states, None, kept, kept.h, finals)
