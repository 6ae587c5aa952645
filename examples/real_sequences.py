"""Which layer, when? Layers compared on real sequences, each with numbers searched for it.

    python examples/real_sequences.py
    python examples/real_sequences.py --sets GunPoint --layers LSTM GRU RMSPropLSTM
    python examples/real_sequences_report.py runs/real_sequences --output runs/report

Needs the extras `archive`, `examples` and `tuner`. The sets are those of the UCR and UEA
archives inside aeon and sktime, or in `--folder`, series of statsmodels, of which the next
value is to be told, scikit-learn's digits by rows and by pixels, and spoken digits, of which
`--recordings` names the folder; nothing is downloaded.

On each set all layers have as many parameters as an LSTM of `--units` units. For each layer,
`tuning.tune` makes `--trials` trials of learning rate and the layer's own numbers, the first by
default, and the validation loss chooses. With the best, `--seeds` fresh seeds train, each until
the validation loss has not improved for `--patience` epochs of `--updates` updates; the model
of the best epoch is tested once, and again with its inputs changed, see `perturbations.py`.

The output directory receives a folder for each set with results.json, see `SCHEMA`, and the
searches. After an interruption the same command goes on: at most one trial or one run is lost.
Sets may run in several processes at a time; layers, seeds and sets may be added later.
"""

import math
import time
from functools import partial
from pathlib import Path

import keras
import keras_tuner
import numpy as np
from command_line import documented_parser, folder, new_folder, positive, run_example
from contestants import (
    CONTESTANTS,
    REFERENCES,
    SAMPLE,
    Contestant,
    excluded,
    parameters,
    parameters_of,
    solved_units,
)
from perturbations import perturbed
from real_sets import SETS, loader
from reference_lines import reference_run
from rich import print

from keras_momentum_rnn.atomic_files import differences
from keras_momentum_rnn.experiments import runner, surroundings
from keras_momentum_rnn.experiments.results_file import ResultsFile
from keras_momentum_rnn.tasks.archive import MASK_VALUE, masked, standardised
from keras_momentum_rnn.tasks.task import Batches, Epochs
from keras_momentum_rnn.tuning import suggest_layer, tune

RATES = (3e-4, 3e-2)
DEFAULT_RATE = 3e-3
CLIPNORM = 1.0
EVALUATION_BATCH = 512
# Of the searches; those of the runs begin at 0.
SEARCH_SEED = 1000

SCHEMA = {
    "commands": "the command lines of all calls",
    "settings": {
        "task": "its options, samples, steps, channels, metric, larger_is_better, chance",
        "budget": "units of the LSTM, parameters, trials, updates of an epoch, epochs at most, "
        "patience, batch_size, learning rates and clipnorm",
        "backend": "with device and versions",
    },
    "runs": {
        "layer": "the name in the comparison",
        "seed": "of weights and of the order of samples",
        "parameters": "of the model, the trained ones",
        "setup": "layer, units, arguments; numbers and learning_rate of the best trial; "
        "validation, its loss; trials, how many completed",
        "curve": "for each epoch the validation's loss and, of classes, accuracy",
        "best_epoch": "that of the lowest validation loss, counted from 1",
        "test": "loss and score at that epoch",
        "perturbed": "the same with the test inputs changed, by name",
        "stopped": "whether patience ended it, not the last epoch",
        "seconds": "of the processor, for training, its compilation and its validation",
        "diverged": "whether a loss that is no number ended it",
    },
}


def main(argv=None):
    return run_example(__file__, argv, parse, study)


def parse(argv):
    parser = documented_parser(__doc__)
    add, known = parser.add_argument, [*CONTESTANTS, *REFERENCES]
    add("--sets", nargs="+", metavar="NAME", help="in this order; default: all there are")
    add("--folder", type=folder, help="with .ts files, in place of the sets inside aeon")
    add("--recordings", type=folder, help="with {digit}_{speaker}_{index}.wav, SpokenDigits")
    add("--layers", nargs="+", choices=known, default=known, help="what to compare")
    add("--units", type=positive(int), default=32, help="of the LSTM whose size all have")
    add("--trials", type=positive(int), default=8, help="of each layer's search")
    add("--seeds", type=positive(int), default=5, help="runs of each layer with the best")
    add("--updates", type=positive(int), default=50, help="of an epoch")
    add("--epochs", type=positive(int), default=80, help="at most")
    add("--patience", type=positive(int), default=15, help="epochs without a better loss")
    add("--batch-size", type=positive(int), default=16, help="sequences per update")
    add("--output", type=new_folder, default=Path("runs/real_sequences"), help="for results")
    options = parser.parse_args(argv)
    if options.sets is None:
        options.sets = [n for n in SETS if n != "SpokenDigits" or options.recordings]
    if "SpokenDigits" in options.sets and not (options.recordings or options.folder):
        parser.error("SpokenDigits needs --recordings, the folder of its wav files")
    options.layers = list(dict.fromkeys(options.layers))
    return options


