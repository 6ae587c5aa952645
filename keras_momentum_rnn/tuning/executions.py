"""The hypermodel as a search runs it: seeded, watched and recorded."""

import math
import time

import keras
import keras_tuner
from keras_tuner.errors import FailedTrialError

from keras_momentum_rnn.tuning.memory import freed_graphs
from keras_momentum_rnn.writing import read_json, write_json

# A trial that ended its process as often as this is taken for what ends it.
ATTEMPTS = 3


class Executions(keras_tuner.HyperModel):
    """A hypermodel, each execution of whose trials has a seed of its own and a record.

    All trials share the seeds, so that they differ by their numbers alone.

    Args:
        inner: `keras_tuner.HyperModel`, or a function of `hp` that returns a model.
        objective: `keras_tuner.Objective`.
        seed: non-negative integer, that of the first execution.
    """

    def __init__(self, inner, objective, seed):
        super().__init__()
        self.inner = inner
        self.objective = objective
        self.seed = seed
        self.path = None
        self.record = {"executions": []}

    def begin(self, folder):
        """Begin a trial, and note so: a kill leaves the note."""
        self.path = f"{folder}/record.json"
        attempts = read_json(self.path, {}).get("attempts", 0) + 1
        self.record = {"attempts": attempts, "executions": [], "error": None}
        write_json(self.path, self.record)

    def end(self, error):
        self.record["error"] = error
        write_json(self.path, self.record)

    def forgive(self):
        """Do not count the attempt: it was the user who ended it."""
        if self.path is not None:
            self.record["attempts"] -= 1
            write_json(self.path, self.record)

    def check_attempts(self):
        attempts = self.record["attempts"]
        if attempts > ATTEMPTS:
            raise FailedTrialError(f"The process was killed {ATTEMPTS} times in this trial")

    def build(self, hp):
        keras.utils.set_random_seed(self.seed + len(self.record["executions"]))
        inner = self.inner
        model = inner.build(hp) if isinstance(inner, keras_tuner.HyperModel) else inner(hp)
        if model.built and getattr(model, "optimizer", None) is not None:
            # So that a checkpoint's moments find their place.
            model.optimizer.build(model.trainable_variables)
        return model

    def fit(self, hp, model, *args, callbacks=(), **kwargs):
        start = time.perf_counter()
        # First, so that no weights of a broken model are saved.
        callbacks = [FiniteLoss(), *callbacks]
        with freed_graphs():
            if isinstance(self.inner, keras_tuner.HyperModel):
                result = self.inner.fit(hp, model, *args, callbacks=callbacks, **kwargs)
            else:
                result = model.fit(*args, callbacks=callbacks, **kwargs)
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
        write_json(self.path, self.record)
        return result


def score_of(result, objective):
    """Return the objective of an execution, of its best epoch, and the number of epochs."""
    if isinstance(result, keras.callbacks.History):
        values = result.history[objective.name]
        best = max if objective.direction == "max" else min
        # A NaN is neither more nor less than anything.
        return (best(values) if all(map(math.isfinite, values)) else math.nan), len(values)
    return float(result[objective.name] if isinstance(result, dict) else result), None


class FiniteLoss(keras.callbacks.Callback):
    """Fail the trial where the loss is no number, though its accuracy be one."""

    def on_epoch_end(self, epoch, logs=None):
        for name, value in (logs or {}).items():
            if name in ("loss", "val_loss") and not math.isfinite(value):
                raise FailedTrialError(f"`{name}` became {value} in epoch {epoch + 1}")
