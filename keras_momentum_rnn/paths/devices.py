"""The device that calls run on."""

import keras


def current_device():
    """Return "cpu" or "gpu"."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        gpu = jax.default_backend() == "gpu"
    elif backend == "tensorflow":
        import tensorflow as tf

        gpu = bool(tf.config.list_physical_devices("GPU"))
    else:
        gpu = keras.ops.zeros(()).device.type == "cuda"
    return "gpu" if gpu else "cpu"
