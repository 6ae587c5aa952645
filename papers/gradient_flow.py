"""Do gradients vanish with momentum? The norm of dL/dh_t over time and training.

    python -m papers.gradient_flow

After Figure 2 of Nguyen et al. (2020), which has DTRIV of 170 units on permuted MNIST; here
SimpleRNN reads smaller images: the 8x8 digits of scikit-learn, pixel by pixel in a fixed random
order, 64 steps, with pixels -> layer(units) -> Dense(10). Each layer sees the same batches. At
the start, and at even intervals in training, `keras_momentum_rnn.diagnostics.gradient_norms`
measures the norm of the gradient of the loss by h_t at each step t, on one fixed batch that is
not trained on. The recurrent matrix starts as half an orthogonal one, so that gradients vanish
at the start.

Writes report.md, norms.png and results.json, which has `iterations`, the updates after which
norms were measured, `norms`, for each layer an array (iterations, time), and `accuracy`, for
each layer, of the measured batch at the end.
"""

from pathlib import Path

import keras
import numpy as np

from keras_momentum_rnn.diagnostics import gradient_norms
from keras_momentum_rnn.layers.registry import ready_layers
from papers import single_study, tasks
from papers.command_line import documented_parser, positive
from papers.diagnostic_plots import plot_gradient_norms
from papers.experiments import progress_bar
from papers.presentation import markdown_table
from papers.tasks.recipe_tables import pytorch_rmsprop

BATCH_SIZE = 64
MEASURED = 128
SEED = 0
# Gradients vanish where the first step has less of them than this share of the last step's.
VANISHED = 1e-2


def main(argv=None):
    parser, layers = documented_parser(__doc__), list(ready_layers())
    add, default = parser.add_argument, ["SimpleRNN", "MomentumRNN"]
    add("--layers", nargs="+", choices=layers, default=default, help="what to compare")
    add("--units", type=positive(int), default=170, help="width of each layer")
    add("--updates", type=positive(int), default=300, help="training steps")
    add("--measurements", type=positive(int), default=31, help="how often to measure")
    add("--recurrent-scale", type=positive(float), default=0.5, help="of U at the start")
    add("--output", type=Path, default=Path("runs/gradient_flow"), help="for the results")
    return single_study.run(__file__, argv, parser, study)


def study(options):
    digits = tasks.load("digits", permute=True)
    images, labels = (
        np.concatenate([getattr(split, name) for split in (digits.train, digits.validation)])
        for name in ("x", "y")
    )
    measured = digits.test[:MEASURED]
    iterations = np.unique(np.linspace(0, options.updates, options.measurements).astype(int))
    norms, accuracy = {}, {}
    with progress_bar("update") as progress:
        bar = progress.add_task("", total=options.updates * len(options.layers))
        for name in options.layers:
            progress.update(bar, description=name)
            model, norms[name] = new_model(options, name), []
            rng = np.random.default_rng(SEED)
            for update in range(options.updates + 1):
                if update in iterations:
                    found = gradient_norms(model, measured.x, measured.y, "recurrent")
                    norms[name].append(found.tolist())
                if update < options.updates:
                    batch = rng.choice(len(images), BATCH_SIZE, replace=False)
                    model.train_on_batch(images[batch], labels[batch])
                    progress.advance(bar)
            _, accuracy[name] = model.evaluate(measured.x, measured.y, verbose=0)
    results = {"iterations": iterations.tolist(), "norms": norms, "accuracy": accuracy}
    return results, text_of(results), {"norms.png": figure_of(results)}


def new_model(options, name):
    keras.utils.clear_session()
    keras.utils.set_random_seed(SEED)
    layer = ready_layers()[name](options.units, name="recurrent")
    model = keras.Sequential([keras.Input((64, 1)), layer, keras.layers.Dense(10)])
    for weight in layer.trainable_weights:
        if weight.name == "recurrent_kernel":
            weight.assign(options.recurrent_scale * weight)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.RMSprop(1e-3, global_clipnorm=1.0, **pytorch_rmsprop(rho=0.9))
    model.compile(optimizer, loss, metrics=["accuracy"])
    return model


def text_of(results):
    """Return the norms of the first and last step, at the start and at the end, in Markdown."""
    cells = []
    for name, norms in results["norms"].items():
        for update, values in ((0, norms[0]), (results["iterations"][-1], norms[-1])):
            ratio = values[0] / values[-1]
            cells.append(
                [
                    name,
                    f"{update}",
                    f"{values[-1]:.2e}",
                    f"{values[0]:.2e}",
                    f"{ratio:.1e}",
                    f"{ratio ** (1 / (len(values) - 1)):.3f}",
                    "yes" if ratio < VANISHED else "no",
                ]
            )
    head = ["layer", "updates", "last step", "first step", "first / last", "factor per step"]
    scores = ", ".join(f"{name} {score:.3f}" for name, score in results["accuracy"].items())
    return (
        "The norm of dL/dh_t, over the measured batch and the units, at the last and the first "
        "step, their ratio, and the mean factor by which each step back in time multiplies it. "
        f"We say that gradients vanish if the ratio is below {VANISHED}.\n\n"
        f"{markdown_table([*head, 'vanish'], cells)}\n\n"
        f"Accuracy on the measured images at the end: {scores}."
    )


def figure_of(results):
    """Draw the norms over time, of each layer at the start and at the end."""
    last, curves = results["iterations"][-1], {}
    for name, norms in results["norms"].items():
        curves[f"{name}, start"] = np.array(norms[0])
        curves[f"{name}, {last} updates"] = np.array(norms[-1])
    return plot_gradient_norms(curves, title="How much of the gradient reaches each step")


if __name__ == "__main__":
    main()
