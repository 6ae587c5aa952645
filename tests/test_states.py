"""States over time: those of the layer's own calls, at every step."""

import keras
import numpy as np
import pytest
from diagnosed import BATCH, FEATURES, LAYERS, NAMES, TIME, UNITS, built, data, each_layer
from harness import array, assert_close, randomise, run
from keras import ops
from masks import MASKS

import keras_momentum_rnn as kmr
from keras_momentum_rnn.diagnostics import memory_map, state_names


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
