"""Classify permuted pixels by rotations: DTRIV and MomentumDTRIV beside LSTM.

    python -m papers.orthogonal_pixels

The 8x8 digits that scikit-learn bundles, 64 steps in one fixed random order. All layers get the
same model, pixels -> layer -> Dense(10), the same batches and about equally many parameters: a
rotation of 86 units has 3,655 numbers. All weights train with RMSprop; S, which the rotation is
made of, has a smaller learning rate.

Score, report and how to resume are those of papers/reproduce.py. The layers at the paper's own
size and length, on MNIST: papers/permuted_mnist.py.
"""

import dataclasses

from papers import tasks
from papers.budgets import SMALL
from papers.command_line import comparison_parser, run_example
from papers.experiments import Comparison, compare
from papers.tasks.recipe_tables import pytorch_rmsprop

UNITS = {"LSTM": 32, "DTRIV": 86, "MomentumDTRIV": 86}
OF_S = {"recurrent_lr_multiplier": 0.3, "rebase_every": None}


def main(argv=None):
    return run_example(__file__, argv, parse, lambda *given: compare(comparison(*given)))


def parse(argv):
    output = "runs/orthogonal_pixels"
    return comparison_parser(__doc__, UNITS, output, seeds=3, epochs=25).parse_args(argv)


def comparison(options, command):
    """Return the `Comparison` of the layers."""
    return Comparison(
        task=tasks.load("digits", permute=True),
        setups={name: setup(name, options.epochs) for name in dict.fromkeys(options.layers)},
        seeds=options.seeds,
        output=options.output,
        budget={"name": "the same updates for all layers"},
        title="8x8 digits, 64 steps in a fixed random order, about 4,700 parameters",
        command=command,
    )


def setup(name, epochs):
    """Return the `Recipe` of a layer."""
    return dataclasses.replace(
        SMALL["digits"],
        layer_name=name,
        units=UNITS[name],
        arguments={} if name == "LSTM" else OF_S,
        optimizer_arguments={"RMSprop": pytorch_rmsprop(rho=0.99)},
        epochs=epochs,
    )


if __name__ == "__main__":
    main()
