"""The score of a layer over momentum and step size: Figure 7 of Nguyen et al. (2020)."""

import dataclasses
import re

import numpy as np
from matplotlib.figure import Figure

from papers.experiments.summary import mean_and_spread

# The names of `ablation_setups`: layer, momentum, step size.
NAME = re.compile(r"(\S+) ([-+.e\d]+) ([-+.e\d]+)")


def ablation_setups(recipe, momenta, step_sizes):
    """Return a recipe for each pair of two lists of floats, by a name that says both."""
    return {
        f"{recipe.layer_name} {momentum:g} {step_size:g}": dataclasses.replace(
            recipe, arguments={**recipe.arguments, "momentum": momentum, "step_size": step_size}
        )
        for step_size in step_sizes
        for momentum in momenta
    }


def heat_maps(results):
    """Return the section of a report on ablations, and a picture for each layer."""
    of_layers = {}
    for row in results["summary"]:
        if named := NAME.fullmatch(row["layer"]):  # not a row of a comparison before it
            pair = float(named[2]), float(named[3])
            of_layers.setdefault(named[1], {})[pair] = row
    texts = ["## Momentum and step size"]
    figures = {}
    for layer, rows in of_layers.items():
        name = f"heat_map_{layer}.png"
        end, figures[name] = heat_map(layer, rows, results["settings"])
        texts.append(f"As in Figure 7 of Nguyen et al. (2020): {name}. {end}")
    return "\n\n".join(texts), figures


def heat_map(layer, rows, settings):
    """Return a sentence on the best of a layer's pairs, and the picture of all.

    Args:
        layer: its name.
        rows: dict from (momentum, step size) to a row of the summary.
        settings: those of the results file.
    """
    metric, scores = settings["metric"], {pair: row["test"] for pair, row in rows.items()}
    ended = [score for score in scores.values() if score is not None]
    end, finding = "All diverged.", "every pair diverged"
    if ended:
        best = (max if settings["larger_is_better"] else min)(ended)
        pairs = [pair for pair, score in scores.items() if score == best]
        names = " and ".join(rows[pair]["layer"] for pair in pairs)
        score = mean_and_spread(rows[pairs[0]])
        end = f"Best on test, and so with a score that is too good: {names}, {metric} {score}."
        finding = "best with " + "\nand with ".join(
            f"momentum {momentum:g} and step size {step_size:g}"
            for momentum, step_size in pairs
        )
    title = f"{layer} on {settings['task']}:\n{finding}"
    return end, heat_map_figure(scores, title, f"test {metric}")


def heat_map_figure(scores, title, label):
    """Draw scores over step size and momentum.

    Args:
        scores: dict from (momentum, step size) to a score, or None where it diverged.
        title: str.
        label: str, of the score.
    """
    momenta, step_sizes = (sorted({pair[i] for pair in scores}) for i in range(2))
    cells = np.array([[scores.get((m, s)) for s in step_sizes] for m in momenta], "float64")
    figure = Figure(
        figsize=(1.6 + 1.1 * len(step_sizes), 1.8 + 0.7 * len(momenta)), layout="constrained"
    )
    axes = figure.subplots()
    image = axes.imshow(cells, origin="lower", aspect="auto", cmap="viridis")
    finite = cells[np.isfinite(cells)]
    middle = (finite.min() + finite.max()) / 2 if finite.size else 0
    for (row, column), value in np.ndenumerate(cells):
        color = "white" if value < middle else "black"
        text = "diverged" if np.isnan(value) else f"{value:.3g}"
        axes.text(column, row, text, ha="center", va="center", color=color)
    axes.set_xticks(range(len(step_sizes)), [f"{s:g}" for s in step_sizes])
    axes.set_yticks(range(len(momenta)), [f"{m:g}" for m in momenta])
    axes.set(xlabel="step size", ylabel="momentum", title=title)
    figure.colorbar(image, label=label)
    return figure
