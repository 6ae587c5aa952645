"""Speech: predict the next frame of a log-magnitude spectrogram."""

import collections
import math
import re
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_momentum_rnn.checks import checked_count
from papers.tasks.files import existing_folder
from papers.tasks.task import Split, sequence_model

RATE = 8000
WINDOW = 256
HOP = 128
BINS = WINDOW // 2 + 1
# One frame to read, and one to predict.
SHORTEST = WINDOW + HOP


def speech(
    folder: Path | str,
    speaker: str | None = None,
    validation_speakers: int = 1,
    test_speakers: int = 1,
    subset: int | None = None,
    frames: int | None = None,
    floor: float = 1e-5,
    seed: int = 0,
) -> dict[str, Any]:
    """Predict the next frame of speech, on any folder of wav files.

    ```
    X_t(b) = sum_n hann(n) s(128 t + n) exp(-2 pi i b n / 256),   n = 0 ... 255, b = 0 ... 128
    x_t = log(|X_t| + floor);   the target at step t is x_{t+1}
    ```

    The signal, of full scale 1, is brought to 8 kHz and one channel; frames are whole windows,
    16 ms apart. Sequences are padded at their end, and padded steps have weight 0 in the loss
    and in the score, the mean squared error over bins and true frames. No speaker is in two
    of the three sets. The papers' set is TIMIT; they leave the floor, the logarithm, here
    natural, and the scale of the signal open, on which the error depends.

    Args:
        folder: a directory, searched with all its folders for wav files, of any encoding and
            rate that libsndfile reads.
        speaker: regular expression, whose first group in the path of a file within `folder`,
            with slashes, is its speaker; None for the name of the file's folder. For the
            Free Spoken Digit Dataset, `{digit}_{speaker}_{index}.wav`: `r"_(.+)_"`.
        validation_speakers: int, how many speakers are for validation, drawn by seed.
        test_speakers: int, how many for test.
        subset: int, how many training utterances are used, drawn by seed; None for all.
        frames: int, at least 2; longer utterances are cut after so many frames. None keeps
            whole ones.
        floor: float above 0, added to the magnitude.
        seed: int.

    Raises:
        FileNotFoundError: if there is no such folder, or no wav file in it.
        ValueError: if a file cannot be read, is empty or shorter than two frames (384 samples
            at 8 kHz), or has no speaker by the pattern; if there are too few speakers.
    """
    folder = existing_folder("folder", folder)
    held_out = [
        checked_count("validation_speakers", validation_speakers),
        checked_count("test_speakers", test_speakers),
    ]
    speakers = collections.defaultdict(list)
    for path in wav_files(folder):
        speakers[speaker_of(path, folder, speaker)].append(path)
    if len(speakers) <= sum(held_out):
        raise ValueError(
            f"`folder` must have more speakers than the {sum(held_out)} that are held out. "
            f"Received: folder={str(folder)!r} with {sorted(speakers)}"
        )
    names = np.random.default_rng(seed).permutation(sorted(speakers)).tolist()
    groups = names[sum(held_out) :], names[: held_out[0]], names[held_out[0] : sum(held_out)]
    sets = [sorted(path for name in group for path in speakers[name]) for group in groups]
    return speech_task(sets, subset, frames, floor, seed)


def wav_files(folder):
    """Return all wav files under a folder, sorted."""
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() == ".wav" and p.is_file())
    if not paths:
        raise FileNotFoundError(
            f"`folder` must have wav files in it. Received: folder={str(folder)!r}"
        )
    return paths


def speaker_of(path, folder, pattern):
    if pattern is None:
        return path.parent.name
    place = path.relative_to(folder).as_posix()
    match = re.search(pattern, place)
    if match is None or not match.groups():
        raise ValueError(
            "`speaker` must be a regular expression whose first group is found in the path of "
            f"every file, as in {place!r}. Received: speaker={pattern!r}"
        )
    return match[1]


def speech_task(sets, subset, frames, floor, seed):
    """Return the arguments of `Task` for three lists of paths."""
    if not floor > 0:
        raise ValueError(f"`floor` must be above 0. Received: {floor=}")
    if frames is not None:
        checked_count("frames", frames, at_least=2)
    train, *rest = sets
    if subset is not None:
        order = np.random.default_rng(seed).permutation(len(train))
        train = [train[i] for i in sorted(order[: checked_count("subset", subset)])]
    sets = [[spectrogram(read(p), floor)[:frames] for p in s] for s in (train, *rest)]
    longest = max(len(s) for one in sets for s in one)
    splits = [next_frames(one, longest) for one in sets]
    mean = np.concatenate([s[1:] for s in sets[0]]).mean(axis=0, dtype="float64")
    target = np.concatenate([s[1:] for s in sets[2]])
    repeating = np.mean((target - np.concatenate([s[:-1] for s in sets[2]])) ** 2)
    return {
        "input_shape": (longest - 1, BINS),
        **dict(zip(("train", "validation", "test"), splits)),
        "return_sequences": True,
        "loss": keras.losses.MeanSquaredError(reduction="mean_with_sample_weight"),
        "new_metrics": lambda: [keras.metrics.MeanSquaredError("mse")],
        "metric": "mse",
        "larger_is_better": False,
        "chance": {"mse": float(np.mean((target - mean) ** 2))},
        "chance_means": (
            "the mean frame of training, at every step of test; "
            f"repeating the last frame scores {repeating:.3g}"
        ),
        "build": sequence_model((longest - 1, BINS), BINS),
    }


def read(path):
    """Return the samples of a file at 8 kHz, full scale 1: (samples,)."""
    import soundfile
    from scipy.signal import resample_poly

    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except soundfile.SoundFileError as error:
        raise ValueError(
            f"{path} is not a sound file that libsndfile can read: {error}"
        ) from error
    samples = samples.mean(axis=1)
    if rate != RATE and len(samples):
        common = math.gcd(RATE, rate)
        samples = resample_poly(samples, RATE // common, rate // common)
    if len(samples) < SHORTEST:
        raise ValueError(
            f"A sound must have at least {SHORTEST} samples at {RATE} Hz. "
            f"Received: {path} with {len(samples)}"
        )
    return samples


def spectrogram(samples, floor):
    """Return the log magnitudes (frames, bins) of whole windows."""
    from scipy.signal import get_window

    windows = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP]
    spectrum = np.fft.rfft(windows * get_window("hann", WINDOW))
    return np.log(np.abs(spectrum) + floor).astype("float32")


def next_frames(spectrograms, longest):
    """Return the `Split` of all but the last frames, all but the first, and which are true."""
    padded = np.zeros((len(spectrograms), longest, BINS), "float32")
    weight = np.zeros((len(spectrograms), longest - 1), "float32")
    for row, true, s in zip(padded, weight, spectrograms):
        row[: len(s)] = s
        true[: len(s) - 1] = 1
    return Split(padded[:, :-1], padded[:, 1:], weight)
