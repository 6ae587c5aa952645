"""The papers' tasks: data, scores and read-outs, and the settings that were published."""

from papers.tasks.load import TASKS, load
from papers.tasks.paper_results import Published, published
from papers.tasks.recipes import Recipe, recipe
from papers.tasks.task import Batches, Generated, Split, Task
from papers.tasks.text import Text

__all__ = [
    "Batches",
    "Generated",
    "Published",
    "Recipe",
    "Split",
    "TASKS",
    "Task",
    "Text",
    "load",
    "published",
    "recipe",
]
