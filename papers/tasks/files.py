"""Where data is read from: folders that the user names, and tensorflow-datasets."""

from pathlib import Path


def existing_folder(name, path):
    """Return `path` as a `Path`, or raise a `FileNotFoundError` if it is no directory."""
    if not Path(path).is_dir():
        raise FileNotFoundError(
            f"`{name}` must be an existing directory. Received: {name}={str(path)!r}"
        )
    return Path(path)


def read_tfds(name, splits, data_dir):
    """Return splits of a data set, each a dict of whole arrays.

    tensorflow-datasets reads it, which takes TensorFlow whichever backend trains.
    """
    if data_dir is not None:
        existing_folder("data_dir", data_dir)
    import tensorflow_datasets as tfds

    tensors = tfds.load(name, split=splits, data_dir=data_dir, batch_size=-1)
    return [tfds.as_numpy(t) for t in tensors]
