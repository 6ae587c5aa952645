"""Gradients by h and states over time: exact, and of any layer."""

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, gradients, normal, randomise, run
from keras import ops
from masks import MASKS

import keras_momentum_rnn as kmr
from keras_momentum_rnn.diagnostics import gradient_norms, memory_map, state_names

BATCH, TIME, FEATURES, UNITS = 3, 5, 2, 4
LAYERS = {
    "SimpleRNN": lambda **k: keras.layers.SimpleRNN(UNITS, **k),
    "LSTM": lambda **k: keras.layers.LSTM(UNITS, **k),
    "GRU": lambda **k: keras.layers.GRU(UNITS, **k),
    "RNN(GRUCell)": lambda **k: keras.layers.RNN(keras.layers.GRUCell(UNITS), **k),
    "MomentumRNN": lambda **k: kmr.MomentumRNN(UNITS, **k),
    "AdamLSTM": lambda **k: kmr.AdamLSTM(UNITS, step_size=0.1, **k),
    "SRLSTM-released": lambda **k: kmr.SRLSTM(UNITS, formulation="released", **k),
    "MCRM": lambda **k: kmr.MCRM(UNITS, **k),
    "NestedLSTM": lambda **k: kmr.NestedLSTM(UNITS, rule=kmr.rules.HeavyBall(), **k),
}
NAMES = {
    "SimpleRNN": ["h"],
    "LSTM": ["h", "c"],
    "GRU": ["h"],
    "RNN(GRUCell)": ["h"],
    "MomentumRNN": ["h", "v"],
    "AdamLSTM": ["h", "c", "v", "m"],
    "SRLSTM-released": ["h", "c", "y", "t"],
    "MCRM": ["h", "c"],
    "NestedLSTM": ["h", "c", "inner c", "v"],
}
each_layer = pytest.mark.parametrize("name", LAYERS)


def data(seed=0):
    rng = np.random.default_rng(seed)
    return normal(rng, BATCH, TIME, FEATURES), normal(rng, BATCH, 1)


def model_of(layer, *before, readout=None, time=TIME):
    """A compiled regression model on `layer`, with random weights."""
    readout = readout or keras.layers.Dense(1)
    model = keras.Sequential([keras.Input((time, FEATURES)), *before, layer, readout])
    randomise(model, np.random.default_rng(1), scale=0.7)
    model.compile("sgd", "mse")
    return model


def readout_of(model):
    kernel, bias = model.layers[-1].weights
    return array(kernel).astype("float64"), array(bias).astype("float64")


def norm(gradient):
    return np.sqrt(np.sum(np.square(gradient, dtype="float64"), axis=(0, 2)))


def built(layer):
    layer.build((None, TIME, FEATURES))
    return layer


# Gradients


@pytest.mark.parametrize(
    "name", ["SimpleRNN", "LSTM", "RNN(GRUCell)", "MomentumRNN", "MCRM", "AdamLSTM"]
)
def test_gradient_norms_are_those_of_a_restart_from_h(name):
    """Stop after step t and start anew: the loss by h, the other states held, is dL/dh_t."""
    (x, y), t = data(), 1
    model = model_of(LAYERS[name](name="rnn"))
    norms = gradient_norms(model, x, y, "rnn")
    assert norms.shape == (TIME,) and norms.dtype == "float64"
    layer = built(LAYERS[name](return_state=True))
    layer.set_weights(model.layers[0].get_weights())
    kernel, bias = readout_of(model)
    last = run(layer, x)[0]
    cotangent = 2 * (last @ kernel + bias - y) / y.size @ kernel.T
    assert_close(norms[-1], np.linalg.norm(cotangent))

    h, *others = run(layer, x[:, : t + 1])[1:]
    cotangents = [cotangent.astype("float32"), *map(np.zeros_like, [h, *others])]
    exact = gradients(layer, x[:, t + 1 :], cotangents, [h, *others])["state0"]
    assert_close(norms[t], np.linalg.norm(exact))


