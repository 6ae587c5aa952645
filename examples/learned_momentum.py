"""Is a momentum worth learning? LSTMs whose rule learns its momentum, or has it fixed.

    python examples/learned_momentum.py adding
    python examples/learned_momentum.py digits --arms fixed unit spread --seeds 3

`adding`: 100 steps, 2,000 updates of 32 new sequences, Adam 2e-3. `digits`: the 8x8 digits
of scikit-learn, one pixel a step, 25 epochs, RMSprop 2e-3. 32 units, gradients clipped to a
norm of 1, momentum and step size 0.6 at the start. The arms differ only in the rule:

- `LSTM` has none, `fixed` has heavy ball; that of `fixed_louder` has the medians of what
  `gate` learned on the digits, 0.65 and 0.72;
- `scalar`, `gate`, `unit` learn one momentum and step size, one for each gate, or one for each
  gate of each unit; `unit_momentum` and `unit_step_size` learn only one of the two;
- `spread` learns as `unit`, from momenta between 0.05 and 0.98 that are spread over time
  scales, the step size tied to them; `spread_fixed` keeps what it drew.

All arms run with one seed before the next seed begins. If interrupted, repeat the command to
resume. The output directory receives report.md with the number of updates that each
run took, losses.png, time_scales.png and results.json.
"""

import dataclasses
import inspect

import keras
import numpy as np
from command_line import documented_parser, new_folder, positive, run_example

from keras_momentum_rnn import rules, tasks
from keras_momentum_rnn.diagnostics import plot_time_scales, time_scales
from keras_momentum_rnn.experiments import Comparison, compare
from keras_momentum_rnn.presentation import markdown_table

SPREAD = {"per": "unit", "tied": True, "spread": (0.05, 0.98)}
# A run has learned to add if its squared error on validation is at most this.
LEARNED = 0.01
TASKS = {
    "adding": ("Adam", {"steps": 100, "samples": 3200}, 32, 20),
    "digits": ("RMSprop", {}, 64, 25),
}


@keras.saving.register_keras_serializable(package="learned_momentum_example")
class PartlyFixed(rules.LearnedMomentum):
    """A `LearnedMomentum` that keeps some of its weights fixed.

    Args:
        fixed: list of the names of the fixed weights.
        **numbers: the arguments of `LearnedMomentum`.
    """

    def __init__(self, fixed=(), **numbers):
        super().__init__(**numbers)
        self.fixed = list(fixed)

    def build_for(self, *args):
        super().build_for(*args)
        for name in self.fixed:
            getattr(self, name).trainable = False

    def get_config(self):
        names = ["fixed", *inspect.signature(rules.LearnedMomentum).parameters]
        return {name: getattr(self, name) for name in names}


MOMENTUM, STEP_SIZE = rules.LearnedMomentum.weight_names
ARMS = {
    "LSTM": rules.Identity(),
    "fixed": rules.HeavyBall(),
    "fixed_louder": rules.HeavyBall(0.65, 0.72),
    "scalar": rules.LearnedMomentum(per="scalar"),
    "gate": rules.LearnedMomentum(per="gate"),
    "unit": rules.LearnedMomentum(per="unit"),
    "spread": rules.LearnedMomentum(**SPREAD),
    "spread_fixed": PartlyFixed([MOMENTUM, STEP_SIZE], **SPREAD),
    "unit_momentum": PartlyFixed([STEP_SIZE], per="unit"),
    "unit_step_size": PartlyFixed([MOMENTUM], per="unit"),
}


def main(argv=None):
    return run_example(__file__, argv, parse, lambda *given: compare(comparison(*given)))


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("task", choices=TASKS, help="what to learn")
    add("--arms", nargs="+", choices=ARMS, default=list(ARMS), help="what to compare")
    add("--seeds", type=positive(int), default=5, help="how many runs of each")
    add("--epochs", type=positive(int), help="of each run, in place of the task's")
    add("--samples", type=positive(int), help="of an epoch of adding, in place of 3200")
    add("--steps", type=positive(int), help="of adding, in place of 100")
    add("--output", type=new_folder, help="default: runs/learned_momentum/TASK")
    options = parser.parse_args(argv)
    options.output = options.output or new_folder(f"runs/learned_momentum/{options.task}")
    return options


