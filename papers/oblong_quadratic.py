"""Draw how gradient descent and both forms of momentum descend into an oblong valley.

    python -m papers.oblong_quadratic
    python -m papers.oblong_quadratic --momentum 0.95 --output runs/oblong

This is Figure 2 of Sutskever, Martens, Dahl and Hinton (2013). All methods minimise

    f(w) = (w_1^2 + curvature w_2^2) / 2

from the same start, with the same learning rate; both forms of momentum have the same momentum.
By the paper's Theorem 2.1, Nesterov's form has, along an eigendirection of curvature c, the
momentum (1 - c learning_rate) momentum of the classical one: less where it would oscillate.

The output directory receives trajectories.png and results.json, which holds:

    command   the command line
    settings  the options, the backend and the versions
    summary   one row for each method: method, travel (the length of its way along w_2, the
              steep direction; 1 if it never turns), distance (to the minimum, at the end)
    paths     for each method, the points (w_1, w_2) from the start to the last update
"""

import sys
from pathlib import Path

import keras
import numpy as np
from matplotlib.figure import Figure
from rich import print
from rich.table import Table

from keras_momentum_rnn.atomic_files import write_json
from keras_momentum_rnn.optimizers import MomentumSGD
from papers.command_line import command_of, documented_parser, positive, values_of
from papers.experiments import surroundings
from papers.presentation import BLUE, GREEN, VERMILION, save_figures

START = [-4.0, 1.0]
COLORS = [VERMILION, GREEN, BLUE]  # the paper's red, green and blue


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    paths = descend(options)
    results = {
        "command": command_of(__file__, argv),
        "settings": settings(options),
        "summary": summarise(paths),
        "paths": {method: path.round(6).tolist() for method, path in paths.items()},
    }
    save_figures(options.output, {"trajectories.png": trajectories_figure(paths, options)})
    write_json(options.output / "results.json", results)
    print(results_table(results["summary"]))
    print(f"results.json and trajectories.png are in {options.output}")


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--curvature", type=positive(float), default=100, help="of the steep direction")
    add("--learning-rate", type=positive(float), default=0.008, help="of all methods")
    add("--momentum", type=positive(float), default=0.9, help="of both forms")
    add("--updates", type=positive(int), default=60, help="of each method")
    add("--output", type=Path, default="runs/oblong_quadratic", help="for the results")
    options = parser.parse_args(argv)
    if options.momentum >= 1:
        parser.error(f"argument --momentum: must lie in (0, 1). Received: {options.momentum}")
    return options


def settings(options):
    return {**values_of(options), "start": START, **surroundings()}


def descend(options):
    """Return the paths by method, arrays (updates + 1, 2)."""
    rate, momentum = options.learning_rate, options.momentum
    optimizers = {
        "gradient descent": MomentumSGD(rate, momentum=0),
        "classical momentum": MomentumSGD(rate, momentum),
        "Nesterov's momentum": MomentumSGD(rate, momentum, nesterov=True),
    }
    return {name: follow(optimizer, options) for name, optimizer in optimizers.items()}


def follow(optimizer, options):
    """Return every w; the gradient is taken at the look-ahead, where the optimizer has one."""
    curvatures = keras.ops.convert_to_tensor([1.0, options.curvature])
    w = keras.Variable(START)
    path = [w.numpy().copy()]
    for _ in range(options.updates):
        optimizer.resume_variable_values([w])
        optimizer.apply([curvatures * w.value], [w])
        optimizer.finalize_variable_values([w])
        path.append(w.numpy().copy())
    return np.array(path, "float64")


def summarise(paths):
    """Return the rows of the table, one for each method."""
    return [
        {
            "method": method,
            "travel": float(np.abs(np.diff(path[:, 1])).sum() / abs(path[0, 1])),
            "distance": float(np.linalg.norm(path[-1])),
        }
        for method, path in paths.items()
    ]


def results_table(summary):
    table = Table(title="An oblong valley")
    for column in ("Method", "Way along the\nsteep direction", "Distance to the\nminimum"):
        table.add_column(column, justify="right" if table.columns else "left")
    for row in summary:
        table.add_row(row["method"], f"{row['travel']:.2f}", f"{row['distance']:.2f}")
    return table


def trajectories_figure(paths, options):
    """Draw the paths over the contours of f."""
    figure = Figure(figsize=(8.5, 5), layout="constrained")
    axes = figure.subplots()
    points = np.concatenate(list(paths.values()))
    reach = 1.08 * np.abs(points[:, 1]).max()
    x = np.linspace(points[:, 0].min() - 0.3, points[:, 0].max() + 0.6, 300)
    y = np.linspace(-reach, reach, 300)
    f = (x**2 + options.curvature * y[:, None] ** 2) / 2
    axes.contour(x, y, np.sqrt(f), 14, colors="0.85", linewidths=0.8, zorder=0)
    for color, (method, path) in zip(COLORS, paths.items()):
        axes.plot(*path.T, color=color, label=method, marker=".", markersize=4, linewidth=1.3)
    axes.plot(0, 0, "k+", markersize=12, markeredgewidth=1.5, label="minimum")
    axes.set(xlabel="$w_1$, flat direction", ylabel="$w_2$, steep direction")
    travel = {row["method"]: row["travel"] for row in summarise(paths)}
    told = ", ".join(f"{name} {travel[name]:.1f}" for name in travel if "momentum" in name)
    axes.set_title(
        f"Way along the steep direction: {told}\n"
        f"$f(w) = (w_1^2 + {options.curvature:g}\\, w_2^2) / 2$, {options.updates} updates, "
        f"learning rate {options.learning_rate:g}, momentum {options.momentum:g}"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    return figure


if __name__ == "__main__":
    main()
