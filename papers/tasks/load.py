"""The tasks by name."""

import inspect
import os
from typing import Any

from keras_momentum_rnn.checks import checked_choice, checked_count
from papers.tasks import addition, archive, copying, pixels, speech, text
from papers.tasks.task import Task

TASKS = {
    "digits": pixels.digits,
    "mnist": pixels.mnist,
    "pmnist": pixels.pmnist,
    "adding": addition.adding,
    "multiplication": addition.multiplication,
    "copying": copying.copying,
    "memory5": copying.memory5,
    "memory20": copying.memory20,
    "speech": speech.speech,
    "characters": text.characters,
    "archive": archive.archive,
}


def load(task: str, /, **options: Any) -> Task:
    """Return a task: its data, loss, score, read-out and chance.

    Args:
        task: one of `TASKS`: those of the papers, and `"archive"`, a set of the UCR and UEA
            archives.
        **options: those of the task: `help(tasks.TASKS[task])` tells them.

    Returns:
        A `Task`. The same options give the same data, in every process.

    Raises:
        ValueError: for an unknown task or option, or a value out of its range.
        FileNotFoundError: for a directory or file that does not exist.
        ImportError: if a library is missing that reads the data.

    Example:

    >>> from papers import tasks
    >>> task = tasks.load("adding", variant="mcrm", samples=1000)
    >>> task.input_shape, task.train.x.shape, task.test.y.shape
    ((200, 2), (1000, 200, 2), (1000, 1))
    >>> task.metric, round(task.chance["loss"], 4), task.chance_means
    ('loss', 0.1667, 'the mean of the targets, whatever the sequence')
    """
    checked_choice("task", task, TASKS)
    known = inspect.signature(TASKS[task]).parameters
    if missing := [n for n, p in known.items() if p.default is p.empty and n not in options]:
        raise ValueError(f"{task} needs the option {missing[0]!r}")
    if unknown := sorted({*options} - {*known}):
        raise ValueError(
            f"The options of {task} are {list(known)}. Received: "
            f"{unknown[0]}={options[unknown[0]]!r}"
        )
    resolved = {n: options.get(n, parameter.default) for n, parameter in known.items()}
    checked_count("seed", resolved.get("seed", 0), at_least=0)
    shown = {n: os.fspath(v) if isinstance(v, os.PathLike) else v for n, v in resolved.items()}
    return Task(name=task, options=shown, **TASKS[task](**resolved))