def study(options, command):
    """Compare the layers on all sets, and return the results by set."""
    return {name: compare_on(name, options, command) for name in dict.fromkeys(options.sets)}


def compare_on(name, options, command):
    """Compare the layers on a set, and return its results."""
    load = loader(name, options)
    loaded = {how: load(standardise=how) for how in ("training", SAMPLE)}
    task = loaded["training"]
    lstm = CONTESTANTS["LSTM"]
    budget = {
        "units of the LSTM": options.units,
        "parameters": parameters_of(task, lstm, options.units),
        "trials": options.trials,
        "updates of an epoch": options.updates,
        "epochs at most": options.epochs,
        "patience": options.patience,
        "batch_size": options.batch_size,
        "learning rates": RATES,
        "clipnorm": CLIPNORM,
    }
    results = ResultsFile(
        folder=options.output / name,
        settings={"task": told(task), "budget": budget, **surroundings()},
        command=command,
        key=("layer", "seed"),
        done=lambda run: int(run["test"] is not None),
        complete=lambda content: {entry: content[entry] for entry in SCHEMA},
    )
    results.write()
    for layer in options.layers:
        new = [new_run(layer, seed) for seed in range(options.seeds)]
        if all(results.ended(results.known(run), 1) for run in new):
            continue
        print(f"{name}: {layer}")
        if why := excluded(layer, *task.input_shape):
            print(f"{layer} is left out: {why}")
            continue
        if layer in REFERENCES:
            for run in new:
                results.write(reference_run(run, task))
            continue
        contestant = CONTESTANTS[layer]
        given = loaded[contestant.standardise]
        setup = searched(contestant, given, budget, options, results.folder / "search" / layer)
        earlier = [run for run in results.content["runs"] if run["layer"] == layer]
        if different := [line for run in earlier for line in differences(run["setup"], setup)]:
            raise ValueError(f"The search of {layer} changed; remove its runs:{different}")
        runner.finish(
            [({**run, "setup": setup}, 1) for run in new],
            results,
            partial(train, contestant=contestant, task=given, base=task, budget=budget),
            whole=lambda run: 1,
            label=lambda run: f"{run['layer']}, seed {run['seed']}",
            sentence=partial(sentence, metric=task.metric),
            unit="run",
        )
    return results.content


def told(task):
    """Return what results.json says of a task."""
    options = {name: value for name, value in task.options.items() if name != "folder"}
    return {
        **options,
        "samples": [len(getattr(task, part)) for part in ("train", "validation", "test")],
        "steps": task.input_shape[0],
        "channels": task.input_shape[1],
        "masked": bool((task.test.x == MASK_VALUE).any()),
        "metric": task.metric,
        "larger_is_better": task.larger_is_better,
        "chance": task.chance,
    }


def new_run(layer, seed):
    """Return the record of a run that has not begun."""
    entries = dict.fromkeys(SCHEMA["runs"])
    return {**entries, "layer": layer, "seed": seed, "diverged": False, "curve": []}


def sentence(run, metric):
    return "diverged" if run["diverged"] else f"test {metric} {run['test'][metric]:.3f}"


class Search(keras_tuner.HyperModel):
    """The models of a search: one layer, its numbers and the learning rate to be chosen.

    Args:
        contestant: `Contestant`.
        task: `Task`.
        units: int.
        budget: dict, as in results.json.
    """

    objective = keras_tuner.Objective("val_loss", "min")

    def __init__(self, contestant, task, units, budget):
        super().__init__()
        self.contestant: Contestant = contestant
        self.task, self.units, self.budget = task, units, budget

    def build(self, hp):
        layer = suggest_layer(
            hp, [self.contestant.layer], self.units, **self.contestant.arguments
        )
        rate = hp.Float("learning_rate", *RATES, sampling="log")
        return self.contestant.model(self.task, layer, rate, self.budget["clipnorm"])

    def fit(self, hp, model, *args, callbacks=(), **kwargs):
        return fit(model, self.task, self.budget, SEARCH_SEED, callbacks)


