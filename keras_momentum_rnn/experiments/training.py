"""One run: a layer, a seed, trained to its end, and resumed where it was after a kill.

All that a run needs to go on stands in one file, `state.npz`, which takes the place of the
one before after every epoch: every variable of model and optimizer, the states of its random
generators among them, and what was measured so far. The order of the samples, and the
generators of the process, depend on seed and epoch alone. So a run that was killed goes on as
if it had not been.
"""

import json
import math
import shutil
import time

import keras
import numpy as np

from keras_momentum_rnn.writing import differences, replaced

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


def train(run, setup, task, folder, after_epoch=lambda: None, until=None):
    """Bring a run to its end, or to an earlier epoch.

    Args:
        run: dict, as `new_run` returns it, of which the rest is filled in.
        setup: `Setup` of the layer.
        task: `keras_momentum_rnn.tasks.Task`.
        folder: `Path`, for the run's state and its best model.
        after_epoch: function that is called after each epoch, those of an earlier process
            too.
        until: int, the epoch at which to stop; None for the end.
    """
    keras.utils.set_random_seed(run["seed"])
    folder.mkdir(parents=True, exist_ok=True)
    model = new_model(task, setup)
    run["parameters"] = sum(math.prod(w.shape) for w in model.trainable_weights)
    callbacks = setup.callbacks()
    if (folder / "state.npz").exists():
        # Else the first `fit` would build the metrics, and on PyTorch draw a dropout for it.
        task.evaluate(model, "validation", evaluation_batch(task, setup))
        read_state(folder / "state.npz", model, run, callbacks)
    for _ in run["curve"]:
        after_epoch()
    while not ended(run, until or setup.epochs):
        metrics = train_epoch(run, setup, task, model, callbacks)
        note(run, task, metrics, model, callbacks, folder)
        write_state(folder / "state.npz", model, run, callbacks)
        after_epoch()


def ended(run, epochs):
    """Return whether a run has come to an epoch, or diverged before."""
    return run["diverged"] or len(run["curve"]) >= epochs


def train_epoch(run, setup, task, model, callbacks):
    """Train one epoch, and return what it and validation and test measured, a dict."""
    epoch, batch_size = len(run["curve"]), evaluation_batch(task, setup)
    watched = {}
    if remembering(callbacks):
        watched["validation_data"] = task.validation.batches(batch_size)
    # On PyTorch Keras's dropout draws from the generator of the process, which no state holds.
    drawn = np.random.SeedSequence([run["seed"], epoch]).generate_state(1)
    keras.utils.set_random_seed(int(drawn[0]))
    start = time.perf_counter()
    fit = task.fit(
        model,
        setup.batch_size,
        epochs=epoch + 1,
        seed=run["seed"],
        initial_epoch=epoch,
        callbacks=callbacks,
        verbose=0,
        **watched,
    )
    metrics = {"seconds": time.perf_counter() - start}
    metrics |= {n: v[0] for n, v in fit.history.items() if not n.startswith("val_")}
    for split in ("validation", "test"):
        hooks = [*task.new_callbacks(), *remembering(callbacks)]
        scores = task.evaluate(model, split, batch_size, callbacks=hooks)
        metrics |= {f"{split}_{name}": value for name, value in scores.items()}
    return {name: float(value) for name, value in metrics.items()}


def remembering(callbacks):
    """Return the callbacks that remember more than the epoch."""
    return [callback for callback in callbacks if hasattr(callback, "set_state")]


def new_model(task, setup):
    """Return the task's model with the layers of a setup, compiled, its optimizer built."""
    options = {"batch_size": setup.batch_size} if task.stateful else {}
    layers = setup.new_layers(**task.layer_arguments)
    model = task.model(*layers, **options, **setup.model_options)
    task.compile(model, setup.new_optimizer())
    model.optimizer.build(model.trainable_variables)
    return model


def evaluation_batch(task, setup):
    """Return how many samples are scored at once: those of training where it has states."""
    return setup.batch_size if task.stateful else EVALUATION_BATCH


def note(run, task, metrics, model, callbacks, folder):
    """Add what an epoch measured; keep the model where validation is at its best."""
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
        # As it was scored: with averages in place of the weights that training goes on from.
        for callback in remembering(callbacks):
            callback.on_test_begin()
        with replaced(folder / "best.keras") as path:
            model.save(path)
        for callback in remembering(callbacks):
            callback.on_test_end()


def state_variables(model):
    """Return every variable that training changes."""
    return [*model.variables, *model.optimizer.variables]


def write_state(path, model, run, callbacks):
    arrays = [keras.ops.convert_to_numpy(v) for v in state_variables(model)]
    named = {f"arr_{number}": array for number, array in enumerate(arrays)}
    told = {"run": run, "memories": []}
    for number, callback in enumerate(remembering(callbacks)):
        numbers = callback.state()
        averages = numbers.pop("averages")
        named |= {f"average_{number}_{i}": array for i, array in enumerate(averages)}
        told["memories"].append({**numbers, "averages": len(averages)})
    with replaced(path) as new, open(new, "wb") as file:
        np.savez(file, **named, told=json.dumps(told))


def read_state(path, model, run, callbacks):
    """Bring model, record and callbacks to where the run was."""
    with np.load(path) as stored:
        told = json.loads(str(stored["told"]))
        if different := differences(told["run"]["setup"], run["setup"]):
            raise ValueError(
                f"{path} is of a run with another setup; remove it:{''.join(different)}"
            )
        run |= told["run"]
        for number, variable in enumerate(state_variables(model)):
            variable.assign(stored[f"arr_{number}"])
        for number, callback in enumerate(remembering(callbacks)):
            numbers = told["memories"][number]
            kept = [stored[f"average_{number}_{i}"] for i in range(numbers["averages"])]
            callback.set_state({**numbers, "averages": kept})


def remove_state(folder):
    """Remove what a finished run needed to go on; its best model stays."""
    (folder / "state.npz").unlink(missing_ok=True)
    if folder.exists() and not any(folder.iterdir()):
        shutil.rmtree(folder)
