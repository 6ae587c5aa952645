"""The trials of a search as this process trains them: seeded, watched and recorded."""

import errno
import json
import math
import os
import textwrap
import time
import warnings
from pathlib import Path

import keras
import keras_tuner
from keras_tuner.errors import FailedTrialError, FatalError

from keras_momentum_rnn.atomic_files import read_sealed, write_sealed
from keras_momentum_rnn.tuning.memory import freed_graphs

# A trial whose process was killed this often fails: it is probably what ends the process.
ATTEMPTS = 3
# What a trial's folder says of a trial that did not begin.
EMPTY = {"attempts": 0, "executions": [], "error": None}
# What libraries write into errors of their own where the disk is at fault.
DISK = [os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EIO)]


class MachineError(FatalError, OSError):
    """An error that another choice of hyperparameters would have met, too: the search stops."""


class Tuner(keras_tuner.Tuner):
    """keras-tuner's tuner, which tells the machine's errors from the trial's.

    `check` is called after each trial: a worker asks whether its chief is still there.
    """

    def check(self):
        pass

    def on_trial_begin(self, trial):
        super().on_trial_begin(trial)
        self.hypermodel.begin(Path(self.get_trial_dir(trial.trial_id)))

    def run_trial(self, trial, *args, **fit):
        try:
            if self.hypermodel.record["attempts"] > ATTEMPTS:
                raise FailedTrialError(f"The process was killed {ATTEMPTS} times in it")
            result = super().run_trial(trial, *args, **fit)
        except FatalError:
            raise
        except Exception as error:
            stop_if_of_machine(error)
            self.hypermodel.record["error"] = one_line(error)
            self.check()
            raise
        self.check()
        return result

    def on_trial_end(self, trial):
        self.hypermodel.save()
        super().on_trial_end(trial)
        self.hypermodel.folder = None

    def search(self, *args, **fit):
        try:
            super().search(*args, **fit)
        except BaseException:
            self.hypermodel.forgive()
            raise


def stop_if_of_machine(error):
    """Raise a `MachineError` if an error, or what it was raised from, is the machine's.

    keras-tuner would record the trial as failed for good:
    `test_an_error_of_the_machine_stops_the_search_and_costs_no_trial`. A lack of memory is the
    trial's: a smaller model may fit.
    """
    cause = error
    while cause is not None:
        if isinstance(cause, OSError) or any(text in str(cause) for text in DISK):
            raise MachineError(
                f"{one_line(cause)}. The trial is not recorded. Mend this, and repeat the call "
                "to resume."
            ) from error
        cause = cause.__cause__


def one_line(error):
    """Return type and message of an error, without the arguments that Keras lists."""
    message = str(error).partition("Arguments received by")[0]
    return f"{type(error).__name__}: {textwrap.shorten(message, 400)}".rstrip(": ")


class Executions(keras_tuner.HyperModel):
    """A hypermodel that seeds and records each execution of its trials.

    All trials share the seeds, so that they differ only in their hyperparameters.

    Args:
        inner: `keras_tuner.HyperModel`, or a function of `hp` that returns a model.
        objective: `keras_tuner.Objective`.
        seed: non-negative integer, that of the first execution.
    """

    def __init__(self, inner, objective, seed):
        super().__init__()
        is_hypermodel = isinstance(inner, keras_tuner.HyperModel)
        if not is_hypermodel and not callable(inner):
            raise ValueError(
                "`hypermodel` must be a keras_tuner.HyperModel, or a function of `hp` that "
                f"returns a compiled model. Received: hypermodel={inner!r}"
            )
        self.make = inner.build if is_hypermodel else inner
        self.train = inner.fit if is_hypermodel else super().fit
        self.objective = objective
        self.seed = seed
        self.folder = None
        self.record = EMPTY

    def begin(self, folder):
        """Begin a trial and note it, so that a kill leaves the note."""
        attempts = read_record(folder)["attempts"] + 1
        self.folder = folder
        self.record = {**EMPTY, "attempts": attempts, "executions": []}
        self.save()

    def save(self):
        write_sealed(self.folder / "record.json", self.record)

    def forgive(self):
        """Forget the attempt: an error ended it, and no kill."""
        if self.folder is not None:
            # Not written anew, for which a full disk has no room.
            (self.folder / "record.json").unlink(missing_ok=True)

    def build(self, hp):
        keras.utils.set_random_seed(self.seed + len(self.record["executions"]))
        model = self.make(hp)
        if not isinstance(model, keras.Model):
            raise ValueError(
                "`hypermodel` must build a compiled keras.Model. "
                f"Received a hypermodel that builds: {model!r}"
            )
        if model.built and getattr(model, "optimizer", None) is not None:
            # So that a checkpoint's moments find their place:
            # `test_the_best_model_loads_and_has_its_score`.
            model.optimizer.build(model.trainable_variables)
        return model

    def fit(self, hp, model, *args, callbacks=(), **kwargs):
        start = time.perf_counter()
        # First, so that no weights of a diverged model are saved.
        callbacks = [FiniteLoss(), *callbacks]
        if "tuner/epochs" in hp.values:
            model, kwargs["initial_epoch"] = self.continued(hp, model)
            kwargs["epochs"] = hp.values["tuner/epochs"]
        with freed_graphs():
            result = self.train(hp, model, *args, callbacks=callbacks, **kwargs)
        score, epochs = score_of(result, self.objective)
        if not math.isfinite(score):
            raise FailedTrialError(f"`{self.objective.name}` is {score}")
        execution = {
            "seed": self.seed + len(self.record["executions"]),
            "score": score,
            "epochs": epochs,
            "parameters": model.count_params(),
            "seconds": time.perf_counter() - start,
        }
        self.record["executions"].append(execution)
        self.save()
        return result

    def continued(self, hp, model):
        """Return the model of one of Hyperband's trials, and the epoch that it goes on from."""
        if "tuner/trial_id" not in hp.values:
            return model, 0
        earlier = self.folder.with_name(f"trial_{hp.values['tuner/trial_id']}")
        try:
            if not model.built:
                model.build_from_config(json.loads((earlier / "build_config.json").read_text()))
            model.load_weights(earlier / "checkpoint.weights.h5")
        except Exception as error:  # a damaged file raises what it likes
            warnings.warn(
                f"{earlier} has no complete weights, so {self.folder.name}, which was to go "
                f"on from them, starts at its beginning. {one_line(error)}",
                stacklevel=2,
            )
            return self.build(hp), 0
        return model, hp.values["tuner/initial_epoch"]


def read_record(folder):
    """Return the record of a trial, an empty one if it is missing or damaged."""
    try:
        return read_sealed(folder / "record.json") or EMPTY
    except ValueError:
        return EMPTY


def score_of(result, objective):
    """Return the objective of an execution, of its best epoch, and the number of epochs."""
    if isinstance(result, keras.callbacks.History):
        values = result.history[objective.name]
        best = max if objective.direction == "max" else min
        # Every comparison with NaN is false.
        return (best(values) if all(map(math.isfinite, values)) else math.nan), len(values)
    return float(result[objective.name] if isinstance(result, dict) else result), None


class FiniteLoss(keras.callbacks.Callback):
    """Fail the trial where the loss is NaN or infinite, even if the accuracy is not.

    keras-tuner would rank it:
    `test_a_loss_that_is_no_number_breaks_a_trial_though_its_accuracy_is_one`.
    """

    def on_epoch_end(self, epoch, logs=None):
        for name, value in (logs or {}).items():
            if name in ("loss", "val_loss") and not math.isfinite(value):
                raise FailedTrialError(f"`{name}` became {value} in epoch {epoch + 1}")
