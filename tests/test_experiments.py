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
import time
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_momentum_rnn import tasks
from keras_momentum_rnn.experiments import training
from keras_momentum_rnn.experiments.budgets import Budget, setup_of
from keras_momentum_rnn.experiments.command import main
from keras_momentum_rnn.experiments.comparison import SCHEMA
from keras_momentum_rnn.experiments.setups import Optimizer

REPRODUCE = Path(__file__).parents[1] / "examples" / "reproduce.py"
EPOCHS = 3
TASK = {"variant": "sutskever", "steps": 20, "samples": 48, "held_out": 24}
BUDGET = Budget(Optimizer("Adam", 0.01, 1.0), 3, 24, EPOCHS)
COMMAND = ["adding", "--seeds=1", "--units=3", f"--epochs={EPOCHS}", "--batch-size=24"]
COMMAND += ["--layers", "SimpleRNN", "MomentumRNN", "--numbers=default"]
COMMAND += ["--set", *(f"{name}={value}" for name, value in TASK.items())]


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
            assert one == pytest.approx({**other, "seconds": one["seconds"]}, rel=1e-6)


def test_results_hold_what_the_schema_says(finished):
    results = read(finished)
    assert list(results) == list(SCHEMA)
    assert set(SCHEMA["settings"]) <= set(results["settings"])
    assert results["settings"]["samples"] == {"train": 48, "validation": 24, "test": 24}
    assert results["settings"]["chance"]["loss"] == pytest.approx(1 / 24)
    for run in results["runs"]:
        assert set(run) == set(SCHEMA["runs"])
        assert len(run["curve"]) == EPOCHS
        scores = [epoch["validation_zero_one_loss"] for epoch in run["curve"]]
        assert run["best_epoch"] == 1 + int(np.argmin(scores))
        best = run["curve"][run["best_epoch"] - 1]
        assert run["test"] == {
            "loss": best["test_loss"],
            "zero_one_loss": best["test_zero_one_loss"],
        }
        assert run["parameters"] == 3 * (2 + 3 + 1) + 4
    names = {path.name for path in finished.iterdir()}
    pictures = {"losses.png", "score.png"}
    assert names == {"best.keras", "report.md", "results.json", "runs"} | pictures
    left = {path.name for path in finished.rglob("*") if path.is_file()}
    assert "state.npz" not in left and not any(name.startswith("unfinished") for name in left)


def test_best_model_gives_its_scores(finished):
    best = read(finished)["best"]
    task = tasks.load("adding", **TASK)
    model = keras.saving.load_model(finished / "best.keras")
    assert type(model.layers[0]).__name__ == best["layer"]
    assert task.evaluate(model, "test", 24) == pytest.approx(best["test"], rel=1e-5)


