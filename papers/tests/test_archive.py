"""The task `archive`: sets of `.ts` files, read by aeon, with masks, classes and numbers."""

from importlib.util import find_spec

import keras
import numpy as np
import pytest

from papers import tasks
from papers.tasks import archive

needs_aeon = pytest.mark.skipif(not find_spec("aeon"), reason="aeon reads .ts files")

HEADER = """@problemName Tiny
@timeStamps false
@missing {missing}
@univariate {univariate}
@dimensions {channels}
@equalLength {equal}
{label}
@data
"""


def write(folder, part, samples, label, name="Tiny"):
    """Write a .ts file of (list of channels, label) pairs."""
    channels = len(samples[0][0])
    lengths = {len(sample[0]) for sample, _ in samples}
    lines = [
        ":".join([",".join(map(str, channel)) for channel in sample] + [str(target)])
        for sample, target in samples
    ]
    text = HEADER.format(
        missing="true" if "?" in "".join(lines) else "false",
        univariate="true" if channels == 1 else "false",
        channels=channels,
        equal="true" if len(lengths) == 1 else "false",
        label=label,
    )
    folder.mkdir(exist_ok=True)
    (folder / f"{name}_{part}.ts").write_text(text + "\n".join(lines) + "\n")


@pytest.fixture
def ragged(tmp_path):
    """Two channels, lengths 2 to 4, classes "up" (three times as often) and "down"."""
    rng = np.random.default_rng(0)

    def sample(length, level):
        return (rng.normal(level, 1, (2, length)).round(3).tolist(), "up" if level else "down")

    train = [sample(2 + i % 3, 5 if i % 4 else 0) for i in range(16)]
    write(tmp_path, "TRAIN", train, "@classLabel true down up")
    write(tmp_path, "TEST", [sample(3, 5), sample(4, 0), sample(2, 5)],
        "@classLabel true down up")  # fmt: skip
    return tmp_path, train


@needs_aeon
def test_values_lengths_and_classes_are_those_of_the_files(ragged):
    folder, train = ragged
    task = tasks.load("archive", name="Tiny", folder=folder, standardise=None)
    assert task.input_shape == (4, 2)
    assert (len(task.train), len(task.validation), len(task.test)) == (12, 4, 3)
    # A quarter of each class is held out: one of the four "down", three of the twelve "up".
    assert sorted(task.validation.y) == [0, 1, 1, 1] and task.test.y.tolist() == [1, 0, 1]
    # Every sample of the file stands in one of the two parts, once, with its own label.
    parts = [
        (x, y) for split in (task.train, task.validation) for x, y in zip(split.x, split.y)
    ]
    for sample, label in train:
        inputs = np.full((4, 2), archive.MASK_VALUE, "float32")
        inputs[: len(sample[0])] = np.array(sample).T
        matching = [y for x, y in parts if np.array_equal(x, inputs)]
        assert matching == [["down", "up"].index(label)]
    np.testing.assert_array_equal(task.test.x[2, 2:], archive.MASK_VALUE)
    assert task.metric == "accuracy" and task.larger_is_better
    # "up", 9 of 12 in training, is right for 2 of 3.
    assert task.chance["accuracy"] == pytest.approx(2 / 3)
    expected = -(2 * np.log(9 / 12) + np.log(3 / 12)) / 3
    assert task.chance["loss"] == pytest.approx(expected)


