"""The papers' tasks: data, scores and read-outs, and the settings that were published."""

from papers.tasks.averaging import AveragedSGD
from papers.tasks.language_model import REGULARISATION
from papers.tasks.load import TASKS, load
from papers.tasks.paper_results import Published, published
from papers.tasks.recipes import Recipe, recipe
from papers.tasks.task import Batches, Generated, Split, Task
from papers.tasks.text import Text

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
