"""What the modules of the package need beside Keras: declared, and not tried out."""

import os
from importlib.util import find_spec

import keras
import pytest

from keras_momentum_rnn import requirements

BACKENDS = ("tensorflow", "jax", "torch")
# The parts of the package that import more than Keras, and what they import.
PARTS = {"native": ("numba", "llvmlite"), "tuning": tuple(requirements.TUNING)}


def backend_of(module):
    """Return the backend that a module of the package needs: its name begins with it."""
    first = module.rpartition(".")[2].partition("_")[0]
    return first if first in BACKENDS else None


def part_of(module):
    """Return the part of the package that a module belongs to, if it needs more than Keras."""
    return next((part for part in module.split(".") if part in PARTS), None)


def missing(module):
    """Return why a module of the package cannot be imported here, or None."""
    backend, part = backend_of(module), part_of(module)
    if backend not in (None, keras.config.backend()):
        return f"{module} is for {backend}"
    lacking = [name for name in PARTS.get(part, ()) if not find_spec(name)]
    return f"{module} needs {', '.join(lacking)}" if lacking else None


def marked(modules):
    """Return the modules as parameters of a test that skips those that are not for here."""
    return [
        pytest.param(name, marks=pytest.mark.skipif(bool(why), reason=why or ""))
        for name, why in ((module, missing(module)) for module in modules)
    ]


prepared_data = pytest.mark.skipif(
    "KERAS_MOMENTUM_RNN_TFDS" not in os.environ
    or not (find_spec("tensorflow") and find_spec("tensorflow_datasets")),
    reason="needs TensorFlow Datasets, and their folder in KERAS_MOMENTUM_RNN_TFDS",
)
