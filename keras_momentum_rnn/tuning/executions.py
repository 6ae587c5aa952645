"""The hypermodel as a search runs it: seeded, watched and recorded."""

import math
import time

import keras
import keras_tuner
from keras_tuner.errors import FailedTrialError

from keras_momentum_rnn.tuning.memory import freed_graphs
from keras_momentum_rnn.tuning.state import EMPTY, read_record, write_record

# A trial whose process was killed this often fails: it is probably what ends the process.
ATTEMPTS = 3


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
        self.record = dict(EMPTY)

    def begin(self, folder):
        """Begin a trial and note it, so that a kill leaves the note."""
        self.folder = folder
        attempts = read_record(folder)["attempts"] + 1
        self.record = {**EMPTY, "attempts": attempts, "executions": []}
        write_record(folder, self.record)

    def end(self, error):
        self.record["error"] = error
        write_record(self.folder, self.record)

    def forgive(self):
        """Do not count the attempt: it was the user who ended it."""
        if self.folder is not None:
            self.record["attempts"] -= 1
            write_record(self.folder, self.record)

    def build(self, hp):
        if self.record["attempts"] > ATTEMPTS:
            raise FailedTrialError(f"The process was killed {ATTEMPTS} times in this trial")
        keras.utils.set_random_seed(self.seed + len(self.record["executions"]))
        model = self.make(hp)
        if not isinstance(model, keras.Model):
            raise ValueError(
                "`hypermodel` must build a compiled keras.Model. "
                f"Received a hypermodel that builds: {model!r}"
            )
        if model.built and getattr(model, "optimizer", None) is not None:
            # So that a checkpoint's moments find their place.
            model.optimizer.build(model.trainable_variables)
        return model

    def fit(self, hp, model, *args, callbacks=(), **kwargs):
        start = time.perf_counter()
        # First, so that no weights of a diverged model are saved.
        callbacks = [FiniteLoss(), *callbacks]
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
        write_record(self.folder, self.record)
        return result


def score_of(result, objective):
    """Return the objective of an execution, of its best epoch, and the number of epochs."""
    if isinstance(result, keras.callbacks.History):
        values = result.history[objective.name]
        best = max if objective.direction == "max" else min
        # Every comparison with NaN is false.
        return (best(values) if all(map(math.isfinite, values)) else math.nan), len(values)
    return float(result[objective.name] if isinstance(result, dict) else result), None


class FiniteLoss(keras.callbacks.Callback):
    """Fail the trial where the loss is NaN or infinite, even if the accuracy is not."""

    def on_epoch_end(self, epoch, logs=None):
        for name, value in (logs or {}).items():
            if name in ("loss", "val_loss") and not math.isfinite(value):
                raise FailedTrialError(f"`{name}` became {value} in epoch {epoch + 1}")
