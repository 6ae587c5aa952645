"""Do the papers' results hold? One command trains the layers and writes a report.

    python -m papers.reproduce digits
    python -m papers.reproduce adding --layers LSTM MCRM --seeds 5
    python -m papers.reproduce pmnist --budget paper --units 256 --layers LSTM AdamLSTM
    python -m papers.reproduce digits --ablation --layers MomentumLSTM

`--budget small` takes minutes for ten layers and three seeds on one core, 6 on digits. It has
few units and updates, the same for all layers. The layers differ only in their
hyperparameters: a paper's for the task, or the defaults. `--budget paper` takes each layer's
recipe, hours to days for each run. `--set` gives options of the task, as `papers.tasks.load`
takes them.

The score of a run is that of the test set at the epoch that is best on validation. The output
directory receives report.md, losses.png, score.png and results.json, whose schema is
`papers.experiments.comparison.SCHEMA`. If interrupted, repeat the command to resume. You may
add layers and seeds later; they join the results. Other settings may not change. A file
notes.md in the output directory becomes part of the report.
"""

import dataclasses
from pathlib import Path

from keras_momentum_rnn.layers.registry import layers_with, our_layers, ready_layers
from papers import ablation, budgets, tasks
from papers.command_line import add_task_options, documented_parser, positive, run_example
from papers.experiments import Comparison, compare
from papers.paper_claims import claims_on

LAYERS = ("LSTM", *layers_with("step_size", family="LSTM"), "SimpleRNN", "GRU")
LAYERS += (*our_layers("nested"),)
# Of an ablation.
MOMENTA, STEP_SIZES = (0.0, 0.3, 0.6, 0.9), (0.1, 0.3, 0.6, 1.0)


def main(argv=None):
    return run_example(__file__, argv, parse, lambda *given: compare(comparison(*given)))


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("task", choices=list(tasks.TASKS), help="what to learn")
    add("--layers", nargs="+", choices=list(ready_layers()), help=f"default: {LAYERS}")
    add("--seeds", type=positive(int), default=3, help="how many runs of each layer")
    add("--budget", choices=["small", "paper"], default="small", help="how much to train")
    add_task_options(parser)
    add("--units", type=positive(int), help="width of all layers, in place of the budget's")
    add("--hyperparameters", choices=["paper", "default"], default="paper",
        help="momentum, step size, ...: the task's in the papers, or the layer's defaults; "
        "small budget alone")  # fmt: skip
    add("--epochs", type=positive(int), help="in place of the budget's")
    add("--learning-rate", type=positive(float), help="in place of the budget's")
    add("--ablation", action="store_true", help="one layer over momentum and step size")
    add("--output", type=Path, help="directory of the results; default: runs/TASK, "
        "runs/TASK_ablation")  # fmt: skip
    options = parser.parse_args(argv)
    fill_in(parser, options)
    return options


def fill_in(parser, options):
    """Refuse what does not go together; fill in layers and output."""
    if options.budget == "paper" and (options.ablation or options.hyperparameters != "paper"):
        parser.error("--ablation and --hyperparameters default are for the small budget alone")
    options.set = dict(options.set)
    if options.layers is None:
        options.layers = ["MomentumLSTM"] if options.ablation else layers_of(options)
    options.layers = list(dict.fromkeys(options.layers))
    takes = [name for name in layers_with("momentum") if name in layers_with("step_size")]
    if options.ablation and (len(options.layers) != 1 or options.layers[0] not in takes):
        parser.error(
            f"argument --ablation: takes one layer of {takes}. "
            f"Received: {' '.join(options.layers)}"
        )
    folder = f"runs/{options.task}{'_ablation' if options.ablation else ''}"
    options.output = options.output or Path(folder)


def layers_of(options):
    """Return the layers that are compared if none are named."""
    if options.budget == "small":
        return LAYERS
    rows = budgets.paper_rows(options.task, options.set)
    return [row.layer_name for row in rows if options.units in (None, row.units)]


def comparison(options, command):
    """Return the `Comparison` that the options ask for."""
    if options.budget == "paper":
        setups, given = budgets.paper_setups(
            options.task, options.set, options.layers, options.units
        )
        setups = {name: changed(setup, options) for name, setup in setups.items()}
        told = {"name": "paper"}
    else:
        small = changed(budgets.SMALL[options.task], options)
        given = {**small.options, **options.set}
        setups = {name: of_layer(small, given, name, options) for name in options.layers}
        if options.ablation:
            (setup,) = setups.values()
            setups = ablation.ablation_setups(setup, MOMENTA, STEP_SIZES)
        told = {
            "name": "small, the same updates for all layers",
            "hyperparameters": options.hyperparameters,
            "initial weights": "Keras's",
        }
    task = tasks.load(options.task, **given)
    return Comparison(
        task=task,
        setups=setups,
        seeds=options.seeds,
        output=options.output,
        budget=told,
        title=title(task),
        command=command,
        sections=(ablation.heat_maps,) if options.ablation else (),
        claims=claims_on(options.task),
    )


def changed(recipe, options):
    """Return a recipe with what the command line says in its place."""
    given = {name: getattr(options, name) for name in ("epochs", "learning_rate")}
    given = {name: value for name, value in given.items() if value is not None}
    if "learning_rate" in given and "recurrent_lr_multiplier" in recipe.arguments:
        # S keeps the paper's rate.
        multiplier = recipe.recurrent_learning_rate / given["learning_rate"]
        given["arguments"] = {**recipe.arguments, "recurrent_lr_multiplier": multiplier}
    return dataclasses.replace(recipe, **given)


def of_layer(small, task_options, layer, options):
    """Return the recipe of a layer in a small budget."""
    numbers = {}
    if options.hyperparameters == "paper":
        numbers = budgets.paper_hyperparameters(options.task, task_options, layer)
    units = options.units or small.units
    return dataclasses.replace(small, layer_name=layer, units=units, arguments=numbers)


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
