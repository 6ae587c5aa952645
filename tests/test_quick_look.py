"""The README's main job, `quick_look.py`: layers, settings, report, and that it resumes."""

import json
from functools import partial
from pathlib import Path

import keras
import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the example needs it")
pytest.importorskip("rich", reason="the example needs it")
pytest.importorskip("scipy", reason="the scores of the comparison need it")

import quick_look
from ts_files import needs_aeon

from keras_momentum_rnn.layers.registry import available_layers
from papers import contestants, real_sequences_scores, real_training, same_sooner, tasks
from papers.tasks import archive

STUDY = quick_look.STUDY.parents[1]
as_array = keras.ops.convert_to_numpy


def test_the_layers_are_those_that_validation_chose():
    content = real_sequences_scores.read(STUDY, 5)[quick_look.SET]
    plain, ours, who = real_sequences_scores.verdict(content)
    assert who == "ours" and list(quick_look.LAYERS)[:2] == [ours, plain]


@pytest.mark.parametrize("name", same_sooner.RULE_LAYERS)
def test_the_layer_that_takes_less_time_is_that_of_keras(name):
    x = np.random.default_rng(0).normal(size=(3, 5, 2)).astype("float32")
    mask = np.arange(5) < np.array([[5], [3], [1]])
    other, rule = same_sooner.same_sooner(name)
    layers = []
    for new in (getattr(keras.layers, name), partial(available_layers()[other], **rule)):
        keras.utils.set_random_seed(0)
        layers.append(new(4))
        layers[-1].build(x.shape)
    # Weights start alike, too.
    found, expected = ([as_array(w) for w in one.weights] for one in layers)
    for weight, same in zip(found, expected, strict=True):
        np.testing.assert_array_equal(weight, same)
    assert any(weight.any() for weight in found)
    outputs = [as_array(one(x, mask=mask)) for one in layers]
    np.testing.assert_allclose(*outputs, atol=1e-5)


def test_a_layer_that_runs_sooner_keeps_its_arguments():
    contestant = contestants.Contestant("GRU", {"reset_after": False}, sooner=True)
    layer = contestant.new_layer(3)
    assert type(layer).__name__ == "RuleGRU" and not layer.reset_after
    assert type(contestants.Contestant("DTRIV", sooner=True).new_layer(3)).__name__ == "DTRIV"


def content(scores, diverged=()):
    """Return results with the scores of layers, None of a run that diverged."""
    told = {"name": "x", "samples": [4, 2, 5], "steps": 9, "channels": 1, "metric": "accuracy"}
    budget = {"batch_size": 2, "clipnorm": 1.0, "patience": 3, "updates of an epoch": 5}
    settings = {
        "task": {**told, "chance": {"accuracy": 0.1}, "larger_is_better": True},
        "budget": {**budget, "epochs at most": 7, "trials": 8},
        **dict.fromkeys(["device", "keras_momentum_rnn", "keras", "jax"], "1"),
        "backend": "jax",
    }
    runs = [
        {
            "layer": layer,
            "parameters": None if layer == "linear" else 1234,
            "test": score and {"accuracy": score},
            "diverged": score is None,
        }
        for layer, found in scores.items()
        for score in found
    ]
    found = {"settings": settings, "runs": runs, "commands": ["python examples/x.py"]}
    return quick_look.grouped(found)


