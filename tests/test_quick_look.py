"""The README's main job, `quick_look.py`: layers, settings, report, and that it resumes."""

import json

import keras
import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the example needs it")
pytest.importorskip("rich", reason="the example needs it")
pytest.importorskip("scipy", reason="the scores of the comparison need it")

import contestants
import quick_look
import real_sequences_scores
import real_training
from ts_files import needs_aeon

STUDY = quick_look.STUDY.parents[1]


def test_the_layers_are_those_that_validation_chose():
    content = real_sequences_scores.read(STUDY, 5)[quick_look.SET]
    plain, ours, who = real_sequences_scores.verdict(content)
    assert who == "ours" and list(quick_look.LAYERS)[:2] == [ours, plain]


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_the_layer_that_takes_less_time_is_that_of_keras(name):
    x = np.random.default_rng(0).normal(size=(3, 5, 2)).astype("float32")
    mask = np.arange(5) < np.array([[5], [3], [1]])
    expected = getattr(keras.layers, name)(4)
    layer = contestants.same_sooner(name, 4)
    for one in (expected, layer):
        one.build(x.shape)
    layer.set_weights([np.random.default_rng(1).normal(size=w.shape) for w in layer.weights])
    expected.set_weights(layer.get_weights())
    found, wanted = (keras.ops.convert_to_numpy(one(x, mask=mask)) for one in (layer, expected))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_report_tells_ours_from_the_best_plain_layer():
    told = {"name": "x", "samples": [4, 2, 5], "steps": 9, "channels": 1, "metric": "accuracy"}
    budget = {"batch_size": 2, "clipnorm": 1.0, "patience": 3, "updates of an epoch": 5}
    settings = {
        "task": {**told, "chance": {"accuracy": 0.1}},
        "budget": {**budget, "epochs at most": 7},
        **dict.fromkeys(["device", "keras_momentum_rnn", "keras", "jax"], "1"),
        "backend": "jax",
    }
    scores = {
        "NAGLSTM": [0.8, None],
        "LSTM": [0.2, 0.4],
        "GRU": [0.3, 0.4],
        "linear": [0.9] * 2,
    }
    runs = [
        {
            "layer": layer,
            "parameters": None if layer == "linear" else 1234,
            "test": score and {"accuracy": score},
            "seconds": 2.0,
        }
        for layer, found in scores.items()
        for score in found
    ]
    content = {"settings": settings, "runs": runs, "commands": ["python examples/x.py"]}
    # A run that diverged counts as chance.
    expected = "NAGLSTM tells 45 % of the recordings right, the best plain layer 35 %"
    assert quick_look.finding(content) == expected
    text = quick_look.text(content)
    assert f"{expected}. Chance is 10 %." in text
    assert "| GRU | 1,234 | 0.35 ± 0.07 | 0.30, 0.40 | 2 |" in text
    assert "| linear model, no recurrence |  | 0.90 ± 0.00 |" in text
    (axes,) = quick_look.picture(content).axes
    assert axes.get_title(loc="left") == expected


@needs_aeon
@pytest.mark.slow
def test_it_trains_as_the_comparison_and_resumes(tmp_path, monkeypatch):
    given = ["--seeds=1", "--epochs=1", f"--output={tmp_path}"]
    results = quick_look.main(given)
    study = json.loads(quick_look.STUDY.read_text())
    assert results["settings"]["task"] == study["settings"]["task"]
    assert [run["layer"] for run in results["runs"]] == list(quick_look.LAYERS)
    for run in results["runs"]:
        (same, *_) = [one for one in study["runs"] if one["layer"] == run["layer"]]
        assert set(run) == set(real_training.RUN) and run["seed"] == 0
        assert (run["setup"], run["parameters"]) == (same["setup"], same["parameters"])
    assert (tmp_path / "quick_look.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(real_training, "fit", None)
    monkeypatch.setattr(quick_look, "reference_run", None)
    assert quick_look.main(given)["runs"] == results["runs"]
