"""What layers keep to where no oracle is at hand: dropout in a memory, dtypes, silence."""

import keras
import numpy as np
import pytest
from harness import array, assert_close, normal, randomise, results_and_gradients
from keras import ops

import keras_momentum_rnn as kmr

BATCH, TIME, FEATURES, UNITS = 3, 7, 3, 4
X = normal(np.random.default_rng(0), BATCH, TIME, FEATURES)


@pytest.mark.parametrize(
    "layer_class, memory_class, rate, of_input",
    [
        (kmr.MCRM, keras.layers.GRUCell, 0.0, 0.3),
        (kmr.MCRM, keras.layers.GRUCell, 0.0, 0.0),
        (kmr.NestedLSTM, keras.layers.LSTMCell, 0.2, 0.3),
    ],
)
def test_a_memory_with_dropout_trains(layer_class, memory_class, rate, of_input):
    memory = memory_class(UNITS, dropout=of_input, recurrent_dropout=0.3, seed=5)
    layer = layer_class(UNITS, memory=memory, dropout=rate, recurrent_dropout=rate, seed=6)
    model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    before = [array(weight).copy() for weight in layer.trainable_weights]
    assert np.isfinite(model.train_on_batch(X, np.ones((BATCH, UNITS))))
    for weight, old in zip(layer.trainable_weights, before, strict=True):
        assert np.isfinite(array(weight)).all() and np.abs(array(weight) - old).max() > 1e-6
    # Masks of one batch do not outlive its call: another batch has its own, of its own size.
    assert np.isfinite(model.train_on_batch(X[:2], np.ones((2, UNITS))))
    assert np.abs(array(layer(X, training=True)) - array(layer(X, training=True))).max() > 1e-3


@pytest.mark.parametrize(
    "name", ["MomentumLSTM", "AdamLSTM", "SRGRU", "SRLSTM", "ReleasedSRLSTM"]
)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float32"])
def test_a_bare_cell_keeps_the_dtypes_of_its_states(name, policy):
    cell = getattr(kmr.cells, f"{name}Cell")(UNITS, dtype=policy)
    states = [ops.zeros((BATCH, size), cell.compute_dtype) for size in cell.state_size]
    for _ in range(2):
        output, states = cell(X[:, 0], states)
        dtypes = {keras.backend.standardize_dtype(x.dtype) for x in (output, *states)}
        assert dtypes == {cell.compute_dtype}


@pytest.mark.parametrize("name", ["MomentumLSTM", "MomentumGRU", "MomentumRNN"])
@pytest.mark.filterwarnings("ignore:With `momentum` of 1 or more")
def test_the_velocity_past_a_samples_end_is_silent(name):
    """At momentum 1.2 it grows to 10^15 there, more than saturates any gate."""
    lengths, time = [5, 3], 200
    x = normal(np.random.default_rng(1), 2, time, FEATURES)
    mask = np.arange(time) < np.array(lengths)[:, None]
    options = {"momentum": 1.2, "return_sequences": True, "return_state": True}
    layer = getattr(kmr, name)(UNITS, **options)
    layer.build(x.shape)
    randomise(layer, np.random.default_rng(3))
    rng = np.random.default_rng(2)
    cotangents = [np.zeros((2, time, UNITS), "float32")]
    cotangents += [normal(rng, 2, size) for size in layer.state_size]

    short = slice(max(lengths))
    expected, by_name = results_and_gradients(
        layer, x[:, short], [cotangents[0][:, short], *cotangents[1:]], mask=mask[:, short]
    )
    padded, by_padded = results_and_gradients(layer, x, cotangents, mask=mask)
    assert_close(padded[0][:, short], expected[0])
    for actual, state in zip(padded[1:], expected[1:], strict=True):
        assert_close(actual, state)
    assert not by_padded["x"][~mask].any()
    by_padded["x"] = by_padded["x"][:, short]
    for weight, gradient in by_name.items():
        assert_close(by_padded[weight], gradient)
