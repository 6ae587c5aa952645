"""Your own data: forecast one long series from a CSV file.

    python examples/own_data.py                         # reads sensor.csv, or writes it first
    python examples/own_data.py mydata.csv --target load

The file has one row for each time step, in the order of time, and columns of numbers. From
the last `--steps` rows of all columns the model predicts the next value of the target. Without
a file, the example writes one to read: the temperature of a machine, and its load. Columns of
text, and those without a name, such as the index that pandas writes, are left out.

To classify many short series, see which_layer.py.
"""

import argparse
from pathlib import Path

import keras
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from keras_momentum_rnn import MomentumGRU


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, help="a .csv file")
    parser.add_argument("--target", default="temperature", help="the column to predict")
    parser.add_argument("--steps", type=int, default=48, help="rows that the model reads")
    parser.add_argument("--epochs", type=int, default=20, help="at most")
    options = parser.parse_args()
    path = options.data or written(Path("sensor.csv"))
    try:
        table = read(path, options.target)
    except (OSError, ValueError) as error:  # pandas's own, and those of an encoding
        raise SystemExit(f"{path}: {error}") from None

    # The first 60 % of the time train, the next 20 % stop the training, the last 20 % test.
    # Neighbouring windows share most rows: drawn at random, they would leak into the test.
    # The model sees the last value in place of a missing one: a value from after it would tell
    # the target. No filled value is a target.
    values = table.ffill().to_numpy()
    known = table[options.target].notna().to_numpy()
    ends = [int(share * len(values)) for share in (0.6, 0.8)]
    mean, deviation = (f(values[: ends[0]], axis=0) for f in (np.nanmean, np.nanstd))
    deviation = np.where(deviation > 1e-12 * abs(mean), deviation, 1)  # less is rounding
    # Not before: float32 has seven digits, too few for small changes of a large value.
    scaled = np.nan_to_num((values - mean) / deviation).astype("float32")
    column = table.columns.get_loc(options.target)
    train, validation, test = (
        windows(*part, options.steps, column)
        for part in zip(np.split(scaled, ends), np.split(known, ends))
    )

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input(train[0].shape[1:]), MomentumGRU(32), keras.layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(3e-3, clipnorm=1.0), "mse")
    stop = keras.callbacks.EarlyStopping(patience=3, restore_best_weights=True)
    history = model.fit(
        *train,
        batch_size=64,
        epochs=options.epochs,
        validation_data=validation,
        callbacks=[stop],
        verbose=0,
    ).history

    # A forecast is worth its trouble where it beats these two.
    x, y = test
    last = np.mean((y - x[:, -1, column : column + 1]) ** 2)
    # In float32 columns that repeat, as the hour of the day, would have weights of any size.
    flat, flat_test = (part.reshape(len(part), -1).astype(float) for part in (train[0], x))
    straight = np.mean((y - LinearRegression().fit(flat, train[1]).predict(flat_test)) ** 2)
    print(f"{len(table)} rows of {list(table)}; {len(history['loss'])} epochs")
    print("Mean squared error on the last fifth, in units of the training variance:")
    print(f"  the value before   {last:.4f}")
    print(f"  a linear model     {straight:.4f}")
    print(f"  MomentumGRU        {model.evaluate(x, y, verbose=0):.4f}")
    following = model.predict(scaled[None, -options.steps :], verbose=0)
    print(f"Next {options.target}: {following.item() * deviation[column] + mean[column]:.4g}")


def read(path, target):
    """Return the columns of numbers, among them the target."""
    table = pd.read_csv(path).filter(regex="^(?!Unnamed: )")  # the pattern of a missing name
    numbers = table.apply(pd.to_numeric, errors="coerce").astype(float)
    texts = [name for name in table if numbers[name].isna().all()]
    numbers = numbers.drop(columns=texts)
    for name in texts:
        print(f"Column {name!r} has no numbers and is left out")
    if target not in numbers:
        why = ", which has no numbers" * (target in texts)
        raise ValueError(f"--target must be one of {list(numbers)}. Received: {target!r}{why}")
    for name in numbers:
        wrong = table[name].notna() & ~(numbers[name].abs() < 1e30)
        for row, value in table.loc[wrong, name].items():
            line = f"{value!r} in line {row + 2}"
            raise ValueError(f"column {name!r} needs numbers below 1e30. Received: {line}")
    return numbers


def windows(part, known, steps, column):
    """Return (windows, steps, columns) and the value that follows each, where it is known."""
    known = known[steps:]
    if not known.any():
        raise SystemExit(
            f"Each part needs more than --steps={steps} rows, and targets after them; one has "
            f"{len(part)} rows"
        )
    found = np.lib.stride_tricks.sliding_window_view(part[:-1], steps, axis=0)
    x, y = found.swapaxes(1, 2)[known], part[steps:, column : column + 1][known]
    return np.ascontiguousarray(x), y


def written(path):
    """Write a file of 60 days, a row each hour, unless there is one, and return its path.

    A machine heats up where its load is above 0, and cools down slowly where it is not.
    """
    rng, rows, load, temperature = np.random.default_rng(0), [], 0.0, 20.0
    for hour in range(60 * 24):
        temperature += 0.3 * (20 + 20 * (load > 0) - temperature) + rng.normal() / 5
        load = 0.8 * load + rng.normal()
        rows.append({"hour": hour % 24, "temperature": temperature, "load": load})
    if not path.exists():
        pd.DataFrame(rows).to_csv(path, index=False)
    return path


if __name__ == "__main__":
    main()
