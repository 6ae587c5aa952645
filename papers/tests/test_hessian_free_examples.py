"""The examples of Hessian-free optimisation, small; their committed results, and the page."""

import itertools
import json
import re
import time
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from speed import slow_if_compiled

pytest.importorskip("matplotlib", reason="the examples need it")
pytest.importorskip("rich", reason="the examples need it")

from keras_momentum_rnn.optimizers import HessianFree
from papers import cg_beside_nag, hessian_free, hessian_free_report, hybrid_phases
from papers.experiments.report import notes

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "papers" / "results"
PAGE = ROOT / "docs" / "hessian_free.md"
committed = pytest.mark.skipif(
    not (PAGE.exists() and RESULTS.exists()), reason="only a checkout has docs and results"
)


@pytest.mark.slow
def test_adding_resumes_and_reports(tmp_path, monkeypatch):
    few = {
        "HF": hessian_free.Method(hessian_free.classical_hf, 8),
        "NAG": hessian_free.Method(
            lambda rate: hessian_free.nesterov(rate, 0.5), 4, (0.01, 0.001), 2
        ),
    }
    monkeypatch.setattr(hessian_free, "methods_of", lambda task: few)
    # A clock that counts how often it is read, so that no machine is too slow.
    ticks = itertools.count()
    clock = SimpleNamespace(
        process_time=lambda: 0.2 * next(ticks), perf_counter=time.perf_counter
    )
    monkeypatch.setattr(hessian_free, "time", clock)
    command = ["adding", "--seconds=1", "--seeds=1", "--steps=20", "--units=3"]
    command.append(f"--output={tmp_path}")

    class Killed(Exception):
        pass

    after = []

    def killed(run, *arguments):
        to_next_look(run, *arguments)
        after.append(run["updates"])
        if len(after) == 2:
            raise Killed

    to_next_look = hessian_free.to_next_look
    monkeypatch.setattr(hessian_free, "to_next_look", killed)
    with pytest.raises(Killed):
        hessian_free.main(command)
    hessian_free.main(command)
    assert after[:3] == [1, 2, 2]  # the second look was lost, the first was not
    results = json.loads((tmp_path / "results.json").read_text())
    assert [(run["method"], run["learning_rate"]) for run in results["runs"]] == [
        ("HF", 1.0), ("NAG", 0.01), ("NAG", 0.001)
    ]  # fmt: skip
    for run in results["runs"]:
        assert 1 <= run["seconds"] < 5 and len(run["curve"]) > 2
        assert run["curve"][0][:2] == [0, 0] and run["curve"][-1][1] == run["updates"]
        batch = few[run["method"]].batch_size
        products = run["cg_steps"] * 2 if run["method"] == "HF" else 0
        assert run["rows"] == run["updates"] * batch + products
    report = (tmp_path / "report.md").read_text()
    assert "| HF | 1 |" in report and "| NAG | 0.001 |" in report
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_methods_are_refused(capsys):
    with pytest.raises(SystemExit):
        hessian_free.parse(["curves", "--methods", "Adam"])
    assert "must be of ['HF, hybrid', 'HF, 2010', 'NAG']" in capsys.readouterr().err


def test_runs_of_a_seed_begin_alike():
    options = hessian_free.parse(["adding", "--steps=20", "--units=4"])
    runs = [run for run in hessian_free.runs_of(options) if run["seed"] == 1]
    starts = []
    for run in runs[:3]:
        method = hessian_free.methods_of("adding")[run["method"]]
        starts.append(hessian_free.Adding(options, run, method).model.get_weights())
    for one, other, third in zip(*starts):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


@slow_if_compiled
def test_figure_5_small(tmp_path, monkeypatch):
    images = hessian_free.curves(60)
    monkeypatch.setattr(cg_beside_nag, "all_curves", lambda: images)
    monkeypatch.setattr(cg_beside_nag, "WIDTHS", {"curves": (784, 6, 2)})
    arguments = ["--updates=2", "--steps=30", "--images=20", f"--output={tmp_path}"]
    cg_beside_nag.main(arguments)
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results) == {"command", "settings", "quadratic", "values"}
    cg, *nag = (np.array(q) for q in results["values"].values())
    assert len(cg) == 31 and len(nag) == 4
    assert (np.diff(cg) <= 1e-3 * abs(cg[-1])).all()
    # The best of any first-order method: no step of NAG is below CG's, but for rounding.
    for q in nag:
        assert q[0] == 0 and q[-1] < 0
        assert (q >= cg - 2e-3 * abs(cg[-1])).all()
    assert (tmp_path / "figure5.png").read_bytes().startswith(b"\x89PNG")