def comparison(options, command):
    """Return the `Comparison` of the arms."""
    optimizer, given, batch_size, epochs = TASKS[options.task]
    changed = {"samples": options.samples, "steps": options.steps}
    given = {**given, **{n: v for n, v in changed.items() if v and options.task == "adding"}}
    recipe = tasks.Recipe(
        task=options.task,
        options=given,
        layer_name="RuleLSTM",
        units=32,
        arguments={},
        optimizer_name=optimizer,
        learning_rate=2e-3,
        clipnorm=1.0,
        batch_size=batch_size,
        epochs=options.epochs or epochs,
        source="small budget",
    )
    sections = (updates_to_learn, scales) if options.task == "adding" else (scales,)
    return Comparison(
        task=tasks.load(options.task, **given),
        setups={
            name: dataclasses.replace(recipe, arguments={"rule": ARMS[name]})
            for name in dict.fromkeys(options.arms)
        },
        seeds=options.seeds,
        output=options.output,
        budget={"name": "the same updates for all arms"},
        title=f"Learned momentum on {options.task}",
        command=command,
        sections=tuple(with_folder(section, options.output) for section in sections),
        epochs_at_once=recipe.epochs,
    )


def with_folder(section, folder):
    return lambda results: section(results, folder)


def updates_to_learn(results, folder):
    """Return how many updates each run took to an error of `LEARNED`, as a section."""
    metric, cells = results["settings"]["metric"], []
    samples = results["settings"]["samples"]["train"]
    for row in results["summary"]:
        found = []
        for run in runs_of(results, row["layer"]):
            curve = [epoch[f"validation_{metric}"] for epoch in run["curve"]]
            updates = -(-samples // run["setup"]["batch_size"])
            epochs = [i for i, value in enumerate(curve, 1) if value <= LEARNED]
            last = f"> {len(curve) * updates:,}"
            found.append(f"{epochs[0] * updates:,}" if epochs else last)
        cells.append([row["layer"], ", ".join(found)])
    table = markdown_table(["arm", "updates of each seed"], cells)
    return f"## Updates until a squared error of {LEARNED} on validation\n\n{table}", {}


def scales(results, folder):
    """Return what the arms learned at their best epoch, as a section with a picture."""
    cells, drawn = [], {}
    for row in results["summary"]:
        found = []
        for run in runs_of(results, row["layer"]):
            path = folder / "runs" / f"{run['layer']}-{run['seed']}" / "best.keras"
            if row["layer"] in ARMS and ARMS[row["layer"]].learns and path.exists():
                found.append(time_scales(keras.models.load_model(path).layers[0]))
        if found:
            drawn[row["layer"]] = found[0]
            mu, s = (np.concatenate([f[n].ravel() for f in found]) for n in NAMES)
            cells.append([row["layer"], *map(quartiles, (mu, s))])
    if not cells:
        return "", {}
    table = markdown_table(["arm", *NAMES], cells)
    text = (
        "## What was learned\n\nAt the epoch that is best on validation, of the gates and "
        f"units of all seeds: the median, and where 90 % of them lie.\n\n{table}"
    )
    return text, {"time_scales.png": picture(drawn)}


def picture(drawn):
    """Draw the arms that learn many momenta; the title says how far these moved."""
    told = []
    for name, start in (("gate", 0.6), ("unit", 0.6)):
        if name in drawn:
            change = np.median(np.abs(drawn[name]["momentum"] - start))
            told.append(f"{change:.2f} ({name})")
    title = f"Median move of a momentum from 0.6: {', '.join(told)}" if told else None
    shown = {name: drawn[name] for name in SHOWN if name in drawn}
    return plot_time_scales(shown or drawn, title)


# The arms that the picture shows.
SHOWN = ("gate", "unit", "spread", "spread_fixed")
NAMES = ("momentum", "step_size")


def quartiles(values):
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def runs_of(results, layer):
    return [run for run in results["runs"] if run["layer"] == layer and run["curve"]]


if __name__ == "__main__":
    main()
