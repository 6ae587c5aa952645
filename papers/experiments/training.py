"""One run of a comparison: a layer, a seed, trained to its end."""

import math
import os
import time

import keras
import numpy as np

from keras_momentum_rnn.atomic_files import replaced
from papers.experiments.results_file import processor, surroundings
from papers.experiments.runner import resumed

EVALUATION_BATCH = 500


def new_run(layer, seed, recipe):
    """Return the record of a run that has not begun."""
    return {
        "layer": layer,
        "seed": seed,
        "parameters": None,
        "setup": recipe.described(),
        "best_epoch": None,
        "test": None,
        "diverged": False,
        "curve": [],
    }


def train(run, recipe, task, folder, settings, after_epoch=lambda: None, until=None):
    """Train a run to its end or to an earlier epoch, and resume it where it was interrupted.

    Args:
        run: dict, as `new_run` returns it; training fills in the rest.
        recipe: `tasks.Recipe` of the layer.
        task: `papers.tasks.Task`.
        folder: `Path`, for the run's state and its best model.
        settings: dict, what the run depends on beside its recipe: task, backend, versions.
        after_epoch: function that is called after each epoch.
        until: int, the epoch at which to stop; None for the end.
    """
    keras.utils.set_random_seed(run["seed"])
    model = new_model(task, recipe)
    run["parameters"] = sum(math.prod(w.shape) for w in model.trainable_weights)
    callbacks = recipe.callbacks()

    def epoch():
        metrics = train_epoch(run, recipe, task, model, callbacks)
        note(run, task, metrics, model, folder, ran_on(settings))

    def ended():
        return run["diverged"] or len(run["curve"]) >= (until or recipe.epochs)

    def build_metrics():
        # Otherwise the first `fit` builds them, and on PyTorch draws a dropout for that.
        task.evaluate(model, "validation", evaluation_batch(task, recipe))

    resumed(run, model, epoch, ended, folder, settings, build_metrics, after_epoch)


def new_model(task, recipe):
    """Return the task's model with the layers of a recipe, compiled, its optimizer built."""
    options = {"batch_size": recipe.batch_size} if task.stateful else {}
    layers = recipe.new_layers(**task.layer_arguments)
    model = task.model(*layers, **options, **recipe.model_options)
    task.compile(model, recipe.optimizer)
    model.optimizer.build(model.trainable_variables)
    return model


def evaluation_batch(task, recipe):
    """Return how many samples are scored at once: those of training where it has states."""
    return recipe.batch_size if task.stateful else EVALUATION_BATCH


def train_epoch(run, recipe, task, model, callbacks):
    """Train one epoch, and return what it and validation and test measured, a dict."""
    epoch = len(run["curve"])
    # On PyTorch, Keras's dropout uses the process's generator, which is in no saved state.
    (drawn,) = np.random.SeedSequence([run["seed"], epoch]).generate_state(1)
    keras.utils.set_random_seed(int(drawn))
    start = time.perf_counter()
    fit = task.fit(
        model,
        recipe.batch_size,
        epochs=epoch + 1,
        seed=run["seed"],
        initial_epoch=epoch,
        callbacks=callbacks,
        verbose=0,
    )
    metrics = {"seconds": time.perf_counter() - start, **load()}
    metrics |= {name: values[0] for name, values in fit.history.items()}
    for split in ("validation", "test"):
        scores = task.evaluate(model, split, evaluation_batch(task, recipe))
        metrics |= {f"{split}_{name}": value for name, value in scores.items()}
    return {name: float(value) for name, value in metrics.items()}


def load():
    """Return the load average of the last minute, where the system tells it, as a dict."""
    return {"load": os.getloadavg()[0]} if hasattr(os, "getloadavg") else {}


def ran_on(settings):
    """Return the processor, and the version of the backend where settings have another."""
    backend, here = keras.config.backend(), surroundings()
    other = here[backend] != settings.get(backend, here[backend])
    return f"{processor()}, {backend} {here[backend]}" if other else processor()


def note(run, task, metrics, model, folder, ran_on):
    """Add what an epoch measured; keep the model where validation is at its best."""
    if not all(map(math.isfinite, metrics.values())):
        run["diverged"] = True
        return
    run["curve"].append(metrics)
    epochs = run.setdefault("processors", {})
    epochs[ran_on] = epochs.get(ran_on, 0) + 1
    score = f"validation_{task.metric}"
    before = [epoch[score] for epoch in run["curve"][:-1]]
    better = max if task.larger_is_better else min
    if not before or better(before) != better([*before, metrics[score]]):
        run["best_epoch"] = len(run["curve"])
        run["test"] = {
            name.removeprefix("test_"): value
            for name, value in metrics.items()
            if name.startswith("test_")
        }
        with replaced(folder / "best.keras") as path:
            model.save(path)
