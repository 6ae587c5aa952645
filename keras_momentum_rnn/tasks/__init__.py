"""The papers' tasks: data, scores and read-outs, and the settings that were published."""

from keras_momentum_rnn.tasks.averaging import AveragedSGD
from keras_momentum_rnn.tasks.language_model import REGULARISATION
from keras_momentum_rnn.tasks.load import TASKS, load
from keras_momentum_rnn.tasks.paper_results import Published, published
from keras_momentum_rnn.tasks.recipes import Recipe, recipe
from keras_momentum_rnn.tasks.task import Batches, Generated, Split, Task
from keras_momentum_rnn.tasks.text import Text

__all__ = [
    "AveragedSGD",
    "Batches",
    "Generated",
    "Published",
    "REGULARISATION",
    "Recipe",
    "Split",
    "TASKS",
    "Task",
    "Text",
    "load",
    "published",
    "recipe",
]
