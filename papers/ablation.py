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
    settings = results["settings"]
    scores = {}
    for row in results["summary"]:
        run = next(run for run in results["runs"] if run["layer"] == row["layer"])
        numbers = run["setup"]["arguments"]
        scores[numbers["momentum"], numbers["step_size"]] = row["test"]
    ended = [row for row in results["summary"] if row["test"] is not None]
    top = (max if settings["larger_is_better"] else min)(
        (r["test"] for r in ended), default=None
    )
    best = [row for row in ended if row["test"] == top]
    name = results["runs"][0]["setup"]["class"]
    label = f"test {settings['metric']}"
    end, finding = "All diverged.", "every pair diverged"
    if best:
        names = " and ".join(row["layer"] for row in best)
        end = f"Best: {names}, {label} {mean_and_spread(best[0])}."
        pairs = [row["layer"].split()[-2:] for row in best]
        finding = "best with " + "\nand with ".join(
            f"momentum {momentum} and step size {step_size}" for momentum, step_size in pairs
        )
    figure = heat_map_figure(scores, f"{name} on {settings['task']}:\n{finding}", label)
    text = (
        "## Momentum and step size\n\nAs in Figure 7 of Nguyen et al. (2020): "
        f"heat_map.png. {end}"
    )
    return text, {"heat_map.png": figure}


def heat_map_figure(scores, title, label):
    """Draw scores over step size and momentum, which stand as in the heat map of a search.

    Args:
        scores: dict from (momentum, step size) to a score, or None where it diverged.
        title: str.
        label: str, of the score.
    """
    momenta = sorted({momentum for momentum, _ in scores})
    step_sizes = sorted({step_size for _, step_size in scores})
    cells = np.array(
        [
            [np.nan if scores.get((m, s)) is None else scores[m, s] for s in step_sizes]
            for m in momenta
        ]
    )
    figure = Figure(figsize=(1.6 + 1.1 * len(step_sizes), 1.8 + 0.7 * len(momenta)))
    figure.set_layout_engine("constrained")
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
    axes.set_xlabel("step size")
    axes.set_ylabel("momentum")
    axes.set_title(title)
    figure.colorbar(image, label=label)
    return figure
