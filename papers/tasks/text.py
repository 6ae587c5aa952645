"""Language modelling: predict the next word or character of a text, read in order."""

import dataclasses
import functools
import math
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_momentum_rnn.checks import checked_choice, checked_count
from papers.tasks.files import existing_folder, read_tfds
from papers.tasks.language_model import (
    BitsPerCharacter,
    Perplexity,
    ResetStates,
    language_model,
)
from papers.tasks.task import Batches, generator

SPLITS = ("train", "valid", "test")
END_OF_LINE = "<eos>"
UNKNOWN_WORD = "<unk>"
UNKNOWN_CHARACTER = "\ufffd"
# Varied lengths: their deviation, the least one, and how often they are around half as long.
DEVIATION = 5
LEAST = 5
HALVED = 0.05


def words(
    folder: Path | str | None = None,
    data_dir: Path | str | None = None,
    steps: int = 70,
    vary: bool = True,
    seed: int = 0,
) -> dict[str, Any]:
    """Predict the next word: perplexity, the exponential of the mean cross-entropy.

    The text is cut into one row for each place in a batch. The rows are read side by side from
    beginning to end, `steps` words at a time. `Task.model` carries the states from one batch
    to the next, and every epoch starts from zero. A line ends with the word `<eos>`. The
    vocabulary is that of the training text; other words count as `<unk>`.

    The paper's data is Penn Treebank, by path (MomentumRNN appendix A.3): 10,000 words with
    `<unk>` and `<eos>`, and its model and training those of a regularised LSTM, see
    `papers.tasks.language_model`. Without a folder: tiny Shakespeare, by
    tensorflow-datasets. MCRM's code reads windows that overlap by half, and scores their second
    halves; here they do not overlap. Validation and test have `steps` words a batch, and the
    batch size of the model.

    Args:
        folder: directory with three text files in UTF-8, whose names end in train.txt,
            valid.txt and test.txt; None for tiny Shakespeare.
        data_dir: where tensorflow-datasets keeps tiny_shakespeare, and downloads it to.
        steps: positive integer, how many words a batch has in each row.
        vary: bool, whether each training batch has its own length, drawn around `steps`
            (deviation 5; of one in twenty batches around half of it), by which the learning
            rate is multiplied: length / steps. So does the paper's baseline.
        seed: int, of the lengths.

    Raises:
        FileNotFoundError: if there is no such folder or file.
        ValueError: if a file is not in UTF-8, or is empty.
    """
    texts = read(folder, data_dir)
    lines = [[line.split() for line in text.splitlines()] for text in texts]
    tokens = [[w for line in split for w in (*line, END_OF_LINE)] for split in lines]
    return text_task(tokens, UNKNOWN_WORD, steps, vary, seed, Perplexity, float)


