"""What the loops over time take and fill: arrays and numbers, by name."""

from typing import NamedTuple

import numpy as np


class Shape(NamedTuple):
    """The cell by its number, and sizes.

    memories: how many states the cell has beside h.
    inner: the width of the drive of a nested memory, or 0.
    kept: the width of `Kept.gates`.
    every: v and m of a scaled rule are kept once in so many steps.
    outputs: of how many steps h is kept: of all, or of 1, the last.
    driven: bool, whether x is u itself, padded gate by gate. Then W does nothing.
    drops: bool, whether dropout acts on h. Then U is packed gate by gate.
    """

    cell: int
    batch: int
    time: int
    features: int
    units: int
    padded: int
    wide: int
    memories: int
    inner: int
    kept: int
    every: int
    outputs: int
    driven: bool
    drops: bool


class Numbers(NamedTuple):
    """A rule. mu is `(samples, time)`, `mu_row` apart, which is 0 where all share one row."""

    kind: int
    mu: np.ndarray
    mu_row: int
    gain: float
    factor: float
    beta: float
    share: float
    epsilon: float


class Weights(NamedTuple):
    """W and U are `packed`, the biases one number for each of the drive.

    Or their gradients, to which is added: `(features or units, wide)`, `(wide,)`.
    """

    W: np.ndarray
    b: np.ndarray
    U: np.ndarray
    side: np.ndarray


class States(NamedTuple):
    """h is `(batch, padded)`, the slots v and m `(batch, wide)`; or their gradients.

    c is `(batch, memories * padded)`, the cell's other states side by side.
    """

    h: np.ndarray
    c: np.ndarray
    v: np.ndarray
    m: np.ndarray


class Kept(NamedTuple):
    """What the way back needs, drawn in `drive`.

    h: `(batch, outputs, units)`, c: `(time + 1, batch, memories * padded)`, the first is given,
    gates: `(time, batch, kept)`, v and m: `(chunks, batch, wide)`.
    """

    h: np.ndarray
    c: np.ndarray
    gates: np.ndarray
    v: np.ndarray
    m: np.ndarray


class Inputs(NamedTuple):
    """What both ways read.

    x: `(batch, time, features)`.
    weights: `Weights`.
    numbers: `Numbers`.
    active: bool, `(batch, time)`, whether a sample takes a step; if not, its states are held.
    order: `(batch,)`, which of the given samples each one is.
    dropout: `(batch, wide)`, by which each gate multiplies h before the product, or empty.
    """

    x: np.ndarray
    weights: tuple
    numbers: tuple
    active: np.ndarray
    order: np.ndarray
    dropout: np.ndarray


class Saved(NamedTuple):
    """What the way back reads beside its inputs.

    h_first: `(batch, padded)`, h before the first step.
    kept: `Kept`.
    transposed: tuple of the `packed` transposes of all matrices, their columns padded.
    """

    h_first: np.ndarray
    kept: tuple
    transposed: tuple


class Gradients(NamedTuple):
    """What the way back is given, and what it writes.

    outputs: `(batch, time, units)`, read if `has_outputs`.
    states: `States`, of the final states, and then of the first.
    x: `(batch, time, features)`, written if `wants_x`.
    weights: `Weights`, to which is added.
    """

    outputs: np.ndarray
    has_outputs: bool
    states: tuple
    x: np.ndarray
    wants_x: bool
    weights: tuple


class Step(NamedTuple):
    """A step t of `rows` samples from `first` on.

    now: where their rows begin in the rings.
    after, rows_after: where those of the step after it begin, and how many there are.
    """

    t: int
    first: int
    rows: int
    now: int
    after: int
    rows_after: int


class Rings(NamedTuple):
    """Rows of some steps, each of a sample. Those of dy and du are `ring_row(wide)` apart."""

    dy: np.ndarray
    du: np.ndarray
    h: np.ndarray
    x: np.ndarray
    sample: np.ndarray


class Again(NamedTuple):
    """A scaled rule, computed again: u, v' and 1 / sqrt(m' + epsilon) of a chunk of steps.

    Steps are `apart` numbers apart.
    """

    u: np.ndarray
    velocity: np.ndarray
    inverse_root: np.ndarray
    v: np.ndarray
    m: np.ndarray
    apart: int


class Scratch(NamedTuple):
    """Memory of one call of the way back.

    dh: `(rows, padded)`, of the h after a step.
    dx: one step's, its rows padded; or the x of a step that is computed again.
    carried: bool, `(rows,)`, whether `Gradients.states.h` belongs to the h before the step.
    dropped: rows of h, or of its gradient, under a gate's dropout mask.
    """

    rings: tuple
    again: tuple
    dh: np.ndarray
    dx: np.ndarray
    carried: np.ndarray
    dropped: np.ndarray
