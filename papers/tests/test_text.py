"""Texts as data: vocabulary, rows, windows, files refused."""

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
    (tmp_path / "ptb.valid.txt").write_text("a dog ran\n", encoding="utf-8")
    (tmp_path / "ptb.test.txt").write_text("a cat\nZoë sat", encoding="utf-8")
    return tmp_path


def test_words_are_numbered_by_the_training_text(folder):
    task = tasks.load("words", folder=folder, vary=False)
    # a cat sat <eos> dog, then <unk>: ran and Zoë are not in the training text.
    assert task.train.tokens.tolist() == [0, 1, 2, 3, 0, 4, 2, 3, 3]
    assert task.validation.tokens.tolist() == [0, 4, 5, 3]
    assert task.test.tokens.tolist() == [0, 1, 3, 5, 2, 3]
    assert task.chance == {"loss": math.log(6), "perplexity": 6.0}
    assert task.metric == "perplexity" and task.stateful and task.return_sequences


def test_the_texts_own_unknown_word_is_used(folder):
    (folder / "ptb.train.txt").write_text("a <unk> b\n")
    task = tasks.load("words", folder=folder)
    assert task.validation.tokens.tolist() == [0, 1, 1, 3]
    assert task.chance["perplexity"] == 4.0


def test_characters_are_all_that_stand_in_the_files(folder):
    task = tasks.load("characters", folder=folder)
    text = " a cat sat \n a dog sat\n\n"
    alphabet = list(dict.fromkeys(text))
    assert [alphabet[i] for i in task.train.tokens] == list(text)
    unknown = len(alphabet)
    assert task.test.tokens.tolist().count(unknown) == len("Zë")
    assert task.chance["bits_per_character"] == math.log2(len(alphabet) + 1)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 400),
    st.integers(1, 9),
    st.integers(10, 40),
    st.booleans(),
    st.integers(0, 2**20),
    st.integers(0, 3),
)
def test_rows_are_read_once_in_order(symbols, rows, steps, vary, seed, epoch):
    tokens = np.arange(symbols, dtype="int32")
    length = (symbols - 1) // rows
    if length < 1:
        return
    batches = Text(tokens, steps, vary).batches(rows, seed=seed, epoch=epoch)
    pairs = [batches[i] for i in range(len(batches))]
    x, y = (np.concatenate(parts, axis=1) for parts in zip(*pairs))
    np.testing.assert_array_equal(x, tokens[: rows * length].reshape(rows, length))
    np.testing.assert_array_equal(y, x + 1)
    lengths = [part.shape[1] for part, _ in pairs]
    assert min(lengths) >= 1
    if not vary:
        assert set(lengths[1:]) <= {steps} and lengths[0] <= steps
        assert batches.rate is None
    else:
        rates = [batches.rate(epoch, i) for i in range(len(batches))]
        np.testing.assert_allclose(rates, np.array(lengths) / steps)
        assert len(lengths) < 2 or lengths[0] != lengths[1]


def test_varied_lengths_are_drawn_around_their_mean():
    text = Text(np.zeros(20 * 70_000 + 1, "int32"), 70, vary=True)

    def lengths(seed, epoch):
        batches = text.batches(20, seed=seed, epoch=epoch)
        return np.array([batches[i][0].shape[1] for i in range(len(batches))])

    first = lengths(0, 0)
    np.testing.assert_array_equal(first, lengths(0, 0))
    assert not np.array_equal(first, lengths(0, 1))
    assert not np.array_equal(first, lengths(1, 0))
    assert len(first) == 1000 and first.sum() == 70_000
    halved = first < 53
    assert 0.03 < halved.mean() < 0.07
    stretched = 70 / (0.95 * 70 + 0.05 * 35)
    assert first[~halved].mean() == pytest.approx(70 * stretched, abs=1)
    assert first[~halved].std() == pytest.approx(5 * stretched, abs=0.7)
    assert first[halved].mean() == pytest.approx(35 * stretched, abs=3)


@needs.prepared_data
def test_tiny_shakespeare_is_read():
    task = tasks.load("characters", data_dir=os.environ["KERAS_MOMENTUM_RNN_TFDS"])
    lengths = [len(s) for s in (task.train, task.validation, task.test)]
    assert lengths == [1003854, 55770, 55770]
    assert 2 ** task.chance["bits_per_character"] == pytest.approx(65)
    words = tasks.load("words", data_dir=os.environ["KERAS_MOMENTUM_RNN_TFDS"])
    assert words.train.tokens.max() < words.chance["perplexity"]
    assert len(words.train) < lengths[0] / 4


def remove(path):
    path.unlink()


@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [
        (remove, FileNotFoundError, "one file whose name ends in valid.txt"),
        (
            lambda p: (p.parent / "2valid.txt").touch(),
            FileNotFoundError,
            "['2valid.txt', 'ptb.",
        ),
        (lambda p: p.write_bytes(b"caf\xe9"), ValueError, "ptb.valid.txt is not UTF-8 text"),
        (lambda p: p.write_text("\n \n"), ValueError, "ptb.valid.txt, which has none"),
    ],
    ids=["missing", "two", "latin-1", "empty"],
)
def test_bad_files_are_named(folder, damage, error, message):
    damage(folder / "ptb.valid.txt")
    for name in ("words", "characters"):
        with pytest.raises(error) as raised:
            tasks.load(name, folder=folder)
        assert message in str(raised.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"folder": "no/such"}, FileNotFoundError, "`folder` must be an existing directory"),
        ({"steps": 0}, ValueError, "`steps` must be a positive integer. Received: steps=0"),
        ({"steps": 9}, ValueError, "`steps` must be at least 10 where lengths vary."),
        ({"vary": 2}, ValueError, "`vary` must be one of [True, False]"),
    ],
)
def test_bad_options_are_refused(folder, options, error, message):
    with pytest.raises(error) as raised:
        tasks.load("words", **{"folder": folder, **options})
    assert message in str(raised.value)


def test_more_rows_than_words_are_refused(folder):
    task = tasks.load("words", folder=folder)
    with pytest.raises(ValueError, match="must be below the number of symbols, 4"):
        task.validation.batches(4)