def test_the_report_tells_ours_from_the_best_plain_layer():
    found = content(
        {"linear": [0.9] * 2, "GRU": [0.3, 0.4], "LSTM": [0.2, 0.4], "NAGLSTM": [0.8, None]}
    )
    # In the order of the comparison, and a run that diverged counts as chance.
    assert list(found["layers"]) == ["NAGLSTM", "LSTM", "GRU", "linear"]
    expected = (
        "NAGLSTM recognises the person in 45 % of the recordings, the best plain layer in 35 %"
    )
    assert quick_look.finding(found) == expected and quick_look.ahead(found)
    text = quick_look.text(found)
    assert f"{expected}. Chance is 10 %. A run that diverged counts as chance." in text
    assert "| NAGLSTM | 1,234 | 0.45 | 0.80; 0.10, diverged |" in text
    assert "| GRU | 1,234 | 0.35 | 0.30; 0.40 |" in text
    assert "| linear (not recurrent) |  | 0.90 | 0.90; 0.90 |" in text
    (axes,) = quick_look.picture(found).axes
    assert axes.get_title(loc="left") == expected
    labels = [label.get_text() for label in axes.get_yticklabels()]
    diamonds = [
        line for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata())
    ]
    drawn = {
        labels[int(line.get_ydata()[0])]: (line.get_xdata()[0], line.get_color())
        for line in diamonds
    }
    colors = quick_look.COLORS
    assert drawn == {
        "NAGLSTM": (pytest.approx(0.45), colors["ours"]),
        "LSTM": (pytest.approx(0.3), colors["plain"]),
        "GRU": (pytest.approx(0.35), colors["plain"]),
        "linear (not recurrent)": (pytest.approx(0.9), colors["not recurrent"]),
    }
    assert not quick_look.ahead(content({"NAGLSTM": [0.3], "LSTM": [0.2], "GRU": [0.3]}))


@needs_aeon
def test_lengths_of_the_recordings_are_those_told():
    task = tasks.load("archive", name=quick_look.SET, standardise=None)
    parts = [task.train.x, task.validation.x, task.test.x]
    lengths = np.concatenate([(x != archive.MASK_VALUE).any(axis=2).sum(axis=1) for x in parts])
    assert f"{lengths.min()} to\n{lengths.max()} steps" in quick_look.__doc__
    assert [len(x) for x in parts] == [40, 10, 50]
    page = Path(__file__).parent.parent / "docs" / "choose" / "which_layer.md"
    if page.exists():
        assert f"half of the sequences have {np.median(lengths):.0f} steps" in page.read_text()


@needs_aeon
def test_it_trains_as_the_comparison_and_resumes(tmp_path, monkeypatch):
    given = ["--seeds=1", "--epochs=1", f"--output={tmp_path}"]
    study = json.loads(quick_look.STUDY.read_text())
    trained, train = {}, quick_look.train

    def noted(run, until, folder, after, contestant, task, budget):
        if len(trained) == 2 and stops:
            raise KeyboardInterrupt
        trained[run["layer"]] = task.options["standardise"], budget
        return train(run, until, folder, after, contestant, task, budget)

    monkeypatch.setattr(quick_look, "train", noted)
    stops = True
    with pytest.raises(SystemExit, match="Interrupted"):
        quick_look.main(given)
    kept = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert len(kept) == 2
    stops = False
    results = quick_look.main(given)
    assert results["runs"][:2] == kept
    assert results["settings"]["task"] == study["settings"]["task"]
    assert [run["layer"] for run in results["runs"]] == list(quick_look.LAYERS)
    changed = {"epochs at most": 1, "patience": quick_look.PATIENCE}
    for layer, (how, budget) in trained.items():
        assert how == ("sample" if layer == "Standardised-LSTM" else "training")
        assert budget == {**study["settings"]["budget"], **changed}
    for run in results["runs"]:
        (same, *_) = [one for one in study["runs"] if one["layer"] == run["layer"]]
        assert set(run) == set(real_training.RUN) and run["seed"] == 0
        assert (run["setup"], run["parameters"]) == (same["setup"], same["parameters"])
        assert run["perturbed"] is None
    assert (tmp_path / "quick_look.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(quick_look, "train", None)
    monkeypatch.setattr(quick_look, "reference_run", None)
    assert quick_look.main(given)["runs"] == results["runs"]
    with pytest.raises(SystemExit, match="other settings"):
        quick_look.main([*given, "--epochs=2"])
    # A later search chose other numbers: its runs and the earlier ones are no comparison.
    for run in study["runs"]:
        if run["layer"] == "GRU":
            run["setup"]["learning_rate"] = 0.5
    other = tmp_path / "study.json"
    other.write_text(json.dumps(study))
    monkeypatch.setattr(quick_look, "STUDY", other)
    with pytest.raises(SystemExit, match="learning_rate"):
        quick_look.main(given)
