"""keras-tuner's oracles, which start with given trials and survive the wire."""

import math

import keras_tuner

from keras_momentum_rnn.tuning.first_trials import completed


class Oracle:
    """Mixin of an oracle of keras-tuner.

    `first` holds trials to start with. They replace the values, not the trial, that the
    oracle would have begun with, so that its own accounts (Hyperband's brackets) stay whole.
    """

    first = ()

    def populate_space(self, trial_id):
        response = super().populate_space(trial_id)
        values = response.get("values")
        begun = sum(is_new(trial.hyperparameters.values) for trial in self.trials.values())
        if values and is_new(values) and begun < len(self.first):
            own = {name: v for name, v in values.items() if name.startswith("tuner/")}
            response["values"] = {**completed(self.first[begun], self.get_space().space), **own}
        return response

    @keras_tuner.synchronized
    def end_trial(self, trial):
        """End a trial, with the values that it began with.

        The wire from a worker rounds floats to single precision, and then a grid search does
        not find them among its values; it also sorts the space by type.
        """
        begun = self.trials[trial.trial_id].hyperparameters
        ended = trial.hyperparameters
        if ended is not begun:
            begun.merge(ended, overwrite=False)
            begun.values = {**ended.values, **begun.values}
            trial.hyperparameters = begun
        super().end_trial(trial)


def is_new(values):
    """Return whether a trial starts anew: Hyperband also has those that go on from another."""
    return "tuner/trial_id" not in values


class RandomSearch(Oracle, keras_tuner.oracles.RandomSearchOracle):
    pass


class Hyperband(Oracle, keras_tuner.oracles.HyperbandOracle):
    pass


class BayesianOptimization(Oracle, keras_tuner.oracles.BayesianOptimizationOracle):
    pass


class GridSearch(Oracle, keras_tuner.oracles.GridSearchOracle):
    """keras-tuner's grid, counted through: the n-th trial is the n-th point.

    keras-tuner goes from each trial to the next by a list that it does not save, and after an
    interruption ends at once or raises.
    """

    def populate_space(self, trial_id):
        space, begun = self.get_space().space, len(self.trials)
        if begun < grid_size(space):
            return {"status": "RUNNING", "values": grid_point(space, begun)}
        return {"status": "STOPPED", "values": None}


ORACLES = {
    "random": RandomSearch,
    "hyperband": Hyperband,
    "bayesian": BayesianOptimization,
    "grid": GridSearch,
}


def make(strategy, *, max_trials, max_epochs, first, space, **arguments):
    """Return the oracle of a strategy.

    Args:
        strategy: a key of `ORACLES`.
        max_trials: positive integer, or `None` where the strategy ends by itself.
        max_epochs: positive integer, the epochs of a trial that goes all the way.
        first: list of dicts, trials to start with.
        space: the search space, against which `first` is checked.
        **arguments: those of every oracle.
    """
    own = {"max_epochs": max_epochs} if strategy == "hyperband" else {"max_trials": max_trials}
    if strategy == "bayesian":
        # keras-tuner draws three trials at random for each number, here most of a search.
        own["num_initial_points"] = max(3, max_trials // 3)
    # A broken trial is no reason to stop; one that breaks the search is no trial's error.
    oracle = ORACLES[strategy](**own, **arguments, max_consecutive_failed_trials=10**9)
    for trial in first:
        completed(trial, space)
    oracle.first = [dict(trial) for trial in first]
    return oracle


def count(strategy, max_trials, max_epochs, space):
    """Return how many trials a search will have."""
    if strategy == "hyperband":
        return hyperband_trials(max_epochs)
    if strategy == "grid":
        return min(grid_size(space), max_trials or math.inf)
    return max_trials


def hyperband_trials(max_epochs, factor=3):
    """Return the trials of one sweep over keras-tuner's Hyperband brackets."""
    brackets, epochs = 0, max_epochs
    while epochs >= 1:
        epochs /= factor
        brackets += 1
    end = math.ceil(1 + math.log(max_epochs, factor))
    return sum(
        math.ceil(end / (bracket + 1) * factor ** (bracket - round_number))
        for bracket in range(brackets)
        for round_number in range(bracket + 1)
    )


def grid_size(space, values=None):
    """Return the number of points of the grid over a space, each branch with its numbers.

    Args:
        space: list of keras-tuner's hyperparameters, parents before children.
        values: dict, the values of parents that stand before it.
    """
    hp, options, rest = first_active(space, values or {})
    if hp is None:
        return 1
    if not is_parent(hp, rest):
        return len(options) * grid_size(rest, values)
    return sum(grid_size(rest, {**(values or {}), hp.name: option}) for option in options)


def grid_point(space, index, values=None):
    """Return the values at a point of the grid; those of the last name change fastest."""
    values = values or {}
    hp, options, rest = first_active(space, values)
    if hp is None:
        return values
    for option in options:
        inside = {**values, hp.name: option}
        size = grid_size(rest, inside)
        if index < size:
            return grid_point(rest, index, inside)
        index -= size
    raise IndexError("The grid has no such point.")


def first_active(space, values):
    """Return the first active hyperparameter, its options and what stands after it."""
    for i, hp in enumerate(space):
        if all(condition.is_active(values) for condition in hp.conditions):
            return hp, list(dict.fromkeys([hp.default, *sorted(hp.values)])), space[i + 1 :]
    return None, [], []


def is_parent(hp, rest):
    return any(condition.name == hp.name for child in rest for condition in child.conditions)
