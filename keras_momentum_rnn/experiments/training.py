"""One run: a layer, a seed, trained to its end, and resumed where it was after a kill.

All that a run needs to go on stands in one file, `state.npz`, which takes the place of the
one before after every epoch: every variable of model and optimizer, the states of its random
generators among them, and what was measured so far. The order of the samples depends on seed
and epoch alone. So a run that was killed goes on as if it had not been.
"""

import json
import math
import shutil
import time

import keras
import numpy as np

from keras_momentum_rnn.writing import replaced

EVALUATION_BATCH = 500


def new_run(layer, seed, setup):
    """Return the record of a run that has not begun."""
    return {
        "layer": layer,
        "seed": seed,
        "parameters": None,
        "setup": setup.described(),
        "best_epoch": None,
        "test": None,
        "diverged": False,
        "curve": [],
    }


def train(run, setup, task, folder, after_epoch=lambda: None):
    """Bring a run to its end.

    Args:
        run: dict, as `new_run` returns it, of which the rest is filled in.
        setup: `Setup` of the layer.
        task: `keras_momentum_rnn.tasks.Task`.
        folder: `Path`, for the run's state and its best model.
        after_epoch: function that is called after each epoch, those of an earlier process
            too.
    """
    keras.utils.clear_session()
    keras.utils.set_random_seed(run["seed"])
    folder.mkdir(parents=True, exist_ok=True)
    model = new_model(task, setup)
    run["parameters"] = sum(math.prod(w.shape) for w in model.trainable_weights)
    read_state(folder / "state.npz", model, run)
    for _ in run["curve"]:
        after_epoch()
    while len(run["curve"]) < setup.epochs and not run["diverged"]:
        epoch = len(run["curve"])
        start = time.perf_counter()
        fit = task.fit(
            model,
            setup.batch_size,
            epochs=epoch + 1,
            seed=run["seed"],
            initial_epoch=epoch,
            callbacks=setup.callbacks(),
            verbose=0,
        )
        seconds = time.perf_counter() - start
        metrics = {name: values[0] for name, values in fit.history.items()}
        for split in ("validation", "test"):
            scores = task.evaluate(model, split, evaluation_batch(task, setup))
            metrics |= {f"{split}_{name}": value for name, value in scores.items()}
        note(run, task, {**metrics, "seconds": seconds}, model, folder)
        write_state(folder / "state.npz", model, run)
        after_epoch()


def new_model(task, setup):
    """Return the task's model with the layers of a setup, compiled, its optimizer built."""
    options = {"batch_size": setup.batch_size} if task.stateful else {}
    model = task.model(*setup.new_layers(), **options)
    task.compile(model, setup.new_optimizer())
    model.optimizer.build(model.trainable_variables)
    return model


def evaluation_batch(task, setup):
    """Return how many samples are scored at once: those of training where it has states."""
    return setup.batch_size if task.stateful else EVALUATION_BATCH


def note(run, task, metrics, model, folder):
    """Add what an epoch measured; keep the model where validation is at its best."""
    metrics = {name: float(value) for name, value in metrics.items()}
    if not all(map(math.isfinite, metrics.values())):
        run["diverged"] = True
        return
    run["curve"].append(metrics)
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


def state_variables(model):
    """Return every variable that training changes."""
    return [*model.variables, *model.optimizer.variables]


def write_state(path, model, run):
    arrays = [keras.ops.convert_to_numpy(v) for v in state_variables(model)]
    with replaced(path) as new, open(new, "wb") as file:
        np.savez(file, *arrays, run=json.dumps(run))


def read_state(path, model, run):
    """Bring model and record to where the run was, if it had begun."""
    if not path.exists():
        return
    with np.load(path) as stored:
        run |= json.loads(str(stored["run"]))
        for number, variable in enumerate(state_variables(model)):
            variable.assign(stored[f"arr_{number}"])


def remove_state(folder):
    """Remove what a finished run needed to go on; its best model stays."""
    (folder / "state.npz").unlink(missing_ok=True)
    if folder.exists() and not any(folder.iterdir()):
        shutil.rmtree(folder)
