"""Table 5 of Sutskever et al. (2013) as a comparison: starts, chunks, pilots, report."""

import itertools
import json
import math
import re
import runpy
from pathlib import Path

import keras
import numpy as np
import pytest
from harness import array
from speed import slow_if_compiled

pytest.importorskip("matplotlib", reason="the examples need it")

from matplotlib.figure import Figure
from test_experiments import TOLD_OR_TRAINED, told_epoch

from papers import long_dependencies, paper_claims
from papers.experiments import training
from papers.momentum_table import Row, chosen_rate, looks_of, pilot_table, row_of, table
from papers.tasks import sutskever2013

TINY = ["--updates=6", "--pilot=4", "--every=2", "--units=4"]
# A pilot of four updates is over before momentum rises.
ONE_RATE = ["--learning-rates", "0.01"]
SMALL = {"adding": ["steps=20"], "memory20": ["blanks=3"]}


def options_of(task, *arguments):
    small = ["--set", *SMALL[task], "held_out=40"]
    return long_dependencies.parse([task, *TINY, *arguments, *small])


def setup_of(options, row, rate=0.1, updates=6):
    return long_dependencies.new_setup(options, row, rate, updates)


@pytest.mark.parametrize("task", ["adding", "memory20"])
def test_networks_start_as_table_4_says(task):
    options = long_dependencies.parse([task, "--every=20"])
    loaded = long_dependencies.load(options)
    assert (len(loaded.train), loaded.input_shape[0]) == (2000, 80 if task == "adding" else 100)
    setup = setup_of(options, Row("SimpleRNN", 0.98, "N"), updates=50_000)
    assert (setup.batch_size, setup.epochs) == (100, 2500)
    models = [training.new_model(loaded, setup) for _ in range(2)]
    recurrent, read_out = models[0].layers[-2:]
    scale = 0.001 if task == "adding" else 0.1
    assert array(recurrent.cell.kernel).std() == pytest.approx(scale, rel=0.15)
    kernels = [array(model.layers[-1].kernel) for model in models]
    assert kernels[0].std() == pytest.approx(0.1, rel=0.2)
    assert not np.allclose(*kernels)
    _, y = loaded.train.batches(1000)[0]
    if task == "adding":
        expected = [y.mean()]
    else:
        expected = np.log(np.bincount(y.ravel(), minlength=6) / y.size)
    np.testing.assert_allclose(array(read_out.bias), expected, atol=0.06)


def test_momentum_warms_up_and_has_both_forms():
    options = options_of("adding", "--momenta", "0", "0.98", *ONE_RATE)
    rows = {str(row): row for row in long_dependencies.rows(options)}
    assert list(rows) == ["SimpleRNN 0", "SimpleRNN 0.98N", "SimpleRNN 0.98M"]
    for name, expected in {"0": (0, 0), "0.98N": (0.9, 0.98), "0.98M": (0.9, 0.98)}.items():
        row = rows[f"SimpleRNN {name}"]
        assert row_of(str(row)) == row
        optimizer = setup_of(options, row, 0.01).optimizer
        assert optimizer.nesterov == (row.form == "N")
        assert float(optimizer.learning_rate) == pytest.approx(0.01)
        assert momenta_of(optimizer) == pytest.approx(expected)
    options = options_of("adding", "--warm-zero", *ONE_RATE)
    for name, expected in {"0": (0.9, 0), "0.98M": (0.9, 0.98)}.items():
        optimizer = setup_of(options, row_of(f"SimpleRNN {name}"), 0.01).optimizer
        assert optimizer.nesterov == (name == "0")
        assert momenta_of(optimizer) == pytest.approx(expected)


def momenta_of(optimizer):
    """Return the momentum of the last update of the warm-up, and of the next."""
    found = []
    for step in (999, 1000):
        optimizer.iterations.assign(step)
        found.append(float(optimizer.momentum))
    return found


def test_deviations_from_the_paper_follow_the_options():
    for more, there in (([], True), (["--warm-zero"], False)):
        options = options_of("adding", *more, *ONE_RATE)
        found = long_dependencies.comparison(
            options, "", {row: {0.001: None} for row in long_dependencies.rows(options)}
        )
        told = found.budget["deviations from the paper"]
        assert ("no warm-up of momentum 0; " in told) == there and "scored at w" in told


def test_rows_differ_by_the_end_of_the_default_pilot():
    """Each column of Table 5 is a run of its own, by the optimizer and not by its name."""
    options = long_dependencies.parse(["adding"])
    assert options.pilot < options.updates
    found = set()
    for row in long_dependencies.rows(options):
        optimizer = setup_of(options, row, updates=options.pilot).optimizer
        optimizer.iterations.assign(options.pilot - 1)
        found.add((float(optimizer.momentum), optimizer.nesterov))
    assert len(found) == 7
    # Where only 0.9 is wanted, or one rate, nothing rises that a short pilot could miss.
    for arguments in (["--momenta", "0", "0.9"], ONE_RATE):
        assert long_dependencies.parse(["adding", *TINY, *arguments]).pilot == 4


