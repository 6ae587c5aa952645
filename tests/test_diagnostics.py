"""Gradients by h and states over time, their pictures, and the examples that show them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, gradients, normal, randomise, run
from keras import ops
from masks import MASKS
from speed import COMPILES, slow_if_compiled, slow_unless

import keras_momentum_rnn as kmr
from keras_momentum_rnn.diagnostics import (
    gradient_norms,
    memory_map,
    plot_gradient_norms,
    plot_memory_map,
    state_names,
)

EXAMPLES = Path(__file__).parents[1] / "examples"
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


# Gradient norms


@pytest.mark.parametrize(
    "name",
    [
        *(slow_unless(not COMPILES, name) for name in ("SimpleRNN", "LSTM", "RNN(GRUCell)")),
        *(slow_unless(not COMPILES, name) for name in ("MomentumRNN", "MCRM")),
        "AdamLSTM",
    ],
)
def test_gradient_norms_are_those_of_a_restart_from_h(name):
    """Stop after step t and start anew: the loss by h, the other states held, is dL/dh_t."""
    (x, y), t, step = data(), 1, 5e-3
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

    # Finite differences, all in one batch: unit by unit, forwards and backwards.
    moves = step * np.concatenate([np.eye(UNITS), -np.eye(UNITS)]).astype("float32")
    moved = np.concatenate([h + move for move in moves])
    others = [np.concatenate([state] * len(moves)) for state in others]
    later = np.concatenate([x[:, t + 1 :]] * len(moves))
    last = run(layer, later, initial_state=[moved, *others])[0].astype("float64")
    error = (last @ kernel + bias).reshape(2, UNITS, BATCH) - y[:, 0]
    losses = error**2 / y.size
    numerical = (losses[0] - losses[1]) / (2 * step)
    assert norms[t] == pytest.approx(np.linalg.norm(numerical), rel=2e-3)


@pytest.mark.parametrize("name", ["SimpleRNN", "MomentumRNN"])
def test_one_step_is_d_u_with_and_without_momentum(name):
    """dL/dh_t = U D_{t+1} dL/dh_{t+1}: the velocity depends on the inputs alone."""
    (x, y), layer = data(), LAYERS[name]()
    model = model_of(layer)
    kernel, bias = readout_of(model)
    h = memory_map(layer, x)["h"].astype("float64")
    gradient = np.zeros_like(h)
    error = h[:, -1] @ kernel + bias - y
    gradient[:, -1] = (2 * error / error.size) @ kernel.T
    recurrent = array(layer.cell.recurrent_kernel).astype("float64")
    for t in reversed(range(TIME - 1)):
        gradient[:, t] = (gradient[:, t + 1] * (1 - h[:, t + 1] ** 2)) @ recurrent.T
    assert_close(gradient_norms(model, x, y, layer), norm(gradient))


def test_outputs_at_all_steps_add_to_the_gradient():
    (x, _), layer = data(), kmr.MomentumRNN(UNITS, return_sequences=True)
    y = normal(np.random.default_rng(2), BATCH, TIME, 1)
    model = model_of(layer)
    kernel, bias = readout_of(model)
    recurrent = array(layer.cell.recurrent_kernel).astype("float64")
    h = memory_map(layer, x)["h"].astype("float64")
    error = h @ kernel + bias - y
    gradient = (2 * error / error.size) @ kernel.T
    for t in reversed(range(TIME - 1)):
        gradient[:, t] += (gradient[:, t + 1] * (1 - h[:, t + 1] ** 2)) @ recurrent.T
    assert_close(gradient_norms(model, x, y, layer), norm(gradient))


@pytest.mark.parametrize("name", ["LSTM", "MomentumRNN"])
def test_backwards_norms_are_in_the_order_of_the_inputs(name):
    (x, y), layer = data(), LAYERS[name]()
    model, backwards = model_of(layer), model_of(LAYERS[name](go_backwards=True))
    backwards.set_weights(model.get_weights())
    expected = gradient_norms(model, x, y, layer)
    norms = gradient_norms(backwards, x[:, ::-1].copy(), y, backwards.layers[0])
    assert_close(norms, expected[::-1])


@slow_if_compiled
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
    outer = keras.Sequential([keras.Input((TIME, FEATURES)), model])
    norms_outside = gradient_norms(outer, x, y, wrapper.backward_layer, loss="mse")
    assert_close(norms_outside, gradient_norms(model, x, y, wrapper.backward_layer))


def broken_loss(y, y_pred):
    raise KeyError("broken")


@slow_if_compiled
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
    with pytest.raises(KeyError):
        gradient_norms(model, x, y, layer, loss=broken_loss)
    assert set(vars(layer)) == attributes
    for before, after in zip(variables, model.variables, strict=True):
        np.testing.assert_array_equal(before, array(after))
    model.train_on_batch(x, y)


def test_one_backward_pass(monkeypatch):
    (x, y), layer = data(), kmr.MomentumRNN(UNITS)
    model, calls = model_of(layer), []
    if BACKEND == "jax":
        import jax as owner

        name = "grad"
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


def test_regularisation_counts_unless_a_loss_is_given():
    x, y = data()
    plain, heavy = (
        kmr.MomentumRNN(UNITS, activity_regularizer=r) for r in (None, keras.regularizers.L2(1))
    )
    model, other = model_of(plain), model_of(heavy)
    other.set_weights(model.get_weights())
    norms = gradient_norms(model, x, y, plain)
    assert np.all(gradient_norms(other, x, y, heavy) != norms)
    loss = keras.losses.MeanSquaredError()
    assert_close(gradient_norms(other, x, y, heavy, loss=loss), norms)


def test_a_layer_that_the_loss_does_not_see_has_no_gradient():
    (x, y), inputs = data(), keras.Input((TIME, FEATURES))
    layer = keras.layers.SimpleRNN(UNITS)
    unseen = ops.stop_gradient(layer(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(unseen))
    np.testing.assert_array_equal(gradient_norms(model, x, y, layer, loss="mse"), 0)


@slow_if_compiled
def test_half_precision():
    x, y = data()
    full = model_of(kmr.AdamLSTM(UNITS, step_size=0.1))
    keras.config.set_dtype_policy("mixed_float16")
    half = model_of(kmr.AdamLSTM(UNITS, step_size=0.1))
    half.set_weights(full.get_weights())
    norms = gradient_norms(half, x, y, half.layers[0])
    np.testing.assert_allclose(norms, gradient_norms(full, x, y, full.layers[0]), rtol=0.1)


class OutputIsNoState(keras.layers.SimpleRNNCell):
    def call(self, sequence, states, training=False):
        output, states = super().call(sequence, states, training=training)
        return 2 * output, states


REFUSED = {
    "no such name": (lambda model: "missing", "missing"),
    "not recurrent": (lambda model: model.layers[-1], "Dense"),
    "no layer": (lambda model: 3, "layer=3"),
    "not in the model": (lambda model: built(keras.layers.LSTM(2)), "runs 0 times"),
    "not built": (lambda model: keras.layers.LSTM(2), "must be built"),
}


def built(layer):
    layer.build((None, TIME, FEATURES))
    return layer


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
    with pytest.raises(ValueError, match="2 times"):
        gradient_norms(twice, *data(), layer, loss="mse")


# Memory map


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
def test_memory_map_holds_states_at_masked_steps(name, kind):
    x, layer = data()[0], LAYERS[name](return_state=True)
    layer.build(x.shape)
    mask = MASKS[kind](BATCH, TIME)
    states = memory_map(layer, x, mask=mask)
    expected = run(layer, x, mask=ops.convert_to_tensor(mask))[1:]
    for values, last in zip(states.values(), expected, strict=True):
        assert_close(values[:, -1], last, 1e-6)


def test_memory_map_starts_where_the_layer_does():
    x, layer = data()[0], kmr.MomentumLSTM(UNITS, return_state=True, stateful=True)
    layer.build(x.shape)
    _, h, c, v = run(layer, x)
    expected = memory_map(layer, x)
    given = memory_map(layer, x, initial_state=[h, c, v])
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

    def get_config(self):
        return {}


def test_states_of_unknown_rules_and_memories_have_names():
    cell = kmr.MCRMCell(UNITS, rule=Halved(), memory=kmr.AdamLSTMCell(UNITS))
    assert state_names(cell) == ["h", "c", "inner c", "inner v", "inner m", "half"]


def test_memory_map_refuses_what_it_cannot_read():
    layer = built(keras.layers.LSTM(UNITS))
    with pytest.raises(ValueError, match=r"Received: \(5, 2\)"):
        memory_map(layer, np.zeros((TIME, FEATURES)))
    with pytest.raises(ValueError, match="Dense"):
        memory_map(keras.layers.Dense(2), data()[0])


# Pictures


def test_gradient_norms_are_drawn(tmp_path):
    decay = 0.5 ** np.arange(TIME)[::-1]
    curves = plot_gradient_norms({"a": decay, "b": 0 * decay})
    assert [line.get_label() for line in curves.axes[0].lines] == ["a", "b"]
    maps = plot_gradient_norms({"a": np.stack([decay, decay])}, iterations=[0, 100])
    assert [axes.get_title() for axes in maps.axes] == ["a", ""]
    for i, figure in enumerate((curves, maps)):
        figure.savefig(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 5000
    for wrong in ({}, {"a": decay, "b": decay[1:]}, {"a": np.zeros((2, 2, 2))}):
        with pytest.raises(ValueError, match="`norms`"):
            plot_gradient_norms(wrong)


def test_memory_maps_are_drawn(tmp_path):
    x = data()[0][:1]
    layers = {name: built(LAYERS[name]()) for name in ("GRU", "LSTM", "MCRM", "NestedLSTM")}
    states = {name: memory_map(layer, x) for name, layer in layers.items()}
    figure = plot_memory_map(states, "a b c", neurons=1)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()][::2]
    rows = ["GRU, h", "LSTM, c", "MCRM, c", "NestedLSTM, outer c", "NestedLSTM, tanh(inner c)"]
    assert titles == rows
    figure.savefig(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 5000
    with pytest.raises(ValueError, match="4 characters"):
        plot_memory_map(states, "abcd")
    with pytest.raises(ValueError, match="neurons=0"):
        plot_memory_map(states, "abcde", neurons=0)


def test_slow_neurons_come_first():
    time = np.arange(40)
    c = np.stack([(-1.0) ** time, time / 40, np.sin(time)], axis=1)[None]
    figure = plot_memory_map({"LSTM": {"h": c, "c": c}}, "x" * 40, neurons=1)
    shown = figure.axes[0].images[0].get_array()
    np.testing.assert_array_equal(shown, c[0].T[[1, 2, 0]])


def test_plots_name_what_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"keras-momentum-rnn\[examples\]"):
        plot_gradient_norms({"a": np.ones(3)})


# Examples


def example(script, output, *options):
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "KERAS_BACKEND": BACKEND}
    command = [sys.executable, EXAMPLES / script, *options, f"--output={output}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def files(output):
    return {path.name for path in output.iterdir() if path.stat().st_size > 100}


@pytest.mark.slow
def test_gradient_flow_example(tmp_path):
    tiny = ["--units=4", "--updates=2", "--measurements=2", "--batch-size=8"]
    done = example("gradient_flow.py", tmp_path / "out", *tiny)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "out") == {
        "start_and_end.png",
        "training.png",
        "results.json",
        "report.md",
    }
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["iterations"] == [0, 2]
    names = {"SimpleRNN", "MomentumRNN", "DTRIV", "MomentumDTRIV"}
    assert {name: np.shape(n) for name, n in results["norms"].items()} == dict.fromkeys(
        names, (2, 64)
    )
    assert "SimpleRNN" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.slow
def test_memory_map_example(tmp_path):
    tiny = ["--units=4", "--epochs=1", "--characters=2000", "--shown=20"]
    done = example("memory_map.py", tmp_path / "out", *tiny)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "out") == {"memory_map.png", "results.json"}


@pytest.mark.slow
@pytest.mark.parametrize("script", ["gradient_flow.py", "memory_map.py"])
def test_examples_refuse_bad_options(script, tmp_path):
    done = example(script, tmp_path, "--units=0")
    assert done.returncode == 2 and "Received: 0" in done.stderr
