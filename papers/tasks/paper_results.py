"""The papers' results, to compare with yours."""

from dataclasses import dataclass

from papers.tasks import mohamed2018, nguyen2020, sutskever2013

PAPERS = {
    nguyen2020: "Nguyen et al. (2020)",
    mohamed2018: "Mohamed and Claudel (2018)",
    sutskever2013: "Sutskever et al. (2013)",
}


@dataclass(frozen=True)
class Published:
    """A number that a paper reports for a task and a layer.

    Attributes:
        value: float, accuracies as a share.
        spread: float, its standard deviation over seeds, or None.
        units: int, or a tuple for a stack of layers.
        what: what was measured, where it is not the task's score on its test set.
        source: paper and table.
    """

    value: float
    spread: float | None
    units: int | tuple
    what: str
    source: str


def published(task: str, layer: str, variant: str | None = None) -> list[Published]:
    """Return the papers' results for a task and a layer, a list of `Published`.

    Args:
        task: name of a task, as `tasks.load` takes it. `"speech"` has those of TIMIT.
        layer: name of a layer.
        variant: the form of the adding and copying tasks, as `tasks.load` takes it.

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
    if variant == "sutskever" or task in ("multiplication", "memory5", "memory20"):
        return of_sutskever(task, layer)
    found = [] if variant == "mcrm" else of_nguyen(task, layer)
    return found + ([] if variant == "momentumrnn" else of_mohamed(task, layer))


def of_nguyen(task, layer):
    paper, found = PAPERS[nguyen2020], []
    for (name, units, of_layer), (table, mean, spread) in nguyen2020.ACCURACIES.items():
        if (name, of_layer) == (task, layer):
            spread = None if spread is None else round(spread / 100, 6)
            value = round(mean / 100, 6)
            found.append(Published(value, spread, units, "", f"{paper}, {table}"))
    if task == "speech":
        for (units, of_layer), (table, mean, spread) in nguyen2020.SPEECH_ERRORS.items():
            if of_layer == layer:
                found.append(Published(mean, spread, units, "TIMIT", f"{paper}, {table}"))
    if task == "words" and layer in nguyen2020.PERPLEXITIES:
        (units,) = nguyen2020.LSTM_UNITS["words"]
        table, mean, spread = nguyen2020.PERPLEXITIES[layer]
        found.append(Published(mean, spread, units, "Penn Treebank", f"{paper}, {table}"))
    for (name, units, of_layer), (table, mean, _) in nguyen2020.TRAINING_LOSSES.items():
        if (name, of_layer) == (task, layer):
            found.append(Published(mean, None, units, "training loss", f"{paper}, {table}"))
    return found


def of_mohamed(task, layer):
    if task not in mohamed2018.RESULTS or layer not in mohamed2018.LAYERS:
        return []
    index = mohamed2018.LAYERS.index(layer)
    value, units = mohamed2018.RESULTS[task][index], mohamed2018.UNITS[task][index]
    value = round(value / 100, 6) if task == "mnist" else value
    what = "validation text of Penn Treebank" if task in mohamed2018.VALIDATION else ""
    return [Published(value, None, units, what, f"{PAPERS[mohamed2018]}, Table 1")]


def of_sutskever(task, layer):
    if layer != "SimpleRNN" or task not in sutskever2013.ERRORS:
        return []
    return [
        Published(
            value,
            None,
            sutskever2013.UNITS,
            column if column == "biases" else f"optimizer's momentum {column}",
            f"{PAPERS[sutskever2013]}, Table 5",
        )
        for column, value in zip(sutskever2013.COLUMNS, sutskever2013.ERRORS[task], strict=True)
    ]
