"""What a search leaves on the disk, and how it is made whole after a kill.

settings.json                  what may not change when a search goes on
trials/oracle.json             keras-tuner's own state; oracle.ended.json: the same, copied
                               when a trial had ended
trials/trial_07/trial.json     keras-tuner's record of a trial; trial.ended.json: the same
trials/trial_07/record.json    our own: attempts, executions, seconds, the error
"""

import shutil
from pathlib import Path

import keras_tuner

from keras_momentum_rnn.writing import differences, read_json, replaced, write_json

PROJECT = "trials"


def claim(directory, settings):
    """Make `directory` the folder of a search with these settings, or refuse another's."""
    path = Path(directory) / "settings.json"
    stored = read_json(path, settings)
    different = differences(stored, settings)
    if different:
        raise ValueError(
            "`directory` holds a search with other settings; pass `overwrite=True` to remove "
            f"it, or choose another. Received: directory={str(directory)!r}"
            + "".join(different)
        )
    write_json(path, settings)


@keras_tuner.synchronized
def back_up(oracle, project):
    """Copy the state of a search, whole, each time that a trial has ended."""
    names = [f"{project}/trial_{trial_id}/trial" for trial_id in oracle.end_order]
    names = [name for name in names if not Path(f"{name}.ended.json").exists()]
    for name in [*names, f"{project}/oracle"]:
        with replaced(f"{name}.ended.json") as new:
            shutil.copyfile(f"{name}.json", new)


def recover(project, tuner_id):
    """Make the state of a killed search readable.

    keras-tuner writes in place, and a trial before the list of trials: a kill can leave a
    file half written, or a trial that no list has, which would count and never run. Then the
    state goes back to where the last trial ended.
    """
    project = Path(project)
    if not (project / "oracle.json").exists():
        return
    if not whole(project):
        state = read_json(project / "oracle.ended.json")
        ended = set() if state is None else set(state["end_order"])
        for folder in project.glob("trial_*"):
            copy = folder / "trial.ended.json"
            if folder.name.removeprefix("trial_") in ended and copy.exists():
                shutil.copyfile(copy, folder / "trial.json")
            else:
                shutil.rmtree(folder)
        if state is None:
            (project / "oracle.json").unlink()
            return
        write_json(project / "oracle.json", state)
    # A tuner goes on if it finds a file of its own; one of another name would start anew.
    write_json(project / f"{tuner_id}.json", {})


def whole(project):
    """Return whether every file of keras-tuner's can be read, and every trial is listed."""
    state = read_json(project / "oracle.json")
    if state is None:
        return False
    listed = {*state["start_order"], *state["end_order"]}
    ended = set(state["end_order"])
    found = {}
    for folder in project.glob("trial_*"):
        found[folder.name.removeprefix("trial_")] = read_json(folder / "trial.json")
    waiting = {*state["ongoing_trials"].values(), *state["retry_queue"]}
    return None not in found.values() and set(found) == listed <= ended | waiting
