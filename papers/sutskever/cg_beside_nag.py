"""Compare conjugate gradients with Nesterov's momentum on one quadratic of a run of HF.

    python -m papers.sutskever.cg_beside_nag

This is Figure 5 of Sutskever, Martens, Dahl and Hinton (2013). HF with the damping
of Martens (2010) trains the deep autoencoder of curves for 50 updates. The damped quadratic of
the next one,

    q(x) = g'x + x'(G + damping I) x / 2

is then minimised from zero by CG, and by NAG with several momenta: constant ones and Nesterov's
1 - 3 / (t + 5). The paper does not say which momentum and learning rate its NAG had. Here the
learning rate is 1 / L, L the largest curvature.

Writes report.md, figure5.png and results.json, in which `quadratic` says what the quadratic is
like, and `values` has q after 0, 1, ... steps of each method.
"""

from pathlib import Path

import keras
import numpy as np
from keras import ops
from matplotlib.figure import Figure
from scipy.sparse.linalg import LinearOperator, cg, eigsh

from keras_momentum_rnn.optimizers import HessianFreeModel, MomentumSGD
from keras_momentum_rnn.optimizers.schedules import NesterovMomentum
from papers import single_study
from papers.command_line import documented_parser, positive
from papers.presentation import COLORS, markdown_table, tidy
from papers.sutskever.curves import (
    IMAGES,
    WIDTHS,
    cross_entropy,
    curves,
    deep_autoencoder,
    updates_of,
)
from papers.sutskever.hessian_free import hf_of_2010

CONSTANTS = (0.9, 0.95, 0.98)
SEED = 0


def main(argv=None):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--updates", type=positive(int), default=50, help="of HF before the quadratic")
    add("--steps", type=positive(int), default=120, help="of each method; the paper: 120")
    add("--images", type=positive(int), default=5000, help="of a batch; a quarter of them in G")
    add("--output", type=Path, default="runs/cg_beside_nag", help="for the results")
    return single_study.run(__file__, argv, parser, study)


def study(options):
    curvature, gradient, told = damped_quadratic(options)
    values = minimised(curvature, gradient, told["largest_curvature"], options.steps)
    rows = [[method, f"{len(q) - 1}", f"{q[-1]:.5g}"] for method, q in values.items()]
    table = markdown_table(["method", "steps", "q"], rows)
    return {"quadratic": told, "values": values}, table, {"figure5.png": figure_of(values)}


def damped_quadratic(options):
    """Train by HF, and return curvature and gradient of the next update, and what it is like.

    The curvature, damping included, is a `LinearOperator`, the gradient an array.
    """
    keras.utils.set_random_seed(SEED)
    network = deep_autoencoder(WIDTHS["curves"])
    model = HessianFreeModel(network.inputs, network.outputs)
    model.compile(hf_of_2010(1.0), cross_entropy)
    images = curves(IMAGES["curves"])
    before = updates_of(images, options.images, SEED, 0, options.updates)
    losses = model.fit(before, shuffle=False, verbose=0).history["loss"]
    x, y = updates_of(images, options.images, SEED, options.updates, options.updates + 1)[0]
    quadratic, damping = model.quadratic(x, y), float(model.optimizer.damping)
    gradient = ops.convert_to_numpy(quadratic.gradient)

    def product(v):
        v = np.asarray(v, gradient.dtype).ravel()
        return ops.convert_to_numpy(quadratic.product(ops.convert_to_tensor(v))) + damping * v

    curvature = LinearOperator((gradient.size, gradient.size), product, dtype=gradient.dtype)
    (largest,) = eigsh(curvature, 1, tol=1e-3, v0=gradient, return_eigenvectors=False)
    told = {"damping": damping, "largest_curvature": float(largest), "loss": losses[-1]}
    return curvature, gradient, told


def minimised(curvature, gradient, largest, steps):
    """Return, for each method, the list of q after each step from zero."""

    def q(x):
        return float(x @ gradient + x @ (curvature @ x) / 2)

    values = {"CG": [0.0]}  # fewer where the gradient falls to a millionth
    cg(
        curvature,
        -gradient,
        rtol=1e-6,
        maxiter=steps,
        callback=lambda x: values["CG"].append(q(x)),
    )
    momenta = {f"NAG, momentum {mu:g}": mu for mu in CONSTANTS}
    momenta["NAG, momentum 1 - 3 / (t + 5)"] = NesterovMomentum()
    for name, momentum in momenta.items():
        optimizer = MomentumSGD(1 / float(largest), momentum, nesterov=True)
        x = keras.Variable(np.zeros_like(gradient))
        values[name] = [0.0]
        for _ in range(steps):
            optimizer.resume_variable_values([x])  # to the look-ahead
            slope = curvature @ ops.convert_to_numpy(x) + gradient
            optimizer.apply([ops.convert_to_tensor(slope)], [x])
            optimizer.finalize_variable_values([x])
            values[name].append(q(ops.convert_to_numpy(x)))
    return values


def figure_of(values):
    """Draw q over steps: CG and the best of NAG in colour."""
    nags = sorted((name for name in values if name != "CG"), key=lambda name: values[name][-1])
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    for i, name in enumerate(nags[1:]):
        axes.plot(values[name], color="0.8", label=None if i else "NAG, other momenta")
    for name, color in zip((nags[0], "CG"), (COLORS[1], COLORS[0])):
        axes.plot(values[name], color=color, label=name, linewidth=1.8)
    axes.set(
        xlabel="steps, one product with the curvature each",
        ylabel="q, the quadratic",
        title=f"CG needs {steps_of_cg(values)} steps for what NAG reaches in "
        f"{len(values[nags[0]]) - 1}",
    )
    axes.legend(frameon=False)
    tidy(axes)
    return figure


def steps_of_cg(values):
    """Return after how many steps CG is as low as the best of NAG at the end.

    No first-order method ends below CG, but rounding may have it so.
    """
    end = max(min(q[-1] for name, q in values.items() if name != "CG"), min(values["CG"]))
    return next(step for step, q in enumerate(values["CG"]) if q <= end)


if __name__ == "__main__":
    main()
