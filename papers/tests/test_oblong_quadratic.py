"""Figure 2 of Sutskever et al. (2013): its paths are the closed form of the recurrence."""

import numpy as np
import pytest

from papers.sutskever import oblong_quadratic


def closed_form(start, shrink, momentum, updates):
    """Powers of the matrix of (w, v) where w' = w + v', v' = momentum v - (1 - shrink) w."""
    step = np.array([[shrink, momentum], [shrink - 1, momentum]])
    return [start * np.linalg.matrix_power(step, n)[0, 0] for n in range(updates + 1)]


def test_paths_are_the_closed_form(tmp_path):
    arguments = ["--curvature=50", "--learning-rate=0.016", "--updates=30", "--momentum=0.85"]
    results = oblong_quadratic.main([*arguments, f"--output={tmp_path}"])
    assert (tmp_path / "results.json").exists() and (tmp_path / "trajectories.png").exists()
    for direction, curvature in enumerate([1, 50]):
        shrink = 1 - 0.016 * curvature
        momenta = {
            "gradient descent": 0,
            "classical momentum": 0.85,
            "Nesterov's momentum": 0.85 * shrink,  # Theorem 2.1
        }
        for method, momentum in momenta.items():
            path = np.array(results["paths"][method])[:, direction]
            expected = closed_form(oblong_quadratic.START[direction], shrink, momentum, 30)
            np.testing.assert_allclose(path, expected, atol=5e-6)
    descent, classical, nesterov = results["summary"]
    assert descent["travel"] == pytest.approx(1)
    assert nesterov["travel"] < 1.5 < 5 < classical["travel"]
