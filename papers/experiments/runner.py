"""Runs that resume after a kill, one after another.

One file, `state.npz`, holds all that a run needs to resume. It is replaced after every part of
the run, usually an epoch. It has the variables of model and optimizer, among them the states of
random generators, and what was measured so far. If the order of samples depends only on the
seed and the part, a killed run gives the same result as one that was not interrupted.
"""

import io
import json
import shutil
import zipfile

import keras
import numpy as np
from rich import print
from rich import progress as bars
from rich.markup import escape

from keras_momentum_rnn.atomic_files import replaced
from papers.files import differences

# Of `state.npz`; a state of another schema is not read.
SCHEMA = 2


def finish(turns, results, train, whole, label, sentence, unit="epoch", between=lambda: None):
    """Train runs, one after another, but for those that the results hold.

    Args:
        turns: iterable of pairs, a run before it begins, a dict, and how far it is brought, of
            what `results.done` counts; a run may stand in several, each farther than before.
        results: `ResultsFile`, which receives the runs.
        train: function (run, until, folder, after) that trains a run so far, and calls `after`
            after each part.
        whole: function from a run to how far its end is.
        label: function from a run to its name.
        sentence: function from a run to its result in words.
        unit: str, what the progress bar counts.
        between: function that is called after each training.
    """
    turns = list(turns)
    ends = {results.name(run): whole(run) for run, _ in turns}
    reached = dict.fromkeys(ends, 0)
    with progress_bar(unit) as progress:
        bar = progress.add_task("", total=sum(ends.values()))

        def show(run):
            name = results.name(run)
            reached[name] = ends[name] if run["diverged"] else results.done(run)
            progress.update(bar, completed=sum(reached.values()))

        for run, until in turns:
            folder, known = results.run_folder(run), results.known(run)
            if not results.ended(known, until):
                progress.update(bar, description=label(run))
                keras.utils.clear_session()
                train(run, until, folder, lambda run=run: show(run))
                results.write(run)
                known = run
                progress.console.print(f"{label(run)}: {sentence(run)}")
                between()
            show(known)
            if results.ended(known, whole(run)):
                remove_state(folder)


def resumed(
    run, model, part, ended, folder, settings, prepare=lambda: None, after=lambda: None
):
    """Train a run from its last saved state.

    A damaged state is reported and removed. The run then starts again.

    Args:
        run: dict, the run before it begins, which `part` fills in.
        model: compiled model whose optimizer is built.
        part: function without arguments that trains a part.
        ended: function without arguments, whether to stop.
        folder: `Path` of the run.
        settings: dict, what the run depends on beside what it says itself.
        prepare: function that is called where a run resumes, before its state is restored.
        after: function that is called after each part, and once where a run resumes.

    Raises:
        OtherRun: if the state has other settings.
        OSError, MemoryError: if the machine cannot read it now. It stays as it is.
    """
    path, depends = folder / "state.npz", dependencies(run, settings)
    state = usable_state(path, model, depends)
    if state is not None:
        prepare()
        restore(state, model, run)
        after()
    folder.mkdir(parents=True, exist_ok=True)
    while not ended():
        part()
        write_state(path, model, run, depends)
        after()


class OtherRun(ValueError):
    """A state has other settings than the run that would resume from it."""


def usable_state(path, model, depends):
    """Return what `read_state` does, or None; remove the folder of a damaged file."""
    try:
        return read_state(path, model, depends)
    except FileNotFoundError:
        return None
    except (OSError, MemoryError, OtherRun):  # the file may be whole
        raise
    except Exception as error:  # a damaged file raises what it likes
        why = f"{type(error).__name__}: {error}"
        print(escape(f"{path} cannot be used, so this run starts again. {why}"))
        shutil.rmtree(path.parent)
        return None


def dependencies(run, settings):
    """Return all that tells a run from others before it begins, a flat dict."""
    told = {**settings, **run, **run.get("setup", {})}
    told.pop("setup", None)
    return json.loads(json.dumps(told))


def state_variables(model):
    """Return every variable that training changes."""
    return [*model.variables, *model.optimizer.variables]


def write_state(path, model, run, depends):
    """Write all that a run needs to resume, `depends` as of `dependencies`."""
    values = map(keras.ops.convert_to_numpy, state_variables(model))
    arrays = {f"variable_{number}": value for number, value in enumerate(values)}
    told = {"schema": SCHEMA, "depends": depends, "run": run}
    with replaced(path) as new, open(new, "wb") as file:
        np.savez(file, **arrays, told=json.dumps(told))


def read_state(path, model, depends):
    """Return the run in a file and the values of variables.

    Raises:
        OtherRun: if it is the state of another run; other errors if it is damaged.
    """
    file = io.BytesIO(path.read_bytes())  # zipfile takes an error of the disk for damage
    if not zipfile.is_zipfile(file):  # else NumPy would advise to trust it
        raise ValueError("it is not the state of a run, or was cut off")
    file.seek(0)
    with np.load(file) as stored:
        told = json.loads(str(stored["told"]))
        if told["schema"] != SCHEMA:
            raise ValueError(f"it has the schema {told['schema']}, not {SCHEMA}")
        if different := differences(told["depends"], depends):
            raise OtherRun(
                f"{path} holds a run with other settings; remove its folder or choose "
                f"another output:{''.join(different)}"
            )
        variables = state_variables(model)
        values = [stored[f"variable_{number}"] for number in range(len(variables))]
    if [v.shape for v in values] != [tuple(v.shape) for v in variables]:
        raise ValueError("its variables have other shapes")
    return told["run"], values


def restore(state, model, run):
    """Bring run and model to a state, as of `read_state`."""
    stored, values = state
    run |= stored
    for variable, value in zip(state_variables(model), values, strict=True):
        variable.assign(value)


def remove_state(folder):
    """Remove what a finished run needed to resume; its best model stays."""
    (folder / "state.npz").unlink(missing_ok=True)
    if folder.exists() and not any(folder.iterdir()):
        folder.rmdir()


def progress_bar(unit: str = "epoch") -> bars.Progress:
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
