"""Which layer suits your data? The same search for each layer, on sequences of a CSV file.

    pip install -e ".[examples,tuner]"
    python examples/which_layer.py mydata.csv

The file has one row for each step, in the order of time: the columns `sequence` (which one the
step belongs to), `label` (its class), and numbers, empty where a value is missing. With a
column `source` (the person or machine of a sequence) no source is on two sides of the split.
A column without a name, such as the index that pandas writes, is left out.

Validation chooses the winner, which alone sees the test data. To resume, repeat the command.
A first look in a minute: add `--seeds 1 --layers GRU LSTM`.
"""

import argparse
from pathlib import Path

import keras
import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedGroupKFold

from keras_momentum_rnn.tuning import suggest_layer, tune

NAMES = ["GRU", "LSTM", "MomentumRNN", "RMSPropLSTM", "SimpleRNN", "MomentumLSTM", "NAGLSTM"]
NUMBERS = {"RMSPropLSTM": {"step_size": 2.0, "beta": 0.999}}  # others have their defaults
RATES = [1e-3, 3e-3, 1e-2]
TEXTS = ["sequence", "label", "source"]
MASKED = -1e3  # the value of masked steps; standardised data have none like it


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="a .csv file")
    parser.add_argument("--layers", nargs="+", choices=NAMES, default=NAMES[:4])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40, help="at most; default 40")
    parser.add_argument("--search", type=int, default=0, help="trials more, drawn at random")
    parser.add_argument("--output", type=Path, default=Path("runs/which_layer"))
    options = parser.parse_args()
    try:
        ((x, y), validation, (x_test, y_test)), scale = read(options.data)
    except (OSError, ValueError) as error:  # pandas's own, and those of an encoding
        raise SystemExit(f"{options.data}: {error}") from None

    def model(hp):
        layer = suggest_layer(hp, options.layers, 32)
        front = [keras.Input(x.shape[1:]), keras.layers.Masking(MASKED), layer]
        model = keras.Sequential([*front, keras.layers.Dense(len(scale["classes"]), "softmax")])
        optimizer = keras.optimizers.Adam(hp.Choice("learning_rate", RATES), clipnorm=1.0)
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    numbers = [{"layer": name, **NUMBERS.get(name, {})} for name in options.layers]
    trials = [{**one, "learning_rate": rate} for one in numbers for rate in RATES]
    search = {"directory": options.output, "first": trials, "executions": options.seeds}
    search["max_trials"] = len(trials) + options.search
    fit = {"validation_data": validation, "epochs": options.epochs, "batch_size": 16}
    fit["callbacks"] = [keras.callbacks.EarlyStopping(patience=8)]
    try:
        results = tune(model, x, y, **search, **fit)
    except ValueError as error:
        hint = "\nOr name another --output" if "choose another" in str(error) else ""
        raise SystemExit(f"{error}{hint}") from None
    print(results.table().to_string())
    best = results.best_model()
    np.savez(options.output / "scale.npz", **scale)
    flat = [np.where(part == MASKED, 0, part).reshape(len(part), -1) for part in (x, x_test)]
    linear = RidgeClassifierCV(np.logspace(-3, 3, 13)).fit(flat[0], y)
    for name, answers in {
        results.best.values["layer"]: best.predict(x_test, verbose=0).argmax(-1),
        "a linear model": linear.predict(flat[1]),
        "the most frequent class": np.bincount(y).argmax(),
    }.items():
        print(f"{name}: {np.mean(answers == y_test):.0%} of {len(y_test)} test sequences right")
    print(f"The winner is {options.output / 'best.keras'}, with scale.npz beside it")


def read(path):
    """Return (x, y) for training, validation and test, missing steps masked; and the scale."""
    table = pd.read_csv(path).filter(regex="^(?!Unnamed: )")  # pandas's word for no name
    # The labels "NA" and "null" are words; only an empty cell is missing.
    texts = pd.read_csv(path, usecols=TEXTS.__contains__, dtype=str, keep_default_na=False)
    table = table.assign(**texts.where(texts != ""))
    channels = [name for name in table if name not in TEXTS]
    if not {"sequence", "label"} <= {*table} or not channels:
        raise ValueError(f"it needs `sequence`, `label` and numbers. Received: {list(table)}")
    for name in channels:
        numbers = pd.to_numeric(table[name], errors="coerce")
        if len(wrong := table[name][numbers.isna() & table[name].notna()]):
            raise ValueError(f"column {name!r} must have numbers. Received: {wrong.iloc[0]!r}")
        if numbers.isna().all() or numbers.abs().max() > 1e30:
            raise ValueError(f"column {name!r} is empty, or its numbers are too large")
    missing = table[channels].isna().any(axis=1)
    print(f"{len(table):,} steps of {channels}; {missing.sum():,} lack a value and are masked")
    if missing.mean() > 0.5:
        raise ValueError(f"a value is missing in {missing.mean():.0%} of the steps; fill them")
    apart = "source" if "source" in table else "sequence"
    steps = table.groupby("sequence", sort=False)
    for name in ("label", apart):
        if table["sequence"].isna().any() or (steps[name].nunique() != 1).any():
            raise ValueError(
                f"each row needs a sequence, each sequence one {name} in all its rows"
            )
    labels, source = steps["label"].first(), steps[apart].first().to_numpy()
    y, classes = pd.factorize(labels, sort=True)
    if len(classes) < 2:
        raise ValueError(f"it needs two classes or more. Received: {list(classes)}")
    counts = pd.Series(source).groupby(classes[y]).nunique()
    if few := counts[counts < 4].head(5).to_dict():
        raise ValueError(f"each class needs 4 {apart}s or more. Received: {few}")
    train, val, test = split(y, source, classes)
    ours = table["sequence"].isin(labels.index[train])
    known = table.loc[ours & ~missing, channels]
    if known.empty:
        name = table.loc[ours, channels].isna().mean().idxmax()
        raise ValueError(f"each training step lacks a value, most often of column {name!r}")
    mean, deviation = known.mean(), known.std()
    deviation = deviation.where(deviation > 1e-12 * mean.abs(), 1)  # less is rounding
    scaled = (table[channels] - mean) / deviation
    scaled[missing] = MASKED
    groups = [group.to_numpy() for _, group in scaled.groupby(table["sequence"], sort=False)]
    x = keras.utils.pad_sequences(groups, dtype="float32", padding="post", value=MASKED)
    scale = {"mean": mean, "deviation": deviation, "classes": classes.to_numpy(str)}
    return [(x[part], y[part]) for part in (train, val, test)], scale


def split(y, source, classes):
    """Return the sequences of training, validation and test, with each class in each part."""
    folds = [StratifiedGroupKFold(k, shuffle=True, random_state=0) for k in (4, 3)]
    for rest, test in folds[0].split(y, y, source):
        for train, val in folds[1].split(rest, y[rest], source[rest]):
            parts = {"training": rest[train], "validation": rest[val], "test": test}
            lacking = [(k, name) for name in parts for k in {*y} - {*y[parts[name]]}]
            if not lacking:
                return parts.values()
    k, name = lacking[0]
    raise ValueError(f"class {classes[k]!r} has too few sources: {name} would have none of it")


if __name__ == "__main__":
    main()
