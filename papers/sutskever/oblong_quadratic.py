"""Draw how gradient descent and both forms of momentum descend into an oblong valley.

    python -m papers.sutskever.oblong_quadratic

This is Figure 2 of Sutskever, Martens, Dahl and Hinton (2013). All methods minimise

    f(w) = (w_1^2 + curvature w_2^2) / 2

from the same start, with the same learning rate; both forms of momentum have the same momentum.
By the paper's Theorem 2.1, Nesterov's form has, along an eigendirection of curvature c, the
momentum (1 - c learning_rate) momentum of the classical one: less where it would oscillate.

Writes report.md, trajectories.png and results.json, in which `paths` are the points (w_1, w_2)
of each method, and `summary` its way along w_2, the steep direction (1 if it never turns), and
its distance to the minimum at the end.
"""

from pathlib import Path

import keras
import numpy as np
from matplotlib.figure import Figure

from keras_momentum_rnn.optimizers import MomentumSGD
from papers import single_study
from papers.command_line import documented_parser, positive
from papers.presentation import BLUE, GREEN, VERMILION, markdown_table, tidy

START = (-4.0, 1.0)
COLORS = (VERMILION, GREEN, BLUE)  # the paper's red, green and blue


def main(argv=None):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--curvature", type=positive(float), default=100, help="of the steep direction")
    add("--learning-rate", type=positive(float), default=0.008, help="of all methods")
    add("--momentum", type=float, default=0.9, help="of both forms")
    add("--updates", type=positive(int), default=60, help="of each method")
    add("--output", type=Path, default="runs/oblong_quadratic", help="for the results")
    return single_study.run(__file__, argv, parser, study)


def study(options):
    rate, momentum = options.learning_rate, options.momentum
    optimizers = {
        "gradient descent": MomentumSGD(rate, momentum=0),
        "classical momentum": MomentumSGD(rate, momentum),
        "Nesterov's momentum": MomentumSGD(rate, momentum, nesterov=True),
    }
    paths = {
        name: followed(optimizer, options.curvature, options.updates)
        for name, optimizer in optimizers.items()
    }
    summary = [
        {
            "method": method,
            "travel": float(np.abs(np.diff(path[:, 1])).sum() / abs(path[0, 1])),
            "distance": float(np.linalg.norm(path[-1])),
        }
        for method, path in paths.items()
    ]
    head = ["method", "way along the steep direction", "distance to the minimum"]
    rows = [
        [row["method"], f"{row['travel']:.2f}", f"{row['distance']:.2f}"] for row in summary
    ]
    figures = {"trajectories.png": trajectories(paths, summary, options)}
    points = {method: path.round(6).tolist() for method, path in paths.items()}
    return (
        {"start": START, "summary": summary, "paths": points},
        markdown_table(head, rows),
        figures,
    )


def followed(optimizer, curvature, updates):
    """Return every w; the gradient is taken at the look-ahead, where the optimizer has one."""
    curvatures = keras.ops.convert_to_tensor([1.0, curvature])
    w = keras.Variable(START)
    path = [w.numpy().copy()]
    for _ in range(updates):
        optimizer.resume_variable_values([w])
        optimizer.apply([curvatures * w.value], [w])
        optimizer.finalize_variable_values([w])
        path.append(w.numpy().copy())
    return np.array(path, "float64")


def trajectories(paths, summary, options):
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
    _, classical, nesterov = (f"{row['method']} {row['travel']:.1f}" for row in summary)
    axes.set(
        xlabel="$w_1$, flat direction",
        ylabel="$w_2$, steep direction",
        title=f"Way along the steep direction: {classical}, {nesterov}\n"
        f"$f(w) = (w_1^2 + {options.curvature:g}\\, w_2^2) / 2$, {options.updates} updates, "
        f"learning rate {options.learning_rate:g}, momentum {options.momentum:g}",
    )
    tidy(axes)
    axes.grid(visible=False)
    axes.legend(frameon=False, loc="lower right")
    return figure


if __name__ == "__main__":
    main()
