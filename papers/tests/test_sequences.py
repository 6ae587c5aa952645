"""The pairs on real sequences: sets, training that resumes, and the tests of the report."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="the study needs it")
pytest.importorskip("keras_tuner", reason="it searches")
pytest.importorskip("matplotlib", reason="it draws")
pytest.importorskip("statsmodels", reason="it corrects p-values")

import keras_tuner
import pandas as pd

from papers.sequences import new_sets, report, run, training
from papers.sequences.layers import CONTESTANTS, PAIRS, SCALE_FREE
from papers.sequences.training import Search, repeated, trained
from papers.tasks.task import Split

# Sets


def test_no_window_or_target_of_a_series_reaches_into_another_part():
    table = np.arange(100.0)[:, None] ** 2
    parts = new_sets.forecast(table, window=5, ahead=2)
    seen = {part: np.sqrt(x[:, :, 0]) for part, (x, _) in parts.items()}
    for part, (x, y) in parts.items():
        last = seen[part][:, -1] + 2
        assert y == pytest.approx(last**2 - x[:, -1, 0])
    assert seen["train"].max() + 2 == 59 and seen["validation"].min() == 60
    assert seen["validation"].max() + 2 == 79 and seen["test"].min() == 80


def test_of_many_windows_every_so_many_is_taken(monkeypatch):
    monkeypatch.setattr(new_sets, "MOST_WINDOWS", 40)
    x, _ = new_sets.forecast(np.arange(100.0)[:, None], window=5)["train"]
    assert x[:3, 0, 0].tolist() == [0, 3, 6]


def test_long_sequences_become_means_of_neighbours(monkeypatch):
    monkeypatch.setattr(new_sets, "LONGEST", 3)
    assert new_sets.thinned(np.array([[1.0, 3, 5, 7, 9]])).tolist() == [[2, 6, 9]]
    assert new_sets.thinned(np.array([[1.0, 3, 5]])).tolist() == [[1, 3, 5]]


def test_numbers_are_standardised_by_training_and_classes_counted(monkeypatch):
    def parts(y):
        x = np.random.default_rng(0).normal(3, 2, size=(9, 4, 1))
        return dict(zip(new_sets.PARTS, [(x[:4], y[:4]), (x[4:6], y[4:6]), (x[6:], y[6:])]))

    made = {
        "numbers": lambda: parts(np.arange(9.0)),
        "classes": lambda: parts(np.array(list("abababaab"))),
    }
    monkeypatch.setattr(new_sets, "SETS", made)
    task = new_sets.load("numbers")
    assert task.train.y == pytest.approx((np.arange(4) - 1.5) / np.std(range(4)))
    assert task.train.x.mean() == pytest.approx(0, abs=1e-6)
    assert task.chance["loss"] == pytest.approx(np.mean(task.test.y**2))
    task = new_sets.load("classes")
    assert task.train.y.tolist() == [0, 1, 0, 1] and task.test.y.tolist() == [0, 0, 1]


def test_speakers_are_told_in_words_that_training_lacks(tmp_path):
    soundfile = pytest.importorskip("soundfile", reason="it reads speech")
    noise = np.random.default_rng(0).normal(scale=0.1, size=2000)
    loudness = {"ada": 1.0, "bob": 0.01}
    for digit in range(10):
        for name, factor in loudness.items():
            path = tmp_path / f"{digit}_{name}_0.wav"
            soundfile.write(path, noise[: 1000 + 100 * digit] * factor, 8000)
    parts = new_sets.speakers(tmp_path)
    assert [len(y) for _, y in parts.values()] == [12, 4, 4]
    assert {*parts["test"][1]} == {*loudness}
    x, y = parts["test"]
    energy = np.nanmean(x[:, :, 0], axis=1)
    assert energy[y == "ada"].min() > energy[y == "bob"].max() + 5
    assert np.nanmin(x[:, :, 1]) > 0 and np.nanmax(x[:, :, 1]) < 1
    assert np.nanmean(x[:, :, 2]) == pytest.approx(2, abs=0.3)  # kHz, of white noise


def test_each_person_of_the_watch_set_is_in_one_part_only(tmp_path, monkeypatch):
    persons = [*range(1, 11)] * 2
    series = [np.full((400, 6), person) for person in persons]
    np.save(tmp_path / "watch.npy", {"X": series, "y": persons, "subject": persons})
    monkeypatch.setattr(new_sets, "data_file", lambda *path: tmp_path / "watch.npy")
    found = {part: {*x.ravel().tolist()} for part, (x, _) in new_sets.watch().items()}
    assert found == {"train": {1, 2, 3, 4, 5, 6}, "validation": {7, 8}, "test": {9, 10}}


def test_a_package_that_is_missing_is_named():
    with pytest.raises(ImportError, match="pip install no_such_package"):
        new_sets.data_file("no_such_package", "data.csv")
    with pytest.raises(ValueError, match="folder of recordings"):
        new_sets.load("Speakers")


def test_a_set_of_aeon_keeps_its_test_part():
    pytest.importorskip("aeon", reason="the set is inside it")
    parts = new_sets.archived("aeon", "OSULeaf")
    assert [x.shape for x, _ in parts.values()] == [(151, 427, 1), (49, 427, 1), (242, 427, 1)]


# Layers and training


@pytest.fixture
def made_set(monkeypatch):
    """A set of two classes, told by the mean of a sequence, in place of all sets."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    x = rng.normal(size=(24, 6, 1)) + 2 * y[:, None, None]
    parts = {"train": slice(12), "validation": slice(12, 18), "test": slice(18, 24)}
    made = {"made": lambda: {part: (x[of], y[of]) for part, of in parts.items()}}
    monkeypatch.setattr(new_sets, "SETS", made)
    monkeypatch.setattr(run, "SETS", made)
    return new_sets.load("made")