def test_a_killed_process_goes_on_where_it_was(finished, tmp_path):
    process = subprocess.Popen(
        [sys.executable, REPRODUCE, *COMMAND, f"--output={tmp_path}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    state = tmp_path / "runs" / "MomentumRNN-0" / "state.npz"
    while not state.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    first = read(tmp_path)["runs"][:1]
    results = main([*COMMAND, f"--output={tmp_path}"])
    assert results["runs"][:1] == first
    assert_same_learning(results["runs"], read(finished)["runs"])


def test_what_stops_a_run_loses_nothing(tmp_path, monkeypatch):
    """Dropout's random numbers and Adam's moments and iterations go on too."""
    task = tasks.load("adding", **TASK)
    setup = setup_of(keras.layers.SimpleRNN, 4, {"dropout": 0.3}, BUDGET)
    whole = training.new_run("SimpleRNN", 0, setup)
    training.train(whole, setup, task, tmp_path / "whole")
    full = OSError(errno.ENOSPC, "No space left on device")
    for owner, name, call, error, done in (
        (keras.Model, "save", 1, full, 0),
        (np, "savez", 2, full, 1),
        (np, "savez", 2, KeyboardInterrupt(), 2),
    ):
        run = training.new_run("SimpleRNN", 0, setup)
        with monkeypatch.context() as patch, pytest.raises(type(error)) as raised:
            patch.setattr(owner, name, stopped(getattr(owner, name), call, error))
            training.train(run, setup, task, tmp_path / "parts")
        if error is full:
            assert "was not written and is as it was before: No space" in str(raised.value)
        assert not list(tmp_path.rglob("unfinished-*"))
        state = tmp_path / "parts" / "state.npz"
        kept = json.loads(str(np.load(state)["told"]))["run"]["curve"] if state.exists() else []
        assert len(kept) == done
    training.train(run, setup, task, tmp_path / "parts")
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


def test_a_full_disk_leaves_results_as_they_were(output, monkeypatch):
    before = {path.name: path.read_bytes() for path in output.iterdir() if path.is_file()}

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(SystemExit, match=r"results.json was not written.*No space left"):
        main([*COMMAND, f"--output={output}"])
    assert {p.name: p.read_bytes() for p in output.iterdir() if p.is_file()} == before


def test_finished_runs_are_kept_and_layers_and_seeds_may_be_added(output, monkeypatch):
    before = read(output)
    monkeypatch.setattr(training, "train", quick)
    layers = ["--layers", "SimpleRNN", "MomentumRNN", "GRU", "--seeds=2"]
    after = main([*COMMAND, *layers, f"--output={output}"])
    assert after["runs"][:2] == before["runs"]
    added = [(run["layer"], run["seed"]) for run in after["runs"][2:]]
    assert added == [("SimpleRNN", 1), ("MomentumRNN", 1), ("GRU", 0), ("GRU", 1)]
    assert [row["runs"] for row in after["summary"]] == [2, 2, 2]


def quick(run, setup, task, folder, after_epoch):
    """Stand for `training.train`."""
    curve = {"loss": 1.0, "seconds": 1.0}
    for split in ("validation", "test"):
        curve |= {f"{split}_loss": 1.0, f"{split}_zero_one_loss": 1.0}
    run |= {"curve": [curve] * EPOCHS, "best_epoch": 1, "parameters": 1}
    run["test"] = {"loss": 1.0, "zero_one_loss": 1.0}


def test_other_settings_are_refused(output):
    before = (output / "results.json").read_bytes()
    other = [f"--output={output}", "--units=5", "held_out=48"]
    with pytest.raises(SystemExit, match="runs with other settings") as error:
        main([*COMMAND[:-1], *other[2:], *other[:2]])
    message = str(error.value)
    assert "'validation': 24, 'test': 24} there, {'train': 48, 'validation': 48," in message
    assert "units: 3 there, 5 now" in message and "epochs:" not in message
    assert (output / "results.json").read_bytes() == before


def test_a_run_begun_with_another_setup_is_refused(tmp_path):
    task = tasks.load("adding", **TASK)
    setup = setup_of(keras.layers.SimpleRNN, 4, {}, BUDGET)
    run, model = training.new_run("SimpleRNN", 0, setup), training.new_model(task, setup)
    training.write_state(tmp_path / "state.npz", model, run, [])
    other = setup_of(keras.layers.SimpleRNN, 5, {}, BUDGET)
    with pytest.raises(ValueError, match="units: 4 there, 5 now"):
        training.train(training.new_run("SimpleRNN", 0, other), other, task, tmp_path)


def test_averaging_goes_on_with_its_memory(tmp_path):
    """Its averages, and the model that was scored with them."""
    task = tasks.load("adding", **TASK)
    setup = dataclasses.replace(
        setup_of(keras.layers.SimpleRNN, 4, {}, BUDGET),
        callbacks=lambda: [tasks.AveragedSGD("val_loss", patience=1)],
    )
    model = training.new_model(task, setup)
    (averaging,) = callbacks = setup.callbacks()
    averaging.set_state({"values": [1.0, 2.0], "updates": 3, "averages": model.get_weights()})
    training.write_state(
        tmp_path / "state.npz", model, training.new_run("", 0, setup), callbacks
    )
    (other,) = callbacks = setup.callbacks()
    training.read_state(
        tmp_path / "state.npz", model, training.new_run("", 0, setup), callbacks
    )
    assert (other.values, other.updates) == ([1.0, 2.0], 3)
    for average, weight in zip(other.averages, model.get_weights(), strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(average), weight)


def test_a_run_that_diverges_ends_and_is_told(tmp_path):
    task = tasks.load("adding", **TASK)
    run = {"curve": [], "diverged": False, "test": None, "best_epoch": None}
    training.note(run, task, {"loss": math.nan, "seconds": 1.0}, None, [], tmp_path)
    assert run == {"curve": [], "diverged": True, "test": None, "best_epoch": None}
