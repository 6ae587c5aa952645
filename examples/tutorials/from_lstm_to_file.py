# %% [markdown]
# # From a trained LSTM to ours, and to a file
#
# You have a trained model with `keras.layers.LSTM`. On this page we convert it without a
# change in its predictions. Then we continue to train it with momentum, and write a file
# that runs without our package.
#
# ## 1. A trained LSTM

# %% within 0.1
import keras
import numpy as np
from sklearn.datasets import load_digits

x, y = load_digits(return_X_y=True)
x = x.reshape(-1, 8, 8).astype("float32") / 16
keras.utils.set_random_seed(0)
model = keras.Sequential(
    [keras.Input((None, 8)), keras.layers.LSTM(32), keras.layers.Dense(10)]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(5e-3), loss, metrics=["accuracy"])
model.fit(x[:1400], y[:1400], batch_size=64, epochs=4, verbose=0)
print(f"LSTM {model.evaluate(x[1400:], y[1400:], verbose=0)[1]:.2f}")

# %% [markdown]
# ## 2. Convert it
#
# With `momentum=0` and `step_size=1` our layer is the LSTM, so nothing changes.

# %%
from keras_momentum_rnn import MomentumLSTM
from keras_momentum_rnn.convert import from_keras, to_keras

ours = from_keras(model, MomentumLSTM, momentum=0.0, step_size=1.0)
difference = np.abs(ours.predict(x[1400:], verbose=0) - model.predict(x[1400:], verbose=0))
print(difference.max() < 1e-4)

# %% [markdown]
# ## 3. Continue with momentum
#
# Momentum multiplies a constant input by `step_size / (1 - momentum)`, its
# [gain](../explain/gain.md). With momentum 0.3, a step size of 0.7 keeps the gain at 1, so
# that the trained weights still fit. Fine-tune at a smaller learning rate.

# %% within 0.1
ours = from_keras(model, MomentumLSTM, momentum=0.3, step_size=0.7)
ours.compile(keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
print(f"before {ours.evaluate(x[1400:], y[1400:], verbose=0)[1]:.2f}")
ours.fit(x[:1400], y[:1400], batch_size=64, epochs=3, verbose=0)
print(f"after {ours.evaluate(x[1400:], y[1400:], verbose=0)[1]:.2f}")

# %% [markdown]
# Part of the improvement comes from the further updates. To know how much, train the LSTM
# for as many.
#
# ## 4. A model of Keras layers only
#
# The rules of `MomentumLSTM`, `NAGLSTM` and `SRLSTM` are filters of the input. With
# `exact=True`, `to_keras` puts such a filter, made of Keras layers, in front of a plain
# LSTM. The model predicts the same and has none of our layers.

# %%
plain = to_keras(ours, exact=True)
x_test = x[1400:]
difference = np.abs(plain.predict(x_test, verbose=0) - ours.predict(x_test, verbose=0))
print(difference.max() < 1e-4)
print(any(type(layer).__module__.startswith("keras_momentum_rnn") for layer in plain.layers))

# %% [markdown]
# ## 5. A file for another runtime
#
# Call Keras's own `export`; our layers need no preparation. ONNX files run almost
# everywhere. You need the extra `export`, and on JAX also `jax2onnx`.
# [Deploy](../deploy.md) lists formats and backends.

# %% needs onnx, onnxruntime, onnxscript; not on jax
import onnxruntime

ours.export("digits.onnx", format="onnx", verbose=False)
session = onnxruntime.InferenceSession("digits.onnx", providers=["CPUExecutionProvider"])
(name,) = (given.name for given in session.get_inputs())
(logits,) = session.run(None, {name: x_test})
print(logits.shape, np.abs(logits - ours.predict(x_test, verbose=0)).max() < 1e-3)

# %% [markdown]
# ## Where next?
#
# - Serve a stream step by step: [One step at a time](../deploy.md#one-step-at-a-time).
# - [Convert a trained model, and back](../guides/convert.md)
