"""Train deep autoencoders by gradient descent, classical momentum and Nesterov's.

    python -m papers.deep_autoencoders
    python -m papers.deep_autoencoders --dataset mnist --data-dir data --output runs/mnist
    python -m papers.deep_autoencoders --methods NAG --momenta 0.9 --scales 0.25 0.5 1 2 4

The experiments of Sutskever, Martens, Dahl and Hinton (2013), section 3. `curves`, the default,
are drawn images; `mnist` is read by tensorflow-datasets from `--data-dir`, and
downloaded there if it is missing (this needs TensorFlow, on every backend);
`faces` are read from `--data`: a .npy file with an array (images, 625), or the .mat file of
Hinton and Salakhutdinov (2006), whose first 103,500 images are used.

Each method, SGD, CM and NAG, with each largest momentum, runs once for each learning rate, from
the same weights and with the same batches. Momentum follows the paper's equation 5 up to its
largest, and is at most 0.9 in the last updates (`--finish`). The paper's equation has steps of
250 updates and its runs 750,000. In a short run large momenta would never be reached, so
`--period` is shorter. Two momenta that are both out of reach would give the same run, and are
refused. A run with a NaN or infinite loss ends there, and counts as the worst.

Errors are the paper's: squared errors summed over pixels, the mean over training images. They
are measured at w, not at the look-ahead. The output directory receives report.md, which has
the tables beside the paper's, curves.png, scales.png where there are several, and results.json,
which holds:

    commands  the command lines that made the runs, of the paths of data their last part
    settings  what all runs share: the options, the backend, its device, the versions
    runs      one for each combination: method, momentum (the largest), learning_rate, scale,
              updates (done), seconds (of training), diverged, before (the error before the
              finish), error (at the end), both on all images, and curve, a list of [updates,
              error on the first images]

After an interruption the same command resumes from the last point of a curve. Methods, momenta,
rates and scales may be added later, and join the results; other settings may not change. A file
notes.md in the output directory becomes part of the report.
"""

import itertools
import math
import sys
import time
from functools import partial
from pathlib import Path

import keras
import numpy as np

from keras_momentum_rnn.optimizers import MomentumSGD
from keras_momentum_rnn.optimizers.schedules import LowMomentumFinish, SteppedMomentum
from papers.autoencoder_report import figures_of, number_of, reached, report_of
from papers.autoencoders import WIDTHS, cross_entropy, curves, deep_autoencoder, squared_error
from papers.command_line import command_of, documented_parser, ending, folder, positive, publish
from papers.experiments import runner, surroundings
from papers.experiments.report import notes
from papers.experiments.results_file import ResultsFile
from papers.tasks.files import read_tfds

METHODS = ["SGD", "CM", "NAG"]
MOMENTA = [0.9, 0.99, 0.995, 0.999]
RATES = [0.05, 0.01, 0.005, 0.001, 0.0005, 0.0001]
LOSSES = {"cross-entropy": cross_entropy, "squared": squared_error}
IMAGES = {"curves": 20_000, "mnist": 60_000, "faces": 103_500}
CURVE_IMAGES = 5000
EVALUATION_BATCH = 1000
# What identifies a run.
KEY = ("method", "momentum", "learning_rate", "scale")


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    results = ResultsFile(
        folder=options.output,
        settings=shared_settings(options),
        command=command(argv, options),
        key=KEY,
        done=lambda run: run["updates"],
        complete=completed,
    )
    images = load(options)
    results.write()
    runner.finish(
        [(run, options.updates) for run in combinations(options)],
        results,
        partial(train, options, images, results.settings),
        whole=lambda run: options.updates,
        label=results.name,
        sentence=lambda run: f"error {number_of(run['error'])}",
        unit="update",
    )
    report = report_of(results.content, notes(options.output))
    publish(options.output, report, figures_of(results.content))


def completed(results):
    """Return all that results.json holds: runs stand as in Table 1, then by rate and scale."""

    def place(run):
        method = METHODS.index(run["method"])
        return method, run["momentum"], -run["learning_rate"], run["scale"]

    ordered = {name: results[name] for name in ("commands", "settings")}
    return {**ordered, "runs": sorted(results["runs"], key=place)}


