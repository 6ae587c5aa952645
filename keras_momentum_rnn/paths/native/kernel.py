"""A cell with a rule on its drive, on NumPy arrays: forward, and back."""

import dataclasses
import itertools
from dataclasses import dataclass, field

import numpy as np

from keras_momentum_rnn.paths.native import loops
from keras_momentum_rnn.paths.native.cells import ELMAN, GRU, LSTM, MODRELU
from keras_momentum_rnn.paths.native.loops import Kept, Numbers, Shape, States, Sums, Weights
from keras_momentum_rnn.paths.native.products import packed
from keras_momentum_rnn.paths.native.rules import LINEAR, NONE, SCALED
from keras_momentum_rnn.paths.native.threads import run_all, shares
from keras_momentum_rnn.paths.native.vectors import WIDTH
from keras_momentum_rnn.paths.native.workspaces import workspace

CELLS = {"lstm": LSTM, "gru": GRU, "elman": ELMAN, "modrelu": MODRELU}
GATES = {"lstm": 4, "gru": 3, "elman": 1, "modrelu": 1}
# How many times as wide as h what is kept of a step is.
KEPT = {"lstm": 4, "gru": 4, "elman": 1, "modrelu": 1}
KINDS = {"none": NONE, "linear": LINEAR, "scaled": SCALED}
# So many samples go through time together, so that weights are read from the cache.
SAMPLES = {NONE: 32, LINEAR: 32, SCALED: 16}
# So many rows, samples times steps, are gathered for the gradients of the weights.
RING_ROWS = 64
# So many numbers of each of three arrays of a rule are computed again at once.
CHUNK = 2**16


