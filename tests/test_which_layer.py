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

from keras_momentum_rnn import tasks


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


@pytest.mark.parametrize(
    "text, match",
    [
        ("a,b\n1,2\n", "columns `sequence`, `label`.*a, b"),
        ("sequence,label,a\n1,x,2\n1,y,3\n", "line 3: sequence 1 has two labels"),
        ("sequence,label,a\n1,x,2\n1,x,u\n", "line 3: .*'u'"),
        ("", "no rows"),
    ],
)
def test_a_csv_that_cannot_be_read_is_told(tmp_path, text, match):
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(ValueError, match=match):
        which_layer.prepared(options(tmp_path / "d.csv", tmp_path / "out"))


def test_other_files_are_refused(tmp_path):
    for name in ("d.txt", "missing.csv"):
        (tmp_path / "d.txt").write_text("")
        with pytest.raises(ValueError, match=r"existing \.csv or \.npz"):
            which_layer.prepared(options(tmp_path / name, tmp_path / "out"))
    with pytest.raises(ValueError, match=r"one pair NAME_TRAIN.ts.*none"):
        which_layer.prepared(options(tmp_path, tmp_path / "out"))
    np.savez(tmp_path / "d.npz", x=np.zeros((3, 2)), y=np.zeros(3))
    with pytest.raises(ValueError, match=r"\(samples, steps, channels\)"):
        which_layer.prepared(options(tmp_path / "d.npz", tmp_path / "out"))


@needs_aeon
@pytest.mark.slow
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
