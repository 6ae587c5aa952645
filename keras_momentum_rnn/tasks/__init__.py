"""The papers' tasks: what their layers were trained with."""

from keras_momentum_rnn.tasks.recipes import Recipe, recipe

__all__ = ["Recipe", "recipe"]
