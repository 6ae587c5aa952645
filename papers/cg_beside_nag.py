"""Compare conjugate gradients with Nesterov's momentum on one quadratic of a run of HF.

    python -m papers.cg_beside_nag
    python -m papers.cg_beside_nag --updates 100 --output runs/figure5

This is Figure 5 of Sutskever, Martens, Dahl and Hinton (2013). HF as Martens (2010) has it, the
"HF, 2010" of `hessian_free.py`, trains the deep autoencoder of curves for some updates. The
damped quadratic of the next one,

    q(x) = g'x + x'(G + damping I) x / 2

is then minimised from zero by CG, and by NAG with several momenta: constant ones and Nesterov's
1 - 3 / (t + 5). The paper does not say which momentum and learning rate its NAG had. Here the
learning rate is 1 / L, L the largest curvature, by power iteration.

The output directory receives figure5.png and results.json, which holds:

    command   the command line
    settings  the options, the backend and the versions
    quadratic damping, the largest curvature, the training loss before and after the updates
    values    for each method, q after 0, 1, ... steps
"""

import os
import sys
from pathlib import Path

import keras
import numpy as np
from keras import ops
from matplotlib.figure import Figure
from rich import print

from keras_momentum_rnn.atomic_files import write_json
from keras_momentum_rnn.optimizers import HessianFreeModel, MomentumSGD
from keras_momentum_rnn.optimizers.conjugate_gradients import conjugate_gradients, dot
from keras_momentum_rnn.optimizers.schedules import NesterovMomentum
from papers.autoencoders import WIDTHS, deep_autoencoder
from papers.command_line import command_of, documented_parser, ending, positive, values_of
from papers.deep_autoencoders import Updates
from papers.experiments import surroundings
from papers.hessian_free import all_curves, cross_entropy, methods_of
from papers.presentation import COLORS, save_figures, tidy

CONSTANTS = (0.9, 0.95, 0.98)
POWER_STEPS = 30


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    model, losses = trained(options)
    product, gradient, told = damped_quadratic(model, options)
    values = minimised(product, gradient, told["largest_curvature"], options.steps)
    results = {
        "command": command_of(__file__, argv),
        "settings": settings(options),
        "quadratic": {**told, "loss_before": losses[0], "loss_after": losses[-1]},
        "values": values,
    }
    save_figures(options.output, {"figure5.png": figure_of(results)})
    write_json(options.output / "results.json", results)
    for method, q in values.items():
        print(f"{method}: q = {q[-1]:.5g} after {len(q) - 1} steps")
    print(f"results.json and figure5.png are in {options.output}")


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--updates", type=positive(int), default=50, help="of HF before the quadratic")
    add("--steps", type=positive(int), default=120, help="of each method; the paper: 120")
    add("--images", type=positive(int), default=5000, help="of a batch; a quarter of them in G")
    add("--seed", type=int, default=0, help="of weights and batches")
    add("--output", type=Path, default="runs/cg_beside_nag", help="for the results")
    return parser.parse_args(argv)


def settings(options):
    return {**values_of(options), **surroundings(), "load": round(os.getloadavg()[0], 2)}


def trained(options):
    """Return the autoencoder after some updates, and the losses of them."""
    keras.utils.set_random_seed(options.seed)
    method = methods_of("curves")["HF, 2010"]
    network = deep_autoencoder(WIDTHS["curves"], output="linear")
    model = HessianFreeModel(network.inputs, network.outputs)
    model.compile(method.optimizer(1.0), cross_entropy)
    losses = []
    for update in range(options.updates):
        batch = Updates(all_curves(), options.images, options.seed, update, update + 1)
        losses += model.fit(batch, shuffle=False, verbose=0).history["loss"]
    return model, losses


def damped_quadratic(model, options):
    """Return the product with G + damping I, the gradient, and what the quadratic is like."""
    ((x, y),) = Updates(
        all_curves(), options.images, options.seed, options.updates, options.updates + 1
    )
    quadratic = model.quadratic(x, y)
    damping = float(model.optimizer.damping)

    def product(v):
        return quadratic.product(v) + damping * v

    v = quadratic.gradient
    for _ in range(POWER_STEPS):
        v = product(v)
        largest = float(ops.sqrt(dot(v, v)))
        v = v / largest
    return product, quadratic.gradient, {"damping": damping, "largest_curvature": largest}


def minimised(product, gradient, largest, steps):
    """Return, for each method, the list of q after each step from zero."""
    zero = ops.zeros_like(gradient)
    values = {"CG": conjugate_gradients(product, -gradient, zero, steps).values}
    momenta = {f"NAG, momentum {mu:g}": mu for mu in CONSTANTS}
    momenta["NAG, momentum 1 - 3 / (t + 5)"] = NesterovMomentum()
    for name, momentum in momenta.items():
        optimizer = MomentumSGD(1 / largest, momentum, nesterov=True)
        values[name] = nesterov_values(optimizer, product, gradient, steps)
    return {name: np.asarray(ops.convert_to_numpy(q)).tolist() for name, q in values.items()}


def nesterov_values(optimizer, product, gradient, steps):
    """Return q at w after each step; gradients are taken at the look-ahead."""
    variable = keras.Variable(ops.zeros_like(gradient))
    values = [0.0]
    for _ in range(steps):
        optimizer.resume_variable_values([variable])
        optimizer.apply([product(ops.stop_gradient(variable.value)) + gradient], [variable])
        optimizer.finalize_variable_values([variable])
        w = ops.stop_gradient(variable.value)
        values.append(float(dot(w, gradient) + dot(w, product(w)) / 2))
    return values


def figure_of(results):
    """Draw q over steps: CG, and NAG with each momentum, the best of them in colour."""
    values = results["values"]
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    nags = sorted((name for name in values if name != "CG"), key=lambda name: values[name][-1])
    shown = {"CG": COLORS[0], nags[0]: COLORS[1]}
    for name in [*nags[1:], nags[0], "CG"]:
        label = name if name in shown else "NAG, other momenta" * (name == nags[1])
        axes.plot(
            values[name],
            color=shown.get(name, "0.8"),
            label=label or None,
            linewidth=1.8 if name in shown else 1,
        )
    axes.set(xlabel="steps, one product with the curvature each", ylabel="q, the quadratic")
    axes.set_title(title(values, nags[0], results))
    axes.legend(frameon=False)
    tidy(axes)
    return figure


def title(values, best, results):
    # No first-order method ends below CG, but for rounding.
    end = max(values[best][-1], min(values["CG"]))
    sooner = next(i for i, q in enumerate(values["CG"]) if q <= end)
    return (
        f"After {results['settings']['updates']} updates of HF: CG needs {sooner} steps for "
        f"what NAG reaches in {len(values[best]) - 1}"
    )


if __name__ == "__main__":
    with ending():
        main()
