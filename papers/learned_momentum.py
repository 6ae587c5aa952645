"""Is a momentum worth learning? LSTMs whose rule learns its momentum, or has it fixed.

    python -m papers.learned_momentum digits
    python -m papers.learned_momentum speech --folder fsdd
    python -m papers.learned_momentum adding --arms rmsprop scaled_unit scaled_spread \\
        scaled_spread_fixed scaled_spread_beta --output runs/learned_momentum/adding_scaled

The tasks: adding over 100 steps; the 8x8 digits of scikit-learn, one pixel a step, in order or
permuted; the next frame of recordings in a folder of yours; and five small sets of the UCR and
UEA archives inside aeon (extra `archive`). Layers have 32 units; the learning rate is 2e-3,
gradients are clipped to a norm of 1. docs/learned_momentum.md says what each arm is.

All arms run with one seed before the next seed begins. The output directory receives report.md,
time_scales.png and what every comparison writes. If interrupted, repeat the command to resume.
"""

import dataclasses
import inspect
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn import RuleLSTM, rules
from keras_momentum_rnn.diagnostics import time_scales
from papers import tasks
from papers.budgets import small_budget
from papers.command_line import documented_parser, folder, positive, run_example
from papers.diagnostic_plots import plot_time_scales
from papers.experiments import Comparison, compare
from papers.experiments.report import updates_of_an_epoch
from papers.presentation import markdown_table

# A run has learned to add where the squared error on validation is no more.
LEARNED = 0.01
SETS = ("ItalyPowerDemand", "JapaneseVowels", "BasicMotions", "GunPoint", "ArrowHead")
# The sets are small: an epoch takes so many samples, each of them several times.
SAMPLES_OF_SETS = 400


TASKS = {
    "adding": small_budget("adding", "Adam", 32, 32, 20, steps=100, samples=3200),
    "digits": small_budget("digits", "RMSprop", 32, 64, 25),
    "digits_permuted": small_budget("digits", "RMSprop", 32, 64, 25, permute=True),
    "speech": small_budget(
        "speech", "Adam", 32, 32, 40, frames=60, subset=640, speaker="_(.+)_"
    ),
    **{name: small_budget("archive", "Adam", 32, 16, 40, name=name) for name in SETS},
}


@keras.saving.register_keras_serializable(package="learned_momentum")
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


@keras.saving.register_keras_serializable(package="learned_momentum")
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
SPREAD = {"per": "unit", "tied": True, "spread": (0.05, 0.98)}
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
# Run only where `--arms` names them.
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
    add("--folder", type=folder, help="of speech: with wav files")
    add("--output", type=Path, help="default: runs/learned_momentum/TASK")
    options = parser.parse_args(argv)
    if options.task == "speech" and options.folder is None:
        parser.error("speech needs --folder")
    options.output = options.output or Path(f"runs/learned_momentum/{options.task}")
    return options


def comparison(options, command):
    """Return the `Comparison` of the arms."""
    budget, arms = TASKS[options.task], {**ARMS, **SCALED_ARMS}
    given = budget.options | ({"folder": options.folder} if options.folder else {})
    recipe = dataclasses.replace(budget, options=given, layer_name="RuleLSTM")
    task = tasks.load(budget.task, **given)
    if budget.task == "archive":
        chosen = np.arange(SAMPLES_OF_SETS) % len(task.train)
        task = dataclasses.replace(task, train=task.train[chosen])
    sections = [at_the_end, lambda results: learned_scales(results, options.output)]
    if options.task == "adding":
        sections.insert(0, updates_to_learn)
    return Comparison(
        task=task,
        setups={
            name: dataclasses.replace(recipe, arguments={"rule": arms[name]})
            for name in dict.fromkeys(options.arms)
        },
        seeds=options.seeds,
        output=options.output,
        budget={"name": "the same updates for all arms"},
        title=f"Learned momentum on {options.task}",
        command=command,
        sections=tuple(sections),
        epochs_at_once=recipe.epochs,
    )


