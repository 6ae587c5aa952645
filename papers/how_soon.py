"""How soon does a layer learn to add? Updates and seconds until a given error, by layer.

    python -m papers.how_soon
    python -m papers.how_soon --steps 100 --layers LSTM GRU RMSPropLSTM
    python -m papers.how_soon_report runs/how_soon

The adding problem: each step has a random value and a marker, and the sum of the two marked
values is to be told. Fresh sequences in each update, 32 units, Adam, gradients clipped to a
norm of 1. Every layer trains at each learning rate of `--rates`, with the same seeds, until the
squared error on held-out sequences is below `--error`, or for `--updates` updates.

An Adam or RMSProp rule with a small second moment also multiplies its input. So that this is
not taken for the rule's merit, LSTM and GRU run a second time on inputs multiplied by
10. LayerNormalization has no part: over two channels it keeps only which is larger.

Seeds run one after another through all layers, so that an interrupted comparison is whole up
to its last seed. The same command goes on; layers, lengths, rates and seeds may be added later.
The output directory receives results.json, see `SCHEMA`, report.md and how_soon.png.
"""

import math
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import keras
import numpy as np

from keras_momentum_rnn import rules
from keras_momentum_rnn.layers.registry import available_layers
from papers import tasks
from papers.command_line import documented_parser, new_folder, positive, publish, run_example
from papers.contestants import OUTSIDE
from papers.experiments import runner, surroundings
from papers.experiments.results_file import ResultsFile
from papers.how_soon_report import report_of
from papers.same_sooner import same_sooner

UNITS, BATCH, CLIPNORM, HELD_OUT = 32, 32, 1.0, 500
# Updates between two looks at the error.
INTERVAL = 50
GAIN = 10.0
LOUD = {"step_size": 2.0, "beta": 0.999}


@dataclass(frozen=True)
class Row:
    """A layer with its arguments, and what its inputs are multiplied by before it."""

    layer: str
    arguments: dict = field(default_factory=dict)
    gain: float = 1.0

    def layers(self):
        front = [keras.layers.Rescaling(self.gain)] if self.gain != 1 else []
        given = {n: v() if callable(v) else v for n, v in self.arguments.items()}
        name, rule = self.layer, {}
        if keras.config.backend() == "torch":  # where Keras's own take many times as long
            name, rule = same_sooner(name)
        return [*front, available_layers()[name](UNITS, **given, **rule)]


ROWS = {
    "LSTM": Row("LSTM"),
    "LSTM, inputs x 10": Row("LSTM", gain=GAIN),
    "GRU": Row("GRU"),
    "GRU, inputs x 10": Row("GRU", gain=GAIN),
    "MomentumLSTM": Row("MomentumLSTM", {"momentum": 0.9, "step_size": 2.0}),
    "LearnedMomentum": Row("RuleLSTM", {"rule": lambda: rules.LearnedMomentum(per="unit")}),
    "AdamLSTM": Row("AdamLSTM"),
    "AdamLSTM, bias outside": Row("AdamLSTM", OUTSIDE),
    "RMSPropLSTM": Row("RMSPropLSTM", LOUD),
    "RMSPropLSTM, bias outside": Row("RMSPropLSTM", {**LOUD, **OUTSIDE}),
}

SCHEMA = {
    "commands": "the command lines of all calls",
    "settings": {
        "error": "the squared error that ends a run",
        "most": "updates of a run at most",
        "interval": "updates between two looks at the error",
        "units": "with batch_size, clipnorm and held_out, of all layers",
        "backend": "with device and versions",
    },
    "runs": {
        "layer": "the name in the comparison",
        "steps": "of a sequence",
        "learning_rate": "of Adam",
        "seed": "of weights and of the sequences",
        "parameters": "of the model",
        "curve": "the error on held-out sequences after each interval",
        "updates": "until it was below the error, null where it never was",
        "seconds": "of the processor for an update, the median over intervals but the first",
        "diverged": "whether a loss that is no number ended it",
    },
}


