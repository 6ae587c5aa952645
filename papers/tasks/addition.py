"""The adding and multiplication problems: recall two marked values of a long sequence."""

import math
from typing import Any

import keras
import numpy as np

from keras_momentum_rnn.checks import checked_choice, checked_count
from papers.tasks.task import generated, sequence_model

TOLERANCE = 0.04
STEPS = {"momentumrnn": 750, "mcrm": 200, "sutskever": 80}
# Variants that repeat one set of training sequences.
FIXED_SET = {"mcrm"}


def adding(
    variant: str = "momentumrnn",
    steps: int | None = None,
    centered: bool = False,
    samples: int = 50_000,
    held_out: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Add the two values of a sequence that are marked.

    Each step has a value, uniform in [0, 1), and a marker: 1 at two steps, 0 at the others.
    The target is the sum of the two marked values.

    - `"momentumrnn"`: 750 steps, the first marker in the first half, the second in the
      second (Nguyen et al. 2020, appendix A.4).
    - `"mcrm"`: 200 steps, markers at two distinct steps anywhere, 50,000 training sequences
      that stay the same (the code of Mohamed and Claudel 2018; their text says that the last
      two steps are marked).
    - `"sutskever"`: 80 steps, target (x1 + x2) / 2, the first marker in the first 10 steps,
      the second at another of the first half (Sutskever et al. 2013, who leave the places and
      the length's meaning open; these are of Hochreiter and Schmidhuber 1997). The score is
      the share of sequences whose error exceeds 0.04.

    Args:
        variant: which of them.
        steps: int, at least 4 (`"sutskever"`: 20), the length; None for the variant's.
        centered: bool, whether the means of values (1/2), markers (2 / steps) and targets are
            subtracted, as Sutskever et al. do for all problems.
        samples: int, training sequences of an epoch. `"mcrm"` repeats the same ones in every
            epoch; the other variants never repeat one.
        held_out: int, the sequences of validation, and as many of test.
        seed: int.

    Raises:
        ValueError: if a value is out of its range.

    Example:

    >>> from papers import tasks
    >>> task = tasks.load("adding", held_out=10)
    >>> values, markers = task.test.x[..., 0], task.test.x[..., 1]
    >>> abs((values * markers).sum(axis=1) - task.test.y[:, 0]).max() < 1e-6
    np.True_
    """
    checked_choice("variant", variant, STEPS)
    target = np.mean if variant == "sutskever" else np.sum
    return marked_values(variant, steps, target, centered, samples, held_out, seed)


def multiplication(
    steps: int = 80,
    centered: bool = False,
    samples: int = 50_000,
    held_out: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Multiply the two values of a sequence that are marked.

    As `adding` with `variant="sutskever"`, with the target x1 x2 (Sutskever et al. 2013).

    Args:
        steps: int, at least 20, the length.
        centered, samples, held_out, seed: as of `adding`. The targets' mean is 1/4. The paper
            could not train without centred inputs here.

    Raises:
        ValueError: if a value is out of its range.
    """
    return marked_values("sutskever", steps, np.prod, centered, samples, held_out, seed)


def marked_values(variant, steps, target, centered, samples, held_out, seed):
    """Return the arguments of `Task` for a target that is a function of the marked values."""
    # Room for the markers.
    least = 20 if variant == "sutskever" else 4
    steps = checked_count("steps", STEPS[variant] if steps is None else steps, least)
    samples = checked_count("samples", samples)
    held_out = checked_count("held_out", held_out)
    checked_choice("centered", centered, (True, False))
    mean, variance, hits = MOMENTS[target]

    def draw(rng, count):
        values = rng.random((count, steps), dtype="float32")
        places = PLACES[variant](rng, count, steps)
        markers = np.zeros_like(values)
        np.put_along_axis(markers, places, 1, axis=1)
        y = target(np.take_along_axis(values, places, axis=1), axis=1, keepdims=True)
        x = np.stack([values, markers], axis=-1)
        if centered:
            x, y = x - np.float32([1 / 2, 2 / steps]), y - np.float32(mean)
        return x, y

    parts = {
        **generated(draw, samples, held_out, seed, fixed=variant in FIXED_SET),
        "input_shape": (steps, 2),
        "loss": keras.losses.MeanSquaredError(),
        "new_metrics": list,
        "metric": "loss",
        "larger_is_better": False,
        "chance": {"loss": variance},
        "chance_means": "the mean of the targets, whatever the sequence",
        "build": sequence_model((steps, 2), 1),
    }
    if variant == "sutskever":
        parts["new_metrics"] = lambda: [error_above(TOLERANCE)]
        parts["metric"] = "zero_one_loss"
        parts["chance"] = {**parts["chance"], "zero_one_loss": 1 - hits}
    return parts


def one_in_each_half(rng, count, steps):
    half = steps // 2
    return np.stack([rng.integers(0, half, count), rng.integers(half, steps, count)], axis=1)


def two_anywhere(rng, count, steps):
    first, other = rng.integers(0, steps, count), rng.integers(0, steps - 1, count)
    return np.stack([first, other + (other >= first)], axis=1)


def both_early(rng, count, steps):
    first, other = rng.integers(0, 10, count), rng.integers(0, steps // 2 - 1, count)
    return np.stack([first, other + (other >= first)], axis=1)


PLACES = {"momentumrnn": one_in_each_half, "mcrm": two_anywhere, "sutskever": both_early}


def product_below(z):
    """Return the probability that the product of two uniform values is below z."""
    return z * (1 - math.log(z))


# Of each target: mean, variance, and how often the mean is within the tolerance.
MOMENTS = {
    np.sum: (1, 1 / 6, None),
    np.mean: (1 / 2, 1 / 24, 1 - (1 - 2 * TOLERANCE) ** 2),
    np.prod: (
        1 / 4,
        7 / 144,
        product_below(1 / 4 + TOLERANCE) - product_below(1 / 4 - TOLERANCE),
    ),
}


def error_above(tolerance):
    """Return the metric of the share of predictions that miss by more than a tolerance."""
    mean = keras.metrics.MeanMetricWrapper
    return mean(errors_above, name="zero_one_loss", tolerance=tolerance)


@keras.saving.register_keras_serializable(package="papers")
def errors_above(y_true, y_pred, tolerance):
    """Return 1 where the last axis has an error above the tolerance, else 0."""
    y_pred = keras.ops.convert_to_tensor(y_pred)
    wrong = keras.ops.abs(y_pred - keras.ops.cast(y_true, y_pred.dtype)) > tolerance
    return keras.ops.cast(keras.ops.any(wrong, axis=-1), y_pred.dtype)
