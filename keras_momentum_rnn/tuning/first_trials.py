"""Trials that a search starts with: the papers' settings, or any of one's own."""

import contextlib
from collections.abc import Sequence
from typing import Any

import keras_tuner
from keras_tuner.engine import hyperparameters as hp_types

from keras_momentum_rnn.annotations import Layers
from keras_momentum_rnn.tuning.values import LOGIT, SEARCHED, coded
from papers.tasks.recipes import RECIPES

# The tasks of Nguyen et al. (2020), each with its name among the recipes and, for copying, the
# number of blanks.
TASKS = {
    "mnist": ("mnist", None),
    "pmnist": ("pmnist", None),
    "timit": ("timit", None),
    "ptb": ("words", None),
    "copying_1k": ("copying", 1000),
    "copying_2k": ("copying", 2000),
    "adding": ("adding", None),
}


def published_numbers(task, blanks):
    """Return what the paper found by grid search on a task: by layer a list of dicts."""
    found = {}
    for row in RECIPES:
        numbers = {n: value for n, value in row.arguments.items() if n in SEARCHED}
        if (row.task, row.options.get("blanks")) == (task, blanks) and "step_size" in numbers:
            trials = found.setdefault(row.layer_name, [])
            if numbers not in trials:
                trials.append(numbers)
    return found


# Tables 7 to 10, by task and layer. K is rebase_every, and its infinity None.
PAPER_SETTINGS = {name: published_numbers(*task) for name, task in TASKS.items()}


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
