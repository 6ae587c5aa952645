"""The sets of the comparison on real sequences: each a name, and how it becomes a `Task`."""

from functools import partial

import numpy as np

from keras_momentum_rnn import requirements
from papers import tasks
from papers.tasks.archive import labelled
from papers.tasks.files import existing_folder
from papers.tasks.speech import BINS, RATE, read, spectrogram, wav_files

BANDS = 20
# Added to a magnitude of speech before its logarithm, as the task `speech` has it.
FLOOR = 1e-5
VALIDATION = 0.25
TEST_SHARE = 0.2
TEST_SPEAKERS = 2


def digits(rows):
    """Return training and test set of scikit-learn's digits, read by rows or by pixels.

    Each is (list of (channels, time), labels, classes): eight steps of eight pixels, or 64 of
    one. The test images are those of the task `digits`.
    """
    requirements.check("the digits", "tasks", {"sklearn": "scikit-learn"})
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(
        images / 16, labels, test_size=TEST_SHARE, stratify=labels, random_state=0
    )
    shape = (8, 8) if rows else (64, 1)
    classes = list(range(10))
    return [
        ([image.reshape(shape).T for image in images], labels.astype("int32"), classes)
        for images, labels in (parts[::2], parts[1::2])
    ]


def spoken_digits(folder):
    """Return training and test set of the Free Spoken Digit Dataset, by its folder.

    Files are `{digit}_{speaker}_{index}.wav`. Each step is a frame of 32 ms every 16 ms: the
    log magnitudes of the task `speech`, averaged in bands of equal width in mel. The last
    speakers by name are for test, so that no voice is in both.

    Raises:
        FileNotFoundError: if there is no such folder, or no wav file in it.
        ValueError: if there are too few speakers.
    """
    requirements.check("spoken digits", "tasks", {"scipy": "scipy", "soundfile": "soundfile"})
    paths = wav_files(existing_folder("recordings", folder))
    speakers = sorted({path.stem.split("_")[1] for path in paths})
    if len(speakers) <= TEST_SPEAKERS:
        raise ValueError(
            f"`recordings` must have more than {TEST_SPEAKERS} speakers. Received: {speakers}"
        )
    bands = mel_bands()
    training, testing = ([], []), ([], [])
    for path in paths:
        digit, speaker, _ = path.stem.split("_")
        series, labels = testing if speaker in speakers[-TEST_SPEAKERS:] else training
        series.append((spectrogram(read(path), FLOOR) @ bands).T)
        labels.append(int(digit))
    classes = sorted({*training[1]})
    return [(series, np.array(labels), classes) for series, labels in (training, testing)]


def mel_bands():
    """Return the matrix (bins, bands) that averages frequencies in bands of equal width."""
    mel = 2595 * np.log10(1 + np.linspace(0, RATE / 2, BINS) / 700)
    number = np.minimum((mel / mel[-1] * BANDS).astype(int), BANDS - 1)
    members = (number[:, None] == np.arange(BANDS)).astype("float64")
    return members / members.sum(axis=0)


# What is no set of the archive: a function of the options, of what tells training and test.
OTHERS = {
    "DigitRows": lambda options: digits(rows=True),
    "DigitPixels": lambda options: digits(rows=False),
    "SpokenDigits": lambda options: spoken_digits(options.recordings),
}
# The smallest first.
SETS = (
    "ItalyPowerDemand",
    "GunPoint",
    "BasicMotions",
    "DigitRows",
    "JapaneseVowels",
    "Covid3Month_disc",
    "elnino",
    "sunspots",
    "co2",
    "DigitPixels",
    "ArrowHead",
    "SpokenDigits",
    "PickupGestureWiimoteZ",
    "OSULeaf",
    "PLAID",
    "ACSF1",
)


def loader(name, options):
    """Return a function of `standardise`, as of `tasks.load("archive", ...)`, to a `Task`.

    Args:
        name: one of `SETS`, or a set in the folder of the options.
        options: with `folder` and `recordings`.
    """
    if name not in OTHERS or options.folder:
        return lambda standardise: tasks.load(
            "archive", name=name, folder=options.folder, standardise=standardise
        )
    return partial(other, name, OTHERS[name](options))


def other(name, parts, standardise, seed=0):
    """Return the `Task` of training and test set, split and standardised as the archive's."""
    told = {"standardise": standardise, "validation": VALIDATION, "seed": seed}
    return tasks.Task(
        name=name,
        options={"name": name, **told},
        **labelled(*parts, **told),
    )