@pytest.mark.parametrize("all_steps", [False, True], ids=["last", "all"])
@pytest.mark.parametrize("name", ["SimpleRNN", "MomentumRNN"])
def test_one_step_is_d_u_with_and_without_momentum(name, all_steps):
    """dL/dh_t = U D_{t+1} dL/dh_{t+1}, plus what the output at t adds.

    The velocity depends on the inputs alone.
    """
    (x, _), layer = data(), LAYERS[name](return_sequences=all_steps)
    y = normal(np.random.default_rng(2), BATCH, TIME, 1)[:, 0 if all_steps else -1 :]
    model = model_of(layer)
    kernel, bias = readout_of(model)
    h = memory_map(layer, x)["h"].astype("float64")
    error = np.zeros((BATCH, TIME, 1))
    error[:, -y.shape[1] :] = h[:, -y.shape[1] :] @ kernel + bias - y
    gradient = (2 * error / y.size) @ kernel.T
    recurrent = array(layer.cell.recurrent_kernel).astype("float64")
    for t in reversed(range(TIME - 1)):
        gradient[:, t] += (gradient[:, t + 1] * (1 - h[:, t + 1] ** 2)) @ recurrent.T
    y = y if all_steps else y[:, 0]
    assert_close(gradient_norms(model, x, y, layer), norm(gradient))


@pytest.mark.parametrize("name", ["LSTM", "MomentumRNN"])
def test_backwards_norms_are_in_the_order_of_the_inputs(name):
    (x, y), layer = data(), LAYERS[name]()
    model, backwards = model_of(layer), model_of(LAYERS[name](go_backwards=True))
    backwards.set_weights(model.get_weights())
    expected = gradient_norms(model, x, y, layer)
    norms = gradient_norms(backwards, x[:, ::-1].copy(), y, backwards.layers[0])
    assert_close(norms, expected[::-1])


@pytest.mark.parametrize("name", ["LSTM", "AdamLSTM"])
def test_masked_steps_have_no_h(name):
    """Samples that skip their first steps are as samples without them."""
    (x, y), layer = data(), LAYERS[name]()
    model = model_of(layer, keras.layers.Masking(0.0))
    x[:, :2] = 0
    norms = gradient_norms(model, x, y, layer)
    np.testing.assert_array_equal(norms[:2], 0)
    short = model_of(LAYERS[name](), time=TIME - 2)
    short.set_weights(model.get_weights())
    assert_close(norms[2:], gradient_norms(short, x[:, 2:], y, short.layers[0]))
    x[:, -1] = 0  # where the output is zero, whatever h was
    layer = LAYERS[name](zero_output_for_mask=True)
    model = model_of(layer, keras.layers.Masking(0.0))
    np.testing.assert_array_equal(gradient_norms(model, x, y, layer), 0)


def test_masked_steps_may_be_nan():
    (x, y), layer = data(), kmr.AdamLSTM(UNITS)
    inputs, mask = keras.Input((TIME, FEATURES)), keras.Input((TIME,), dtype="bool")
    model = keras.Model([inputs, mask], keras.layers.Dense(1)(layer(inputs, mask=mask)))
    model.compile("sgd", "mse")
    seen = np.broadcast_to(np.arange(TIME) != 2, (BATCH, TIME))
    expected = gradient_norms(model, [x, seen], y, layer)
    x[:, 2] = np.nan
    np.testing.assert_array_equal(gradient_norms(model, [x, seen], y, layer), expected)


def test_unrolled_steps_have_the_norms_of_a_loop():
    x, y = data()
    x[:, [0, 2]] = 0
    options = {"zero_output_for_mask": True, "go_backwards": True}
    models = [
        model_of(LAYERS["AdamLSTM"](unroll=unroll, **options), keras.layers.Masking(0.0))
        for unroll in (False, True)
    ]
    loop, unrolled = (gradient_norms(model, x, y, model.layers[1]) for model in models)
    assert_close(unrolled, loop)


