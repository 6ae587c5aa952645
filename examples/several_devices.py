"""Several devices: divide each batch over all GPUs, or over processors that JAX pretends.

    KERAS_BACKEND=jax python examples/several_devices.py
    XLA_FLAGS=--xla_force_host_platform_device_count=2 KERAS_BACKEND=jax \
        python examples/several_devices.py      # two devices on one CPU, to try it

On JAX, `keras.distribution.DataParallel` is set once, before the model is made. On TensorFlow,
the model is made in the scope of a `tf.distribute.MirroredStrategy`. On PyTorch, Keras 3.15
has no such distribution: this example says so and ends.
"""

import argparse
import contextlib

import keras
import numpy as np

from keras_momentum_rnn import MomentumLSTM


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    epochs = parser.parse_args().epochs
    scope, count = distributed()

    # Which of two values, far apart, was larger?
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1024, 60, 4)).astype("float32")
    y = (x[:, 10, 0] > x[:, 50, 0]).astype("float32")
    keras.utils.set_random_seed(0)
    with scope:
        model = keras.Sequential(
            [
                keras.Input((60, 4)),
                MomentumLSTM(32),
                keras.layers.Dense(1, activation="sigmoid"),
            ]
        )
        model.compile(keras.optimizers.Adam(5e-3), "binary_crossentropy", metrics=["accuracy"])
    # The number of devices must divide each batch, and the last one of an epoch.
    history = model.fit(x, y, batch_size=64, epochs=epochs, verbose=2).history
    print(f"{count} devices: loss {history['loss'][0]:.4f} to {history['loss'][-1]:.4f}")


def distributed():
    """Return the scope in which to make the model, and how many devices there are."""
    backend = keras.config.backend()
    if backend == "jax":
        devices = keras.distribution.list_devices()
        keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
        return contextlib.nullcontext(), len(devices)
    if backend == "tensorflow":
        import tensorflow as tf

        strategy = tf.distribute.MirroredStrategy()
        return strategy.scope(), strategy.num_replicas_in_sync
    raise SystemExit("Keras has no such distribution on PyTorch: set KERAS_BACKEND to another")


if __name__ == "__main__":
    main()
