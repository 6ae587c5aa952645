"""What makes two calls of `tune` the same search: all that their arguments and configs say."""

import contextlib
import hashlib
import json
import re

import keras
import keras_tuner
import numpy as np

# So many differences are named in an error.
NAMED = 8


def settings_of(hypermodel, model, **arguments):
    """Return what a call must share with the search that it resumes, a dict that JSON holds.

    Args:
        hypermodel: that of `tune`.
        model: what it builds of the default hyperparameters.
        **arguments: of `tune` and of `fit`; those that are `None` count as left out.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    versions = {"backend": keras.config.backend(), "keras_tuner": keras_tuner.__version__}
    settings = {**described(given), **of_hypermodel(hypermodel, model), **versions}
    return json.loads(json.dumps(settings))


def of_hypermodel(hypermodel, model):
    """Return what the configs of a hypermodel and of a model that it builds say."""
    found = {"model": [name_of(model), [list(w.shape) for w in model.weights]]}
    with contextlib.suppress(Exception):  # a model of one's own may have no config
        found["model"] = {"layers": model.get_config(), "compile": model.get_compile_config()}
    if hasattr(hypermodel, "get_config"):
        found["hypermodel"] = hypermodel.get_config()
    # Keras counts the layers of a process: "dense_3" is "dense" in the next.
    return json.loads(re.sub(r'_\d+"', '"', json.dumps(described(found))))


def described(value):
    """Return what can be compared of a value.

    Arrays have a digest, Keras's objects a config, callbacks their numbers. Of a function, a
    dataset, a generator or another object nothing is known but its name or its class.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        is_lambda = value.get("class_name") == "__lambda__"  # its code is no config
        return "lambda" if is_lambda else {str(k): described(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(inner) for inner in value]
    if keras.ops.is_tensor(value) or hasattr(value, "__array__"):
        return digest(np.asarray(keras.ops.convert_to_numpy(value)))
    if isinstance(value, keras_tuner.Objective):
        return [value.name, value.direction]
    if isinstance(value, keras.callbacks.Callback):
        numbers = {n: v for n, v in vars(value).items() if isinstance(v, (bool, int, float))}
        return {"class": name_of(value), **numbers}
    if hasattr(value, "get_config") and not isinstance(value, type):
        return {"class": name_of(value), **described(value.get_config())}
    return name_of(value)


def name_of(value):
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def digest(array):
    """Return type, shape and a digest of the values, which those of objects have not."""
    total = hashlib.blake2b(digest_size=8)
    if not array.dtype.hasobject:
        array = np.ascontiguousarray(array)
        total.update(array.reshape(-1).view(np.uint8))  # no copy of large data
    return f"{array.dtype} {array.shape} {total.hexdigest()}"


def differences(stored, given):
    """Return lines that name the differences between two settings, if any."""
    there, now = flat(stored), flat(given)
    lines = [
        f"\n  {name}: {there.get(name, 'nothing')} there, {now.get(name, 'nothing')} now"
        for name in {**there, **now}
        if there.get(name) != now.get(name)
    ]
    more = len(lines) - NAMED
    return [*lines[:NAMED], f"\n  and {more} more"] if more > 0 else lines


def flat(settings):
    leaves = keras.tree.flatten_with_path(settings)
    return {"/".join(map(str, path)): repr(leaf) for path, leaf in leaves}
