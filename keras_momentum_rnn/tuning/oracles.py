"""keras-tuner's oracles, which start with given trials and go on where they were."""

import contextlib
import threading

import keras_tuner

from keras_momentum_rnn.tuning.executions import stop_if_of_machine
from keras_momentum_rnn.tuning.first_trials import completed


class Oracle:
    """Mixin of an oracle of keras-tuner.

    `first` holds trials to start with. They replace the values, not the trial, that the
    oracle would have begun with, so that its own accounts (Hyperband's brackets) stay whole.
    `on_change` is called with each trial that begins, gets a score or ends, in the process that
    chooses them. `error` is one that ended a call of a worker. `stopped_at` holds the
    `max_trials` at which a worker was told that the search has ended.
    """

    first = ()
    on_change = None
    error = None
    stopped_at = ()

    @property
    def has_ended(self):
        return tuple(self.stopped_at) == (self.max_trials,) and not self.ongoing_trials

    def get_state(self):
        return {**super().get_state(), "stopped_at": self.stopped_at}

    def set_state(self, state):
        super().set_state(state)
        self.stopped_at = state["stopped_at"]

    def proposed(self, trial_id):
        """Return keras-tuner's next trial, without regard to `first`."""
        return super().populate_space(trial_id)

    def populate_space(self, trial_id):
        response = self.proposed(trial_id)
        values = response.get("values") or {}
        begun = sum(is_new(trial.hyperparameters.values) for trial in self.trials.values())
        # In a small space keras-tuner may find no new values and stop before the last of
        # `first`: `test_a_grid_is_tried_as_a_whole`. Hyperband has no bracket for such a trial.
        goes_on = values or self.max_trials
        if goes_on and is_new(values) and begun < len(self.first):
            own = {name: v for name, v in values.items() if name.startswith("tuner/")}
            values = {**completed(self.first[begun], self.get_space().space), **own}
            return {"status": "RUNNING", "values": values}
        return response

    @keras_tuner.synchronized
    def create_trial(self, tuner_id):
        with self.noting_errors():
            # keras-tuner leaves out who goes on with a trial, which would be given to another:
            # `test_trials_of_a_lost_worker_are_not_taken_from_one_that_is_there`.
            self.tuner_ids.add(tuner_id)
            trial = super().create_trial(tuner_id)
            # Of workers that did not come back since the chief was started again, which would
            # wait for them: `test_a_trial_whose_worker_does_not_come_back_is_given_to_another`.
            left = self.ongoing_trials.keys() - self.tuner_ids - {tuner_id}
            if trial.status in ("STOPPED", "IDLE") and left:
                self.tuner_ids.add(tuner_id)
                trial = self.ongoing_trials[tuner_id] = self.ongoing_trials.pop(min(left))
            if trial.status == "STOPPED":
                self.stopped_at = (self.max_trials,)
            if trial.status != "IDLE":
                self.on_change(trial)
            return trial

    @keras_tuner.synchronized
    def update_trial(self, trial_id, metrics, step=0):
        if trial_id in self.end_order:
            # Of a worker that was thought lost; its score would come too late:
            # `test_a_trial_whose_worker_does_not_come_back_is_given_to_another`.
            return self.trials[trial_id]
        with self.noting_errors():
            trial = super().update_trial(trial_id, metrics, step)
            # Or a chief that is started again lacks the score:
            # `test_a_worker_goes_on_with_its_trial_though_the_chief_was_started_again`.
            self.on_change(trial)
            return trial

    @keras_tuner.synchronized
    def end_trial(self, trial):
        if trial.trial_id in self.end_order:
            return
        with self.noting_errors():
            super().end_trial(trial)
            trial = self.trials[trial.trial_id]
            # A worker sends hyperparameters grouped by type.
            names = [hp.name for hp in self.get_space().space]
            trial.hyperparameters.space.sort(key=lambda hp: names.index(hp.name))
            self.on_change(trial)

    @contextlib.contextmanager
    def noting_errors(self):
        try:
            yield
        except Exception as error:
            if threading.current_thread() is not threading.main_thread():
                self.error = error
            stop_if_of_machine(error)  # which keras-tuner would take for the trial's
            raise


def is_new(values):
    """Return whether a trial starts from scratch: some of Hyperband's continue another."""
    return "tuner/trial_id" not in values


class RandomSearch(Oracle, keras_tuner.oracles.RandomSearchOracle):
    pass


class Hyperband(Oracle, keras_tuner.oracles.HyperbandOracle):
    pass


class BayesianOptimization(Oracle, keras_tuner.oracles.BayesianOptimizationOracle):
    """keras-tuner's Bayesian search, whose draws belong to a trial and not to a process.

    keras-tuner does not save the numbers that it starts its search of the model from, so after
    an interruption it would draw other trials:
    `test_an_interrupted_search_tries_what_a_whole_one_tries`.
    """

    def proposed(self, trial_id):
        ended = sum(trial.status == "COMPLETED" for trial in self.trials.values())
        if ended < self.num_initial_points:
            return super().proposed(trial_id)
        fresh = keras_tuner.oracles.BayesianOptimizationOracle(
            objective=self.objective,
            max_trials=self.max_trials,
            num_initial_points=self.num_initial_points,
            seed=self.seed + len(self.trials),
            hyperparameters=self.get_space(),
        )
        fresh.trials, fresh.ongoing_trials = self.trials, self.ongoing_trials
        response = fresh.populate_space(trial_id)
        values = response.get("values") or {}
        for asked in self.get_space().space:
            # keras-tuner makes an integer of the very end of an interval one too many.
            if asked.name in values and hasattr(asked, "max_value"):
                values[asked.name] = min(values[asked.name], asked.max_value)
        return response


ORACLES = {"random": RandomSearch, "hyperband": Hyperband, "bayesian": BayesianOptimization}


def make(strategy, max_trials, epochs, seed, objective):
    """Return the oracle of a strategy, a key of `ORACLES`.

    Arguments are those of `tune`; `max_trials` is `None` for Hyperband, which ends by itself.
    """
    own = {"max_epochs": epochs} if strategy == "hyperband" else {"max_trials": max_trials}
    if strategy == "bayesian":
        # keras-tuner draws three trials at random for each hyperparameter, most of a search.
        own["num_initial_points"] = max(3, max_trials // 3)
    return ORACLES[strategy](
        **own,
        objective=objective,
        seed=seed + 1,  # keras-tuner takes 0 for no seed
        # After three failed trials in a row keras-tuner would end the search:
        # `test_broken_trials_are_recorded_and_the_search_goes_on`.
        max_consecutive_failed_trials=10**9,
    )
