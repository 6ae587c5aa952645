"""How a sequence is run: which path, and the paths. None of them changes a result."""

from keras_momentum_rnn.paths.plan import Plan

__all__ = ["Plan"]
