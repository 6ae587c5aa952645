"""Classify permuted pixels by rotations: DTRIV and MomentumDTRIV beside LSTM.

    python examples/orthogonal_pixels.py
    python examples/orthogonal_pixels.py --dataset mnist --subset 3000 --output runs/pmnist
    python examples/orthogonal_pixels.py --recipe 170 --output runs/recipe

The data, the outputs and what the results mean are those of pixel_digits.py, always with
`--permute`: the 8x8 digits that scikit-learn bundles, 64 steps, or MNIST, 784 steps.

Each layer stands in the same model, pixels -> layer -> Dense(10), and sees the same batches.
Parameters are as good as equal, `--units` being chosen for that: a rotation of 86 units has
3,655 numbers. All weights have RMSprop, and S, what the rotation is made of, a learning rate
of its own. The parameters reported are those that are trained.

`--recipe 170` (or 360, 512) takes the settings that the MomentumRNN paper published for
permuted MNIST at this size: 150 epochs of 60,000 images, which take a GPU. LSTM is not part of
such a run unless `--layers` names it; it has `--lstm-units` and `--learning-rate` then.
"""

import argparse
import shlex
import sys
from pathlib import Path

import keras
import pixel_digits as digits
from pixel_digits import CLIPNORM, TRAINING_IMAGES, positive
from rich import print

import keras_momentum_rnn
from keras_momentum_rnn.tasks import recipe

LAYERS = ["LSTM", "DTRIV", "MomentumDTRIV"]
RHO = 0.99


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    settings = shared_settings(options)
    digits.claim(options.output / "runs", settings)
    runs = digits.train_all(options, digits.load(options), compiled_model)
    results = {
        "command": shlex.join(["python", "examples/orthogonal_pixels.py", *argv]),
        "settings": settings,
        "summary": digits.summarise(runs),
        "runs": runs,
    }
    with digits.replaced(options.output / "curves.png") as path:
        digits.curves_figure(runs, title(options)).savefig(path, dpi=120)
    digits.write_json(options.output / "results.json", results)
    print(digits.results_table(results["summary"], title(options)))
    print(f"results.json and curves.png are in {options.output}")


def parse(argv):
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    family = [name for name in digits.available_layers() if name.endswith("DTRIV")]
    add = parser.add_argument
    add("--dataset", choices=list(TRAINING_IMAGES), default="digits", help="what to read")
    add("--data-dir", type=digits.folder, help="where tensorflow-datasets keeps mnist")
    add("--subset", type=positive(int), help="how many training images to use, the first ones")
    add("--layers", nargs="+", choices=["LSTM", *family], help=f"default: {LAYERS}")
    add("--units", type=positive(int), default=86, help="width of the orthogonal layers")
    add("--lstm-units", type=positive(int), default=32, help="width of LSTM")
    add("--epochs", type=positive(int), default=25, help="passes over the training images")
    add("--seeds", type=positive(int), default=3, help="how many runs of each layer")
    add("--batch-size", type=positive(int), default=64, help="images per update")
    add("--learning-rate", type=positive(float), default=2e-3, help="of RMSprop")
    add("--multiplier", type=positive(float), default=0.3, help="of that rate, for S")
    add("--rebase-every", type=positive(int), help="updates between two bases; else never")
    add("--recipe", type=int, choices=[170, 360, 512], help="the paper's, of this size")
    add("--output", type=Path, default="runs/orthogonal_pixels", help="for the results")
    options = parser.parse_args(argv)
    options.permute = True
    if options.recipe:
        options.dataset, options.units = "mnist", options.recipe
        options.layers = options.layers or LAYERS[1:]
        try:
            recipes = [
                recipe("pmnist", n, options.units) for n in options.layers if n in family
            ]
        except ValueError as error:
            parser.error(str(error))
        if recipes:
            options.batch_size, options.epochs = recipes[0].batch_size, recipes[0].epochs
    options.layers = list(dict.fromkeys(options.layers or LAYERS))
    largest = TRAINING_IMAGES[options.dataset]
    options.subset = options.subset or largest
    if not digits.VALIDATION_SHARE <= options.subset <= largest:
        parser.error(
            f"argument --subset: must lie in [{digits.VALIDATION_SHARE}, {largest}] for "
            f"{options.dataset}. Received: {options.subset}"
        )
    return options


def shared_settings(options):
    """Return what must be equal for runs to be compared."""
    names = ["dataset", "subset", "units", "lstm_units", "epochs", "batch_size"]
    names += ["learning_rate", "multiplier", "rebase_every", "recipe"]
    backend = keras.config.backend()
    return {
        **{name: getattr(options, name) for name in names},
        "optimizer": f"RMSprop, rho {RHO}, global_clipnorm {CLIPNORM}",
        "permutation_seed": digits.PERMUTATION_SEED,
        "backend": backend,
        "device": str(keras.ops.zeros(1).device),
        "keras_momentum_rnn": keras_momentum_rnn.__version__,
        "keras": keras.__version__,
        backend: sys.modules[backend].__version__,
    }


def compiled_model(options, name, shape):
    optimizer = keras.optimizers.RMSprop(
        options.learning_rate, rho=RHO, global_clipnorm=CLIPNORM
    )
    if name == "LSTM":
        layer = keras.layers.LSTM(options.lstm_units)
    elif options.recipe:
        settings = recipe("pmnist", name, options.units)
        layer, optimizer = settings.layer, settings.optimizer
    else:
        layer = digits.available_layers()[name](
            options.units,
            recurrent_lr_multiplier=options.multiplier,
            rebase_every=options.rebase_every,
        )
    model = keras.Sequential([keras.Input(shape), layer, keras.layers.Dense(10)])
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def title(options):
    steps = {"digits": "8x8 digits, 64 steps", "mnist": "MNIST, 784 steps"}[options.dataset]
    widths = f"{options.units} units (LSTM: {options.lstm_units})"
    return f"Permuted {steps}, {options.subset} training images, {widths}"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Interrupted. The same command goes on from here.")
