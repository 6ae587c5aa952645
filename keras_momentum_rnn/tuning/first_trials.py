"""Trials that a search starts with: the papers' settings, or any of one's own."""

import contextlib
import inspect
from collections.abc import Sequence
from typing import Any

import keras_tuner
from keras_tuner.engine import hyperparameters as hp_types

from keras_momentum_rnn.annotations import Layers
from keras_momentum_rnn.layers.registry import available_layers
from keras_momentum_rnn.tuning.space import OF_LAYERS, coded, layer_classes, plain, shown

MNIST, PIXELS, SPEECH, WORDS = ("mnist",), ("pmnist",), ("timit",), ("ptb",)
LONG = ("copying_1k", "copying_2k", "adding")
TASKS = (*MNIST, *PIXELS, *SPEECH, *WORDS, *LONG)
# What Nguyen et al. (2020) found by grid search, Tables 7 to 10: tasks, layer, momentum (None
# where the layer has none), step size, other numbers. K is rebase_every, and its infinity None.
FOUND = [
    (MNIST, "MomentumLSTM", 0.6, 0.6, {}),
    (MNIST, "AdamLSTM", 0.6, 0.6, {"beta": 0.1}),
    (MNIST, "RMSPropLSTM", None, 0.6, {"beta": 0.9}),
    (MNIST, "RMSPropLSTM", None, 0.6, {"beta": 0.99}),
    (MNIST, "SRLSTM", None, 1.0, {"restart_period": 2}),
    (PIXELS, "MomentumLSTM", 0.6, 1.0, {}),
    (PIXELS, "AdamLSTM", 0.6, 1.0, {"beta": 0.01}),
    (PIXELS, "RMSPropLSTM", None, 1.0, {"beta": 0.01}),
    (PIXELS, "SRLSTM", None, 0.9, {"restart_period": 40}),
    (PIXELS, "SRLSTM", None, 0.01, {"restart_period": 6}),
    (PIXELS, "MomentumDTRIV", 0.6, 0.9, {"rebase_every": 1}),
    (PIXELS, "MomentumDTRIV", 0.3, 0.3, {"rebase_every": None}),
    (PIXELS, "AdamDTRIV", 0.3, 0.3, {"beta": 0.8, "rebase_every": None}),
    (PIXELS, "RMSPropDTRIV", None, 0.3, {"beta": 0.9, "rebase_every": None}),
    (PIXELS, "SRDTRIV", None, 0.3, {"restart_period": 2, "rebase_every": None}),
    (SPEECH, "MomentumLSTM", 0.3, 0.1, {}),
    (SPEECH, "AdamLSTM", 0.3, 0.1, {"beta": 0.999}),
    (SPEECH, "RMSPropLSTM", None, 0.1, {"beta": 0.999}),
    (SPEECH, "SRLSTM", None, 0.1, {"restart_period": 2}),
    (SPEECH, "MomentumDTRIV", 0.3, 0.1, {"rebase_every": None}),
    (WORDS, "MomentumLSTM", 0.0, 0.6, {}),
    (WORDS, "SRLSTM", None, 0.6, {"restart_period": 2}),
    (LONG[:1], "MomentumLSTM", 0.6, 0.9, {}),
    (LONG[1:], "MomentumLSTM", 0.9, 2.0, {}),
    (LONG, "AdamLSTM", 0.6, 2.0, {"beta": 0.999}),
    (LONG, "RMSPropLSTM", None, 2.0, {"beta": 0.999}),
    (LONG, "SRLSTM", None, 0.9, {"restart_period": 100}),
]


def paper_trials(layers: Layers, tasks: Sequence[str] = TASKS) -> list[dict[str, Any]]:
    """Return the papers' settings of some layers, as first trials of a search.

    Args:
        layers: list of layers, each a class or its name. Layers for which the paper gives no
            hyperparameters are left out.
        tasks: list of tasks, of `"mnist"`, `"pmnist"`, `"timit"`, `"ptb"`, `"copying_1k"`,
            `"copying_2k"`, `"adding"`. Defaults to all.

    Returns:
        A list of dicts for the argument `first` of `tune`, without repetitions.

    Raises:
        ValueError: if a task or a layer is unknown.

    Example:

    >>> from keras_momentum_rnn.tuning import paper_trials
    >>> paper_trials(["LSTM", "AdamLSTM"], ["mnist"])
    [{'layer': 'AdamLSTM', 'momentum': 0.6, 'step_size': 0.6, 'beta': 0.1}]

    Reference: Nguyen et al. (2020), Tables 7 to 10.
    """
    if not set(tasks) <= set(TASKS):
        raise ValueError(f"`tasks` must be a list of some of {TASKS}. Received: tasks={tasks}")
    names = layer_classes(layers, has_rule=True)
    trials = []
    for found_on, layer, momentum, step_size, numbers in FOUND:
        if layer in names and set(found_on) & set(tasks):
            own = {} if momentum is None else {"momentum": momentum}
            trials.append({"layer": layer, **own, "step_size": step_size, **numbers})
    return [trial for i, trial in enumerate(trials) if trial not in trials[:i]]


def completed(trial, space):
    """Return the values of every active hyperparameter of a trial of which some are given.

    Args:
        trial: dict from names to values, as layers take them: `beta`, not `beta_logit`. What
            it does not name has the `default`.
        space: list of keras-tuner's hyperparameters, parents before children.

    Raises:
        ValueError: if a name has no active hyperparameter, or a value is out of its range.
    """
    left = dict(trial)
    hps = keras_tuner.HyperParameters()
    for hp in space:
        hps.merge([hp])
        if hps.is_active(hp):
            name = shown(hp.name)
            if name in left:
                hps.values[hp.name] = checked_value(hp, left.pop(name))
            else:
                hps.values[hp.name] = default(hp, hps.values)
    if left:
        raise ValueError(
            "A first trial may set what the search chooses in its branch, "
            f"{list(map(shown, hps.values))}. "
            f"Received: {', '.join(left)} in {trial}"
        )
    return hps.values


def default(hp, values):
    """Return the value of a hyperparameter that a trial leaves out.

    Args:
        hp: of keras-tuner.
        values: dict of the trial's values so far, the layer's name among them.
    """
    scope, slash, _ = hp.name.rpartition("/")
    layer = available_layers().get(values.get(f"{scope}{slash}layer"))
    if layer is not None and plain(hp.name) in OF_LAYERS:
        parameter = inspect.signature(layer).parameters.get(plain(hp.name))
        with contextlib.suppress(AttributeError, ValueError):
            return checked_value(hp, parameter.default)  # which may be out of the range
    return hp.default


def checked_value(hp, value):
    """Return a value as the search holds it, checked against the search's range."""
    is_interval = isinstance(hp, (hp_types.Float, hp_types.Int))
    options = [hp.min_value, hp.max_value] if is_interval else list(hp.values)
    with contextlib.suppress(TypeError, ValueError, ZeroDivisionError):
        in_search = coded(hp.name, value)
        typed = type(options[0])(in_search)
        inside = options[0] <= typed <= options[1] if is_interval else typed in options
        if inside and typed == in_search:
            return typed
    raise ValueError(f"`{hp.name}` must be in {options} in a first trial. Received: {value!r}")
