"""Do momentum LSTMs read permuted MNIST better than an LSTM, at the paper's own length?

    python -m papers.permuted_mnist
    python -m papers.permuted_mnist --layers DTRIV MomentumDTRIV
    python -m papers.permuted_mnist --task mnist --output runs/mnist

Tables 1 and 11 of Nguyen et al. (2020): LSTMs of 128 units, 150 epochs over 50,000 images, each
784 pixels in one fixed random order, with the paper's settings; Table 4: DTRIV of 170 units.
Beside them LSTM-x2.5, which the paper does not have: MomentumLSTM without momentum, its inputs
multiplied by what a momentum of 0.6 multiplies a constant input by, 1 / (1 - 0.6).

LSTM runs as RuleLSTM with the rule Identity: the same equations, in less time. With the extra
`cpu` an epoch of a row takes two to three minutes on one CPU core with AVX-512. So the rows
take turns, an epoch each, and can be compared whenever they are read. If interrupted, repeat
the command to resume. Layers and seeds may change later, and processes with layers of their own
may share an output. Score and report are those of papers/reproduce.py; the output directory
receives report.md, pictures and results.json, whose curves have the test score of every epoch.
"""

import dataclasses

from papers import tasks
from papers.command_line import (
    add_task_options,
    documented_parser,
    new_folder,
    positive,
    run_example,
)
from papers.experiments import Comparison, compare
from papers.paper_claims import claims_on
from papers.same_sooner import same_sooner

LSTMS = ("LSTM", "MomentumLSTM", "AdamLSTM", "RMSPropLSTM", "SRLSTM")
GAIN = "LSTM-x2.5"
ROWS = {**dict.fromkeys([*LSTMS, GAIN], 128), "DTRIV": 170, "MomentumDTRIV": 170}
DEVIATIONS = (
    "one fixed order of the pixels, of this package; the last 10,000 training images validate; "
    "LSTM runs as RuleLSTM with the rule Identity, which has the same equations; the paper has "
    "five seeds and reports the best epoch on test"
)


def main(argv=None):
    return run_example(__file__, argv, parse, lambda *given: compare(comparison(*given)))


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--task", choices=["pmnist", "mnist"], default="pmnist", help="the order of the pixels")
    add("--layers", nargs="+", choices=ROWS, default=[*LSTMS, GAIN], help="what to train")
    add("--seeds", type=positive(int), default=1, help="how many runs of each")
    add("--epochs", type=positive(int), default=150, help="of each run")
    add("--at-once", type=positive(int), default=1, help="epochs of a row before the next")
    add_task_options(parser)
    add("--output", type=new_folder, default=new_folder("runs/permuted_mnist"),
        help="directory of the results")  # fmt: skip
    return parser.parse_args(argv)


def comparison(options, command):
    """Return the `Comparison` of the rows."""
    task = tasks.load(options.task, **dict(options.set))
    setups = {n: setup(options.task, n, options.epochs) for n in dict.fromkeys(options.layers)}
    return Comparison(
        task=task,
        setups=setups,
        seeds=options.seeds,
        output=options.output,
        budget={
            "name": "Nguyen et al. (2020), Tables 1, 4 and 11",
            "updates in the paper": 150 * -(-len(task.train) // 128),
            "rows in the paper": [name for name in ROWS if name != GAIN],
            "seeds in the paper": 5,
            "deviations from the paper": DEVIATIONS,
        },
        title=f"MNIST, pixel by pixel{', permuted' if options.task == 'pmnist' else ''}",
        command=command,
        epochs_at_once=options.at_once,
        claims=claims_on(options.task),
    )


def setup(task, name, epochs):
    """Return the `Recipe` of a row."""
    known = "MomentumLSTM" if name == GAIN else name
    recipe = tasks.recipe(task, known, ROWS[name])
    layer, rule = same_sooner(known)
    arguments = {**recipe.arguments, **rule}
    if name == GAIN:
        arguments |= {"momentum": 0.0, "step_size": 2.5}
    return dataclasses.replace(recipe, layer_name=layer, arguments=arguments, epochs=epochs)


if __name__ == "__main__":
    main()
