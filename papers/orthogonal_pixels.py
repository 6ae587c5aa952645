"""Classify permuted pixels by rotations: DTRIV and MomentumDTRIV beside LSTM.

    python -m papers.orthogonal_pixels
    python -m papers.orthogonal_pixels --dataset mnist --subset 3000 --output runs/pmnist
    python -m papers.orthogonal_pixels --recipe 170 --output runs/recipe

Data and outputs are those of pixel_digits.py, always with `--permute`: the 8x8 digits that
scikit-learn bundles, 64 steps, or MNIST, 784 steps.

All layers get the same model, pixels -> layer -> Dense(10), and the same batches. The default
`--units` give them about equally many parameters: a rotation of 86 units has 3,655 numbers. All
weights train with RMSprop; S, which the rotation is made of, has a learning rate of its own.
The report counts trained parameters.

`--recipe 170` (or 360, 512) takes the settings that the MomentumRNN paper published for
permuted MNIST at this size: 150 epochs of 60,000 images, which need a GPU. Such a run has an
LSTM only if `--layers` names it, with `--lstm-units` and `--learning-rate`.
"""

import dataclasses
import sys
from pathlib import Path

from keras_momentum_rnn.layers.registry import our_layers, ready_layers
from papers.command_line import command_of, documented_parser, new_folder, positive
from papers.pixel_digits import add_data, check_data, run, settings_of
from papers.tasks import recipe

LAYERS = ["LSTM", "DTRIV", "MomentumDTRIV"]
RHO = 0.99


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    setups = {name: setup(options, name) for name in options.layers}
    return run(options, command_of(__file__, argv), setups, {"recipe": options.recipe})


def parse(argv):
    parser = documented_parser(__doc__)
    family = [name for name in our_layers("DTRIV") if name in ready_layers()]
    add = parser.add_argument
    add_data(parser)
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
    add("--output", type=new_folder, default=Path("runs/orthogonal_pixels"), help="results")
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
    check_data(parser, options)
    return options


def setup(options, name):
    """Return the `Recipe` of a layer."""
    if options.recipe and name != "LSTM":
        return recipe("pmnist", name, options.units)
    arguments = {
        "recurrent_lr_multiplier": options.multiplier,
        "rebase_every": options.rebase_every,
    }
    return dataclasses.replace(
        settings_of(options),
        layer_name=name,
        units=options.lstm_units if name == "LSTM" else options.units,
        arguments={} if name == "LSTM" else arguments,
        optimizer_arguments={"RMSprop": {"rho": RHO}},
    )


if __name__ == "__main__":
    main()
