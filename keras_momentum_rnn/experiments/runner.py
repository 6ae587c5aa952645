"""Runs that resume after a kill, one after another.

All that a run needs to resume stands in one file, `state.npz`, which is replaced after every
part of the run, an epoch or so: the variables of model and optimizer, the states of random
generators among them, what callbacks remember, and what was measured so far. Where the order
of samples depends on the seed and the part alone, a run that was killed ends as if it had not
been.
"""

import json
import shutil

import keras
import numpy as np
from rich import progress as bars

from keras_momentum_rnn.atomic_files import differences, replaced


def finish(runs, results, train, done, whole, label, sentence, unit="epoch"):
    """Train runs to their end, one after another, but for those that the results hold.

    Args:
        runs: list of dicts, the runs before they begin.
        results: `ResultsFile`, which receives them.
        train: function (run, folder, after) that trains a run to its end, and calls `after`
            after each part.
        done: function from a run to how many units of it are done, an int.
        whole: function from a run to how many units it has.
        label: function from a run to its name.
        sentence: function from a run to its result in words.
        unit: str, what the progress bar counts.
    """
    before, total = 0, sum(map(whole, runs))
    with progress_bar(unit) as progress:
        bar = progress.add_task("", total=total)

        def after(run):
            progress.update(bar, completed=before + done(run))

        for number, run in enumerate(runs, 1):
            if not results.holds(run):
                name, folder = f"{number}/{len(runs)} {label(run)}", results.run_folder(run)
                progress.update(bar, description=name)
                # Outside of TensorFlow's scope, which belongs to the graph that this replaces.
                keras.utils.clear_session()
                train(run, folder, lambda run=run: after(run))
                results.write(run)
                remove_state(folder)
                progress.console.print(f"{name}: {sentence(run)}")
            before += whole(run)
            progress.update(bar, completed=before)


def resumed(run, model, part, ended, folder, callbacks=(), after=lambda: None):
    """Train a run to its end, from where its state in a folder says that it was.

    Args:
        run: dict, which `part` fills in.
        model: compiled model whose optimizer is built.
        part: function without arguments that trains a part.
        ended: function without arguments, whether the run is at its end.
        folder: `Path` of the run.
        callbacks: those of training. The ones that remember more than the epoch have `state`
            and `set_state`, as `tasks.AveragedSGD`.
        after: function that is called after each part, and once where a run resumes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "state.npz"
    if path.exists():
        read_state(path, model, run, callbacks)
        after()
    while not ended():
        part()
        write_state(path, model, run, callbacks)
        after()


def remembering(callbacks):
    """Return the callbacks that remember more than the epoch."""
    return [callback for callback in callbacks if hasattr(callback, "set_state")]


def state_variables(model):
    """Return every variable that training changes."""
    return [*model.variables, *model.optimizer.variables]


def write_state(path, model, run, callbacks=()):
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


def read_state(path, model, run, callbacks=()):
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
    """Remove what a finished run needed to resume; its best model stays."""
    (folder / "state.npz").unlink(missing_ok=True)
    if folder.exists() and not any(folder.iterdir()):
        shutil.rmtree(folder)


def progress_bar(unit="epoch"):
    """Return a bar that shows how much is done, the elapsed and the remaining time."""
    return bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=14),
        bars.TextColumn(unit),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
        speed_estimate_period=600,
    )
