"""Sets of the UCR and UEA archives, as `.ts` files: those inside aeon and sktime, or yours."""

import importlib.util
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_momentum_rnn.checks import checked_choice
from papers.tasks.files import existing_folder
from papers.tasks.task import Split, generator, sequence_model

# Packages that have sets in their folder datasets/data.
PACKAGES = ("aeon", "sktime")
STANDARDISE = ("training", "sample", None)
# Marks missing steps: float32 represents it exactly, and no sensor measures it.
MASK_VALUE = -1e9


def archive(
    name: str,
    folder: Path | str | None = None,
    standardise: str | None = "training",
    validation: float = 0.25,
    seed: int = 0,
) -> dict[str, Any]:
    """A classification or regression set of the UCR and UEA archives.

    aeon reads it. The archive's own test set is for test. A share of its training set, drawn by
    class, is for validation. Shorter sequences are padded, and steps with a missing value
    are masked: the model then begins with a `keras.layers.Masking`. Targets of a regression set
    stay as in the file, and so does the unit of its mean squared error.

    Args:
        name: str, such as `"GunPoint"`. aeon has some small sets inside it, sktime PLAID.
        folder: where NAME_TRAIN.ts and NAME_TEST.ts are, or a folder NAME with them; None for
            the sets inside aeon and sktime. Nothing is downloaded.
        standardise: `"training"`: each channel gets mean 0 and standard deviation 1 over the
            training samples; `"sample"`: over each sequence on its own; None: values as in the
            files.
        validation: float, the share of the training set that is for validation.
        seed: int, of what is chosen for validation.

    Raises:
        FileNotFoundError: if there is no such set, with a list of the available ones.
        ImportError: if aeon is missing, with what to install.
        ValueError: if a value is out of its range, a file has no labels or one class, or a
            value or target is not finite.

    Example:

    >>> from papers import tasks
    >>> task = tasks.load("archive", name="BasicMotions")  # doctest: +SKIP
    >>> task.train.x.shape, task.validation.x.shape, task.test.x.shape  # doctest: +SKIP
    ((32, 100, 6), (8, 100, 6), (40, 100, 6))

    Reference: Dau et al. (2019), "The UCR time series archive"; Bagnall et al. (2018), "The
    UEA multivariate time series classification archive".
    """
    checked_choice("standardise", standardise, STANDARDISE)
    if not 0 < validation < 1:
        raise ValueError(f"`validation` must be a share in (0, 1). Received: {validation=}")
    return labelled(*read(name, folder), standardise, validation, seed)


def labelled(training, testing, standardise, validation, seed):
    """Return sequences with labels as arguments of `Task`.

    Args:
        training, testing: each (list of (channels, time), labels, classes or None), NaN where a
            value is missing.
        standardise, validation, seed: as of `archive`.
    """
    (series, labels, classes), (test_series, test_labels, _) = training, testing
    check(training, testing)
    steps = max(one.shape[1] for one in [*series, *test_series])
    x, test_x = padded(series, steps), padded(test_series, steps)
    held_out = chosen(labels, validation, classes is not None, generator(seed, "validation"))
    if classes is not None:
        labels, test_labels = (encoded(found, classes) for found in (labels, test_labels))
    parts = {
        "train": (x[~held_out], labels[~held_out]),
        "validation": (x[held_out], labels[held_out]),
        "test": (test_x, test_labels),
    }
    return of_parts(parts, classes, standardise)


def of_parts(parts, classes, standardise="training"):
    """Return training, validation and test set as arguments of `Task`.

    Args:
        parts: dict of (array (samples, steps, channels), targets); NaN is a missing value.
        classes: list of the classes, or None where the targets are numbers.
        standardise: as of `archive`.
    """
    statistics = of_training(parts["train"][0])
    splits = {
        part: Split(masked(standardised(x, standardise, statistics)), y)
        for part, (x, y) in parts.items()
    }
    gaps = any(np.isnan(x).any() for x, _ in parts.values())
    shape = parts["train"][0].shape[1:]
    units = 1 if classes is None else len(classes)
    return {
        "input_shape": shape,
        **splits,
        **scored(splits, classes),
        "build": sequence_model(shape, units, mask_value=MASK_VALUE if gaps else None),
    }


def check(training, testing):
    """Raise a `ValueError` if sequences or labels are none that a layer can learn."""
    channels = {one.shape[0] for one in [*training[0], *testing[0]]}
    if len(channels) > 1:
        raise ValueError(
            f"All sequences must have the same channels. Received: {sorted(channels)} channels"
        )
    for part, (series, labels, classes) in (("training", training), ("test", testing)):
        for number, one in enumerate(series, start=1):
            if np.isinf(one).any():
                raise ValueError(
                    "A sequence must have finite values, and none where one is missing. "
                    f"Received: {one[np.isinf(one)][0]} in sequence {number} of {part}"
                )
        if classes is None and not np.isfinite(labels).all():
            number = int(np.argmin(np.isfinite(labels)))
            raise ValueError(
                "A target must be a finite number. "
                f"Received: {labels[number]} for sequence {number + 1} of {part}"
            )
    classes = training[2]
    if classes is not None and len(classes) < 2:
        raise ValueError(f"There must be two classes or more. Received: {list(classes)}")


