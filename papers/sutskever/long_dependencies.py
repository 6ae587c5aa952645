"""How far do momentum and a good start bring a plain recurrent network?

    python -m papers.sutskever.long_dependencies adding
    python -m papers.sutskever.long_dependencies adding memory20 multiplication memory5 \\
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
folder `pilot` of its output. With one rate there is no pilot. The default is a tenth of the
paper's updates. On adding, in runs of 6000, too large a rate failed by update 2000, 1000 after
momentum rises, and the row that learned was better than chance by 4500. On the memory tasks too
large a rate fails after 10,000 updates or more: give them pilots of full length.

Several tasks each have a folder in the output, and their runs of seed 0 come before seed 1.
Each receives report.md, with Table 5 beside ours, table5.png, losses.png, score.png and
results.json. If interrupted, repeat the command to resume. You may add layers, momenta, forms
and seeds later; other settings may not change.
"""

import dataclasses
from pathlib import Path

from keras_momentum_rnn.layers.registry import our_layers, ready_layers
from keras_momentum_rnn.optimizers.schedules import WarmConstant
from papers import tasks
from papers.command_line import documented_parser, positive, run_example
from papers.experiments import Comparison, compare
from papers.paper_claims import ON_LONG_DEPENDENCIES
from papers.sutskever.table5 import NOISE, Row, chosen_rate, pilot_losses, pilot_table, table5
from papers.tasks import sutskever2013

# `EchoState` is the kernel of one product of h, which gates and orthogonal layers lack.
LAYERS = ["SimpleRNN", *(name for name in our_layers("RNN") if name in ready_layers())]
MOMENTA = [0.0, 0.9, 0.98, 0.995]
DEVIATIONS = (
    "where the paper leaves the places of the markers and the meaning of a length open, those "
    "of Hochreiter and Schmidhuber (1997); the target of adding is the mean of two numbers, "
    "where the text has their sum: with the tolerance of 0.04 a constant output fails on 0.84 "
    "of the sequences, by the sum on 0.92, in the paper's Table 5 on 0.82; in the memory tasks "
    "a cue says when to recall, and the loss is the mean over the steps of recall; the "
    "learning rate is given or, of several, chosen beforehand with the first seed, by default "
    "in a pilot of 5,000 updates; the paper takes the one that is best at the end; no warm-up "
    "of momentum 0; scored at w, not at the look-ahead, on 1000 held-out sequences, after the "
    "evaluation that is best on another 1000"
)


def main(argv=None):
    return run_example(__file__, argv, parse, run_all)


def run_all(options, command):
    """Run all tasks seed by seed, and return the results of the last."""
    several = len(options.tasks) > 1
    for seeds in range(1, options.seeds + 1):
        for name in options.tasks:
            folder = options.output / name if several else options.output
            rates = pilot(options, name, folder / "pilot", command)
            results = compare(comparison(options, name, seeds, folder, command, rates))
    return results


def parse(argv):
    parser = documented_parser(__doc__)
    rates = list(sutskever2013.LEARNING_RATES)
    add = parser.add_argument
    add("tasks", nargs="+", choices=list(sutskever2013.LENGTHS), help="what to learn")
    add("--layers", nargs="+", choices=LAYERS, default=["SimpleRNN"], help="what to train")
    add("--beside", nargs="+", choices=LAYERS, default=[],
        help="what to train with only the first momentum and form")  # fmt: skip
    add("--momenta", nargs="+", type=float, default=MOMENTA, help="of the optimizer")
    add("--forms", nargs="+", choices=["N", "M"], default=["N", "M"], help="of momentum")
    add("--warm-zero", action="store_true", help="momentum 0, too, begins with 0.9")
    add("--learning-rates", nargs="+", type=positive(float), default=rates, help="to try")
    add("--updates", type=positive(int), default=6000, help="of each run; the paper: 50000")
    add("--pilot", type=positive(int), default=5000, help="updates to choose a rate by")
    add("--every", type=positive(int), default=250, help="updates between two evaluations")
    add("--seeds", type=positive(int), default=1, help="how many runs of each; the paper: 4")
    add("--output", type=Path, help="directory of the results; default: "
        "runs/TASK_momenta, of several tasks runs/long_dependencies")  # fmt: skip
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
    options.tasks = list(dict.fromkeys(options.tasks))
    several = len(options.tasks) > 1
    name = "long_dependencies" if several else f"{options.tasks[0]}_momenta"
    options.output = options.output or Path("runs") / name
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


def pilot(options, name, folder, command):
    """Return for each row the losses by learning rate, from the least to the largest."""
    rates = list(dict.fromkeys(options.learning_rates))
    if len(rates) == 1:
        return {row: {rates[0]: None} for row in rows(options)}
    results = compare(
        Comparison(
            task=load(name, options.every),
            setups={
                f"{row} at {rate:g}": new_setup(options, name, row, rate, options.pilot)
                for row in rows(options)
                for rate in rates
            },
            seeds=1,
            output=folder,
            budget={
                "name": "to choose learning rates",
                "updates": options.pilot,
                "updates between evaluations": options.every,
            },
            title=f"{name}: learning rates",
            command=command,
            sections=(pilot_table,),
        )
    )
    losses = {}
    for row in rows(options):
        found = pilot_losses(results["runs"])[str(row)]
        least_first = sorted(found, key=found.get)
        losses[row] = {rate: found[rate] for rate in least_first if rate in rates}
    return losses


def load(name, every):
    """Return a task as the paper has it, an epoch of it so many updates long."""
    samples = every * sutskever2013.BATCH_SIZE
    return tasks.load(name, **{**paper_recipe(name).options, "samples": samples})


def paper_recipe(name):
    return tasks.recipe(name, "SimpleRNN", sutskever2013.UNITS)


def new_setup(options, name, row, rate, updates, chosen=""):
    """Return the `Recipe` of one row of a task at one learning rate."""
    momentum, nesterov = row.momentum, row.form == "N"
    if momentum or options.warm_zero:
        steps, warm = sutskever2013.WARM_UP
        momentum = WarmConstant(momentum, warm_momentum=warm, warm_steps=steps)
        nesterov = row.form != "M"
    recipe = paper_recipe(name)
    return dataclasses.replace(
        recipe,
        layer_name=row.layer,
        learning_rate=rate,
        optimizer_arguments={"MomentumSGD": {"momentum": momentum, "nesterov": nesterov}},
        epochs=updates // options.every,
        updates_per_epoch=options.every,
        follows="; ".join(part for part in (recipe.follows, chosen) if part),
    )


def comparison(options, name, seeds, folder, command, rates):
    """Return the `Comparison` of all rows of a task at their learning rates."""
    return Comparison(
        task=load(name, options.every),
        setups={
            str(row): new_setup(
                options, name, row, chosen_rate(losses), options.updates, choice(losses)
            )
            for row, losses in rates.items()
        },
        seeds=seeds,
        output=folder,
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
        title=f"Long dependencies: {name}",
        command=command,
        sections=(table5,),
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
