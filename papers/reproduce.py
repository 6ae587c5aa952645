"""Do the papers' results hold? One command trains the layers and writes a report.

    python -m papers.reproduce digits
    python -m papers.reproduce adding --layers LSTM MCRM --seeds 5
    python -m papers.reproduce pmnist --budget paper --units 256 --layers LSTM AdamLSTM
    python -m papers.reproduce digits --ablation --layers MomentumLSTM

`--budget small` takes 6 to 43 minutes, by task, for ten layers and three seeds on two cores. It
has few units and updates, the same for all layers. The layers differ only in their
hyperparameters: a paper's for the task, or the defaults. `--budget paper` takes each layer's
recipe, which needs a GPU and days. `--set` gives options of the task, as
`papers.tasks.load` takes them.

The score of a run is that of the test set at the epoch that is best on validation. The output
directory receives report.md, losses.png, score.png, best.keras and results.json, whose schema
is `papers.experiments.comparison.SCHEMA`. If interrupted, repeat the command
to resume. You may add layers and seeds later; they join the results. Other settings may not
change. A file notes.md in the output directory becomes part of the report.
"""

import dataclasses
import sys

from keras_momentum_rnn.layers.registry import layers_with, our_layers, ready_layers
from papers import ablation, budgets, tasks
from papers.command_line import (
    add_task_options,
    documented_parser,
    new_folder,
    positive,
    run_example,
    widths,
)
from papers.experiments import Comparison, compare, devices
from papers.paper_claims import claims_on

MOMENTUM_LSTMS = layers_with("step_size", family="LSTM")
LAYERS = ("LSTM", *MOMENTUM_LSTMS, "SimpleRNN", "GRU", *our_layers("nested"))
# Of an ablation.
GRID = {"momentum": [0.0, 0.3, 0.6, 0.9], "step_size": [0.1, 0.3, 0.6, 1.0]}


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv

    def command(options, line):
        asked = comparison(options, line)
        devices.check(asked.task, asked.setups, asked.devices)
        devices.start(asked.devices, __file__, argv)
        return compare(asked)

    return run_example(__file__, argv, parse, command)


def parse(argv):
    parser = new_parser()
    options = parser.parse_args(argv)
    check(parser, options)
    return options


def new_parser():
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("task", choices=list(tasks.TASKS), help="what to learn")
    add("--layers", nargs="+", choices=list(ready_layers()), help=f"default: {LAYERS}")
    add("--seeds", type=positive(int), default=3, help="how many runs of each layer")
    add("--budget", choices=["small", "paper"], default="small", help="how much to train")
    add_task_options(parser)
    add("--units", nargs="+", type=widths, default=[], metavar="[LAYER=]N",
        help="width, of all layers or of one")  # fmt: skip
    add("--numbers", choices=["paper", "default"], default="paper",
        help="of momentum, step size, ...: the task's in the papers, or the layer's defaults;"
        " small budget alone")  # fmt: skip
    add("--epochs", type=positive(int), help="in place of the budget's")
    add("--batch-size", type=positive(int), help="likewise; small budget alone")
    add("--learning-rate", type=positive(float), help="in place of the budget's")
    add("--ablation", action="store_true", help="one layer over momentum and step size")
    for name, values in GRID.items():
        flag = name.replace("_", "-")
        add(f"--{flag}", nargs="+", type=float, default=values, help="of it")
    add("--devices", type=positive(int), default=1, help="over how many to divide batches")
    add("--output", type=new_folder, help="directory of the results; default: runs/TASK")
    return parser


