"""The score of a layer over momentum and step size: Figure 7 of Nguyen et al. (2020)."""

import dataclasses

import numpy as np
from matplotlib.figure import Figure

from papers.experiments.summary import mean_and_spread


def ablation_setups(recipe, momenta, step_sizes):
    """Return a recipe for each pair of two lists of floats, by a name that says both."""
    return {
        f"{recipe.layer_name} {momentum:g} {step_size:g}": dataclasses.replace(
            recipe,
            arguments={**recipe.arguments, "momentum": momentum, "step_size": step_size},
        )
        for step_size in step_sizes
        for momentum in momenta
    }


def heat_map(results):
    """Return the section of a report on an ablation, and its picture."""
    metric, scores = results["settings"]["metric"], {}
    for row in results["summary"]:
        layer, *pair = row["layer"].split()
        if pair:  # not a row of a comparison before it
            name, scores[tuple(map(float, pair))] = layer, row["test"]
    ended = [score for score in scores.values() if score is not None]
    end, finding = "All diverged.", "every pair diverged"
    if ended:
        best = (max if results["settings"]["larger_is_better"] else min)(ended)
        rows = [row for row in results["summary"] if row["test"] == best]
        names = " and ".join(row["layer"] for row in rows)
        end = f"Best: {names}, test {metric} {mean_and_spread(rows[0])}."
        pairs = [pair for pair, score in scores.items() if score == best]
        finding = "best with " + "\nand with ".join(
            f"momentum {momentum:g} and step size {step_size:g}"
            for momentum, step_size in pairs
        )
    title = f"{name} on {results['settings']['task']}:\n{finding}"
    text = (
        "## Momentum and step size\n\nAs in Figure 7 of Nguyen et al. (2020): "
        f"heat_map.png. {end}"
    )
    return text, {"heat_map.png": heat_map_figure(scores, title, f"test {metric}")}


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
