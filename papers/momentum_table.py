"""Table 5 of Sutskever et al. (2013) beside ours, and the errors over updates."""

import dataclasses
import itertools

import numpy as np
from matplotlib.figure import Figure

from papers.experiments.claims import OFF_CHANCE
from papers.experiments.summary import layers, metric_curves, number, of_layer
from papers.presentation import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    VERMILION,
    VIOLET,
    markdown_table,
    tidy,
)
from papers.tasks import sutskever2013

# Of a plain network's momentum; Nesterov's form is drawn solid.
COLORS = {0: "black", 0.9: ORANGE, 0.98: BLUE, 0.995: VERMILION}
OTHERS = (GREEN, PURPLE, SKY_BLUE, VIOLET)
GREY = "0.8"
LINES = {"N": "-", "M": "--", "": ":"}
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


def row_of(name):
    """Return the `Row` whose name a comparison has."""
    layer, column = name.split()
    form = column[-1] if column[-1] in "NM" else ""
    return Row(layer, float(column.removesuffix(form)), form)


def table(results):
    """Return Table 5 beside ours in Markdown, and the picture, as a section of a report."""
    settings = results["settings"]
    found = {row_of(name): of_layer(results["runs"], name) for name in layers(results["runs"])}
    known = [column for column in sutskever2013.COLUMNS if column in {r.column for r in found}]
    columns = list(dict.fromkeys([*known, *(row.column for row in found)]))
    lines = []
    for layer in dict.fromkeys(row.layer for row in found):
        mine = {row.column: runs for row, runs in found.items() if row.layer == layer}
        errors = [mean_error(mine.get(column), settings) for column in columns]
        rates = [learning_rate(mine.get(column)) for column in columns]
        lines.append([layer, number(settings["chance"][settings["metric"]]), *errors])
        lines.append([f"{layer}, learning rate", "-", *rates])
    paper = dict(zip(sutskever2013.COLUMNS, sutskever2013.ERRORS[settings["task"]]))
    theirs = [f"{paper[c]:g}" if c in paper else "-" for c in ("biases", *columns)]
    lines.append(["SimpleRNN, paper", *theirs])
    updates = settings["budget"]["updates"]
    text = (
        f"The {ERRORS[settings['metric']]}, after at most {updates:,} updates here (the best "
        f"on validation) and {sutskever2013.UPDATES:,} in the paper, by momentum of the "
        "optimizer: N is Nesterov's form, M the classical one. `biases` are outputs that do "
        "not depend on the input; ours is their error over all sequences that may be drawn, "
        "which on these test sequences alone is a little different."
    )
    parts = ["## Table 5", text, markdown_table(["", "biases", *columns], lines)]
    return "\n\n".join(parts), {"table5.png": errors_figure(results, found, paper)}


def pilot_table(results):
    """Return what each row would have chosen after shorter pilots, as a section of a report."""
    every, rows = results["settings"]["budget"]["updates between evaluations"], {}
    for run in results["runs"]:
        row, _, rate = run["layer"].partition(" at ")
        rows.setdefault(row, {})[float(rate)] = [
            epoch["validation_loss"] for epoch in run["curve"]
        ]
    longest = max(len(curve) for curves in rows.values() for curve in curves.values())
    points = range(longest - 1, -1, -max(1, longest // 5))[::-1]
    lines = []
    for row, curves in rows.items():
        chosen = []
        for n in points:
            losses = {rate: curve[n] for rate, curve in curves.items() if n < len(curve)}
            rate = chosen_rate(losses) if losses else None
            chosen.append(f"{rate:g} ({number(losses[rate])})" if losses else "-")
        lines.append([row, *chosen])
    text = (
        f"The largest learning rate within {NOISE:.0%} of the least loss on validation, and "
        "its loss, by updates of the pilot."
    )
    parts = ["## How long must the pilot be?", text]
    parts.append(markdown_table(["", *(f"{every * (n + 1):,}" for n in points)], lines))
    return "\n\n".join(parts), {}


def chosen_rate(losses):
    """Return the largest learning rate that no other beats by more than noise.

    Args:
        losses: dict from learning rates to losses; a single rate is always chosen.
    """
    if len(losses) == 1:
        return next(iter(losses))
    least = min(losses.values())
    return max(rate for rate, loss in losses.items() if loss <= least * (1 + NOISE))


def mean_error(runs, settings):
    """Return the error of a row as text."""
    if runs is None:
        return "-"
    error = test_error(runs, settings)
    return "diverged" if error is None else number(error)


def test_error(runs, settings):
    """Return the mean error of runs on test, or None if all diverged before the first."""
    errors = [run["test"][settings["metric"]] for run in runs if run["test"]]
    return float(np.mean(errors)) if errors else None


def learning_rate(runs):
    return "-" if runs is None else f"{runs[0]['setup']['optimizer']['learning_rate']:g}"


def errors_figure(results, found, paper):
    """Draw errors on validation over updates, and at the end beside the paper's.

    Args:
        results: what results.json holds.
        found: dict from `Row` to runs.
        paper: dict from columns of Table 5 to errors after the paper's updates.
    """
    settings = results["settings"]
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    figure.suptitle(f"{settings['task']}: {finding(found, settings)}")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    looks = looks_of(found)
    if learned := learning(found, settings):
        # Rows that stay at a constant output's error are grey, behind the others.
        looks |= {
            r: {**looks[r], "color": GREY, "zorder": 1} for r in found if r not in learned
        }
    draw_curves(left, results, found, looks)
    draw_ends(right, settings, found, looks, paper)
    tidy(left)
    tidy(right)
    left.set_ylabel(ERRORS[settings["metric"]])
    handles, labels = left.get_legend_handles_labels()
    named = [label for label in labels if looks[row_of(label)]["color"] != GREY]
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)}
    below |= {"frameon": False, "fontsize": 9}
    left.legend([handles[labels.index(n)] for n in named], named, ncols=3, **below)
    right.legend(ncols=2, **below)
    return figure


