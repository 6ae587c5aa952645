"""Train by Hessian-free optimisation and by Nesterov's momentum, for the same CPU time.

    python -m papers.hessian_free adding
    python -m papers.hessian_free curves --seconds 300 --seeds 1

`adding` is that of Sutskever et al. (2013), a plain network of tanh units: HF with and without
its hot start (`decay` 0.95 and 0), and NAG at several learning rates. `curves` is the deep
autoencoder: the hybrid of the paper's appendix A.6, as far as its first phase gets in the time,
HF as Martens (2010) has it, and NAG.

Every run begins with the same weights as the others of its seed and has the same CPU time for
its updates, of all threads; compiling and evaluating do not count. The results that are
committed are those of JAX; on other backends the methods' relative costs differ.

The output directory receives report.md, curves.png and results.json, which holds:

    commands  the command lines that made the runs
    settings  what all runs share: the options, the backend, its device, the versions
    runs      one for each method, learning rate and seed: seconds (CPU), wall_seconds, updates,
              cg_steps, rows (samples in gradients and in products), diverged, load (average of
              the machine at the end), and curve, a list of [seconds, updates, score]

If interrupted, repeat the command to resume. A file notes.md in the output directory becomes
part of the report.
"""

import dataclasses
import functools
import math
import os
import sys
import time
from functools import partial
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.initializers import EchoState
from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel, MomentumSGD
from keras_momentum_rnn.optimizers.schedules import SteppedMomentum, WarmConstant
from papers import tasks
from papers.autoencoders import WIDTHS, curves, deep_autoencoder
from papers.command_line import command_of, documented_parser, ending, positive, publish
from papers.deep_autoencoders import Updates
from papers.experiments import runner, surroundings
from papers.experiments.report import notes
from papers.experiments.results_file import ResultsFile
from papers.hessian_free_report import figures_of, report_of
from papers.hybrid_phases import HYBRID

POINTS = 20
EVALUATED = 5000
IMAGES = 20_000


@dataclasses.dataclass(frozen=True)
class Method:
    """How a run is trained.

    Attributes:
        optimizer: function from a learning rate to an optimizer.
        batch_size: int.
        rates: the learning rates that are tried.
        updates: int, how many are made between two looks at the clock.
        l2: float, the weight decay of the kernels.
    """

    optimizer: object
    batch_size: int
    rates: tuple = (1.0,)
    updates: int = 1
    l2: float = 0.0


def classical_hf(rate, **options):
    """HF as Martens (2010) has it, the gradient on four times the samples of the curvature."""
    return HessianFree(rate, **{"damping": 0.1, "curvature_fraction": 0.25, **options})


def nesterov(rate, momentum):
    return MomentumSGD(rate, momentum, nesterov=True)


def methods_of(task):
    if task == "adding":
        nag = partial(nesterov, momentum=WarmConstant(0.98))
        return {
            "HF": Method(classical_hf, 2000),
            "HF, no hot start": Method(partial(classical_hf, decay=0.0), 2000),
            "NAG": Method(nag, 100, (0.01, 0.003, 0.001), 100),
        }
    first = HYBRID["curves"][0]
    nag = partial(nesterov, momentum=SteppedMomentum(0.99, period=10))
    return {
        "HF, hybrid": Method(
            lambda rate: first.optimizer(), first.batch_size(IMAGES), l2=first.l2
        ),
        "HF, 2010": Method(classical_hf, 5000),
        "NAG": Method(nag, 200, (0.01, 0.003), 25),
    }


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    results = ResultsFile(
        folder=options.output,
        settings=shared_settings(options),
        command=command_of(__file__, argv),
        key=("method", "learning_rate", "seed"),
        done=lambda run: math.floor(run["seconds"]),
        complete=lambda content: {k: content[k] for k in ("commands", "settings", "runs")},
    )
    results.write()
    runner.finish(
        [(run, options.seconds) for run in runs_of(options)],
        results,
        partial(train, options, results.settings),
        whole=lambda run: options.seconds,
        label=results.name,
        sentence=lambda run: f"{run['curve'][-1][2]:.4g} after {run['updates']} updates",
        unit="second",
    )
    report = report_of(results.content, notes(options.output))
    publish(options.output, report, figures_of(results.content))


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("task", choices=["adding", "curves"], help="what to learn")
    add("--methods", nargs="+", help="of those of the task; default: all")
    add("--seconds", type=positive(int), default=40, help="CPU time of each run")
    add("--seeds", type=positive(int), default=3, help="how many runs of each")
    add("--steps", type=positive(int), default=30, help="length of sequences of adding")
    add("--units", type=positive(int), default=50, help="width of the layer of adding")
    add("--output", type=Path, help="for the results; default: runs/hessian_free/TASK")
    options = parser.parse_args(argv)
    known = list(methods_of(options.task))
    options.methods = options.methods or known
    if unknown := set(options.methods) - set(known):
        parser.error(f"argument --methods: must be of {known}. Received: {sorted(unknown)}")
    options.output = options.output or Path("runs/hessian_free") / options.task
    return options


def shared_settings(options):
    """Return what must be equal for runs to be compared."""
    names = ["task", "seconds"] + ["steps", "units"] * (options.task == "adding")
    told = {name: getattr(options, name) for name in names}
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    return {**told, "cores": os.cpu_count(), "OMP_NUM_THREADS": threads, **surroundings()}


