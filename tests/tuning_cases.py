"""A search that costs next to nothing: its hypermodel trains no model."""

import gc
import math
from unittest import mock

import keras
import needs
import numpy as np
import pytest

for module in needs.PARTS["tuning"]:
    pytest.importorskip(module, reason="keras_momentum_rnn.tuning needs it")

import keras_tuner  # noqa: E402

from keras_momentum_rnn.tuning import tune  # noqa: E402

# Arguments of a search of each strategy, with trials beyond the first random ones.
STRATEGIES = {
    "random": {"max_trials": 6},
    "bayesian": {"max_trials": 5},
    "hyperband": {"max_trials": None, "epochs": 3},
}


class Scripted(keras_tuner.HyperModel):
    """Its score is made of its numbers; in named trials something happens first.

    Args:
        events: dict from the count of trainings, 0 the first, to a function that is called.
        high: float, the largest momentum.
        **dense: arguments of the layer of the model.
    """

    objective = keras_tuner.Objective("score", "max")

    def __init__(self, events=None, high=1.0, **dense):
        super().__init__()
        self.events = events or {}
        self.high = high
        self.dense = dense
        self.trained = 0

    def build(self, hp):
        hp.Choice("layer", ["LSTM", "MomentumLSTM"])
        with hp.conditional_scope("layer", ["MomentumLSTM"]):
            hp.Float("momentum", 0.0, self.high)
        hp.Float("step_size", 0.01, 2.0, sampling="log")
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, **self.dense)])
        model.compile(loss="mse")
        return model

    def fit(self, hp, model, *args, callbacks, **kwargs):
        count, self.trained = self.trained, self.trained + 1
        self.events.get(count, lambda: None)()
        for callback in callbacks:
            callback.set_model(model)
            callback.on_epoch_end(0, {"score": 0.0})  # saves the checkpoint
        return {"score": score_of(hp.values)}


def score_of(values):
    """Return a score with many best places, so that it matters where a search begins."""
    return math.sin(40 * (values["step_size"] + values.get("momentum", 0.0)))


def search(directory, events=None, hypermodel=None, **options):
    options = {"max_trials": 4, "verbose": 0, **options}
    hypermodel = Scripted(events) if hypermodel is None else hypermodel
    # keras-tuner collects garbage before it builds a model, which takes longer than the search.
    with mock.patch.object(gc, "collect"):
        return tune(hypermodel, directory=directory, **options)


def numbers(results):
    """Return what was tried, in order, and what came of it."""
    return [(row.trial, row.values, row.status, row.scores) for row in results.rows]


def images():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 3, 2)).astype("float32")
    return x, (x.sum(axis=(1, 2)) > 0).astype("int32")


def fail(error):
    def event():
        raise error

    return event


def scores(results):
    return [row.score for row in results.rows]
