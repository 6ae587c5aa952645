"""The derivatives of a backend, for what needs more than its gradients."""

import importlib

import keras


def derivatives():
    """Return the backend's module of derivatives. Backends that only predict have none."""
    return importlib.import_module(
        f"keras_momentum_rnn.optimizers.{keras.config.backend()}_derivatives"
    )