def test_layers_of_functional_models_and_inside_wrappers():
    x, y = data()
    inputs = keras.Input((TIME, FEATURES))
    wrapper = keras.layers.Bidirectional(kmr.MomentumRNN(UNITS), name="both")
    states = [keras.layers.Dense(UNITS)(inputs[:, 0])]
    decoder = keras.layers.GRU(UNITS, name="decoder")(inputs, initial_state=states)
    merged = keras.layers.Concatenate()([wrapper(inputs), decoder])
    model = keras.Model(inputs, keras.layers.Dense(1)(merged))
    model.compile("sgd", "mse")
    for layer in (wrapper.forward_layer, wrapper.backward_layer, "decoder"):
        norms = gradient_norms(model, x, y, layer)
        assert norms.shape == (TIME,) and np.all(norms > 0)
    error = 2 * (array(model(x)) - y.reshape(-1, 1)) / len(y)
    last = error @ array(model.layers[-1].kernel)[-UNITS:].T  # of the decoder's last h
    assert_close(norms[-1], np.linalg.norm(last))
    outer = keras.Sequential([keras.Input((TIME, FEATURES)), model])
    outer.compile("sgd", "mse")
    norms_outside = gradient_norms(outer, x, y, wrapper.backward_layer)
    assert_close(norms_outside, gradient_norms(model, x, y, wrapper.backward_layer))


def broken_loss(y, y_pred):
    raise KeyError("broken")


