"""Train deep autoencoders by gradient descent, classical momentum and Nesterov's.

    python -m papers.sutskever.autoencoders
    python -m papers.sutskever.autoencoders --methods SGD --learning-rates 0.05
    python -m papers.sutskever.autoencoders --methods NAG --momenta 0.9 --scales 0.25 0.5 1 2 4
    python -m papers.sutskever.autoencoders --dataset mnist --data-dir DIR --momenta 0.9

Tables 1 and 2, and with the third command Table 3, of Sutskever, Martens, Dahl and Hinton
(2013). `curves` are drawn images; tensorflow-datasets reads `mnist` from `--data-dir`, and
downloads it there if it is missing (this needs TensorFlow, on every backend).

Each method, SGD, CM and NAG, with each largest momentum, runs once for each learning rate, from
the same weights and with the same batches of 200 images. The loss is the cross-entropy.
Momentum follows the paper's equation 5 up to its largest, and is at most 0.9 in the last 1,000
updates. The paper's momentum has steps of 250 updates and its runs 750,000. In a short run
large momenta would never be reached, so there a step is a 500th of the run. A run with a NaN or
infinite loss ends there, and counts as the worst.

Errors are the paper's: squared errors summed over pixels, the mean over training images. They
are measured at w, not at the look-ahead. The output directory receives report.md, curves.png
and results.json with one entry of `runs` for each combination: method, momentum (the largest),
learning_rate, scale, updates (done), seconds (of training), diverged, before (the error before
the finish), error (at the end), both on all images, and curve, a list of [updates, error on the
first images].

If interrupted, repeat the command to resume. Methods, momenta, rates and scales may be added
later, and join the results; other settings may not change.
"""

import itertools
import math
import time
from functools import partial
from pathlib import Path

import keras

from keras_momentum_rnn.optimizers import MomentumSGD
from keras_momentum_rnn.optimizers.schedules import LowMomentumFinish, SteppedMomentum
from papers.command_line import documented_parser, folder, positive, publish, run_example
from papers.experiments import runner, surroundings
from papers.experiments.report import notes
from papers.experiments.results_file import ResultsFile
from papers.sutskever.autoencoders_report import figures_of, report_of
from papers.sutskever.curves import (
    IMAGES,
    WIDTHS,
    cross_entropy,
    curves,
    deep_autoencoder,
    squared_error,
    updates_of,
)
from papers.tasks.files import read_tfds

METHODS = ["SGD", "CM", "NAG"]
BATCH_SIZE = 200
FINISH = 1000
EVERY = 250
CURVE_IMAGES = 5000
SEED = 0
# What identifies a run.
KEY = ("method", "momentum", "learning_rate", "scale")


def main(argv=None):
    return run_example(__file__, argv, parse, compare)


def compare(options, command):
    results = ResultsFile(
        folder=options.output,
        settings=shared_settings(options),
        command=command,
        key=KEY,
        done=lambda run: run["updates"],
    )
    images = load(options)
    results.write()
    runner.finish(
        [(run, options.updates) for run in combinations(options)],
        results,
        partial(train, images, results.settings),
        whole=lambda run: options.updates,
        label=results.name,
        sentence=lambda run: "diverged" if run["diverged"] else f"error {run['error']:.3g}",
        unit="update",
    )
    report = report_of(results.content, notes(options.output))
    publish(options.output, report, figures_of(results.content))
    return results.content


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--dataset", choices=list(WIDTHS), default="curves", help="what to reconstruct")
    add("--data-dir", type=folder, help="where tensorflow-datasets keeps mnist")
    add("--methods", nargs="+", choices=METHODS, default=METHODS, help="what to compare")
    add("--momenta", nargs="+", type=float, default=[0.9, 0.99, 0.999], help="the largest")
    add("--learning-rates", nargs="+", type=positive(float), default=[0.01], help="to try")
    add("--scales", nargs="+", type=positive(float), default=[1.0], help="of initial weights")
    add("--updates", type=positive(int), default=5000, help="of each run")
    add("--output", type=Path, help="for the results; default: runs/autoencoders/DATASET")
    options = parser.parse_args(argv)
    if not all(0 < momentum < 1 for momentum in options.momenta):
        parser.error(f"argument --momenta: must lie in (0, 1). Received: {options.momenta}")
    if options.updates <= FINISH:
        parser.error(
            f"argument --updates: must exceed the finish, {FINISH}. Received: {options.updates}"
        )
    options.output = options.output or Path("runs/autoencoders") / options.dataset
    return options


def shared_settings(options):
    """Return what must be equal for runs to be compared."""
    return {
        "dataset": options.dataset,
        "images": IMAGES[options.dataset],
        "updates": options.updates,
        "period": max(1, min(250, options.updates // 500)),
        "finish": FINISH,
        "every": EVERY,
        "batch_size": BATCH_SIZE,
        "seed": SEED,
        **surroundings(),
    }


def load(options):
    """Return the images, (images, pixels) in float32."""
    count = IMAGES[options.dataset]
    if options.dataset == "curves":
        return curves(count)
    (data,) = read_tfds("mnist", [f"train[:{count}]"], options.data_dir)
    return data["image"].reshape(count, -1).astype("float32") / 255


def combinations(options):
    """Return the runs, not yet begun."""
    begun = {"updates": 0, "seconds": 0.0, "diverged": False, "before": None, "error": None}
    rows = itertools.product(
        options.methods, options.momenta, options.learning_rates, options.scales
    )
    rows = [
        (method, 0.0 if method == "SGD" else momentum, *row) for method, momentum, *row in rows
    ]
    return [{**dict(zip(KEY, row)), **begun, "curve": []} for row in dict.fromkeys(rows)]


def train(images, settings, run, until, folder, after):
    """Train one run to its end, from point to point of its curve."""
    keras.utils.set_random_seed(settings["seed"])
    model = new_model(settings, run)
    runner.resumed(
        run,
        model,
        part=lambda: to_next_point(run, model, settings, images),
        ended=lambda: run["diverged"] or run["updates"] == until,
        folder=folder,
        settings=settings,
        after=after,
    )


def new_model(settings, run):
    model = deep_autoencoder(WIDTHS[settings["dataset"]], run["scale"])
    momentum = run["momentum"]
    if momentum:
        momentum = SteppedMomentum(momentum, settings["period"])
        momentum = LowMomentumFinish(
            momentum, settings["updates"], finish_steps=settings["finish"]
        )
    optimizer = MomentumSGD(run["learning_rate"], momentum, nesterov=run["method"] == "NAG")
    model.compile(optimizer, cross_entropy)
    optimizer.build(model.trainable_variables)
    return model


def to_next_point(run, model, settings, images):
    """Train until the next point of the curve, and note it in the run."""
    first, whole = run["updates"], settings["updates"]
    low = whole - settings["finish"]
    if not run["curve"]:
        run["curve"].append([0, squared_error(model, images[:CURVE_IMAGES])])
    last = min(end for end in (low, whole, first + settings["every"]) if end > first)
    start = time.perf_counter()
    model.optimizer.resume_variable_values(model.trainable_variables)
    batches = updates_of(images, settings["batch_size"], settings["seed"], first, last)
    fit = model.fit(batches, shuffle=False, verbose=0)
    run["seconds"] += time.perf_counter() - start
    run["updates"] = last
    error = squared_error(model, images[:CURVE_IMAGES])
    run["diverged"] = not math.isfinite(fit.history["loss"][0] + error)
    if not run["diverged"]:
        run["curve"].append([last, error])
        if last in (low, whole):
            run["before" if last == low else "error"] = squared_error(model, images)


if __name__ == "__main__":
    main()
