"""The papers' tasks: data, scores and read-outs, and the settings that were published."""

from keras_momentum_rnn.tasks.load import TASKS, load
from keras_momentum_rnn.tasks.recipes import Recipe, recipe
from keras_momentum_rnn.tasks.task import Batches, Generated, Split, Task

__all__ = [
    "Batches",
    "Generated",
    "Recipe",
    "Split",
    "TASKS",
    "Task",
    "load",
    "recipe",
]