def test_the_title_of_figure_5_forgives_rounding():
    """A processor's rounding may bring NAG below all that CG reaches."""
    results = {"settings": {"updates": 2}}
    for end in (-2.9, -3.0, -3.001):
        values = {"CG": [0.0, -2.0, -3.0, -2.9999], "NAG": [0.0, -1.0, -2.0, end]}
        steps = cg_beside_nag.title(values, "NAG", results)
        assert steps == "After 2 updates of HF: CG needs 2 steps for what NAG reaches in 3"


# The recipe of appendix A.6


def test_the_recipe_is_that_of_the_paper():
    first, second, third, last = hybrid_phases.HYBRID["curves"]
    assert (first.updates, first.batch_size(20_000), first.decay) == (5000, 1250, 0.95)
    assert second.updates is None and second.decay == 0.999 and second.error == 0.094
    assert (third.updates, third.batch_size(20_000), third.error) == (500, 20_000, 0.087)
    assert (last.updates, last.l2, last.error) == (2500, 0.0, 0.058)
    first, second, last = hybrid_phases.HYBRID["mnist"]
    assert (first.updates, second.updates, last.updates) == (500, 4500, 2500)
    assert first.batch_size(60_000) == 3000 and last.batch_size(60_000) == 60_000
    assert {phase.l2 for phase in (first, second, last)} == {1e-5}  # it stays


def test_annealed_rates_begin_at_a_half_and_never_exceed_1():
    for phases in hybrid_phases.HYBRID.values():
        rate, begin = phases[1].learning_rate, phases[0].updates
        assert float(rate(begin)) == pytest.approx(0.5)
        assert [float(rate(t)) for t in (0, 1, rate.start + 1)] == [1, 1, 1]
        assert float(rate(begin + 1000)) == pytest.approx(
            rate.numerator / (begin + 1000 - rate.start)
        )
        again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(rate))
        assert float(again(begin)) == pytest.approx(0.5)


def test_a_phase_makes_its_optimizer():
    last = hybrid_phases.HYBRID["mnist"][-1]
    optimizer = last.optimizer(damping=2.0)
    assert type(optimizer) is HessianFree
    told = optimizer.get_config()
    assert (told["cg_steps"], told["tolerance"], told["damping"]) == (50, None, 2.0)
    assert told["decay"] == pytest.approx(0.995)
    assert told["curvature_fraction"] == pytest.approx(1 / 20)
    assert told["backtracking"] is told["line_search"] is False


def test_the_recipe_of_curves_takes_80_times_nags_products():
    assert hybrid_phases.row_products("curves") == 12_312_500_000
    assert hybrid_phases.times_nag("curves") == pytest.approx(82.1, abs=0.05)


# What is committed


@committed
@pytest.mark.parametrize("task", ["adding", "curves"])
def test_reports_are_those_of_the_committed_results(task):
    folder = RESULTS / "hessian_free" / task
    content = json.loads((folder / "results.json").read_text())
    report = hessian_free_report.report_of(content, notes(folder))
    assert report == (folder / "report.md").read_text()
    assert (folder / "curves.png").exists()
    seeds = {run["seed"] for run in content["runs"]}
    assert seeds == ({0, 1, 2} if task == "adding" else {0})
    assert all(run["seconds"] >= content["settings"]["seconds"] for run in content["runs"])


@committed
def test_numbers_of_the_page():
    text = PAGE.read_text()
    tables = re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE)
    for task, table in zip(("adding", "curves"), tables[-2:]):
        content = json.loads((RESULTS / "hessian_free" / task / "results.json").read_text())
        assert table.strip() == hessian_free_report.score_table(
            hessian_free_report.rows_of(content), task
        )
    figure = json.loads((RESULTS / "cg_beside_nag" / "results.json").read_text())
    best = min((q[-1], name) for name, q in figure["values"].items() if name != "CG")
    sooner = next(i for i, q in enumerate(figure["values"]["CG"]) if q <= best[0])
    assert f"CG needs {sooner} steps for what NAG reaches in 120" in text
