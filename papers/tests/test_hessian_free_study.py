"""Hessian-free optimisation beside NAG: equal time, resuming, the report; Figure 5."""

import dataclasses
import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest
from harness import array

from papers import tasks
from papers.experiments import runner
from papers.sutskever import cg_beside_nag, hessian_free
from papers.sutskever.hessian_free_report import last_score, report_of, seconds_to


@pytest.fixture
def small(monkeypatch):
    """Two methods on short sequences, with a clock that counts how often it is read."""
    few = {
        "HF": hessian_free.Method(hessian_free.hf_of_2010, 8),
        "NAG": hessian_free.Method(
            lambda rate: hessian_free.nesterov(rate, 0.5), 4, (0.01, 0.001), 2
        ),
    }
    monkeypatch.setitem(hessian_free.METHODS, "adding", few)
    monkeypatch.setattr(hessian_free, "STEPS", 20)
    monkeypatch.setattr(hessian_free, "UNITS", 3)
    ticks = itertools.count()
    clock = SimpleNamespace(
        process_time=lambda: 0.2 * next(ticks), perf_counter=time.perf_counter
    )
    monkeypatch.setattr(hessian_free, "time", clock)
    return few


def test_adding_goes_on_after_a_kill_and_counts_what_it_took(small, tmp_path, monkeypatch):
    command = ["adding", "--seconds=1", "--seeds=1", f"--output={tmp_path}"]
    after, to_next_look = [], hessian_free.to_next_look

    def killed(run, *arguments):
        to_next_look(run, *arguments)
        after.append(run["updates"])
        if len(after) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(hessian_free, "to_next_look", killed)
    with pytest.raises(SystemExit, match="Interrupted"):
        hessian_free.main(command)
    runs = (content := hessian_free.main(command))["runs"]
    assert after[:3] == [1, 2, 2]  # the second look was lost, the first was not
    names = [(run["method"], run["learning_rate"]) for run in runs]
    assert names == [("HF", 1.0), ("NAG", 0.01), ("NAG", 0.001)]
    for run in runs:
        assert 1 <= run["seconds"] < 5 and len(run["curve"]) > 2
        assert run["curve"][0][:2] == [0, 0] and run["curve"][-1][1] == run["updates"]
        products = (run["cg_steps"] + 2 * run["updates"]) * 2 if run["method"] == "HF" else 0
        assert run["rows"] == run["updates"] * small[run["method"]].batch_size + products
    report = (tmp_path / "report.md").read_text()
    assert "| HF | 1 |" in report and "| NAG | 0.001 |" in report
    assert (tmp_path / "curves.png").exists()
    assert ", load average of the machine" in report
    for run in runs:
        del run["load"]  # Windows tells none
    assert "load" not in report_of(content)


def test_a_warm_up_leaves_no_trace(small):
    for run in hessian_free.runs_of("adding", 1)[:2]:
        problem = hessian_free.adding(run, small[run["method"]])
        variables = runner.state_variables(problem.model)
        before = [array(variable).copy() for variable in variables]
        hessian_free.warm_up(problem)
        for variable, value in zip(variables, before):
            np.testing.assert_array_equal(array(variable), value)