def command(argv, options):
    """Return the command line, of the paths of data their last part alone."""
    paths = [path for path in (options.data_dir, options.data) if path is not None]
    shown = list(argv)
    for path in paths:
        shown = [argument.replace(str(path), path.name) for argument in shown]
    return command_of(__file__, shown)


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--dataset", choices=list(WIDTHS), default="curves", help="what to reconstruct")
    add("--data-dir", type=folder, help="where tensorflow-datasets keeps mnist")
    add("--data", type=Path, help="the file of faces, .npy or .mat")
    add("--images", type=positive(int), help="how many to use, the first ones; default: all")
    add("--methods", nargs="+", choices=METHODS, default=METHODS, help="what to compare")
    add("--momenta", nargs="+", type=positive(float), default=MOMENTA, help="the largest")
    add("--learning-rates", nargs="+", type=positive(float), default=RATES, help="to try")
    add("--scales", nargs="+", type=positive(float), default=[1.0], help="of initial weights")
    add("--loss", choices=list(LOSSES), default="squared", help="what is minimised")
    add("--code", choices=["sigmoid", "linear"], default="sigmoid", help="units of the code")
    add("--updates", type=positive(int), default=5000, help="of each run")
    add("--period", type=positive(int), help="updates between steps of momentum; default: the "
        "paper's 250, but no more than a 500th of --updates")  # fmt: skip
    add("--finish", type=positive(int), default=1000, help="last updates, of low momentum")
    add("--every", type=positive(int), default=250, help="updates between points of a curve")
    add("--batch-size", type=positive(int), default=200, help="images per update")
    add("--seed", type=int, default=0, help="of weights and batches")
    add("--output", type=Path, default="runs/deep_autoencoders", help="for the results")
    options = parser.parse_args(argv)
    if max(options.momenta) >= 1:
        parser.error(f"argument --momenta: must lie in (0, 1). Received: {options.momenta}")
    if options.finish >= options.updates:
        parser.error(
            f"argument --finish: must be less than --updates, {options.updates}. "
            f"Received: {options.finish}"
        )
    options.period = options.period or max(1, min(250, options.updates // 500))
    check_momenta(parser, options)
    if (options.dataset == "faces") != (options.data is not None):
        parser.error(f"argument --data: is for faces, which need it. Received: {options.data}")
    if options.data and not options.data.is_file():
        parser.error(f"argument --data: must be an existing file. Received: {options.data}")
    if options.dataset == "faces" and options.loss != "squared":
        parser.error(f"argument --loss: must be squared for faces. Received: {options.loss}")
    options.images = options.images or IMAGES[options.dataset]
    if not options.batch_size <= options.images <= IMAGES[options.dataset]:
        parser.error(
            f"argument --images: must lie in [{options.batch_size}, "
            f"{IMAGES[options.dataset]}], from one batch to all. Received: {options.images}"
        )
    return options


def check_momenta(parser, options):
    """End where two of the largest momenta would be one run, as neither is reached."""
    most = reached(vars(options))
    beyond = sorted({momentum for momentum in options.momenta if momentum > most})
    if len(beyond) > 1 and options.methods != ["SGD"]:
        parser.error(
            f"argument --period: must be so short that momentum comes to {beyond[-2]:g} before "
            f"the finish; it comes to {most:.5g}. Received: {options.period}"
        )


def shared_settings(options):
    """Return what must be equal for runs to be compared."""
    names = ["dataset", "images", "loss", "code", "updates", "period", "finish", "every"]
    told = {name: getattr(options, name) for name in [*names, "batch_size", "seed"]}
    return {**told, **surroundings()}


def load(options):
    """Return the images, (images, pixels) in float32."""
    if options.dataset == "curves":
        return curves(options.images)
    if options.dataset == "mnist":
        (data,) = read_tfds("mnist", [f"train[:{options.images}]"], options.data_dir)
        return data["image"].reshape(options.images, -1).astype("float32") / 255
    images = read_faces(options.data)
    if len(images) < options.images:
        raise ValueError(
            f"{options.data} must hold as many images as --images names, {options.images}. "
            f"Received: {len(images)} images"
        )
    return images[: options.images]


def read_faces(path):
    """Return the array (images, 625) in a file."""
    if path.suffix == ".npy":
        arrays = [np.load(path)]
    else:
        from scipy.io import loadmat

        arrays = [v.T for v in loadmat(path).values() if np.shape(v)[:1] == (625,)]
    arrays = [array for array in arrays if array.ndim == 2 and array.shape[1] == 625]
    if len(arrays) != 1:
        sys.exit(f"{path} must hold one array of images with 625 pixels each, and no more")
    return arrays[0].astype("float32")


class Updates(keras.utils.PyDataset):
    """The batches of some updates: every pass over the images has its own order."""

    def __init__(self, images, batch_size, seed, first, last):
        super().__init__()
        self.images, self.batch_size, self.seed = images, batch_size, seed
        self.numbers = range(first, last)

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        batches = len(self.images) // self.batch_size
        epoch, batch = divmod(self.numbers[index], batches)
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.images))
        x = self.images[order[batch * self.batch_size :][: self.batch_size]]
        return x, x


