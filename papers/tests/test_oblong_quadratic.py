"""The example `oblong_quadratic.py`: its paths are the closed form of the recurrence."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "papers"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from papers import oblong_quadratic

    yield oblong_quadratic
    sys.modules.pop("oblong_quadratic")


def closed_form(start, shrink, momentum, updates):
    """Powers of the matrix of (w, v) where w' = w + v', v' = momentum v - (1 - shrink) w."""
    step = np.array([[shrink, momentum], [shrink - 1, momentum]])
    return [
        start * np.linalg.matrix_power(step, updates)[0, 0] for updates in range(updates + 1)
    ]


def test_paths_and_what_the_figure_shows(example, tmp_path):
    arguments = ["--curvature=50", "--learning-rate=0.016", "--updates=30", "--momentum=0.85"]
    example.main([*arguments, f"--output={tmp_path}"])
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results) == {"command", "settings", "summary", "paths"}
    assert (tmp_path / "trajectories.png").read_bytes().startswith(b"\x89PNG")
    for direction, curvature in enumerate([1, 50]):
        shrink = 1 - 0.016 * curvature
        momenta = {
            "gradient descent": 0,
            "classical momentum": 0.85,
            "Nesterov's momentum": 0.85 * shrink,  # Theorem 2.1
        }
        for method, momentum in momenta.items():
            path = np.array(results["paths"][method])[:, direction]
            expected = closed_form(example.START[direction], shrink, momentum, 30)
            np.testing.assert_allclose(path, expected, atol=5e-6)
    descent, classical, nesterov = results["summary"]
    assert descent["travel"] == pytest.approx(1)
    assert nesterov["travel"] < 1.5 < 5 < classical["travel"]
    assert max(nesterov["distance"], classical["distance"]) < descent["distance"] / 2


def test_momentum_of_1_is_refused(example, capsys):
    with pytest.raises(SystemExit):
        example.parse(["--momentum=1"])
    assert "must lie in (0, 1). Received: 1.0" in capsys.readouterr().err
