"""Train by Hessian-free optimisation and by Nesterov's momentum, for the same CPU time.

    python -m papers.sutskever.hessian_free adding
    python -m papers.sutskever.hessian_free curves --seconds 300 --seeds 1

`adding` is that of Sutskever et al. (2013) over 30 steps, a plain network of 50 tanh units: HF
with and without its hot start (`decay` 0.95 and 0), and NAG at several learning rates. `curves`
is the deep autoencoder: the hybrid of the paper's appendix A.6, as far as its first phase gets
in the time, HF with the damping of Martens (2010), and NAG.

Every run begins with the same weights as the others of its seed and has the same CPU time for
its updates, of all threads; compiling and evaluating do not count. The results that are
committed are those of JAX; on other backends the methods' relative costs differ.

The output directory receives report.md, curves.png and results.json, with one entry of `runs`
for each method, learning rate and seed: seconds (CPU), wall_seconds, updates, cg_steps, rows
(samples in gradients and in products), diverged, load (average of the machine at the end, where
the system tells it) and curve, a list of [seconds, updates, score].

If interrupted, repeat the command to resume.
"""

import dataclasses
import math
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel, MomentumSGD
from keras_momentum_rnn.optimizers.schedules import SteppedMomentum, WarmConstant
from papers import tasks
from papers.command_line import documented_parser, positive, publish, run_example
from papers.experiments import runner, surroundings
from papers.experiments.report import notes
from papers.experiments.results_file import ResultsFile
from papers.experiments.training import load
from papers.initializers import EchoState
from papers.sutskever.curves import (
    IMAGES,
    WIDTHS,
    cross_entropy,
    curves,
    deep_autoencoder,
    squared_error,
    updates_of,
)
from papers.sutskever.hessian_free_report import figures_of, report_of

# Of adding.
STEPS, UNITS = 30, 50
# How many points a curve has, and on how many images an autoencoder is evaluated.
POINTS, EVALUATED = 20, 5000


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

    optimizer: Callable
    batch_size: int
    rates: tuple = (1.0,)
    updates: int = 1
    l2: float = 0.0


