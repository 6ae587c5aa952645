"""Texts as data: alphabet, rows, windows, files refused."""

import math
import os

import needs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers import tasks
from papers.tasks.text import Text


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ptb.train.txt").write_text(" a cat sat \n a dog sat\n\n", encoding="utf-8")
    (tmp_path / "ptb.valid.txt").write_text("a dog\n", encoding="utf-8")
    (tmp_path / "ptb.test.txt").write_text("a cat\nZoë sat", encoding="utf-8")
    return tmp_path


def test_characters_are_all_that_stand_in_the_files(folder):
    task = tasks.load("characters", folder=folder)
    text = " a cat sat \n a dog sat\n\n"
    alphabet = list(dict.fromkeys(text))
    assert [alphabet[i] for i in task.train.tokens] == list(text)
    unknown = len(alphabet)
    assert task.test.tokens.tolist().count(unknown) == len("Zë")
    assert task.chance["bits_per_character"] == math.log2(len(alphabet) + 1)
    assert task.chance["loss"] == math.log(len(alphabet) + 1)
    assert task.metric == "bits_per_character" and task.stateful and task.return_sequences


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 400), st.integers(1, 9), st.integers(10, 40))
def test_rows_are_read_once_in_order(symbols, rows, steps):
    tokens = np.arange(symbols, dtype="int32")
    length = (symbols - 1) // rows
    if length < 1:
        return
    batches = Text(tokens, steps).batches(rows)
    pairs = [batches[i] for i in range(len(batches))]
    x, y = (np.concatenate(parts, axis=1) for parts in zip(*pairs))
    np.testing.assert_array_equal(x, tokens[: rows * length].reshape(rows, length))
    np.testing.assert_array_equal(y, x + 1)
    lengths = [part.shape[1] for part, _ in pairs]
    assert set(lengths[1:]) <= {steps} and 1 <= lengths[0] <= steps


@needs.prepared_data
def test_tiny_shakespeare_is_read():
    task = tasks.load("characters", data_dir=os.environ["KERAS_MOMENTUM_RNN_TFDS"])
    lengths = [len(s) for s in (task.train, task.validation, task.test)]
    assert lengths == [1003854, 55770, 55770]
    assert 2 ** task.chance["bits_per_character"] == pytest.approx(65)


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (lambda p: p.unlink(), FileNotFoundError, "one file whose name ends in valid.txt"),
        (lambda p: p.write_bytes(b"caf\xe9"), ValueError, "ptb.valid.txt is not UTF-8 text"),
        (lambda p: p.write_text("\n \n"), ValueError, "ptb.valid.txt, which has none"),
    ],
    ids=["missing", "latin-1", "empty"],
)
def test_bad_files_are_named(folder, damage, error, message):
    damage(folder / "ptb.valid.txt")
    with pytest.raises(error) as raised:
        tasks.load("characters", folder=folder)
    assert message in str(raised.value)


def test_more_rows_than_characters_are_refused(folder):
    task = tasks.load("characters", folder=folder)
    with pytest.raises(ValueError, match="must be below the number of symbols, 6"):
        task.validation.batches(6)