def searched(contestant, task, budget, options, directory):
    """Return the setup that a search found, a dict."""
    units = solved_units(task, contestant, budget["parameters"])
    results = tune(
        Search(contestant, task, units, budget),
        directory=directory,
        max_trials=options.trials,
        epochs=options.epochs,
        first=[{"learning_rate": DEFAULT_RATE, **contestant.defaults()}],
        seed=SEARCH_SEED,
        validation_data=(task.validation.x, task.validation.y),
    )
    values = dict(results.best.values)
    rate = values.pop("learning_rate")
    numbers = {n: v for n, v in values.items() if n not in ("layer", "units")}
    return {
        "layer": contestant.layer,
        "units": units,
        "arguments": contestant.arguments,
        "numbers": numbers,
        "learning_rate": rate,
        "validation": results.best.score,
        "trials": sum(row.completed for row in results.rows),
    }


def repeated(split, batch_size, updates, seed):
    """Return whole batches of a split, passes in orders of their own one after another.

    Sets are small: an epoch of several passes spends less of its time on validation, and whole
    batches compile once.
    """
    count = len(split)

    def batch(epoch, i):
        first = (epoch * updates + i) * batch_size
        places = np.arange(first, first + batch_size)
        orders = {
            number: np.random.default_rng([seed, number]).permutation(count)
            for number in {*(places // count).tolist()}
        }
        chosen = split[np.array([orders[place // count][place % count] for place in places])]
        return chosen.x, chosen.y

    return Batches(updates, batch)


def fit(model, task, budget, seed, callbacks=()):
    """Train until the validation loss no longer improves, and return Keras's history.

    The weights are then those of the best epoch.
    """
    batches = repeated(task.train, budget["batch_size"], budget["updates of an epoch"], seed)
    stop = keras.callbacks.EarlyStopping(
        monitor="val_loss", patience=budget["patience"], restore_best_weights=True
    )
    return model.fit(
        batches,
        epochs=budget["epochs at most"],
        validation_data=task.validation.batches(EVALUATION_BATCH),
        callbacks=[Epochs(batches), stop, *callbacks],
        shuffle=False,
        verbose=0,
    )


def train(run, until, folder, after, contestant, task, base, budget):
    """Train a run, test it once, and once more with each change of its inputs."""
    setup = run["setup"]
    keras.utils.set_random_seed(run["seed"])
    layer = contestant.new_layer(setup["units"], **setup["numbers"])
    model = contestant.model(task, layer, setup["learning_rate"], budget["clipnorm"])
    run["parameters"] = parameters(model)
    start = time.process_time()
    history = fit(model, task, budget, run["seed"], [keras.callbacks.TerminateOnNaN()]).history
    run["seconds"] = round(time.process_time() - start, 2)
    kept = [f"val_{name}" for name in dict.fromkeys(["loss", task.metric])]
    run["curve"] = [
        [round(float(value), 5) for value in epoch]
        for epoch in zip(*(history[n] for n in kept))
    ]
    losses = history["val_loss"]
    run["diverged"] = not all(map(math.isfinite, [*losses, *history["loss"]]))
    if run["diverged"]:
        return
    run["best_epoch"] = int(np.argmin(losses)) + 1
    run["stopped"] = len(losses) < budget["epochs at most"]
    run["test"] = scores(model, task.test.x, task.test.y)
    x = np.where(base.test.x == MASK_VALUE, np.nan, base.test.x.astype("float64"))
    how = SAMPLE if contestant.standardise == SAMPLE else None
    run["perturbed"] = {
        name: scores(model, masked(standardised(changed, how, None)), task.test.y)
        for name, changed in perturbed(x)
    }
    after()


def scores(model, x, y):
    """Return what a model scores, a dict."""
    found = model.evaluate(x, y, batch_size=EVALUATION_BATCH, return_dict=True, verbose=0)
    return {name: round(float(value), 5) for name, value in found.items()}


if __name__ == "__main__":
    main()
