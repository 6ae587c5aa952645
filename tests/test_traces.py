"""Traces of PyTorch: loops over steps that stay loops, and train and drop as the layers do."""

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, normal
from masks import MASKS
from pairs import pair_of

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths.registry import EXPORTED
from keras_momentum_rnn.paths.run import Sequence

if BACKEND != "torch":
    pytest.skip("of PyTorch", allow_module_level=True)

import torch

TIME = 9


@pytest.mark.parametrize("trace", ["torchscript", "open graph"])
def test_loops_for_files_equal_the_steps(trace):
    if trace == "open graph" and not hasattr(torch, "while_loop"):
        pytest.skip("needs a newer PyTorch")
    layer, step = pair_of("AdamLSTM", (3, TIME, 2))
    x = torch.from_numpy(normal(np.random.default_rng(1), 3, TIME, 2))
    mask = torch.from_numpy(MASKS["holes"](3, TIME))
    sequence = Sequence(x, layer.get_initial_state(3), mask)
    with torch.no_grad():
        outputs, states = EXPORTED[trace].load()(layer.cell, sequence, None)
        expected = step(x, mask=mask)
    for one, other in zip([outputs, *states], expected, strict=True):
        assert_close(array(one), array(other), 1e-5)


@pytest.mark.parametrize(
    "name, options",
    [
        ("LSTM", {}),
        ("NestedLSTM", {}),
        ("MomentumDTRIV", {}),
        ("RuleRNN", {"rule": kmr.rules.LearnedMomentum(0.6)}),
        ("AdamRNN", {"parameterization": "hidden"}),
    ],
)
def test_a_trace_trains_as_what_it_traces(name, options):
    """Not with the weights of the trace as constants."""
    layer = getattr(kmr, name)(4, **options)
    x = torch.from_numpy(normal(np.random.default_rng(1), 3, TIME, 2))
    layer(x)
    traced = torch.jit.trace(layer, x)
    weights = [w.value for w in layer.trainable_weights]
    with torch.no_grad():
        for weight in weights:
            weight.mul_(1.1)
    longer = torch.cat([x, x], dim=1)
    outputs = traced(longer), layer(longer)
    assert_close(*map(array, outputs), 1e-5)
    for one, other in zip(*(torch.autograd.grad((y**2).sum(), weights) for y in outputs)):
        assert_close(array(one), array(other), 1e-5)


@pytest.mark.parametrize(
    "name, options",
    [
        ("LSTM", {"dropout": 0.5}),
        ("MomentumLSTM", {"recurrent_dropout": 0.5}),
        ("NestedLSTM", {"memory": keras.layers.LSTMCell(4, dropout=0.5)}),
    ],
)
def test_a_trace_drops_as_what_it_traces(name, options):
    x = torch.ones(3, TIME, 2)
    inputs = keras.Input((TIME, 2))
    model = keras.Model(inputs, getattr(kmr, name)(4, **options)(inputs, training=True))
    traced = torch.jit.trace(model, x, check_trace=False)
    assert not np.allclose(array(traced(x)), array(traced(x)))
    # The layer drops on, too.
    assert not np.allclose(array(model(x)), array(model(x)))


def test_a_trace_leaves_the_layer_as_it_was():
    """A trace sets its dropout to 0 and its states aside, and gives them back."""
    layer = kmr.LSTM(4, dropout=0.4, recurrent_dropout=0.3, stateful=True)
    x = torch.ones(3, TIME, 2)
    layer(x)
    kept = [array(state).copy() for state in layer.states]
    torch.jit.trace(layer, x, check_trace=False)
    cell = layer.cell
    assert (cell.dropout, cell.recurrent_dropout, layer.stateful) == (0.4, 0.3, True)
    for state, before in zip(layer.states, kept):
        np.testing.assert_array_equal(array(state), before)
