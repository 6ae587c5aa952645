"""Rotations from skew-symmetric matrices, and the initializers of these."""

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close
from keras import ops

pytest.importorskip("scipy", reason="rotations are compared with its own")

from scipy import linalg
from scipy.stats import kstest

from keras_momentum_rnn import AdamLSTM, rotations
from keras_momentum_rnn.initializers import CayleySkew, ForgetGateBias, HenaffSkew

INITIALIZERS = [HenaffSkew, CayleySkew]


def skew_of(packed):
    """The matrix of packed numbers, in NumPy."""
    units = round((1 + np.sqrt(1 + 8 * len(packed))) / 2)
    matrix = np.zeros((units, units))
    matrix[np.triu_indices(units, 1)] = packed
    return matrix - matrix.T


def drawn(initializer, units):
    return skew_of(array(initializer((units * (units - 1) // 2,))).astype("float64"))


def gradient(function, x, cotangent):
    """The gradient of sum(function(x) * cotangent)."""
    x, cotangent = ops.convert_to_tensor(x), ops.convert_to_tensor(cotangent)
    if BACKEND == "jax":
        import jax

        return array(jax.jit(jax.grad(lambda x: ops.sum(function(x) * cotangent)))(x))
    if BACKEND == "tensorflow":
        import tensorflow as tf

        @tf.function(jit_compile=True)
        def compiled(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                value = ops.sum(function(x) * cotangent)
            return tape.gradient(value, x)

        return array(compiled(x))
    x.requires_grad_()
    ops.sum(function(x) * cotangent).backward()
    return array(x.grad)


@pytest.mark.parametrize("units", [1, 2, 5])
def test_packed_numbers_stand_above_the_diagonal_row_by_row(units):
    numbers = np.arange(1, 1 + units * (units - 1) // 2).astype("float32")
    matrix = rotations.unpacked(ops.convert_to_tensor(numbers), units)
    np.testing.assert_array_equal(array(matrix), skew_of(numbers))


FRECHET = {
    "expm": lambda s, e: linalg.expm_frechet(s, e, compute_expm=False),
    "cayley": lambda s, e: (
        -np.linalg.solve(
            np.eye(len(s)) + s,
            e @ (np.eye(len(s)) + np.linalg.solve(np.eye(len(s)) + s, np.eye(len(s)) - s)),
        )
    ),
}


@pytest.mark.parametrize("name", ["expm", "cayley"])
@pytest.mark.parametrize("size", [0.0, 0.1, 3.0, 40.0])
def test_rotation_and_its_gradient_under_a_compiler(name, size):
    """The gradient by S of sum(f(S) * C) is the adjoint of the derivative: f'(S', C)."""
    rng = np.random.default_rng(0)
    s = size / 5 * skew_of(rng.standard_normal(10))
    cotangent = rng.standard_normal((5, 5))
    eye = np.eye(5)
    expected = {
        "expm": lambda: linalg.expm(s),
        "cayley": lambda: np.linalg.solve(eye + s, eye - s),
    }[name]()
    function = rotations.PARAMETRIZATIONS[name]
    actual = array(function(ops.convert_to_tensor(s.astype("float32"))))
    assert_close(actual, expected, tolerance=1e-5)
    actual = gradient(function, s.astype("float32"), cotangent.astype("float32"))
    assert_close(actual, FRECHET[name](s.T, cotangent), tolerance=5e-5)


@pytest.mark.parametrize(
    "name, size", [("expm", 0.0), ("expm", 40.0), ("cayley", 3.0), ("cayley", 1000.0)]
)
def test_rotations_for_files_are_the_same(name, size):
    s = size / 5 * skew_of(np.random.default_rng(0).standard_normal(10))
    s = ops.convert_to_tensor(s.astype("float32"))
    expected = array(rotations.PARAMETRIZATIONS[name](s))
    assert_close(array(rotations.PORTABLE[name](s)), expected, tolerance=2e-4)


def test_scaling_and_squaring_is_exact_in_float64():
    """What TensorFlow runs, on PyTorch too; JAX has float64 behind a flag alone."""
    if BACKEND == "jax":
        pytest.skip("JAX computes in float64 only where a flag says so")
    for size in (0.0, 0.01, 0.49, 1.0, 30.0):
        s = size * skew_of(np.random.default_rng(1).standard_normal(15))
        actual = rotations.scaled_and_squared(ops.convert_to_tensor(s))
        np.testing.assert_allclose(array(actual), linalg.expm(s), atol=2e-13)


def test_newton_schulz_squares_the_error():
    q = linalg.expm(skew_of(np.random.default_rng(0).standard_normal(15)))
    q += 1e-3 * np.random.default_rng(1).standard_normal(q.shape)
    q = array(rotations.nearer_orthogonal(ops.convert_to_tensor(q.astype("float32"))))
    assert np.abs(q.T @ q - np.eye(6)).max() < 2e-5


def test_tensorflow_computes_in_float64_on_a_gpu(monkeypatch):
    """There it would round to TF32: orthogonal to 1e-3 only."""
    if BACKEND != "tensorflow":
        pytest.skip("the other backends can be told to multiply exactly")
    import tensorflow as tf

    monkeypatch.setattr(rotations, "current_device", lambda: "gpu")
    seen = []
    monkeypatch.setitem(
        rotations.PARAMETRIZATIONS, "expm", lambda s: seen.append(s.dtype) or rotations.expm(s)
    )
    skew = ops.convert_to_tensor(skew_of(np.ones(3)).astype("float32"))
    matrix = rotations.rotation(ops.eye(3), skew, "expm")
    assert seen == [tf.float64]
    assert matrix.dtype == tf.float32


@pytest.mark.parametrize("units", [2, 7, 400])
def test_henaff_turns_planes_by_uniform_angles(units):
    matrix = drawn(HenaffSkew(seed=1), units)
    angles = np.diag(matrix, 1)[::2]
    blocks = linalg.block_diag(*[[[0, a], [-a, 0]] for a in angles])
    np.testing.assert_array_equal(matrix[: len(blocks), : len(blocks)], blocks)
    assert not matrix[len(blocks) :].any()  # the last row of odd units
    if units == 400:
        assert kstest(angles, "uniform", (-np.pi, 2 * np.pi)).pvalue > 0.01


def test_cayley_draws_the_numbers_of_uniform_angles_below_a_right_angle():
    matrix = drawn(CayleySkew(seed=1), 400)
    numbers = np.diag(matrix, 1)[::2]
    assert np.count_nonzero(matrix) == 2 * len(numbers) == 400
    angles = -2 * np.arctan(numbers)
    assert kstest(angles, "uniform", (0, np.pi / 2)).pvalue > 0.01
    turned = np.angle(
        linalg.eigvals(np.linalg.solve(np.eye(400) + matrix, np.eye(400) - matrix))
    )
    np.testing.assert_allclose(np.sort(turned[turned > 0]), np.sort(angles), atol=1e-6)


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_one_unit_has_no_numbers(initializer):
    assert array(initializer()((0,))).shape == (0,)


@pytest.mark.parametrize("initializer", INITIALIZERS)
@pytest.mark.parametrize("shape", [(2,), (4,), (3, 3), ()])
def test_shapes_of_no_skew_matrix_are_refused(initializer, shape):
    with pytest.raises(ValueError, match=r"`shape` must be .*Received: shape="):
        initializer()(shape)


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_initializers_follow_keras(initializer):
    shape = (21,)
    one, same, other = (array(initializer(seed=s)(shape)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert one.shape == shape and np.abs(one - other).max() > 0.1
    keras.utils.set_random_seed(3)
    free = initializer()
    np.testing.assert_array_equal(array(free(shape)), array(free(shape)))
    assert np.abs(array(free(shape)) - array(initializer()(shape))).max() > 0.1
    # A copy of an initializer without a seed draws its own; of one with a seed, the same.
    assert free.get_config()["seed"] is None
    again = keras.initializers.get(keras.initializers.serialize(initializer(seed=1)))
    np.testing.assert_array_equal(array(again(shape)), one)
    by_name = keras.initializers.get(f"keras_momentum_rnn>{initializer.__name__}")
    assert type(by_name) is initializer
    half = initializer(seed=1)(shape, dtype="float16")
    assert keras.backend.standardize_dtype(half.dtype) == "float16"
    np.testing.assert_allclose(array(half), one, atol=4e-3)


@pytest.mark.parametrize("seed", ["x", float("nan"), 2.5, True, [1]])
@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_seeds_that_are_no_integers_are_refused(initializer, seed):
    with pytest.raises(
        ValueError, match=r"`seed` must be an integer or None\. Received: seed="
    ):
        initializer(seed=seed)
    assert initializer(seed=np.int64(3)).get_config()["seed"] == 3
    assert array(initializer(seed=np.int64(3))((21,))).any()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.5", None])
def test_a_forget_gate_bias_is_a_finite_number(value):
    with pytest.raises(ValueError, match=r"`value` must be a number.*Received: value="):
        ForgetGateBias(value)


def test_a_forget_gate_bias_starts_both_biases():
    config = keras.initializers.serialize(ForgetGateBias(-4.0))
    options = {"unit_forget_bias": False, "use_recurrent_bias": True}
    cell = AdamLSTM(2, bias_initializer=keras.initializers.get(config), **options).cell
    cell.build((None, 3))
    for bias in (cell.bias, cell.recurrent_bias):
        np.testing.assert_array_equal(array(bias), [0, 0, -4, -4, 0, 0, 0, 0])


def test_a_forget_gate_bias_is_for_all_gates():
    with pytest.raises(ValueError, match=r"unit_forget_bias=False.* Received: bias_init"):
        AdamLSTM(4, bias_initializer=ForgetGateBias(-4.0))
