"""Pictures of a comparison."""

import itertools

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keras_momentum_rnn import presentation
from keras_momentum_rnn.experiments.summary import layers, mean_curve, metric_curves

# The same layer looks the same in every picture.
STYLES = {
    "LSTM": ("black", "-"),
    "GRU": ("0.45", "--"),
    "SimpleRNN": ("0.45", ":"),
    "MomentumLSTM": (presentation.BLUE, "-"),
    "NAGLSTM": (presentation.SKY_BLUE, "-"),
    "SRLSTM": (presentation.GREEN, "-"),
    "AdamLSTM": (presentation.VERMILION, "-"),
    "RMSPropLSTM": (presentation.ORANGE, "-"),
    "MCRM": (presentation.PURPLE, "-."),
    "NestedLSTM": (presentation.VIOLET, "-."),
}


def styles(names):
    """Return colour and line of each layer; those that differ by their rate alone share one."""
    if names and all(" at " in name for name in names):
        return rate_styles(names)
    looks = itertools.cycle(
        (color, line) for line in ("-", "--", ":") for color in presentation.COLORS
    )
    return {name: STYLES[name] if name in STYLES else next(looks) for name in names}


def rate_styles(names):
    """Return colours of rows and lines of rates, where names are as "SimpleRNN 0 at 0.01"."""
    pairs = [name.partition(" at ")[::2] for name in names]
    kinds, rates = (sorted(set(part)) for part in zip(*pairs))
    colors = dict(zip(kinds, itertools.cycle(("black", *presentation.COLORS))))
    lines = dict(zip(sorted(rates, key=float), itertools.cycle((":", "--", "-", "-."))))
    return {f"{kind} at {rate}": (colors[kind], lines[rate]) for kind, rate in pairs}


def losses_figure(results, title):
    """Draw training and test loss over epochs."""
    chance = results["settings"]["chance"].get("loss")
    panels = [("loss", "Training loss", chance), ("test_loss", "Test loss", chance)]
    return curves_figure(results, title, panels)


def score_figure(results, title):
    """Draw the papers' score on validation and test over epochs."""
    metric = results["settings"]["metric"]
    chance = results["settings"]["chance"].get(metric)
    panels = [
        (f"validation_{metric}", f"Validation {metric}", chance),
        (f"test_{metric}", f"Test {metric}", chance),
    ]
    return curves_figure(results, title, panels)


def curves_figure(results, title, panels):
    """Draw curves over epochs, the mean over seeds and their range.

    Args:
        results: what results.json holds.
        title: str.
        panels: list of (name in the curve, title, chance or None).
    """
    runs, metric = results["runs"], results["settings"]["metric"]
    sign = 1 if results["settings"]["larger_is_better"] else -1
    names = [name for name in layers(runs) if metric_curves(runs, name, "loss").size]
    names.sort(key=lambda name: -sign * mean_curve(runs, name, metric)[-1])
    looks = styles(names)
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    figure.suptitle(title)
    values = []
    drawn = figure.subplots(1, len(panels), sharey=True)
    for axes, (name, label, chance) in zip(drawn, panels):
        for layer in names:
            y = metric_curves(runs, layer, name)
            x = range(1, y.shape[1] + 1)
            color, line = looks[layer]
            marker = "." if y.shape[1] < 40 else None
            axes.plot(x, y.mean(axis=0), line, color=color, label=layer, marker=marker)
            axes.fill_between(x, y.min(axis=0), y.max(axis=0), color=color, alpha=0.1)
            values.append(y.ravel())
        if chance is not None:
            axes.axhline(chance, color="0.6", linewidth=0.8)
            axes.annotate(
                "chance",
                (1.01, chance),  # beside the curves, not over them
                xycoords=("axes fraction", "data"),
                ha="left",
                va="center",
                color="0.45",
                fontsize=8,
            )
        axes.set_title(label)
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        presentation.tidy(axes)
    values = np.concatenate(values) if values else np.ones(1)
    if 0 < values.min() < values.max() / 20:
        for axes in figure.axes:
            axes.set_yscale("log")
    seeds = max(run["seed"] for run in runs) + 1
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        title=f"mean and range,\nseeds: {seeds}",
        loc="outside right center",
        frameon=False,
    )
    return figure
