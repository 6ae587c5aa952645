"""What the benchmarks share: models to train, ours and others', their time, and its record.

A model is named by its label: a layer of ours ("AdamLSTM"), or of Keras ("keras.layers.LSTM").
"""

import os
import sys
import time
from pathlib import Path

import keras
import numpy as np

import keras_momentum_rnn as kmr
from keras_momentum_rnn.atomic_files import read_results, write_json
from keras_momentum_rnn.paths.native.runtime import SWITCH

RESULTS = Path(__file__).parent / "results"
# Beside other work a heavier layer looks better than it is.
MOST_LOAD = 0.5

SIZES = ("batch", "time", "features", "units")
# At equal parameters where a cell has more of them: what stands beside MCRM and NestedLSTM.
EQUAL_PARAMETERS = {"MCRM": 13, "NestedLSTM": 16}


class Keras:
    """A model of one layer, of ours or of Keras, trained by Keras."""

    def __init__(self, layer, x, y):
        self.model = keras.Sequential([keras.Input(x.shape[1:]), layer, keras.layers.Dense(1)])
        self.model.compile("sgd", "mse")
        self.x, self.y = x, y

    def train(self):
        self.model.train_on_batch(self.x, self.y)

    def predict(self):
        self.model.predict_on_batch(self.x)

    def call(self):
        """Call the layer alone, eagerly."""
        self.model.layers[0](keras.ops.convert_to_tensor(self.x))


def contestant(label, case):
    """Return what bears this name, ready to train."""
    batch, steps, features, units = case
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, steps, features)).astype("float32")
    y = rng.standard_normal((batch, 1)).astype("float32")
    if label.startswith("keras.layers."):
        return Keras(getattr(keras.layers, label.rpartition(".")[2])(units), x, y)
    return Keras(getattr(kmr, label)(units_of(label, case)), x, y)


def plain_layer_of(layer):
    """Return the name of the plain layer that a layer is beside."""
    kinds = {"LSTM": "LSTM", "MCRM": "LSTM", "GRU": "GRU"}
    return next((kind for end, kind in kinds.items() if layer.endswith(end)), "SimpleRNN")


def units_of(name, case):
    """Return a layer's units: fewer where that makes its parameters those of the LSTM."""
    features, units = case[2:]
    if name not in EQUAL_PARAMETERS:
        return units
    # An LSTM has 4 u (u + d) weights, a nested cell a u^2 + 4 u d.
    a, b, total = EQUAL_PARAMETERS[name], 4 * features, 4 * units * (units + features)
    return round((-b + (b * b + 4 * a * total) ** 0.5) / (2 * a))


def parsed(parser, load):
    """Return the options of a program that needs an idle machine, or end it.

    Args:
        parser: an `ArgumentParser`.
        load: the load average before a backend began, which is work, too.
    """
    parser.add_argument("--busy", action="store_true", help="measure beside other work")
    options = parser.parse_args()
    if load[0] > MOST_LOAD and not options.busy:
        sys.exit(f"The load average is {load[0]:.2f}, above {MOST_LOAD}: wait, or pass --busy")
    return options


def record(file, row, *keys):
    """Write a row into a file of results, in place of the one that had its keys."""
    results = read_results(RESULTS / file, {})
    *outer, last = keys
    place = results
    for key in outer:
        place = place.setdefault(key, {})
    place[last] = row
    write_json(RESULTS / file, results)


def with_switch(native, function):
    """Call a function with the native kernel, or without."""
    os.environ[SWITCH] = "1" if native else "0"
    function()


def timed(calls, rounds, warm=True):
    """Return the seconds of each call in each round, `(rounds, calls)`.

    If `warm`, each is called once before, not timed: the idle threads of another layer hold
    cores for milliseconds, and a user's program runs one layer again and again.
    """
    seconds = np.zeros((rounds, len(calls)))
    for i in range(rounds):
        for j, call in enumerate(calls):
            if warm:
                call()
            start = time.perf_counter()
            call()
            seconds[i, j] = time.perf_counter() - start
    return seconds


def ratio(seconds, baseline):
    """Median and quartiles of a ratio, round by round."""
    low, middle, high = np.percentile(seconds / baseline, [25, 50, 75])
    return {"median": round(middle, 3), "quartiles": [round(low, 3), round(high, 3)]}
