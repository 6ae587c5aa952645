"""The state of a search on the disk, so that an interrupted search can resume.

search.json                   settings, and keras-tuner's state when a trial last began or ended
trials/                       keras-tuner's files; only the weights in them are read again
trials/trial_07/record.json   attempts, executions and error of a trial
lock                          of the process that leads the search

keras-tuner writes its own state in place and in several steps, so a kill can leave it torn.
search.json is replaced as a whole: `test_a_damaged_file_of_a_trial_loses_nothing`.
"""

import contextlib
import copy
import shutil
import uuid

from keras_tuner.engine.trial import Trial

from keras_momentum_rnn.atomic_files import (
    locked,
    read_sealed,
    remove_abandoned,
    write_sealed,
)
from keras_momentum_rnn.tuning.settings import differences

PROJECT = "trials"
# What a worker is sent with the space, by which it knows the chief of its search.
ID = "tuner/search"
ADVICE = "pass `overwrite=True` to remove it, or choose another."


@contextlib.contextmanager
def claimed(directory, settings, overwrite):
    """Give the state of the search in `directory`, begun if it is new, and keep others out.

    Raises:
        ValueError: if `directory` holds another search, its search.json is lost, or another
            process leads the search.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(directory / "lock", wait=False))
        except BlockingIOError as error:
            raise ValueError(
                "Another process runs the search in `directory`; wait for it, or choose "
                f"another. Received: directory={str(directory)!r}"
            ) from error
        yield claim(directory, settings, overwrite)


def claim(directory, settings, overwrite):
    path, project = directory / "search.json", directory / PROJECT
    if overwrite:
        path.unlink(missing_ok=True)
        shutil.rmtree(project, ignore_errors=True)
    if not path.exists():
        if any(project.glob("trial_*")):
            raise ValueError(f"{path} is missing, but trials are there; {ADVICE}")
        begun = {"id": uuid.uuid4().hex, "settings": settings, "oracle": None, "trials": []}
        write_sealed(path, begun)
    remove_abandoned(directory)
    return same(directory, settings)


def same(directory, settings):
    """Return what search.json holds, of a search with these settings.

    Raises:
        ValueError: if it is missing or damaged, or of another search.
    """
    stored = load(directory)
    if different := differences(stored["settings"], settings):
        raise ValueError(
            f"`directory` holds a search of other settings or data; {ADVICE} "
            f"Received: directory={str(directory)!r}" + "".join(different)
        )
    return stored


def load(directory):
    """Return what search.json holds.

    Raises:
        ValueError: if it is missing or damaged.
    """
    try:
        stored = read_sealed(directory / "search.json")
    except ValueError as error:
        raise ValueError(f"{error}; or {ADVICE}") from error
    if stored is None:
        raise ValueError(
            f"`directory` must be that of a search. Received: directory={str(directory)!r}"
        )
    return stored


def save(directory, stored, oracle):
    """Write the state of the search that had the state `stored`."""
    # All trials have the same space, which is large.
    trials = [
        {**trial.get_state(), "hyperparameters": trial.hyperparameters.values}
        for trial in oracle.trials.values()
    ]
    state = {"oracle": oracle.get_state(), "trials": trials}
    write_sealed(directory / "search.json", {**stored, **state})


def restore(oracle, stored):
    """Bring an oracle to the state of `stored`.

    A trial that had begun stays with the process that had it, and runs again.
    """
    oracle.hyperparameters.Fixed(ID, stored["id"])
    if stored["oracle"] is not None:
        oracle.trials.update((trial.trial_id, trial) for trial in trials_of(stored))
        oracle.set_state(stored["oracle"])


def trials_of(stored):
    """Return the trials of a stored state, as keras-tuner has them."""
    trials = []
    for trial in stored["trials"]:
        # keras-tuner changes the configuration that it reads.
        space = copy.deepcopy(stored["oracle"]["hyperparameters"]["space"])
        config = {"space": space, "values": trial["hyperparameters"]}
        trials.append(Trial.from_state({**trial, "hyperparameters": config}))
    return trials
