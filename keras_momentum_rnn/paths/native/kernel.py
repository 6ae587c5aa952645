"""An LSTM with a rule on its drive, on NumPy arrays: forward, and back."""

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from keras_momentum_rnn.paths.native import lstm
from keras_momentum_rnn.paths.native.products import VECTORS, packed
from keras_momentum_rnn.paths.native.rules import LINEAR, NONE, SCALED
from keras_momentum_rnn.paths.native.threads import run_all, shares
from keras_momentum_rnn.paths.native.vectors import WIDTH

# So many samples go through time together, that what they share is read from the cache.
SAMPLES = {NONE: 32, LINEAR: 32, SCALED: 16}
# So many rows, samples times steps, are gathered for the gradients of the weights.
RING_ROWS = 64
# So many numbers of each of three arrays of a rule are computed again at once.
CHUNK = 2**16
KINDS = {"none": NONE, "linear": LINEAR, "scaled": SCALED}


@dataclass(frozen=True)
class Rule:
    """The numbers of a rule.

    Attributes:
        kind: "none", "linear" or "scaled".
        mu: float32 array `(1 or batch, time)`, or `(1, 1)` where the rule is not linear.
        gain, factor, beta, epsilon: floats, as of `rules.ScaledRule`.
    """

    kind: str = "none"
    mu: object = field(default_factory=lambda: np.zeros((1, 1), np.float32))
    gain: float = 1.0
    factor: float = 1.0
    beta: float = 0.0
    epsilon: float = 1.0

    def with_mu(self, mu):
        return dataclasses.replace(self, mu=mu)

    def arguments(self):
        mu = flat(np.asarray(self.mu, np.float32))
        row = self.mu.shape[1] if len(self.mu) > 1 else 0
        numbers = (self.gain, self.factor, self.beta, self.epsilon)
        return KINDS[self.kind], mu, row, *map(np.float32, numbers)


@dataclass(frozen=True)
class Kept:
    """What the way back needs: c, the gates, and v and m before each chunk of steps."""

    C: np.ndarray
    gates: np.ndarray
    v: np.ndarray
    m: np.ndarray