def main(argv=None):
    return run_example(__file__, argv, parse, how_soon)


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--layers", nargs="+", choices=ROWS, default=list(ROWS), help="what to compare")
    add("--steps", nargs="+", type=positive(int), default=[100, 200, 400], help="lengths")
    add("--rates", nargs="+", type=positive(float), default=[2e-3, 5e-3], help="of Adam")
    add("--seeds", type=positive(int), default=5, help="how many runs of each")
    add("--updates", type=positive(int), default=3000, help="of a run at most")
    add("--error", type=positive(float), default=0.01, help="squared, on held-out sequences")
    add("--output", type=new_folder, default=Path("runs/how_soon"), help="for the results")
    return parser.parse_args(argv)


def how_soon(options, command):
    """Compare the layers, write the report, and return the results."""
    results = ResultsFile(
        folder=options.output,
        settings={
            "error": options.error,
            "most": options.updates,
            "interval": INTERVAL,
            "units": UNITS,
            "batch_size": BATCH,
            "clipnorm": CLIPNORM,
            "held_out": HELD_OUT,
            **surroundings(),
        },
        command=command,
        key=("layer", "steps", "learning_rate", "seed"),
        done=lambda run: int(run["curve"] != []),
        complete=lambda content: {entry: content[entry] for entry in SCHEMA},
    )
    runner.finish(
        [(run, 1) for run in planned(options)],
        results,
        lambda run, until, folder, after: train(run, results.content["settings"], after),
        whole=lambda run: 1,
        label=lambda run: f"{run['layer']}, {run['steps']} steps, seed {run['seed']}",
        sentence=lambda run: f"{run['updates'] or 'more than all'} updates",
        unit="run",
    )
    publish(options.output, *report_of(results.content))
    return results.content


def planned(options):
    """Yield the runs before they begin, seed by seed, the shortest sequences first."""
    for seed in range(options.seeds):
        for steps in options.steps:
            for layer in options.layers:
                for rate in options.rates:
                    run = dict.fromkeys(SCHEMA["runs"])
                    told = {"layer": layer, "steps": steps, "learning_rate": rate, "seed": seed}
                    yield {**run, **told, "curve": [], "diverged": False}


@lru_cache(maxsize=1)
def task_of(steps, samples, held_out):
    return tasks.load("adding", steps=steps, samples=samples, held_out=held_out)


def train(run, settings, after):
    """Train a run until it has learned, and fill it in."""
    size = settings["batch_size"]
    samples = settings["interval"] * size
    task = task_of(run["steps"], samples, settings["held_out"])
    keras.utils.set_random_seed(run["seed"])
    model = task.model(*ROWS[run["layer"]].layers())
    optimizer = keras.optimizers.Adam(
        run["learning_rate"], global_clipnorm=settings["clipnorm"]
    )
    task.compile(model, optimizer)
    model.optimizer.build(model.trainable_variables)
    run["parameters"] = model.count_params()
    stop = Until(task, settings["error"])
    epochs = settings["most"] // settings["interval"]
    task.fit(model, size, epochs, seed=run["seed"], callbacks=[stop], verbose=0)
    run["curve"] = [round(value, 6) for value in stop.curve]
    run["diverged"] = not math.isfinite(stop.curve[-1])
    if stop.learned:
        run["updates"] = len(stop.curve) * settings["interval"]
    spent = stop.seconds[1:] or stop.seconds
    run["seconds"] = round(float(np.median(spent)) / settings["interval"], 6)
    if run["diverged"]:
        run["curve"] = [value if math.isfinite(value) else None for value in run["curve"]]
    after()


class Until(keras.callbacks.Callback):
    """End training when the error on held-out sequences is below a bound, or no number."""

    def __init__(self, task, bound):
        super().__init__()
        self.task, self.bound = task, bound
        self.curve, self.seconds, self.learned = [], [], False

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.process_time()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.process_time() - self.start)
        split = self.task.validation
        found = self.model.predict(split.x, batch_size=len(split), verbose=0)
        self.curve.append(float(np.mean((found - split.y) ** 2)))
        self.learned = self.curve[-1] < self.bound
        if self.learned or not math.isfinite(self.curve[-1]):
            self.model.stop_training = True


if __name__ == "__main__":
    main()
