"""The state of a search on the disk, so that an interrupted search can resume.

search.json                   settings, and keras-tuner's state when the last trial ended
trials/                       keras-tuner's files; only the weights in them are read again
trials/trial_07/record.json   attempts, executions and error of a trial

keras-tuner writes its own state in place and in several steps, so a kill can leave it torn.
search.json is replaced as a whole: a search always resumes from the end of a trial.
"""

import contextlib
import copy
import shutil
import uuid
from math import isfinite
from pathlib import Path

import keras_tuner
from keras_tuner.engine.trial import Trial

from keras_momentum_rnn.atomic_files import (
    differences,
    read_json,
    read_results,
    remove_abandoned,
    write_json,
)

PROJECT = "trials"
# What a worker is sent with the space, by which it knows the chief of its search.
ID = "tuner/search"
# The record of a trial that did not begin.
EMPTY = {"attempts": 0, "executions": (), "error": None}
# What the record says of each execution.
EXECUTION = {"seed", "score", "epochs", "parameters", "seconds"}
ADVICE = "pass `overwrite=True` to remove it, or choose another."


def claim(directory, settings, data, overwrite):
    """Return the state of the search in `directory`, and begin it if it is new.

    Args:
        data: dict of digests, of `data_digests.digests`; what either lacks is not compared.

    Raises:
        ValueError: if `directory` holds another search, or its search.json is lost.
    """
    path, project = directory / "search.json", directory / PROJECT
    if overwrite:
        path.unlink(missing_ok=True)
        shutil.rmtree(project, ignore_errors=True)
    if not path.exists():
        if any(project.glob("trial_*")):
            raise ValueError(f"{path} is missing, but trials are there; {ADVICE}")
        directory.mkdir(parents=True, exist_ok=True)
        begun = {"id": uuid.uuid4().hex, "settings": settings, "data": data}
        write_json(path, {**begun, "oracle": None, "trials": []})
    remove_abandoned(directory)
    stored = load(directory)
    different = differences(stored["settings"], settings)
    if different:
        raise ValueError(
            f"`directory` holds a search with other settings; {ADVICE} "
            f"Received: directory={str(directory)!r}" + "".join(different)
        )
    known = stored.setdefault("data", {})
    if other := [name for name in data if known.get(name, data[name]) != data[name]]:
        raise ValueError(
            f"`directory` holds a search on other data; {ADVICE} "
            f"Received: directory={str(directory)!r}, and other values in {', '.join(other)}"
        )
    known.update(data)
    return stored


def load(directory):
    """Return what search.json holds.

    Raises:
        ValueError: if it is missing or cannot be read.
    """
    path = Path(directory) / "search.json"
    stored = read_results(path, None)
    if stored is None:
        raise ValueError(
            f"`directory` must be that of a search. Received: directory={str(directory)!r}"
        )
    with whole(directory):
        if lacking := {"id", "settings", "oracle", "trials"} - stored.keys():
            raise ValueError(f"it lacks {sorted(lacking)}")
        dict(stored.get("data", {}))  # raises for what is no dict; old files have none
        keras_tuner.Objective(*stored["settings"]["objective"])
        known = {trial.trial_id for trial in trials_of(stored)}
        ended = stored["oracle"]["end_order"] if known else []
        if not {*ended} <= known or not all(name.isdecimal() for name in ended):
            raise ValueError(f"of the ended trials {ended} some are not there")
    return stored


@contextlib.contextmanager
def whole(directory):
    """Raise an error that names search.json where its content cannot be used."""
    try:
        yield
    except Exception as error:  # any, since the file may hold anything
        raise ValueError(
            f"{Path(directory) / 'search.json'} is not the state of a search; repair it, or "
            f"{ADVICE} {type(error).__name__}: {error}"
        ) from error


def save(directory, stored, oracle):
    """Write the state of the search that had the state `stored`."""
    # All trials have the same space, which is large.
    trials = [
        {**trial.get_state(), "hyperparameters": trial.hyperparameters.values}
        for trial in oracle.trials.values()
    ]
    state = {"oracle": oracle.get_state(), "trials": trials}
    write_json(directory / "search.json", {**stored, **state})


def restore(oracle, stored, directory):
    """Bring an oracle to the state of `stored`, which is that of the search in `directory`.

    Raises:
        ValueError: if it is none that an oracle can have.
    """
    with whole(directory):
        oracle.hyperparameters.Fixed(ID, stored["id"])
        if stored["oracle"] is None:
            return
        for trial in trials_of(stored):
            oracle.trials[trial.trial_id] = trial
        # Trials that other workers had begun run again, in whichever process is free first.
        begun = list(stored["oracle"]["ongoing_trials"].values())
        waiting = [*stored["oracle"]["retry_queue"], *begun]
        oracle.set_state({**stored["oracle"], "ongoing_trials": {}, "retry_queue": waiting})


def trials_of(stored):
    """Return the trials of a stored state, as keras-tuner has them."""
    if stored["oracle"] is None:
        return []
    trials = []
    for trial in stored["trials"]:
        # keras-tuner changes the configuration that it reads.
        space = copy.deepcopy(stored["oracle"]["hyperparameters"]["space"])
        config = {"space": space, "values": trial["hyperparameters"]}
        trials.append(Trial.from_state({**trial, "hyperparameters": config}))
    return trials


def read_record(folder):
    """Return the record of a trial, an empty one if it is missing or damaged."""
    record = read_json(Path(folder) / "record.json")
    return {**EMPTY, **record} if is_record(record) else dict(EMPTY)


def is_record(value):
    """Return whether a value has the entries of a trial's record."""
    with contextlib.suppress(TypeError, KeyError):
        return (
            {*value} == {*EMPTY}
            and value["attempts"] >= 0
            and isinstance(value["error"], (str, type(None)))
            and all({*execution} == EXECUTION for execution in value["executions"])
            and all(isfinite(execution["score"]) for execution in value["executions"])
        )
    return False


def write_record(folder, record):
    write_json(Path(folder) / "record.json", record)