def test_the_read_out_starts_at_the_mean_of_the_length_given():
    options = long_dependencies.parse(["memory20", "--set", "blanks=20"])
    setup = setup_of(options, Row("SimpleRNN", 0.98, "N"), updates=500)
    bias = setup.model_options["bias_initializer"]["config"]["value"]
    # 40 steps: 30 blanks, then ten symbols of five kinds.
    np.testing.assert_allclose(bias, np.log([30 / 40] + [10 / 40 / 5] * 5), atol=1e-6)


@pytest.mark.parametrize("rates", [[], ONE_RATE])
def test_a_length_that_is_no_number_is_refused_by_the_task(rates, tmp_path):
    command = ["memory20", *rates, "--set", "blanks=x", f"--output={tmp_path}"]
    with pytest.raises(SystemExit, match="`blanks` must be"):
        long_dependencies.main(command)


def same_curves(got, expected):
    for one, other in zip(got["curve"], expected["curve"], strict=True):
        assert one == pytest.approx({**other, "seconds": one["seconds"]}, rel=1e-5, abs=1e-7)


@slow_if_compiled
def test_epochs_of_a_run_are_one_training_and_scored_at_w(tmp_path, monkeypatch):
    """Nesterov's form leaves the look-ahead at the end of each epoch, and goes back to it."""
    options = options_of("memory20", "--layers", "SimpleRNN", *ONE_RATE)
    task = long_dependencies.load(options)
    setup = setup_of(options, Row("SimpleRNN", 0.98, "N"), rate=0.5)
    run = training.new_run("parts", 0, setup)
    training.train(run, setup, task, tmp_path / "whole", {})

    def trained_at_once(callbacks, epochs_at_once):
        keras.utils.set_random_seed(0)
        model = training.new_model(task, setup)
        for first in range(0, setup.epochs, epochs_at_once):
            last = first + epochs_at_once
            task.fit(model, 100, last, initial_epoch=first, callbacks=callbacks(), verbose=0)
        return task.evaluate(model, "test", 40)

    at_once = trained_at_once(list, setup.epochs)
    assert run["curve"][-1]["test_loss"] == pytest.approx(at_once["loss"], rel=1e-5)
    without = trained_at_once(list, 1)
    assert abs(without["loss"] - at_once["loss"]) > 1e-4 * at_once["loss"]

    original, calls = np.savez, []

    def killed(*args, **kwargs):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    parts = training.new_run("parts", 0, setup)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(np, "savez", killed)
        training.train(parts, setup, task, tmp_path / "parts", {})
    parts = training.new_run("parts", 0, setup)
    training.train(parts, setup, task, tmp_path / "parts", {})
    same_curves(parts, run)


@pytest.mark.any_backend
@pytest.mark.slow
def test_a_pilot_chooses_the_learning_rate(tmp_path, monkeypatch):
    command = ["adding", *TINY, "--set", "steps=20", "held_out=40", f"--output={tmp_path}"]
    rates = ["--learning-rates", "1e30", "1e-9", "0.1"]
    with monkeypatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda figure, path, **named: Path(path).touch())
        results = long_dependencies.main([*command, *rates, "--momenta", "0.9", "--forms", "N"])
    pilot = json.loads((tmp_path / "pilot" / "results.json").read_text())
    told = {
        run["setup"]["optimizer"]["learning_rate"]: run["curve"][-1]["validation_loss"]
        for run in pilot["runs"]
        if not run["diverged"]
    }
    assert sorted(told) == [1e-9, 0.1] and told[1e-9] != told[0.1]
    (run,) = results["runs"]
    assert run["setup"]["optimizer"]["learning_rate"] == chosen_rate(told)
    assert "1e+30 (inf)" in run["setup"]["source"]
    assert len(run["curve"]) == 3

    # A layer that joins later: how it learns makes no difference.
    monkeypatch.setattr(training, "train_epoch", told_epoch)
    layers = ["--layers", "SimpleRNN", "AdamRNN"]
    more = long_dependencies.main(
        [*command, *rates, "--momenta", "0.9", "--forms", "N", *layers]
    )
    assert more["runs"][0] == run
    assert [line.partition("0.9 ")[2] for line in more["commands"]] == [
        "--forms N",
        "--forms N --layers SimpleRNN AdamRNN",
    ]
    assert [r["layer"] for r in more["runs"]] == ["SimpleRNN 0.9N", "AdamRNN 0.9N"]
    report = (tmp_path / "report.md").read_text()
    assert all(f"`{line}`" in report for line in more["commands"])
    assert "| 0.02 (100 units, optimizer's momentum 0.9N) |" in report
    assert "LSTM" not in report
    assert (tmp_path / "table5.png").read_bytes().startswith(b"\x89PNG")


