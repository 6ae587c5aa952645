"""The device that calls run on, and how old JAX is."""

import sys

import keras


def device_type():
    """Return where arrays are, in the backend's own word: "cpu", "gpu", "cuda", "tpu", ..."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        return jax.default_backend()
    if backend == "tensorflow":
        import tensorflow as tf

        types = {device.device_type.lower() for device in tf.config.list_physical_devices()}
        return "gpu" if "gpu" in types else min(types - {"cpu"}, default="cpu")
    return keras.ops.zeros(()).device.type if backend == "torch" else "cpu"


def current_device():
    """Return "cpu" or "gpu"."""
    return "gpu" if device_type() in ("gpu", "cuda") else "cpu"


def computes_on_host():
    """Return whether arrays are in the memory of the CPU: not on a GPU, a TPU or another."""
    return device_type() == "cpu"


def jax_is_older(*version):
    """Return whether JAX is imported, and older than a version."""
    jax = sys.modules.get("jax")
    return jax is not None and jax.__version_info__ < version