@pytest.mark.parametrize("name", CONTESTANTS)
def test_layers_have_the_parameters_of_an_lstm(made_set, name):
    budget = CONTESTANTS["LSTM"].parameters(made_set, 32)
    contestant = CONTESTANTS[name]
    units = contestant.units_for(made_set, budget)
    near = [abs(contestant.parameters(made_set, units + i) - budget) for i in (-1, 0, 1)]
    assert min(near) == near[1]
    for layer in (
        contestant.new_layer(3),
        contestant.suggested(keras_tuner.HyperParameters(), 3),
    ):
        assert getattr(layer, "scale_free", False) is (name in SCALE_FREE)


def test_whole_batches_go_through_all_samples_before_one_comes_again():
    split = Split(np.arange(5), np.arange(5))
    batches = repeated(split, batch_size=2, updates=5, seed=0)
    order = np.concatenate([batches[i][0] for i in range(5)])
    assert sorted(order[:5]) == sorted(order[5:]) == [0, 1, 2, 3, 4]
    assert order[:5].tolist() != order[5:].tolist()
    batches.epoch = 1
    later = np.concatenate([batches[i][0] for i in range(5)])
    assert sorted(later[:5]) == [0, 1, 2, 3, 4] and later.tolist() != order.tolist()


def run_of(task, rate, seed=0, layer="SimpleRNN", **numbers):
    """Return a run at a learning rate, and the trained model."""
    models, fit = [], training.fit
    budget = {"batch size": 4, "updates of an epoch": 3, "epochs at most": 8, "patience": 3}
    setup = {"units": 3, "numbers": numbers, "learning_rate": rate}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "fit", lambda m, *rest: models.append(m) or fit(m, *rest))
        return trained(CONTESTANTS[layer], setup, task, budget, seed), *models


