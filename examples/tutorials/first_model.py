# %% [markdown]
# # A first model
#
# We classify handwritten digits, read row by row, with Keras's LSTM as the baseline. You
# need one backend and scikit-learn, as [installed](install.md). Everything here runs in
# seconds.
#
# ## 1. The data
#
# scikit-learn contains 1,797 images of 8x8 pixels. A recurrent layer reads `(samples, time,
# features)`: here 8 time steps, one for each row, of 8 pixels.

# %%
import keras
import numpy as np
from sklearn.datasets import load_digits

x, y = load_digits(return_X_y=True)
x = x.reshape(-1, 8, 8).astype("float32") / 16
train, validation, test = slice(0, 1200), slice(1200, 1400), slice(1400, None)
print(x[train].shape, y[train].shape)

# %% [markdown]
# ## 2. What does a constant output score?
#
# A model that always gives the most frequent digit has this accuracy. A useful model
# must be clearly better.

# %%
print(round(np.bincount(y[test]).max() / len(y[test]), 2))

# %% [markdown]
# ## 3. Train
#
# Put our layers in the place of `keras.layers.LSTM`. Model, optimizer and number of updates
# stay the same.


# %%
def trained(layer, seed=0, epochs=8):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.Input((8, 8)),
            layer,
            keras.layers.Dense(10),  # logits
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(5e-3, clipnorm=1.0)
    model.compile(optimizer, loss, metrics=["accuracy"])
    model.fit(
        x[train],
        y[train],
        batch_size=64,
        epochs=epochs,
        validation_data=(x[validation], y[validation]),
        verbose=0,
    )
    return model


def accuracy(model, part):
    return model.evaluate(x[part], y[part], verbose=0)[1]


# %% within 0.1
from keras_momentum_rnn import MomentumLSTM, RMSPropLSTM

models = {
    "LSTM": trained(keras.layers.LSTM(32)),
    "MomentumLSTM": trained(MomentumLSTM(32, momentum=0.6, step_size=0.6)),
    "RMSPropLSTM": trained(RMSPropLSTM(32, step_size=0.6, beta=0.9)),
}
for name, model in models.items():
    print(f"{name:12} validation {accuracy(model, validation):.2f}")

# %% [markdown]
# One seed says little: the order of close scores changes with the seed. Choose on
# validation data, over several seeds. [`compare`](../guides/compare.md) does that for you.
#
# ## 4. Test once
#
# Look at the test data only for the model that you have chosen.

# %% within 0.1
best = max(models, key=lambda name: accuracy(models[name], validation))
print(f"test {accuracy(models[best], test):.2f}")

# %% [markdown]
# ## 5. Save, load, predict
#
# Any program that imports `keras_momentum_rnn` can load a saved file, on any backend.

# %%
models["RMSPropLSTM"].save("digits.keras")
loaded = keras.models.load_model("digits.keras")
same = np.allclose(
    loaded.predict(x[test], verbose=0),
    models["RMSPropLSTM"].predict(x[test], verbose=0),
    atol=1e-5,
)
print(same, loaded.predict(x[1400:1405], verbose=0).shape)

# %% [markdown]
# ## Where next?
#
# - [Your own data](../start/your_data.md): shapes, scaling, padding, baselines.
# - [Which layer?](../choose/which_layer.md)
# - [Search for layer and hyperparameters](../guides/tune.md)
# - [From a trained LSTM to a file](../guides/from_lstm_to_file.md)
