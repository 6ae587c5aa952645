"""Comparisons of layers: what they leave, and that a kill or a full disk loses nothing."""

import dataclasses
import errno
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from papers import files, tasks
from papers.experiments import results_file, summary, training
from papers.experiments.comparison import SCHEMA, without_places
from papers.experiments.constant import constant_scores
from papers.reproduce import main

EPOCHS = 3
TASK = {"variant": "sutskever", "steps": 20, "samples": 48, "held_out": 24}
COMMAND = ["adding", "--seeds=1", "--units=3", f"--epochs={EPOCHS}"]
COMMAND += ["--layers", "SimpleRNN", "MomentumRNN", "--hyperparameters=default"]
COMMAND += ["--set", *(f"{name}={value}" for name, value in TASK.items())]
# The process that runs it is killed after the first epoch of the second layer.
KILLED = """
import os, signal, sys
from papers.experiments import runner
from papers.reproduce import main
write_state = runner.write_state
def killed(path, *arguments):
    write_state(path, *arguments)
    if path.parent.name == "MomentumRNN-0":
        os.kill(os.getpid(), signal.SIGKILL)
runner.write_state = killed
main(sys.argv[1:])
"""


def settings(units=4, **arguments):
    """How a plain network is trained."""
    return tasks.Recipe(
        task="adding",
        layer_name="SimpleRNN",
        units=units,
        arguments=arguments,
        optimizer_name="Adam",
        learning_rate=0.01,
        clipnorm=1.0,
        batch_size=24,
        epochs=EPOCHS,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The output of a command that nothing interrupted."""
    output = tmp_path_factory.mktemp("finished")
    main([*COMMAND, f"--output={output}"])
    return output


@pytest.fixture
def output(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "output")


def read(output):
    return json.loads((output / "results.json").read_text())


def assert_same_learning(runs, expected):
    """Two lists of runs are equal but for their times."""
    for got, want in zip(runs, expected, strict=True):
        assert {**got, "curve": None, "test": None} == {**want, "curve": None, "test": None}
        assert got["test"] == pytest.approx(want["test"], rel=1e-6)
        for one, other in zip(got["curve"], want["curve"], strict=True):
            own = {"seconds": one["seconds"], "load": one["load"]}
            assert one == pytest.approx({**other, **own}, rel=1e-6)


def test_results_hold_what_the_schema_says(finished):
    results = read(finished)
    assert list(results) == list(SCHEMA)
    assert set(SCHEMA["settings"]) <= set(results["settings"])
    assert results["settings"]["samples"] == {"train": 48, "validation": 24, "test": 24}
    assert results["settings"]["chance"]["loss"] == pytest.approx(1 / 24)
    for run in results["runs"]:
        assert set(run) == set(SCHEMA["runs"])
        assert len(run["curve"]) == EPOCHS and [*run["processors"].values()] == [EPOCHS]
        scores = [epoch["validation_zero_one_loss"] for epoch in run["curve"]]
        assert run["best_epoch"] == 1 + int(np.argmin(scores))
        best = run["curve"][run["best_epoch"] - 1]
        assert run["test"] == {
            "loss": best["test_loss"],
            "zero_one_loss": best["test_zero_one_loss"],
        }
        assert run["parameters"] == 3 * (2 + 3 + 1) + 4
    left = {str(path.relative_to(finished)) for path in finished.rglob("*") if path.is_file()}
    assert left == {
        "losses.png",
        "report.md",
        "results.json",
        "score.png",
        "runs/lock",
        "runs/MomentumRNN-0/best.keras",
        "runs/SimpleRNN-0/best.keras",
    }


def test_best_model_gives_its_scores(finished):
    task, run = tasks.load("adding", **TASK), read(finished)["runs"][1]
    model = keras.saving.load_model(finished / "runs" / "MomentumRNN-0" / "best.keras")
    assert type(model.layers[0]).__name__ == run["layer"] == "MomentumRNN"
    assert task.evaluate(model, "test", 24) == pytest.approx(run["test"], rel=1e-5)


@pytest.mark.damaged_files
def test_a_damaged_model_or_picture_of_a_finished_comparison_changes_no_score(output):
    before = read(output)["runs"]
    for path in output.glob("**/best.keras"):
        path.write_bytes(b"no model")
    (output / "losses.png").write_bytes(b"no picture")
    main([*COMMAND, f"--output={output}"])
    assert read(output)["runs"] == before
    assert (output / "losses.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_killed_process_goes_on_where_it_was(finished, tmp_path):
    process = subprocess.run(
        [sys.executable, "-c", KILLED, *COMMAND, f"--output={tmp_path}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert (tmp_path / "runs" / "MomentumRNN-0" / "state.npz").exists()
    first = read(tmp_path)["runs"][:1]
    results = main([*COMMAND, f"--output={tmp_path}"])
    assert results["runs"][:1] == first
    assert_same_learning(results["runs"], read(finished)["runs"])


def test_what_stops_a_run_loses_nothing(tmp_path, monkeypatch):
    """Dropout's random numbers and Adam's moments and iterations go on too."""
    task = tasks.load("adding", **TASK)
    setup = settings(dropout=0.3)
    whole = training.new_run("SimpleRNN", 0, setup)
    training.train(whole, setup, task, tmp_path / "whole", {})
    full = OSError(errno.ENOSPC, "No space left on device")
    for owner, name, call, error, done in (
        (keras.Model, "save", 1, full, 0),
        (np, "savez", 2, full, 1),
        (np, "savez", 2, KeyboardInterrupt(), 2),
    ):
        run = training.new_run("SimpleRNN", 0, setup)
        with monkeypatch.context() as patch, pytest.raises(type(error)) as raised:
            patch.setattr(owner, name, stopped(getattr(owner, name), call, error))
            training.train(run, setup, task, tmp_path / "parts", {})
        if error is full:
            assert "was not written and is as it was before: No space" in str(raised.value)
        assert not list(tmp_path.rglob("unfinished-*"))
        state = tmp_path / "parts" / "state.npz"
        kept = json.loads(str(np.load(state)["told"]))["run"]["curve"] if state.exists() else []
        assert len(kept) == done
    run = training.new_run("SimpleRNN", 0, setup)
    training.train(run, setup, task, tmp_path / "parts", {})
    assert_same_learning([run], [whole])


def stopped(original, call, error):
    """Return a function that at one of its calls writes a part and raises."""
    calls = itertools.count(1)

    def function(first, *args, **kwargs):
        if next(calls) == call:
            if hasattr(first, "write"):
                first.write(b"half writ")
            raise error
        return original(first, *args, **kwargs)

    return function


def test_finished_runs_are_kept_and_layers_and_seeds_may_be_added(output, monkeypatch):
    before = read(output)
    monkeypatch.setattr(training, "train", quick)
    layers = ["--layers", "SimpleRNN", "MomentumRNN", "GRU", "--seeds=2"]
    after = main([*COMMAND, *layers, f"--output={output}"])
    assert after["runs"][:2] == before["runs"]
    added = [(run["layer"], run["seed"]) for run in after["runs"][2:]]
    assert added == [("SimpleRNN", 1), ("MomentumRNN", 1), ("GRU", 0), ("GRU", 1)]
    assert [row["runs"] for row in after["summary"]] == [2, 2, 2]


def quick(run, *rest):
    """Stand for `training.train`."""
    curve = {"loss": 1.0, "seconds": 1.0}
    for split in ("validation", "test"):
        curve |= {f"{split}_loss": 1.0, f"{split}_zero_one_loss": 1.0}
    run |= {"curve": [curve] * EPOCHS, "best_epoch": 1, "parameters": 1}
    run["test"] = {"loss": 1.0, "zero_one_loss": 1.0}


def told_epoch(run, setup, task, *rest):
    """Stand for `training.train_epoch`: scores of layer, seed and epoch, the first the best."""
    sign = -1 if task.larger_is_better else 1
    score = len(run["layer"]) + run["seed"] + sign * len(run["curve"])
    names = ("loss", task.metric)
    splits = {f"{split}_{name}": score for split in ("validation", "test") for name in names}
    return {"loss": score, "seconds": 0.1, "load": 0.5, **splits}


def test_other_settings_are_refused(output):
    before = (output / "results.json").read_bytes()
    other = [*COMMAND[:-1], "held_out=48", f"--output={output}", "--units=5"]
    with pytest.raises(SystemExit, match="runs with other settings") as error:
        main(other)
    message = str(error.value)
    assert "'validation': 24, 'test': 24} there, {'train': 48, 'validation': 48," in message
    assert "units: 3 there, 5 now" in message and "epochs:" not in message
    assert (output / "results.json").read_bytes() == before


def test_better_words_and_a_mended_number_of_the_paper_lose_no_run(output):
    path = output / "results.json"
    before = json.loads(path.read_text())
    older = json.loads(path.read_text())
    older["settings"]["chance_means"] = "as we said before"
    older["settings"]["budget"] |= {
        "updates in the paper": 1,
        "deviations from the paper": "one",
    }
    older["settings"]["options"]["data_dir"] = "elsewhere"
    for run in older["runs"]:
        run["setup"]["source"] = "as we said before"
    path.write_text(json.dumps(older))
    after = main([*COMMAND, f"--output={output}"])
    assert after["settings"] == before["settings"]
    assert [run["curve"] for run in after["runs"]] == [run["curve"] for run in before["runs"]]
    assert files.differences({"budget": {"name": "a"}}, {"budget": {"name": "b"}})


def test_only_folders_are_cut_to_their_names():
    options = {"folder": "a/b", "data_dir": None, "speaker": "train/(.+)/", "steps": 20}
    assert without_places(options) == {**options, "folder": "b"}


def test_the_processor_tells_its_vectors(tmp_path, monkeypatch):
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(results_file, "Path", lambda path: cpuinfo)
    for flags, told in (("avx avx2 avx512f", ", AVX-512"), ("avx avx2", ", AVX2"), ("", "")):
        cpuinfo.write_text(f"model name : EPYC\nflags : {flags}\n")
        found = results_file.processor.__wrapped__()
        assert found == f"EPYC, {os.cpu_count()} cores{told}"


def test_seeds_and_callbacks_reach_the_training(tmp_path, monkeypatch):
    """Or the spread of seeds would be nothing, and a cut of the rate forgotten."""
    task, fit, seen = tasks.load("adding", **TASK), tasks.Task.fit, []

    def noted(task, model, *rest, seed, **options):
        seen.append((seed, model.get_weights()[0]))
        history = fit(task, model, *rest, seed=seed, **options)
        seen[-1] += (float(model.optimizer.learning_rate),)
        return history

    monkeypatch.setattr(tasks.Task, "fit", noted)
    setup = dataclasses.replace(settings(), rate_cut=(1, 0.5))
    for seed in range(2):
        run = training.new_run("SimpleRNN", seed, setup)
        training.train(run, setup, task, tmp_path / f"{seed}", {}, until=2)
    seeds, weights, rates = zip(*seen)
    assert seeds == (0, 0, 1, 1) and np.abs(weights[0] - weights[2]).max() > 0.1
    assert rates == pytest.approx([0.01, 0.005] * 2)


def test_the_best_epoch_of_an_accuracy_is_that_of_the_largest(tmp_path):
    task, model = tasks.load("digits", subset=60), SimpleNamespace(save=Path.touch)
    run = {"curve": [], "diverged": False, "test": None, "best_epoch": None}
    for accuracy in (0.5, 0.75, 0.25):
        scores = {"validation_accuracy": accuracy, "test_accuracy": accuracy}
        training.note(run, task, scores, model, tmp_path, "here")
    assert (run["best_epoch"], run["test"]) == (2, {"accuracy": 0.75})


def test_a_run_that_diverges_ends_and_is_told(tmp_path):
    task = tasks.load("adding", **TASK)
    run = {"curve": [], "diverged": False, "test": None, "best_epoch": None}
    training.note(run, task, {"loss": math.nan, "seconds": 1.0}, None, tmp_path, "here")
    assert run == {"curve": [], "diverged": True, "test": None, "best_epoch": None}


def test_a_seed_that_diverges_at_once_stops_no_comparison(tmp_path, monkeypatch):
    """Nor do all seeds of a layer, or of all layers."""
    broken = {("SimpleRNN", 1), ("MomentumRNN", 0), ("MomentumRNN", 1)}

    def partly(run, *rest, **named):
        quick(run, *rest, **named)
        if (run["layer"], run["seed"]) in broken:
            run |= {"curve": [], "best_epoch": None, "test": None, "diverged": True}

    monkeypatch.setattr(training, "train", partly)
    command = [*COMMAND, "--seeds=2"]
    main([*command, f"--output={tmp_path / 'part'}"])
    results = read(tmp_path / "part")
    simple, momentum = results["summary"]
    assert (simple["runs"], simple["diverged"]) == (2, 1)
    assert (simple["test"], simple["test_sd"]) == (1.0, None)
    assert (momentum["diverged"], momentum["test"]) == (2, None)
    report = (tmp_path / "part" / "report.md").read_text()
    assert "Diverged: SimpleRNN (1 of 2 runs), MomentumRNN (2 of 2 runs)." in report
    assert main([*command, f"--output={tmp_path / 'part'}"])["runs"] == results["runs"]
    broken.add(("SimpleRNN", 0))
    results = main([*command, f"--output={tmp_path / 'none'}"])
    assert len(results["runs"]) == 4


def test_a_seed_that_diverges_later_cuts_no_other_short():
    def run(scores, diverged=False):
        epochs = [{"validation_accuracy": score} for score in scores]
        return {"layer": "LSTM", "curve": epochs, "diverged": diverged, "setup": {"epochs": 3}}

    runs = [run([0.1, 0.2, 0.3]), run([0.2], diverged=True), run([0.2, 0.4, 0.6])]
    assert summary.mean_curve(runs, "LSTM", "accuracy").tolist() == [0.15, 0.3, 0.45]
    assert summary.mean_curve(runs[1:2], "LSTM", "accuracy").tolist() == [0.2]


def of_targets(y, classes=None):
    """Loss of the mean, or of the shares of symbols, at each step apart."""
    if classes is None:
        return np.mean((y - y.mean(axis=0)) ** 2)
    shares = [np.bincount(step, minlength=classes) / len(step) for step in y.T]
    return np.mean([-sum(p * math.log(p) for p in share if p) for share in shares])


def test_a_constant_output_scores_by_the_held_out_targets(finished):
    """Not by those of the distribution, from which few of them differ."""
    adding = tasks.load("adding", **TASK)
    found = constant_scores(adding, 24)
    y = adding.test.y
    assert read(finished)["constant"] == pytest.approx(found, rel=1e-5)
    assert found["loss"] == pytest.approx(of_targets(y), rel=1e-5)
    assert abs(found["loss"] - adding.chance["loss"]) > 0.01 * found["loss"]
    assert found["zero_one_loss"] == pytest.approx(np.mean(np.abs(y - y.mean()) > 0.04))

    copying = tasks.load("copying", blanks=3, length=2, symbols=3, samples=4, held_out=20)
    found, y = constant_scores(copying, 8), copying.test.y
    assert found["loss"] == pytest.approx(of_targets(y, 4), rel=1e-4)
    wrong = [20 - np.bincount(step).max() for step in y[:, -2:].T]
    assert found["wrong_symbols"] == pytest.approx(sum(wrong) / 20, rel=1e-5)


def test_a_constant_output_is_of_one_class_one_symbol_one_frame(tmp_path):
    digits = tasks.load("digits")
    found, y = constant_scores(digits, 500), digits.test.y
    assert found["loss"] == pytest.approx(of_targets(y[:, None], 10), rel=1e-4)
    assert found["accuracy"] == pytest.approx(np.bincount(y).max() / len(y), rel=1e-5)

    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text("abbaabcc" * 4 + "a")
    characters = tasks.load("characters", folder=tmp_path, steps=8)
    bits = constant_scores(characters, 1)["bits_per_character"]
    assert bits == pytest.approx(-(2 * 0.375 * math.log2(0.375) + 0.25 * math.log2(0.25)), 1e-4)

    # Two samples of unlike lengths have one frame, not one for each step.
    frames = tasks.task.Split(
        np.zeros((2, 2, 1), "float32"),
        np.array([[[1.0], [3.0]], [[5.0], [99.0]]], "float32"),
        np.array([[1.0, 1.0], [1.0, 0.0]], "float32"),
    )
    speech = dataclasses.replace(
        digits,
        input_shape=(2, 1),
        test=frames,
        return_sequences=True,
        loss=keras.losses.MeanSquaredError(reduction="mean_with_sample_weight"),
        new_metrics=lambda: [keras.metrics.MeanSquaredError("mse")],
    )
    assert constant_scores(speech, 2)["mse"] == pytest.approx((4 + 0 + 4) / 3)
    other = dataclasses.replace(speech, loss=keras.losses.Huber())
    assert constant_scores(other, 2) == digits.chance
