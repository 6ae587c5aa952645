"""Layers in Keras's wrappers and models, cells in Keras's RNN."""

from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
from cases import REPRESENTATIVES as CASES
from harness import BACKEND, array, assert_close, named_weights, normal, randomise, run
from masks import MASKS

import keras_momentum_rnn as kmr

BATCH, TIME, FEATURES, UNITS = 3, 6, 3, 4
X = normal(np.random.default_rng(1), BATCH, TIME, FEATURES)

pytestmark = pytest.mark.parametrize("case", CASES)


def built(case, **options):
    layer = case.layer(UNITS, **options)
    layer.build(X.shape)
    randomise(layer, np.random.default_rng(3))
    return layer


@pytest.mark.parametrize("mask", [None, "holes"])
def test_bare_cell_in_keras_rnn(case, mask):
    layer = built(case, return_sequences=True, return_state=True)
    bare = keras.layers.RNN(layer.cell, return_sequences=True, return_state=True)
    call = {} if mask is None else {"mask": MASKS[mask](BATCH, TIME)}
    for a, e in zip(run(bare, X, **call), run(layer, X, **call), strict=True):
        assert_close(a, e, tolerance=4e-6)


def test_a_bare_cell_draws_dropout_in_training_alone(case):
    cell = case.layer(UNITS, dropout=0.3, seed=3).cell
    cell.build(X[:, 0].shape)
    seed = array(cell.seed_generator.state)
    cell(X[:, 0], cell.get_initial_state(BATCH))
    assert (array(cell.seed_generator.state) == seed).all()
    cell(X[:1, 0], cell.get_initial_state(1), training=True)


def test_stacked_cells_equal_stacked_layers(case):
    one, two = case.layer(UNITS, return_sequences=True, dropout=0.3), case.layer(2)
    stack = keras.layers.RNN(keras.layers.StackedRNNCells([one.cell, two.cell]))
    stack.build(X.shape)
    assert_close(run(stack, X)[0], run(two, run(one, X)[0])[0], tolerance=1e-6)
    for batch in (X, X[:1]):  # masks of one call are not those of the next
        assert run(stack, batch, training=True)[0].shape == (len(batch), 2)


def test_bidirectional_ignores_padding(case):
    both = keras.layers.Bidirectional(case.layer(UNITS, return_sequences=True))
    mask = MASKS["right"](BATCH, TIME)
    actual = run(both, X, mask=mask)[0]
    for row, length in enumerate(mask.sum(axis=1)):
        alone = run(both, X[row : row + 1, :length])[0]
        assert_close(actual[row, :length], alone[0], tolerance=1e-6)
        assert not actual[row, length:].any()


def test_a_mask_may_be_the_first_of_several_or_have_a_last_axis_of_1(case):
    layer, mask = built(case), MASKS["holes"](BATCH, TIME)
    expected = run(layer, X, mask=mask)[0]
    for given in ([mask, None], mask[..., None]):
        assert_close(run(layer, X, mask=given)[0], expected)
    assert np.abs(run(layer, X)[0] - expected).max() > 1e-3


def test_functional_encoder_decoder_hands_over_the_cell_states(case):
    source, target = keras.Input((None, FEATURES)), keras.Input((None, FEATURES))
    encoder = case.layer(UNITS, return_state=True)
    decoder = case.layer(UNITS, return_sequences=True)
    count = encoder.cell.own_state_count
    _, *states = encoder(source)
    outputs = decoder(target, initial_state=states[:count])
    model = keras.Model([source, target], outputs)
    states = run(encoder, X)[1 : 1 + count]
    expected = run(decoder, X[:, :4], initial_state=states)[0]
    assert_close(model.predict([X, X[:, :4]], verbose=0), expected, tolerance=1e-6)
    if count == 1:
        one = run(decoder, X[:, :4], initial_state=states[0])[0]
        assert_close(one, expected, tolerance=1e-6)


@pytest.mark.parametrize("mask", [None, "holes"])
def test_stateful_continues_where_it_stopped(case, mask):
    whole = built(case, return_sequences=True)
    stateful = built(case, return_sequences=True, stateful=True)
    stateful.set_weights([*whole.get_weights(), *stateful.get_weights()[len(whole.weights) :]])
    mask = None if mask is None else MASKS[mask](BATCH, TIME)
    call = [{} if mask is None else {"mask": m} for m in (mask, mask, mask)]
    if mask is not None:
        call[1], call[2] = {"mask": mask[:, :2]}, {"mask": mask[:, 2:]}
    expected = run(whole, X, **call[0])[0]
    first, second = run(stateful, X[:, :2], **call[1])[0], run(stateful, X[:, 2:], **call[2])[0]
    seen = np.ones((BATCH, TIME, 1), bool)
    if mask is not None and BACKEND != "jax":
        # Keras shows 0 before the first step of each call, on all backends but JAX.
        seen = np.concatenate([np.cumsum(m, 1) > 0 for m in (mask[:, :2], mask[:, 2:])], 1)
        seen = seen[..., None]
    actual = np.concatenate([first, second], axis=1)
    assert_close(np.where(seen, actual, 0), np.where(seen, expected, 0), tolerance=1e-6)
    given = [np.zeros((BATCH, size), "float32") for size in stateful.state_size]
    again = run(stateful, X[:, :2], initial_state=given, **call[1])[0]
    assert_close(again, first, tolerance=1e-6)
    stateful.reset_state()
    assert_close(run(stateful, X[:, :2], **call[1])[0], first, tolerance=1e-6)


