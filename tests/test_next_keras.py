"""One layer of each family builds, trains, saves and loads, on whatever Keras is installed.

The checks run it with keras-nightly, too: what the next Keras breaks shows before its release.
"""

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, normal, randomise, run
from speed import COMPILES, slow_unless

import keras_momentum_rnn as kmr
from keras_momentum_rnn.layers.registry import ready_layers

pytestmark = pytest.mark.keras_nightly

X = normal(np.random.default_rng(0), 8, 6, 3)
REPRESENTATIVES = {
    "LSTM": kmr.AdamLSTM,
    "RNN": kmr.SRRNN,
    "GRU": kmr.MomentumGRU,
    "DTRIV": kmr.NAGDTRIV,
    "nested": kmr.MCRM,
}


@pytest.mark.parametrize(
    "family", [slow_unless(not COMPILES or name == "GRU", name) for name in REPRESENTATIVES]
)
def test_each_family_trains_saves_and_loads(family, tmp_path):
    layer = REPRESENTATIVES[family]
    assert layer.family == family
    model = keras.Sequential(
        [
            keras.Input((None, 3)),
            keras.layers.Bidirectional(layer(4, return_sequences=True, dropout=0.1)),
            layer(4),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    before = [array(w) for w in model.trainable_weights]
    model.fit(X, np.ones((8, 1)), verbose=0)
    assert all((array(w) != b).any() for w, b in zip(model.trainable_weights, before))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_close(loaded.predict(X, verbose=0), model.predict(X, verbose=0), 1e-6)


@pytest.mark.parametrize("family", REPRESENTATIVES)
def test_each_family_takes_its_path_and_equals_the_steps(family):
    fast, step = (REPRESENTATIVES[family](4) for _ in range(2))
    for layer in (fast, step):
        layer.build(X.shape)
    randomise(fast, np.random.default_rng(1))
    step.set_weights(fast.get_weights())
    step.use_cudnn = False
    if BACKEND == "torch":
        assert fast.plan().path in ("fused", "custom_gradient")
    assert_close(run(fast, X)[0], run(step, X)[0], 1e-5)


def test_every_layer_is_made_and_made_again():
    for name, layer in ready_layers().items():
        made = layer(4)
        again = layer.from_config(made.get_config())
        assert again.get_config() == made.get_config(), name