def characters(
    folder: Path | str | None = None,
    data_dir: Path | str | None = None,
    steps: int = 100,
    vary: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Predict the next character: bits per character, the mean cross-entropy over log 2.

    As `words`, with the characters of the files as they are, line ends included. The data of
    MCRM is Penn Treebank, in windows of 400 that overlap by 80, of which only the rest is
    scored. Here they do not overlap.

    Args:
        folder, data_dir, seed: as of `words`.
        steps: positive integer, how many characters a batch has in each row.
        vary: bool, as of `words`.
    """
    tokens = [list(text) for text in read(folder, data_dir)]
    return text_task(tokens, UNKNOWN_CHARACTER, steps, vary, seed, BitsPerCharacter, math.log2)


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


def encode(splits, unknown):
    """Return the splits as integers, and the symbols of training in order of appearance.

    `unknown` is one more symbol where another split needs it and training has none.
    """
    symbols = list(dict.fromkeys(splits[0]))
    if unknown not in symbols and not set().union(*splits[1:]) <= set(symbols):
        symbols.append(unknown)
    numbers = {symbol: i for i, symbol in enumerate(symbols)}
    other = numbers.get(unknown)
    return [
        np.array([numbers.get(s, other) for s in split], "int32") for split in splits
    ], symbols


@dataclasses.dataclass(frozen=True)
class Text:
    """A text that is read in order, in batches of `steps` symbols from each of several rows.

    Attributes:
        tokens: array (symbols,) of integers.
        steps: int, how many symbols of each row make a batch.
        vary: bool, whether lengths are drawn around `steps`.
        seed: int, of these lengths.
    """

    tokens: np.ndarray
    steps: int
    vary: bool = False
    seed: int = 0

    def __len__(self):
        return len(self.tokens)

    def batches(self, batch_size: int, seed: int = 0, epoch: int = 0) -> Batches:
        """Return `Batches` in the order of the text; target is the next symbol.

        All rows have the same number of symbols. The rest of the text, at most one symbol for
        each row, is left out.

        Args:
            batch_size: positive integer, the number of rows.
            seed: integer, of the training run, by which lengths are drawn if they vary.
            epoch: number of the first epoch.
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

        @functools.lru_cache(maxsize=1)
        def bounds(epoch):
            if self.vary:
                return varied_bounds(
                    length, self.steps, generator(self.seed, "train", seed, epoch)
                )
            return even_bounds(length, self.steps)

        def batch(epoch, i):
            start, stop = bounds(epoch)[i : i + 2]
            return x[:, start:stop], y[:, start:stop]

        def rate(epoch, i):
            start, stop = bounds(epoch)[i : i + 2]
            return (stop - start) / self.steps

        return Batches(
            math.ceil(length / self.steps), batch, epoch, rate if self.vary else None
        )


def even_bounds(length, steps):
    """Return where batches start and end: all of `steps`, but the first for the rest.

    Keras on TensorFlow takes the shape of the first two for that of all, or for unknown.
    """
    rest = length % steps
    return [*([0] if rest else []), *range(rest, length + 1, steps)]


def varied_bounds(length, steps, rng):
    """Return where batches start and end: as many as of even ones, their lengths drawn.

    The lengths are drawn, then stretched to fill the text together. The first two differ, for
    Keras on TensorFlow.
    """
    count = math.ceil(length / steps)
    center = np.where(rng.random(count) < HALVED, steps / 2, steps)
    drawn = np.maximum(LEAST, rng.normal(center, DEVIATION)).cumsum()
    inner = np.round(drawn[:-1] * (length / drawn[-1])).astype(int)
    bounds = np.array([0, *inner, length])
    if count > 1 and bounds[1] == bounds[2] - bounds[1]:
        bounds[1] += 1
    return bounds.tolist()


def text_task(splits, unknown, steps, vary, seed, score, uniform):
    """Return the arguments of `Task`.

    Args:
        splits: three lists of symbols.
        unknown: the symbol in place of those that training has not.
        steps, vary, seed: as of `words`.
        score: class of the metric.
        uniform: function from the number of symbols to what an even guess scores.
    """
    checked_count("steps", steps)
    checked_choice("vary", vary, (True, False))
    if vary and steps < 2 * LEAST:
        raise ValueError(
            f"`steps` must be at least {2 * LEAST} where lengths vary. Received: {steps=}"
        )
    (train, validation, test), symbols = encode(splits, unknown)
    return {
        "input_shape": (None,),
        "train": Text(train, steps, vary, seed),
        "validation": Text(validation, steps),
        "test": Text(test, steps),
        "return_sequences": True,
        "stateful": True,
        "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "new_metrics": lambda: [score()],
        "metric": score().name,
        "larger_is_better": False,
        "chance": {"loss": math.log(len(symbols)), score().name: uniform(len(symbols))},
        "chance_means": f"each of the {len(symbols)} symbols alike, whatever came before",
        "build": functools.partial(language_model, len(symbols)),
        "new_callbacks": lambda: [ResetStates()],
    }
