"""Is a momentum worth learning? LSTMs whose rule learns its momentum, or has it fixed.

    python -m papers.learned_momentum adding
    python -m papers.learned_momentum digits --arms fixed unit spread --seeds 3
    python -m papers.learned_momentum speech --folder fsdd
    python -m papers.learned_momentum GunPoint

32 units, learning rate 2e-3, gradients clipped to a norm of 1, momentum and step size 0.6 at
the start. The tasks:

- `adding`: 100 steps, Adam, 2,000 updates of 32 new sequences;
- `digits`, `digits_permuted`: the 8x8 digits of scikit-learn, one pixel a step, in order or in
  one random order, RMSprop, 25 epochs;
- `speech`: the next frame of recordings in a folder of yours, Adam, 40 epochs of 640
  recordings, of at most 60 frames;
- five sets of the UCR and UEA archives inside aeon (extra `archive`), Adam, 1,000 updates of
  16 sequences.

The arms differ only in the rule:

- `LSTM` has none, `fixed` has heavy ball; that of `fixed_louder` has the medians of what
  `gate` learned on the digits, 0.65 and 0.72;
- `scalar`, `gate`, `unit` learn one momentum and step size, one for each gate, or one for each
  gate of each unit; `unit_momentum` and `unit_step_size` learn only one of the two;
- `spread` learns as `unit`, from momenta between 0.05 and 0.98 that are spread over time
  scales, the step size tied to them; `spread_fixed` keeps what it drew.

Further arms, run where `--arms` names them, divide the velocity by the root of a running
second moment of decay 0.999, as Adam does:

- `rmsprop` has no velocity, and the step size 2;
- `scaled_unit`, `scaled_spread` and `scaled_spread_fixed` scale the velocity of the arms of
  those names; `scaled_spread_beta` also learns the decay, one for each gate of each unit.

All arms run with one seed before the next seed begins. If interrupted, repeat the command to
resume. The output directory receives report.md with the number of updates that each
run took, losses.png, time_scales.png and results.json.
"""

import dataclasses
import inspect

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn import RuleLSTM, rules
from keras_momentum_rnn.diagnostics import plot_time_scales, time_scales
from papers import tasks
from papers.command_line import documented_parser, folder, new_folder, positive, run_example
from papers.experiments import Comparison, compare
from papers.presentation import markdown_table

SPREAD = {"per": "unit", "tied": True, "spread": (0.05, 0.98)}
# A run has learned to add where the squared error on validation is no more.
LEARNED = 0.01
SETS = ("ItalyPowerDemand", "JapaneseVowels", "BasicMotions", "GunPoint", "ArrowHead")
# The sets are small: an epoch takes so many samples, each of them several times.
SAMPLES_OF_SETS = 400


@dataclasses.dataclass(frozen=True)
class Budget:
    """How long the arms train on a task."""

    optimizer: str
    batch_size: int
    epochs: int
    task: str
    options: dict = dataclasses.field(default_factory=dict)


TASKS = {
    "adding": Budget("Adam", 32, 20, "adding", {"steps": 100, "samples": 3200}),
    "digits": Budget("RMSprop", 64, 25, "digits"),
    "digits_permuted": Budget("RMSprop", 64, 25, "digits", {"permute": True}),
    "speech": Budget("Adam", 32, 40, "speech", {"frames": 60, "subset": 640}),
    **{name: Budget("Adam", 16, 40, "archive", {"name": name}) for name in SETS},
}


