"""What kills, other commands and damaged files leave in a folder of results."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from test_experiments import (
    COMMAND,
    EPOCHS,
    TASK,
    assert_same_learning,
    quick,
    read,
    settings,
    told_epoch,
)

from keras_momentum_rnn.atomic_files import locked
from papers import tasks
from papers.experiments import report, runner, training
from papers.experiments.results_file import ResultsFile
from papers.reproduce import main

SETTINGS = {"options": {"steps": 20}, "keras": "3.15.1", "backend": "jax"}
SETUP = settings(dropout=0.3)


@pytest.fixture(scope="module")
def task():
    return tasks.load("adding", **TASK)


@pytest.fixture(scope="module")
def whole(task, tmp_path_factory):
    """A run that nothing interrupted."""
    run = training.new_run("SimpleRNN", 0, SETUP)
    training.train(run, SETUP, task, tmp_path_factory.mktemp("whole"), SETTINGS)
    return run


@pytest.fixture(scope="module")
def begun(task, tmp_path_factory):
    """The folder of a run that was killed after its first epoch."""
    folder, original = tmp_path_factory.mktemp("begun"), runner.write_state

    def killed(*arguments):
        original(*arguments)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(runner, "write_state", killed)
        run = training.new_run("SimpleRNN", 0, SETUP)
        training.train(run, SETUP, task, folder / "run", SETTINGS)
    return folder / "run"


@pytest.fixture
def interrupted(begun, tmp_path):
    return shutil.copytree(begun, tmp_path / "run")


def resume(task, folder, monkeypatch, seed=0, setup=SETUP, trains=True, **changed):
    """Train a run to its end, or only tell it so; return it, and how many epochs that took."""
    run, epochs = training.new_run("SimpleRNN", seed, setup), []
    original = training.train_epoch if trains else told_epoch

    def counted(*arguments):
        epochs.append(1)
        return original(*arguments)

    monkeypatch.setattr(training, "train_epoch", counted)
    training.train(run, setup, task, folder, {**SETTINGS, **changed})
    return run, len(epochs)


OTHERS = {
    "options": ({"options": {"steps": 21}}, "options: {'steps': 20} there, {'steps': 21} now"),
    "seed": ({"seed": 1}, "seed: 0 there, 1 now"),
    "rate": ({"setup": dataclasses.replace(SETUP, learning_rate=0.1)}, "'learning_rate': 0.1"),
}


@pytest.mark.damaged_files
@pytest.mark.parametrize(("changed", "told"), OTHERS.values(), ids=OTHERS)
def test_a_state_of_another_run_is_refused_and_kept(
    changed, told, task, interrupted, monkeypatch
):
    before = (interrupted / "state.npz").read_bytes()
    with pytest.raises(ValueError, match="other settings; remove its folder or ch") as raised:
        resume(task, interrupted, monkeypatch, trains=False, **changed)
    assert told in str(raised.value) and str(interrupted) in str(raised.value)
    assert (interrupted / "state.npz").read_bytes() == before


@pytest.mark.damaged_files
@pytest.mark.parametrize("error", [MemoryError, OSError])
def test_an_error_of_the_machine_keeps_the_state(error, task, interrupted, monkeypatch):
    def failing(*arguments):
        raise error

    if error is MemoryError:
        monkeypatch.setattr(np, "load", failing)
    else:  # the system reads no folder as a file
        (interrupted / "state.npz").unlink()
        (interrupted / "state.npz").mkdir()
    with pytest.raises(error):
        resume(task, interrupted, monkeypatch, trains=False)
    assert (interrupted / "state.npz").exists()


@pytest.mark.two_writers
def test_two_commands_may_write_one_state(tmp_path, monkeypatch):
    """The one that ends last leaves its own, whole."""
    path, savez = tmp_path / "state.npz", np.savez
    model = training.new_model(tasks.load("adding", **TASK), SETUP)

    def beside(file, **arrays):
        monkeypatch.setattr(np, "savez", savez)
        runner.write_state(path, model, {"run": "other"}, {})
        savez(file, **arrays)

    monkeypatch.setattr(np, "savez", beside)
    runner.write_state(path, model, {"run": "mine"}, {})
    assert runner.usable_state(path, model, {})[0] == {"run": "mine"}


def of_other_variables(path):
    stored = dict(np.load(path))
    stored["variable_0"] = np.zeros((7, 7))
    np.savez(path, **stored)


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "random": lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)),
    "flipped": lambda path: path.write_bytes(
        (data := bytearray(path.read_bytes()))[: len(data) // 3] + b"\xff" * 900 + data[-900:]
    ),
    "another schema": lambda path: np.savez(path, weights=np.zeros(3)),
    "other variables": of_other_variables,
    "text": lambda path: path.write_text("{}"),
}


@pytest.mark.damaged_files
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_begun_anew(damage, task, whole, interrupted, monkeypatch, capsys):
    DAMAGES[damage](interrupted / "state.npz")
    trains = damage in ("truncated", "flipped")
    run, epochs = resume(task, interrupted, monkeypatch, trains=trains)
    assert epochs == len(run["curve"]) == EPOCHS
    if trains:
        assert_same_learning([run], [whole])
    line = "".join(capsys.readouterr().out.split())  # however wide the terminal is
    assert "sothisrunstartsagain." in line and "pickle" not in line


# results.json

WRITER = """
import sys, time
from pathlib import Path
from papers.experiments.results_file import ResultsFile
folder, name = Path(sys.argv[1]), sys.argv[2]
results = ResultsFile(folder, {"a": 1}, name, ("layer", "seed"), lambda run: 1)
(folder / f"ready-{name}").touch()
while len(list(folder.glob("ready-*"))) < 2:
    time.sleep(0.001)
