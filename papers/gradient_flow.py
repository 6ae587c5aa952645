"""Do gradients vanish with momentum? |dL/dh_t| over time and training: the paper's Figure 2.

    python -m papers.gradient_flow
    python -m papers.gradient_flow --recurrent-scale 0.5 --output runs/vanishing

Reads the 8x8 digits of scikit-learn pixel by pixel in a fixed random order, 64 steps, with
pixels -> layer(units) -> Dense(10). Each layer sees the same batches. At the start, and at even
intervals in training, `keras_momentum_rnn.diagnostics.gradient_norms` measures the norm of the
gradient of the loss by h_t at each step t, on one fixed batch that is not trained on. U starts
orthogonal, as in Keras; with `--recurrent-scale` below 1 its gradients vanish at the start.

The output directory receives start_and_end.png, training.png, report.md and results.json:

    command       the command line
    settings      options, backend, versions
    iterations    the updates after which norms were measured
    norms         for each layer an array (iterations, time)
    accuracy      for each layer, of the measured batch at the end
    factor_error  for each layer with h = tanh(... + h U), how far the norms at the end are from
                  those of the product of the matrices D U alone (relative; null elsewhere)
"""

import sys
from pathlib import Path

import keras
import numpy as np
from rich import print

import keras_momentum_rnn
from keras_momentum_rnn.atomic_files import write_json
from keras_momentum_rnn.diagnostics import gradient_norms, memory_map, plot_gradient_norms
from keras_momentum_rnn.layers.registry import ready_layers
from papers import tasks
from papers.command_line import (
    command_of,
    documented_parser,
    ending,
    new_folder,
    positive,
    publish,
    values_of,
)
from papers.experiments import progress_bar, surroundings
from papers.presentation import markdown_table

LAYERS = ["SimpleRNN", "MomentumRNN", "DTRIV", "MomentumDTRIV"]
CLIPNORM = 1.0
VANISHED = 1e-2  # first step's gradient over the last's
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    digits = tasks.load("digits", permute=True)
    held_in = (digits.train, digits.validation)
    train_set = [np.concatenate(part) for part in zip(*((s.x, s.y) for s in held_in))]
    measured = digits.test[: options.measured]
    batch = [measured.x, measured.y]
    iterations = np.unique(np.linspace(0, options.updates, options.measurements).astype(int))
    results = {
        "command": command_of(__file__, argv),
        "settings": settings(options),
        "iterations": iterations.tolist(),
        "norms": {},
        "accuracy": {},
        "factor_error": {},
    }
    with progress_bar("update") as progress:
        task = progress.add_task("", total=options.updates * len(options.layers))
        for name in options.layers:
            progress.update(task, description=name)
            model = compiled_model(options, name)
            results["norms"][name] = train(
                model, train_set, batch, iterations, options, lambda: progress.advance(task)
            )
            results["accuracy"][name] = accuracy(model, *batch)
            results["factor_error"][name] = factor_error(model, *batch)
    write(options.output, results)
    print(f"start_and_end.png, training.png, results.json and report.md: {options.output}")


def parse(argv):
    parser = documented_parser(__doc__)
    add, known = parser.add_argument, ready_layers()
    default = [name for name in LAYERS if name in known]
    add("--layers", nargs="+", choices=known, default=default, help="what to compare")
    add("--units", type=positive(int), default=170, help="width of each layer")
    add("--updates", type=positive(int), default=300, help="training steps")
    add("--measurements", type=positive(int), default=31, help="how often to measure")
    add("--measured", type=positive(int), default=128, help="images in the measured batch")
    add("--batch-size", type=positive(int), default=64, help="images per update")
    add("--learning-rate", type=positive(float), default=1e-3, help="of RMSprop")
    add("--recurrent-scale", type=positive(float), default=1.0, help="of U at the start")
    add("--seed", type=int, default=0, help="of weights and batches")
    add("--output", type=new_folder, default=Path("runs/gradient_flow"), help="for the results")
    options = parser.parse_args(argv)
    options.layers = list(dict.fromkeys(options.layers))
    if options.measurements < 2:
        parser.error(
            f"argument --measurements: must be at least 2. Received: {options.measurements}"
        )
    return options


