"""Streaming: predictions after each step of a sound, without a file or a microphone.

    python examples/streaming.py

The sounds are computed: a tone in noise that rises, falls or stays. The model reads spectra of
32 ms, one every 16 ms. It trains on whole sounds. `step_model` turns it into a model of one
step, which gets one spectrum and all states, and gives its answer and the new states.
"""

import argparse
import time

import keras
import numpy as np

from keras_momentum_rnn import MomentumLSTM
from keras_momentum_rnn.streaming import initial_states, step_model

RATE, WINDOW, HOP = 8000, 256, 128  # samples a second, in a spectrum, between two spectra
BINS, FRAMES = WINDOW // 2 + 1, 40
NAMES = ["rises", "falls", "stays"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--sounds", type=int, default=600, help="to train on")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    model = trained(rng, options)

    step = step_model(model)
    states = initial_states(step)
    label = int(rng.integers(3))
    print(f"\nA tone that {NAMES[label]}:")
    slowest = 0.0
    for i, window in enumerate(windows(sound(rng, label))):
        start = time.perf_counter()
        scores, *states = step.predict_on_batch([spectrum(window)[None], *states])
        slowest = max(slowest, time.perf_counter() - start) if i else 0.0
        if i % 3 == 0:
            best = int(np.argmax(scores[0]))
            heard = 1000 * (i * HOP + WINDOW) / RATE
            print(f"{heard:4.0f} ms  {NAMES[best]} {'#' * round(20 * float(scores[0, best]))}")
    print(f"After the first, a step took {1000 * slowest:.1f} ms at most; a hop lasts 16 ms.")

    whole = np.stack([[spectrum(window) for window in windows(sound(rng, 0))]])
    states = initial_states(step)
    for frame in whole[0]:
        scores, *states = step.predict_on_batch([frame[None], *states])
    np.testing.assert_allclose(scores, model.predict(whole, verbose=0), atol=1e-5)
    print("Step by step, the last answer is that of `predict` on the whole sound.")


def trained(rng, options):
    y = rng.integers(3, size=options.sounds)
    x = np.array([[spectrum(window) for window in windows(sound(rng, k))] for k in y])
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((None, BINS)),
            keras.layers.LayerNormalization(),
            MomentumLSTM(32, momentum=0.3, step_size=0.7),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    optimizer = keras.optimizers.Adam(1e-2, clipnorm=1.0)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=32, epochs=options.epochs, validation_split=0.2, verbose=2)
    return model


def sound(rng, label):
    """Return the samples of a tone in noise."""
    start = rng.uniform(1000, 2000)
    change = [1, -1, 0][label] * rng.uniform(400, 900)
    count = (FRAMES - 1) * HOP + WINDOW
    frequency = start + change * np.linspace(0, 1, count)
    phase = 2 * np.pi * np.cumsum(frequency) / RATE
    return np.sin(phase) + 0.3 * rng.normal(size=count)


def windows(samples):
    for start in range(0, len(samples) - WINDOW + 1, HOP):
        yield samples[start : start + WINDOW]


def spectrum(window):
    return np.log(np.abs(np.fft.rfft(np.hanning(WINDOW) * window)) + 1e-2).astype("float32")


if __name__ == "__main__":
    main()
