"""Conjugate gradients and the searches that follow them, for flat tensors on any backend."""

import math
from typing import NamedTuple

import numpy as np
from keras import ops

# Martens (2010): iterates are kept after 1, 2, 3, 4, 5, 7, 9, ... steps, a geometric sequence.
KEPT_RATIO = 1.3
# The progress of a tenth of the steps so far is looked at, and of at least ten.
WINDOW, WINDOW_SHARE = 10, 0.1
# The line search: a step is good if it brings this share of what the slope promises.
SUFFICIENT, SHRINK, TRIALS = 1e-2, 0.8, 60


class Solution(NamedTuple):
    """The result of conjugate gradients.

    Attributes:
        x: the last iterate.
        iterates: the kept ones, `(kept, size)`.
        last: which of them is the last.
        steps: how many were taken.
        values: q after 0, 1, ... steps; the last value from then on.
    """

    x: object
    iterates: object
    last: object
    steps: object
    values: object


def dot(a, b):
    return ops.sum(a * b)


def kept_steps(steps):
    """Return the numbers of steps after which an iterate is kept, the last one among them."""
    powers = range(int(math.log(steps, KEPT_RATIO)) + 1)
    return sorted({math.ceil(KEPT_RATIO**power) for power in powers} | {steps})


def conjugate_gradients(product, b, start, steps, tolerance=None, keep=False):
    """Minimise q(x) = x'Ax / 2 - b'x.

    It stops where A is found not to be positive definite, as rounding makes it, and before
    anything that is not finite. With a tolerance it stops where, over the last k steps, k the
    larger of 10 and a tenth of all, q fell by less than `k tolerance` of itself.

    Args:
        product: function from v to Av.
        b, start: flat tensors.
        steps: positive integer, at most so many.
        tolerance: number > 0, or None.
        keep: bool, whether to keep the iterates after `kept_steps(steps)`, or the last alone.

    Returns:
        A `Solution`.
    """
    marks = kept_steps(steps) if keep else [steps]
    places = np.searchsorted(marks, np.arange(steps + 1)).astype("int32")
    places = ops.convert_to_tensor(places)
    numbers = ops.arange(steps + 1, dtype="int32")
    first = ops.convert_to_tensor(0, "int32")

    def proceed(i, x, r, p, rr, values, iterates, done):
        return ops.logical_and(i < steps, ops.logical_not(done))

    def step(i, x, r, p, rr, values, iterates, done):
        ap = product(p)
        curvature = dot(p, ap)
        rate = rr / curvature
        next_x, next_r = x + rate * p, r - rate * ap
        next_rr = dot(next_r, next_r)
        sound = (curvature > 0) & (rr > 0) & ops.isfinite(dot(next_x, next_x) + next_rr)
        x, r = ops.where(sound, next_x, x), ops.where(sound, next_r, r)
        p = ops.where(sound, r + next_rr / rr * p, p)
        i = i + ops.cast(sound, "int32")
        q = -dot(x, b + r) / 2
        values = ops.where(numbers >= i, q, values)
        # The place of the next mark: what stands there at last is the iterate of that mark.
        place = ops.take(places, i)
        iterates = ops.slice_update(
            iterates, ops.stack([place, first]), ops.expand_dims(x, axis=0)
        )
        done = ops.logical_not(sound)
        if tolerance is not None:
            share = ops.cast(WINDOW_SHARE * ops.cast(i, "float32"), "int32")
            window = ops.maximum(share, WINDOW)
            fall = ops.take(values, ops.maximum(i - window, 0)) - q
            little = fall < -q * tolerance * ops.cast(window, q.dtype)
            done = done | ((i > window) & (q < 0) & little)
        return i, x, r, p, ops.where(sound, next_rr, rr), values, iterates, done

    r = b - product(start)
    values = ops.ones((steps + 1,), dtype=b.dtype) * (-dot(start, b + r) / 2)
    iterates = ops.tile(ops.expand_dims(start, axis=0), (len(marks), 1))
    done = ops.convert_to_tensor(False)
    state = ops.while_loop(
        proceed, step, (first, start, r, r, dot(r, r), values, iterates, done)
    )
    i, x, values, iterates = state[0], state[1], state[5], state[6]
    return Solution(x, iterates, ops.take(places, i), i, values)


def backtracked(objective, iterates, last):
    """Go back from the last kept iterate while the objective falls.

    Returns:
        The iterate where it stopped, and the objective there.
    """

    def proceed(place, value, falls):
        return falls

    def earlier(place, value, falls):
        before = ops.maximum(place - 1, 0)
        other = objective(ops.take(iterates, before, axis=0))
        falls = (other < value) | ops.logical_not(ops.isfinite(value))
        place, value = ops.where(falls, before, place), ops.where(falls, other, value)
        return place, value, falls & (place > 0)

    value = objective(ops.take(iterates, last, axis=0))
    place, value, _ = ops.while_loop(proceed, earlier, (last, value, last > 0))
    return ops.take(iterates, place, axis=0), value


def line_search(objective, rate, first, before, slope):
    """Shrink a rate until the objective falls by a hundredth of what its slope promises.

    Args:
        objective: function from a rate to the objective.
        rate: scalar, the first to try.
        first: the objective there.
        before: the objective at the rate 0.
        slope: its slope there, below 0 for a direction of descent.

    Returns:
        The rate; 0 where none of 60 is good.
    """
    slope = ops.minimum(slope, 0.0)

    def good(rate, value):
        return value <= before + SUFFICIENT * rate * slope

    def proceed(rate, value, trials):
        return ops.logical_not(good(rate, value)) & (trials < TRIALS)

    def shrink(rate, value, trials):
        rate = SHRINK * rate
        return rate, objective(rate), trials + 1

    trials = ops.convert_to_tensor(0, "int32")
    rate, value, _ = ops.while_loop(proceed, shrink, (rate, first, trials))
    return ops.where(good(rate, value), rate, ops.zeros_like(rate))
