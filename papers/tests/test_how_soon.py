"""The example `how_soon.py`: what it trains, counts and reports."""

import json

import keras
import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the examples need it")
pytest.importorskip("rich", reason="the examples need it")

from papers import how_soon, how_soon_report

SETTINGS = {
    "error": 0.01,
    "most": 1000,
    "interval": 50,
    "units": 32,
    "batch_size": 32,
    "clipnorm": 1.0,
    "held_out": 500,
    **dict.fromkeys(["device", "keras_momentum_rnn", "keras", "jax"], "1"),
    "backend": "jax",
}


def run(layer, updates, seed=0, steps=100, rate=2e-3):
    told = {"layer": layer, "steps": steps, "learning_rate": rate, "seed": seed}
    return {**told, "updates": updates, "parameters": 10, "seconds": 0.01, "diverged": False}


def test_a_seed_counts_when_all_layers_of_its_length_have_it():
    runs = [run("LSTM", 100, 0), run("GRU", 200, 0), run("LSTM", 50, 1)]
    found = how_soon_report.whole([*runs, run("LSTM", 300, 0, steps=200)])
    assert [r["updates"] for r in found[100]["LSTM"][2e-3]] == [100]
    # The first seed of 200 steps may not be through.
    assert list(found) == [100]
    found = how_soon_report.whole([*runs[:2], run("LSTM", 300, 0, steps=200)])
    assert list(found) == [100, 200]


def test_the_better_rate_counts_and_who_failed_comes_last():
    runs = []
    for seed, (lstm, fast, slow, louder) in enumerate(
        [(None, 100, 400, 50), (900, None, 500, 60), (None, 150, 600, 70)]
    ):
        runs += [run("LSTM", lstm, seed), run("RMSPropLSTM", fast, seed, rate=5e-3)]
        runs += [run("RMSPropLSTM", slow, seed), run("GRU, inputs x 10", louder, seed)]
    found = how_soon_report.whole(runs)
    order = [name for name, _ in how_soon_report.ranked(found[100])]
    assert order == ["GRU, inputs x 10", "RMSPropLSTM", "LSTM"]
    # At 5e-3 one seed failed, so the slower rate is the better one.
    assert how_soon_report.best_rate(found[100]["RMSPropLSTM"])[0] == 2e-3
    text, figures = how_soon_report.report_of(
        {"runs": runs, "settings": SETTINGS, "commands": ["python -m papers.how_soon"]}
    )
    assert "First to learn to add: GRU, inputs x 10 at 100 steps." in text
    assert "- 100 steps: RMSPropLSTM 500, LSTM not in time; on inputs x 10: GRU 60." in text
    assert "| LSTM | 10 | 0.002 | > 1,000 (900 to > 1,000), 1 of 3 |" in text
    assert list(figures) == ["how_soon.png"]


def test_nobody_learned():
    found = how_soon_report.whole([run("LSTM", None)])
    assert how_soon_report.finding(found) == "No layer learned to add"


def test_rows_are_the_layers_they_are_named_after():
    for name, row in how_soon.ROWS.items():
        *front, layer = row.layers()
        assert layer.units == how_soon.UNITS and bool(front) == ("x 10" in name)
        if "bias outside" in name:
            assert not layer.use_bias and layer.use_recurrent_bias
    x = np.random.default_rng(0).normal(size=(2, 5, 2)).astype("float32")
    for name, plain in (("LSTM", keras.layers.LSTM), ("GRU", keras.layers.GRU)):
        (layer,) = how_soon.ROWS[name].layers()
        expected = plain(how_soon.UNITS)
        expected.build(x.shape)
        layer.build(x.shape)
        layer.set_weights(expected.get_weights())
        shown, wanted = (keras.ops.convert_to_numpy(one(x)) for one in (layer, expected))
        np.testing.assert_allclose(shown, wanted, atol=1e-5)


def test_training_ends_when_the_error_is_low(tmp_path, monkeypatch):
    monkeypatch.setattr(how_soon, "HELD_OUT", 20)
    monkeypatch.setattr(how_soon, "UNITS", 3)
    monkeypatch.setattr(how_soon, "INTERVAL", 2)
    given = ["--steps=6", "--seeds=1", "--rates=5e-3", "--updates=4", f"--output={tmp_path}"]
    given += ["--layers", "RMSPropLSTM"]
    results = how_soon.main(given)
    (trained,) = results["runs"]
    assert set(trained) == set(how_soon.SCHEMA["runs"])
    assert len(trained["curve"]) == 2 and trained["updates"] is None
    assert json.loads((tmp_path / "results.json").read_text()) == results
    monkeypatch.setattr(how_soon, "train", None)
    assert how_soon.main(given)["runs"] == results["runs"]
    # An error that any model has ends a run at the first look.
    monkeypatch.undo()
    task = how_soon.task_of(6, 64, 20)
    stop = how_soon.Until(task, bound=100.0)
    model = task.model(keras.layers.SimpleRNN(2))
    task.compile(model, "sgd")
    task.fit(model, 32, 3, callbacks=[stop], verbose=0)
    assert stop.learned and len(stop.curve) == 1
    found = model.predict(task.validation.x, verbose=0)
    assert stop.curve[0] == pytest.approx(np.mean((found - task.validation.y) ** 2), abs=1e-6)
