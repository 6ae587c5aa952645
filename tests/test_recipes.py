"""Recipes: what the paper published, under its names, and no more."""

import keras
import numpy as np
import pytest
from harness import array

from keras_momentum_rnn.tasks import recipe
from keras_momentum_rnn.tasks.recipes import DTRIV_NUMBERS

MULTIPLE = hasattr(keras.optimizers, "MultiOptimizer")
NO_NUMBERS = {}
MOMENTUM = {"momentum": 0.3, "step_size": 0.3}
SPEECH = {"momentum": 0.3, "step_size": 0.1}

# task, layer, units: K, learning rate, that of S, numbers. Typed from Tables 6 to 10.
PRINTED = [
    ("mnist", "DTRIV", 170, 1, 0.001, 0.0001, NO_NUMBERS),
    ("mnist", "DTRIV", 360, None, 0.0005, 0.0001, NO_NUMBERS),
    ("mnist", "DTRIV", 512, 100, 0.0005, 0.0001, NO_NUMBERS),
    ("pmnist", "DTRIV", 170, 1, 0.0007, 0.0002, NO_NUMBERS),
    ("pmnist", "DTRIV", 360, None, 0.0007, 0.00005, NO_NUMBERS),
    ("pmnist", "DTRIV", 512, None, 0.0003, 0.00007, NO_NUMBERS),
    ("timit", "DTRIV", 224, None, 0.001, 0.0002, NO_NUMBERS),
    ("timit", "DTRIV", 322, None, 0.001, 0.0002, NO_NUMBERS),
    ("pmnist", "MomentumDTRIV", 170, 1, 0.0007, 0.0002, {"momentum": 0.6, "step_size": 0.9}),
    ("pmnist", "MomentumDTRIV", 360, None, 0.0007, 0.00005, MOMENTUM),
    ("pmnist", "MomentumDTRIV", 512, None, 0.0003, 0.00007, MOMENTUM),
    ("timit", "MomentumDTRIV", 224, None, 0.001, 0.0002, SPEECH),
    ("timit", "MomentumDTRIV", 322, None, 0.001, 0.0002, SPEECH),
    ("pmnist", "AdamDTRIV", 512, None, 0.0003, 0.00007, {**MOMENTUM, "beta": 0.8}),
    ("pmnist", "RMSPropDTRIV", 512, None, 0.0003, 0.00007, {"step_size": 0.3, "beta": 0.9}),
    ("pmnist", "SRDTRIV", 512, None, 0.0003, 0.00007, {"restart_period": 2, "step_size": 0.3}),
]


def test_there_is_a_recipe_for_each_printed_row_and_no_other():
    assert {(task, units, layer) for task, layer, units, *_ in PRINTED} == set(DTRIV_NUMBERS)


@pytest.mark.parametrize("task, name, units, k, rate, skew_rate, numbers", PRINTED)
def test_recipe_is_the_printed_row(task, name, units, k, rate, skew_rate, numbers):
    found = recipe(task, name, units=units)
    speech = task == "timit"
    layer = found.layer(return_sequences=speech)
    assert (type(layer).__name__, layer.units, layer.rebase_every) == (name, units, k)
    assert {number: getattr(layer, number) for number in numbers} == numbers
    assert layer.return_sequences is speech
    expected = "HenaffSkew" if speech else "CayleySkew"
    assert type(layer.recurrent_initializer).__name__ == expected
    assert (found.learning_rate, found.recurrent_learning_rate) == (rate, skew_rate)
    assert (found.batch_size, found.epochs) == (128, 700 if speech else 150)
    assert "Table 6" in found.source
    if speech:
        assert layer.recurrent_lr_multiplier == 1
        assert found.clipnorm is None
    else:
        optimizer = found.optimizer()
        assert isinstance(optimizer, keras.optimizers.RMSprop)
        assert (optimizer.rho, optimizer.global_clipnorm) == (0.99, 1.0)
        assert array(optimizer.learning_rate) == pytest.approx(rate)
        assert rate * layer.recurrent_lr_multiplier == pytest.approx(skew_rate)


@pytest.mark.skipif(not MULTIPLE, reason="this Keras has no MultiOptimizer")
def test_speech_trains_the_skew_part_by_rmsprop_and_the_rest_by_adam():
    found = recipe("timit", "MomentumDTRIV", units=224)
    layer = found.layer(return_sequences=True)
    model = keras.Sequential([keras.Input((4, 3)), layer, keras.layers.Dense(3)])
    model.compile(found.optimizer(), "mse")
    before = [array(w) for w in model.trainable_weights]
    x = 10 * np.random.default_rng(0).standard_normal((2, 4, 3))
    model.train_on_batch(x, x)
    for old, weight in zip(before, model.trainable_weights, strict=True):
        step = np.abs(array(weight) - old)
        # The first step of RMSprop is rate / sqrt(1 - rho), of Adam the rate.
        expected = 0.0002 / np.sqrt(0.01) if weight.name == "skew" else 0.001
        assert np.max(step) == pytest.approx(expected, rel=0.02)


def test_a_size_may_be_left_out_where_there_is_one():
    assert recipe("pmnist", "SRDTRIV").units == 512


@pytest.mark.parametrize(
    "task, layer, units",
    [
        ("pmnist", "DTRIV", None),
        ("pmnist", "DTRIV", 171),
        ("mnist", "MomentumDTRIV", 170),
        ("timit", "AdamDTRIV", 224),
        ("copying", "DTRIV", 170),
        ("pmnist", "NAGDTRIV", 512),
    ],
)
def test_what_is_not_published_is_refused_with_what_is(task, layer, units):
    with pytest.raises(
        ValueError, match=r"\('pmnist', 'SRDTRIV', units=512\).*Received: task="
    ):
        recipe(task, layer, units=units)
