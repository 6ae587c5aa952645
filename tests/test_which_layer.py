"""The example `which_layer.py`: what it reads of a user's file, and what it compares."""

import argparse
import json

import numpy as np
import pytest

pytest.importorskip("keras_tuner", reason="the comparison needs it")
pytest.importorskip("matplotlib", reason="the comparison needs it")
pytest.importorskip("rich", reason="the comparison needs it")
pytest.importorskip("scipy", reason="the comparison needs it")
pytest.importorskip("sklearn", reason="the comparison needs it")
pytest.importorskip("tensorboard", reason="the comparison needs it")

import which_layer
from ts_files import needs_aeon

from papers import tasks


def options(path, output, **more):
    return argparse.Namespace(**{"data": path, "output": output, "test": 0.25, **more})


def csv_of(samples, path, head="label,sequence,a,b"):
    """Write (label, (steps, 2)) pairs, rows of the sequences in turns."""
    longest = max(len(x) for _, x in samples)
    lines = [head]
    for step in range(longest):
        for name, (label, x) in enumerate(samples):
            if step < len(x):
                cells = ["" if np.isnan(v) else str(v) for v in x[step]]
                lines.append(",".join([str(label), f"s{name}", *cells]))
    path.write_text("\n".join(lines) + "\n")


def values_of(folder):
    """Return (sequence without its padding, label) of all samples of a prepared folder."""
    task = tasks.load("archive", name="data", folder=folder, standardise=None)
    parts = (task.train, task.validation, task.test)
    pairs = [(x[x[:, 0] > -1e9], y) for part in parts for x, y in zip(part.x, part.y)]
    return task, pairs


@needs_aeon
def test_csv_is_read_as_it_is_told(tmp_path):
    rng = np.random.default_rng(0)
    samples = [("yes" if i % 2 else "no", rng.normal(i, 1, (3 + i % 2, 2))) for i in range(12)]
    csv_of(samples, tmp_path / "d.csv")
    folder = which_layer.prepared(options(tmp_path / "d.csv", tmp_path / "out"))
    task, pairs = values_of(folder)
    # A quarter of each class, rounded, at least one: 6 of 12 are "no".
    assert len(task.test) == 4 and sorted(task.test.y) == [0, 0, 1, 1]
    assert len(pairs) == 12
    for label, x in samples:
        (found,) = [y for one, y in pairs if one.shape == x.shape and np.allclose(one, x)]
        assert found == ["no", "yes"].index(label)


@needs_aeon
def test_npz_of_numbers_with_a_test_set(tmp_path):
    x = np.random.default_rng(0).normal(size=(8, 5, 1))
    x[0, 3:] = np.nan
    y = np.arange(8) / 2
    np.savez(tmp_path / "d.npz", x=x, y=y, x_test=x[:3] + 1, y_test=y[:3])
    folder = which_layer.prepared(options(tmp_path / "d.npz", tmp_path / "out"))
    task, pairs = values_of(folder)
    assert task.metric == "loss" and task.test.y.tolist() == [0, 0.5, 1]
    np.testing.assert_allclose(task.test.x[1:], x[1:3] + 1, rtol=1e-6)
    assert (task.test.x[0, 3:] == -1e9).all()
    assert sorted(y for _, y in pairs[: len(task.train) + len(task.validation)]) == y.tolist()


@needs_aeon
def test_no_digit_of_a_value_is_lost(tmp_path):
    """Seconds since 1970, which float32 cannot hold, are standardised before."""
    x = 1.7e9 + np.random.default_rng(0).integers(0, 60, (8, 5, 1))
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(8) % 2, x_test=x, y_test=np.arange(8) % 2)
    folder = which_layer.prepared(options(tmp_path / "d.npz", tmp_path / "out"))
    task = tasks.load("archive", name="data", folder=folder, standardise="sample")
    expected = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    np.testing.assert_allclose(task.test.x, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "text, match",
    [
        ("a,b\n1,2\n", "columns `sequence`, `label`.*a, b"),
        (
            "sequence,label,a\n1,x,2\n1,y,3\n",
            "line 3: sequence 1 has two labels.*'x', then 'y'",
        ),
        ("sequence,label,a\n1,x,2\n1,x,u\n", "line 3: .*'u'"),
        ("", "no columns; 0 rows"),
        ("sequence,label,a\n", "sequence, label, a; 0 rows"),
        # A decimal comma, and a cell that is lost.
        ("sequence,label,a\n1,x,2\n\n1,x,2,5\n", "line 4 must have 3 cells.*1, x, 2, 5"),
        ("sequence,label,a,b\n1,x,2\n", "line 2 must have 4 cells.*1, x, 2"),
        # The index of pandas would tell which sequence has which class.
        (",sequence,label,a\n0,1,x,2\n", "index=False.*Received: '', 'sequence'"),
        ("sequence,label,a,a\n1,x,2,3\n", "name of its own.*'a', 'a'"),
        ("sequence,label,a\n1,,2\n", "line 2: .*sequence='1', label=''"),
        ("sequence,label,a\n,x,2\n", "line 2: .*sequence='', label='x'"),
        ("sequence,label,a\n1,2.5,2\n2,nan,3\n", "be numbers. Received: 'nan' of sequence 2"),
    ],
)
def test_a_csv_that_cannot_be_read_is_told(tmp_path, text, match):
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(ValueError, match=match):
        which_layer.prepared(options(tmp_path / "d.csv", tmp_path / "out"))


