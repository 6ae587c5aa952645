"""The orthogonal layers: sizes, starts, precision, and how often Q is computed."""

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, gradients, normal, run
from keras import ops
from reference import DTRIV

import keras_momentum_rnn as kmr
from keras_momentum_rnn.cells import orthogonal

POLICIES = ["float32", "mixed_bfloat16", "mixed_float16", "float16"]
PARAMETRIZATIONS = ["expm", "cayley"]
DENSE = keras.initializers.RandomNormal(stddev=1.0, seed=2)


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
@pytest.mark.parametrize("multiplier", [1.0, 0.25])
def test_both_starts_have_the_rotation_that_is_drawn(parametrization, multiplier):
    drawn = array(DENSE((15,)))
    expected = DTRIV(parametrization).orthogonal({"base": np.eye(6), "skew": drawn})
    for start in ("base", "skew"):
        cell = kmr.DTRIVCell(
            6,
            parametrization=parametrization,
            initial_rotation=start,
            recurrent_initializer=DENSE,
            recurrent_lr_multiplier=multiplier,
        )
        cell.build((None, 2))
        assert_close(array(cell.recurrent_matrix()), expected, tolerance=2e-6)
        base, skew = (np.eye(6), drawn) if start == "skew" else (expected, 0 * drawn)
        assert_close(array(cell.base), base, tolerance=2e-6)
        assert_close(array(cell.displacement()), skew, tolerance=1e-6)
        assert_close(array(cell.skew), skew / multiplier, tolerance=1e-6)


def test_other_weights_start_as_in_the_papers_code():
    layer = kmr.DTRIV(400)
    layer.build((None, 5, 50))
    assert layer.cell.bias is None
    assert np.std(array(layer.cell.kernel)) == pytest.approx(np.sqrt(2 / 50), rel=0.05)
    bias = array(layer.cell.modrelu_bias)
    assert -0.01 <= bias.min() < -0.008 and 0.008 < bias.max() <= 0.01


def test_modrelu():
    z, b = np.array([-2, -0.3, 0, 0.3, 2], "float32"), np.float32(-0.5)
    np.testing.assert_allclose(
        array(orthogonal.modrelu(ops.convert_to_tensor(z), b)), [-1.5, 0, 0, 0, 1.5]
    )
    z = ops.convert_to_tensor(np.array([-1, 0, 1], "float32"))
    np.testing.assert_allclose(array(orthogonal.modrelu(z, np.float32(0.5))), [-1.5, 0, 1.5])


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_a_long_product_keeps_the_norm(policy):
    """2,000 steps without input. With Q in bfloat16 h would grow by a quarter and more."""
    layer = kmr.DTRIV(
        16, recurrent_initializer=DENSE, modrelu_bias_initializer="zeros", dtype=policy
    )
    h = normal(np.random.default_rng(0), 3, 16)
    end = run(layer, np.zeros((3, 2000, 1), "float32"), initial_state=h)[0]
    ratio = np.linalg.norm(end, axis=1) / np.linalg.norm(h, axis=1)
    np.testing.assert_allclose(ratio, 1, atol=1e-3 if policy == "float32" else 0.2)
    assert np.abs(end - h).max() > 0.1


@pytest.mark.parametrize("policy", POLICIES)
def test_the_rotation_is_never_in_half_precision(policy, monkeypatch):
    seen = []
    original = orthogonal.rotation

    def recorded(base, skew, *options):
        seen.extend([base, skew, original(base, skew, *options)])
        return seen[-1]

    monkeypatch.setattr(orthogonal, "rotation", recorded)
    layer = kmr.MomentumDTRIV(20, dtype=policy, rebase_every=1, initial_rotation="skew")
    for _ in range(2):
        outputs = layer(np.ones((2, 3, 1), "float32"), training=True)
    assert keras.backend.standardize_dtype(outputs.dtype) == layer.compute_dtype
    stored = [layer.cell.skew, layer.cell.base, layer.cell.skew_origin]
    for value in [*seen, *stored, layer.cell.recurrent_matrix()]:
        assert keras.backend.standardize_dtype(value.dtype) == "float32"
    q = array(layer.cell.recurrent_matrix()).astype("float64")
    assert np.abs(q.T @ q - np.eye(20)).max() < 1e-6


