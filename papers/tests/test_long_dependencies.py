"""Table 5 of Sutskever et al. (2013) as a comparison: starts, pilots, resuming, the table."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from harness import array
from matplotlib.figure import Figure

from papers import reports, tasks
from papers.experiments import training
from papers.sutskever import long_dependencies
from papers.sutskever.table5 import Row, chosen_rate, pilot_table, table5

TINY = ["--updates=6", "--pilot=4", "--every=2"]
# A pilot of four updates is over before momentum rises.
ONE_RATE = ["--learning-rates", "0.01"]
SMALL = {"adding": {"steps": 20}, "multiplication": {"steps": 20}, "memory20": {"blanks": 3}}


@pytest.fixture
def small(monkeypatch):
    """The tasks with short sequences, few of them held out; pictures, which are slow, empty."""

    def load(name, every):
        given = {**long_dependencies.paper_recipe(name).options, **SMALL[name]}
        return tasks.load(name, **given, samples=100 * every, held_out=40)

    monkeypatch.setattr(long_dependencies, "load", load)
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **named: Path(path).touch())


@pytest.mark.parametrize("task", ["adding", "memory20"])
def test_networks_start_as_table_4_says(task):
    options = long_dependencies.parse([task, "--every=20"])
    loaded = long_dependencies.load(task, options.every)
    assert (len(loaded.train), loaded.input_shape[0]) == (2000, 80 if task == "adding" else 100)
    row = Row("SimpleRNN", 0.98, "N")
    setup = long_dependencies.new_setup(options, task, row, 0.1, 50_000)
    assert setup.clipnorm is None
    assert (setup.batch_size, setup.epochs) == (100, 2500)
    models = [training.new_model(loaded, setup) for _ in range(2)]
    recurrent, read_out = models[0].layers[-2:]
    scale = 0.001 if task == "adding" else 0.1
    assert array(recurrent.cell.kernel).std() == pytest.approx(scale, rel=0.15)
    initializer = recurrent.cell.recurrent_initializer
    assert (initializer.fan_in, initializer.spectral_radius) == (15, 1.1)
    kernels = [array(model.layers[-1].kernel) for model in models]
    assert kernels[0].std() == pytest.approx(0.1, rel=0.2)
    assert not np.allclose(*kernels)
    # Numbers come without their mean; of symbols, the mean gives each the same logit.
    _, y = loaded.train.batches(1000)[0]
    shares = np.bincount(y[:, -10:].ravel()) / 10_000 if task == "memory20" else 1 + y.mean()
    np.testing.assert_allclose(shares, 0.2 if task == "memory20" else 1, atol=0.06)
    assert array(read_out.bias).tolist() == [0] * (5 if task == "memory20" else 1)


def test_momentum_warms_up_and_has_both_forms():
    expected = {
        (): {"0": (0, 0, False), "0.98N": (0.9, 0.98, True), "0.98M": (0.9, 0.98, False)},
        ("--warm-zero",): {"0": (0.9, 0, True), "0.98M": (0.9, 0.98, False)},
    }
    for more, by_row in expected.items():
        options = long_dependencies.parse(["adding", "--momenta", "0", "0.98", *more])
        rows = {row.column: row for row in long_dependencies.rows(options)}
        assert list(rows) == ["0", "0.98N", "0.98M"]
        for column, (warm, later, nesterov) in by_row.items():
            setup = long_dependencies.new_setup(options, "adding", rows[column], 0.01, 5000)
            optimizer, found = setup.optimizer, []
            for step in (999, 1000):  # the last update of the warm-up, and the next
                optimizer.iterations.assign(step)
                found.append(float(optimizer.momentum))
            assert found == pytest.approx([warm, later]) and optimizer.nesterov == nesterov


def test_other_layers_have_every_momentum_or_the_first():
    rows = ["--momenta", "0.98", "0", "--forms", "N", "--layers", "SimpleRNN", "MomentumRNN"]
    options = long_dependencies.parse(["adding", *rows, "--beside", "AdamRNN", "SimpleRNN"])
    assert [str(row) for row in long_dependencies.rows(options)] == [
        "SimpleRNN 0.98N",
        "SimpleRNN 0",
        "MomentumRNN 0.98N",
        "MomentumRNN 0",
        "AdamRNN 0.98N",
    ]


def test_a_pilot_chooses_the_learning_rate_and_a_row_joins_later(small, tmp_path):
    command = ["adding", *TINY, "--learning-rates", "1e30", "1e-9", "0.1"]
    command += ["--forms", "N", f"--output={tmp_path}", "--momenta", "0.9"]
    results = long_dependencies.main(command)
    pilot = json.loads((tmp_path / "pilot" / "results.json").read_text())
    told = {
        run["setup"]["optimizer"]["learning_rate"]: run["curve"][-1]["validation_loss"]
        for run in pilot["runs"]
        if not run["diverged"]
    }
    assert sorted(told) == [1e-9, 0.1] and told[1e-9] != told[0.1]
    (run,) = results["runs"]
    assert run["setup"]["optimizer"]["learning_rate"] == chosen_rate(told)
    assert "1e+30 (inf)" in run["setup"]["source"] and len(run["curve"]) == 3
    more = long_dependencies.main([*command, "0"])
    assert more["runs"][0] == run
    assert [r["layer"] for r in more["runs"]] == ["SimpleRNN 0.9N", "SimpleRNN 0"]
    assert (tmp_path / "table5.png").exists()
    # What writes a report again from its results knows both kinds.
    assert reports.sections(results) == (table5,) and reports.sections(pilot) == (pilot_table,)


def test_tasks_take_turns_seed_by_seed(small, tmp_path, monkeypatch):
    command = ["adding", "multiplication", *TINY, *ONE_RATE, "--seeds=2"]
    command += ["--momenta", "0.9", "0", "--forms", "N"]
    order, train_epoch = [], training.train_epoch

    def noted(run, setup, task, *rest):
        order.append((task.name, run["seed"]))
        return train_epoch(run, setup, task, *rest)

    monkeypatch.setattr(training, "train_epoch", noted)
    long_dependencies.main([*command, f"--output={tmp_path / 'whole'}"])
    assert list(dict.fromkeys(order)) == [
        ("adding", 0), ("multiplication", 0), ("adding", 1), ("multiplication", 1)]  # fmt: skip
    assert not (tmp_path / "whole" / "adding" / "pilot").exists()  # one rate needs none


def finished(name, rate, error):
    return {
        "layer": name,
        "setup": {"optimizer": {"learning_rate": rate}},
        "test": None if error is None else {"wrong_symbols": error},
        "diverged": True,
        "curve": [],
    }


def test_table_5_stands_beside_the_papers():
    runs = [
        finished("SimpleRNN 0.995M", 1e-3, 1.25),
        finished("SimpleRNN 0", 1e-4, 7.5),
        finished("SimpleRNN 0", 1e-4, 6.5),
        finished("SimpleRNN 0.7N", 1e-4, 3.5),
        finished("AdamRNN 0.98N", 1e-5, None),
    ]
    settings = {
        "task": "memory20",
        "metric": "wrong_symbols",
        "chance": {"wrong_symbols": 8.0},
        "samples": {"test": 5},
        "budget": {"updates": 4000},
    }
    text, figures = table5({"runs": runs, "settings": settings})
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if "|" in line]
    assert lines[0] == ["biases", "0", "0.98N", "0.995M", "0.7N"]
    assert lines[2:] == [
        ["SimpleRNN", "8", "7", "-", "1.25", "3.5"],
        ["SimpleRNN, learning rate", "-", "0.0001", "-", "0.001", "0.0001"],
        ["AdamRNN", "8", "-", "diverged", "-", "-"],
        ["AdamRNN, learning rate", "-", "-", "1e-05", "-", "-"],
        ["SimpleRNN, paper", "8", "5.37", "0.0144", "0.053", "-"],
    ]
    (axes,) = figures["table5.png"].axes
    assert "0.995M has the least error, 1.25" in figures["table5.png"].get_suptitle()
    _, alone = table5({"runs": runs[:1], "settings": settings})
    assert "0.995M has an error of 1.25" in alone["table5.png"].get_suptitle()
    drawn = [tuple(point) for line in axes.lines for point in line.get_xydata()]
    assert {(0, 7.5), (0, 6.5), (2, 1.25), (3, 3.5), (1, 0.0144)} <= {*drawn}


def test_noise_chooses_no_learning_rate():
    # Where nothing has left chance the largest rate goes on, unless it is thrown back.
    assert chosen_rate({1e-6: 0.0388, 1e-5: 0.0391, 1e-4: 0.0402, 1e-3: 1.2}) == 1e-4
    assert chosen_rate({1e-3: 0.456, 1e-4: 0.170, 1e-5: 0.193}) == 1e-4
    assert chosen_rate({1e-3: math.inf, 1e-4: math.inf}) == 1e-3
    assert chosen_rate({1e-3: None}) == 1e-3
    runs = [
        {
            **finished(f"SimpleRNN 0 at {rate:g}", rate, 1),
            "diverged": loss is None,
            "curve": [{"validation_loss": loss}] if loss else [],
        }
        for rate, loss in {1e-4: 0.39, 1e-3: 0.4, 1e-2: None}.items()
    ]
    for run in runs:
        run["setup"]["epochs"] = 1
    assert "| SimpleRNN 0 | inf | **0.400** | 0.390 |" in pilot_table({"runs": runs})[0]
    runs[1]["setup"]["epochs"] = 2  # it may still be thrown back
    assert "| SimpleRNN 0 | inf | 0.400 | **0.390** |" in pilot_table({"runs": runs})[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--momenta", "1"], r"--momenta: must lie in \[0, 1\). Received: \[1.0\]"),
        (["--updates=7"], "--updates: must be a multiple of --every, 2. Received: 7"),
        (["--layers", "LSTM"], "--layers: invalid choice: 'LSTM'"),
        (["--beside", "DTRIV"], "--beside: invalid choice: 'DTRIV'"),
        (["--pilot=1000"], r"--pilot: must exceed 1000, the updates with momentum 0.9"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit):
        long_dependencies.parse(["adding", *TINY, *arguments])
    assert re.search(message, " ".join(capsys.readouterr().err.split()))
