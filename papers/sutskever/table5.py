"""Table 5 of Sutskever et al. (2013) beside ours: its rows, and sections of a report."""

import dataclasses

import numpy as np
from matplotlib.figure import Figure

from papers.experiments.claims import OFF_CHANCE
from papers.experiments.summary import going_on, layers, number, of_layer
from papers.presentation import BLUE, COLORS, markdown_table, tidy
from papers.tasks import sutskever2013

# Losses that differ by less do not tell one learning rate from another.
NOISE = 0.05
ERRORS = {
    "zero_one_loss": "share of sequences with an error above 0.04",
    "wrong_symbols": "mean number of wrong symbols",
}


@dataclasses.dataclass(frozen=True)
class Row:
    """A layer, and the momentum of its optimizer.

    Attributes:
        layer: name of its class.
        momentum: float.
        form: "N" for Nesterov's, "M" for the classical one, "" without momentum.
    """

    layer: str
    momentum: float
    form: str

    @property
    def column(self):
        """The column of Table 5."""
        return f"{self.momentum:g}{self.form}"

    def __str__(self):
        return f"{self.layer} {self.column}"


def chosen_rate(losses):
    """Return the largest learning rate that no other beats by more than noise.

    Args:
        losses: dict from learning rates to losses; a single rate is always chosen.
    """
    if len(losses) == 1:
        return next(iter(losses))
    least = min(losses.values())
    return max(rate for rate, loss in losses.items() if loss <= least * (1 + NOISE))


def pilot_losses(runs):
    """Return the validation loss at the end of each pilot, by row and by learning rate."""
    losses = {}
    for run in runs:
        row, rate = run["layer"].partition(" at ")[0], learning_rate([run])
        last = np.inf if run["diverged"] else run["curve"][-1]["validation_loss"]
        losses.setdefault(row, {})[rate] = last
    return losses


def pilot_table(results):
    """Return the losses by which learning rates are chosen, as a section of a report."""
    losses = pilot_losses(results["runs"])
    ended = pilot_losses(run for run in results["runs"] if not going_on(run))
    rates = sorted({rate for found in losses.values() for rate in found}, reverse=True)
    cells = []
    for row, found in losses.items():
        told = {rate: number(loss) for rate, loss in found.items()}
        if row in ended:
            told[chosen_rate(ended[row])] = f"**{told[chosen_rate(ended[row])]}**"
        cells.append([row, *(told.get(rate, "-") for rate in rates)])
    text = (
        "The validation loss at the end, by learning rate; in bold, the largest learning rate "
        f"within {NOISE:.0%} of the least loss, of those that were trained to the end."
    )
    table = markdown_table(["", *(f"{rate:g}" for rate in rates)], cells)
    return f"## Which learning rate?\n\n{text}\n\n{table}", {}


def table5(results):
    """Return Table 5 beside ours in Markdown, and the picture, as a section of a report."""
    settings = results["settings"]
    metric, updates = settings["metric"], settings["budget"]["updates"]
    # Runs by layer and by column: a layer's name in the comparison has both.
    found = {
        tuple(name.split()): of_layer(results["runs"], name) for name in layers(results["runs"])
    }
    paper = sutskever2013.errors_of(settings["task"])
    run = dict.fromkeys(column for _, column in found)
    columns = [*(c for c in paper if c in run), *(c for c in run if c not in paper)]
    cells = []
    for layer in dict.fromkeys(layer for layer, _ in found):
        runs = [found.get((layer, column)) for column in columns]
        chance = number(settings["chance"][metric])
        cells.append([layer, chance, *(mean_error(r, metric) for r in runs)])
        rates = [f"{learning_rate(r):g}" if r else "-" for r in runs]
        cells.append([f"{layer}, learning rate", "-", *rates])
    theirs = (f"{paper[c]:g}" if c in paper else "-" for c in ("biases", *columns))
    cells.append(["SimpleRNN, paper", *theirs])
    text = (
        f"The {ERRORS[metric]}, after at most {updates:,} updates here (the best "
        f"on validation) and {sutskever2013.UPDATES:,} in the paper, by momentum of the "
        "optimizer: N is Nesterov's form, M the classical one. `biases` are outputs that do "
        "not depend on the input; ours is their error over all sequences that may be drawn, "
        "which on these test sequences alone is a little different."
    )
    parts = ["## Table 5", text, markdown_table(["", "biases", *columns], cells)]
    return "\n\n".join(parts), {"table5.png": errors_figure(settings, found, columns, paper)}


