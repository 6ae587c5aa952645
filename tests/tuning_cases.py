"""A search that costs next to nothing: its hypermodel trains no model."""

from unittest import mock

import keras
import numpy as np
import pytest

pytest.importorskip("keras_tuner", reason="keras_momentum_rnn.tuning needs it")
pytest.importorskip("matplotlib", reason="keras_momentum_rnn.tuning needs it")
pytest.importorskip("rich", reason="keras_momentum_rnn.tuning needs it")
pytest.importorskip("scipy", reason="keras_momentum_rnn.tuning needs it")
pytest.importorskip("sklearn", reason="keras_momentum_rnn.tuning needs it")

import keras_tuner

from keras_momentum_rnn.tuning import plots, tune


class Scripted(keras_tuner.HyperModel):
    """Its score is made of its numbers; in named trials something happens first.

    Args:
        events: dict from the count of trainings, 0 the first, to a function that is called.
    """

    objective = keras_tuner.Objective("score", "max")

    def __init__(self, events=None, high=1.0):
        super().__init__()
        self.events = events or {}
        self.high = high
        self.trained = 0

    def build(self, hp):
        hp.Choice("layer", ["LSTM", "MomentumLSTM"])
        with hp.conditional_scope("layer", ["MomentumLSTM"]):
            hp.Float("momentum", 0.0, self.high)
        hp.Float("step_size", 0.01, 2.0, sampling="log")
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
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
    return values["step_size"] + values.get("momentum", 0.0)


def search(directory, events=None, hypermodel=None, **options):
    options = {"max_trials": 4, "verbose": 0, **options}
    with mock.patch.multiple(plots, plot_heat_map=nothing, plot_parallel_coordinates=nothing):
        return tune(hypermodel or Scripted(events), directory=directory, **options)


def nothing(results):
    """Draw no picture: a picture takes longer than a search."""


def numbers(results):
    """Return what was tried, in order."""
    return [(row.trial, row.values) for row in results.rows]


def images():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 3, 2)).astype("float32")
    return x, (x.sum(axis=(1, 2)) > 0).astype("int32")
