"""Trials that a search starts with: the papers' settings, or any of one's own."""

import contextlib
import math

import keras_tuner

from keras_momentum_rnn.tuning.values import LOGIT, NUMBERS, logit, plain

# Nguyen et al. (2020), Tables 7 to 10: what the paper found by grid search, by task. For
# RMSProp it lists a momentum of 0, which RMSPropLSTM has by definition; K is rebase_every, and
# its infinity None.
PAPER_SETTINGS = {
    "mnist": {
        "MomentumLSTM": [{"momentum": 0.6, "step_size": 0.6}],
        "AdamLSTM": [{"momentum": 0.6, "step_size": 0.6, "beta": 0.1}],
        "RMSPropLSTM": [{"step_size": 0.6, "beta": 0.9}, {"step_size": 0.6, "beta": 0.99}],
        "SRLSTM": [{"restart_period": 2, "step_size": 1.0}],
    },
    "pmnist": {
        "MomentumLSTM": [{"momentum": 0.6, "step_size": 1.0}],
        "AdamLSTM": [{"momentum": 0.6, "step_size": 1.0, "beta": 0.01}],
        "RMSPropLSTM": [{"step_size": 1.0, "beta": 0.01}],
        "SRLSTM": [
            {"restart_period": 40, "step_size": 0.9},
            {"restart_period": 6, "step_size": 0.01},
        ],
        "MomentumDTRIV": [
            {"momentum": 0.6, "step_size": 0.9, "rebase_every": 1},
            {"momentum": 0.3, "step_size": 0.3, "rebase_every": None},
        ],
        "AdamDTRIV": [{"momentum": 0.3, "step_size": 0.3, "beta": 0.8, "rebase_every": None}],
        "RMSPropDTRIV": [{"step_size": 0.3, "beta": 0.9, "rebase_every": None}],
        "SRDTRIV": [{"restart_period": 2, "step_size": 0.3, "rebase_every": None}],
    },
    "timit": {
        "MomentumLSTM": [{"momentum": 0.3, "step_size": 0.1}],
        "AdamLSTM": [{"momentum": 0.3, "step_size": 0.1, "beta": 0.999}],
        "RMSPropLSTM": [{"step_size": 0.1, "beta": 0.999}],
        "SRLSTM": [{"restart_period": 2, "step_size": 0.1}],
        "MomentumDTRIV": [{"momentum": 0.3, "step_size": 0.1, "rebase_every": None}],
    },
    "ptb": {
        "MomentumLSTM": [{"momentum": 0.0, "step_size": 0.6}],
        "SRLSTM": [{"restart_period": 2, "step_size": 0.6}],
    },
    "copying_1k": {
        "MomentumLSTM": [{"momentum": 0.6, "step_size": 0.9}],
        "AdamLSTM": [{"momentum": 0.6, "step_size": 2.0, "beta": 0.999}],
        "RMSPropLSTM": [{"step_size": 2.0, "beta": 0.999}],
        "SRLSTM": [{"restart_period": 100, "step_size": 0.9}],
    },
    "copying_2k": {
        "MomentumLSTM": [{"momentum": 0.9, "step_size": 2.0}],
        "AdamLSTM": [{"momentum": 0.6, "step_size": 2.0, "beta": 0.999}],
        "RMSPropLSTM": [{"step_size": 2.0, "beta": 0.999}],
        "SRLSTM": [{"restart_period": 100, "step_size": 0.9}],
    },
    "adding": {
        "MomentumLSTM": [{"momentum": 0.9, "step_size": 2.0}],
        "AdamLSTM": [{"momentum": 0.6, "step_size": 2.0, "beta": 0.999}],
        "RMSPropLSTM": [{"step_size": 2.0, "beta": 0.999}],
        "SRLSTM": [{"restart_period": 100, "step_size": 0.9}],
    },
}


def paper_trials(layers, tasks=None):
    """Return the papers' settings of some layers, as first trials of a search.

    Args:
        layers: list of layers, each a class or its name. Those of which the paper gives no
            numbers have no part in the result.
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
            trials += [{"layer": name, **n} for n in PAPER_SETTINGS[task].get(name, [])]
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
            value = stand_in(hp, left.pop(name)) if name in left else hp.default
            hps.values[hp.name] = value
    if left:
        active = [name.removesuffix(LOGIT) for name in hps.values]
        raise ValueError(
            f"A first trial may set what the search chooses in its branch, {active}. "
            f"Received: {', '.join(left)} in {trial}"
        )
    return hps.values


def stand_in(hp, value):
    """Return a value as the search holds it: the inverse of `values.shown`."""
    given = value
    number = NUMBERS.get(plain(hp.name))
    if value is None and number is not None:
        value = number.none
    elif hp.name.endswith(LOGIT):
        value = logit(value) if 0 < value < 1 else None
    ends = (getattr(hp, "min_value", None), getattr(hp, "max_value", None))
    if None in ends:
        options = list(hp.values)
        inside = value in options
        value = options[options.index(value)] if inside else value
    else:
        options = "[{}, {}]".format(*ends)
        inside = False
        with contextlib.suppress(TypeError):
            inside = ends[0] - 1e-9 <= value <= ends[1] + 1e-9
            value = min(max(value, ends[0]), ends[1])
            whole = isinstance(ends[0], int)
            inside = inside and math.isfinite(value) and (not whole or value == int(value))
            value = int(value) if whole and inside else value
    if not inside:
        raise ValueError(
            f"`{hp.name}` must be in {options} in a first trial. Received: {given!r}"
        )
    return value
