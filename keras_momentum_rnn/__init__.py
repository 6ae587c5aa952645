"""LSTM, GRU and RNN layers for Keras 3 with momentum, RMSProp and Adam on their inputs."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from keras_momentum_rnn import cells, initializers, layers, rules
from keras_momentum_rnn.cells import *  # noqa: F403
from keras_momentum_rnn.layers import *  # noqa: F403

if TYPE_CHECKING:
    from keras_momentum_rnn import convert, diagnostics, optimizers, streaming

__version__ = "0.1.0"
__all__ = [
    "cells",
    "initializers",
    "layers",
    "optimizers",
    "rules",
    *cells.__all__,
    *layers.__all__,
]


def __getattr__(name: str) -> ModuleType:
    """Import a part of the package that most programs do not need, when it is asked for."""
    if name in ("convert", "diagnostics", "optimizers", "streaming", "tuning"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
