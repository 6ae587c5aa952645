"""Pictures of a search."""

import math
from collections import defaultdict

import numpy as np
from matplotlib import cm, colors
from matplotlib.figure import Figure

from keras_momentum_rnn.tuning.values import NUMBERS, plain

BINS = 6
COLORS = "viridis"


def plot_heat_map(results, x="step_size", y="momentum"):
    """Draw the best score over two numbers, in bins, with a point for each trial.

    Args:
        results: `Results`.
        x: name of a hyperparameter. Defaults to `"step_size"`; in a stack, to that of the
            first layer.
        y: the same. Defaults to `"momentum"`.

    Returns:
        A `matplotlib.figure.Figure`, or `None` if no completed trial has both numbers.

    Example:

    >>> import keras_tuner
    >>> from keras_momentum_rnn.tuning import Results, Row, plot_heat_map
    >>> values = {"momentum": 0.6, "step_size": 0.6}
    >>> rows = [Row("0", "COMPLETED", "MomentumLSTM", values, list(values), score=0.9)]
    >>> objective = keras_tuner.Objective("val_accuracy", "max")
    >>> plot_heat_map(Results("runs/search", rows, objective, {})).axes[0].get_ylabel()
    'momentum'
    """
    for prefix in ("", "1/"):
        rows = [r for r in results.rows if prefix + x in r.values and prefix + y in r.values]
        rows = [row for row in rows if row.completed]
        if rows:
            break
    else:
        return None
    x, y = prefix + x, prefix + y
    xs, ys = (np.array([row.values[name] for row in rows], float) for name in (x, y))
    scores = np.array([row.score for row in rows])
    largest = results.objective.direction == "max"
    edges = [bin_edges(values, scale_of(name, values)) for name, values in ((x, xs), (y, ys))]
    cells = np.full((len(edges[1]) - 1, len(edges[0]) - 1), np.nan)
    for px, py, score in zip(xs, ys, scores):
        column, row = (bin_of(p, e) for p, e in zip((px, py), edges))
        best = np.fmax if largest else np.fmin
        cells[row, column] = best(cells[row, column], score)
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    norm = colors.Normalize(scores.min(), scores.max())
    palette = COLORS if largest else f"{COLORS}_r"
    mesh = axes.pcolormesh(*edges, cells, norm=norm, cmap=palette, edgecolors="white")
    axes.scatter(xs, ys, c=scores, norm=norm, cmap=palette, edgecolors="black", s=40)
    axes.set_xscale(scale_of(x, xs))
    axes.set_yscale(scale_of(y, ys))
    axes.minorticks_off()
    axes.set_xticks(edges[0], [f"{edge:.2g}" for edge in edges[0]])
    axes.set_yticks(edges[1], [f"{edge:.2g}" for edge in edges[1]])
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(f"Best {results.objective.name} in each cell; a point for each trial")
    figure.colorbar(mesh, label=results.objective.name)
    return figure


def scale_of(name, values):
    number = NUMBERS.get(plain(name))
    log = number is not None and number.scale == "log" and min(values) > 0
    return "log" if log else "linear"


def bin_edges(values, scale):
    """Return the edges of equal cells on a scale, around all values, with a margin."""
    if scale == "log":
        return np.exp(bin_edges(np.log(values), "linear"))
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 0.1
    return np.linspace(low - margin, high + margin, BINS + 1)


def bin_of(value, edges):
    return min(max(int(np.searchsorted(edges, value, side="right")) - 1, 0), len(edges) - 2)


def plot_parallel_coordinates(results):
    """Draw each completed trial as a line through its numbers to its score.

    A line passes below an axis whose number its layer does not have.

    Args:
        results: `Results`.

    Returns:
        A `matplotlib.figure.Figure`, or `None` if no trial completed.

    Example: as of `plot_heat_map`.
    """
    rows = results.ranked()[::-1]  # the best is drawn last, on top
    if not rows:
        return None
    searched = [name for name in results.searched() if plain(name) != "layer"]
    columns = [("layer", [row.layer for row in rows])]
    columns += [(name, [row.values.get(name, MISSING) for row in rows]) for name in searched]
    columns += [(results.objective.name, [row.score for row in rows])]
    columns = [(n, c) for n, c in columns if any(value is not MISSING for value in c)]
    figure = Figure(figsize=(1.6 * len(columns) + 2, 5.2), layout="constrained")
    axes = figure.subplots()
    heights = []
    for x, (name, values) in enumerate(columns):
        places, ticks = placed(name, values)
        heights.append(places)
        axes.axvline(x, color="0.6", linewidth=0.8)
        for label, height in ticks:
            axes.annotate(
                label,
                (x, height),
                xytext=(-4, 0),
                textcoords="offset points",
                fontsize=8,
                ha="right",
                va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
                zorder=5,
            )
    scores = [row.score for row in rows]
    largest = results.objective.direction == "max"
    palette = COLORS if largest else f"{COLORS}_r"
    shades = cm.ScalarMappable(colors.Normalize(min(scores), max(scores)), palette)
    for line, score in zip(zip(*heights), scores):
        axes.plot(range(len(line)), line, color=shades.to_rgba(score), linewidth=1.4, alpha=0.8)
    axes.set_xticks(range(len(columns)), [name for name, _ in columns])
    axes.set_xlim(-0.9, len(columns) - 0.9)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_title(f"{len(rows)} trials, from their numbers to {results.objective.name}")
    figure.colorbar(shades, ax=axes, label=results.objective.name)
    return figure


MISSING = object()
BELOW = -0.12


def placed(name, values):
    """Return the height of each value on its axis, and the ticks as (label, height)."""
    present = [value for value in values if value is not MISSING]
    number = NUMBERS.get(plain(name))
    counted = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in present)
    if not counted:
        options = sorted(dict.fromkeys(present), key=lambda value: (value is None, str(value)))
        step = 1 / max(len(options) - 1, 1)
        heights = {option: i * step for i, option in enumerate(options)}
        ticks = [(str(option), height) for option, height in heights.items()]
    else:
        scale = number.scale if number is not None and min(present) > 0 else "linear"
        bend = {"log": math.log, "logit": lambda p: math.log(p / (1 - p))}.get(scale, float)
        low, high = bend(min(present)), bend(max(present))
        heights = {v: (bend(v) - low) / (high - low) if high > low else 0.5 for v in present}
        ticks = spread_ticks(heights)
    if len(present) < len(values):
        ticks.append(("none", BELOW))
    return [heights[v] if v is not MISSING else BELOW for v in values], ticks


def spread_ticks(heights, count=5):
    """Return ticks at the lowest and the highest value, and between at some that are apart."""
    chosen = {}
    for target in [0.0, 1.0, *np.linspace(0, 1, count)[1:-1]]:
        value = min(heights, key=lambda v: abs(heights[v] - target))
        if all(abs(heights[value] - height) > 0.1 for height in chosen.values()):
            chosen[value] = heights[value]
    by_label = defaultdict(list)
    for value, height in chosen.items():
        by_label[f"{value:.3g}"].append(height)
    return [(label, found[0]) for label, found in by_label.items()]
