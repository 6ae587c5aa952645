"""
Title: Recurrent layers with momentum
Author: The maintainers of keras_momentum_rnn
Date created: 2026/11/23
Last modified: 2026/11/23
Description: Put recurrent layers with momentum and RMSProp in the place of LSTM.
Accelerator: None
"""

"""
## Introduction

At every step an LSTM computes a term from its input. `MomentumLSTM` and `RMSPropLSTM` smooth or
rescale this term over time, as momentum and RMSProp do with gradients
([Nguyen et al., 2020](https://arxiv.org/abs/2006.06919)). The rest of the LSTM stays, and so do
its arguments, so you can swap one layer for another.

Here three layers classify the 8x8 handwritten digits of scikit-learn, read row by row: eight
steps of eight pixels. Validation data choose between the layers.

## Setup
"""

import keras
import numpy as np
from sklearn.datasets import load_digits

from keras_momentum_rnn import MomentumLSTM, RMSPropLSTM

"""
## Prepare the data

The arrays have the shape (samples, time, features). Only the chosen layer sees the test data.
"""

x, y = load_digits(return_X_y=True)
x = x.reshape(-1, 8, 8).astype("float32") / 16
train, validation, test = slice(0, 1200), slice(1200, 1400), slice(1400, None)
constant = np.bincount(y[test]).max() / len(y[test])
print(f"The most frequent digit alone is right in {constant:.2f} of the test images.")

"""
## Train the layers

`momentum` and `step_size` are one more number or two to tune.
"""

LAYERS = {
    "LSTM": lambda: keras.layers.LSTM(32),
    "MomentumLSTM": lambda: MomentumLSTM(32, momentum=0.6, step_size=0.6),
    "RMSPropLSTM": lambda: RMSPropLSTM(32, step_size=0.6, beta=0.9),
}

models, scores = {}, {}
for name, new_layer in LAYERS.items():
    keras.utils.set_random_seed(0)
    models[name] = model = keras.Sequential(
        [keras.Input((8, 8)), new_layer(), keras.layers.Dense(10)]  # logits
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(5e-3, clipnorm=1.0), loss, metrics=["accuracy"])
    model.fit(x[train], y[train], batch_size=64, epochs=8, verbose=0)
    scores[name] = model.evaluate(x[validation], y[validation], verbose=0)[1]
    print(f"{name:12} validation accuracy {scores[name]:.2f}")

"""
## Test the best one
"""

best = max(scores, key=scores.get)
accuracy = models[best].evaluate(x[test], y[test], verbose=0)[1]
print(f"{best}, the best on validation: test accuracy {accuracy:.2f}")

"""
## Save and load it

A program that loads the file must import `keras_momentum_rnn` before.
"""

models[best].save("digits.keras")
loaded = keras.models.load_model("digits.keras")
digits = loaded.predict(x[1400:1405], verbose=0).argmax(axis=-1)
print(f"digits.keras, loaded again, reads {digits}; the labels are {y[1400:1405]}")