for seed in range(30):
    results.write({"layer": name, "seed": seed, "diverged": False})
"""


@pytest.mark.two_writers
@pytest.mark.slow
def test_two_processes_lose_none_of_each_others_runs(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, name], env=environment)
        for name in ("A", "B")
    ]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0]
    results = read(tmp_path)
    assert sorted((run["layer"], run["seed"]) for run in results["runs"]) == [
        (name, seed) for name in ("A", "B") for seed in range(30)
    ]
    assert sorted(results["commands"]) == ["A", "B"]


@pytest.mark.two_writers
def test_what_another_command_finished_meanwhile_stays(tmp_path, monkeypatch):
    """Of the same layers too, which are then not trained twice."""
    trained = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **named: Path(path).touch())

    def meanwhile(run, *rest):
        quick(run, *rest)
        trained.append(run["layer"])
        if len(trained) == 1:
            main([*COMMAND, "--layers", "GRU", "MomentumRNN", f"--output={tmp_path}"])

    monkeypatch.setattr(training, "train", meanwhile)
    results = main([*COMMAND, f"--output={tmp_path}"])
    assert trained == ["SimpleRNN", "GRU", "MomentumRNN"]
    names = [run["layer"] for run in results["runs"]]
    assert names == ["GRU", "MomentumRNN", "SimpleRNN"]
    assert len(results["summary"]) == 3 and len(results["commands"]) == 2


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The folder of a comparison that ended."""
    folder = tmp_path_factory.mktemp("ended")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "train", quick)
        main([*COMMAND, f"--output={folder}"])
    return folder


@pytest.fixture
def output(ended, tmp_path, monkeypatch):
    """A copy of it, for a command that trains and draws nothing."""
    monkeypatch.setattr(training, "train", quick)
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **named: Path(path).touch())
    return shutil.copytree(ended, tmp_path / "output")


def lacking(*names):
    def change(results):
        inner = results
        for name in names[:-1]:
            inner = inner[name]
        del inner[names[-1]]
        return json.dumps(results).encode()

    return change


