"""Pictures of a comparison."""

import itertools

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keras_momentum_rnn.experiments.summary import layers, mean_curve, metric_curves

# The same layer looks the same in every picture. Colours after Okabe and Ito.
STYLES = {
    "LSTM": ("black", "-"),
    "GRU": ("0.45", "--"),
    "SimpleRNN": ("0.45", ":"),
    "MomentumLSTM": ("#0072B2", "-"),
    "NAGLSTM": ("#56B4E9", "-"),
    "SRLSTM": ("#009E73", "-"),
    "AdamLSTM": ("#D55E00", "-"),
    "RMSPropLSTM": ("#E69F00", "-"),
    "MCRM": ("#CC79A7", "-."),
    "NestedLSTM": ("#7B3F9E", "-."),
}
OTHERS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def styles(names):
    """Return colour and line of each layer; those that differ by their rate alone share one."""
    if names and all(" at " in name for name in names):
        return rate_styles(names)
    looks = itertools.cycle((color, line) for line in ("-", "--", ":") for color in OTHERS)
    return {name: STYLES[name] if name in STYLES else next(looks) for name in names}


def rate_styles(names):
    """Return colours of rows and lines of rates, where names are as "SimpleRNN 0 at 0.01"."""
    pairs = [name.partition(" at ")[::2] for name in names]
    kinds, rates = (sorted(set(part)) for part in zip(*pairs))
    colors = dict(zip(kinds, itertools.cycle(("black", *OTHERS))))
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
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
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


def heat_map_figure(scores, title, label):
    """Draw scores over momentum and step size.

    Args:
        scores: dict from (momentum, step size) to a score, or None where it diverged.
        title: str.
        label: str, of the score.
    """
    momenta = sorted({momentum for momentum, _ in scores})
    step_sizes = sorted({step_size for _, step_size in scores})
    cells = np.array(
        [
            [np.nan if scores.get((m, s)) is None else scores[m, s] for m in momenta]
            for s in step_sizes
        ]
    )
    figure = Figure(figsize=(1.6 + 1.1 * len(momenta), 1.8 + 0.7 * len(step_sizes)))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    image = axes.imshow(cells, origin="lower", aspect="auto", cmap="viridis")
    finite = cells[np.isfinite(cells)]
    middle = (finite.min() + finite.max()) / 2 if finite.size else 0
    for (row, column), value in np.ndenumerate(cells):
        color = "white" if value < middle else "black"
        text = "diverged" if np.isnan(value) else f"{value:.3g}"
        axes.text(column, row, text, ha="center", va="center", color=color)
    axes.set_xticks(range(len(momenta)), [f"{m:g}" for m in momenta])
    axes.set_yticks(range(len(step_sizes)), [f"{s:g}" for s in step_sizes])
    axes.set_xlabel("momentum")
    axes.set_ylabel("step size")
    axes.set_title(title)
    figure.colorbar(image, label=label)
    return figure