def finished(name, rate, error):
    curve = [{"validation_wrong_symbols": error, "loss": 1.0}] * 2
    setup = {"optimizer": {"learning_rate": rate}}
    test = None if error is None else {"wrong_symbols": error}
    return {
        "layer": name,
        "seed": 0,
        "setup": setup,
        "test": test,
        "curve": curve[: bool(test)],
    }


def test_table_5_stands_beside_the_papers():
    runs = [
        finished("SimpleRNN 0.995M", 1e-3, 1.25),
        finished("SimpleRNN 0", 1e-4, 7.5),
        finished("SimpleRNN 0.7N", 1e-4, 3.5),
        finished("AdamRNN 0.98N", 1e-5, None),
    ]
    settings = {
        "task": "memory20",
        "metric": "wrong_symbols",
        "larger_is_better": False,
        "chance": {"wrong_symbols": 8.0},
        "samples": {"validation": 5, "test": 5},
        "budget": {"updates": 4000, "updates between evaluations": 2000},
    }
    text, figures = table({"runs": runs, "settings": settings})
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if "|" in line]
    assert lines[0] == ["biases", "0", "0.98N", "0.995M", "0.7N"]
    assert lines[2:] == [
        ["SimpleRNN", "8", "7.5", "-", "1.25", "3.5"],
        ["SimpleRNN, learning rate", "-", "0.0001", "-", "0.001", "0.0001"],
        ["AdamRNN", "8", "-", "diverged", "-", "-"],
        ["AdamRNN, learning rate", "-", "-", "1e-05", "-", "-"],
        ["SimpleRNN, paper", "8", "5.37", "0.0144", "0.053", "-"],
    ]
    assert "at most 4,000 updates here" in text and "50,000 in the paper" in text
    left, right = figures["table5.png"].axes
    drawn = {line.get_label(): line for line in left.lines}
    assert set(drawn) >= {"SimpleRNN 0", "SimpleRNN 0.995M", "SimpleRNN 0.7N"}
    np.testing.assert_array_equal(drawn["SimpleRNN 0.995M"].get_xydata(), [[2000, 1.25]])
    # Read by eye: no scale of the paper's, which would press ours together.
    assert left.get_yscale() == "linear" and left.get_ylim()[0] > 0.5
    columns = [label.get_text() for label in right.get_xticklabels()]
    assert columns == ["0", "0.98N", "0.995M", "0.7N"]
    ends = {line.get_label(): line.get_xydata().tolist() for line in right.lines}
    assert ends["SimpleRNN"] == [[2, 1.25], [0, 7.5], [3, 3.5]]
    assert ends["SimpleRNN, paper, 50,000 updates"] == [[0, 5.37], [1, 0.0144], [2, 0.053]]
    assert "AdamRNN" not in ends  # it diverged


@pytest.mark.any_backend
@pytest.mark.parametrize("task", sutskever2013.ERRORS)
def test_claims_hold_in_the_papers_own_table(task):
    paper = dict(zip(sutskever2013.COLUMNS, sutskever2013.ERRORS[task]))
    for claim in paper_claims.ON_LONG_DEPENDENCIES:
        better, than = (
            [paper[name.removeprefix("SimpleRNN ")] for name in names]
            for names in (claim.better, claim.than)
        )
        assert max(better) < min(than)
    assert {*paper_claims.MOMENTA, paper_claims.NONE} == {
        str(row) for row in long_dependencies.rows(long_dependencies.parse([task]))
    }


def test_a_pilot_tells_what_a_shorter_one_would_have_chosen():
    curves = {"0.001": [0.4, 0.2, 0.5], "0.0001": [0.5, 0.4, 0.3], "1e-05": [0.5, 0.205]}
    runs = [
        {"layer": f"SimpleRNN 0 at {rate}", "curve": [{"validation_loss": v} for v in values]}
        for rate, values in curves.items()
    ]
    runs.append({"layer": "SimpleRNN 0.9N at 1", "curve": []})
    settings = {"budget": {"updates between evaluations": 500}}
    text, _ = pilot_table({"runs": runs, "settings": settings})
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if "|" in line]
    assert lines[0] == ["500", "1,000", "1,500"]
    assert lines[2:] == [
        ["SimpleRNN 0", "0.001 (0.400)", "0.001 (0.200)", "0.0001 (0.300)"],
        ["SimpleRNN 0.9N", "-", "-", "-"],
    ]


