"""Classify handwritten digits that are read one pixel at a time: LSTM beside our layers.

    python -m papers.pixel_digits
    python -m papers.pixel_digits --permute --seeds 3 --output runs/permuted
    python -m papers.pixel_digits --dataset mnist --subset 3000 --output runs/mnist

`digits`, the default, is the set of 8x8 images that scikit-learn bundles: 64 steps, nothing to
download. `mnist` has 784 steps; tensorflow-datasets reads it from `--data-dir` and downloads
it there if it is missing. This needs TensorFlow, on every backend. On PyTorch,
keras.layers.LSTM is very slow at that length. With `--permute` the pixels of every image come
in one fixed random order.

All layers are treated alike: the same model, pixels -> layer(units) -> Dense(10), with the
layer's defaults, the same optimizer and number of updates and, for one seed, the same batches
in the same order. The last sixth of the training images is held out for validation. It chooses
the epoch whose model is tested and the best model, and shows when a layer reaches the LSTM's
best.

The output directory receives report.md, losses.png, score.png, best.keras and results.json,
whose schema is `papers.experiments.comparison.SCHEMA`. If interrupted, repeat
the command: it resumes from the last finished epoch. You may add layers and seeds later; other
settings may not change. `papers/reproduce.py` does the same for all tasks of the papers, with
the papers' numbers.
"""

import dataclasses
import sys
from pathlib import Path

from keras_momentum_rnn.layers.registry import layers_with, ready_layers
from papers import tasks
from papers.command_line import (
    command_of,
    documented_parser,
    ending,
    folder,
    new_folder,
    positive,
)
from papers.experiments import Comparison, compare
from papers.paper_claims import claims_on
from papers.tasks.pixels import TRAINING_IMAGES

LAYERS = ["LSTM", *layers_with("step_size", family="LSTM")]
CLIPNORM = 1.0


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    shared = settings_of(options)
    setups = {name: dataclasses.replace(shared, layer_name=name) for name in options.layers}
    told = {"numbers of the layers": "default"}
    return run(options, command_of(__file__, argv), setups, told)


def settings_of(options):
    """Return how all layers are trained, as the `Recipe` of an LSTM."""
    return tasks.Recipe(
        task=options.dataset,
        layer_name="LSTM",
        units=options.units,
        arguments={},
        optimizer_name="RMSprop",
        learning_rate=options.learning_rate,
        clipnorm=CLIPNORM,
        batch_size=options.batch_size,
        epochs=options.epochs,
        source="small budget",
    )


def parse(argv):
    parser = documented_parser(__doc__)
    add, known = parser.add_argument, list(ready_layers())
    add_data(parser)
    add("--permute", action="store_true", help="read the pixels in one fixed random order")
    add("--layers", nargs="+", choices=known, default=LAYERS, help="what to compare")
    add("--units", type=positive(int), default=32, help="width of each layer")
    add("--epochs", type=positive(int), default=80, help="passes over the training images")
    add("--seeds", type=positive(int), default=2, help="how many runs of each layer")
    add("--batch-size", type=positive(int), default=64, help="images per update")
    add("--learning-rate", type=positive(float), default=2e-3, help="of RMSprop")
    add("--output", type=new_folder, default=Path("runs/pixel_digits"), help="for the results")
    options = parser.parse_args(argv)
    check_data(parser, options)
    return options


def add_data(parser):
    add = parser.add_argument
    add("--dataset", choices=list(TRAINING_IMAGES), default="digits", help="what to read")
    add("--data-dir", type=folder, help="where tensorflow-datasets keeps mnist")
    add("--subset", type=positive(int), help="how many training images to use, the first ones")


def check_data(parser, options):
    if options.data_dir and options.dataset != "mnist":
        parser.error(f"argument --data-dir: is for mnist alone. Received: {options.data_dir}")


def run(options, command, setups, told):
    """Compare layers on the pixels that the options name, and return the results.

    Args:
        options: as `parse` returns them.
        command: str, the command line.
        setups: dict from names of layers to a `Recipe` each.
        told: dict, what the results file says of the budget.
    """
    given = {"subset": options.subset, "permute": options.permute}
    if options.dataset == "mnist":
        given["data_dir"] = options.data_dir
    with ending():
        return compare(
            Comparison(
                task=tasks.load(options.dataset, **given),
                setups=setups,
                seeds=options.seeds,
                output=options.output,
                budget={"name": "the same updates for all layers", **told},
                title=title(options),
                command=command,
                claims=claims_on(options.dataset),
            )
        )


def title(options):
    steps = {"digits": "8x8 digits, 64 steps", "mnist": "MNIST, 784 steps"}[options.dataset]
    order = "in a fixed random order" if options.permute else "row by row"
    return f"{steps} {order}, {options.units} units"


if __name__ == "__main__":
    main()
