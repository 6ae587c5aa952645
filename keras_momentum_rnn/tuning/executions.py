"""The trials of a search as this process trains them: seeded, watched and recorded."""

import contextlib
import errno
import math
import os
import statistics
import textwrap
import time
from pathlib import Path

import keras
import keras_tuner
from keras_tuner.errors import FailedTrialError, FatalError, FatalValueError

from keras_momentum_rnn.atomic_files import read_results, write_json
from keras_momentum_rnn.tuning.roles import Ended

# A trial whose process was killed this often fails, or it might end every process that resumes:
# `test_a_trial_that_kills_its_process_every_time_is_given_up`.
ATTEMPTS = 3
# What a trial's folder says of a trial that did not begin.
EMPTY = {"attempts": 0, "executions": [], "error": None}
# What the record has of each execution.
OF_EXECUTION = {"seed", "score", "epochs", "parameters", "seconds"}
# What libraries write into errors of their own where the disk is at fault.
DISK = [os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EIO)]


class MachineError(FatalError, OSError):
    """An error that another choice of hyperparameters would have met, too: the search stops."""


class Tuner(keras_tuner.Hyperband):
    """keras-tuner's tuner, which tells the machine's errors from the trial's.

    keras-tuner's tuner for Hyperband trains the trials of any oracle. Where a Hyperband oracle
    says so, it goes on from the weights of an earlier trial.
    """

    def __init__(self, oracle, hypermodel, directory, executions):
        keras_tuner.Tuner.__init__(
            self,
            oracle,
            hypermodel,
            directory=directory,
            project_name="trials",
            executions_per_trial=executions,
        )

    def save(self):
        """Write nothing: the next tuner would resume from it, and search.json has it all."""

    def on_trial_begin(self, trial):
        super().on_trial_begin(trial)
        self.hypermodel.begin(Path(self.get_trial_dir(trial.trial_id)))

    def run_trial(self, trial, *args, **fit):
        try:
            if self.hypermodel.record["attempts"] > ATTEMPTS:
                raise FailedTrialError(f"The process was killed {ATTEMPTS} times in it")
            return super().run_trial(trial, *args, **fit)
        except FatalError:
            raise
        except Exception as error:
            stop_if_of_machine(error)
            self.hypermodel.record["error"] = one_line(error)
            raise

    def on_trial_end(self, trial):
        self.hypermodel.save()
        super().on_trial_end(trial)
        self.hypermodel.folder = None

    def search(self, *args, **fit):
        try:
            super().search(*args, **fit)
        except Ended:
            raise  # another worker has ended the trial and written its record
        except BaseException:
            self.hypermodel.forgive()
            raise


