"""Conjugate gradients and the searches after them, beside NumPy."""

import numpy as np
import pytest
from harness import array
from keras import ops

from keras_momentum_rnn.optimizers import conjugate_gradients as cg

RNG = np.random.default_rng(0)


def tensor(values):
    return ops.convert_to_tensor(np.asarray(values, "float32"))


def system(size, condition=100.0):
    """Return a symmetric positive definite matrix and a vector."""
    rng = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(rng.normal(size=(size, size)))
    curvatures = np.geomspace(1, 1 / condition, size)
    return (rotation * curvatures) @ rotation.T, rng.normal(size=size)


def solve(a, b, start, steps, **options):
    matrix = tensor(a)
    a, b = np.asarray(a), np.asarray(b)
    results = cg.conjugate_gradients(
        lambda v: ops.matmul(matrix, v), tensor(b), tensor(start), steps, **options
    )
    x, iterates, last, count, values = map(array, results)
    # q of where it started, and then of every step.
    for place, at in ((0, np.asarray(start)), (int(count), x.astype("float64"))):
        q = at @ a @ at / 2 - b @ at
        assert not np.isfinite(q) or values[place] == pytest.approx(q, rel=1e-4, abs=1e-4)
    return x, iterates, last, count


def textbook(a, b, x, steps):
    """Return all iterates in float64."""
    r = b - a @ x
    p, iterates = r, [x]
    for _ in range(steps):
        ap = a @ p
        rate = r @ r / (p @ ap)
        x, new = x + rate * p, r - rate * ap
        p, r = new + new @ new / (r @ r) * p, new
        iterates.append(x)
    return iterates


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("hot", [False, True])
def test_iterates_are_those_of_the_textbook(steps, hot):
    a, b = system(12)
    start = 0.3 * RNG.normal(size=12) * hot
    x, iterates, last, count = solve(a, b, start, steps, keep=True)
    expected = textbook(a, b, start, steps)
    np.testing.assert_allclose(x, expected[steps], rtol=1e-4, atol=1e-3)
    assert count == steps
    marks = cg.kept_steps(steps)
    assert last == len(marks) - 1
    np.testing.assert_allclose(
        iterates, [expected[mark] for mark in marks], rtol=1e-4, atol=1e-3
    )


def test_marks_are_the_powers_and_the_end():
    assert cg.kept_steps(1) == [1]
    assert cg.kept_steps(10) == [1, 2, 3, 4, 5, 7, 9, 10]


def test_a_solution_is_no_place_to_go_on_from():
    """With r = 0, p'Ap is 0: no step is taken, and nothing becomes NaN."""
    x, _, last, count = solve(np.eye(3), np.ones(3), np.ones(3), 5, keep=True)
    assert count == 0 and last == 0
    np.testing.assert_array_equal(x, np.ones(3))


def test_it_stops_at_negative_curvature():
    a = np.diag([1.0, 2.0, -3.0])
    x, iterates, last, count = solve(a, [1.0, 1.0, 0.1], np.zeros(3), 10, keep=True)
    assert 1 <= count < 3
    np.testing.assert_allclose(x, iterates[last])
    x, _, _, count = solve(-np.eye(2), np.ones(2), [0.5, 0.25], 10)
    assert count == 0
    np.testing.assert_allclose(x, [0.5, 0.25])


def test_it_stops_before_what_is_not_finite():
    """The product overflows where p, after one step, has its third entry."""
    a = np.diag([1.0, 2.0, 3e38])
    x, _, _, count = solve(a, [1.0, 1.0, 1e-30], np.zeros(3), 10)
    assert np.isfinite(x).all() and count < 10
    x, _, _, count = solve(np.full((2, 2), np.nan), np.ones(2), np.ones(2), 10)
    assert count == 0 and (x == 1).all()


def slow_system(size):
    """Return a diagonal system on which progress becomes slow."""
    a = np.geomspace(1, 1e-6, size)
    return np.diag(a), np.random.default_rng(0).normal(size=size) * np.sqrt(a)


@pytest.mark.parametrize(
    "tolerance, made",
    [(5e-4, system(200, 1e4)), (1e-2, system(200, 1e4)), (3.1e-4, slow_system(400))],
    ids=["small", "large", "late"],
)
def test_it_stops_where_progress_is_small(tolerance, made):
    (a, b), size = made, len(made[1])
    _, _, _, count = solve(a, b, np.zeros(size), size, tolerance=tolerance)
    matrix = tensor(a)
    whole = cg.conjugate_gradients(
        lambda v: ops.matmul(matrix, v), tensor(b), tensor(np.zeros(size)), size
    )
    values = array(whole.values).astype("float64")

    def stops(window):
        of = ((i, window(i)) for i in range(1, size + 1))
        return next(
            i for i, k in of if i > k and values[i] - values[i - k] > k * tolerance * values[i]
        )

    expected = stops(lambda i: max(10, int(0.1 * i)))
    assert 12 < expected < size
    assert abs(int(count) - expected) <= 1  # rounding
    # Late, a window of 10 steps would stop sooner.
    assert (expected - stops(lambda i: 10) > 3) == (size == 400)


def back(values, last=None):
    """Go back over iterates that are numbers, whose objective is looked up."""
    table = tensor(values)

    def objective(x):
        return ops.take(table, ops.cast(x[0], "int32"))

    last = len(values) - 1 if last is None else last
    iterates = tensor(np.arange(len(values))[:, None])
    x, value = cg.backtracked(objective, iterates, ops.convert_to_tensor(last, "int32"))
    return int(array(x)[0]), float(value)


def test_it_goes_back_while_the_objective_falls():
    assert back([1.0, 5.0, 2.0, 3.0, 4.0]) == (2, 2.0)
    assert back([1.0, 2.0, 3.0]) == (0, 1.0)
    assert back([3.0, 2.0, 1.0]) == (2, 1.0)
    assert back([3.0, 2.0, 1.0, 0.0], last=2) == (2, 1.0)
    assert back([4.0]) == (0, 4.0)


def test_it_goes_back_from_what_is_not_finite():
    assert back([1.0, 5.0, 2.0, np.inf, np.nan]) == (2, 2.0)


def test_line_search_wants_a_hundredth_of_what_the_slope_promises():
    def objective(rate):
        return (rate - 0.3) ** 2

    def searched(first):
        rate = cg.line_search(
            objective, tensor(first), objective(tensor(first)), tensor(0.09), tensor(-0.6)
        )
        return float(rate)

    # Good below 0.594: 0.6 * 0.99.
    assert searched(0.5) == 0.5
    assert searched(1.0) == pytest.approx(0.8**3)
    assert searched(0.59) == pytest.approx(0.59)
    assert searched(0.598) == pytest.approx(0.598 * 0.8)


def test_line_search_shrinks_what_is_not_finite():
    def objective(rate):
        return ops.where(rate > 0.5, tensor(np.nan), -rate)

    rate = cg.line_search(objective, tensor(1.0), tensor(np.nan), tensor(0.0), tensor(-1.0))
    assert float(rate) == pytest.approx(0.8**4)
    never = cg.line_search(objective, tensor(0.1), tensor(-0.1), tensor(np.nan), tensor(-1.0))
    assert float(never) == 0


def test_line_search_takes_no_step_uphill():
    rate = cg.line_search(
        lambda rate: 0.005 * rate, tensor(1.0), tensor(0.005), tensor(0.0), tensor(1.0)
    )
    assert float(rate) == 0
