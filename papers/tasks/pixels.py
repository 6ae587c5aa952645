"""Images read one pixel at a time: the 8x8 digits and MNIST, in order or permuted."""

import math
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_momentum_rnn.checks import checked_choice, checked_count
from papers.tasks.files import read_tfds
from papers.tasks.task import Split, sequence_model

CLASSES = 10
VALIDATION_SHARE = 6
TRAINING_IMAGES = {"digits": 1437, "mnist": 60000}


def digits(subset: int | None = None, permute: bool = False, seed: int = 0) -> dict[str, Any]:
    """The 1,797 handwritten digits of 8x8 pixels that scikit-learn bundles: 64 steps.

    A fifth is for test, and the last sixth of the rest for validation. Pixels are
    in [0, 1].

    Args:
        subset: int, how many of the 1,437 training images are used, the first ones, at least
            6; None for all.
        permute: bool, whether the pixels come in one fixed random order.
        seed: int, of that order.

    Raises:
        ValueError: if a value is out of its range.

    Example:

    >>> from papers import tasks
    >>> task = tasks.load("digits", permute=True)
    >>> task.train.x.shape, task.validation.x.shape, task.test.x.shape
    ((1198, 64, 1), (239, 64, 1), (360, 64, 1))
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    subset = checked_subset("digits", subset)
    permute = checked_choice("permute", permute, (True, False))
    images, labels = load_digits(return_X_y=True)
    images, test_images, labels, test_labels = train_test_split(
        images / 16, labels, test_size=0.2, stratify=labels, random_state=0
    )
    train, test = (images[:subset], labels[:subset]), (test_images, test_labels)
    return pixel_task(train, test, permute, seed)


def mnist(
    subset: int | None = None,
    data_dir: Path | str | None = None,
    permute: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """MNIST, one pixel a step, row by row: 784 steps. `pmnist` has `permute=True`.

    The papers' task (MomentumRNN section 3.1, MCRM section 4). The 10,000 test images are for
    test, and the last sixth of the 60,000 training images for validation. Pixels are in [0, 1].
    tensorflow-datasets reads it, so TensorFlow must be installed for every backend.

    Args:
        subset: int, how many training images are used, the first ones, at least 6; None
            for all.
        data_dir: where tensorflow-datasets keeps mnist, and downloads it to if it is missing
            there; None for its own default, which is made if needed.
        permute: bool, whether the pixels come in one fixed random order.
        seed: int, of that order.

    Raises:
        FileNotFoundError: if there is no directory `data_dir`.
        ValueError: if a value is out of its range.
    """
    subset = checked_subset("mnist", subset)
    permute = checked_choice("permute", permute, (True, False))
    train, test = read_tfds("mnist", [f"train[:{subset}]", "test"], data_dir)
    sets = [(s["image"] / np.float32(255), s["label"]) for s in (train, test)]
    return pixel_task(*sets, permute, seed)


def pmnist(
    subset: int | None = None, data_dir: Path | str | None = None, seed: int = 0
) -> dict[str, Any]:
    """MNIST as `mnist` loads it, with its pixels in one fixed random order.

    Args:
        subset, data_dir: as of `mnist`.
        seed: int, of the order.
    """
    return mnist(subset, data_dir, permute=True, seed=seed)


def checked_subset(name, subset):
    """Return how many training images are used."""
    largest = TRAINING_IMAGES[name]
    return checked_count(
        "subset", largest if subset is None else subset, VALIDATION_SHARE, largest
    )


def pixel_task(train, test, permute, seed):
    """Return the arguments of `Task`, from (images, labels) of training and of test."""
    images, labels = train
    stop = len(images) - len(images) // VALIDATION_SHARE
    sets = [(images[:stop], labels[:stop]), (images[stop:], labels[stop:]), test]
    steps = images[0].size
    order = permutation(steps, seed) if permute else np.arange(steps)
    splits = [
        Split(images.reshape(-1, steps, 1).astype("float32")[:, order], labels.astype("int32"))
        for images, labels in sets
    ]
    return {
        "input_shape": (steps, 1),
        **dict(zip(("train", "validation", "test"), splits)),
        "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "new_metrics": lambda: ["accuracy"],
        "metric": "accuracy",
        "larger_is_better": True,
        "chance": {"accuracy": 1 / CLASSES, "loss": math.log(CLASSES)},
        "chance_means": "each of the ten classes with probability 1/10, whatever the image",
        "build": sequence_model((steps, 1), CLASSES),
    }


def permutation(steps, seed):
    """Return the fixed order in which permuted tasks read the pixels."""
    return np.random.default_rng(seed).permutation(steps)