def by_arm(results):
    """Return the runs of each arm, but for those that diverged in their first epoch."""
    found = {}
    for run in results["runs"]:
        if run["curve"]:
            found.setdefault(run["layer"], []).append(run)
    return found


def at_the_end(results):
    """Return the test scores after the last epoch, of runs that did not diverge, as a section.

    No validation chooses an epoch here. All arms have had the same updates, and with the same
    seed the same batches, so that seeds can be compared one by one.
    """
    settings, cells = results["settings"], []
    metric, sign = settings["metric"], 1 if settings["larger_is_better"] else -1
    ends = {
        arm: {
            run["seed"]: run["curve"][-1][f"test_{metric}"]
            for run in runs
            if not run["diverged"]
        }
        for arm, runs in by_arm(results).items()
    }
    fixed = ends.get("fixed", {})
    for arm, found in ends.items():
        values = list(found.values())
        if not values:
            cells.append([arm, "diverged", "-"])
            continue
        spread = f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else ""
        both = sorted({*found} & {*fixed}) if arm != "fixed" else []
        ahead = sum(sign * (found[seed] - fixed[seed]) > 0 for seed in both)
        told = f"{ahead} of {len(both)}" if both else "-"
        cells.append([arm, f"{np.mean(values):.3f}{spread}", told])
    table = markdown_table(["arm", f"test {metric}", "seeds better than `fixed`"], cells)
    return f"## After the last epoch\n\n{table}", {}


def updates_to_learn(results):
    """Return how many updates each run took to an error of `LEARNED`, as a section."""
    metric, cells = results["settings"]["metric"], []
    for arm, runs in by_arm(results).items():
        found = []
        for run in runs:
            curve = [epoch[f"validation_{metric}"] for epoch in run["curve"]]
            updates = updates_of_an_epoch(results, run)
            epochs = [i for i, value in enumerate(curve, 1) if value <= LEARNED]
            last = f"> {len(curve) * updates:,}"
            found.append(f"{epochs[0] * updates:,}" if epochs else last)
        cells.append([arm, ", ".join(found)])
    table = markdown_table(["arm", "updates of each seed"], cells)
    return f"## Updates until a squared error of {LEARNED} on validation\n\n{table}", {}


def learned_scales(results, folder):
    """Return what the arms learned at their best epoch, as a section with a picture."""
    cells, drawn = [], {}
    for arm, runs in by_arm(results).items():
        paths = (folder / "runs" / f"{arm}-{run['seed']}" / "best.keras" for run in runs)
        if arm not in ARMS or not ARMS[arm].learns:
            continue
        models = [keras.models.load_model(path) for path in paths if path.exists()]
        found = [time_scales(recurrent_layer(model)) for model in models]
        if found:
            drawn[arm] = found[0]
            values = (np.concatenate([f[name].ravel() for f in found]) for name in COLUMNS)
            cells.append([arm, *map(quantiles, values)])
    if not cells:
        return "", {}
    text = (
        "## What was learned\n\nAt the epoch that is best on validation, of the gates and "
        "units of all seeds: the median, and where 90 % of them lie.\n\n"
        f"{markdown_table(['arm', *COLUMNS], cells)}"
    )
    shown = {arm: drawn[arm] for arm in SHOWN if arm in drawn}
    return text, {"time_scales.png": plot_time_scales(shown or drawn, "Learned time scales")}


# What `time_scales` tells of a layer, and arms that a picture tells apart.
COLUMNS = ("momentum", "step_size")
SHOWN = ("gate", "unit", "spread", "spread_fixed")


def recurrent_layer(model):
    """Return the layer with the rule; where steps are missing, a mask comes before it."""
    return next(layer for layer in model.layers if isinstance(layer, RuleLSTM))


def quantiles(values):
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