def test_a_call_without_keras_takes_an_array(case):
    layer = case.layer(UNITS)
    expected = array(layer(X))
    assert_close(array(layer.call(X)), expected)
    variables = layer.trainable_variables, layer.non_trainable_variables
    values = [[variable.value for variable in kind] for kind in variables]
    assert_close(array(layer.stateless_call(*values, X)[0]), expected)


@pytest.mark.parametrize("option", ["stateful=True", "dropout=0.5", "recurrent_dropout=0.5"])
def test_a_call_that_changes_what_it_starts_from_is_not_repeated(case, option):
    """The repetition would start from other states or seeds: another gradient."""
    name, _, value = option.partition("=")
    for layer_class in (case.layer, kmr.LSTM):
        with keras.RematScope("full"):
            layer = layer_class(UNITS, **{name: True if value == "True" else float(value)})
        with pytest.raises(ValueError, match=f"Received: .*{option}"):
            layer(X, training=True)
        if name != "stateful" and BACKEND != "jax":  # whose `checkpoint` traces `training`
            assert array(layer(X)).shape == (BATCH, UNITS)


def test_stateful_goes_on_from_training_to_prediction(case):
    layer = case.layer(UNITS, stateful=True)
    model = keras.Sequential([keras.Input(batch_shape=(BATCH, 2, FEATURES)), layer])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    model.fit(X[:, :2], np.ones((BATCH, UNITS)), BATCH, shuffle=False, verbose=0)
    model.predict(X[:, 2:4], BATCH, verbose=0)
    actual = model.predict(X[:, 4:6], BATCH, verbose=0)
    layer.reset_state()
    for start in (0, 2, 4):
        expected = array(layer(X[:, start : start + 2]))
    assert_close(actual, expected, tolerance=1e-6)


@pytest.mark.skipif(BACKEND != "jax", reason="there the model holds the states in training")
def test_states_while_jax_trains(case):
    layer = case.layer(UNITS, stateful=True)
    model = keras.Sequential([keras.Input(batch_shape=(BATCH, 2, FEATURES)), layer])
    model.compile("sgd", "mse")
    model.set_state_tree(model.get_state_tree())
    x, y = X[:, :2], np.ones((BATCH, UNITS))
    reset = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda *_, **__: layer.reset_state()
    )
    with pytest.raises(RuntimeError, match="jax_state_sync"):
        model.fit(x, y, BATCH, callbacks=[reset], verbose=0)


def test_dynamic_batch_and_time(case):
    model = keras.Sequential([keras.Input((None, FEATURES)), case.layer(UNITS)])
    layer = model.layers[0]
    for batch, time in ((1, 1), (2, 5), (3, 3)):
        x = X[:batch, :time]
        assert_close(model.predict(x, verbose=0), run(layer, x)[0], tolerance=1e-6)
    assert model.output_shape == (None, UNITS)


@pytest.mark.parametrize("zero", [False, True])
def test_dynamic_time_with_a_mask(case, zero):
    """One graph serves lengths that are not known when it is built."""
    layer = case.layer(UNITS, return_sequences=True, zero_output_for_mask=zero)
    model = keras.Sequential([keras.layers.Embedding(9, 3, mask_zero=True), layer])
    for tokens in ([[1, 2, 3, 0]], [[1, 2, 3, 0, 0, 0]]):
        actual = model.predict(np.array(tokens), verbose=0)
        expected = array(model(np.array([[1, 2, 3]])))
        assert_close(actual[:, :3], expected, tolerance=1e-6)
        held = np.zeros_like(expected[:, -1:]) if zero else expected[:, -1:]
        assert_close(actual[:, 3:], np.repeat(held, actual.shape[1] - 3, 1), tolerance=1e-6)


def test_compute_output_shape(case):
    layer = built(case, return_sequences=True, return_state=True)
    shapes = [tuple(s) for s in layer.compute_output_shape(X.shape)]
    assert shapes == [r.shape for r in run(layer, X)]


def test_regularizers_and_constraints_reach_every_weight(case):
    layer = case.layer(
        UNITS,
        kernel_regularizer="l2",
        recurrent_regularizer="l2",
        bias_regularizer="l2",
        activity_regularizer="l2",
        bias_constraint="non_neg",
        **case.takes({"use_recurrent_bias": True}),
    )
    outputs = layer(X)
    named = named_weights(layer)
    weights = {name: w for name, w in named.items() if not name.startswith("memory.")}
    expected = [0.01 * np.sum(array(w) ** 2) for w in weights.values()]
    expected += [0.01 * np.sum(array(outputs) ** 2) / BATCH]
    np.testing.assert_allclose(
        sorted(float(array(loss)) for loss in layer.losses), sorted(expected), rtol=1e-5
    )
    assert all((w.constraint is not None) == ("bias" in name) for name, w in weights.items())


def test_forget_gates_start_open(case):
    """Both biases of the LSTM cells start as Keras starts the one: forget gate 1, others 0."""
    options = {"use_recurrent_bias": True}
    if not case.takes(options):
        pytest.skip("of LSTM cells")
    layer = case.layer(UNITS, **options)
    layer.build(X.shape)
    for bias in (layer.cell.bias, layer.cell.recurrent_bias):
        expected = np.zeros(4 * UNITS)
        expected[UNITS : 2 * UNITS] = 1
        np.testing.assert_array_equal(array(bias), expected)


def test_threads_may_share_a_layer(case):
    """Each thread's states stay its own, whatever the others' batch sizes."""
    layer = built(case, return_state=True)
    expected = {size: run(layer, X[:size]) for size in (1, 2, 3)}

    def worker(size):
        return all(
            np.allclose(a, e, atol=1e-6)
            for _ in range(10)
            for a, e in zip(run(layer, X[:size]), expected[size])
        )

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(worker, expected))
