"""Long series cut into windows, to predict the value after each."""

import numpy as np

from papers.checks import checked_count
from papers.tasks.task import Split

TEST_SHARE = 0.2


def sunspots():
    """Yearly numbers of sunspots, 1700 to 2008."""
    from statsmodels.datasets import sunspots

    return sunspots.load_pandas().data["SUNACTIVITY"]


def co2():
    """Weekly carbon dioxide at Mauna Loa, 1958 to 2001, gaps filled linearly."""
    from statsmodels.datasets import co2

    return co2.load_pandas().data["co2"].interpolate()


def elnino():
    """Monthly temperatures of the Pacific's surface, 1950 to 2010."""
    from statsmodels.datasets import elnino

    return elnino.load_pandas().data.drop(columns="YEAR").to_numpy().ravel()


def airline():
    """Monthly passengers of airlines, 1949 to 1960."""
    from aeon.datasets import load_airline

    return load_airline()


SERIES = {"sunspots": sunspots, "co2": co2, "elnino": elnino, "airline": airline}


def values_of(name):
    """Return a series as an array in float64."""
    return np.asarray(SERIES[name](), "float64")


def windows(values, window, validation):
    """Return windows and the values after them, of training, validation and test, a dict.

    The last fifth of the series is for test, and the last share of the rest for validation. No
    target of validation or test is seen in an earlier part.

    Args:
        values: array (time,), longer than all windows together.
        window: positive integer, the steps of a window.
        validation: float, the share.
    """
    window = checked_count("window", window, at_most=len(values) // 4)
    test = round(len(values) * (1 - TEST_SHARE))
    # Two targets at least to train on, which have a deviation, and one to validate.
    held_out = min(max(window + 2, round(test * (1 - validation))), test - 1)
    parts = {"train": (window, held_out), "validation": (held_out, test)}
    parts["test"] = (test, len(values))
    found = np.lib.stride_tricks.sliding_window_view(values, window)[..., None]
    return {
        name: (found[first - window : last - window], values[first:last, None])
        for name, (first, last) in parts.items()
    }


def forecast(name, window, standardise, validation):
    """Return the three splits of a series, and what the value before scores.

    Args:
        name: one of `SERIES`.
        window, standardise, validation: as of the task `archive`. Targets are standardised by
            the training part whenever the inputs are.
    """
    parts = windows(values_of(name), window, validation)
    targets = parts["train"][1]
    before = np.mean((parts["test"][1] - parts["test"][0][:, -1]) ** 2)
    mean, deviation = (targets.mean(), not_zero(targets.std())) if standardise else (0.0, 1.0)

    def split(x, y):
        of_inputs = mean, deviation
        if standardise == "sample":
            spread = x.std(axis=1, keepdims=True)
            of_inputs = x.mean(axis=1, keepdims=True), not_zero(spread)
        x = (x - of_inputs[0]) / of_inputs[1]
        return Split(x.astype("float32"), ((y - mean) / deviation).astype("float32"))

    return {part: split(*pair) for part, pair in parts.items()}, before / deviation**2


def not_zero(deviation):
    """Return deviations, 1 in place of those of constants."""
    return np.where(deviation > 1e-8, deviation, 1.0)
