"""Masks of every kind: where a step is False, the states are held."""

import numpy as np


def right(batch, time):
    return np.arange(time)[None] < np.linspace(1, time, batch).astype(int)[:, None]


def left(batch, time):
    return right(batch, time)[:, ::-1]


def holes(batch, time):
    mask = np.random.default_rng(5).random((batch, time)) < 0.6
    mask[0] = np.arange(time) % 2 == 1
    return mask


def dead_row(batch, time):
    mask = holes(batch, time)
    mask[-1] = False
    return mask


def window(batch, time):
    """Steps in the middle, and no step at all of one sample."""
    rng, t = np.random.default_rng(6), np.arange(time)
    begin = rng.integers(time // 4, time // 2 + 1, (batch, 1))
    end = rng.integers(time // 2, time - time // 4 + 1, (batch, 1))
    return dead_row(batch, time) & (begin <= t) & (t < end)


MASKS = {"right": right, "left": left, "holes": holes, "dead_row": dead_row, "window": window}