def scored(splits, classes):
    """Return how a set is scored, as arguments of `Task`."""
    if classes is not None:
        return classification(splits, len(classes))
    chance = np.mean((splits["test"].y - splits["train"].y.mean()) ** 2)
    return {
        "loss": keras.losses.MeanSquaredError(),
        "new_metrics": list,
        "metric": "loss",
        "larger_is_better": False,
        "chance": {"loss": float(chance)},
        "chance_means": "the mean of the training targets, whatever the sequence",
    }


def classification(splits, classes):
    """Return how a set with classes is scored, as arguments of `Task`."""
    shares = np.bincount(splits["train"].y, minlength=classes) / len(splits["train"])
    test = splits["test"].y
    return {
        "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "new_metrics": lambda: ["accuracy"],
        "metric": "accuracy",
        "larger_is_better": True,
        "chance": {
            "accuracy": float((test == shares.argmax()).mean()),
            "loss": float(-np.log(shares[test]).mean()),
        },
        "chance_means": "the classes as often as in training, the most frequent one as answer",
    }


def available(folder=None):
    """Return the sets that there are, a dict from names to folders.

    Args:
        folder: as of `archive`.
    """
    if folder is None:
        specs = filter(None, map(importlib.util.find_spec, PACKAGES))
        roots = [Path(spec.origin).parent / "datasets" / "data" for spec in specs]
    else:
        roots = [existing_folder("folder", folder)]
    found = {}
    for root in roots:
        for path in sorted([*root.glob("*_TRAIN.ts"), *root.glob("*/*_TRAIN.ts")]):
            name = path.name.removesuffix("_TRAIN.ts")
            if path.with_name(f"{name}_TEST.ts").exists():
                found.setdefault(name, path.parent)
    return found


def read(name, folder=None):
    """Return training and test set, each (list of (channels, time), labels, classes or None).

    Raises:
        FileNotFoundError: if there is no such set.
        ValueError: if a file has no labels.
    """
    found = available(folder)
    if name not in found:
        where = "inside aeon and sktime" if folder is None else f"in {str(folder)!r}"
        raise FileNotFoundError(
            f"`name` must be a set with NAME_TRAIN.ts and NAME_TEST.ts {where}: "
            f"{', '.join(found) or 'there are none'}. With `folder` those of a folder of yours "
            f"are read. Received: name={name!r}"
        )
    from aeon.datasets import load_from_ts_file

    sets = []
    for part in ("TRAIN", "TEST"):
        path = found[name] / f"{name}_{part}.ts"
        series, labels, told = load_from_ts_file(str(path), return_meta_data=True)
        if not told["classlabel"] and not told["targetlabel"]:
            raise ValueError(f"{path} has neither class labels nor targets")
        classes = None if told["targetlabel"] else sorted(set(labels))
        sets.append(([np.asarray(one, "float64") for one in series], labels, classes))
    return sets


def encoded(labels, classes):
    """Return the numbers of classes.

    Raises:
        ValueError: if a class is new to the training set.
    """
    if new := sorted({*labels} - {*classes}):
        raise ValueError(f"The test set has classes that the training set lacks: {new}")
    return np.array([classes.index(label) for label in labels], "int32")


def padded(series, steps):
    """Return sequences as one array (samples, steps, channels), NaN past their ends."""
    x = np.full((len(series), steps, series[0].shape[0]), np.nan)
    for row, one in zip(x, series):
        row[: one.shape[1]] = one.T
    return x


def chosen(labels, share, by_class, rng):
    """Return which samples are for validation, an array of bools.

    Of each class, or of all samples, the share, rounded, and at least one wherever one stays.
    """
    held_out = np.zeros(len(labels), bool)
    groups = [labels == one for one in sorted(set(labels))] if by_class else [held_out == 0]
    for group in groups:
        members = rng.permutation(np.flatnonzero(group))
        count = min(max(1, round(share * len(members))), len(members) - 1)
        held_out[members[:count]] = True
    if not held_out.any():
        raise ValueError(
            "No training sample can be spared for validation: each class has one. "
            f"Received: {len(labels)} samples of {len(groups)} classes"
        )
    return held_out


def of_training(x):
    """Return mean and deviation of each channel over samples and steps."""
    return np.nanmean(x, axis=(0, 1)), not_zero(np.nanstd(x, axis=(0, 1)))


def not_zero(deviation):
    """Return deviations, 1 in place of those of constants."""
    return np.where(deviation > 1e-8, deviation, 1.0)


def standardised(x, how, statistics):
    """Return sequences with mean 0 and standard deviation 1, see `archive`; NaN stays."""
    if how is None:
        return x
    if how == "training":
        mean, deviation = statistics
    else:
        mean = np.nanmean(x, axis=1, keepdims=True)
        deviation = not_zero(np.nanstd(x, axis=1, keepdims=True))
    return (x - mean) / deviation


def masked(x):
    """Return sequences in float32, the mask's value at steps with a missing value."""
    missing = np.isnan(x).any(axis=-1, keepdims=True)
    return np.where(missing, MASK_VALUE, x).astype("float32")