def test_a_run_is_tested_with_the_weights_of_its_best_epoch(made_set):
    found, model = run_of(made_set, 1.0)  # too large a rate: the loss jumps
    assert found["epochs"] == found["best_epoch"] + 3 < 8  # the patience
    losses = [
        model.evaluate(split.x, split.y, return_dict=True, verbose=0)["loss"]
        for split in (made_set.validation, made_set.test)
    ]
    assert losses == pytest.approx([found["validation"], found["test"]["loss"]], abs=1e-5)


def test_a_run_whose_loss_is_not_finite_has_no_test(made_set):
    assert run_of(made_set, 3e38)[0]["test"] is None


def test_searches_and_runs_have_the_rate_and_the_seed_that_they_are_given(made_set):
    one, other = (run_of(made_set, 1e-12, seed)[1] for seed in (0, 1))
    assert float(one.optimizer.learning_rate) == pytest.approx(1e-12)
    assert np.abs(one.get_weights()[0] - other.get_weights()[0]).max() > 0.1
    hp = keras_tuner.HyperParameters()
    hp.values["learning_rate"] = 0.02
    model = Search(CONTESTANTS["SimpleRNN"], made_set, 3, {}).build(hp)
    assert float(model.optimizer.learning_rate) == pytest.approx(0.02)


def test_a_run_has_the_numbers_of_its_setup(made_set):
    _, model = run_of(made_set, 1e-3, layer="MomentumRNN", momentum=0.3)
    assert 0.3 in [getattr(layer, "momentum", None) for layer in model.layers]


def test_a_setup_is_what_the_search_found(made_set, monkeypatch):
    values = {"layer": "MomentumRNN", "units": 3, "learning_rate": 0.02, "momentum": 0.3}
    best = SimpleNamespace(values=values, score=0.5)
    found = SimpleNamespace(best=best, rows=[SimpleNamespace(completed=True)])
    monkeypatch.setattr(training, "tune", lambda *given, **named: found)
    budget = {"parameters": 100, "trials": 3, "epochs at most": 1}
    setup = training.searched(CONTESTANTS["MomentumRNN"], made_set, budget, None)
    assert setup["learning_rate"] == 0.02 and setup["numbers"] == {"momentum": 0.3}


SMALL = {"trials": 2, "seeds": 2, "updates": 2, "epochs": 2, "units": 2}
TINY = [word for name, value in SMALL.items() for word in (f"--{name}", str(value))]
TINY += ["--layers", "SimpleRNN", "AdamLSTM"]


def results_of(folder):
    content = json.loads((folder / "made" / "results.json").read_text())
    return {(r["layer"], r["seed"]): (r["test"], r["epochs"]) for r in content["runs"]}


def test_a_comparison_resumes_where_it_ended(made_set, tmp_path, monkeypatch):
    run.main([*TINY, "--output", str(tmp_path / "whole")])

    left, trained = 2, run.trained

    def killed(*given):
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        with pytest.raises(SystemExit, match="Another process works in"):
            run.main([*TINY, "--output", str(tmp_path / "parts")])
        return trained(*given)

    monkeypatch.setattr(run, "trained", killed)
    with pytest.raises(SystemExit):
        run.main([*TINY, "--output", str(tmp_path / "parts")])
    assert len(results_of(tmp_path / "parts")) == 2
    monkeypatch.setattr(run, "trained", trained)
    # What stands in results.json is enough: the search of SimpleRNN has ended.
    shutil.rmtree(tmp_path / "parts" / "made" / "search" / "SimpleRNN")
    run.main([*TINY, "--output", str(tmp_path / "parts")])
    found = results_of(tmp_path / "parts")
    assert len(found) == 4 and found == results_of(tmp_path / "whole")
    with pytest.raises(SystemExit, match="other settings"):
        run.main([*TINY, "--batch-size", "3", "--output", str(tmp_path / "parts")])
    results = tmp_path / "parts" / "made" / "results.json"
    whole = json.loads(results.read_text())
    results.write_text(json.dumps({n: v for n, v in whole.items() if n != "settings"}))
    with pytest.raises(SystemExit, match=r"lacks \['settings'\]"):
        run.main([*TINY, "--output", str(tmp_path / "parts")])
    results.write_text(json.dumps(whole))
    monkeypatch.setattr(run, "surroundings", lambda: {"device": "another"})
    with pytest.raises(SystemExit, match=r"device: '.*' there, 'another' now"):
        run.main([*TINY, "--output", str(tmp_path / "parts")])


