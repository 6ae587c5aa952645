"""keras-tuner's oracles, which start with given trials and report those that end."""

import itertools

import keras_tuner

from keras_momentum_rnn.tuning.first_trials import completed


class Oracle:
    """Mixin of an oracle of keras-tuner.

    `first` holds trials to start with. They replace the values, not the trial, that the
    oracle would have begun with, so that its own accounts (Hyperband's brackets) stay whole.
    `on_end` is called with each trial that has ended, in the process that chooses them.
    """

    first = ()
    on_end = None

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
        super().end_trial(trial)
        if self.on_end is not None:
            self.on_end(self.trials[trial.trial_id])


def is_new(values):
    """Return whether a trial starts from scratch: some of Hyperband's continue another."""
    return "tuner/trial_id" not in values


class RandomSearch(Oracle, keras_tuner.oracles.RandomSearchOracle):
    pass


class Hyperband(Oracle, keras_tuner.oracles.HyperbandOracle):
    pass


class ResumableBayes(keras_tuner.oracles.BayesianOptimizationOracle):
    """keras-tuner's Bayesian search, whose draws belong to a trial and not to a process.

    keras-tuner does not save the numbers that it starts its search of the model from, so after
    an interruption it would draw other trials.
    """

    def populate_space(self, trial_id):
        completed = sum(trial.status == "COMPLETED" for trial in self.trials.values())
        if completed < self.num_initial_points:
            return super().populate_space(trial_id)
        fresh = keras_tuner.oracles.BayesianOptimizationOracle(
            objective=self.objective,
            max_trials=self.max_trials,
            num_initial_points=self.num_initial_points,
            alpha=self.alpha,
            beta=self.beta,
            seed=self.seed + len(self.trials),
            hyperparameters=self.get_space(),
            allow_new_entries=self.allow_new_entries,
            tune_new_entries=self.tune_new_entries,
        )
        fresh.trials, fresh.ongoing_trials = self.trials, self.ongoing_trials
        return fresh.populate_space(trial_id)


class BayesianOptimization(Oracle, ResumableBayes):
    pass


class GridSearch(Oracle, keras_tuner.oracles.GridSearchOracle):
    """keras-tuner's grid in a fixed order: the n-th trial is the n-th point.

    keras-tuner goes from each trial to the next by a list that it does not save, and after an
    interruption ends at once or raises.
    """

    def populate_space(self, trial_id):
        points = grid(self.get_space().space)
        values = next(itertools.islice(points, len(self.trials), None), None)
        return {"status": "STOPPED" if values is None else "RUNNING", "values": values}


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
        # keras-tuner draws three trials at random for each hyperparameter, most of a search.
        own["num_initial_points"] = max(3, max_trials // 3)
    # A failed trial does not stop the search; an error of the search itself does.
    oracle = ORACLES[strategy](**own, **arguments, max_consecutive_failed_trials=10**9)
    for trial in first:
        completed(trial, space)
    oracle.first = first
    return oracle


def count(strategy, oracle):
    """Return how many trials a search will have, `None` where Hyperband decides."""
    if strategy == "grid":
        points = grid(oracle.get_space().space)
        return sum(1 for _ in itertools.islice(points, oracle.max_trials))
    return oracle.max_trials


def grid(space, values=None):
    """Yield the values of each point of a grid; those of the last name change fastest.

    Args:
        space: list of keras-tuner's hyperparameters, parents before children.
        values: dict, the values of parents that stand before it.
    """
    values = values or {}
    for i, hp in enumerate(space):
        if all(condition.is_active(values) for condition in hp.conditions):
            for option in dict.fromkeys([hp.default, *sorted(hp.values)]):
                yield from grid(space[i + 1 :], {**values, hp.name: option})
            return
    yield values
