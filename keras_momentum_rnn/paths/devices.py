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
        gpu = backend == "torch" and keras.ops.zeros(()).device.type == "cuda"
    return "gpu" if gpu else "cpu"


def computes_on_host():
    """Return whether arrays are in the memory of the CPU: not on a GPU, a TPU or another."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        return jax.default_backend() == "cpu"
    if backend == "tensorflow":
        import tensorflow as tf

        return all(device.device_type == "CPU" for device in tf.config.list_physical_devices())
    return backend != "torch" or keras.ops.zeros(()).device.type == "cpu"