def check(parser, options):
    """Refuse what does not go together; fill in the layers."""
    options.set = dict(options.set)
    if options.budget == "paper":
        for name in ("batch_size", "ablation"):
            if getattr(options, name):
                flag = name.replace("_", "-")
                parser.error(
                    f"argument --{flag}: is for the small budget alone. "
                    f"Received: {getattr(options, name)}"
                )
        if options.numbers == "default":
            parser.error("argument --numbers: default is for the small budget alone")
    for name, values in GRID.items():
        if getattr(options, name) is not values and not options.ablation:
            flag = name.replace("_", "-")
            parser.error(
                f"argument --{flag}: is for --ablation alone. "
                f"Received: {getattr(options, name)}"
            )
    if options.ablation:
        options.layers = options.layers or ["MomentumLSTM"]
        takes = [name for name in layers_with("momentum") if name in layers_with("step_size")]
        if len(options.layers) != 1 or options.layers[0] not in takes:
            parser.error(
                f"argument --ablation: takes one layer of {takes}. "
                f"Received: {' '.join(options.layers)}"
            )
    options.layers = list(dict.fromkeys(options.layers or layers_of(options)))
    for_all = [size for name, size in options.units if name is None]
    named = {name: size for name, size in options.units if name is not None}
    options.units = {name: size for name in options.layers for size in for_all[-1:]} | named
    if unknown := set(named) - set(options.layers):
        parser.error(
            f"argument --units: {sorted(unknown)} are not among the layers. "
            f"Received: layers {' '.join(options.layers)}"
        )
    options.output = options.output or new_folder(f"runs/{options.task}")


def layers_of(options):
    """Return the layers that are compared if none are named."""
    if options.budget == "small":
        return LAYERS
    told = budgets.telling(options.task, options.set)
    return [
        row.layer_name
        for row in tasks.recipes.RECIPES
        if row.task == options.task
        and all(row.options.get(name) == value for name, value in told.items())
        and (not options.units or row.units in [size for _, size in options.units])
    ]


def comparison(options, command):
    """Return the `Comparison` that the options ask for."""
    if options.budget == "paper":
        setups, given = budgets.paper_setups(
            options.task,
            options.set,
            options.layers,
            options.units,
            options.epochs,
            options.learning_rate,
        )
        task, told = tasks.load(options.task, **given), {"name": "paper"}
    else:
        budget = changed(budgets.SMALL[options.task], options)
        task = tasks.load(options.task, **budget.options)
        task = shortened(task, budgets.EVALUATED.get(options.task))
        setups = {name: of_layer(budget, name, options) for name in options.layers}
        if options.ablation:
            (setup,) = setups.values()
            setups = ablation.ablation_setups(setup, options.momentum, options.step_size)
        told = {
            "name": "small, the same updates for all layers",
            "numbers of the layers": options.numbers,
            "initial weights": "Keras's",
        }
    return Comparison(
        task=task,
        setups=setups,
        seeds=options.seeds,
        output=options.output,
        budget=told,
        title=title(task),
        command=command,
        devices=options.devices,
        sections=(ablation.heat_map,) if options.ablation else (),
        claims=claims_on(options.task),
    )


def changed(budget, options):
    """Return a budget with what the command line says in its place."""
    given = {name: getattr(options, name) for name in ("epochs", "batch_size", "learning_rate")}
    given = {name: value for name, value in given.items() if value is not None}
    return dataclasses.replace(budget, options={**budget.options, **options.set}, **given)


def of_layer(budget, layer, options):
    """Return the recipe of a layer in a small budget."""
    numbers = {}
    if options.numbers == "paper":
        numbers = budgets.paper_numbers(options.task, budget.options, layer)
    units = options.units.get(layer, budget.units)
    return dataclasses.replace(budget, layer_name=layer, units=units, arguments=numbers)


def shortened(task, count):
    """Return a task of whose validation and test samples the first are scored."""
    if count is None:
        return task
    return dataclasses.replace(task, validation=task.validation[:count], test=task.test[:count])


# Tasks in the words of a title; others stand under their name.
TITLES = {
    "adding": "Adding two marked numbers",
    "characters": "The next character of Shakespeare",
    "copying": "Repeating symbols after blanks",
    "digits": "8x8 digits, pixel by pixel",
    "mnist": "MNIST, pixel by pixel",
    "speech": "The next frame of spoken digits",
}


def title(task):
    """Return the task in words, with what its name leaves open."""
    told = [
        f"{value:,} {'samples' if name == 'subset' else name}"
        for name, value in task.options.items()
        if name in ("steps", "blanks", "subset") and value is not None
    ]
    variant = task.options.get("variant")
    variant = [f"variant {variant}"] if variant else []
    permuted = ["in a fixed random order"] if task.options.get("permute") else []
    return ", ".join([TITLES.get(task.name, task.name), *permuted, *variant, *told])


if __name__ == "__main__":
    main()