def padded_width(width):
    return -(-width // WIDTH) * WIDTH


def flat(array):
    return np.ascontiguousarray(array, np.float32).reshape(-1)


def by_gate(array, units):
    """Return `(..., 4 units)` with each gate padded."""
    padded = padded_width(units)
    if padded == units:
        return np.ascontiguousarray(array, np.float32)
    out = np.zeros((*array.shape[:-1], 4, padded), np.float32)
    out[..., :units] = array.reshape(*array.shape[:-1], 4, units)
    return out.reshape(*array.shape[:-1], 4 * padded)


def from_gates(array, units):
    """Return `(..., 4 units)` of what `by_gate` padded."""
    padded = padded_width(units)
    lead = array.shape[:-1]
    return array.reshape(*lead, 4, padded)[..., :units].reshape(*lead, 4 * units)


def padded_columns(matrix, width):
    """Return a copy with so many columns, the further ones zero."""
    out = np.zeros((len(matrix), width), np.float32)
    out[:, : matrix.shape[1]] = matrix
    return out


def groups(samples, most):
    """Return a thread's samples as groups of alike size, `(first, size)`."""
    first, last = samples
    count = -(-(last - first) // most)
    cuts = [first + (last - first) * i // count for i in range(count + 1)]
    return [(a, b - a) for a, b in zip(cuts[:-1], cuts[1:])]


def steps_of_chunk(kind, padded):
    """Return how many steps of a rule are computed again at once."""
    return max(1, CHUNK // (SAMPLES[kind] * 4 * padded))


def result_shapes(batch, time, units, rule):
    """Return the shapes of the outputs and of C, gates, v and m of `Kept`."""
    padded = padded_width(units)
    kind = KINDS[rule.kind]
    chunks = -(-time // steps_of_chunk(kind, padded)) if kind == SCALED else 0
    slots = (chunks, batch, 4 * padded)
    gates = (time, batch, 4 * padded)
    return (batch, time, units), (time + 1, batch, padded), gates, slots, slots


def forward(x, W, b, U, side, states, rule, lengths=None, results=None):
    """Run an LSTM.

    Args:
        x: float32 array `(batch, time, features)`.
        W, U: kernel and recurrent kernel. b: bias, or None. side: the bias that is outside
            of the rule, or None.
        states: list of h and c, `(batch, units)`, and the slots that the rule has,
            `(batch, 4 units)`.
        rule: a `Rule`.
        lengths: int array `(batch,)`, after how many steps each sample ends, or None.
        results: arrays of `result_shapes` to write to, or None for new ones.

    Returns:
        h at all times, `(batch, time, units)`, held after a sample's end, the list of the
        final states, and `Kept`.
    """
    batch, time, features = x.shape
    units = U.shape[0]
    padded = padded_width(units)
    wide = 4 * padded
    kind, mu, mu_row, *numbers = rule.arguments()
    every = steps_of_chunk(kind, padded)
    if results is None:
        shapes = result_shapes(batch, time, units, rule)
        results = [np.empty(shape, np.float32) for shape in shapes]
    outputs, C, gates, v_kept, m_kept = results
    h, c, *slots = states
    h = padded_columns(h, padded)
    slots = [by_gate(slot, units).copy() for slot in slots]
    v, m = velocity_and_moment(slots, kind, (batch, wide))
    C[0] = padded_columns(c, padded)
    weights = (
        packed(by_gate(W, units), VECTORS),
        bias(b, units),
        packed(by_gate(U, units), VECTORS),
        bias(side, units),
    )
    if lengths is None:
        lengths = np.full(batch, time, np.int64)
    lengths = np.ascontiguousarray(lengths, np.int64)

    sequence = flat(x)

    def run(samples):
        for first, rows in groups(samples, SAMPLES[kind]):
            lstm.forward(
                sequence, features, *weights, VECTORS, *map(flat, (h, v, m)),
                kind, mu, mu_row, *numbers, lengths, time, batch, first, rows, units, padded,
                *map(flat, (outputs, C, gates, v_kept, m_kept)), every,
            )  # fmt: skip

    if batch:
        run_all(run, shares(batch))
    finals = [h[:, :units], C[-1, :, :units], *(from_gates(s, units) for s in slots)]
    return outputs, finals, Kept(C, gates, v_kept, m_kept)


def velocity_and_moment(slots, kind, shape):
    """Return arrays of v and m that a rule changes; of what it has not, one of zeros."""
    none = np.zeros((1, 1), np.float32)
    if kind == NONE:
        return none, none
    if kind == LINEAR:
        return slots[0], none
    return (slots if len(slots) == 2 else [np.zeros(shape, np.float32), slots[0]])


def bias(b, units):
    if b is None:
        return np.zeros(4 * padded_width(units), np.float32)
    return by_gate(b, units)


def backward(
    x, W, b, U, side, states, rule, lengths, outputs, kept, d_outputs, d_finals, wants_dx=True
):
    """Go back.

    Args:
        x, W, b, U, side, states, rule, lengths: as of `forward`, and `outputs` and `kept` what
            it returned.
        d_outputs: float32 array `(batch, time, units)` or None.
        d_finals: list of the gradients of the final states, each an array or None.
        wants_dx: bool, whether the gradient of x is wanted.

    Returns:
        The gradients of x (or None), W, b, U, side and, in a list, of the states.
    """
    batch, time, features = x.shape
    units = U.shape[0]
    padded, padded_x = padded_width(units), padded_width(features)
    wide = 4 * padded
    kind, mu, mu_row, *numbers = rule.arguments()
    every = steps_of_chunk(kind, padded)
    W, U = by_gate(W, units), by_gate(U, units)
    Wt, Ut = (
        packed(padded_columns(a.T, width), VECTORS)
        for a, width in ((W, padded_x), (U, padded))
    )
    if lengths is None:
        lengths = np.full(batch, time, np.int64)
    lengths = np.ascontiguousarray(lengths, np.int64)
    dh, dc, *d_slots = (
        np.zeros_like(state) if d is None else d for d, state in zip(d_finals, states)
    )
    dh, dc = padded_columns(dh, padded), padded_columns(dc, padded)
    d_slots = [by_gate(d, units).copy() for d in d_slots]
    dv, dm = velocity_and_moment(d_slots, kind, (batch, wide))
    has_d_outputs = d_outputs is not None
    dx = np.empty((batch, time, features) if wants_dx else (1, 1, 1), np.float32)
    inputs = flat(x), features, packed(W, VECTORS), bias(b, units), VECTORS, Wt, Ut
    sequences = outputs, padded_columns(states[0], padded), kept.C, kept.gates, kept.v, kept.m
    sequences = [flat(a) for a in sequences]
    d_results = flat(d_outputs) if has_d_outputs else flat(dx[:1, :1, 0])

    def run(samples):
        sums = [np.zeros(shape, np.float32) for shape in ((features, wide), wide, (units, wide), wide)]
        for first, rows in groups(samples, SAMPLES[kind]):
            ring = max(1, min(time, -(-RING_ROWS // rows)))
            lstm.backward(
                *inputs, VECTORS, VECTORS, padded_x, kind, mu, mu_row, *numbers, lengths,
                time, batch, first, rows, units, padded, *sequences, every, d_results,
                has_d_outputs, *map(flat, (dh, dc, dv, dm, dx)), wants_dx,
                *map(flat, sums), ring,
            )  # fmt: skip
        return sums

    parts = run_all(run, shares(batch)) if batch else [run((0, 0))]
    sums = [from_gates(sum(part[1:], part[0]), units) for part in zip(*parts)]
    d_states = [dh[:, :units], dc[:, :units], *(from_gates(d, units) for d in d_slots)]
    return dx if wants_dx else None, *sums, d_states


def try_out():
    """Run a step and go back, so that everything is compiled."""
    x, W, U = np.ones((1, 1, 1), np.float32), np.ones((1, 4), np.float32), np.ones((1, 4), np.float32)
    states = [np.zeros((1, 1), np.float32)] * 2
    outputs, _, kept = forward(x, W, None, U, None, states, Rule())
    backward(x, W, None, U, None, states, Rule(), None, outputs, kept, outputs, [None, None])
