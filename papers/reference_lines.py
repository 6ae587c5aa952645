"""A linear model and MiniRocket on the sets of the comparison: what needs no recurrence."""

import time

import numpy as np

from papers.perturbations import perturbed
from papers.tasks.archive import MASK_VALUE

PENALTIES = np.logspace(-3, 3, 13)


def reference_run(run, task, changed=True):
    """Return a run, filled in: trained on training and validation samples, tested once.

    Neither model needs a validation set of ours: both choose their penalty by leaving out one
    sample of the training set at a time.

    Args:
        run: dict, `layer` `"linear"` or `"MiniRocket"`.
        task: `Task`, of classes or numbers.
        changed: bool, whether to test it with changed inputs, too.
    """
    classes = task.larger_is_better
    x, y = (np.concatenate(parts) for parts in zip(*(arrays(task, n) for n in PARTS)))
    model = new_model(run["layer"], classes, run["seed"])
    start = time.process_time()
    model.fit(shaped(run["layer"], x), y)
    run["seconds"] = round(time.process_time() - start, 2)
    held_out, targets = arrays(task, "test")

    def scored(inputs):
        found = model.predict(shaped(run["layer"], inputs))
        if classes:
            return {"accuracy": round(float((found == targets).mean()), 5)}
        return {"loss": round(float(((found - targets) ** 2).mean()), 5)}

    run["test"] = scored(held_out)
    if changed:
        # Both take sequences of one length only.
        run["perturbed"] = {
            name: scored(inputs)
            for name, inputs in perturbed(held_out)
            if inputs.shape == held_out.shape
        }
    return run


PARTS = ("train", "validation")


def arrays(task, part):
    split = getattr(task, part)
    return np.where(split.x == MASK_VALUE, np.nan, split.x.astype("float64")), split.y.ravel()


def shaped(name, x):
    """Return sequences as a model takes them, 0, the mean, where one lacks a step."""
    x = np.nan_to_num(x)
    return x.reshape(len(x), -1) if name == "linear" else np.moveaxis(x, 1, 2)


def new_model(name, classes, seed):
    """Return a new model of scikit-learn's interface."""
    if name == "linear":
        from sklearn.linear_model import RidgeClassifierCV, RidgeCV

        return (RidgeClassifierCV if classes else RidgeCV)(alphas=PENALTIES)
    if classes:
        from aeon.classification.convolution_based import MiniRocketClassifier

        return MiniRocketClassifier(random_state=seed)
    from aeon.regression.convolution_based import MiniRocketRegressor

    return MiniRocketRegressor(random_state=seed)
