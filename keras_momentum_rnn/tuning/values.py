"""What a hyperparameter may be: fixed, one of a list, or in an interval, on a scale.

keras-tuner has a linear and a logarithmic scale. Where a number needs another, or may be
`None`, the search sees a stand-in (`beta_logit`, 0), and this file translates.
"""

import math
from dataclasses import dataclass
from numbers import Real

from keras_momentum_rnn.checks import checked, checked_choice, checked_count

LOGIT = "_logit"
# The wire between chief and workers rounds to single precision: 0.6 arrives as 0.60000002.
DIGITS = 6


@dataclass(frozen=True)
class Number:
    """A hyperparameter's domain and scale, and what is searched unless said otherwise.

    Args:
        default: the range: a list of choices, a tuple (low, high), or one value.
        check: function of name and value that returns the value, or raises a `ValueError`.
        scale: `"linear"`, `"log"`, `"logit"`, or `None` where an interval has no meaning.
        none: what stands for `None` in the search, where `None` is a value.
    """

    default: object
    check: object
    scale: str = "linear"
    none: object = None

    def checked(self, name, value):
        if value is None and self.none is not None:
            return None
        return self.check(name, value)


def in_range(**bounds):
    return lambda name, value: checked(name, value, **bounds)


def one_of(*choices):
    return lambda name, value: checked_choice(name, value, choices)


# One row for each argument of a layer that a search chooses. A layer whose signature has the
# argument is searched over it.
LAYER_NUMBERS = {
    "momentum": Number((0.0, 0.99), in_range(at_least=0, below=1)),
    "step_size": Number((0.01, 2.0), in_range(above=0), "log"),
    "beta": Number((0.01, 0.999), in_range(at_least=0, below=1), "logit"),
    "restart_period": Number((2, 128), checked_count, "log"),
    "parametrization": Number(["expm", "cayley"], one_of("expm", "cayley"), None),
    "rebase_every": Number([1, 100, None], checked_count, None, none=0),
}
MODEL_NUMBERS = {
    "units": Number([32, 64, 128], checked_count, "log"),
    "depth": Number(1, checked_count, None),
    "bidirectional": Number(False, one_of(True, False), None),
    "dropout": Number(0.0, in_range(at_least=0, below=1)),
    "learning_rate": Number((1e-4, 1e-2), in_range(above=0), "log"),
    "clipnorm": Number(1.0, in_range(above=0), "log", none=0.0),
}
NUMBERS = {**LAYER_NUMBERS, **MODEL_NUMBERS}


def ask(hp, name, spec):
    """Register the hyperparameter `name` and return its value, `None` where it is inactive.

    Args:
        hp: `keras_tuner.HyperParameters`.
        name: a key of `NUMBERS`.
        spec: a list of choices, a tuple (low, high), or one value.
    """
    number = NUMBERS[name]
    spec = checked_spec(name, spec)
    if isinstance(spec, tuple):
        low, high = spec
        if number.scale == "logit":
            value = hp.Float(name + LOGIT, logit(low), logit(high))
            return None if value is None else shown(name + LOGIT, value)
        kind = hp.Int if isinstance(low, int) else hp.Float
        value = kind(name, low, high, sampling=number.scale)
    elif isinstance(spec, list):
        coded = [number.none if value is None else value for value in spec]
        if isinstance(coded[0], bool):
            value = hp.Boolean(name) if len(coded) == 2 else hp.Fixed(name, coded[0])
        else:
            value = hp.Choice(name, coded)
    else:
        value = hp.Fixed(name, number.none if spec is None else spec)
    return None if value is None else shown(name, value)


def checked_spec(name, spec):
    """Return what is to be searched, checked: a list, a tuple or one value."""
    number = NUMBERS[name]
    if isinstance(spec, range):
        spec = list(spec)
    if isinstance(spec, list):
        values = [number.checked(name, value) for value in spec]
        if not values or len(set(values)) < len(values):
            raise ValueError(
                f"`{name}` must be a list of one or more different choices. "
                f"Received: {name}={spec!r}"
            )
        return values
    if not isinstance(spec, tuple):
        return number.checked(name, spec)
    if number.scale is None:
        raise ValueError(
            f"`{name}` must be one value or a list of choices, it has no intervals. "
            f"Received: {name}={spec!r}"
        )
    if len(spec) != 2 or not all(isinstance(end, Real) for end in spec) or spec[0] >= spec[1]:
        raise ValueError(
            f"`{name}` must be an interval (low, high) with low < high, a list of choices or "
            f"one value. Received: {name}={spec!r}"
        )
    low, high = (number.check(name, end) for end in spec)
    if number.scale in ("log", "logit") and low <= 0:
        raise ValueError(
            f"An interval of `{name}` is searched on a {number.scale} scale and must lie above "
            f"0. Received: {name}={spec!r}"
        )
    return low, high


def logit(p):
    return math.log(p / (1 - p))


def plain(name):
    """Return the argument that a hyperparameter stands for: `"1/beta_logit"` is `"beta"`."""
    return name.rpartition("/")[2].removesuffix(LOGIT)


def shown(name, value):
    """Return the value of a hyperparameter as a layer takes it."""
    if name.endswith(LOGIT):
        value = 1 / (1 + math.exp(-value))
    number = NUMBERS.get(plain(name))
    if number is not None and number.none is not None and value == number.none:
        return None
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def readable(values):
    """Return a trial's values by name as layers take them, no stand-ins.

    Example:

    >>> from keras_momentum_rnn.tuning.values import readable
    >>> readable({"layer": "AdamLSTM", "beta_logit": 0.0, "momentum": 0.6000000238})
    {'layer': 'AdamLSTM', 'beta': 0.5, 'momentum': 0.6}
    """
    return {name.removesuffix(LOGIT): shown(name, value) for name, value in values.items()}