def combinations(options):
    """Return the runs, not yet begun."""
    momenta = {method: [0.0] if method == "SGD" else options.momenta for method in METHODS}
    begun = {"updates": 0, "seconds": 0.0, "diverged": False, "before": None, "error": None}
    return [
        {
            "method": method,
            "momentum": momentum,
            "learning_rate": rate,
            "scale": scale,
            **begun,
            "curve": [],
        }
        for method in options.methods
        for momentum, rate, scale in itertools.product(
            momenta[method], options.learning_rates, options.scales
        )
    ]


def train(options, images, settings, run, until, folder, after):
    """Train one run to its end, from point to point of its curve."""
    keras.utils.set_random_seed(options.seed)
    model = new_model(options, run)
    runner.resumed(
        run,
        model,
        part=lambda: to_next_point(run, model, options, images),
        ended=lambda: run["diverged"] or run["updates"] == until,
        folder=folder,
        settings=settings,
        after=after,
    )


def to_next_point(run, model, options, images):
    """Train until the next point of the curve, and note it in the run."""
    first, low = run["updates"], options.updates - options.finish
    if not run["curve"]:
        run["curve"].append([0, error_of(model, images[:CURVE_IMAGES])])
    ends = [low if first < low else options.updates, first + options.every]
    last = min(end for end in ends if end > first)
    start = time.perf_counter()
    model.optimizer.resume_variable_values(model.trainable_variables)
    batches = Updates(images, options.batch_size, options.seed, first, last)
    fit = model.fit(batches, shuffle=False, verbose=0)
    run["seconds"] += time.perf_counter() - start
    run["updates"] = last
    error = error_of(model, images[:CURVE_IMAGES])
    run["diverged"] = not math.isfinite(fit.history["loss"][0] + error)
    if not run["diverged"]:
        run["curve"].append([last, error])
        if last in (low, options.updates):
            run["before" if last == low else "error"] = error_of(model, images)


def new_model(options, run):
    output = "linear" if options.dataset == "faces" else "sigmoid"
    model = deep_autoencoder(WIDTHS[options.dataset], run["scale"], options.code, output)
    momentum = 0.0
    if run["momentum"]:
        momentum = SteppedMomentum(run["momentum"], options.period)
        momentum = LowMomentumFinish(momentum, options.updates, finish_steps=options.finish)
    optimizer = MomentumSGD(run["learning_rate"], momentum, nesterov=run["method"] == "NAG")
    model.compile(optimizer, LOSSES[options.loss])
    optimizer.build(model.trainable_variables)
    return model


def error_of(model, images):
    """Return the squared error summed over pixels, the mean over images."""
    total = 0.0
    for start in range(0, len(images), EVALUATION_BATCH):
        x = images[start : start + EVALUATION_BATCH]
        total += float(np.sum((model.predict_on_batch(x) - x) ** 2, dtype="float64"))
    return total / len(images)


if __name__ == "__main__":
    with ending():
        main()
