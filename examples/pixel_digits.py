"""Classify handwritten digits that are read one pixel at a time: LSTM beside our layers.

    python examples/pixel_digits.py
    python examples/pixel_digits.py --permute --seeds 3 --output runs/permuted
    python examples/pixel_digits.py --dataset mnist --subset 3000 --output runs/mnist

`digits`, the default, is the set of 8x8 images that scikit-learn bundles: 64 steps, nothing to
download. `mnist` has 784 steps; tensorflow-datasets reads it from `--data-dir` and downloads
it there if it is missing (for which it needs TensorFlow, whichever backend trains; on PyTorch
keras.layers.LSTM is very slow at that length). With `--permute` the pixels of every image come
in one fixed random order.

All layers are treated alike. Each stands in the same model, pixels -> layer(units) ->
Dense(10), with its library defaults; each has the same optimizer, the same number of updates
and, for one seed, the same batches in the same order. The last sixth of the training images is
held out for validation: it gives the curves, the epoch at which a layer reaches the LSTM's
best, and the best model, that of the run which ends highest. The test images are used once per
run, after its last epoch.

The output directory receives curves.png, best.keras and results.json, which holds:

    command   the command line
    settings  what all runs share: the options, the backend, its device, the versions
    summary   one row for each layer: layer, parameters (of the model), test_accuracy (mean over
              seeds), test_accuracy_range, best_validation_accuracy (of the mean curve),
              epochs_to_lstm_best (of the mean curve; null: it does not get there, or no LSTM
              ran), seconds_per_epoch (median, training alone)
    best      layer, seed and test_accuracy of best.keras
    runs      one for each layer and seed: layer, seed, parameters, test_accuracy and curve,
              which has for each epoch loss, accuracy, validation_accuracy and seconds

After an interruption the same command goes on from the last finished epoch, with what it finds
in the output's folder `runs`. Layers and seeds may be added later; other settings may not
change.
"""

import argparse
import contextlib
import itertools
import json
import math
import os
import shlex
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import keras
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from rich import print
from rich import progress as bars
from rich.table import Table

import keras_momentum_rnn

LAYERS = ["LSTM", "MomentumLSTM", "NAGLSTM", "SRLSTM", "AdamLSTM", "RMSPropLSTM"]
TRAINING_IMAGES = {"digits": 1437, "mnist": 60000}
VALIDATION_SHARE = 6
PERMUTATION_SEED = 0
CLIPNORM = 1.0
EVALUATION_BATCH = 500
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]  # Okabe and Ito


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    settings = shared_settings(options)
    claim(options.output / "runs", settings)
    runs = train_all(options, load(options))
    best = max(runs, key=lambda run: run["curve"][-1]["validation_accuracy"])
    results = {
        "command": shlex.join(["python", "examples/pixel_digits.py", *argv]),
        "settings": settings,
        "summary": summarise(runs),
        "best": {name: best[name] for name in ("layer", "seed", "test_accuracy")},
        "runs": runs,
    }
    with replaced(options.output / "best.keras") as path:
        shutil.copyfile(options.output / "runs" / checkpoint_name(best), path)
    with replaced(options.output / "curves.png") as path:
        curves_figure(runs, title(options)).savefig(path, dpi=120)
    write_json(options.output / "results.json", results)
    print(results_table(results["summary"], title(options)))
    print(f"results.json, curves.png and best.keras are in {options.output}")


