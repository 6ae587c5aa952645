"""Search over LSTM and all of our layers, on handwritten digits.

    python examples/tune_layer.py
    python examples/tune_layer.py --strategy bayesian --trials 80 --output runs/bayesian

The data is the set of 8x8 images that scikit-learn bundles, read in steps of `--pixels`
pixels, row by row. The first trials give every layer its defaults, so that none is left out.
The others vary layer, width, learning rate and the layer's own hyperparameters together. 256 of
the training images are held out and choose the winner. Only the winner sees the test images,
once, after the search.

The output directory receives what `keras_momentum_rnn.tuning.tune` writes, results.csv and
results.json (all trials) and best.keras, and table.txt, the table. If interrupted, repeat
the command to resume.
"""

import inspect
from pathlib import Path

import keras
from rich import print
from rich.console import Console
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from keras_momentum_rnn.layers.registry import available_layers, our_layers
from keras_momentum_rnn.tuning import MomentumHyperModel, tune
from papers.command_line import documented_parser, positive

STRATEGIES = ("random", "bayesian")
BATCH = 64
# Whole batches: JAX would compile again for a part of one.
TRAINING, VALIDATION = 18 * BATCH, 4 * BATCH


def main(argv=None):
    options = parse(argv)
    train, validation, test = load(options.pixels)
    hypermodel = MomentumHyperModel(
        train[0].shape[1:],
        head=10,
        layers=options.layers,
        units=[16, 32],
        learning_rate=(1e-3, 2e-2),
    )
    results = tune(
        hypermodel,
        *train,
        validation_data=validation,
        directory=options.output,
        strategy=options.strategy,
        max_trials=max(options.trials, len(options.layers)),
        epochs=options.epochs,
        patience=options.patience,
        batch_size=BATCH,
        first=[defaults(layer) for layer in options.layers],
    )
    table = results.table()
    print(table)
    with open(options.output / "table.txt", "w") as file:
        Console(file=file, width=120).print(table)
    model = results.best_model()
    images, labels = test
    found = model.predict(images, verbose=0).argmax(-1)
    print(results.best.line())
    print(f"Correct on {len(labels)} test images: {(found == labels).mean():.1%}")
    print(f"All trials and best.keras are in {options.output}")


def parse(argv):
    parser = documented_parser(__doc__)
    add, known = parser.add_argument, searched_layers()
    add("--layers", nargs="+", choices=known, default=known, help="what competes")
    add("--trials", type=positive(int), default=26, help="at least one for each layer")
    add("--strategy", choices=STRATEGIES, default="random", help="how trials are chosen")
    add("--epochs", type=positive(int), default=8, help="the most for a trial")
    add("--patience", type=positive(int), default=2, help="epochs without a better one")
    add("--pixels", type=int, choices=(1, 2, 4, 8), default=8, help="read at each step")
    add("--output", type=Path, default="runs/tune_layer", help="directory of the results")
    return parser.parse_args(argv)


def searched_layers():
    """Return LSTM and all of ours that need no `rule`, by name."""
    return ["LSTM", *(name for name, layer in our_layers().items() if not layer.needs_rule)]


def defaults(layer):
    """Return the hyperparameters that a layer has unless told otherwise, as a first trial."""
    layer_class = available_layers()[layer]
    arguments = inspect.signature(layer_class).parameters
    declared = getattr(layer_class, "hyperparameters", {}).items()
    searched = [name for name, hyperparameter in declared if hyperparameter.search is not None]
    own = {name: arguments[name].default for name in searched}
    return {"layer": layer, "units": 32, "learning_rate": 0.005, **own}


def load(pixels):
    """Return images and labels for training, validation and test."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(len(images), -1, pixels)
    images, test_images, labels, test_labels = train_test_split(
        images, labels, test_size=0.2, stratify=labels, random_state=0
    )
    train = (images[:TRAINING], labels[:TRAINING])
    validation = (images[-VALIDATION:], labels[-VALIDATION:])
    return train, validation, (test_images, test_labels)


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    main()