def test_looks_at_the_clock_change_no_training(small):
    """Batches and look-ahead go on from one to the next."""
    ends = []
    for updates in (1, 4):
        method = dataclasses.replace(small["NAG"], updates=updates)
        run = hessian_free.runs_of("adding", 1)[1]
        problem = hessian_free.adding(run, method)
        for _ in range(4 // updates):
            hessian_free.to_next_look(run, method, problem, 100)
        ends.append(np.concatenate([w.ravel() for w in problem.model.get_weights()]))
    np.testing.assert_allclose(*ends, atol=1e-6)


def test_outputs_that_are_no_numbers_are_wrong(small):
    problem = hessian_free.adding(hessian_free.runs_of("adding", 1)[0], small["HF"])
    problem.model.set_weights([np.nan * w for w in problem.model.get_weights()])
    assert problem.score() == 1


def test_adding_is_scored_on_test_with_the_tolerance_of_the_paper(small):
    problem = hessian_free.adding(hessian_free.runs_of("adding", 1)[0], small["HF"])
    problem.model.set_weights([0 * w for w in problem.model.get_weights()])
    test = tasks.load("adding", variant="sutskever", steps=20, centered=True).test
    assert problem.score() == pytest.approx(np.mean(np.abs(test.y) > 0.04))


def test_the_report_has_the_last_score_and_the_first_point_that_is_good():
    run = {"diverged": False, "curve": [[0.0, 0, 0.9], [3.0, 5, 0.1], [6.0, 9, 0.3]]}
    assert last_score(run) == 0.3 and last_score({**run, "diverged": True}) == np.inf
    assert (seconds_to(run, 0.1), seconds_to(run, 0.05)) == ("3", "-")


def test_runs_of_a_seed_begin_alike():
    runs = [run for run in hessian_free.runs_of("adding", 2) if run["seed"] == 1]
    problems = [
        hessian_free.adding(run, hessian_free.METHODS["adding"][run["method"]])
        for run in runs[:3]
    ]
    for weights in zip(*(problem.model.get_weights() for problem in problems)):
        for other in weights[1:]:
            np.testing.assert_array_equal(weights[0], other)


def test_the_hybrid_begins_as_the_paper_has_it(monkeypatch):
    method = hessian_free.METHODS["curves"]["HF, hybrid"]
    told = method.optimizer(1.0).get_config()
    assert (told["cg_steps"], told["tolerance"], told["curvature_fraction"]) == (50, None, 1)
    assert told["decay"] == pytest.approx(0.95)
    assert told["backtracking"] is told["line_search"] is False
    monkeypatch.setitem(hessian_free.IMAGES, "curves", 1250)  # no more are read here
    problem = hessian_free.deep({"seed": 0, "learning_rate": 1.0}, method)
    x, _ = problem.batches(0, 1)[0]
    assert len(x) == 1250
    kernel = problem.model.layers[1].kernel
    decay = array(kernel.regularizer(kernel))
    assert decay == pytest.approx(1e-5 * (array(kernel) ** 2).sum(), rel=1e-4)


def test_cg_and_nag_minimise_a_known_quadratic():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(8, 8))
    curvature = (root @ root.T + np.eye(8)).astype("float32")
    gradient = rng.normal(size=8).astype("float32")
    least = -gradient @ np.linalg.solve(curvature, gradient) / 2
    largest = np.linalg.eigvalsh(curvature)[-1]
    values = cg_beside_nag.minimised(curvature, gradient, largest, 300)
    assert min(values["CG"][:12]) == pytest.approx(least, rel=1e-4)  # 8 steps, but for rounding
    nags = [values[name] for name in values if name != "CG"]
    assert len(nags) == 4
    for q in nags:
        assert q[0] == 0 and len(q) == 301
        assert q[-1] == pytest.approx(least, rel=1e-3)
    assert 0 < cg_beside_nag.steps_of_cg(values) <= 12


def test_figure_5_of_a_small_autoencoder(tmp_path, monkeypatch):
    monkeypatch.setitem(cg_beside_nag.WIDTHS, "curves", (784, 6, 2))
    monkeypatch.setitem(cg_beside_nag.IMAGES, "curves", 60)
    arguments = ["--updates=2", "--steps=30", "--images=20", f"--output={tmp_path}"]
    results = cg_beside_nag.main(arguments)
    best, *nags = map(np.array, results["values"].values())
    assert (tmp_path / "figure5.png").exists()
    for q in nags:  # no step of a first-order method is below CG's, but for rounding
        steps = min(len(q), len(best))
        assert q[-1] < 0 and (q[:steps] >= best[:steps] - 2e-3 * abs(best[-1])).all()
