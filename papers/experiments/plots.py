"""Pictures of a comparison: a finding as the title, and few layers that stand out."""

import itertools
import textwrap

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from papers import presentation
from papers.experiments.claims import at_chance
from papers.experiments.summary import BASELINE, layers, metric_curves, number, of_layer

# The same layer looks the same in every picture.
COLORS = {
    "LSTM": "black",
    "GRU": presentation.BROWN,
    "SimpleRNN": presentation.BROWN,
    "MomentumLSTM": presentation.BLUE,
    "NAGLSTM": presentation.SKY_BLUE,
    "SRLSTM": presentation.GREEN,
    "AdamLSTM": presentation.VERMILION,
    "RMSPropLSTM": presentation.ORANGE,
    "MCRM": presentation.PURPLE,
    "NestedLSTM": presentation.VIOLET,
    "DTRIV": presentation.BROWN,
    "MomentumDTRIV": presentation.VIOLET,
    "LSTM-x2.5": presentation.PURPLE,
}
LINES = {"GRU": "--", "SimpleRNN": ":", "DTRIV": "-."}
# More lines than this cannot be told apart: the others are grey.
SHOWN = 5
# Metrics in words, with their units.
WORDS = {
    "bits_per_character": "bits per character",
    "mse": "mean squared error",
    "zero_one_loss": "share of wrong sequences",
    "wrong_symbols": "wrong symbols per sequence",
}
# So many characters of a title fit the picture.
TITLE_WIDTH = 80
# Where the layer's names stand beside a panel, and how far apart at least, in its height.
ASIDE, APART = 1.1, 0.075


def losses_figure(results, title):
    """Draw training and test loss over epochs."""
    return curves_figure(results, title, "loss", ("Training", "Test"), ("loss", "test_loss"))


def score_figure(results, title):
    """Draw the papers' score on validation and test over epochs."""
    metric = results["settings"]["metric"]
    curves = (f"validation_{metric}", f"test_{metric}")
    return curves_figure(results, title, metric, ("Validation", "Test"), curves)


def curves_figure(results, title, metric, heads, curves):
    """Draw curves over epochs: the mean over seeds, and for the layers named their range.

    The baseline and the layers that are best on test at the last epoch are named. All others
    are grey.

    Args:
        results: what results.json holds.
        title: str, what was compared.
        metric: str, name of the score that is drawn.
        heads: the titles of the panels.
        curves: for each panel the name of its score in the curves of the runs.
    """
    ends = last_values(results, metric)
    named = shown(list(ends))
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    lines = finding(results, metric, ends), described(results, title)
    figure.suptitle("\n".join(textwrap.fill(line, TITLE_WIDTH) for line in lines))
    panels = figure.subplots(1, len(curves), sharey=True)
    for axes, head, curve in zip(panels, heads, curves):
        draw_curves(axes, results, curve, [*named, *(n for n in ends if n not in named)], named)
        axes.set(title=head, xlabel=epoch_label(results))
    panels[0].set_ylabel(WORDS.get(metric, metric))
    values = [metric_curves(results["runs"], n, c).ravel() for n in ends for c in curves]
    if values and 0 < np.concatenate(values).min() < np.concatenate(values).max() / 20:
        panels[0].set_yscale("log")
    labels = [(layer, ends[layer], styles(named)[layer][0]) for layer in named]
    constant = results["constant"].get(metric)
    if constant is not None:
        for axes in panels:
            axes.axhline(constant, color="0.55", linewidth=1, linestyle=":", zorder=2)
        labels.append(("constant output", constant, "0.45"))
    grey = [ends[layer] for layer in ends if layer not in named]
    if grey:
        told = f"{len(grey)} other{'s' if len(grey) > 1 else ''}"
        labels.append((told, float(np.median(grey)), "0.6"))
    name_lines(panels[-1], labels)
    return figure


