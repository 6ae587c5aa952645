"""How far do momentum and a good start bring a plain recurrent network?

    python -m papers.long_dependencies adding
    python -m papers.long_dependencies memory20 --layers SimpleRNN AdamRNN --momenta 0 0.98
    python -m papers.long_dependencies adding memory20 multiplication memory5 \\
        --updates 50000 --every 1000 --seeds 2 --momenta 0.995 0 0.98 0.9 \\
        --beside AdamRNN RMSPropRNN MomentumRNN

The experiments of Sutskever et al. (2013), section 4, and their Table 5. The last command
repeats the table with half of its seeds, in about 25 hours on one core of a CPU with JAX.

Networks of 100 tanh units, started as the paper's Table 4 says, learn by gradient descent with
momentum 0, 0.9, 0.98 or 0.995, in Nesterov's form (N) and the classical one (M). Momentum is
0.9 in the first 1000 updates. 0 is none at all; with `--warm-zero` it begins with 0.9, too, in
Nesterov's form, as the paper's text has it.
Other layers start and learn in the same way: `--layers` with every momentum, those of
`--beside` with the first one alone.

The learning rate of each row is the largest of `--learning-rates` whose validation loss after
`--pilot` updates is within 5 % of the least. Among losses that close, noise would choose, and
a larger rate gets further in the longer run. The same command trains these pilots first, in the
folder `pilot` of its output. Their report says what a shorter pilot would have chosen. With one
rate there is no pilot. The default is a tenth of the paper's updates. In our runs of 6000, too
large a rate failed by update 2000, 1000 after momentum rises, and the row that learned to add
was better than chance by 4500.

Several tasks each have a folder in the output, and their runs of seed 0 come before seed 1.

Score and report are those of papers/reproduce.py. The output directory receives report.md,
with Table 5 beside ours, table5.png, losses.png, score.png and results.json. If interrupted,
repeat the command to resume. You may add layers, momenta, forms and seeds later; other settings
may not change.
"""

import argparse
import dataclasses
import math
import operator

from keras_momentum_rnn.layers.registry import ready_layers
from keras_momentum_rnn.optimizers.schedules import WarmConstant
from papers import tasks
from papers.command_line import (
    add_task_options,
    documented_parser,
    new_folder,
    positive,
    run_example,
)
from papers.experiments import Comparison, compare
from papers.momentum_table import NOISE, Row, chosen_rate, pilot_table, table
from papers.paper_claims import ON_LONG_DEPENDENCIES
from papers.tasks import sutskever2013
from papers.tasks.recipe_tables import centered_read_out

MOMENTA = [0.0, 0.9, 0.98, 0.995]
DEVIATIONS = (
    "where the paper leaves the places of the markers and the meaning of a length open, those "
    "of Hochreiter and Schmidhuber (1997); no warm-up of momentum 0; scored at w, not at the "
    "look-ahead, on 1000 held-out sequences, after the evaluation that is best on another 1000"
)


def main(argv=None):
    return run_example(__file__, argv, parse, table_5)


def table_5(options, command):
    """Run all tasks seed by seed, and return the results of the last."""
    for seeds in range(1, options.seeds + 1):
        for task in options.tasks:
            chosen = argparse.Namespace(**{**vars(options), "task": task, "seeds": seeds})
            if len(options.tasks) > 1:
                chosen.output = options.output / task
            rates = pilot(chosen, command)
            results = compare(comparison(chosen, command, rates))
    return results


def parse(argv):
    parser = documented_parser(__doc__)
    rates = list(sutskever2013.LEARNING_RATES)
    add = parser.add_argument
    add("tasks", nargs="+", choices=list(sutskever2013.ERRORS), help="what to learn")
    add("--layers", nargs="+", choices=list(ready_layers()), default=["SimpleRNN"],
        help="what to train")  # fmt: skip
    add("--beside", nargs="+", choices=list(ready_layers()), default=[],
        help="what to train with only the first momentum and form")  # fmt: skip
    add("--momenta", nargs="+", type=float, default=MOMENTA, help="of the optimizer")
    add("--forms", nargs="+", choices=["N", "M"], default=["N", "M"], help="of momentum")
    add("--warm-zero", action="store_true", help="momentum 0, too, begins with 0.9")
    add("--learning-rates", nargs="+", type=positive(float), default=rates, help="to try")
    add("--updates", type=positive(int), default=6000, help="of each run; the paper: 50000")
    add(
        "--pilot", type=positive(int), default=5000, help="updates to choose a learning rate by"
    )
    add("--every", type=positive(int), default=250, help="updates between two evaluations")
    add("--seeds", type=positive(int), default=1, help="how many runs of each; the paper: 4")
    add("--units", type=positive(int), default=sutskever2013.UNITS, help="width of a layer")
    add_task_options(parser)
    add(
        "--output",
        type=new_folder,
        help="directory of the results; default: runs/TASK_momenta, of several tasks "
        "runs/long_dependencies",
    )
    options = parser.parse_args(argv)
    if not all(0 <= momentum < 1 for momentum in options.momenta):
        parser.error(f"argument --momenta: must lie in [0, 1). Received: {options.momenta}")
    for name in ("updates", "pilot"):
        if getattr(options, name) % options.every:
            parser.error(
                f"argument --{name}: must be a multiple of --every, {options.every}. "
                f"Received: {getattr(options, name)}"
            )
    check_pilot(parser, options)
    options.set = dict(options.set)
    if "samples" in options.set:
        parser.error(
            "argument --set: --every has the place of the option samples. "
            f"Received: samples={options.set['samples']!r}"
        )
    options.tasks = list(dict.fromkeys(options.tasks))
    options.task, several = options.tasks[0], len(options.tasks) > 1
    name = "long_dependencies" if several else f"{options.task}_momenta"
    options.output = options.output or new_folder(f"runs/{name}")
    return options


