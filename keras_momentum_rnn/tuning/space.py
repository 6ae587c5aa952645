"""The search space of one recurrent layer."""

import contextlib
import inspect
from typing import Any

import keras
import keras_tuner

from keras_momentum_rnn.annotations import Layers
from keras_momentum_rnn.layers.registry import available_layers
from keras_momentum_rnn.rules import Rule
from keras_momentum_rnn.tuning.values import OF_LAYERS, SEARCHED, ask, checked_spec

# Keyword arguments of every recurrent layer, which some do not list.
COMMON = ("name", "dtype", "trainable", "return_state", "zero_output_for_mask")


def suggest_layer(
    hp: keras_tuner.HyperParameters,
    layers: Layers,
    units: int | list[int] | tuple[int, int],
    prefix: str = "",
    **arguments: Any,
) -> Any:
    """Return a recurrent layer whose kind, width and hyperparameters a search chooses.

    The hyperparameter `layer` chooses the kind. Layers share the others: `momentum` is one
    hyperparameter, active for every layer that has a momentum. The search sees `beta` as
    `beta_logit`, `log(beta / (1 - beta))`, a scale that resolves 0.01 and 0.999 equally well,
    and a `rebase_every` of `None` as 0. Numbers from an interval have six digits.

    Args:
        hp: `keras_tuner.HyperParameters`.
        layers: list of layers to choose from, each a class or its name: ours, or
            `"SimpleRNN"`, `"LSTM"`, `"GRU"` of Keras, so that the baseline competes.
        units: positive integer, a list of them, or an interval (low, high) of them.
        prefix: text put before the names, with a slash: give each layer of a stack its own.
            Defaults to `""`: no prefix.
        **arguments: any argument of the layers, passed to those that take it:
            `return_sequences=True`, `formulation="released"`, `rule=...`. A hyperparameter
            is a list of choices, an interval (low, high) or one value. Unless given,
            `momentum`, `step_size`, `beta`, `restart_period`, `parametrization` and
            `rebase_every` have the range that the rule or the cell declares as `search` in
            its `hyperparameters`; others, such as `epsilon`, are not searched. Pass a class as
            `rule`, such as `rules.LearnedMomentum`, to search its hyperparameters in the
            layers that take a rule.

    Returns:
        The layer, or `None` where `hp` is in a conditional scope that is not active.

    Raises:
        ValueError: if a range is empty or leaves its domain, a layer is unknown, or no layer
            takes an argument.

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
    rule = arguments.get("rule")
    of_rule = rule.hyperparameters if isinstance(rule, type) and issubclass(rule, Rule) else {}

    def takes(cls, name):
        return takes_argument(cls, name) or (name in of_rule and takes_argument(cls, "rule"))

    for name, value in arguments.items():
        if name not in COMMON and not any(takes(cls, name) for cls in classes.values()):
            raise ValueError(
                f"`{name}` is an argument of none of the layers {list(classes)}. "
                f"Received: {name}={value!r}"
            )
    specs = {**SEARCHED, **{n: v for n, v in arguments.items() if n in OF_LAYERS}}
    # Checked whether or not the branch is active.
    specs = {name: checked_spec(name, spec) for name, spec in specs.items()}
    found = {name: value for name, value in arguments.items() if name not in OF_LAYERS}
    with hp.name_scope(prefix) if prefix else contextlib.nullcontext():
        chosen = hp.Choice("layer", list(classes))
        width = ask(hp, "units", units)
        for name, spec in specs.items():
            takers = [layer for layer, cls in classes.items() if takes(cls, name)]
            if takers:
                with hp.conditional_scope("layer", takers):
                    found[name] = ask(hp, name, spec)
    if chosen is None:
        return None
    cls = classes[chosen]
    if of_rule and takes_argument(cls, "rule"):
        numbers = {n: found[n] for n in of_rule if n in found and not takes_argument(cls, n)}
        found = {n: v for n, v in found.items() if n not in numbers}
        found["rule"] = rule(**numbers)
    return cls(width, **{n: v for n, v in found.items() if n in COMMON or takes(cls, n)})


def takes_argument(cls, argument):
    return argument in inspect.signature(cls).parameters


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
    known, classes = available_layers(), {}
    for layer in layers:
        cls = known.get(layer) if isinstance(layer, str) else layer
        is_layer = isinstance(cls, type) and issubclass(cls, keras.layers.RNN)
        if not is_layer or not takes_argument(cls, "units"):
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