@pytest.mark.damaged_files
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lacking("settings"), "lacks the entries"),
        (lacking("runs", 0, "curve"), "lacks the entries"),
        (lacking("settings", "metric"), "lacks the entries"),
        (lambda results: b"[]", "lacks the entries"),
        (lambda results: b"\xff\xfe\x00", "is not valid JSON"),
        (lambda results: b"<<<<<<< ours\n" + json.dumps(results).encode(), "is not valid JSON"),
    ],
)
def test_a_damaged_results_file_is_refused_and_kept(damage, message, output):
    path = output / "results.json"
    path.write_bytes(damage(read(output)))
    before = path.read_bytes()
    with pytest.raises(SystemExit, match=rf"results.json {message}.*; repair"):
        main([*COMMAND, f"--output={output}"])
    assert path.read_bytes() == before


@pytest.mark.damaged_files
def test_a_run_that_stands_twice_counts_once(output):
    results = read(output)
    twice = {**results, "runs": [*results["runs"], results["runs"][0]]}
    (output / "results.json").write_text(json.dumps(twice))
    assert main([*COMMAND, f"--output={output}"])["runs"] == results["runs"]
    assert read(output)["summary"] == results["summary"]


def test_a_link_to_results_stays_one(output, tmp_path):
    (output / "results.json").rename(tmp_path / "kept.json")
    (output / "results.json").symlink_to(tmp_path / "kept.json")
    main([*COMMAND, "--seeds=2", f"--output={output}"])
    assert (output / "results.json").is_symlink()
    assert len(json.loads((tmp_path / "kept.json").read_text())["runs"]) == 4


def results_file(folder, **settings):
    return ResultsFile(folder, settings, "it", ("name",), lambda run: run["done"])


@pytest.mark.two_writers
def test_of_a_run_the_record_that_came_farthest_is_kept(tmp_path):
    def run(done, diverged=False):
        return {"name": "A", "done": done, "diverged": diverged}

    results, other = results_file(tmp_path), results_file(tmp_path)
    results.write(run(2))
    other.write(run(3))
    results.write(run(1))
    assert read(tmp_path)["runs"] == [run(3)]
    known = results.known(run(0))
    assert results.ended(known, 3) and not results.ended(known, 4)
    results.write(run(3, diverged=True))  # in its next part, so as far as before
    assert results.ended(results.known(run(0)), 9)
    results.write(run(3))
    assert read(tmp_path)["runs"] == [run(3, diverged=True)]
    assert not results.ended(results.known({"name": "B"}), 1)


def test_a_state_stays_until_its_run_is_in_the_results(tmp_path, monkeypatch):
    results, run = results_file(tmp_path), {"name": "A", "done": 2, "diverged": False}
    state, write = results.run_folder(run) / "state.npz", results.write

    def train(run, until, folder, after):
        folder.mkdir(parents=True)
        state.touch()

    def written(run):
        assert state.exists()
        write(run)

    monkeypatch.setattr(results, "write", written)
    runner.finish([(run, 2)], results, train, lambda run: 2, results.name, results.name)
    assert not state.exists() and read(tmp_path)["runs"] == [run]


@pytest.mark.two_writers
def test_one_command_at_a_time_writes_the_report(output, monkeypatch):
    lock, written = output / "runs" / "lock", []

    def write(*given):
        with pytest.raises(ValueError, match="Another process"), locked(lock, wait=False):
            pass
        written.append(given)

    monkeypatch.setattr(report, "write", write)
    main([*COMMAND, f"--output={output}"])
    assert written


def test_runs_of_nearly_the_same_rate_are_two(tmp_path):
    def run(rate):
        return {"name": rate, "done": 1, "diverged": False}

    results, runs = results_file(tmp_path), [run(0.01), run(0.0012345671), run(0.0012345672)]
    results.write(*runs)
    assert read(tmp_path)["runs"] == runs
    folders = [results.run_folder(one).name for one in runs]
    assert folders == ["0.01", "0.0012345671", "0.0012345672"]
