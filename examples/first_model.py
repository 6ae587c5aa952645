"""A first model: put our layers in the place of `keras.layers.LSTM`.

    python examples/first_model.py

Classifies the 8x8 handwritten digits of scikit-learn, read row by row: 8 steps of 8 pixels.
Validation data choose between the layers; only the chosen one sees the test data.
"""

import argparse

import keras
import numpy as np
from sklearn.datasets import load_digits

from keras_momentum_rnn import MomentumLSTM, RMSPropLSTM

LAYERS = {
    "LSTM": lambda: keras.layers.LSTM(32),
    "MomentumLSTM": lambda: MomentumLSTM(32, momentum=0.6, step_size=0.6),
    "RMSPropLSTM": lambda: RMSPropLSTM(32, step_size=0.6, beta=0.9),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    epochs = parser.parse_args().epochs
    x, y = load_digits(return_X_y=True)
    x = x.reshape(-1, 8, 8).astype("float32") / 16  # (samples, time, features)
    train, validation, test = slice(0, 1200), slice(1200, 1400), slice(1400, None)
    constant = np.bincount(y[test]).max() / len(y[test])
    print(f"The most frequent digit alone is right in {constant:.2f} of the test images.")

    models, scores = {}, {}
    for name, new_layer in LAYERS.items():
        keras.utils.set_random_seed(0)
        models[name] = model = keras.Sequential(
            [keras.Input((8, 8)), new_layer(), keras.layers.Dense(10)]  # logits
        )
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = keras.optimizers.Adam(5e-3, clipnorm=1.0)
        model.compile(optimizer, loss, metrics=["accuracy"])
        model.fit(x[train], y[train], batch_size=64, epochs=epochs, verbose=0)
        scores[name] = model.evaluate(x[validation], y[validation], verbose=0)[1]
        print(f"{name:12} validation accuracy {scores[name]:.2f}")

    best = max(scores, key=scores.get)
    accuracy = models[best].evaluate(x[test], y[test], verbose=0)[1]
    print(f"{best}, the best on validation: test accuracy {accuracy:.2f}")

    models[best].save("digits.keras")
    loaded = keras.models.load_model("digits.keras")
    digits = loaded.predict(x[1400:1405], verbose=0).argmax(axis=-1)
    print(f"digits.keras, loaded again, reads {digits}; the labels are {y[1400:1405]}")


if __name__ == "__main__":
    main()
