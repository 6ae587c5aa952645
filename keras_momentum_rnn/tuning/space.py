"""The search space of one recurrent layer, and what a hyperparameter in it may be.

A hyperparameter is fixed, one of a list, or in an interval. keras-tuner has a linear and a
logarithmic scale. Where a hyperparameter needs another, or may be `None`, the search sees a
stand-in (`beta_logit`, 0), and `coded` and `layer_value` translate.
"""

import inspect
import math
from numbers import Real
from typing import Any

import keras
import keras_tuner

from keras_momentum_rnn.annotations import Layers
from keras_momentum_rnn.hyperparameters import Hyperparameter
from keras_momentum_rnn.layers import plain as plain_layers
from keras_momentum_rnn.layers.registry import available_layers, our_layers

LOGIT = "_logit"
# Keyword arguments of every recurrent layer, which some do not list.
COMMON = ("name", "dtype", "trainable", "return_state", "zero_output_for_mask")
# The hyperparameters of layers, as their rules and cells declare them.
OF_LAYERS = {
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
LOGITS = {name + LOGIT for name, h in HYPERPARAMETERS.items() if h.scale == "logit"}


def suggest_layer(
    hp: keras_tuner.HyperParameters,
    layers: Layers,
    units: int | list[int] | tuple[int, int],
    **arguments: Any,
) -> Any:
    """Return a recurrent layer whose kind, width and hyperparameters a search chooses.

    The hyperparameter `layer` chooses the kind. Layers share the others: `momentum` is one
    hyperparameter, active for every layer that has a momentum. To give each layer of a stack
    hyperparameters of its own, call this in a `with hp.name_scope("encoder"):`.

    The search sees `beta` as `beta_logit`, `log(beta / (1 - beta))`, a scale that resolves
    0.01 and 0.999 equally well, and a `rebase_every` of `None` as 0.

    Args:
        hp: `keras_tuner.HyperParameters`.
        layers: list of layers to choose from, each a class or its name. `"SimpleRNN"`, `"LSTM"`
            and `"GRU"` are the baselines: Keras's layers, run on our kernel.
        units: positive integer, a list of them, or an interval (low, high) of them.
        **arguments: any argument of the layers, passed to those that take it:
            `return_sequences=True`, `formulation="released"`, `rule=rules.Adam()`. A
            hyperparameter is a list of choices, an interval (low, high) or one value. Unless
            given, `momentum`, `step_size`, `beta`, `restart_period`, `parametrization` and
            `rebase_every` have the range that the rules and cells of this package declare as
            `search` in their `hyperparameters`; others, such as `epsilon`, are not searched.
            Arguments by other names, of layers of your own, are passed as they are.

    Returns:
        The layer, or `None` where `hp` is in a conditional scope that is not active.

    Raises:
        ValueError: if a range is empty or leaves its domain, a layer is unknown, no layer
            takes an argument, or another call has asked for other layers or fixed values.

    Example:

    >>> import keras_tuner
    >>> from keras_momentum_rnn.tuning import suggest_layer
    >>> hp = keras_tuner.HyperParameters()
    >>> layer = suggest_layer(hp, ["SRLSTM", "LSTM"], units=[8, 16], step_size=(0.1, 1.0))
    >>> type(layer).__name__, layer.units, layer.restart_period, layer.step_size
    ('SRLSTM', 8, 2, 0.1)
    >>> hp.values
    {'layer': 'SRLSTM', 'units': 8, 'step_size': 0.1, 'restart_period': 2}

    Reference: Nguyen et al. (2020), Tables 7 to 10, whose settings lie in the default ranges;
    `paper_trials` lists them.
    """
    classes = layer_classes(layers, "rule" in arguments)
    for name, value in arguments.items():
        if name not in COMMON and not any(takes(cls, name) for cls in classes.values()):
            raise ValueError(
                f"`{name}` is an argument of none of the layers {list(classes)}. "
                f"Received: {name}={value!r}"
            )
    specs = {**SEARCHED, **{n: v for n, v in arguments.items() if n in OF_LAYERS}}
    # Checked whether or not the branch is active.
    specs = {name: checked_spec(name, spec) for name, spec in specs.items()}
    passed = {name: value for name, value in arguments.items() if name not in OF_LAYERS}
    chosen = hp.Choice("layer", list(classes))
    width = ask(hp, "units", units)
    for name, spec in specs.items():
        takers = [layer for layer, cls in classes.items() if takes(cls, name)]
        if takers:
            with hp.conditional_scope("layer", takers):
                passed[name] = ask(hp, name, spec)
    if chosen is None:
        return None
    if chosen not in classes:
        raise ValueError(
            "`layers` must be those of the other calls: their hyperparameters are shared. Or "
            f"call this in a `with hp.name_scope(...):`. Received: layers={layers!r}; "
            f"chosen: {chosen!r}"
        )
    cls = classes[chosen]
    return cls(width, **{n: v for n, v in passed.items() if n in COMMON or takes(cls, n)})


def takes(cls, argument):
    # Python 3.11.2 shows no arguments of a class that inherits `__init__` from Keras.
    return any(argument in inspect.signature(f).parameters for f in (cls, cls.__init__))


def layer_classes(layers, has_rule):
    """Return the classes by name.

    Args:
        layers: list of classes and names.
        has_rule: bool, whether the layers are given a rule.
    """
    if not isinstance(layers, (list, tuple)) or not layers:
        raise ValueError(
            "`layers` must be a list of one or more layers, by class or name. "
            f"Received: layers={layers!r}"
        )
    fast = {name: getattr(plain_layers, name) for name in plain_layers.__all__}
    known, classes = {**available_layers(), **fast}, {}
    for layer in layers:
        cls = known.get(layer) if isinstance(layer, str) else layer
        is_layer = isinstance(cls, type) and issubclass(cls, keras.layers.RNN)
        if not is_layer or not takes(cls, "units"):
            raise ValueError(
                f"`layers` must hold classes of recurrent layers with `units`, or some of "
                f"{sorted(known)}. Received: {layer!r} among layers={layers!r}"
            )
        if cls.__name__ in classes:
            raise ValueError(
                f"`layers` must differ in name. Received: {cls.__name__} twice in "
                f"layers={layers!r}"
            )
        if getattr(cls, "needs_rule", False) and not has_rule:
            raise ValueError(
                f"{cls.__name__} takes any rule: hand one on with `rule=...`. "
                f"Received: layers={layers!r} without `rule`"
            )
        classes[cls.__name__] = cls
    return classes


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
    elif isinstance(spec, list) and isinstance(spec[0], bool):
        value = hp.Boolean(name, spec[0])
    elif isinstance(spec, list):
        value = hp.Choice(name, [coded(name, v) for v in spec])
    else:
        value = hp.Fixed(name, coded(name, spec))
        if value not in (None, coded(name, spec)):
            raise ValueError(
                f"`{name}` must be that of the other calls: their hyperparameters are shared. "
                "Or call this in a `with hp.name_scope(...):`. "
                f"Received: {name}={spec!r}; chosen: {layer_value(name, value)!r}"
            )
    return None if value is None else layer_value(name, value)


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


def shown(name):
    """Return the name of a hyperparameter for the user: `"a/beta_logit"` is `"a/beta"`."""
    return name.removesuffix(LOGIT) if name.rpartition("/")[2] in LOGITS else name


def plain(name):
    """Return the argument that a hyperparameter stands for: `"a/beta_logit"` is `"beta"`."""
    return shown(name).rpartition("/")[2]


def coded(name, value):
    """Return the value of a hyperparameter as the search holds it."""
    hyperparameter = HYPERPARAMETERS.get(plain(name))
    if value is None and hyperparameter is not None and hyperparameter.optional:
        return 0 if hyperparameter.integer else 0.0
    return math.log(value / (1 - value)) if shown(name) != name else value


def layer_value(name, value):
    """Return the value of a hyperparameter as a layer takes it: the inverse of `coded`."""
    hyperparameter = HYPERPARAMETERS.get(plain(name))
    if value == 0 and hyperparameter is not None and hyperparameter.optional:
        return None
    if shown(name) != name:
        # 0.999, not what the logit and its inverse make of it. The distance to the nearer of
        # 0 and 1 keeps six digits, so that no number below 1 is rounded to 1.
        share, rest = (1 / (1 + math.exp(sign * value)) for sign in (-1, 1))
        return round(share, 5 - math.floor(math.log10(min(share, rest))))
    return value
