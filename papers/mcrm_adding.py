"""Does a GRU inside an LSTM learn to add better than the others do?

    python -m papers.mcrm_adding
    python -m papers.mcrm_adding --layers LSTM MCRM --seeds 2

The adding problem of Mohamed and Claudel (2018), Table 1: five layers of about 95,000 weights
each, 60 epochs of 1,563 updates with Adam.

RNN, GRU and LSTM train as RuleRNN, RuleGRU and RuleLSTM with the rule Identity: the same
equations, in less time. With the extra `cpu` a seed takes about 5 hours on one CPU core with
JAX. So the layers take turns, `--at-once` epochs each, and can be compared long before the end.
If interrupted, repeat the command to resume. Layers, seeds and epochs at once may change later,
and processes with layers of their own may share an output. It receives report.md, losses.png
and results.json; papers/experiments makes the report.
"""

import dataclasses

from keras_momentum_rnn import rules
from papers import tasks
from papers.command_line import add_task_options, comparison_parser, positive, run_example
from papers.experiments import Comparison, compare
from papers.paper_claims import claims_on

# The most informative first: the paper's best, then its rivals.
LAYERS = ("MCRM", "GRU", "LSTM", "NestedLSTM", "SimpleRNN")
# Keras's layers train as these, in less time; the committed results have these names.
RULE_LAYERS = {"SimpleRNN": "RuleRNN", "GRU": "RuleGRU", "LSTM": "RuleLSTM"}
OPTIONS = {"variant": "mcrm", "steps": 200}
DEVIATIONS = (
    "the markers stand at two steps anywhere, as in the code, where the text has them at the "
    "last two; every sequence starts at zero states, where in the code RNN, GRU and LSTM go "
    "on with those of the batch before; the units are those of Table 2, where the code builds "
    "300 for MCRM; weights start as Keras starts them; scored on {held_out} sequences, after "
    "the epoch that is best on another {held_out}; RNN, GRU and LSTM run as Rule layers with "
    "the rule Identity, which have the same equations; the paper does not tell its number of "
    "seeds, one counts as its budget here"
)


def main(argv=None):
    return run_example(__file__, argv, parse, lambda *given: compare(comparison(*given)))


def parse(argv):
    paper = tasks.recipe("adding", "MCRM", **OPTIONS)
    output = "runs/mcrm_adding"
    parser = comparison_parser(__doc__, LAYERS, output, epochs=paper.epochs)
    add, updates = parser.add_argument, paper.updates_per_epoch
    add("--updates", type=positive(int), default=updates, help="of an epoch")
    add("--at-once", type=positive(int), default=4, help="epochs of a layer before the next")
    add_task_options(parser)
    options = parser.parse_args(argv)
    if options.updates > updates:
        parser.error(
            f"argument --updates: must be at most {updates}, the paper's pass over its "
            f"sequences. Received: {options.updates}"
        )
    if "variant" in (given := dict(options.set)):
        parser.error(
            "argument --set: this table has the variant mcrm; papers.reproduce has the others. "
            f"Received: variant={given['variant']}"
        )
    return options


def comparison(options, command):
    """Return the `Comparison` of the layers."""
    paper = tasks.recipe("adding", "MCRM", **OPTIONS)
    # The paper's 50,000 sequences do not fill the last of its 1,563 batches.
    given = {"samples": min(50_000, options.updates * paper.batch_size), **dict(options.set)}
    task = tasks.load("adding", **{**OPTIONS, **given})
    return Comparison(
        task=task,
        setups={name: setup(name, options.epochs) for name in dict.fromkeys(options.layers)},
        seeds=options.seeds,
        output=options.output,
        budget={
            "name": "Mohamed and Claudel (2018), Table 1",
            "updates in the paper": paper.epochs * paper.updates_per_epoch,
            "rows in the paper": ["SimpleRNN", "GRU", "LSTM", "NestedLSTM", "MCRM"],
            "seeds in the paper": 1,
            "deviations from the paper": DEVIATIONS.format(held_out=len(task.test)),
        },
        title=f"Adding, {task.test.x.shape[1]} steps: MCRM and its rivals",
        command=command,
        epochs_at_once=options.at_once,
        claims=claims_on("adding"),
    )


def setup(name, epochs):
    """Return the `Recipe` of a layer."""
    recipe = tasks.recipe("adding", name, **OPTIONS)
    rule = {"rule": rules.Identity()} if name in RULE_LAYERS else {}
    arguments = {**recipe.arguments, **rule}
    layer = RULE_LAYERS.get(name, name)
    return dataclasses.replace(recipe, layer_name=layer, arguments=arguments, epochs=epochs)


if __name__ == "__main__":
    main()
