"""Digests of the data of a search, by which it knows the data again when it resumes."""

import hashlib

import keras
import numpy as np

DATA = ("x", "y", "sample_weight", "validation_data")


def digests(fit):
    """Return a digest, a str, of each part of the data that consists of arrays.

    Datasets and generators have none, since to read them would change them or take long.

    Args:
        fit: dict of arguments of `model.fit`.
    """
    found = {name: digest(fit[name]) for name in DATA if fit.get(name) is not None}
    return {name: text for name, text in found.items() if text is not None}


def digest(data):
    """Return a digest of arrays in any structure, or None where something else is in it.

    Args:
        data: NumPy arrays or tensors of any shape, alone or in lists, tuples and dicts.
    """
    total = hashlib.blake2b(digest_size=16)
    for path, leaf in keras.tree.flatten_with_path(data):
        if not isinstance(leaf, np.ndarray) and not keras.ops.is_tensor(leaf):
            return None
        array = np.ascontiguousarray(keras.ops.convert_to_numpy(leaf))
        if array.dtype.hasobject:
            return None
        total.update(f"{path} {array.dtype} {array.shape}".encode())
        total.update(array.reshape(-1).view(np.uint8))  # no copy of large data
    return total.hexdigest()