@needs_aeon
def test_validation_is_drawn_by_seed(ragged):
    folder, _ = ragged
    given = {"name": "Tiny", "folder": folder}
    one, again, other = (tasks.load("archive", **given, seed=s).validation.x for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    half = tasks.load("archive", **given, validation=0.5)
    assert (len(half.train), len(half.validation)) == (8, 8)


@needs_aeon
def test_standardised_by_training_and_by_sample(ragged):
    folder, _ = ragged
    raw, training, sample = (
        tasks.load("archive", name="Tiny", folder=folder, standardise=how)
        for how in (None, "training", "sample")
    )
    present = raw.train.x != archive.MASK_VALUE
    values = [raw.train.x[..., c][present[..., c]].astype("float64") for c in range(2)]
    for c in range(2):
        found = training.train.x[..., c][present[..., c]]
        assert found.mean() == pytest.approx(0, abs=1e-5)
        assert found.std() == pytest.approx(1, abs=1e-5)
        # Test has the numbers of training, not its own.
        expected = (raw.test.x[1, :, c] - values[c].mean()) / values[c].std()
        np.testing.assert_allclose(training.test.x[1, :, c], expected, rtol=1e-4)
    for x in (*sample.train.x, *sample.test.x):
        real = x[x[:, 0] != archive.MASK_VALUE]
        np.testing.assert_allclose(real.mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(real.std(axis=0), 1, atol=1e-5)
    np.testing.assert_array_equal(sample.train.x == archive.MASK_VALUE, ~present)


@needs_aeon
def test_what_stands_past_the_end_changes_nothing(ragged):
    folder, _ = ragged
    task = tasks.load("archive", name="Tiny", folder=folder)
    model = task.model(keras.layers.LSTM(3, **task.layer_arguments))
    task.compile(model, "sgd")
    assert task.test.x[2, 2, 0] == archive.MASK_VALUE
    whole = model.predict(task.test.x[2:], verbose=0)
    alone = model.predict(task.test.x[2:, :2], verbose=0)
    np.testing.assert_allclose(whole, alone, atol=1e-6)
    history = task.fit(model, batch_size=4, epochs=2).history
    assert len(history["loss"]) == 2 and np.isfinite(history["loss"]).all()
    assert set(task.evaluate(model, "test", 2)) == {"loss", "accuracy"}


@needs_aeon
def test_equal_lengths_have_no_mask_and_missing_values_one(tmp_path):
    rows = [([[1.0 + i, 2.0, 3.0]], "ab"[i % 2]) for i in range(8)]
    write(tmp_path, "TRAIN", rows, "@classLabel true a b")
    write(tmp_path, "TEST", rows, "@classLabel true a b")
    task = tasks.load("archive", name="Tiny", folder=tmp_path)
    layers = task.model(keras.layers.GRU(2)).layers
    assert not any(isinstance(layer, keras.layers.Masking) for layer in layers)
    rows[3] = ([[1.0, "?", 3.0]], "b")
    write(tmp_path, "TEST", rows, "@classLabel true a b")
    task = tasks.load("archive", name="Tiny", folder=tmp_path)
    assert (task.test.x[3, :, 0] == archive.MASK_VALUE).tolist() == [False, True, False]
    layers = task.model(keras.layers.GRU(2)).layers
    assert any(isinstance(layer, keras.layers.Masking) for layer in layers)


@needs_aeon
def test_numbers_as_targets(tmp_path):
    rows = [([[float(i), 1.0, 2.0]], i / 2) for i in range(8)]
    write(tmp_path / "Tiny", "TRAIN", rows, "@targetLabel true")
    write(tmp_path / "Tiny", "TEST", rows[:4], "@targetLabel true")
    task = tasks.load("archive", name="Tiny", folder=tmp_path)
    assert task.metric == "loss" and not task.larger_is_better
    mean = task.train.y.mean()
    expected = np.mean((np.arange(4) / 2 - mean) ** 2)
    assert task.chance == {"loss": pytest.approx(expected)}
    assert task.model(keras.layers.SimpleRNN(2)).output_shape == (None, 1)


@needs_aeon
def test_bundled_sets_keep_the_split_of_the_archive():
    task = tasks.load("archive", name="JapaneseVowels")
    assert len(task.train) + len(task.validation) == 270 and len(task.test) == 370
    assert task.input_shape == (29, 12)
    assert len(set(task.test.y.tolist())) == 9
    # The shortest sequence of the set has 7 steps.
    steps = (task.test.x[..., 0] != archive.MASK_VALUE).sum(axis=1)
    assert steps.min() == 7 and steps.max() == 29


@needs_aeon
@pytest.mark.parametrize(
    "options, error, match",
    [
        ({}, ValueError, "needs the option 'name'"),
        ({"name": "None"}, FileNotFoundError, "NAME_TRAIN.ts.*GunPoint.*name='None'"),
        ({"name": "GunPoint", "folder": "/no/such"}, FileNotFoundError, "existing directory"),
        ({"name": "GunPoint", "standardise": "all"}, ValueError, "standardise.*'sample'"),
        ({"name": "GunPoint", "validation": 1.0}, ValueError, "validation"),
    ],
)
def test_what_is_refused(options, error, match):
    with pytest.raises(error, match=match):
        tasks.load("archive", **options)


@needs_aeon
def test_a_folder_without_sets_and_a_class_new_in_test(tmp_path):
    with pytest.raises(FileNotFoundError, match="there are none"):
        tasks.load("archive", name="Tiny", folder=tmp_path)
    rows = [([[1.0, 2.0]], "a"), ([[1.0, 3.0]], "b")] * 2
    write(tmp_path, "TRAIN", rows, "@classLabel true a b")
    write(tmp_path, "TEST", [([[1.0, 2.0]], "c")], "@classLabel true a b c")
    with pytest.raises(ValueError, match=r"lacks: .*c"):
        tasks.load("archive", name="Tiny", folder=tmp_path)


def labelled(series, labels, classes=None, test=None):
    training = (series, np.array(labels), classes)
    testing = training if test is None else (test, training[1][: len(test)], classes)
    return archive.labelled(training, testing, "training", 0.25, 0)


def test_what_no_layer_can_learn_is_refused():
    series, labels = list(np.random.default_rng(0).normal(size=(6, 3, 5))), np.arange(6.0)
    assert labelled(series, labels)["input_shape"] == (5, 3)
    broken = [*series[:4], np.where(series[4] > 0, -np.inf, 0), series[5]]
    with pytest.raises(ValueError, match=r"finite.*Received: -inf in sequence 5 of training"):
        labelled(broken, labels)
    with pytest.raises(ValueError, match=r"finite.*Received: -inf in sequence 1 of test"):
        labelled(series, labels, test=broken[4:])
    with pytest.raises(ValueError, match=r"target.*Received: nan for sequence 2 of training"):
        labelled(series, [0, np.nan, 2, 3, 4, 5])
    # By broadcasting, one channel would become three.
    with pytest.raises(ValueError, match=r"same channels. Received: \[1, 3\] channels"):
        labelled(series, labels, test=[one[:1] for one in series])
    with pytest.raises(ValueError, match=r"two classes or more. Received: \['a'\]"):
        labelled(series, ["a"] * 6, ["a"])


def test_a_set_without_a_sample_to_spare_is_refused():
    with pytest.raises(ValueError, match="each class has one"):
        archive.chosen(["a", "b", "c"], 0.25, True, np.random.default_rng(0))
