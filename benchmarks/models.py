"""Time one epoch of models of keras.io, with Keras's own recurrent layers and accelerated.

    KERAS_BACKEND=jax python benchmarks/models.py

The models stand as on keras.io, on random data of the shapes that they have there: 50 updates
of one batch each. Both take turns in one process. Results join benchmarks/results/models.json,
by backend, processor and model:

    keras, accelerated   median milliseconds of an update
    ratio                of the two, round by round: the median and the quartiles
    updates, rounds, load (the load average before and after)

PyTorch's rows have `torch` and `to_torch`, too: the same update of a model with `torch.nn.LSTM`
in place of Keras's loop, as a plain layer of ours takes it where the kernel is switched off.
Above a load average of 0.5 nothing begins, unless --busy says that it may.
"""

import argparse
import os

LOAD = os.getloadavg()  # before a backend begins, which is work too

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402
from measure import parsed, ratio, record, timed, with_switch  # noqa: E402

from keras_momentum_rnn import convert  # noqa: E402
from papers.experiments.results_file import processor  # noqa: E402

UPDATES = 50


def reviews(rng):
    """https://keras.io/examples/nlp/bidirectional_lstm_imdb, batch 32, 200 words."""
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            layers.Embedding(20_000, 128),
            layers.Bidirectional(layers.LSTM(64, return_sequences=True)),
            layers.Bidirectional(layers.LSTM(64)),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy")
    return model, rng.integers(0, 20_000, (32, 200)), rng.integers(0, 2, (32, 1))


def weather(rng):
    """https://keras.io/examples/timeseries/timeseries_weather_forecasting, batch 256."""
    inputs = keras.Input((120, 7))
    outputs = layers.Dense(1)(layers.LSTM(32)(inputs))
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.Adam(0.001), "mse")
    return model, rng.normal(size=(256, 120, 7)), rng.normal(size=(256, 1))


def translation(rng):
    """https://keras.io/examples/nlp/lstm_seq2seq, batch 64, 16 and 59 characters."""
    sources = keras.Input((None, 71))
    _, *states = layers.LSTM(256, return_state=True)(sources)
    targets = keras.Input((None, 93))
    decoder = layers.LSTM(256, return_sequences=True, return_state=True)
    outputs, *_ = decoder(targets, initial_state=states)
    model = keras.Model([sources, targets], layers.Dense(93, activation="softmax")(outputs))
    model.compile("rmsprop", "categorical_crossentropy")
    x = [np.eye(n)[rng.integers(0, n, (64, length))] for n, length in ((71, 16), (93, 59))]
    return model, x, np.eye(93)[rng.integers(0, 93, (64, 59))]


MODELS = {"reviews": reviews, "weather": weather, "translation": translation}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    options = parsed(parser, LOAD)
    for name in options.models:
        row = measured(MODELS[name], options.rounds)
        row |= {"updates": UPDATES, "rounds": options.rounds}
        row |= {"load": [LOAD, os.getloadavg()]}
        print(f"{name:12}", row, flush=True)
        record("models.json", row, keras.config.backend(), processor(), name)


def measured(make, rounds):
    """Return a row of the results."""
    model, x, y = make(np.random.default_rng(0))
    x, y = keras.tree.map_structure(lambda a: np.float32(a) if a.dtype == float else a, (x, y))
    contestants = {"keras": (model, False), "accelerated": (convert.accelerate(model), True)}
    if keras.config.backend() == "torch":
        contestants["torch"] = convert.accelerate(model), False

    def epoch(model, native):
        def train():
            for _ in range(UPDATES):
                model.train_on_batch(x, y)

        return lambda: with_switch(native, train)

    calls = [epoch(*contestant) for contestant in contestants.values()]
    timed(calls, 1, warm=False)
    seconds = dict(zip(contestants, timed(calls, rounds, warm=False).T / UPDATES))
    row = {name: round(1e3 * float(np.median(s)), 2) for name, s in seconds.items()}
    row["ratio"] = ratio(seconds["accelerated"], seconds["keras"])
    if "torch" in seconds:
        row["to_torch"] = ratio(seconds["accelerated"], seconds["torch"])
    return row


if __name__ == "__main__":
    main()