def check_pilot(parser, options):
    """End where a pilot would be over before the momenta of its rows differ."""
    steps, warm = sutskever2013.WARM_UP
    constant = {warm} if options.warm_zero else {0, warm}
    rising = not constant.issuperset(options.momenta)
    if rising and len(set(options.learning_rates)) > 1 and options.pilot <= steps:
        parser.error(
            f"argument --pilot: must exceed {steps}, the updates with momentum {warm}. "
            f"Received: {options.pilot}"
        )


def rows(options):
    """Return what is compared, a list of `Row`."""
    crossed = [
        Row(layer, momentum, form if momentum else "")
        for layer in options.layers
        for momentum in options.momenta
        for form in (options.forms if momentum else [""])
    ]
    beside = [dataclasses.replace(crossed[0], layer=layer) for layer in options.beside]
    return list(dict.fromkeys([*crossed, *beside]))


def pilot(options, command):
    """Return for each row the losses by learning rate, from the least to the largest."""
    rates = list(dict.fromkeys(options.learning_rates))
    if len(rates) == 1:
        return {row: {rates[0]: None} for row in rows(options)}
    task, setups, told = load(options), {}, {}
    for row in rows(options):
        for rate in rates:
            name = f"{row} at {rate:g}"
            setups[name] = new_setup(options, row, rate, options.pilot)
            told[name] = row, rate
    results = compare(
        Comparison(
            task=task,
            setups=setups,
            seeds=1,
            output=options.output / "pilot",
            budget={
                "name": "to choose learning rates",
                "updates": options.pilot,
                "updates between evaluations": options.every,
            },
            title=f"{options.task}: learning rates",
            command=command,
            sections=(pilot_table,),
        )
    )
    losses = {}
    for run in results["runs"]:
        if run["layer"] in told:
            row, rate = told[run["layer"]]
            losses.setdefault(row, {})[rate] = last_loss(run)
    least_first = operator.itemgetter(1)
    return {row: dict(sorted(f.items(), key=least_first)) for row, f in losses.items()}


def last_loss(run):
    """Return the validation loss at the end of a run, infinite where it diverged."""
    return math.inf if run["diverged"] else run["curve"][-1]["validation_loss"]


def load(options):
    """Return the task as the paper has it, an epoch of it `--every` updates long."""
    samples = options.every * sutskever2013.BATCH_SIZE
    given = {**paper_recipe(options.task).options, "samples": samples, **options.set}
    return tasks.load(options.task, **given)


def paper_recipe(task):
    return tasks.recipe(task, "SimpleRNN", sutskever2013.UNITS)


def new_setup(options, row, rate, updates, chosen=""):
    """Return the `Recipe` of one row at one learning rate."""
    momentum, nesterov = row.momentum, row.form == "N"
    if momentum or options.warm_zero:
        steps, warm = sutskever2013.WARM_UP
        momentum = WarmConstant(momentum, warm_momentum=warm, warm_steps=steps)
        nesterov = row.form != "M"
    length = options.set.get("blanks", sutskever2013.LENGTHS[options.task])
    recipe = paper_recipe(options.task)
    return dataclasses.replace(
        recipe,
        model_options=centered_read_out(options.task, length),
        layer_name=row.layer,
        units=options.units,
        learning_rate=rate,
        optimizer_arguments={"MomentumSGD": {"momentum": momentum, "nesterov": nesterov}},
        epochs=updates // options.every,
        updates_per_epoch=options.every,
        follows="; ".join(part for part in (recipe.follows, chosen) if part),
    )


def comparison(options, command, rates):
    """Return the `Comparison` of all rows at their learning rates."""
    task, setups = load(options), {}
    for row in rows(options):
        rate, told = chosen_rate(rates[row]), choice(rates[row])
        setups[str(row)] = new_setup(options, row, rate, options.updates, told)
    return Comparison(
        task=task,
        setups=setups,
        seeds=options.seeds,
        output=options.output,
        budget={
            "name": "Sutskever et al. (2013), Table 5",
            "updates": options.updates,
            "updates in the paper": sutskever2013.UPDATES,
            "updates between evaluations": options.every,
            "rows in the paper": [f"SimpleRNN {c}" for c in sutskever2013.COLUMNS[1:]],
            "seeds in the paper": sutskever2013.SEEDS,
            "deviations from the paper": DEVIATIONS.replace(
                "no warm-up of momentum 0; " * options.warm_zero, ""
            ),
        },
        title=f"Long dependencies: {options.task}",
        command=command,
        sections=(table,),
        claims=ON_LONG_DEPENDENCIES,
    )


def choice(losses):
    """Return how a learning rate was chosen, in words."""
    if len(losses) == 1:
        return ""
    told = ", ".join(f"{rate:g} ({loss:.4g})" for rate, loss in losses.items())
    return (
        f"the learning rate the largest of those within {NOISE:.0%} of the least validation "
        f"loss in a pilot: {told}"
    )


if __name__ == "__main__":
    main()