def runs_of(options):
    """Return the runs, not yet begun, seed by seed."""
    methods = methods_of(options.task)
    begun = {"seconds": 0.0, "wall_seconds": 0.0, "updates": 0, "cg_steps": 0, "rows": 0}
    return [
        {"method": name, "learning_rate": rate, "seed": seed, **begun, "diverged": False,
         "load": None, "curve": []}
        for seed in range(options.seeds)
        for name in options.methods
        for rate in methods[name].rates
    ]  # fmt: skip


def train(options, settings, run, until, folder, after):
    """Train one run to its end, part by part."""
    method = methods_of(options.task)[run["method"]]
    keras.utils.set_random_seed(run["seed"])
    experiment = EXPERIMENTS[options.task](options, run, method)
    model = experiment.model
    warm_up(model, experiment.batches(0, 1))
    runner.resumed(
        run,
        model,
        part=lambda: to_next_look(run, method, experiment, until),
        ended=lambda: run["diverged"] or run["seconds"] >= until,
        folder=folder,
        settings=settings,
        after=after,
    )


def warm_up(model, batches):
    """Compile what is run later, and leave no trace."""
    variables = runner.state_variables(model)
    before = [ops.convert_to_numpy(v).copy() for v in variables]
    model.fit(batches, shuffle=False, verbose=0)
    for variable, value in zip(variables, before):
        variable.assign(value)


def to_next_look(run, method, experiment, until):
    """Make some updates, and score the model where a point of the curve is due."""
    model, optimizer = experiment.model, experiment.model.optimizer
    if not run["curve"]:
        run["curve"].append([0.0, 0, experiment.score()])
    first = run["updates"]
    batches = experiment.batches(first, first + method.updates)
    if isinstance(optimizer, MomentumSGD):
        optimizer.resume_variable_values(model.trainable_variables)
    cpu, wall = time.process_time(), time.perf_counter()
    fit = model.fit(batches, shuffle=False, verbose=0)
    run["seconds"] += time.process_time() - cpu
    run["wall_seconds"] += time.perf_counter() - wall
    run["updates"] += method.updates
    run["rows"] += method.updates * method.batch_size
    if isinstance(optimizer, HessianFree):
        steps = int(optimizer.total_cg_steps)
        per_step = int(optimizer.curvature_fraction * method.batch_size)
        run["rows"] += (steps - run["cg_steps"]) * per_step
        run["cg_steps"] = steps
    run["diverged"] = not math.isfinite(fit.history["loss"][-1])
    due = (run["curve"][-1][0] // (until / POINTS) + 1) * until / POINTS
    if run["diverged"] or run["seconds"] >= min(due, until):
        run["curve"].append([run["seconds"], run["updates"], experiment.score()])
        run["load"] = round(os.getloadavg()[0], 2)


class Adding:
    """A plain network of tanh units that adds two marked numbers; scored by its errors."""

    def __init__(self, options, run, method):
        self.task = adding_task(options.steps)
        self.seed, self.batch_size = run["seed"], method.batch_size
        normal, seed = keras.initializers.RandomNormal, 3 * run["seed"]
        inputs = keras.Input((options.steps, 2))
        hidden = keras.layers.SimpleRNN(
            options.units,
            kernel_initializer=normal(stddev=0.001, seed=seed),
            recurrent_initializer=EchoState(seed=seed + 1),
        )(inputs)
        outputs = keras.layers.Dense(1, kernel_initializer=normal(stddev=0.1, seed=seed + 2))
        self.model = compiled(inputs, outputs(hidden), method, run, "mse")

    def batches(self, first, last):
        drawn = self.task.train.batches(self.batch_size, seed=self.seed)
        return tasks.Batches(last - first, lambda epoch, i: drawn.batch(0, first + i))

    def score(self):
        """Return the share of test sequences with an error above 0.04."""
        test = self.task.test
        errors = np.abs(self.model.predict(test.x, batch_size=1000, verbose=0) - test.y)
        return float(np.mean(~(errors <= 0.04)))


@functools.cache
def adding_task(steps):
    return tasks.load("adding", variant="sutskever", steps=steps, centered=True, samples=10**9)


class Curves:
    """The deep autoencoder of curves; scored by its squared error, summed over pixels."""

    def __init__(self, options, run, method):
        self.images, self.seed = all_curves(), run["seed"]
        self.batch_size = method.batch_size
        network = deep_autoencoder(WIDTHS["curves"], output="linear")
        for layer in network.layers:
            if method.l2:
                layer.kernel.regularizer = keras.regularizers.L2(method.l2 / 2)
        self.model = compiled(network.inputs, network.outputs, method, run, cross_entropy)

    def batches(self, first, last):
        return Updates(self.images, self.batch_size, self.seed, first, last)

    def score(self):
        images = self.images[:EVALUATED]
        logits = self.model.predict(images, batch_size=1000, verbose=0)
        return float(np.mean(np.sum((1 / (1 + np.exp(-logits)) - images) ** 2, axis=1)))


@functools.cache
def all_curves():
    return curves(IMAGES)


def cross_entropy(y_true, logits):
    """Cross-entropy of each case, summed over its pixels."""
    each = keras.losses.binary_crossentropy(y_true, logits, from_logits=True)
    return each * ops.shape(y_true)[-1]


EXPERIMENTS = {"adding": Adding, "curves": Curves}


def compiled(inputs, outputs, method, run, loss):
    optimizer = method.optimizer(run["learning_rate"])
    kind = HessianFreeModel if isinstance(optimizer, HessianFree) else keras.Model
    model = kind(inputs, outputs)
    model.compile(optimizer, loss)
    optimizer.build(model.trainable_variables)
    return model


if __name__ == "__main__":
    with ending():
        main()