@pytest.mark.parametrize("lost", ["", "results.json"])
def test_a_search_does_not_go_on_with_another_budget(made_set, tmp_path, monkeypatch, lost):
    def killed(self, hp, *given, **more):
        raise KeyboardInterrupt

    given = [*TINY, "--output", str(tmp_path)]
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Search, "fit", killed)
        run.main(given)
    if lost:
        (tmp_path / "made" / lost).unlink()
    with pytest.raises(SystemExit, match=r"batch.size"):
        run.main([*given, "--batch-size", "3"])


# The report


def runs_of(differences, study="new"):
    """Return a table in which MomentumRNN differs from SimpleRNN so much on each set."""
    rows = [
        {"study": study, "set": f"set {i}", "layer": layer, "seed": seed, "score": score}
        for i, difference in enumerate(differences)
        for layer in CONTESTANTS
        for seed, score in enumerate(
            [0.5 + difference * (layer == "MomentumRNN") + spread for spread in (-0.1, 0.1)]
        )
    ]
    return pd.DataFrame(rows)


def test_a_layer_that_wins_on_all_of_eight_sets_has_p_of_one_in_128():
    rows = report.tested(runs_of([0.01 * (i + 1) for i in range(8)]))
    row = rows[(rows["over"] == "new") & (rows["layer"] == "MomentumRNN")].iloc[0]
    # Of 2^8 signs, all plus or all minus.
    assert row["p"] == pytest.approx(2 / 256) and row["p_holm"] == pytest.approx(8 * 2 / 256)
    assert (row["won"], row["lost"], row["sets"]) == (8, 0, 8)
    assert row["effect"] == pytest.approx(0.045)
    assert 0.01 < row["low"] < 0.045 < row["high"] < 0.08
    assert len(report.confirmed(rows)) == 0  # 0.0625 is not below 0.05


def test_layers_without_a_difference_are_not_told_apart():
    rows = report.tested(runs_of([0.0, 0.0, 0.0]))
    assert rows["p"].tolist() == [1.0] * len(rows)
    assert (rows["low"] == 0).all() and (rows["high"] == 0).all()


def test_a_difference_is_confirmed_on_new_sets_alone():
    wins = [0.05 + 0.01 * i for i in range(12)]
    new, old = runs_of(wins), runs_of([0.0] * 12)
    both = pd.concat([new, old.assign(study="old", set="old " + old["set"])])
    rows = report.tested(both)
    assert report.confirmed(rows)["layer"].tolist() == ["MomentumRNN"]
    assert rows.groupby("over")["sets"].first().to_dict() == {"new": 12, "old": 12, "all": 24}
    assert not len(report.confirmed(rows[rows["over"] == "all"]))


def test_the_bootstrap_interval_covers_95_percent():
    found = pd.Series(np.random.default_rng(0).normal(1, 2, 200))
    mean, low, high = report.interval(found)
    half = 1.96 * found.std() / np.sqrt(len(found))
    assert [mean - low, high - mean] == pytest.approx([half, half], rel=0.05)


def test_a_difference_is_confirmed_where_its_interval_excludes_0():
    bounds = {"low": [0.1, -0.1, -0.2], "high": [0.2, 0.2, -0.1]}
    found = report.confirmed(pd.DataFrame({"over": "new", "p_holm": 0.01, **bounds}))
    assert found["low"].tolist() == [0.1, -0.2]


def task_of(metric, chance):
    return {"metric": metric, "larger_is_better": metric == "accuracy", "chance": chance}


