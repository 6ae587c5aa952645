"""Models train with fit on every backend; a compiled step is traced once."""

import keras
import numpy as np
import pytest
from cases import REPRESENTATIVES as CASES
from harness import BACKEND, array, assert_close, normal, randomise, run

RNG = np.random.default_rng(0)
X = normal(RNG, 32, 8, 3)
Y = np.tanh(X.sum(axis=(1, 2)))[:, None]

pytestmark = [pytest.mark.parametrize("case", CASES), pytest.mark.keras_nightly]


def model_of(case, **options):
    return keras.Sequential(
        [keras.Input((None, 3)), case.layer(8, **options), keras.layers.Dense(1)]
    )


def test_loss_falls(case):
    model = model_of(case, dropout=0.05)
    model.compile(keras.optimizers.Adam(0.02), "mse")
    losses = model.fit(X, Y, batch_size=16, epochs=12, verbose=0).history["loss"]
    assert np.all(np.isfinite(losses))
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch traces nothing")
def test_training_step_is_traced_once(case):
    model = model_of(case)
    model.compile("adam", "mse")
    kind, traced = type(model.layers[0]), []
    original = kind.call

    def counting(self, *args, **kwargs):
        traced.append(1)
        return original(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "call", counting)
        model.train_on_batch(X, Y)
        once = len(traced)
        for _ in range(4):
            model.train_on_batch(X, Y)
    assert once > 0
    assert len(traced) == once


@pytest.mark.skipif(BACKEND == "torch", reason="Keras compiles no PyTorch model by default")
@pytest.mark.parametrize(
    "options",
    [{}, {"dropout": 0.2, "recurrent_dropout": 0.2}, {"go_backwards": True}, {"unroll": True}],
    ids=["plain", "dropout", "backwards", "unroll"],
)
def test_jit_compile(case, options):
    model = keras.Sequential(
        [keras.Input((8, 3)), case.layer(8, **options), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse", jit_compile=True)
    losses = model.fit(X, Y, epochs=3, verbose=0).history["loss"]
    assert np.all(np.isfinite(losses))
    eager = run(model.layers[0], X)[0]
    kernel, bias = (array(w) for w in model.layers[1].weights)
    assert_close(model.predict(X, verbose=0), eager @ kernel + bias, tolerance=1e-5)


def test_dropout_acts_in_training_only_and_follows_its_seed(case):
    one, same, other = (case.layer(8, dropout=0.5, seed=s) for s in (1, 1, 100))
    one.build(X.shape)
    randomise(one, RNG)
    for layer in (same, other):
        layer.build(X.shape)
        layer.set_weights(one.get_weights())
    # Keras draws masks at every call, used or not: equal seeds need equal calls.
    assert_close(run(one, X)[0], run(other, X)[0], tolerance=1e-6)
    assert_close(run(one, X)[0], run(same, X)[0], tolerance=1e-6)
    run(same, X)
    twin = case.keras_layer(8, dropout=0.5, seed=1)
    for _ in range(2):
        run(twin, X)
    seeds = (array(layer.cell.seed_generator.state) for layer in (one, twin))
    np.testing.assert_array_equal(*seeds)
    trained = run(one, X, training=True)[0]
    assert_close(run(same, X, training=True)[0], trained, tolerance=1e-6)
    assert np.abs(run(other, X, training=True)[0] - trained).max() > 1e-2
    assert np.abs(run(one, X, training=True)[0] - trained).max() > 1e-2
    dropping_h = case.layer(8, recurrent_dropout=0.5, seed=1)
    first, second = (run(dropping_h, X, training=True)[0] for _ in range(2))
    assert np.abs(first - second).max() > 1e-3


def test_a_frozen_layer_trains_nothing(case):
    model = model_of(case, trainable=False)
    assert len(model.trainable_variables) == 2  # of Dense
    model.layers[0].trainable = True
    assert len(model.trainable_variables) == len(model_of(case).trainable_variables)
