"""What kills, other commands and damaged files leave in a folder of results."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
from speed import COMPILES, SLOW_ON_TENSORFLOW, slow_if_compiled, slow_unless
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

pytest.importorskip("matplotlib", reason="papers.experiments needs it")

from matplotlib.figure import Figure

from papers import tasks
from papers.experiments import Comparison, compare, runner, training
from papers.experiments.results_file import ResultsFile
from papers.reproduce import main

pytestmark = [*SLOW_ON_TENSORFLOW, pytest.mark.any_backend]

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


def resume(
    task, folder, monkeypatch, layer="SimpleRNN", seed=0, setup=SETUP, trains=True, **changed
):
    """Train a run to its end, or only tell it so; return it, and how many epochs that took."""
    run, epochs = training.new_run(layer, seed, setup), []
    original = training.train_epoch if trains else told_epoch

    def counted(*arguments):
        epochs.append(1)
        return original(*arguments)

    monkeypatch.setattr(training, "train_epoch", counted)
    training.train(run, setup, task, folder, {**SETTINGS, **changed})
    return run, len(epochs)


@pytest.mark.each_backend
def test_a_state_of_the_same_run_is_resumed(task, whole, interrupted, monkeypatch, capsys):
    run, epochs = resume(task, interrupted, monkeypatch)
    assert epochs == EPOCHS - 1
    assert_same_learning([run], [whole])
    assert "starts again" not in capsys.readouterr().out


OTHERS = {
    "options": ({"options": {"steps": 21}}, "options: {'steps': 20} there, {'steps': 21} now"),
    "keras": ({"keras": "3.16.0"}, "keras: '3.15.1' there, '3.16.0' now"),
    "backend": ({"backend": "torch"}, "backend: 'jax' there, 'torch' now"),
    "seed": ({"seed": 1}, "seed: 0 there, 1 now"),
    "layer": ({"layer": "other"}, "layer: 'SimpleRNN' there, 'other' now"),
    "arguments": ({"setup": settings(dropout=0.2)}, "arguments: {'dropout': 0.3} there"),
    "units": ({"setup": settings(units=5, dropout=0.3)}, "units: 4 there, 5 now"),
    "rate": (
        {"setup": dataclasses.replace(SETUP, learning_rate=0.1)},
        "'learning_rate': 0.1",
    ),
}


@pytest.mark.damaged_files
@pytest.mark.parametrize(
    ("changed", "told"),
    [
        slow_unless(not COMPILES or name in ("options", "units"), *row, id=name)
        for name, row in OTHERS.items()
    ],
)
def test_a_state_of_another_run_is_begun_anew(
    changed, told, task, interrupted, monkeypatch, capsys
):
    run, epochs = resume(task, interrupted, monkeypatch, trains=False, **changed)
    assert epochs == len(run["curve"]) == EPOCHS
    line = "".join(capsys.readouterr().out.split())  # however wide the terminal is
    assert "state.npzcannotbeused,sothisrunstartsagain." in line
    assert told.replace(" ", "") in line.replace(" ", "").replace("\\n", "")
    assert (run["layer"], run["seed"]) == (
        changed.get("layer", "SimpleRNN"),
        changed.get("seed", 0),
    )


def of_another_schema(path):
    np.savez(path, weights=np.zeros(3))


def of_other_variables(path):
    stored = dict(np.load(path))
    stored["variable_0"] = np.zeros((7, 7))
    np.savez(path, **stored)


def of_a_single_array(path):
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))


def of_text(path):
    path.write_text("{}")


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "random": lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)),
    "flipped": lambda path: path.write_bytes(
        (data := bytearray(path.read_bytes()))[: len(data) // 3] + b"\xff" * 900 + data[-900:]
    ),
    "another schema": of_another_schema,
    "other variables": of_other_variables,
    "array": of_a_single_array,
    "text": of_text,
}


@pytest.mark.damaged_files
@pytest.mark.parametrize(
    "damage",
    [slow_unless(not COMPILES or name in ("truncated", "random"), name) for name in DAMAGES],
)
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
results = ResultsFile(
    folder, {"a": 1}, name, ("layer", "seed"), lambda run: 1, lambda content: content
)
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

    return change


@pytest.mark.damaged_files
@pytest.mark.parametrize(
    "change",
    [
        lacking("settings"),
        lacking("runs"),
        lacking("runs", 0, "curve"),
        lacking("runs", 0, "setup"),
        lacking("runs", 1, "seed"),
        lacking("settings", "metric"),
        lambda results: results.update(runs=[3]),
        lambda results: results.update(runs="none"),
        lambda results: results.update(settings=[]),
    ],
)
def test_results_of_another_schema_are_refused(change, output):
    path, results = output / "results.json", read(output)
    change(results)
    path.write_text(json.dumps(results))
    before = path.read_bytes()
    with pytest.raises(SystemExit, match=r"results.json lacks the entries .*; repair it"):
        main([*COMMAND, f"--output={output}"])
    assert path.read_bytes() == before


@pytest.mark.damaged_files
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00", r"results.json is not valid JSON; repair or remove it"),
        (b"[]", r"results.json lacks the entries"),
        (b"null", r"results.json lacks the entries"),
        (b"{}", r"results.json lacks the entries"),
    ],
)
def test_other_files_in_their_place_are_refused(content, message, tmp_path):
    (tmp_path / "results.json").write_bytes(content)
    with pytest.raises(SystemExit, match=message):
        main([*COMMAND, f"--output={tmp_path}"])
    assert (tmp_path / "results.json").read_bytes() == content


@pytest.mark.damaged_files
def test_a_run_that_stands_twice_counts_once(output):
    results = read(output)
    twice = {**results, "runs": [*results["runs"], results["runs"][0]]}
    (output / "results.json").write_text(json.dumps(twice))
    assert main([*COMMAND, f"--output={output}"])["runs"] == results["runs"]
    assert read(output)["summary"] == results["summary"]


@pytest.mark.damaged_files
def test_what_killed_processes_left_is_removed(output):
    folder = output / "runs" / "SimpleRNN-0"
    folder.mkdir(parents=True, exist_ok=True)
    old, young = output / "unfinished-1-losses.png", output / "unfinished-2-score.png"
    for path in (old, young, folder / "state.npz", folder / "unfinished-3-best.keras"):
        path.touch()
        if path is not young:
            os.utime(path, (time.time() - 7200,) * 2)
    main([*COMMAND, f"--output={output}"])
    assert not old.exists() and not folder.exists()
    assert young.exists()  # another process may be writing it


def test_the_terminal_shows_no_links_to_pictures(output, capsys):
    main([*COMMAND, f"--output={output}"])
    shown = capsys.readouterr().out
    assert "Which claims hold?" in shown and "png" not in shown


@pytest.mark.damaged_files
def test_notes_in_another_encoding_end_nothing(output):
    (output / "notes.md").write_bytes("Schön".encode("latin-1"))
    main([*COMMAND, f"--output={output}"])
    assert "Sch\ufffdn" in (output / "report.md").read_text(encoding="utf-8")


def results_file(folder, **settings):
    return ResultsFile(
        folder, settings, "it", ("name",), lambda run: run["done"], lambda content: content
    )


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
    results.write(run(4, diverged=True))
    assert results.ended(results.known(run(0)), 9)
    assert not results.ended(results.known({"name": "B"}), 1)


def test_a_run_that_diverges_in_its_next_part_is_at_its_end(tmp_path):
    results = results_file(tmp_path)
    run = {"name": "A", "done": 2, "diverged": False}
    results.write(run)
    results.write({**run, "diverged": True})  # as far as before
    assert results.ended(results.known(run), 9)
    results.write(run)
    assert [run["diverged"] for run in read(tmp_path)["runs"]] == [True]


def test_runs_of_nearly_the_same_rate_are_two(tmp_path):
    def run(rate):
        return {"name": rate, "done": 1, "diverged": False}

    results, runs = results_file(tmp_path), [run(0.01), run(0.0012345671), run(0.0012345672)]
    results.write(*runs)
    assert read(tmp_path)["runs"] == runs
    folders = [results.run_folder(one).name for one in runs]
    assert folders == ["0.01", "0.0012345671", "0.0012345672"]


def test_a_file_that_is_not_there_is_new(tmp_path):
    results = results_file(tmp_path, a=(1, 2))
    assert results.content == {"settings": {"a": [1, 2]}, "commands": [], "runs": []}
    assert not list(tmp_path.iterdir())


@slow_if_compiled
@pytest.mark.each_backend
@pytest.mark.skipif(
    not hasattr(keras.optimizers, "MultiOptimizer"), reason="this Keras has no MultiOptimizer"
)
def test_the_optimizer_of_the_skew_matrix_is_in_the_results(task, tmp_path):
    paper = tasks.recipe("timit", "MomentumDTRIV", units=224)
    setup = dataclasses.replace(paper, units=3, batch_size=24, epochs=1)
    given = {"seeds": 1, "budget": {}, "title": "adding", "command": "python it.py"}
    compare(Comparison(task=task, setups={"it": setup}, output=tmp_path, **given))
    (run,) = read(tmp_path)["runs"]
    assert run["setup"]["optimizer"]["class"] == "Adam"
    assert run["setup"]["recurrent_optimizer"] == {
        "class": "RMSprop",
        "learning_rate": 2e-4,
        "global_clipnorm": None,
        "rho": 0.99,
    }
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "; of S: RMSprop, learning_rate 0.0002, global_clipnorm None, rho 0.99 |" in report
