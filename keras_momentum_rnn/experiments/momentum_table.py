"""Table 5 of Sutskever et al. (2013) beside ours, and the errors over updates."""

import dataclasses

import numpy as np
from matplotlib.figure import Figure

from keras_momentum_rnn.experiments.summary import layers, metric_curves, number, of_layer
from keras_momentum_rnn.tasks import sutskever2013

# Colours after Okabe and Ito: of a momentum; Nesterov's form is drawn solid.
COLORS = {0: "black", 0.9: "#E69F00", 0.98: "#0072B2", 0.995: "#D55E00"}
OTHERS = ("#009E73", "#CC79A7", "#56B4E9")
LINES = {"N": "-", "M": "--", "": ":"}
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
    lines = [["", "biases", *columns], ["---"] * (len(columns) + 2)]
    for layer in dict.fromkeys(row.layer for row in found):
        mine = {row.column: runs for row, runs in found.items() if row.layer == layer}
        errors = [mean_error(mine.get(column), settings["metric"]) for column in columns]
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
        "not depend on the input."
    )
    parts = ["## Table 5", text, "\n".join(f"| {' | '.join(line)} |" for line in lines)]
    return "\n\n".join(parts), {"table5.png": errors_figure(results, found, paper)}


def mean_error(runs, metric):
    if runs is None:
        return "-"
    errors = [run["test"][metric] for run in runs if run["test"]]
    return number(float(np.mean(errors))) if errors else "diverged"


def learning_rate(runs):
    return "-" if runs is None else f"{runs[0]['setup']['optimizer']['learning_rate']:g}"


def errors_figure(results, found, paper):
    """Draw errors on validation over updates, a panel for each layer.

    Args:
        results: what results.json holds.
        found: dict from `Row` to runs.
        paper: dict from columns of Table 5 to errors after the paper's updates.
    """
    settings, names = results["settings"], list(dict.fromkeys(row.layer for row in found))
    every, chance = settings["budget"]["updates between evaluations"], settings["chance"]
    least = 0.5 / settings["samples"]["validation"]  # so that none wrong has a place
    figure = Figure(figsize=(2.2 + 3.8 * len(names), 4.6), layout="constrained")
    figure.suptitle(f"{settings['task']}: {ERRORS[settings['metric']]}, validation")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    colors = {**COLORS, **dict(zip(other_momenta(found), OTHERS))}
    for axes, name in zip(panels, names):
        for row in (row for row in found if row.layer == name):
            y = metric_curves(found[row], str(row), f"validation_{settings['metric']}")
            x = every * np.arange(1, y.shape[1] + 1)
            look = {"color": colors.get(row.momentum, "0.5"), "label": row.column}
            axes.plot(x, np.maximum(y.mean(axis=0), least), LINES[row.form], **look)
        if name == "SimpleRNN":
            for row in (row for row in found if row.layer == name and row.column in paper):
                draw_end(axes, paper[row.column], row, colors, settings)
        axes.axhline(chance[settings["metric"]], color="0.6", linewidth=0.8)
        axes.set(title=name, xlabel="update", yscale="log")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    entries = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles))
    title = "momentum;\nat the edge: the\npaper's, after\n50,000 updates"
    figure.legend(
        entries.values(), entries, title=title, loc="outside right center", frameon=False
    )
    return figure


def draw_end(axes, error, row, colors, settings):
    """Mark what the paper has after its updates, at the right edge."""
    axes.plot(
        settings["budget"]["updates"] * 1.04,
        error,
        marker="<" if row.form == "N" else "x",
        color=colors.get(row.momentum, "0.5"),
        linestyle="none",
        clip_on=False,
    )


def other_momenta(found):
    return sorted({row.momentum for row in found} - set(COLORS))
