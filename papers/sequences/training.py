"""How one layer is searched, trained and tested on a set."""

import math
import time

import keras
import keras_tuner
import numpy as np

from keras_momentum_rnn.tuning import tune
from papers.sequences.layers import RATES
from papers.tasks.task import Batches, Epochs

EVALUATION_BATCH = 512
# Of the searches; those of the runs begin at 0.
SEARCH_SEED = 1000


def repeated(split, batch_size, updates, seed):
    """Return whole batches of a split, passes in orders of their own one after another.

    Sets are small: an epoch of several passes spends less of its time on validation.
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
    batches = repeated(task.train, budget["batch size"], budget["updates of an epoch"], seed)
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


class Search(keras_tuner.HyperModel):
    """The models of a search: one layer, its numbers and the learning rate to be chosen."""

    def __init__(self, contestant, task, units, budget):
        super().__init__()
        self.contestant, self.task, self.units = contestant, task, units
        self.budget = budget

    def get_config(self):
        """Return what a search that resumes must share."""
        return {"units": self.units, "budget": self.budget, **self.contestant.arguments}

    def build(self, hp):
        layer = self.contestant.suggested(hp, self.units)
        rate = hp.Float("learning_rate", *RATES, sampling="log")
        return self.contestant.model(self.task, layer, rate)

    def fit(self, hp, model, *args, callbacks=(), **kwargs):
        return fit(model, self.task, self.budget, SEARCH_SEED, callbacks)


def searched(contestant, task, budget, folder):
    """Return the setup that a search found, a dict."""
    units = contestant.units_for(task, budget["parameters"])
    results = tune(
        Search(contestant, task, units, budget),
        directory=folder,
        max_trials=budget["trials"],
        epochs=budget["epochs at most"],
        first=[contestant.first_trial()],
        seed=SEARCH_SEED,
        verbose=0,
        validation_data=(task.validation.x, task.validation.y),
    )
    numbers = dict(results.best.values)
    rate = numbers.pop("learning_rate")
    return {
        "units": units,
        "learning_rate": rate,
        "numbers": {n: v for n, v in numbers.items() if n not in ("layer", "units")},
        "validation": results.best.score,
        "trials": sum(row.completed for row in results.rows),
    }


def trained(contestant, setup, task, budget, seed):
    """Train a layer with a setup, test it once at its best epoch, and return the run, a dict.

    `test` is None where a loss was not finite: such a run scores as chance.

    Args:
        contestant: `Contestant`.
        setup: dict, as of `searched`.
        task: `Task`.
        budget: dict, as in results.json.
        seed: int, of weights and of the order of samples.
    """
    keras.utils.clear_session()
    keras.utils.set_random_seed(seed)
    layer = contestant.new_layer(setup["units"], **setup["numbers"])
    model = contestant.model(task, layer, setup["learning_rate"])
    start = time.process_time()
    history = fit(model, task, budget, seed, [keras.callbacks.TerminateOnNaN()]).history
    seconds = round(time.process_time() - start, 2)
    finite = all(map(math.isfinite, [*history["val_loss"], *history["loss"]]))
    test = None
    if finite:
        found = model.evaluate(
            task.test.x, task.test.y, batch_size=EVALUATION_BATCH, return_dict=True, verbose=0
        )
        test = {name: round(float(value), 5) for name, value in found.items()}
    return {
        "layer": contestant.layer,
        "seed": seed,
        "parameters": sum(math.prod(w.shape) for w in model.trainable_weights),
        "epochs": len(history["loss"]),
        "best_epoch": int(np.argmin(history["val_loss"])) + 1 if finite else None,
        "validation": round(float(min(history["val_loss"])), 5) if finite else None,
        "test": test,
        "seconds": seconds,
    }
