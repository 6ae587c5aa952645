"""What a hyperparameter may be in a search: fixed, one of a list, or in an interval.

keras-tuner has a linear and a logarithmic scale. Where a hyperparameter needs another, or may
be `None`, the search sees a stand-in (`beta_logit`, 0), and this file translates.
"""

import math
from numbers import Real

from keras_momentum_rnn.hyperparameters import Hyperparameter
from keras_momentum_rnn.layers.registry import our_layers
from keras_momentum_rnn.rules import LearnedMomentum

LOGIT = "_logit"
# Digits of a float from an interval: 0.999, not what the logit and its inverse make of it.
DIGITS = 6

# The hyperparameters of layers, as their rules and cells declare them. No layer names the
# learned momentum as its rule, but a search may be told to.
OF_LAYERS = LearnedMomentum.hyperparameters | {
    name: hyperparameter
    for layer in our_layers().values()
    for name, hyperparameter in layer.hyperparameters.items()
}
# Those that a search chooses by default.
SEARCHED = {name: h.search for name, h in OF_LAYERS.items() if h.search is not None}
OF_MODELS = {
    "units": Hyperparameter(integer=True, search=[32, 64, 128], scale="log"),
    "depth": Hyperparameter(integer=True, search=[1], scale=None),
    "bidirectional": Hyperparameter(choices=(True, False), search=[False], scale=None),
    "dropout": Hyperparameter(at_least=0, below=1, search=[0.0]),
    "learning_rate": Hyperparameter(above=0, search=(1e-4, 1e-2), scale="log"),
    "clipnorm": Hyperparameter(above=0, optional=True, search=[1.0], scale="log"),
}
HYPERPARAMETERS = {**OF_LAYERS, **OF_MODELS}


def ask(hp, name, spec):
    """Register the hyperparameter `name` and return its value, `None` where it is inactive.

    Args:
        hp: `keras_tuner.HyperParameters`.
        name: a key of `HYPERPARAMETERS`.
        spec: a list of choices, a tuple (low, high), or one value.
    """
    hyperparameter, spec = HYPERPARAMETERS[name], checked_spec(name, spec)
    if isinstance(spec, tuple) and hyperparameter.scale == "logit":
        name += LOGIT
        value = hp.Float(name, *(coded(name, end) for end in spec))
    elif isinstance(spec, tuple):
        kind = hp.Int if hyperparameter.integer else hp.Float
        value = kind(name, *spec, sampling=hyperparameter.scale)
    elif isinstance(spec, list):
        is_bool = isinstance(spec[0], bool)
        value = hp.Boolean(name) if is_bool else hp.Choice(name, [coded(name, v) for v in spec])
    else:
        value = hp.Fixed(name, coded(name, spec))
    return None if value is None else layer_value(name, value, isinstance(spec, tuple))


def checked_spec(name, spec):
    """Return what is to be searched, checked: a list, a tuple or one value."""
    hyperparameter = HYPERPARAMETERS[name]
    if isinstance(spec, (list, range)):
        values = [hyperparameter.checked(name, value, searched=True) for value in spec]
        if not values or len(set(values)) < len(values):
            raise ValueError(
                f"`{name}` must be a list of one or more different choices. "
                f"Received: {name}={spec!r}"
            )
        return values if len(values) > 1 else values[0]
    if not isinstance(spec, tuple):
        return hyperparameter.checked(name, spec, searched=True)
    if hyperparameter.scale is None:
        raise ValueError(
            f"`{name}` must be one value or a list of choices, it has no intervals. "
            f"Received: {name}={spec!r}"
        )
    if len(spec) != 2 or not all(isinstance(end, Real) for end in spec) or spec[0] >= spec[1]:
        raise ValueError(
            f"`{name}` must be an interval (low, high) with low < high, a list of choices or "
            f"one value. Received: {name}={spec!r}"
        )
    low, high = (hyperparameter.checked(name, end, searched=True) for end in spec)
    if hyperparameter.scale in ("log", "logit") and low <= 0:
        raise ValueError(
            f"An interval of `{name}` is searched on a {hyperparameter.scale} scale and must "
            f"lie above 0. Received: {name}={spec!r}"
        )
    return low, high


def plain(name):
    """Return the argument that a hyperparameter stands for: `"1/beta_logit"` is `"beta"`."""
    return name.rpartition("/")[2].removesuffix(LOGIT)


def coded(name, value):
    """Return the value of a hyperparameter as the search holds it."""
    hyperparameter = HYPERPARAMETERS.get(plain(name))
    if value is None and hyperparameter is not None and hyperparameter.optional:
        return 0 if hyperparameter.integer else 0.0
    return math.log(value / (1 - value)) if name.endswith(LOGIT) else value


def layer_value(name, value, of_interval=True):
    """Return the value of a hyperparameter as a layer takes it: the inverse of `coded`."""
    hyperparameter = HYPERPARAMETERS.get(plain(name))
    if value == 0 and hyperparameter is not None and hyperparameter.optional:
        return None
    if name.endswith(LOGIT):
        value = 1 / (1 + math.exp(-value))
    rounded = of_interval and isinstance(value, float)
    return float(f"{value:.{DIGITS}g}") if rounded else value


def readable(values, given=()):
    """Return a trial's values by name as layers take them, no stand-ins.

    Args:
        values: dict.
        given: names of those that come from no interval.

    Example:

    >>> from keras_momentum_rnn.tuning.values import readable
    >>> readable({"layer": "AdamLSTM", "beta_logit": 0.0, "rebase_every": 0})
    {'layer': 'AdamLSTM', 'beta': 0.5, 'rebase_every': None}
    """
    return {
        name.removesuffix(LOGIT): layer_value(name, value, name not in given)
        for name, value in values.items()
    }
