"""Tables of the layers for the catalogue: hyperparameters, states, parameters, cost."""

import inspect
import math

from docs.tools import speed_tables
from keras_momentum_rnn.diagnostics import state_names
from keras_momentum_rnn.layers.registry import our_layers
from keras_momentum_rnn.rules import Identity
from papers.presentation import markdown_table

FAMILIES = ("LSTM", "GRU", "RNN", "DTRIV", "nested")
FEATURES, UNITS = 10, 32
HEAD = ["layer", "hyperparameters", "states", "parameters", "cost", "cost with `cpu`"]


def families():
    """Return the table of each recurrence, by its name on a page."""
    found = {}
    for family in FAMILIES:
        layers = our_layers(family)
        any_rule = layers.get(f"Rule{family}")
        # The page says once what all layers of the family take.
        shared = {*arguments(any_rule)} - {"rule"} if any_rule else {}
        rows = {name: row(cls, shared) for name, cls in layers.items()}
        if family == "nested":
            found["mcrm_layers"] = markdown_table(HEAD, [rows["MCRM"]])
            found["nested_lstm_layers"] = markdown_table(HEAD, [rows["NestedLSTM"]])
        else:
            found[f"{family.lower()}_layers"] = markdown_table(HEAD, rows.values())
    return found


def arguments(cls):
    """Return the arguments that the Keras layer does not have, by name."""
    theirs = inspect.signature(cls.keras_layer).parameters
    ours = inspect.signature(cls).parameters.items()
    return {name: parameter for name, parameter in ours if name not in theirs}


def row(cls, shared):
    own = [argument(p, cls) for name, p in arguments(cls).items() if name not in shared]
    name = cls.__name__
    return [f"`{name}`", ", ".join(own), states(cls), parameters(cls), *costs(name)]


def argument(parameter, cls):
    if parameter.default is parameter.empty or (cls.needs_rule and parameter.name == "rule"):
        return f"`{parameter.name}`"
    return f"`{parameter.name}={parameter.default!r}`"


def made(cls, units):
    return cls(units, rule=Identity()) if cls.needs_rule else cls(units)


def states(cls):
    """Return the names of the states with their widths, n for the units."""
    small, large = (made(cls, units).cell for units in (2, 4))
    sizes = zip(state_names(small), small.state_size, large.state_size)
    return ", ".join(f"{name} {width(a, b)}" for name, a, b in sizes)


def width(of_two, of_four):
    """Return a width as text, from those for 2 and for 4 units."""
    if of_two == of_four:
        return f"({of_two})"
    return "(n)" if of_two == 2 else f"({of_two // 2}n)"


def parameters(cls):
    layer = made(cls, UNITS)
    layer.build((None, None, FEATURES))
    return f"{sum(math.prod(weight.shape) for weight in layer.trainable_weights):,}"


def costs(layer):
    """Return the ratios to the plain layer without and with the native kernel."""
    measured = speed_tables.results("native")
    rows = [measured[backend]["main"]["layers"].get(layer) for backend in speed_tables.BACKENDS]
    if not all(rows):
        return ["", ""]
    return [
        ", ".join(f"{row[ratio]['median']:.2f}" for row in rows)
        for ratio in ("ratio_without", "ratio")
    ]