def settings(options):
    return {
        **values_of(options),
        "optimizer": f"RMSprop, clipnorm {CLIPNORM}",
        **surroundings(),
    }


def compiled_model(options, name):
    keras.utils.clear_session()
    keras.utils.set_random_seed(options.seed)
    layer = ready_layers()[name](options.units, name="recurrent")
    model = keras.Sequential([keras.Input((64, 1)), layer, keras.layers.Dense(10)])
    for weight in layer.trainable_weights:
        if weight.name == "recurrent_kernel":
            weight.assign(options.recurrent_scale * weight)
    optimizer = keras.optimizers.RMSprop(options.learning_rate, clipnorm=CLIPNORM)
    model.compile(optimizer, loss=LOSS)
    return model


def train(model, train_set, batch, iterations, options, after_update):
    """Return the norms, a list (iterations, time), measured between the updates."""
    images, labels = train_set
    rng = np.random.default_rng(options.seed)
    norms = []
    for update in range(options.updates + 1):
        if update in iterations:
            norms.append(gradient_norms(model, *batch, "recurrent").tolist())
        if update < options.updates:
            chosen = rng.choice(len(images), options.batch_size, replace=False)
            model.train_on_batch(images[chosen], labels[chosen])
            after_update()
    return norms


def accuracy(model, images, labels):
    return float(np.mean(model.predict(images, verbose=0).argmax(axis=1) == labels))