def errors_on_test(runs, metric):
    """Return the errors of runs on test, without those that diverged before the first."""
    return [run["test"][metric] for run in runs if run["test"]]


def mean_error(runs, metric):
    """Return the error of a row as text."""
    if runs is None:
        return "-"
    errors = errors_on_test(runs, metric)
    return number(float(np.mean(errors))) if errors else "diverged"


def learning_rate(runs):
    """Return the learning rate of a row, a float."""
    return runs[0]["setup"]["optimizer"]["learning_rate"]


def least_wrong(found, metric, constant):
    """Return which momentum has the least mean error, or of one its error, as text.

    Args:
        found: dict from layer and column to runs.
        metric: str, name of the error.
        constant: float, the error of a constant output.
    """
    errors = {row: errors_on_test(runs, metric) for row, runs in found.items()}
    means = {row: float(np.mean(of_row)) for row, of_row in errors.items() if of_row}
    layer, column = min(means, key=means.get)
    least = means[layer, column]
    if least > constant * (1 - OFF_CHANCE):
        return "No momentum is better than a constant output"
    told = "has the least error," if len(means) > 1 else "has an error of"
    return f"{layer} with momentum {column} {told} {number(least)}"


def errors_figure(settings, found, columns, paper):
    """Draw the errors on test of each seed by momentum, beside the paper's.

    Args:
        settings: of the results.
        found: dict from layer and column to runs.
        columns: list of those of Table 5.
        paper: dict from columns to the paper's errors.
    """
    metric = settings["metric"]
    constant, least = settings["chance"][metric], 0.5 / settings["samples"]["test"]
    colors = dict(zip(dict.fromkeys(layer for layer, _ in found), COLORS))
    colors["SimpleRNN"] = "black"
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    named = set()
    for (layer, column), runs in found.items():
        # An error of 0 is drawn at half the least that these samples can show.
        errors = np.maximum(errors_on_test(runs, metric), least)
        label = None if layer in named else layer
        place = [columns.index(column)] * len(errors)
        axes.plot(place, errors, "o", color=colors[layer], fillstyle="none", ms=8, label=label)
        named |= {layer} if len(errors) else set()
    theirs = [(x, paper[column]) for x, column in enumerate(columns) if column in paper]
    label = f"SimpleRNN, paper, {sutskever2013.UPDATES:,} updates"
    axes.plot(*zip(*theirs), "x", color=BLUE, ms=8, label=label)
    axes.axhline(constant, color="0.6", linewidth=0.8, label="constant output")
    axes.set(yscale="log", ylabel=ERRORS[metric])
    axes.set_xlabel("momentum; N: Nesterov's form, M: the classical one")
    if 0 in np.concatenate([errors_on_test(runs, metric) for runs in found.values()]):
        axes.set_xlabel(f"{axes.get_xlabel()}\nan error of 0 is drawn at {least:g}")
    most = "at most " * any(going_on(run) for runs in found.values() for run in runs)
    updates = f"{most}{settings['budget']['updates']:,} updates"
    figure.suptitle(
        f"{least_wrong(found, metric, constant)}\n"
        f"{settings['task'].capitalize()}, each seed after {updates}"
    )
    axes.set_xticks(range(len(columns)), columns)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    tidy(axes)
    return figure
