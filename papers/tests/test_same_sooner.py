"""Keras's layers run as ours with the rule Identity, where that takes less time."""

from functools import partial

import keras
import numpy as np
import pytest

from keras_momentum_rnn.layers.registry import available_layers
from papers import same_sooner
from papers.sequences.layers import Contestant

as_array = keras.ops.convert_to_numpy


@pytest.mark.parametrize("name", same_sooner.RULE_LAYERS)
def test_the_layer_that_takes_less_time_is_that_of_keras(name):
    x = np.random.default_rng(0).normal(size=(3, 5, 2)).astype("float32")
    mask = np.arange(5) < np.array([[5], [3], [1]])
    other, rule = same_sooner.same_sooner(name)
    layers = []
    for new in (getattr(keras.layers, name), partial(available_layers()[other], **rule)):
        keras.utils.set_random_seed(0)
        layers.append(new(4))
        layers[-1].build(x.shape)
    # Weights start alike, too.
    found, expected = ([as_array(w) for w in one.weights] for one in layers)
    for weight, same in zip(found, expected, strict=True):
        np.testing.assert_array_equal(weight, same)
    assert any(weight.any() for weight in found)
    outputs = [as_array(one(x, mask=mask)) for one in layers]
    np.testing.assert_allclose(*outputs, atol=1e-5)


def test_a_layer_that_runs_sooner_keeps_its_arguments():
    contestant = Contestant("GRU", {"reset_after": False})
    layer = contestant.new_layer(3)
    assert type(layer).__name__ == "RuleGRU" and not layer.reset_after
    assert type(Contestant("DTRIV").new_layer(3)).__name__ == "DTRIV"
