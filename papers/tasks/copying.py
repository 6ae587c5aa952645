"""Copying and memorising: repeat the first symbols of a sequence at its end."""

import math
from typing import Any

import keras
import numpy as np

from keras_momentum_rnn.checks import checked_choice, checked_count
from papers.tasks.task import generated, sequence_model

BLANK = 0
# Each variant of copying: blanks, one-hot inputs, whether it repeats one set of sequences.
VARIANTS = {"momentumrnn": (1000, True, False), "mcrm": (1000, False, True)}


def copying(
    variant: str = "momentumrnn",
    blanks: int | None = None,
    length: int = 10,
    symbols: int = 8,
    samples: int = 10_000,
    held_out: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Copy `length` symbols over a stretch of blanks.

    The symbols are 1 to N, uniform; 0 is the blank and N + 1 the cue. With K for the length
    and L for the blanks,

    ```
    "momentumrnn"    input   K symbols, L blanks, a cue, K - 1 blanks
    "mcrm"           input   K symbols, L - 1 blanks, K + 1 cues
    both             target  K + L blanks, the K symbols
    ```

    The loss is the mean cross-entropy over all L + 2 K steps. The papers: Nguyen et al.
    (2020), appendix A.4, L = 1000 and 2000, inputs here one-hot, which they leave open; the
    code of Mohamed and Claudel (2018), whose inputs are the plain numbers 0 to 9, with a class
    for the cue too, and 10,000 training sequences that stay the same. The loss of chance, K log
    N / (L + 2 K), is the baseline of both.

    Args:
        variant: which of them.
        blanks: positive integer L; None for 1000.
        length: positive integer K.
        symbols: int N, at least 2.
        samples: int, training sequences of an epoch; `"mcrm"` repeats the same ones in every
            epoch.
        held_out: int, the sequences of validation, and as many of test.
        seed: int.

    Raises:
        ValueError: if a value is out of its range.

    Example:

    >>> from papers import tasks
    >>> task = tasks.load("copying", blanks=4, length=3)
    >>> task.test.x[0].tolist(), task.test.y[0].tolist()
    ([6, 7, 4, 0, 0, 0, 0, 9, 0, 0], [0, 0, 0, 0, 0, 0, 0, 6, 7, 4])
    """
    checked_choice("variant", variant, VARIANTS)
    usual, one_hot, fixed = VARIANTS[variant]
    blanks = checked_count("blanks", usual if blanks is None else blanks)
    length, symbols = checked_count("length", length), checked_count("symbols", symbols, 2)
    cue = symbols + 1
    if variant == "mcrm":
        middle, outputs = [BLANK] * (blanks - 1) + [cue] * (length + 1), symbols + 2
    else:
        middle, outputs = cued(blanks, cue, length), symbols + 1
    drawing = (samples, held_out, seed, fixed)
    return recall_task(symbols, length, middle, outputs, one_hot, drawing)


def memory5(
    blanks: int = 200,
    cue: bool = True,
    centered: bool = False,
    samples: int = 10_000,
    held_out: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """The 5-bit memorisation problem: 5 bits, recalled after a stretch of blanks.

    Laid out as `copying` with 5 symbols of 2 kinds and 200 blanks. The score is the mean number
    of wrong symbols of the 5, by which chance is 2.5, as in Table 5 of Sutskever et al. (2013).
    The loss is the mean over the steps of recall alone: by their table, output biases that
    ignore the hidden state have 2.5 wrong, so blanks cannot be among the targets that they
    learn. Their text names no cue; the problem as Hochreiter and Schmidhuber (1997) set it has
    one.

    Args:
        blanks: positive integer, T of the paper.
        cue: bool, whether a cue says when to recall, or a blank stands there.
        centered: bool, whether the shares of the symbols are taken from the one-hot inputs, as
            the paper does.
        samples: int, of a training epoch.
        held_out: int, the sequences of validation, and as many of test.
        seed: int.
    """
    return memory(2, 5, blanks, cue, centered, samples, held_out, seed)


def memory20(
    blanks: int = 80,
    cue: bool = True,
    centered: bool = False,
    samples: int = 10_000,
    held_out: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """The 20-bit memorisation problem: ten symbols of 5 kinds, recalled after blanks.

    As `memory5`; chance is 8.0 wrong symbols of ten.

    Args:
        blanks: positive integer, T of the paper.
        cue, centered, samples, held_out, seed: as of `memory5`.
    """
    return memory(5, 10, blanks, cue, centered, samples, held_out, seed)


def memory(symbols, length, blanks, cue, centered, samples, held_out, seed):
    blanks = checked_count("blanks", blanks)
    signal = symbols + 1 if checked_choice("cue", cue, (True, False)) else BLANK
    drawing = (samples, held_out, seed, False)
    middle = cued(blanks, signal, length)
    parts = recall_task(symbols, length, middle, symbols, True, drawing)
    if checked_choice("centered", centered, (True, False)):
        counts = np.bincount(middle, minlength=symbols + 2) + 0.0
        counts[1 : symbols + 1] += length / symbols
        shares = counts / (length + len(middle))
        parts["build"] = sequence_model(parts["input_shape"], symbols, symbols + 2, shares)
    return {**parts, "metric": "wrong_symbols"}


def cued(blanks, cue, length):
    """Return what follows the symbols: blanks, a cue, blanks for all recalls but the first."""
    return [BLANK] * blanks + [cue] + [BLANK] * (length - 1)


def recall_task(symbols, length, middle, outputs, one_hot, drawing):
    """Return the arguments of `Task`.

    Args:
        symbols: int, how many kinds there are.
        length: int, how many of them a sequence has.
        middle: list of symbols, what follows them.
        outputs: int, how many classes the read-out has. If none is for blanks, only the
            steps of recall count, and blanks have the target -1.
        one_hot: bool, of the inputs.
        drawing: samples, held_out, seed and fixed, as of `generated`.
    """
    samples, held_out, seed, fixed = drawing
    steps = length + len(middle)
    blank, scored = (BLANK, steps) if outputs > symbols else (-1, length)

    def draw(rng, count):
        recalled = rng.integers(1, symbols + 1, (count, length), dtype="int32")
        x = np.tile(np.array(middle, "int32"), (count, 1))
        x = np.concatenate([recalled, x], axis=1)
        y = np.full((count, steps), blank, "int32")
        y[:, -length:] = recalled + blank
        return (x if one_hot else x[..., None].astype("float32")), y

    samples, held_out = checked_count("samples", samples), checked_count("held_out", held_out)
    shape = (steps,) if one_hot else (steps, 1)
    return {
        **generated(draw, samples, held_out, seed, fixed),
        "input_shape": shape,
        "return_sequences": True,
        "loss": keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=None if blank == BLANK else blank
        ),
        "new_metrics": lambda: [mean_wrong_symbols(length)],
        "metric": "loss",
        "larger_is_better": False,
        "chance": {
            "loss": length * math.log(symbols) / scored,
            "wrong_symbols": length * (1 - 1 / symbols),
        },
        "chance_means": "blanks where they belong, and " * (scored == steps)
        + "any symbol alike where one is recalled",
        "build": sequence_model(shape, outputs, symbols=symbols + 2 if one_hot else None),
    }


def mean_wrong_symbols(length):
    """Return the metric of the mean number of wrong symbols in so many steps at the end."""
    mean = keras.metrics.MeanMetricWrapper
    return mean(wrong_symbols, name="wrong_symbols", length=length)


@keras.saving.register_keras_serializable(package="papers")
def wrong_symbols(y_true, y_pred, length):
    """Return for each sequence how many of its last symbols are not the likeliest class."""
    said = keras.ops.argmax(y_pred[:, -length:], axis=-1)
    wrong = keras.ops.cast(y_true[:, -length:], said.dtype) != said
    return keras.ops.sum(keras.ops.cast(wrong, "float32"), axis=-1)