def test_noise_chooses_no_learning_rate():
    # Where nothing has left chance the largest rate goes on, unless it is thrown back.
    assert chosen_rate({1e-6: 0.0388, 1e-5: 0.0391, 1e-4: 0.0402, 1e-3: 1.2}) == 1e-4
    assert chosen_rate({1e-3: 0.0262, 1e-4: 0.0379}) == 1e-3
    assert chosen_rate({1e-3: 0.456, 1e-4: 0.170, 1e-5: 0.193}) == 1e-4
    assert chosen_rate({1e-3: math.inf, 1e-4: math.inf}) == 1e-3
    assert chosen_rate({1e-3: None}) == 1e-3


@pytest.mark.parametrize("trained", TOLD_OR_TRAINED)
def test_tasks_take_turns_seed_by_seed_and_go_on_after_a_kill(trained, tmp_path, monkeypatch):
    small = ["--momenta", "0.9", "0", "--forms", "M", "--beside", "AdamRNN", *ONE_RATE]
    command = ["adding", "multiplication", *TINY, *small, "--seeds=2"]
    command += ["--set", "steps=20", "held_out=40"]
    order, original = [], training.train_epoch if trained else told_epoch

    def noted(run, setup, task, *rest):
        order.append((task.name, run["seed"]))
        return original(run, setup, task, *rest)

    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **named: Path(path).touch())
    monkeypatch.setattr(training, "train_epoch", noted)
    long_dependencies.main([*command, f"--output={tmp_path / 'whole'}"])
    assert list(dict.fromkeys(order)) == [
        ("adding", 0), ("multiplication", 0), ("adding", 1), ("multiplication", 1)]  # fmt: skip

    def killed(run, setup, task, *rest):
        # Within the second run of the second task.
        if task.name == "multiplication" and run["layer"] == "SimpleRNN 0" and run["curve"]:
            raise KeyboardInterrupt
        return original(run, setup, task, *rest)

    parts = [*command, f"--output={tmp_path / 'parts'}"]
    monkeypatch.setattr(training, "train_epoch", killed)
    with pytest.raises(SystemExit, match="Interrupted"):
        long_dependencies.main(parts)
    monkeypatch.setattr(training, "train_epoch", original)
    long_dependencies.main(parts)
    for task in ("adding", "multiplication"):
        whole, part = (
            json.loads((tmp_path / kind / task / "results.json").read_text())
            for kind in ("whole", "parts")
        )
        assert [(run["layer"], run["seed"]) for run in part["runs"]] == [
            (name, seed)
            for seed in (0, 1)
            for name in ("SimpleRNN 0.9M", "SimpleRNN 0", "AdamRNN 0.9M")
        ]
        for run, expected in zip(part["runs"], whole["runs"], strict=True):
            same_curves(run, expected)
        report = (tmp_path / "parts" / task / "report.md").read_text()
        # 4 of 7 x 4 rows and seeds, 6 of 50,000 updates each.
        assert "budget that was run: 0.0%, 24 of 1,400,000 updates" in report.splitlines()[2]
        assert "0 of 28 runs to their end. In further runs, 12 updates." in report


def test_rows_are_told_apart_in_the_picture():
    rows = [Row(*parts) for parts in itertools.product(
        ["SimpleRNN", "AdamRNN", "MomentumRNN"], [0.98, 0.995], ["N", "M"])]  # fmt: skip
    looks = looks_of([*rows, Row("SimpleRNN", 0.0, "")])
    assert len({tuple(look.values()) for look in looks.values()}) == 13


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--momenta", "1"], r"--momenta: must lie in \[0, 1\). Received: \[1.0\]"),
        (["--updates=7"], "--updates: must be a multiple of --every, 2. Received: 7"),
        (["--pilot=1000"], r"--pilot: must exceed 1000, the updates with momentum 0.9"),
        # Without a warm-up of its own, momentum 0 differs from the first update on.
        (["--warm-zero", "--momenta", "0", "0.9"], "--pilot: must exceed 1000.*Received: 4"),
        (["--pilot=3"], "--pilot: must be a multiple of --every, 2. Received: 3"),
        (
            [*ONE_RATE, "--set", "samples=5"],
            "--every has the place of the option samples. Received: samples=5",
        ),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit):
        long_dependencies.parse(["adding", *TINY, *arguments])
    assert re.search(message, " ".join(capsys.readouterr().err.split()))


def test_one_rate_needs_no_pilot(tmp_path):
    options = options_of("adding", *ONE_RATE, f"--output={tmp_path}")
    rates = long_dependencies.pilot(options, "")
    assert all(found == {0.01: None} for found in rates.values()) and len(rates) == 7
    assert not (tmp_path / "pilot").exists()


def test_the_example_is_a_script(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["long_dependencies.py", "--help"])
    with pytest.raises(SystemExit):
        runpy.run_path(long_dependencies.__file__, run_name="__main__")
    assert "--seeds" in capsys.readouterr().out