def test_a_score_is_the_share_of_the_error_of_chance_that_is_gone():
    accuracies = pd.Series([0.2, 0.6, 1.0, 0.1])
    found = report.score(accuracies, task_of("accuracy", {"accuracy": 0.2}))
    assert found.tolist() == pytest.approx([0, 0.5, 1, 0])
    losses = pd.Series([4.0, 1.0, 0.0, 9.0])
    found = report.score(losses, task_of("loss", {"loss": 4.0}))
    assert found.tolist() == pytest.approx([0, 0.75, 1, 0])


def written(folder, name, seeds, missing=None, diverged=None):
    """Write the results of a set in which every layer has accuracy 0.6, chance 0.2."""
    runs = [
        {
            "layer": layer,
            "seed": seed,
            "test": None if layer == diverged else {"accuracy": 0.6, "loss": 1.0},
        }
        for layer in CONTESTANTS
        for seed in range(seeds - (layer == missing))
    ]
    task = task_of("accuracy", {"accuracy": 0.2, "loss": 2.0})
    setups = {
        layer: {"trials": 8 - (name == "Coffee" and layer == "GRU")} for layer in CONTESTANTS
    }
    settings = {"task": task, "budget": {"trials": 8}}
    content = {"settings": settings, "setups": setups, "runs": runs}
    (folder / name).mkdir(parents=True)
    (folder / name / "results.json").write_text(json.dumps(content))


def test_a_set_counts_with_all_seeds_and_a_diverged_run_as_chance(tmp_path):
    written(tmp_path, "whole", 3, diverged="GRU")
    written(tmp_path, "begun", 3, missing="SRLSTM")
    table = report.scores_in(tmp_path, 3)
    assert {*table["set"]} == {"whole"}
    means = table.groupby("layer")["score"].mean()
    assert means["GRU"] == 0 and means["LSTM"] == pytest.approx(0.5)


def test_the_report_is_written(tmp_path):
    for name in ("Coffee", "Trace"):
        written(tmp_path / "new", name, 2)
    for name in ("GunPoint", "OSULeaf"):  # OSULeaf is a new set, and counts once
        written(tmp_path / "old", name, 2)
    report.main([str(tmp_path / "new"), "--first", str(tmp_path / "old"), "--seeds", "2"])
    found = json.loads((tmp_path / "new" / "results.json").read_text())["pairs"]
    assert [(row["layer"], row["base"]) for row in found[:8]] == [*PAIRS]
    assert {row["over"]: row["sets"] for row in found} == {"new": 2, "old": 1, "all": 3}
    assert {row["layer"] for row in found if row["scale_free"]} == {"AdamLSTM", "RMSPropLSTM"}
    text = (tmp_path / "new" / "report.md").read_text()
    assert "| RMSPropLSTM, scale-free : LSTM | 2 |" in text
    assert "2 of 15 new sets are through" in text and "of 8 pairs: none" in text
    assert "Searches in which trials failed: GRU on Coffee (7 of 8).\n" in text
    assert (tmp_path / "new" / "pairs.png").stat().st_size > 10_000


def test_the_first_study_has_the_wins_that_the_protocol_starts_from():
    runs = report.scores_in(report.FIRST_STUDY, 5)
    rows = report.tested(runs.assign(study="old"))
    rows = rows[rows["over"] == "old"].set_index("layer")
    assert {*rows["sets"]} == {12}
    # On co2 both are no better than chance.
    assert rows.loc["MomentumRNN", ["won", "lost"]].tolist() == [7, 4]
    assert rows.loc["MomentumDTRIV", ["won", "lost"]].tolist() == [9, 3]
    # In accuracy, as the committed report has it.
    means = runs[runs["metric"] == "accuracy"].groupby("layer")["value"].mean()
    assert means["MomentumRNN"] - means["SimpleRNN"] == pytest.approx(0.053, abs=5e-4)