@pytest.mark.parametrize("name", ["LSTM", "NestedLSTM"])
def test_the_model_is_left_as_it_was(name):
    x, y = data()
    layer = LAYERS[name](dropout=0.5, recurrent_dropout=0.5, stateful=True)
    model = keras.Sequential([keras.Input(batch_shape=x.shape), layer, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model(x)
    variables = [array(v) for v in model.variables]
    attributes = set(vars(layer))
    gradient_norms(model, x, y, layer)
    memory_map(layer, x)
    model.compile("sgd", broken_loss)
    with pytest.raises(KeyError):
        gradient_norms(model, x, y, layer)
    model.compile("sgd", "mse")
    assert set(vars(layer)) == attributes
    for before, after in zip(variables, model.variables, strict=True):
        np.testing.assert_array_equal(before, array(after))
    model.train_on_batch(x, y)


@pytest.mark.parametrize("name", ["LSTM", "AdamLSTM", "NestedLSTM"])
def test_dropout_is_off_and_leaves_no_mask_behind(name):
    (x, y), rates = data(), {"dropout": 0.5, "recurrent_dropout": 0.5}
    plain = model_of(LAYERS[name]())
    model = model_of(LAYERS[name](**rates), keras.layers.Dropout(0.5))
    model.set_weights(plain.get_weights())
    expected = gradient_norms(plain, x, y, plain.layers[0])
    assert_close(gradient_norms(model, x, y, model.layers[1]), expected)
    for diagnose in (lambda: None, lambda: memory_map(model.layers[1], x)):
        diagnose()
        # Of another batch size, which a mask that stayed would not fit.
        assert run(model.layers[1], x[:2], training=True)[0].shape == (2, UNITS)


def test_one_backward_pass(monkeypatch):
    (x, y), layer = data(), kmr.MomentumRNN(UNITS)
    model, calls = model_of(layer), []
    if BACKEND == "jax":
        import jax as owner

        name = "value_and_grad"
    elif BACKEND == "tensorflow":
        from tensorflow import GradientTape as owner

        name = "gradient"
    else:
        import torch.autograd as owner

        name = "grad"
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *a, **k: calls.append(1) or original(*a, **k))
    gradient_norms(model, x, y, layer)
    assert len(calls) == 1


def test_regularisation_counts():
    x, y = data()
    plain, heavy = (
        kmr.MomentumRNN(UNITS, activity_regularizer=r) for r in (None, keras.regularizers.L2(1))
    )
    model, other = model_of(plain), model_of(heavy)
    other.set_weights(model.get_weights())
    norms = gradient_norms(model, x, y, plain)
    assert np.all(gradient_norms(other, x, y, heavy) != norms)
    # That of weights does not depend on h.
    weighed = kmr.MomentumRNN(UNITS, kernel_regularizer="l2")
    third = model_of(weighed)
    third.set_weights(model.get_weights())
    np.testing.assert_allclose(gradient_norms(third, x, y, weighed), norms, rtol=1e-5)


def test_a_layer_that_the_loss_does_not_see_has_no_gradient():
    (x, y), inputs = data(), keras.Input((TIME, FEATURES))
    layer = keras.layers.SimpleRNN(UNITS)
    unseen = ops.stop_gradient(layer(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(unseen))
    model.compile("sgd", "mse")
    np.testing.assert_array_equal(gradient_norms(model, x, y, layer), 0)


def test_half_precision():
    x, y = data()
    full = model_of(kmr.AdamLSTM(UNITS, step_size=0.1))
    keras.config.set_dtype_policy("mixed_float16")
    half = model_of(kmr.AdamLSTM(UNITS, step_size=0.1))
    half.set_weights(full.get_weights())
    norms = gradient_norms(half, x, y, half.layers[0])
    np.testing.assert_allclose(norms, gradient_norms(full, x, y, full.layers[0]), rtol=0.1)


def test_norms_of_float64_are_as_small_as_they_are():
    (x, y), layer = data(), kmr.MomentumRNN(UNITS, dtype="float64")
    model = model_of(layer)
    layer.cell.recurrent_kernel.assign(1e-15 * layer.cell.recurrent_kernel)
    assert 0 < gradient_norms(model, x, y, layer)[0] < 1e-50


class OutputIsNoState(keras.layers.SimpleRNNCell):
    def call(self, sequence, states, training=False):
        output, states = super().call(sequence, states, training=training)
        return 2 * output, states


class Louder:
    def call(self, sequences, initial_state=None, mask=None, training=False):
        return 100 * super().call(sequences, initial_state, mask, training)


REFUSED = {
    "no such name": (lambda model: "missing", "missing"),
    "not recurrent": (lambda model: model.layers[-1], "Dense"),
    "no layer": (lambda model: 3, "layer=3"),
    "not in the model": (lambda model: built(keras.layers.LSTM(2)), "runs 0 times"),
    "not built": (lambda model: keras.layers.LSTM(2), "must be built"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_layers_that_are_refused(why):
    model = model_of(keras.layers.GRU(UNITS))
    layer_of, message = REFUSED[why]
    with pytest.raises(ValueError, match=message):
        gradient_norms(model, *data(), layer_of(model))


def test_cells_that_are_refused():
    stacked = keras.layers.RNN([keras.layers.GRUCell(2), keras.layers.GRUCell(2)])
    with pytest.raises(ValueError, match="one cell"):
        gradient_norms(model_of(stacked), *data(), stacked)
    with pytest.raises(ValueError, match="one cell"):
        memory_map(stacked, data()[0])
    for built_on in (keras.layers.LSTM, kmr.MomentumLSTM):
        louder = type("Louder", (Louder, built_on), {})(2)
        with pytest.raises(ValueError, match=r"`call` of its own.*Louder"):
            gradient_norms(model_of(louder), *data(), louder)
    odd = keras.layers.RNN(OutputIsNoState(2))
    with pytest.raises(ValueError, match="OutputIsNoState"):
        gradient_norms(model_of(odd), *data(), odd)


def test_models_that_are_refused():
    layer = keras.layers.GRU(UNITS)
    model = model_of(layer)
    uncompiled = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    with pytest.raises(ValueError, match="compiled with a loss"):
        gradient_norms(uncompiled, *data(), layer)
    with pytest.raises(ValueError, match="model=3"):
        gradient_norms(3, *data(), layer)
    with pytest.raises(ValueError, match="built"):
        gradient_norms(keras.Sequential([layer]), *data(), layer)
    inputs = keras.Input((TIME, FEATURES))
    twice = keras.Model(inputs, model(inputs) + model(2 * inputs))
    twice.compile("sgd", "mse")
    with pytest.raises(ValueError, match="2 times"):
        gradient_norms(twice, *data(), layer)


# States: those of the layer's own calls, at every step


@pytest.mark.parametrize("go_backwards", [False, True])
@each_layer
def test_memory_map_equals_the_states_of_prefixes(name, go_backwards):
    x, layer = data()[0], LAYERS[name](return_state=True, go_backwards=go_backwards)
    layer.build(x.shape)
    randomise(layer, np.random.default_rng(3))
    states = memory_map(layer, x)
    assert list(states) == NAMES[name] == state_names(layer.cell)
    for t in (1, TIME - 1):
        part = x[:, t:] if go_backwards else x[:, : t + 1]
        for (key, values), expected in zip(states.items(), run(layer, part)[1:], strict=True):
            assert values.dtype == "float32" and values.shape[:2] == (BATCH, TIME), key
            assert_close(values[:, t], expected, 1e-6)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("name", ["GRU", "AdamLSTM"])
@pytest.mark.parametrize("go_backwards", [False, True])
def test_memory_map_holds_states_at_masked_steps(name, go_backwards, kind):
    x, layer = data()[0], LAYERS[name](return_state=True, go_backwards=go_backwards)
    layer.build(x.shape)
    mask = MASKS[kind](BATCH, TIME)
    states = memory_map(layer, x, mask=mask)
    expected = run(layer, x, mask=ops.convert_to_tensor(mask))[1:]
    for values, last in zip(states.values(), expected, strict=True):
        assert_close(values[:, 0 if go_backwards else -1], last, 1e-6)


def test_memory_map_starts_where_the_layer_does():
    x, layer = data()[0], kmr.MomentumLSTM(UNITS, return_state=True, stateful=True)
    layer.build(x.shape)
    _, h, c, v = run(layer, x)
    expected = memory_map(layer, x)
    given = memory_map(layer, x, initial_state=[h.astype("float64"), c, v])
    for name in expected:
        np.testing.assert_array_equal(given[name], expected[name])
    np.testing.assert_array_equal(array(layer.states[0]), h)
    partly = memory_map(layer, x, initial_state=[h, c])
    assert not np.array_equal(partly["v"], expected["v"])


def test_memory_map_keeps_slots_exact_in_half_precision():
    layer = kmr.MomentumRNN(UNITS, momentum=0.99, return_state=True, dtype="mixed_bfloat16")
    layer.build((BATCH, TIME, FEATURES))
    x = data()[0]
    states, (_, h, v) = memory_map(layer, x), run(layer, x)
    assert_close(states["h"][:, -1], h, 2**-8)
    assert_close(states["v"][:, -1], v, 1e-6)


class Halved(kmr.rules.Rule):
    def slots(self, width):
        return {"half": width}

    def update(self, u, slots):
        return u / 2, slots


def test_states_of_unknown_rules_and_memories_have_names():
    cell = kmr.MCRMCell(UNITS, rule=Halved(), memory=kmr.AdamLSTMCell(UNITS))
    assert state_names(cell) == ["h", "c", "inner c", "inner v", "inner m", "half"]


@pytest.mark.skipif(BACKEND == "jax", reason="it has float64 only where it is switched on")
def test_memory_map_has_the_precision_of_the_layer():
    layer = kmr.MomentumRNN(UNITS, dtype="float64", return_sequences=True)
    x = np.random.default_rng(0).normal(size=(2, 5, FEATURES))
    expected = array(layer(x))
    np.testing.assert_allclose(memory_map(layer, x)["h"], expected, rtol=1e-13)


def test_memory_map_refuses_what_it_cannot_read():
    layer = built(keras.layers.LSTM(UNITS))
    with pytest.raises(ValueError, match=r"Received: \(5, 2\)"):
        memory_map(layer, np.zeros((TIME, FEATURES)))
    for steps in (TIME - 1, TIME + 1):
        with pytest.raises(ValueError, match=rf"a mask of shape \(\d, {steps}\)"):
            memory_map(layer, data()[0], mask=np.ones((len(data()[0]), steps)))
    with pytest.raises(ValueError, match="Dense"):
        memory_map(keras.layers.Dense(2), data()[0])
