"""The state of a search on the disk, so that an interrupted search can resume.

search.json                   settings, keras-tuner's state when a trial last began or ended,
                              `max_trials` once they have ended, and the trial in best.keras
trials/                       keras-tuner's files; only the weights in them are read again
trials/trial_07/record.json   attempts, executions and error of a trial
lock                          of the process that leads the search

keras-tuner writes its own state in place and in several steps, so a kill can leave it torn.
search.json is replaced as a whole: `test_a_damaged_file_of_a_trial_loses_nothing`.
"""

import contextlib
import copy
import hashlib
import json
import re
import shutil
import uuid

import keras
import keras_tuner
import numpy as np
from keras_tuner.engine.trial import Trial

from keras_momentum_rnn.atomic_files import UNFINISHED, locked, read_results, write_json

# What a worker is sent with the space, by which it knows the chief of its search.
ID = "tuner/search"
# What a search writes beside its trials. search.json goes last: it says whose the others are.
FILES = ("best.keras", "results.csv", "search.json")
ADVICE = "pass `overwrite=True` to remove it, or choose another."
# So many differences are named in an error.
NAMED = 8
# Where a config has the name of a layer. Keras counts the layers of a process: "dense_3" is
# "dense" in the next.
COUNTED = re.compile(r"/(hyper)?model/.*/(name|keras_history/0|(in|out)put_layers/.*)")


# The state


@contextlib.contextmanager
def claimed(directory, settings, overwrite):
    """Give the state of the search in `directory`, begun if it is new, and keep others out.

    Raises:
        ValueError: if `directory` holds another search or a folder `trials` of none, its
            search.json is damaged, or another process leads the search.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory / "lock", wait=False):
        path = directory / "search.json"
        trials = directory / "trials"
        if overwrite and path.exists():
            shutil.rmtree(trials, ignore_errors=True)
            for name in FILES:
                (directory / name).unlink(missing_ok=True)
        if not path.exists():
            if trials.exists():
                raise ValueError(
                    "`directory` must be new, empty or hold a search. Its folder `trials` is "
                    f"of none: choose another. Received: directory={str(directory)!r}"
                )
            begun = {"id": uuid.uuid4().hex, "settings": settings, "oracle": None, "trials": []}
            write_json(path, begun)
        stored = same(directory, settings)
        for name in FILES:  # of which a killed process may have left a part
            for part in directory.glob(UNFINISHED.format(name)):
                part.unlink(missing_ok=True)
        yield stored


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
        stored = read_results(directory / "search.json", {})
    except ValueError as error:
        raise ValueError(f"{error}; or {ADVICE}") from error
    if not {"id", "settings", "oracle", "trials"} <= stored.keys():
        raise ValueError(
            "`directory` must hold the search.json of a search, for a worker its chief's; or "
            f"{ADVICE} Received: directory={str(directory)!r}"
        )
    return stored


def has_ended(directory, settings, max_trials):
    """Return whether the search with these settings has ended and its chief has left."""
    # Raised where the chief has not begun the search, or a shared folder fails for a moment.
    with contextlib.suppress(ValueError, OSError):
        return same(directory, settings).get("ended", 0) == max_trials
    return False


def save(directory, stored, oracle):
    """Write the state of the search that had the state `stored`."""
    trials = [trial.get_state() for trial in oracle.trials.values()]
    state = {"oracle": oracle.get_state(), "trials": trials}
    write_json(directory / "search.json", {**stored, **state})


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
    # Copies: keras-tuner changes the configuration that it reads.
    return [Trial.from_state(copy.deepcopy(trial)) for trial in stored["trials"]]


# What makes two calls of `tune` the same search: all that their arguments and configs say


def settings_of(hypermodel, model, **arguments):
    """Return what a call must share with the search that it resumes, a dict as of `flat`.

    Args:
        hypermodel: that of `tune`.
        model: what it builds of the default hyperparameters.
        **arguments: of `tune` and of `fit`.
    """
    of_model = {"class": name_of(model), "weights": [list(w.shape) for w in model.weights]}
    with contextlib.suppress(Exception):  # a model of one's own may have no config
        of_model = {"layers": model.get_config(), "compile": model.get_compile_config()}
    config = hypermodel.get_config() if hasattr(hypermodel, "get_config") else {}
    versions = {"backend": keras.config.backend(), "keras_tuner": keras_tuner.__version__}
    settings = {**arguments, "model": of_model, "hypermodel": config, **versions}
    return json.loads(json.dumps(flat(settings)))


def flat(value, path=""):
    """Return what can be compared of a value: a dict from paths to numbers and texts."""
    if isinstance(value, (list, tuple)):
        value = dict(enumerate(value))
    elif not isinstance(value, (dict, bool, int, float, str, type(None))):
        value = described(value)
    if isinstance(value, dict) and value.get("class_name") == "__lambda__":
        value = "lambda"  # its code is no config
    if isinstance(value, dict):
        parts = [flat(inner, f"{path}/{name}") for name, inner in value.items()]
        return {name: leaf for part in parts for name, leaf in part.items()}
    if isinstance(value, str) and COUNTED.fullmatch(path):
        value = re.sub(r"_\d+$", "", value)
    return {} if value is None else {path.strip("/"): value}


def described(value):
    """Return what can be compared of an object, a text or a dict.

    Arrays have a digest, Keras's objects a config, callbacks their numbers. Of a function, a
    dataset, a generator or another object nothing is known but its name or its class.
    """
    if keras.ops.is_tensor(value) or hasattr(value, "__array__"):
        return digest(np.asarray(keras.ops.convert_to_numpy(value)))
    if isinstance(value, keras_tuner.Objective):
        return {"name": value.name, "direction": value.direction}
    if isinstance(value, keras.callbacks.Callback):
        numbers = {n: v for n, v in vars(value).items() if isinstance(v, (bool, int, float))}
        return {"class": name_of(value), **numbers}
    if hasattr(value, "get_config") and not isinstance(value, type):
        return {"class": name_of(value), **value.get_config()}
    return name_of(value)


def name_of(value):
    # A generator has a `__qualname__`, but no `__module__`.
    is_named = hasattr(value, "__qualname__") and hasattr(value, "__module__")
    named = value if is_named else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def digest(array):
    """Return type, shape and a digest of the values, which those of objects have not."""
    total = hashlib.blake2b(digest_size=8)
    if not array.dtype.hasobject:
        array = np.ascontiguousarray(array)
        total.update(array.reshape(-1).view(np.uint8))  # no copy of large data
    return f"{array.dtype} {array.shape} {total.hexdigest()}"


def differences(there, now):
    """Return lines that name the differences between two settings, if any."""
    pairs = {name: (there.get(name), now.get(name)) for name in {**there, **now}}
    lines = [
        f"\n  {name}: {'nothing' if a is None else repr(a)} there, "
        f"{'nothing' if b is None else repr(b)} now"
        for name, (a, b) in pairs.items()
        if repr(a) != repr(b)
    ]
    return [*lines[:NAMED], "\n  ..."] if len(lines) > NAMED else lines
