"""How the comparisons on real sequences train and test one layer."""

import math
import time

import keras
import numpy as np

from papers.contestants import SAMPLE, parameters
from papers.experiments import surroundings
from papers.experiments.results_file import ResultsFile
from papers.perturbations import perturbed
from papers.tasks.archive import MASK_VALUE, masked, standardised
from papers.tasks.task import Batches, Epochs

EVALUATION_BATCH = 512

# What results.json says of a run.
RUN = {
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
}

SCHEMA = {
    "commands": "the command lines of all calls",
    "settings": {
        "task": "its options, samples, steps, channels, metric, larger_is_better, chance",
        "budget": "units of the LSTM, parameters, trials, updates of an epoch, epochs at most, "
        "patience, batch_size, learning rates and clipnorm",
        "backend": "with device and versions",
    },
    "runs": RUN,
}


def results_file(folder, task, budget, command, check=lambda runs: []):
    """Return the `ResultsFile` of a set, see `SCHEMA`.

    Args:
        folder: `Path`.
        task: `Task`.
        budget: dict, as in results.json.
        command: str, the command line.
        check: as of `ResultsFile`.
    """
    return ResultsFile(
        folder=folder,
        settings={"task": told(task), "budget": budget, **surroundings()},
        command=command,
        key=("layer", "seed"),
        done=lambda run: int(run["test"] is not None),
        complete=lambda content: {entry: content[entry] for entry in SCHEMA},
        check=check,
    )


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
    entries = dict.fromkeys(RUN)
    return {**entries, "layer": layer, "seed": seed, "diverged": False, "curve": []}


def sentence(run, metric):
    return "diverged" if run["diverged"] else f"test {metric} {run['test'][metric]:.3f}"


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


def train(run, until, folder, after, contestant, task, budget, base=None):
    """Train a run, test it once, and once more with each change of its inputs.

    Args:
        run: dict, see `RUN`, with its setup.
        until, folder: not used.
        after: function that is called at the end.
        contestant: `Contestant`.
        task: `Task`, standardised as the contestant asks.
        budget: dict, as in results.json.
        base: `Task` whose test inputs are changed, None for no change.
    """
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
    if base is not None:
        run["perturbed"] = changed_scores(model, task, base, contestant)
    after()


def changed_scores(model, task, base, contestant):
    """Return what a model scores with each change of its inputs, a dict by its name."""
    x = np.where(base.test.x == MASK_VALUE, np.nan, base.test.x.astype("float64"))
    how = SAMPLE if contestant.standardise == SAMPLE else None
    return {
        name: scores(model, masked(standardised(changed, how, None)), task.test.y)
        for name, changed in perturbed(x)
    }


def scores(model, x, y):
    """Return what a model scores, a dict."""
    found = model.evaluate(x, y, batch_size=EVALUATION_BATCH, return_dict=True, verbose=0)
    return {name: round(float(value), 5) for name, value in found.items()}