@dataclass(frozen=True)
class Equation:
    """A cell and its rule.

    Attributes:
        cell: "lstm", "gru", "elman" or "modrelu".
        kind: "none", "linear" or "scaled".
        gain, factor, beta, epsilon: floats, as of `rules.ScaledRule`.
        mu: float32 array `(1 or batch, time)`, or `(1, 1)` where the rule is not linear.
    """

    cell: str = "lstm"
    kind: str = "none"
    gain: float = 1.0
    factor: float = 1.0
    beta: float = 0.0
    epsilon: float = 1.0
    mu: object = field(default_factory=lambda: np.zeros((1, 1), np.float32), compare=False)

    def with_mu(self, mu):
        return dataclasses.replace(self, mu=mu)

    def state_names(self, count):
        """Return the names of so many states, the cell's own and the slots."""
        own = "hc" if self.cell == "lstm" else "h"
        # RMSProp has m alone; the velocity of its equation is u.
        slots = "vm" if count - len(own) == 2 else "m" if self.kind == "scaled" else "v"
        return (own + slots)[:count]

    def numbers(self):
        row = self.mu.shape[1] if len(self.mu) > 1 else 0
        numbers = map(np.float32, (self.gain, self.factor, self.beta, self.epsilon))
        return Numbers(KINDS[self.kind], flat(self.mu), row, *numbers)

    def shape(self, batch, time, features, units, driven=False):
        padded = padded_width(units)
        wide, kept = GATES[self.cell] * padded, KEPT[self.cell] * padded
        every = max(1, CHUNK // (SAMPLES[KINDS[self.kind]] * wide))
        features = wide if driven else features
        return Shape(
            CELLS[self.cell], batch, time, features, units, padded, wide, kept, every, driven
        )  # fmt: skip

    def kept_shapes(self, batch, time, units, keeps=True):
        """Return the shapes of the arrays of `Kept`."""
        shape = self.shape(batch, time, 1, units)
        padded, steps = shape.padded, time if keeps else 1
        scaled, lstm = self.kind == "scaled" and keeps, self.cell == "lstm"
        slots = (-(-time // shape.every) if scaled else 0, batch, shape.wide)
        gates = (steps, batch, shape.kept)
        c = (steps + keeps, batch, padded) if lstm else (0, 0, 0)
        return (batch, time, units), c, gates, slots, slots


def padded_width(width):
    return -(-width // WIDTH) * WIDTH


def flat(array):
    return np.ascontiguousarray(array, np.float32).reshape(-1)


def padded_columns(matrix, width):
    """Return a copy with so many columns, the further ones zero."""
    out = np.zeros((len(matrix), width), np.float32)
    out[:, : matrix.shape[1]] = matrix
    return out


def by_gate(array, units):
    """Return a copy of `(..., gates * units)` with each gate padded."""
    *lead, width = array.shape
    gates = width // units
    padded = padded_width(units)
    out = np.zeros((*lead, gates, padded), np.float32)
    out[..., :units] = array.reshape(*lead, gates, units)
    return out.reshape(*lead, gates * padded)


def from_gates(array, units):
    """Return `(..., gates * units)` of what `by_gate` padded."""
    *lead, width = array.shape
    padded = padded_width(units)
    gates = width // padded
    out = array.reshape(*lead, gates, padded)[..., :units]
    return np.ascontiguousarray(out).reshape(*lead, gates * units)


def bias(b, units, shape):
    return np.zeros(shape.wide, np.float32) if b is None else by_gate(b, units)


def padded_states(states, equation, shape):
    """Return copies of h, c and the slots as `States`; of what there is not, zeros."""
    named = dict(zip(equation.state_names(len(states)), states))
    none = np.zeros((shape.batch, shape.wide), np.float32)
    own = (padded_columns(named[n], shape.padded) if n in named else none for n in "hc")
    slots = (by_gate(named[n], shape.units) if n in named else none.copy() for n in "vm")
    return States(*own, *slots)


def own_shapes(padded, equation, count, shape):
    """Return the `count` states of `padded_states` in the shapes that were given."""
    return [
        getattr(padded, name)[:, : shape.units] if name in "hc"
        else from_gates(getattr(padded, name), shape.units)
        for name in equation.state_names(count)
    ]  # fmt: skip


def sample_lengths(lengths, batch, time):
    lengths = np.full(batch, time) if lengths is None else lengths
    return np.ascontiguousarray(lengths, np.int64)


def groups(samples, most):
    """Return a thread's samples as groups of alike size, `(first, size)`."""
    first, last = samples
    count = -(-(last - first) // most)
    cuts = [first + (last - first) * i // count for i in range(count + 1)]
    return [(a, b - a) for a, b in itertools.pairwise(cuts)]


def is_drive(W):
    """Return whether x is the drive already: then W has no rows."""
    return len(W) == 0


def packed_weights(W, b, U, side, shape):
    W, U = (packed(by_gate(a, shape.units)) for a in (W, U))
    return Weights(W, bias(b, shape.units, shape), U, bias(side, shape.units, shape))


def forward(equation, x, weights, states, lengths=None, kept=None, keeps=True):
    """Run a cell.

    Args:
        equation: `Equation`.
        x: float32 array `(batch, time, features)`, or the drive, where the kernel has no rows.
        weights: list of the kernel, its bias or None, the recurrent kernel, and the bias that
            is outside of the rule or None; of "modrelu" that of its function.
        states: list of the cell's own states, `(batch, units)`, and the slots that the rule
            has, `(batch, gates * units)`.
        lengths: int array `(batch,)`, after how many steps each sample ends, or None.
        kept: list of arrays of `kept_shapes` to write to, or None for new ones.
        keeps: bool; False where nothing goes back.

    Returns:
        The list of the final states, and `Kept`, whose h are the outputs, held after a
        sample's end.
    """
    batch, time, features = x.shape
    units, driven = weights[2].shape[0], is_drive(weights[0])
    shape = equation.shape(batch, time, features, units, driven)
    numbers = equation.numbers()
    x = by_gate(x, units) if driven else x
    if kept is None:
        outputs, *shapes = equation.kept_shapes(batch, time, units, keeps)
        kept = [np.empty(outputs, np.float32), *map(workspace, shapes)]
    kept = Kept(*kept)
    padded = padded_states(states, equation, shape)
    if equation.cell == "lstm":
        kept.c[0] = padded.c
    lengths = sample_lengths(lengths, batch, time)
    arguments = (
        flat(x), packed_weights(*weights, shape), States(*map(flat, padded)), numbers, lengths,
        shape,
    )  # fmt: skip
    written = Kept(*(a.reshape(-1) for a in kept))

    def run(samples):
        for first, rows in groups(samples, SAMPLES[numbers.kind]):
            loops.forward(*arguments, first, rows, written, keeps)

    if batch:
        run_all(run, shares(batch))
    if equation.cell == "lstm":
        # A copy: what a caller does to his state must not reach what is kept.
        padded = padded._replace(c=kept.c[-1].copy())
    return own_shapes(padded, equation, len(states), shape), kept


def backward(
    equation, x, weights, states, lengths, kept, d_outputs, d_finals, wants_dx=True, dx=None
):
    """Go back.

    Args:
        equation, x, weights, states, lengths: as of `forward`, and `kept` what it returned.
        d_outputs: float32 array `(batch, time, units)` or None.
        d_finals: list of the gradients of the final states, each an array or None.
        wants_dx: bool, whether the gradient of x is wanted.
        dx: array to write it to, or None for a new one.

    Returns:
        The gradient of x or None, the list of those of the weights, and that of the states.
    """
    batch, time, features = x.shape
    W, _, U, _ = weights
    units, driven = U.shape[0], is_drive(W)
    shape = equation.shape(batch, time, features, units, driven)
    numbers, result = equation.numbers(), dx
    if driven:
        x, dx = by_gate(x, units), None
    Wt, Ut = (packed(padded_columns(by_gate(a, units).T, padded_width(len(a)))) for a in (W, U))
    given = [np.zeros_like(s) if d is None else d for d, s in zip(d_finals, states)]
    gradients = padded_states(given, equation, shape)
    if dx is None:
        dx = np.empty(x.shape if wants_dx else 0, np.float32)
    has_d_outputs = d_outputs is not None
    arguments = (
        flat(x), packed_weights(*weights, shape), Wt, Ut, numbers,
        sample_lengths(lengths, batch, time), shape,
    )  # fmt: skip
    sequences = (
        flat(padded_columns(states[0], shape.padded)), Kept(*map(flat, kept)),
        flat(d_outputs) if has_d_outputs else flat(dx[:0]), has_d_outputs,
        States(*(g.reshape(-1) for g in gradients)), dx.reshape(-1), wants_dx,
    )  # fmt: skip
    widths = len(W), 1, units, 1

    def run(samples):
        sums = Sums(*(np.zeros(n * shape.wide, np.float32) for n in widths))
        for first, rows in groups(samples, SAMPLES[numbers.kind]):
            ring = max(1, min(time, -(-RING_ROWS // rows)))
            loops.backward(*arguments, first, rows, *sequences, sums, ring)
        return sums

    parts = run_all(run, shares(batch)) if batch else [run((0, 0))]
    sums = [sum(part[1:], part[0]).reshape(-1, shape.wide) for part in zip(*parts)]
    d_W, d_b, d_U, d_side = (from_gates(s, units) for s in sums)
    d_states = own_shapes(gradients, equation, len(states), shape)
    if driven and wants_dx:
        dx = from_gates(dx, units)
        if result is not None:
            result[...] = dx
    return dx if wants_dx else None, [d_W, d_b[0], d_U, d_side[0]], d_states


def try_out():
    """Run a step and go back, so that everything is compiled."""
    x, W = np.ones((1, 1, 1), np.float32), np.ones((1, 4), np.float32)
    states = [np.zeros((1, 1), np.float32)] * 2
    _, kept = forward(Equation(), x, [W, None, W, None], states)
    backward(Equation(), x, [W, None, W, None], states, None, kept, kept.h, [None, None])