def parse(argv):
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add, known = parser.add_argument, available_layers()
    add("--dataset", choices=list(TRAINING_IMAGES), default="digits", help="what to read")
    add("--data-dir", type=folder, help="where tensorflow-datasets keeps mnist")
    add("--subset", type=positive(int), help="how many training images to use, the first ones")
    add("--permute", action="store_true", help="read the pixels in one fixed random order")
    add("--layers", nargs="+", choices=known, default=LAYERS, help="what to compare")
    add("--units", type=positive(int), default=32, help="width of each layer")
    add("--epochs", type=positive(int), default=15, help="passes over the training images")
    add("--seeds", type=positive(int), default=2, help="how many runs of each layer")
    add("--batch-size", type=positive(int), default=64, help="images per update")
    add("--learning-rate", type=positive(float), default=2e-3, help="of RMSprop")
    add("--output", type=Path, default="runs/pixel_digits", help="directory of the results")
    options = parser.parse_args(argv)
    options.layers = list(dict.fromkeys(options.layers))
    largest = TRAINING_IMAGES[options.dataset]
    options.subset = options.subset or largest
    if not VALIDATION_SHARE <= options.subset <= largest:
        parser.error(
            f"argument --subset: must lie in [{VALIDATION_SHARE}, {largest}] for "
            f"{options.dataset}. Received: {options.subset}"
        )
    if options.data_dir and options.dataset != "mnist":
        parser.error(f"argument --data-dir: is for mnist alone. Received: {options.data_dir}")
    if options.output.exists() and not options.output.is_dir():
        parser.error(f"argument --output: must be a directory. Received: {options.output}")
    return options


def available_layers():
    """Return recurrent layers by name: Keras's, and those of ours that need no `rule`."""
    layers = {name: getattr(keras.layers, name) for name in ("SimpleRNN", "LSTM", "GRU")}
    for name, value in vars(keras_momentum_rnn).items():
        is_layer = isinstance(value, type) and issubclass(value, keras.layers.RNN)
        if is_layer and not name.startswith("Rule"):
            layers[name] = value
    return layers


def positive(kind):
    def parsed(text):
        with contextlib.suppress(ValueError):
            if 0 < kind(text) < math.inf:
                return kind(text)
        raise argparse.ArgumentTypeError(
            f"must be a positive {kind.__name__}. Received: {text}"
        )

    return parsed


def folder(text):
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"must be an existing directory. Received: {text}")
    return Path(text)


def shared_settings(options):
    """Return what must be equal for runs to be compared."""
    names = ("dataset", "subset", "permute", "units", "epochs", "batch_size", "learning_rate")
    backend = keras.config.backend()
    return {
        **{name: getattr(options, name) for name in names},
        "optimizer": f"RMSprop, clipnorm {CLIPNORM}",
        "permutation_seed": PERMUTATION_SEED,
        "backend": backend,
        "device": str(keras.ops.zeros(1).device),
        "keras_momentum_rnn": keras_momentum_rnn.__version__,
        "keras": keras.__version__,
        backend: sys.modules[backend].__version__,
    }


def load(options):
    """Return three sets, for training, validation and test: (images, steps, 1) and labels."""
    if options.dataset == "digits":
        images, labels, *test = read_digits()
    else:
        images, labels, *test = read_mnist(options.data_dir, options.subset)
    images, labels = images[: options.subset], labels[: options.subset]
    stop = len(images) - len(images) // VALIDATION_SHARE
    sets = [(images[:stop], labels[:stop]), (images[stop:], labels[stop:]), test]
    return [(as_sequences(images, options.permute), labels) for images, labels in sets]


def read_digits():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    images, test_images, labels, test_labels = train_test_split(
        images / 16, labels, test_size=0.2, stratify=labels, random_state=0
    )
    return images, labels, test_images, test_labels


def read_mnist(data_dir, subset):
    import tensorflow_datasets as tfds

    splits = [f"train[:{subset}]", "test"]
    tensors = tfds.load("mnist", split=splits, data_dir=data_dir, batch_size=-1)
    train, test = map(tfds.as_numpy, tensors)
    scale = np.float32(255)
    return train["image"] / scale, train["label"], test["image"] / scale, test["label"]


def as_sequences(images, permute):
    sequences = images.reshape(len(images), -1, 1).astype("float32")
    return sequences[:, permutation(sequences.shape[1])] if permute else sequences


def permutation(steps):
    """Return the fixed order in which `--permute` reads the pixels."""
    return np.random.default_rng(PERMUTATION_SEED).permutation(steps)


