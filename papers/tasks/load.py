"""The tasks by name."""

import inspect
import numbers
import os
from typing import Any

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
    "timit": speech.timit,
    "words": text.words,
    "characters": text.characters,
    "archive": archive.archive,
}


def load(task: str | None = None, /, **options: Any) -> Task:
    """Return a task: its data, loss, score, read-out and chance.

    Args:
        task: `"digits"`, `"mnist"`, `"pmnist"`, `"adding"`, `"multiplication"`, `"copying"`,
            `"memory5"`, `"memory20"`, `"speech"`, `"timit"`, `"words"` or `"characters"`, of
            the papers; `"archive"`, a set of the UCR and UEA archives. May also be given as
            `name=...`, except for the archive, which has an option of that name.
        **options: those of the task: `help(tasks.TASKS[task])` tells them.

    Returns:
        A `Task`. The same options give the same data, in every process.

    Raises:
        ValueError: for an unknown task or option, or a value out of its range.
        FileNotFoundError: for a directory or file that does not exist.
        ImportError: if a library is missing that reads the data, with what to install.

    Example:

    >>> from papers import tasks
    >>> task = tasks.load("adding", variant="mcrm", samples=1000)
    >>> task.input_shape, task.train.x.shape, task.test.y.shape
    ((200, 2), (1000, 200, 2), (1000, 1))
    >>> task.metric, round(task.chance["loss"], 4), task.chance_means
    ('loss', 0.1667, 'the mean of the targets, whatever the sequence')
    """
    name = options.pop("name", None) if task is None else task
    if name not in TASKS:
        raise ValueError(f"`name` must be one of {list(TASKS)}. Received: name={name!r}")
    known = inspect.signature(TASKS[name]).parameters
    if missing := [n for n, p in known.items() if p.default is p.empty and n not in options]:
        raise ValueError(f"{name} needs the option {missing[0]!r}")
    if unknown := sorted({*options} - {*known}):
        raise ValueError(
            f"The options of {name} are {list(known)}. Received: "
            f"{unknown[0]}={options[unknown[0]]!r}"
        )
    resolved = {n: options.get(n, parameter.default) for n, parameter in known.items()}
    seed = resolved.get("seed", 0)
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"`seed` must be an integer of at least 0. Received: {seed=}")
    shown = {n: os.fspath(v) if isinstance(v, os.PathLike) else v for n, v in resolved.items()}
    return Task(name=name, options=shown, **TASKS[name](**resolved))
