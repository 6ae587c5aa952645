"""Trials that a search starts with: the papers' settings, or any of one's own."""

import contextlib
from collections.abc import Sequence
from typing import Any

import keras_tuner
from keras_tuner.engine import hyperparameters as hp_types

from keras_momentum_rnn.annotations import Layers
from keras_momentum_rnn.tuning.values import LOGIT, coded

# What Nguyen et al. (2020) found by grid search, Tables 7 to 10, by task. K is rebase_every,
# and its infinity None.
PAPER_SETTINGS = {
    "mnist": [
        {"layer": "MomentumLSTM", "momentum": 0.6, "step_size": 0.6},
        {"layer": "AdamLSTM", "momentum": 0.6, "step_size": 0.6, "beta": 0.1},
        {"layer": "RMSPropLSTM", "step_size": 0.6, "beta": 0.9},
        {"layer": "RMSPropLSTM", "step_size": 0.6, "beta": 0.99},
        {"layer": "SRLSTM", "restart_period": 2, "step_size": 1.0},
    ],
    "pmnist": [
        {"layer": "MomentumLSTM", "momentum": 0.6, "step_size": 1.0},
        {"layer": "AdamLSTM", "momentum": 0.6, "step_size": 1.0, "beta": 0.01},
        {"layer": "RMSPropLSTM", "step_size": 1.0, "beta": 0.01},
        {"layer": "SRLSTM", "restart_period": 40, "step_size": 0.9},
        {"layer": "SRLSTM", "restart_period": 6, "step_size": 0.01},
        {"layer": "MomentumDTRIV", "momentum": 0.6, "step_size": 0.9, "rebase_every": 1},
        {"layer": "MomentumDTRIV", "momentum": 0.3, "step_size": 0.3, "rebase_every": None},
        {
            "layer": "AdamDTRIV",
            "momentum": 0.3,
            "step_size": 0.3,
            "beta": 0.8,
            "rebase_every": None,
        },
        {"layer": "RMSPropDTRIV", "step_size": 0.3, "beta": 0.9, "rebase_every": None},
        {"layer": "SRDTRIV", "restart_period": 2, "step_size": 0.3, "rebase_every": None},
    ],
    "timit": [
        {"layer": "MomentumLSTM", "momentum": 0.3, "step_size": 0.1},
        {"layer": "AdamLSTM", "momentum": 0.3, "step_size": 0.1, "beta": 0.999},
        {"layer": "RMSPropLSTM", "step_size": 0.1, "beta": 0.999},
        {"layer": "SRLSTM", "restart_period": 2, "step_size": 0.1},
        {"layer": "MomentumDTRIV", "momentum": 0.3, "step_size": 0.1, "rebase_every": None},
    ],
    "ptb": [
        {"layer": "MomentumLSTM", "momentum": 0.0, "step_size": 0.6},
        {"layer": "SRLSTM", "restart_period": 2, "step_size": 0.6},
    ],
    "copying_1k": [
        {"layer": "MomentumLSTM", "momentum": 0.6, "step_size": 0.9},
        {"layer": "AdamLSTM", "momentum": 0.6, "step_size": 2.0, "beta": 0.999},
        {"layer": "RMSPropLSTM", "step_size": 2.0, "beta": 0.999},
        {"layer": "SRLSTM", "restart_period": 100, "step_size": 0.9},
    ],
    "copying_2k": [
        {"layer": "MomentumLSTM", "momentum": 0.9, "step_size": 2.0},
        {"layer": "AdamLSTM", "momentum": 0.6, "step_size": 2.0, "beta": 0.999},
        {"layer": "RMSPropLSTM", "step_size": 2.0, "beta": 0.999},
        {"layer": "SRLSTM", "restart_period": 100, "step_size": 0.9},
    ],
    "adding": [
        {"layer": "MomentumLSTM", "momentum": 0.9, "step_size": 2.0},
        {"layer": "AdamLSTM", "momentum": 0.6, "step_size": 2.0, "beta": 0.999},
        {"layer": "RMSPropLSTM", "step_size": 2.0, "beta": 0.999},
        {"layer": "SRLSTM", "restart_period": 100, "step_size": 0.9},
    ],
}


def paper_trials(layers: Layers, tasks: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the papers' settings of some layers, as first trials of a search.

    Args:
        layers: list of layers, each a class or its name. Layers for which the paper gives no
            hyperparameters are left out.
        tasks: list of tasks, of `"mnist"`, `"pmnist"`, `"timit"`, `"ptb"`, `"copying_1k"`,
            `"copying_2k"`, `"adding"`. Defaults to all.

    Returns:
        A list of dicts for the argument `first` of `tune`, without repetitions.

    Raises:
        ValueError: if a task is unknown.

    Example:

    >>> from keras_momentum_rnn.tuning import paper_trials
    >>> paper_trials(["LSTM", "AdamLSTM"], ["mnist"])
    [{'layer': 'AdamLSTM', 'momentum': 0.6, 'step_size': 0.6, 'beta': 0.1}]

    Reference: Nguyen et al. (2020), Tables 7 to 10.
    """
    trials = []
    for task in PAPER_SETTINGS if tasks is None else tasks:
        if task not in PAPER_SETTINGS:
            raise ValueError(
                f"`tasks` must be a list of some of {list(PAPER_SETTINGS)}. "
                f"Received: {task!r} among tasks={tasks!r}"
            )
        for layer in layers:
            name = layer if isinstance(layer, str) else layer.__name__
            trials += [dict(trial) for trial in PAPER_SETTINGS[task] if trial["layer"] == name]
    return [trial for i, trial in enumerate(trials) if trial not in trials[:i]]


def completed(trial, space):
    """Return the values of every active hyperparameter of a trial of which some are given.

    Args:
        trial: dict from names to values, as layers take them: `beta`, not `beta_logit`.
        space: list of keras-tuner's hyperparameters, parents before children. What the trial
            does not name has its default.

    Raises:
        ValueError: if a name has no active hyperparameter, or a value is out of its range.
    """
    left = dict(trial)
    hps = keras_tuner.HyperParameters()
    for hp in space:
        hps.merge([hp])
        if hps.is_active(hp):
            name = hp.name.removesuffix(LOGIT)
            hps.values[hp.name] = held(hp, left.pop(name)) if name in left else hp.default
    if left:
        active = [name.removesuffix(LOGIT) for name in hps.values]
        raise ValueError(
            f"A first trial may set what the search chooses in its branch, {active}. "
            f"Received: {', '.join(left)} in {trial}"
        )
    return hps.values


def held(hp, value):
    """Return a value as the search holds it, checked against the search's range."""
    if isinstance(hp, (hp_types.Float, hp_types.Int)):
        low, high = hp.min_value, hp.max_value
        options = f"[{low}, {high}]"
        with contextlib.suppress(TypeError, ValueError, ZeroDivisionError):
            found = coded(hp.name, value)
            if isinstance(hp, hp_types.Int) and found in range(low, high + 1):
                return int(found)
            if isinstance(hp, hp_types.Float) and low <= found <= high:
                return found
    else:
        options, found = list(hp.values), coded(hp.name, value)
        if found in options:
            return options[options.index(found)]
    raise ValueError(f"`{hp.name}` must be in {options} in a first trial. Received: {value!r}")