@pytest.mark.parametrize("unroll", [False, True])
def test_the_rotation_is_computed_once_per_call(unroll, monkeypatch):
    calls = []
    original = orthogonal.rotation
    monkeypatch.setattr(
        orthogonal, "rotation", lambda *args: calls.append(args) or original(*args)
    )
    x = np.ones((2, 9, 3), "float32")
    layer = kmr.AdamDTRIV(4, unroll=unroll, initial_rotation="skew")
    layer(x)
    assert len(calls) == 1
    layer(x, training=True)
    assert len(calls) == 2


@pytest.mark.filterwarnings("error:Gradients do not exist")
@pytest.mark.parametrize(
    "units, parametrization", [(1, "expm"), (1, "cayley"), (2, "expm"), (5, "cayley")]
)
def test_small_and_odd_sizes_train(units, parametrization):
    layer = kmr.MomentumDTRIV(
        units, parametrization=parametrization, rebase_every=1, unroll=True
    )
    model = keras.Sequential([keras.Input((3, 2)), layer])
    optimizer = keras.optimizers.Adam(0.1, clipnorm=1.0)
    model.compile(optimizer, "mse", jit_compile=BACKEND == "jax")
    before = array(layer.cell.recurrent_matrix())
    x = normal(np.random.default_rng(0), 8, 3, 2)
    model.fit(x, x[:, -1, :1] + np.zeros((8, units)), epochs=3, verbose=0)
    q = array(layer.cell.recurrent_matrix())
    assert_close(q.T @ q, np.eye(units), tolerance=1e-6)
    assert (np.abs(q - before).max() > 1e-3) == (units > 1)


@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_a_gradient_by_the_skew_part_exists_at_zero(parametrization):
    """Where it starts, and is after every change of base: S = 0 is no special point."""
    layer = kmr.DTRIV(4, parametrization=parametrization)
    x = normal(np.random.default_rng(0), 2, 5, 3)
    layer.build(x.shape)
    assert not array(layer.cell.skew).any()
    by_all = gradients(layer, x, [np.ones((2, 4), "float32")])
    assert np.abs(by_all["skew"]).min() > 1e-4


def test_time_distributed_counts_its_calls():
    layer = kmr.DTRIV(3, rebase_every=2)
    model = keras.Sequential(
        [keras.Input((2, 4, 1)), keras.layers.TimeDistributed(layer), keras.layers.Flatten()]
    )
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2, 4, 1)), np.ones((4, 6)), batch_size=2, epochs=2, verbose=0)
    q = array(layer.cell.recurrent_matrix())
    assert_close(q.T @ q, np.eye(3), tolerance=1e-6)
    assert np.abs(array(layer.cell.skew_origin)).max() > 0  # the base has moved


def test_a_call_that_changes_the_base_is_not_repeated():
    """PyTorch would count it twice, and then fail in the backward pass."""
    with keras.RematScope("full"):
        layer, other = kmr.MomentumDTRIV(4, rebase_every=2, name="mine"), kmr.DTRIV(4)
    x = normal(np.random.default_rng(0), 2, 5, 3)
    with pytest.raises(ValueError, match=r"'mine' changes .*Received: rebase_every=2"):
        layer(x, training=True)
    assert array(layer.cell.calls_at_base) == 0
    if BACKEND != "jax":  # whose `checkpoint` traces `training`, in layers of Keras too
        assert array(layer(x)).shape == array(other(x, training=True)).shape == (2, 4)
        layer.trainable = False  # so its base stays
        assert array(layer(x, training=True)).shape == (2, 4)