def train_all(options, data, new_model=None):
    """Return the finished runs of all layers and seeds.

    `new_model(options, name, shape)` compiles the model with the layer of a name.
    """
    state = options.output / "runs"
    pairs = [(layer, seed) for layer in options.layers for seed in range(options.seeds)]
    runs = [read_run(state, layer, seed) for layer, seed in pairs]
    with progress_bar() as progress:
        done = sum(len(run["curve"]) for run in runs)
        task = progress.add_task("", total=len(runs) * options.epochs, completed=done)
        for number, run in enumerate(runs, 1):
            name = f"{run['layer']}, seed {run['seed']}"
            progress.update(task, description=f"{number}/{len(runs)} {name}")
            if run["test_accuracy"] is None:
                after_epoch = partial(progress.advance, task)
                train(run, state, options, data, after_epoch, new_model or compiled_model)
            progress.console.print(f"{name}: test accuracy {run['test_accuracy']:.3f}")
    return runs


def progress_bar(unit="epoch"):
    return bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=14),
        bars.TextColumn(unit),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
        speed_estimate_period=600,
    )


def train(run, state, options, data, after_epoch, new_model):
    """Bring one run to its end, writing its state to the disk after every epoch.

    The order of the images depends on seed and epoch alone, so a run that was interrupted
    goes on with the batches that it would have seen.
    """
    (images, labels), validation, test = data
    keras.utils.clear_session()
    keras.utils.set_random_seed(run["seed"])
    if run["curve"]:
        model = keras.saving.load_model(state / checkpoint_name(run))
    else:
        model = new_model(options, run["layer"], images.shape[1:])
    run["parameters"] = sum(math.prod(w.shape) for w in model.trainable_weights)
    for epoch in range(len(run["curve"]), options.epochs):
        order = np.random.default_rng([run["seed"], epoch]).permutation(len(images))
        start = time.perf_counter()
        fit = model.fit(
            images[order], labels[order], options.batch_size, shuffle=False, verbose=0
        )
        seconds = time.perf_counter() - start
        metrics = {name: values[0] for name, values in fit.history.items()}
        metrics |= {"validation_accuracy": accuracy(model, *validation), "seconds": seconds}
        run["curve"].append(metrics)
        model.save(state / checkpoint_name(run))
        write_json(state / run_name(run), run)
        after_epoch()
    run["test_accuracy"] = accuracy(model, *test)
    write_json(state / run_name(run), run)


