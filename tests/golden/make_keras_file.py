"""Write the `.keras` file of a family, with its predictions: once for each release.

python tests/golden/make_keras_file.py lstm-0.1.0 MomentumLSTM NAGLSTM ...
"""

import sys
from pathlib import Path

import keras
import numpy as np

import keras_momentum_rnn

name, *classes = sys.argv[1:]
rng = np.random.default_rng(0)
layers = [getattr(keras_momentum_rnn, c)(3, return_sequences=True) for c in classes]
model = keras.Sequential([keras.Input((None, 2)), *layers, keras.layers.Dense(2)])
for weight in model.trainable_weights:
    weight.assign(0.5 * rng.standard_normal(weight.shape))
x = rng.standard_normal((2, 5, 2)).astype("float32")
path = Path(__file__).parent / f"{name}.keras"
model.save(path)
np.savez(path.with_suffix(".predictions.npz"), x=x, y=model.predict(x, verbose=0))