# The damping of Martens (2010), and the gradient on four times the samples of the curvature.
hf_of_2010 = partial(HessianFree, damping=0.1, curvature_fraction=0.25)
# The first phase of appendix A.6: fixed steps of CG and no line search.
hybrid = partial(
    HessianFree, cg_steps=50, tolerance=None, decay=0.95, backtracking=False, line_search=False
)
nesterov = partial(MomentumSGD, nesterov=True)
METHODS = {
    "adding": {
        "HF": Method(hf_of_2010, 2000),
        "HF, no hot start": Method(partial(hf_of_2010, decay=0.0), 2000),
        "NAG": Method(
            partial(nesterov, momentum=WarmConstant(0.98)), 100, (0.01, 0.003, 0.001), 100
        ),
    },
    "curves": {
        "HF, hybrid": Method(hybrid, IMAGES["curves"] // 16, l2=2e-5),
        "HF, 2010": Method(hf_of_2010, 5000),
        "NAG": Method(
            partial(nesterov, momentum=SteppedMomentum(0.99, period=10)), 200, (0.01, 0.003), 25
        ),
    },
}


def main(argv=None):
    return run_example(__file__, argv, parse, compare)


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("task", choices=list(METHODS), help="what to learn")
    add("--seconds", type=positive(int), default=40, help="CPU time of each run")
    add("--seeds", type=positive(int), default=3, help="how many runs of each")
    add("--output", type=Path, help="for the results; default: runs/hessian_free/TASK")
    return parser.parse_args(argv)


def compare(options, command):
    results = ResultsFile(
        folder=options.output or Path("runs/hessian_free") / options.task,
        settings=shared_settings(options),
        command=command,
        key=("method", "learning_rate", "seed"),
        done=lambda run: math.floor(run["seconds"]),
    )
    results.write()
    runner.finish(
        [(run, options.seconds) for run in runs_of(options.task, options.seeds)],
        results,
        partial(train, options.task, results.settings),
        whole=lambda run: options.seconds,
        label=results.name,
        sentence=lambda run: f"{run['curve'][-1][2]:.4g} after {run['updates']} updates",
        unit="second",
    )
    report = report_of(results.content, notes(results.folder))
    publish(results.folder, report, figures_of(results.content))
    return results.content


def shared_settings(options):
    """Return what must be equal for runs to be compared."""
    sizes = {"steps": STEPS, "units": UNITS} if options.task == "adding" else {}
    return {
        "task": options.task,
        "seconds": options.seconds,
        **sizes,
        "cores": os.cpu_count(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
        **surroundings(),
    }


def runs_of(task, seeds):
    """Return the runs, not yet begun, seed by seed."""
    counts = {"seconds": 0.0, "wall_seconds": 0.0, "updates": 0, "cg_steps": 0, "rows": 0}
    begun = {**counts, "diverged": False}
    return [
        {"method": name, "learning_rate": rate, "seed": seed, **begun, "curve": []}
        for seed in range(seeds)
        for name, method in METHODS[task].items()
        for rate in method.rates
    ]


def train(task, settings, run, until, folder, after):
    """Train one run to its end, part by part."""
    method = METHODS[task][run["method"]]
    keras.utils.set_random_seed(run["seed"])
    problem = PROBLEMS[task](run, method)
    warm_up(problem)
    runner.resumed(
        run,
        problem.model,
        part=lambda: to_next_look(run, method, problem, until),
        ended=lambda: run["diverged"] or run["seconds"] >= until,
        folder=folder,
        settings=settings,
        after=after,
    )


def warm_up(problem):
    """Compile what is run later, and leave no trace."""
    variables = runner.state_variables(problem.model)
    before = [ops.convert_to_numpy(v).copy() for v in variables]
    problem.model.fit(problem.batches(0, 1), shuffle=False, verbose=0)
    for variable, value in zip(variables, before):
        variable.assign(value)


def to_next_look(run, method, problem, until):
    """Make some updates, and score the model where a point of the curve is due."""
    model, optimizer = problem.model, problem.model.optimizer
    if not run["curve"]:
        run["curve"].append([0.0, 0, problem.score()])
    batches = problem.batches(run["updates"], run["updates"] + method.updates)
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
        samples = int(optimizer.curvature_fraction * method.batch_size)
        # An update has two products beside CG's steps: of its start, and of the step it takes.
        run["rows"] += (steps - run["cg_steps"] + 2 * method.updates) * samples
        run["cg_steps"] = steps
    run["diverged"] = not math.isfinite(fit.history["loss"][-1])
    due = (run["curve"][-1][0] // (until / POINTS) + 1) * until / POINTS
    if run["diverged"] or run["seconds"] >= min(due, until):
        run["curve"].append([run["seconds"], run["updates"], problem.score()])
        run |= load()


class Problem(NamedTuple):
    """What a run trains.

    Attributes:
        model: compiled Keras model.
        batches: function from the first update and the one after the last to their batches.
        score: function without arguments.
    """

    model: keras.Model
    batches: Callable
    score: Callable


def adding(run, method):
    """A plain network that adds two marked numbers; its score is the share of errors > 0.04."""
    task = tasks.load("adding", variant="sutskever", steps=STEPS, centered=True, samples=10**9)
    normal, seed = keras.initializers.RandomNormal, 3 * run["seed"]
    inputs = keras.Input((STEPS, 2))
    hidden = keras.layers.SimpleRNN(
        UNITS,
        kernel_initializer=normal(stddev=0.001, seed=seed),
        recurrent_initializer=EchoState(seed=seed + 1),
    )(inputs)
    outputs = keras.layers.Dense(1, kernel_initializer=normal(stddev=0.1, seed=seed + 2))
    model = compiled(inputs, outputs(hidden), method, run, "mse")
    drawn = task.train.batches(method.batch_size, seed=run["seed"])

    def batches(first, last):
        return tasks.Batches(last - first, lambda epoch, i: drawn.batch(0, first + i))

    def score():
        errors = np.abs(model.predict(task.test.x, batch_size=1000, verbose=0) - task.test.y)
        return float(np.mean(~(errors <= 0.04)))

    return Problem(model, batches, score)


def deep(run, method):
    """The deep autoencoder of curves; its score is the squared error."""
    images = curves(IMAGES["curves"])
    network = deep_autoencoder(WIDTHS["curves"])
    if method.l2:
        for layer in network.layers:
            layer.kernel.regularizer = keras.regularizers.L2(method.l2 / 2)
    model = compiled(network.inputs, network.outputs, method, run, cross_entropy)
    return Problem(
        model,
        partial(updates_of, images, method.batch_size, run["seed"]),
        lambda: squared_error(model, images[:EVALUATED]),
    )


def compiled(inputs, outputs, method, run, loss):
    optimizer = method.optimizer(run["learning_rate"])
    kind = HessianFreeModel if isinstance(optimizer, HessianFree) else keras.Model
    model = kind(inputs, outputs)
    model.compile(optimizer, loss)
    optimizer.build(model.trainable_variables)
    return model


PROBLEMS = {"adding": adding, "curves": deep}


if __name__ == "__main__":
    main()