def compiled_model(options, name, shape):
    layer = available_layers()[name](options.units)
    model = keras.Sequential([keras.Input(shape), layer, keras.layers.Dense(10)])
    model.compile(
        optimizer=keras.optimizers.RMSprop(options.learning_rate, clipnorm=CLIPNORM),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def accuracy(model, images, labels):
    return model.evaluate(images, labels, EVALUATION_BATCH, verbose=0)[1]


def claim(state, settings):
    """Make `state` the folder of runs with these settings, or refuse if it has others."""
    path = state / "settings.json"
    stored = json.loads(path.read_text()) if path.exists() else settings
    different = [
        f"\n  {name}: {stored.get(name)} there, {settings.get(name)} now"
        for name in {**stored, **settings}
        if stored.get(name) != settings.get(name)
    ]
    if different:
        sys.exit(
            f"{state.parent} holds runs with other settings; remove it or choose another "
            f"--output:{''.join(different)}"
        )
    state.mkdir(parents=True, exist_ok=True)
    write_json(path, settings)


def read_run(state, layer, seed):
    """Return a run as far as it has come."""
    run = {"layer": layer, "seed": seed, "parameters": None, "test_accuracy": None, "curve": []}
    path = state / run_name(run)
    return json.loads(path.read_text()) if path.exists() else run


def run_name(run):
    return f"{run['layer']}-{run['seed']}.json"


def checkpoint_name(run):
    """Return the file of the model after the run's epochs so far.

    Two files take turns: the one that the run on the disk speaks of is never being written.
    """
    return f"{run['layer']}-{run['seed']}-{'ab'[len(run['curve']) % 2]}.keras"


def write_json(path, value):
    with replaced(path) as new:
        new.write_text(json.dumps(value, indent=1) + "\n")


@contextlib.contextmanager
def replaced(path):
    """Give a path to write a new file to, which takes the place of `path` when it is whole."""
    new = path.with_name(f"unfinished-{path.name}")
    yield new
    os.replace(new, path)


def summarise(runs):
    """Return the rows of the table, one for each layer."""
    layers = list(dict.fromkeys(run["layer"] for run in runs))
    mean_curves = {layer: mean_curve(runs, layer) for layer in layers}
    target = max(mean_curves.get("LSTM", [math.inf]))
    rows = []
    for layer in layers:
        mine = [run for run in runs if run["layer"] == layer]
        test = [run["test_accuracy"] for run in mine]
        reached = [n for n, value in enumerate(mean_curves[layer], 1) if value >= target]
        row = {
            "layer": layer,
            "parameters": mine[0]["parameters"],
            "test_accuracy": float(np.mean(test)),
            "test_accuracy_range": [min(test), max(test)],
            "best_validation_accuracy": max(mean_curves[layer]),
            "epochs_to_lstm_best": reached[0] if reached else None,
            "seconds_per_epoch": float(np.median(curves(runs, layer, "seconds"))),
        }
        rows.append(row)
    return rows


def curves(runs, layer, name):
    """Return the array (seeds, epochs) of a metric of one layer."""
    mine = [run["curve"] for run in runs if run["layer"] == layer]
    return np.array([[epoch[name] for epoch in curve] for curve in mine])


def mean_curve(runs, layer):
    """Return the validation accuracies averaged over seeds, rounded so that ties are equal."""
    return curves(runs, layer, "validation_accuracy").mean(axis=0).round(6).tolist()


def title(options):
    steps = {"digits": "8x8 digits, 64 steps", "mnist": "MNIST, 784 steps"}[options.dataset]
    order = "in a fixed random order" if options.permute else "row by row"
    return f"{steps} {order}, {options.subset} training images, {options.units} units"


def results_table(summary, title):
    table = Table(title=title)
    table.add_column("Layer")
    for column in (
        "Parameters",
        "Test accuracy",
        "Epochs to\nLSTM's best",
        "Seconds\nper epoch",
    ):
        table.add_column(column, justify="right")
    for row in summary:
        low, high = row["test_accuracy_range"]
        table.add_row(
            row["layer"],
            f"{row['parameters']:,}",
            f"{row['test_accuracy']:.3f} ({low:.3f}-{high:.3f})",
            str(row["epochs_to_lstm_best"] or "not reached"),
            f"{row['seconds_per_epoch']:.2f}",
        )
    return table


def curves_figure(runs, title):
    """Draw validation accuracy and training loss: the mean over seeds, and their range."""
    layers = list(dict.fromkeys(run["layer"] for run in runs))
    colors = dict(zip([name for name in layers if name != "LSTM"], itertools.cycle(COLORS)))
    colors["LSTM"] = "black"
    layers.sort(key=lambda layer: mean_curve(runs, layer)[-1], reverse=True)
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    figure.suptitle(title)
    left, right = figure.subplots(1, 2)
    for axes, name in ((left, "validation_accuracy"), (right, "loss")):
        for layer in layers:
            y = curves(runs, layer, name)
            x = range(1, y.shape[1] + 1)
            axes.plot(x, y.mean(axis=0), color=colors[layer], label=layer, marker=".")
            axes.fill_between(x, y.min(axis=0), y.max(axis=0), color=colors[layer], alpha=0.1)
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    left.set_title("Validation accuracy")
    left.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    right.set_title("Training loss")
    figure.legend(
        *left.get_legend_handles_labels(),
        title=f"mean and range,\nseeds: {len(runs) // len(layers)}",
        loc="outside right center",
        frameon=False,
    )
    return figure


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Interrupted. The same command goes on from here.")