def factor_error(model, images, labels):
    """Compare the norms with those of the product of D U alone, or return None.

    For h_{t+1} = tanh(g_{t+1} + h_t U), dL/dh_t = U D_{t+1} dL/dh_{t+1}, D the diagonal of
    1 - h^2, for any drive g that does not depend on h.
    """
    layer, readout = model.layers
    if not isinstance(layer, keras.layers.SimpleRNN | keras_momentum_rnn.RuleRNN):
        return None
    h = memory_map(layer, images)["h"].astype("float64")
    recurrent, kernel, bias = (
        np.asarray(keras.ops.convert_to_numpy(w), "float64")
        for w in (layer.cell.recurrent_kernel, *readout.weights)
    )
    logits = h[:, -1] @ kernel + bias
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = exponentials / exponentials.sum(axis=1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1
    gradient = error @ kernel.T / len(labels)
    norms = [np.linalg.norm(gradient)]
    for t in reversed(range(1, h.shape[1])):
        gradient = (gradient * (1 - h[:, t] ** 2)) @ recurrent.T
        norms.append(np.linalg.norm(gradient))
    measured = gradient_norms(model, images, labels, layer)
    return float(np.max(np.abs(norms[::-1] / measured - 1)))


def write(output, results):
    output.mkdir(parents=True, exist_ok=True)
    norms = {name: np.array(values) for name, values in results["norms"].items()}
    last = results["iterations"][-1]
    curves = {f"{name}, start": values[0] for name, values in norms.items()}
    curves |= {f"{name}, {last} updates": values[-1] for name, values in norms.items()}
    figures = {
        "start_and_end.png": plot_gradient_norms(curves, title=finding(norms, last)),
        "training.png": plot_gradient_norms(
            norms,
            results["iterations"],
            title=finding(norms, last),
        ),
    }
    write_json(output / "results.json", results)
    publish(output, report(results), figures)


def finding(norms, updates):
    """Return in which layers gradients vanish, at the start and at the end."""
    lost = [
        [name for name, v in norms.items() if v[i][0] / v[i][-1] < VANISHED] for i in (0, -1)
    ]
    start, end = (", ".join(names) or "no layer" for names in lost)
    return f"Gradients vanish at the start in {start},\nafter {updates} updates in {end}"


def report(results):
    """Return the findings and their reasons in Markdown."""
    last = results["iterations"][-1]
    rows = []
    for name, values in results["norms"].items():
        for label, norms in (("start", values[0]), (f"{last} updates", values[-1])):
            ratio = norms[0] / norms[-1]
            factor = ratio ** (1 / (len(norms) - 1))
            numbers = [f"{n:.2e}" for n in (norms[-1], norms[0], ratio)]
            rows.append([name, label, *numbers, f"{factor:.3f}"])
    checks = [
        f"- {name}: the product of the matrices D U alone, computed apart from the states, "
        f"gives these norms at the end to a relative {error:.0e}."
        for name, error in results["factor_error"].items()
        if error is not None
    ]
    scores = ", ".join(f"{name} {score:.3f}" for name, score in results["accuracy"].items())
    steps = len(norms)
    return REPORT.format(
        command=results["command"],
        table=markdown_table(HEAD, rows),
        checks="\n".join(checks),
        scores=scores,
        last_step=steps - 1,
        updates=last,
        scale=results["settings"]["recurrent_scale"],
        vanished=VANISHED,
        conclusion=conclusion(results["norms"]),
        floor=0.6 ** (steps - 1),
    )


def conclusion(norms):
    """Say for each plain layer and its momentum layer in which of them gradients vanish."""
    lines = []
    for plain, momentum in (("SimpleRNN", "MomentumRNN"), ("DTRIV", "MomentumDTRIV")):
        if plain not in norms or momentum not in norms:
            continue
        for moment, index in (("At the start", 0), ("After training", -1)):
            ratios = {
                name: norms[name][index][0] / norms[name][index][-1]
                for name in (plain, momentum)
            }
            vanish = [name for name, ratio in ratios.items() if ratio < VANISHED]
            verdict = (
                "vanish in neither",
                f"vanish in {''.join(vanish[:1])} alone",
                "vanish in both",
            )
            lines.append(
                f"- {moment} gradients {verdict[len(vanish)]}: the first step has "
                f"{ratios[plain]:.1e} of the last step's in {plain} and "
                f"{ratios[momentum]:.1e} in {momentum}."
            )
    return "\n".join(lines)


HEAD = ["layer", "when", "last step", "first step", "first / last", "factor per step"]
REPORT = """# Gradients over time, with and without momentum

`{command}`

Norm of dL/dh_t, over the measured batch and the units, at the last step, t = {last_step}, at
the first, their ratio, and the mean factor by which each step back in time multiplies it:

{table}

Accuracy on the measured images after {updates} updates: {scores}.
The recurrent matrix starts as {scale} times an orthogonal one.

## Do gradients vanish?

We say that gradients vanish if the first step has less than {vanished} of the last step's.

{conclusion}

## Why

The velocity v depends on the inputs alone: dv/dh = 0. So, by backpropagation,
dh_(t+1)/dh_t = D U in the momentum cell as in the plain one, D the diagonal of the activation's
derivative, and momentum adds no path for the gradient by h. It changes these gradients only
through D, since other states h saturate the activation to another degree, and through the
weights that training finds.

{checks}

The paper's equation 13 has another factor, D [U + momentum Sigma]. It comes from rewriting
equation 9 as equation 12, where h_(t-1) and h_(t-2) stand for the velocity: its derivative by
h_t moves v_t along with h_t, and leaves out that h_(t+2) depends on h_t a second time. That is
not the derivative that backpropagation through equation 9 takes, and not what is drawn here.
The paper's own Figure 2, says its appendix A.5, was measured on DTRIV and MomentumDTRIV.

What momentum does add is a path from the inputs: the gradient by what step t brings, u_t, is
step_size times the sum over k >= t of momentum^(k-t) D_k dL/dh_k. Its term k = T does not pass
through U. It has the factor momentum^(T-t), which over the whole sequence is {floor:.0e} at the
default momentum of 0.6.
"""


if __name__ == "__main__":
    with ending("Interrupted. Nothing was written."):
        main()