def finding(found, settings):
    """Return which row is best on test, beside outputs that do not depend on the input."""
    errors = {row: test_error(runs, settings) for row, runs in found.items()}
    errors = {row: error for row, error in errors.items() if error is not None}
    if not errors:
        return "every row diverged"
    constant = settings["chance"][settings["metric"]]
    best = min(errors, key=errors.get)
    learned = learning(found, settings)
    if not learned:
        return "no row is better than a constant output"
    return (
        f"{len(learned)} of {len(errors)} rows learn; {best} comes to {number(errors[best])}, "
        f"a constant output to {number(constant)}"
    )


def learning(found, settings):
    """Return the rows that are better on test than a constant output."""
    most = (1 - OFF_CHANCE) * settings["chance"][settings["metric"]]
    errors = {row: test_error(runs, settings) for row, runs in found.items()}
    return [row for row, error in errors.items() if error is not None and error <= most]


def looks_of(found):
    """Return how the curve of each row is drawn: of a plain network as its momentum is."""
    spare = itertools.cycle(OTHERS)
    looks, colors = {}, {("SimpleRNN", momentum): color for momentum, color in COLORS.items()}
    markers = dict(zip(dict.fromkeys(row.layer for row in found), itertools.cycle("os^Dv")))
    for row in found:
        kind = row.layer, row.momentum
        if kind not in colors:
            colors[kind] = next(spare)
        looks[row] = {
            "color": colors[kind],
            "linestyle": LINES[row.form],
            "marker": markers[row.layer],
            "markersize": 3,
        }
    return looks


def draw_curves(axes, results, found, looks):
    """Draw errors over updates, on a log axis if they span more than it takes to read them."""
    settings, least = results["settings"], 0.5 / results["settings"]["samples"]["validation"]
    every, values = settings["budget"]["updates between evaluations"], []
    for row, runs in found.items():
        y = metric_curves(runs, str(row), f"validation_{settings['metric']}").mean(axis=0)
        axes.plot(every * np.arange(1, len(y) + 1), y, label=str(row), **looks[row])
        values += [*y]
    axes.axhline(settings["chance"][settings["metric"]], color="0.6", linewidth=0.8)
    if min(values, default=1) < max(values, default=1) / 50:
        # An error of 0 is drawn, too, below the least error that these samples can show.
        axes.set_yscale("symlog", linthresh=2 * least)
        axes.set_ylim(bottom=-least)
    axes.set(
        xlabel="update", title="on validation; grey: a constant output, and rows no better"
    )


def draw_ends(axes, settings, found, looks, paper):
    """Draw what Table 5 has, ours and the paper's, by momentum."""
    known = [c for c in sutskever2013.COLUMNS if c in {row.column for row in found}]
    columns = list(dict.fromkeys([*known, *(row.column for row in found)]))
    theirs = [(x, paper[column]) for x, column in enumerate(columns) if column in paper]
    least = 0.5 / settings["samples"]["test"]
    for layer in dict.fromkeys(row.layer for row in found):
        rows = [row for row in found if row.layer == layer]
        look = {"color": "black" if layer == "SimpleRNN" else looks[rows[0]]["color"]}
        ends = [(columns.index(row.column), test_error(found[row], settings)) for row in rows]
        ends = [(x, max(error, least)) for x, error in ends if error is not None]
        if ends:
            marker = looks[rows[0]]["marker"]
            axes.plot(*zip(*ends), marker, label=layer, ms=9, fillstyle="none", **look)
    if theirs:
        updates = f"{sutskever2013.UPDATES:,} updates"
        axes.plot(*zip(*theirs), "x", color="0.5", ms=8, label=f"SimpleRNN, paper, {updates}")
    axes.axhline(settings["chance"][settings["metric"]], color="0.6", linewidth=0.8)
    axes.set(yscale="log", xlabel="momentum", title="on test, beside the paper's")
    axes.set_xticks(range(len(columns)), columns, fontsize=8)
    axes.margins(x=0.1)
