"""Language modelling: predict the next character of a text, read in order."""

import dataclasses
import functools
import math
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_momentum_rnn.checks import checked_count
from papers.tasks.files import existing_folder, read_tfds
from papers.tasks.language_model import BitsPerCharacter, ResetStates, language_model
from papers.tasks.task import Batches

SPLITS = ("train", "valid", "test")
UNKNOWN = "\ufffd"


def characters(
    folder: Path | str | None = None, data_dir: Path | str | None = None, steps: int = 100
) -> dict[str, Any]:
    """Predict the next character: bits per character, the mean cross-entropy over log 2.

    The text is cut into one row for each place in a batch. The rows are read side by side from
    beginning to end, `steps` characters at a time. `Task.model` carries the states from one
    batch to the next, and every epoch starts from zero. The vocabulary is that of the training
    text, line ends included; other characters count as one unknown.

    The data of MCRM is Penn Treebank, in windows of 400 that overlap by 80, of which only the
    rest is scored. Here they do not overlap. Without a folder: tiny Shakespeare, by
    tensorflow-datasets.

    Args:
        folder: directory with three text files in UTF-8, whose names end in train.txt,
            valid.txt and test.txt; None for tiny Shakespeare.
        data_dir: where tensorflow-datasets keeps tiny_shakespeare, and downloads it to.
        steps: positive integer, how many characters a batch has in each row.

    Raises:
        FileNotFoundError: if there is no such folder or file.
        ValueError: if a file is not in UTF-8, or is empty.
    """
    checked_count("steps", steps)
    (train, validation, test), symbols = encode(read(folder, data_dir))
    return {
        "input_shape": (None,),
        "train": Text(train, steps),
        "validation": Text(validation, steps),
        "test": Text(test, steps),
        "return_sequences": True,
        "stateful": True,
        "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "new_metrics": lambda: [BitsPerCharacter()],
        "metric": "bits_per_character",
        "larger_is_better": False,
        "chance": {"loss": math.log(symbols), "bits_per_character": math.log2(symbols)},
        "chance_means": f"each of the {symbols} symbols alike, whatever came before",
        "build": functools.partial(language_model, symbols),
        "new_callbacks": lambda: [ResetStates()],
    }


def read(folder, data_dir):
    """Return the three texts."""
    if folder is None:
        splits = read_tfds("tiny_shakespeare", ["train", "validation", "test"], data_dir)
        return ["".join(t.decode() for t in split["text"]) for split in splits]
    folder = existing_folder("folder", folder)
    return [read_text(folder, f"{split}.txt") for split in SPLITS]


def read_text(folder, ending):
    paths = sorted(p for p in folder.iterdir() if p.name.endswith(ending))
    if len(paths) != 1:
        raise FileNotFoundError(
            f"`folder` must have one file whose name ends in {ending}. "
            f"Received: folder={str(folder)!r} with {[p.name for p in paths]}"
        )
    try:
        text = paths[0].read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{paths[0]} is not UTF-8 text: {error}") from error
    if not text.strip():
        raise ValueError(f"A text must have words in it. Received: {paths[0]}, which has none")
    return text


def encode(texts):
    """Return texts as integers, in order of appearance in the first, and how many there are.

    A character that the first text lacks is one more symbol, the same for all of them.
    """
    symbols = list(dict.fromkeys(texts[0]))
    if UNKNOWN not in symbols and not set().union(*texts[1:]) <= set(symbols):
        symbols.append(UNKNOWN)
    numbers = {symbol: i for i, symbol in enumerate(symbols)}
    other = numbers.get(UNKNOWN)
    encoded = [np.array([numbers.get(s, other) for s in text], "int32") for text in texts]
    return encoded, len(symbols)


@dataclasses.dataclass(frozen=True)
class Text:
    """A text that is read in order, in batches of `steps` symbols from each of several rows.

    Attributes:
        tokens: array (symbols,) of integers.
        steps: int, how many symbols of each row make a batch.
    """

    tokens: np.ndarray
    steps: int

    def __len__(self):
        return len(self.tokens)

    def batches(self, batch_size: int, seed: int = 0) -> Batches:
        """Return `Batches` in the order of the text; target is the next symbol.

        All rows have the same number of symbols. The rest of the text, at most one symbol for
        each row, is left out.

        Args:
            batch_size: positive integer, the number of rows.
            seed: not used: every epoch has the same order.
        """
        size = checked_count("batch_size", batch_size)
        length = (len(self.tokens) - 1) // size
        if length < 1:
            raise ValueError(
                f"`batch_size` must be below the number of symbols, {len(self.tokens)}. "
                f"Received: {batch_size=}"
            )
        x = self.tokens[: size * length].reshape(size, length)
        y = self.tokens[1 : size * length + 1].reshape(size, length)
        bounds = even_bounds(length, self.steps)

        def batch(epoch, i):
            start, stop = bounds[i : i + 2]
            return x[:, start:stop], y[:, start:stop]

        return Batches(len(bounds) - 1, batch)


def even_bounds(length, steps):
    """Return where batches start and end: all of `steps`, but the first for the rest.

    Keras on TensorFlow takes the shape of the first two for that of all, or for unknown.
    """
    rest = length % steps
    return [*([0] if rest else []), *range(rest, length + 1, steps)]