def test_a_full_stop_in_a_name_makes_no_number(tmp_path):
    text = "sequence,label,a\n1,St. Louis,2\n2,v1.0,3\n3,1,4\n"
    (tmp_path / "d.csv").write_text(text)
    assert which_layer.read_csv(tmp_path / "d.csv")[0][1] == ["St. Louis", "v1.0", "1"]
    (tmp_path / "d.csv").write_text(text.replace("St. Louis", "1.5").replace("v1.0", "2"))
    assert which_layer.read_csv(tmp_path / "d.csv")[0][1] == [1.5, 2, 1]


def test_other_files_are_refused(tmp_path):
    for name in ("d.txt", "missing.csv"):
        (tmp_path / "d.txt").write_text("")
        with pytest.raises(ValueError, match=r"existing \.csv or \.npz"):
            which_layer.prepared(options(tmp_path / name, tmp_path / "out"))
    with pytest.raises(ValueError, match=r"one pair NAME_TRAIN.ts.*none"):
        which_layer.prepared(options(tmp_path, tmp_path / "out"))
    full = {name: np.zeros((3, 2, 1)) for name in ("x", "x_test")} | {"y": np.zeros(3)}
    for lacking, given in (("y_test", full), ("y", {"x": full["x"]})):
        np.savez(tmp_path / "d.npz", **given)
        with pytest.raises(ValueError, match=f"must have .* and `{lacking}`. Received: .'x'"):
            which_layer.prepared(options(tmp_path / "d.npz", tmp_path / "out"))
    np.savez(tmp_path / "d.npz", x=np.zeros((3, 2)), y=np.zeros(3))
    with pytest.raises(ValueError, match=r"\(samples, steps, channels\)"):
        which_layer.prepared(options(tmp_path / "d.npz", tmp_path / "out"))


def test_results_of_other_sequences_are_not_continued(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(8, 5, 1)), np.arange(8) % 2
    given = options(tmp_path / "d.npz", tmp_path / "out")
    for scale in (1, 2):  # as long as there are no results
        np.savez(tmp_path / "d.npz", x=scale * x, y=y)
        which_layer.prepared(given)
    (tmp_path / "out/data").mkdir()
    (tmp_path / "out/data/results.json").write_text("{}")
    assert which_layer.prepared(given) == tmp_path / "out/sets"
    with pytest.raises(ValueError, match=r"results for other sequences.*choose another output"):
        which_layer.prepared(options(tmp_path / "d.npz", tmp_path / "out", test=0.5))
    np.savez(tmp_path / "d.npz", x=3 * x, y=y)
    with pytest.raises(ValueError, match=r"results for other sequences.*choose another output"):
        which_layer.prepared(given)


@needs_aeon
def test_layers_are_compared_on_a_file(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    np.savez(tmp_path / "d.npz", x=rng.normal(y[:, None, None], 0.3, (24, 9, 2)), y=y)
    small = ["--units=3", "--trials=1", "--seeds=2", "--epochs=1", "--layers", "LSTM", "linear"]
    given = [str(tmp_path / "d.npz"), *small, f"--output={tmp_path / 'out'}"]
    results = which_layer.main(given)
    assert json.loads((tmp_path / "out/data/results.json").read_text()) == results
    assert [run["layer"] for run in results["runs"]] == ["LSTM"] * 2 + ["linear"] * 2
    text = (tmp_path / "out/report.md").read_text()
    assert "pairs of a layer" not in text and "| linear |" in text