@keras.saving.register_keras_serializable(package="learned_momentum_example")
class PartlyFixed(rules.LearnedMomentum):
    """One of whose weights some are not trained.

    Args:
        fixed: list of their names.
        **numbers: those of `LearnedMomentum`.
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


@keras.saving.register_keras_serializable(package="learned_momentum_example")
class Scaled(rules.Rule):
    """A rule's velocity over the root of a running second moment, as in Adam.

    Args:
        velocity: `Rule` that gives the velocity.
        beta: float in (0, 1), the decay of the second moment.
        learned: bool, whether each number of the drive has a decay of its own that is learned
            and starts at `beta`.
    """

    epsilon = 1e-8

    def __init__(self, velocity, beta=0.999, learned=False):
        self.velocity = rules.get(velocity)
        self.beta, self.learned = beta, learned

    def get_config(self):
        velocity = keras.saving.serialize_keras_object(self.velocity)
        return {"velocity": velocity, "beta": self.beta, "learned": self.learned}

    def slots(self, width):
        return {**self.velocity.slots(width), "m": width}

    def build_for(self, add_weight, width, gates, dtype):
        self.velocity.build_for(add_weight, width, gates, dtype)
        if self.learned:
            start = keras.initializers.Constant(np.log(self.beta / (1 - self.beta)))
            self.beta_logit = add_weight(
                shape=(width,), initializer=start, dtype=dtype, name="beta_logit"
            )

    def update(self, u, slots):
        *slots, m = slots
        v, slots = self.velocity.update(u, slots)
        beta, rest = self.beta, 1 - self.beta
        if self.learned:
            logit = ops.convert_to_tensor(self.beta_logit)
            beta, rest = ops.sigmoid(logit), ops.sigmoid(-logit)
        m = beta * m + rest * (u * u)
        return v * ops.rsqrt(m + self.epsilon), [*slots, m]


MOMENTUM, STEP_SIZE = rules.LearnedMomentum.weight_names
SPREAD_FIXED = PartlyFixed([MOMENTUM, STEP_SIZE], **SPREAD)
ARMS = {
    "LSTM": rules.Identity(),
    "fixed": rules.HeavyBall(),
    "fixed_louder": rules.HeavyBall(0.65, 0.72),
    "scalar": rules.LearnedMomentum(per="scalar"),
    "gate": rules.LearnedMomentum(per="gate"),
    "unit": rules.LearnedMomentum(per="unit"),
    "spread": rules.LearnedMomentum(**SPREAD),
    "spread_fixed": SPREAD_FIXED,
    "unit_momentum": PartlyFixed([STEP_SIZE], per="unit"),
    "unit_step_size": PartlyFixed([MOMENTUM], per="unit"),
}
SCALED_ARMS = {
    "rmsprop": rules.RMSProp(step_size=2, beta=0.999),
    "scaled_unit": Scaled(rules.LearnedMomentum(per="unit")),
    "scaled_spread": Scaled(rules.LearnedMomentum(**SPREAD)),
    "scaled_spread_fixed": Scaled(SPREAD_FIXED),
    "scaled_spread_beta": Scaled(rules.LearnedMomentum(**SPREAD), learned=True),
}


def main(argv=None):
    return run_example(__file__, argv, parse, lambda *given: compare(comparison(*given)))


def parse(argv):
    parser = documented_parser(__doc__)
    add, known = parser.add_argument, [*ARMS, *SCALED_ARMS]
    add("task", choices=TASKS, help="what to learn")
    add("--arms", nargs="+", choices=known, default=list(ARMS), help="what to compare")
    add("--seeds", type=positive(int), default=5, help="how many runs of each")
    add("--epochs", type=positive(int), help="of each run, in place of the task's")
    add("--samples", type=positive(int), help="of an epoch of adding, in place of 3200")
    add("--steps", type=positive(int), help="of adding, in place of 100")
    add("--folder", type=folder, help="of speech: with wav files")
    add("--speaker", default="_(.+)_", help="of speech: regular expression, see tasks.speech")
    add("--output", type=new_folder, help="default: runs/learned_momentum/TASK")
    options = parser.parse_args(argv)
    if options.task == "speech" and options.folder is None:
        parser.error("speech needs --folder")
    options.output = options.output or new_folder(f"runs/learned_momentum/{options.task}")
    return options


def comparison(options, command):
    """Return the `Comparison` of the arms."""
    budget = TASKS[options.task]
    names = {"adding": ("samples", "steps"), "speech": ("folder", "speaker")}
    changed = {name: getattr(options, name) for name in names.get(options.task, ())}
    given = {**budget.options, **{name: value for name, value in changed.items() if value}}
    recipe = tasks.Recipe(
        task=budget.task,
        options=given,
        layer_name="RuleLSTM",
        units=32,
        arguments={},
        optimizer_name=budget.optimizer,
        learning_rate=2e-3,
        clipnorm=1.0,
        batch_size=budget.batch_size,
        epochs=options.epochs or budget.epochs,
        source="small budget",
    )
    task, rules_of = tasks.load(budget.task, **given), {**ARMS, **SCALED_ARMS}
    if budget.task == "archive":
        chosen = np.arange(SAMPLES_OF_SETS) % len(task.train)
        task = dataclasses.replace(task, train=task.train[chosen])
    return Comparison(
        task=task,
        setups={
            name: dataclasses.replace(recipe, arguments={"rule": rules_of[name]})
            for name in dict.fromkeys(options.arms)
        },
        seeds=options.seeds,
        output=options.output,
        budget={"name": "the same updates for all arms"},
        title=f"Learned momentum on {options.task}",
        command=command,
        sections=sections_of(options.task, options.output),
        epochs_at_once=recipe.epochs,
    )


def sections_of(task, folder):
    """Return the sections of the report on a task whose runs are in a folder."""
    return (
        *([updates_to_learn] if task == "adding" else []),
        at_the_end,
        lambda results: scales(results, folder),
    )


def at_the_end(results):
    """Return the test scores after the last epoch, as a section.

    No validation chooses an epoch here. All arms have had the same updates, and with the same
    seed the same batches, so that seeds can be compared one by one.
    """
    settings, cells = results["settings"], []
    metric, sign = settings["metric"], 1 if settings["larger_is_better"] else -1
    ends = {
        row["layer"]: {
            run["seed"]: run["curve"][-1][f"test_{metric}"]
            for run in runs_of(results, row["layer"])
        }
        for row in results["summary"]
    }
    fixed = ends.get("fixed", {})
    for arm, found in ends.items():
        values = list(found.values())
        spread = f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else ""
        both = sorted({*found} & {*fixed}) if arm != "fixed" else []
        ahead = sum(sign * (found[seed] - fixed[seed]) > 0 for seed in both)
        cells.append(
            [
                arm,
                f"{np.mean(values):.3f}{spread}",
                f"{ahead} of {len(both)}" if both else "-",
            ]
        )
    table = markdown_table(["arm", f"test {metric}", "seeds better than `fixed`"], cells)
    return f"## After the last epoch\n\n{table}", {}


def updates_to_learn(results):
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
            rule = ARMS.get(row["layer"])
            if rule is not None and rule.learns and path.exists():
                found.append(time_scales(recurrent_layer(keras.models.load_model(path))))
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


def recurrent_layer(model):
    """Return the layer with the rule; where steps are missing, a mask comes before it."""
    return next(layer for layer in model.layers if isinstance(layer, RuleLSTM))


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


# Arms that a picture tells apart.
SHOWN = ("gate", "unit", "spread", "spread_fixed")
NAMES = ("momentum", "step_size")


def quartiles(values):
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def runs_of(results, layer):
    return [run for run in results["runs"] if run["layer"] == layer and run["curve"]]


if __name__ == "__main__":
    main()