def draw_curves(axes, results, curve, names, named):
    """Draw one score over epochs: of `names` the means, of `named` in colour with ranges."""
    looks = styles(named)
    for layer in names:
        y = metric_curves(results["runs"], layer, curve)
        x = range(1, y.shape[1] + 1)
        color, line = looks.get(layer, ("0.8", "-"))
        look = {"color": color, "label": layer, "zorder": 3 if layer in looks else 1}
        marker = "." if y.shape[1] < 40 and layer in looks else None
        axes.plot(x, y.mean(axis=0), line, marker=marker, **look)
        if layer in looks:
            axes.fill_between(x, y.min(axis=0), y.max(axis=0), color=color, alpha=0.1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    presentation.tidy(axes)


def last_values(results, metric):
    """Return the mean test scores at the last epoch by layer, the best first."""
    settings, runs = results["settings"], results["runs"]
    larger = metric == settings["metric"] and settings["larger_is_better"]
    curves = {layer: metric_curves(runs, layer, f"test_{metric}") for layer in layers(runs)}
    found = {name: float(y[:, -1].mean()) for name, y in curves.items() if y.size}
    return dict(sorted(found.items(), key=lambda item: item[1], reverse=larger))


def shown(names):
    """Return which layers stand out, of names from the best to the worst."""
    chosen = names[:SHOWN]
    if BASELINE in names and BASELINE not in chosen:
        chosen = [*chosen[:-1], BASELINE]
    return chosen


def styles(names):
    """Return colour and line of each layer."""
    used = {*map(COLORS.get, names)}
    spare = itertools.cycle([c for c in presentation.COLORS if c not in used] or ["0.4"])
    return {name: (COLORS.get(name) or next(spare), LINES.get(name, "-")) for name in names}


def finding(results, metric, ends):
    """Return what the picture shows, in one line.

    Args:
        results: what results.json holds.
        metric: str, name of the score.
        ends: dict from layers to their test scores at the last epoch, the best first.
    """
    if not ends:
        return "Every run diverged in its first epoch"
    if {*ends} <= {*at_chance(results)}:
        return "No layer is better than a constant output"
    best, *others = ends
    told = f"{best} ends at a test {WORDS.get(metric, metric)} of {number(ends[best])}"
    if not others:
        return told
    if BASELINE in others:
        other, named = BASELINE, BASELINE
    elif best == BASELINE:
        other, named = others[0], f"the next, {others[0]},"
    else:
        other, named = others[-1], f"the last, {others[-1]},"
    # Rows that take turns may be an epoch apart.
    epochs = [
        metric_curves(results["runs"], name, f"test_{metric}").shape[1]
        for name in (best, other)
    ]
    after = [f" after {count} epochs" if len({*epochs}) > 1 else "" for count in epochs]
    return f"{told}{after[0]}, {named} at {number(ends[other])}{after[1]}"


def described(results, title):
    """Return what was compared, and how often."""
    runs = results["runs"]
    counts = [len(metric_curves(runs, name, "test_loss")) for name in layers(runs)]
    fewest, most = min(counts), max(counts)
    seeds = most if fewest == most else f"{fewest} to {most}"
    told = f"mean and range of {seeds} seeds" if most > 1 else "one seed"
    hidden = sum(len(of_layer(runs, name)) for name in layers(runs)) - sum(counts)
    return f"{title}: {told}" + (f", without {hidden} that diverged" if hidden else "")


def epoch_label(results):
    """Return the label of the epochs, which some comparisons set to a number of updates."""
    updates = results["settings"]["budget"].get("updates between evaluations")
    return f"epoch, {updates:,} updates each" if updates else "epoch"


def name_lines(axes, labels):
    """Write names beside the ends of lines, as far apart as it takes to read them.

    Args:
        axes: matplotlib's, whose limits and scale are final.
        labels: list of (name, value of y, colour).
    """
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    scale = np.log if axes.get_yscale() == "log" else np.asarray
    places = (scale([y for _, y, _ in labels]) - scale(low)) / (scale(high) - scale(low))
    order = np.argsort(places)
    heights = np.clip(places[order], 0, 1)
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + APART)
    # What was pushed above the panel comes down again, and pushes those below it.
    heights[-1:] = np.minimum(heights[-1:], max(1, APART * (len(heights) - 1)))
    for i in reversed(range(len(heights) - 1)):
        heights[i] = min(heights[i], heights[i + 1] - APART)
    for i, height in zip(order, heights):
        name, _, color = labels[i]
        # The line ends before the name, so it strikes none through.
        look = {"transform": axes.transAxes, "color": color, "clip_on": False}
        axes.plot((1, ASIDE - 0.02), (places[i], height), linewidth=0.7, **look)
        axes.text(ASIDE, height, name, va="center", **look)
