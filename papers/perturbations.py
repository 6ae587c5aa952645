"""What may happen to a sensor after training: the inputs changed, the model as it was."""

import numpy as np

OFFSET, NOISE, LOST = 1.0, 0.5, 0.3


def lost(x, rng):
    """Return sequences in which a share of the steps, not the first, repeat the step before."""
    held = rng.random(x.shape[:2]) < LOST
    held[:, 0] = False
    steps = np.where(held, 0, np.arange(x.shape[1]))
    found = np.take_along_axis(x, np.maximum.accumulate(steps, axis=1)[..., None], axis=1)
    return np.where(np.isnan(x), np.nan, found)


def longer(x, rng=None):
    """Return sequences of twice as many steps, read off between the old ones."""
    samples, steps, channels = x.shape
    found = np.full((samples, 2 * steps, channels), np.nan)
    for new, old in zip(found, x):
        length = int((~np.isnan(old).any(axis=1)).nonzero()[0].max(initial=-1)) + 1
        if not length:  # each step lacks a value, and stays missing
            continue
        places = np.linspace(0, length - 1, 2 * length)
        for channel in range(channels):
            new[: 2 * length, channel] = np.interp(
                places, np.arange(length), old[:length, channel]
            )
    return found


# By name: a function of sequences, NaN at steps that they lack, and of a random generator. The
# unit is the standard deviation of the channel in training, and 0 is its mean.
PERTURBATIONS = {
    "gain 1/4": lambda x, rng: x / 4,
    "gain 4": lambda x, rng: 4 * x,
    "offset": lambda x, rng: x + OFFSET,
    "noise": lambda x, rng: x + rng.normal(scale=NOISE, size=x.shape),
    "lost steps": lost,
    "twice as long": longer,
}
MEANINGS = {
    "gain 1/4": "all inputs divided by 4",
    "gain 4": "all inputs multiplied by 4",
    "offset": f"{OFFSET:g} standard deviation added to all inputs",
    "noise": f"white noise of {NOISE:g} standard deviations",
    "lost steps": f"{LOST:.0%} of the steps lost, the value before held",
    "twice as long": "twice as many steps, read off between the old ones",
}


def perturbed(x, seed=0):
    """Yield names and changed sequences, the same for the same seed.

    Args:
        x: array (samples, steps, channels), NaN at steps that a sequence lacks.
        seed: int.
    """
    for number, (name, change) in enumerate(PERTURBATIONS.items()):
        yield name, change(x, np.random.default_rng([seed, number]))