def stop_if_of_machine(error):
    """Raise a `MachineError` if an error, or what it was raised from, is the machine's.

    keras-tuner would record the trial as failed for good:
    `test_an_error_of_the_machine_stops_the_search_and_costs_no_trial`. A lack of memory is the
    trial's: a smaller model may fit. So is a damaged file, for which h5py raises a plain
    `OSError`.
    """
    cause = error
    while cause is not None:
        of_system = isinstance(cause, OSError) and (cause.errno or type(cause) is not OSError)
        if of_system or any(text in str(cause) for text in DISK):
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
        x: training data. Its shapes build a model that has no `keras.Input`.
    """

    def __init__(self, inner, objective, seed, x=None):
        super().__init__()
        self.make, self.train = inner, super().fit
        if isinstance(inner, keras_tuner.HyperModel):
            self.make, self.train = inner.build, inner.fit
            self.declare_hyperparameters = inner.declare_hyperparameters
        elif not callable(inner):
            raise ValueError(
                "`hypermodel` must be a keras_tuner.HyperModel, or a function of `hp` that "
                f"returns a compiled model. Received: hypermodel={inner!r}"
            )
        self.policy = keras.config.dtype_policy()  # keras-tuner resets it before each model
        self.objective = objective
        self.seed = seed
        self.inputs = inputs_like(x)
        self.folder = None
        self.record = EMPTY

    def begin(self, folder):
        """Begin a trial and note it, so that a kill leaves the note."""
        attempts = read_record(folder)["attempts"] + 1
        self.folder = folder
        self.record = {**EMPTY, "attempts": attempts, "executions": []}
        self.save()

    def save(self):
        write_json(self.folder / "record.json", self.record)

    def forgive(self):
        """Forget the attempt: an error ended it, and no kill."""
        if self.folder is not None:
            # Not written anew, for which a full disk has no room.
            (self.folder / "record.json").unlink(missing_ok=True)

    def build(self, hp):
        keras.config.set_dtype_policy(self.policy)
        keras.utils.set_random_seed(self.seed + len(self.record["executions"]))
        model = self.make(hp)
        if not isinstance(model, keras.Model):
            raise ValueError(
                "`hypermodel` must build a compiled keras.Model. "
                f"Received a hypermodel that builds: {model!r}"
            )
        if not model.built and self.inputs is not None:
            # Weights can be loaded into it then: `test_a_model_that_is_built_by_its_data`.
            with contextlib.suppress(Exception):  # `fit` builds it, or says why it cannot
                model(self.inputs)
        if model.built and getattr(model, "optimizer", None) is not None:
            # So that a checkpoint's moments find their place:
            # `test_the_best_model_loads_and_has_its_score`.
            model.optimizer.build(model.trainable_variables)
        return model

    def fit(self, hp, model, *args, callbacks=(), **kwargs):
        start = time.perf_counter()
        callbacks = [keras.callbacks.TerminateOnNaN(), *callbacks]
        with freed_graphs():
            result = self.train(hp, model, *args, callbacks=callbacks, **kwargs)
        if result is None or (isinstance(result, dict) and self.objective.name not in result):
            return result  # keras-tuner stops the search, and says why
        score, epochs = outcome(result, self.objective)
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


def inputs_like(x):
    """Return symbolic inputs with the shapes of arrays, None of other data."""
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        return keras.tree.map_structure(
            lambda array: keras.KerasTensor((None, *array.shape[1:]), array.dtype), x
        )
    return None


def read_record(folder):
    """Return the record of a trial, an empty one if it is missing or damaged."""
    try:
        record = {**EMPTY, **read_results(folder / "record.json", {})}
        whole = record["attempts"] >= 0 and all(
            isinstance(execution, dict) and execution.keys() >= OF_EXECUTION
            for execution in record["executions"]
        )
    except (TypeError, ValueError):
        return EMPTY
    return record if whole else EMPTY


def outcome(result, objective):
    """Return the objective of an execution at its best epoch, and the number of epochs.

    Raises:
        FatalValueError: if not every epoch has the objective, as would be so in all trials.
        FailedTrialError: if it or the loss is NaN or infinite, which keras-tuner would rank:
            `test_a_loss_that_is_no_number_breaks_a_trial_though_its_accuracy_is_one`.
    """
    if isinstance(result, list):  # of several trainings
        return statistics.fmean(outcome(one, objective)[0] for one in result), None
    if not isinstance(result, keras.callbacks.History):
        score = float(result[objective.name] if isinstance(result, dict) else result)
        history, epochs = {objective.name: [score]}, None
    else:
        history, epochs = result.history, len(result.history.get(objective.name, ()))
        if epochs < max(map(len, history.values()), default=1):
            raise FatalValueError(
                f"The objective {objective.name} must be a result of every epoch. "
                f"Received: {sorted(history)}"
            )
    for name in ("loss", "val_loss", objective.name):
        for epoch, value in enumerate(history.get(name, ()), 1):
            if not math.isfinite(value):
                raise FailedTrialError(f"`{name}` became {value} in epoch {epoch}")
    best = max if objective.direction == "max" else min
    return best(history[objective.name]), epochs


@contextlib.contextmanager
def freed_graphs():
    """Let TensorFlow free the graph of a training that happens inside.

    There Keras's optimizers sum the gradients over the replicas, by an operation with a
    gradient of its own, even where there is one replica. TensorFlow keeps such gradients, and
    with each the graph that it is in, for ever: about 10 MB for each small LSTM. A sum over one
    is that one: `test_models_and_graphs_of_earlier_trials_are_freed`.
    """
    if keras.config.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    original = tf.distribute.ReplicaContext.all_reduce

    def all_reduce(self, reduce_op, value, options=None):
        if tf.distribute.has_strategy():
            return original(self, reduce_op, value, options)
        return value

    tf.distribute.ReplicaContext.all_reduce = all_reduce
    try:
        yield
    finally:
        tf.distribute.ReplicaContext.all_reduce = original
