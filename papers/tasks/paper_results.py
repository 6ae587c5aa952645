"""The tables of the papers, which are files in `published`, and their results among them.

nguyen2020_training.csv         Table 6, the sizes of appendix A, the clipping of the text
nguyen2020_rules.csv            Tables 7 to 10, what the rules add; without units for all sizes
mohamed2018.csv                 Table 2 and its note; batch size, epochs and their updates, and
                                cuts of the learning rate are those of the code
sutskever2013_autoencoders.csv  Table 1
results.csv                     what they report of each layer; accuracies are shares
"""

import ast
import contextlib
import csv
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "published"


@functools.cache
def table(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table, dicts without empty cells; a stack of layers has a tuple."""
    with open(FOLDER / f"{name}.csv", newline="", encoding="utf-8") as file:
        return [
            {column: value_of(cell) for column, cell in row.items() if cell}
            for row in csv.DictReader(file)
        ]


def value_of(cell):
    """Return the number or tuple that a cell holds, or else its text."""
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(cell)
    return cell


@dataclass(frozen=True)
class Published:
    """A number that a paper reports for a task and a layer.

    Attributes:
        value: float, accuracies as a share.
        units: int, or a tuple for a stack of layers.
        source: paper and table.
        spread: float, its standard deviation over seeds, or None.
        what: what was measured, where it is not the task's score on its test set.
    """

    value: float
    units: int | tuple
    source: str
    spread: float | None = None
    what: str = ""


def published(task: str, layer: str, variant: str | None = None) -> list[Published]:
    """Return the papers' results for a task and a layer, a list of `Published`.

    Args:
        task: name of a task, as `tasks.load` takes it. `"speech"` has those of TIMIT.
        layer: name of a layer.
        variant: the form of the adding and copying tasks, as `tasks.load` takes it; None for
            all of them.

    Example:

    >>> from papers.tasks import published
    >>> for result in published("pmnist", "SRLSTM"):
    ...     print(result.value, result.spread, result.units, result.source)
    0.9382 0.0185 256 Nguyen et al. (2020), Table 1
    0.9365 0.0056 128 Nguyen et al. (2020), Table 11

    Reference: Nguyen et al. (2020), Tables 1 to 5, 11 to 13, Sections 3.3 and 3.5; Mohamed and
    Claudel (2018), Table 1, where the numbers of Penn Treebank are of its validation text;
    Sutskever et al. (2013), Table 5.
    """
    return [
        Published(**{name: row[name] for name in row.keys() - {"task", "layer", "variant"}})
        for row in table("results")
        if (row["task"], row["layer"]) == (task, layer)
        and variant in (None, row.get("variant", variant))
    ]
