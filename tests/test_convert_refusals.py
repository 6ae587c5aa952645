"""What cannot be converted is refused with its name."""

import warnings

import keras
import pytest
from conversions import TIME, UNITS, WIDTH, Subclassed
from keras import layers

from keras_momentum_rnn import MCRM, NAGLSTM, SRLSTM, AdamLSTM, MomentumLSTM, NestedLSTM
from keras_momentum_rnn.convert import from_keras, to_keras


def nested_subclassed():
    return keras.Sequential([keras.Input((TIME, WIDTH)), Subclassed(name="mine")])


ERRORS = {
    "no LSTM": (lambda: from_keras(layers.Dense(2), MomentumLSTM), "no keras.layers.LSTM"),
    "no LSTM in a model": (
        lambda: from_keras(keras.Sequential([layers.GRU(2)]), MomentumLSTM),
        "no keras.layers.LSTM",
    ),
    "none of ours": (lambda: to_keras(layers.LSTM(2)), "no layer of keras_momentum_rnn"),
    "no layer": (lambda: from_keras("model", MomentumLSTM), "Received: 'model'"),
    "subclassed": (lambda: from_keras(Subclassed(name="mine"), MomentumLSTM), "'mine'"),
    "nested": (lambda: from_keras(nested_subclassed(), MomentumLSTM), "'mine'.*Subclassed"),
    "class": (lambda: from_keras(layers.LSTM(2), layers.LSTM), "`layer_class` must be"),
    "name of a class": (
        lambda: from_keras(layers.LSTM(2), "MomentumLSTM"),
        "`layer_class` must be .*'MomentumLSTM'",
    ),
    "range": (lambda: from_keras(layers.LSTM(2), AdamLSTM, beta=1.5), "`beta`.*beta=1.5"),
    "option": (lambda: from_keras(layers.LSTM(2), AdamLSTM, units=5), "Received: units"),
    "unknown": (lambda: from_keras(layers.LSTM(2), NAGLSTM, momentum=0.5), "step_size.*moment"),
    "released": (
        lambda: to_keras(SRLSTM(2, formulation="released", name="mine")),
        "SRLSTM 'mine' has no Keras counterpart",
    ),
    "to released": (
        lambda: from_keras(layers.LSTM(2, name="mine"), SRLSTM, formulation="released"),
        "SRLSTM 'mine' has no Keras counterpart",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_is_wrong(case):
    call, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("layer_class", [MCRM, NestedLSTM])
def test_nested_layers_have_no_counterpart(layer_class):
    model = keras.Sequential([keras.Input((None, 3)), layer_class(4, name="deep")])
    with pytest.raises(ValueError, match=r"'deep' has no Keras counterpart"):
        to_keras(model)


@pytest.mark.parametrize(
    ("layer_class", "numbers", "same"),
    [
        (MomentumLSTM, {"momentum": 0.0, "step_size": 1.0}, True),
        (SRLSTM, {"restart_period": 1, "step_size": 1.0}, True),
        (MomentumLSTM, {"momentum": 0.0, "step_size": 0.9}, False),
        (MomentumLSTM, {"momentum": 0.1, "step_size": 1.0}, False),
        (NAGLSTM, {"step_size": 1.0}, False),
        (AdamLSTM, {}, False),
    ],
)
def test_a_copy_that_computes_another_function_warns(layer_class, numbers, same):
    layer = layer_class(UNITS, name="mine", **numbers)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        to_keras(layer)
    messages = [
        str(w.message) for w in caught if "'mine' computes another function" in str(w.message)
    ]
    assert len(messages) == (0 if same else 1)
    assert same or layer_class.rule_class.__name__ in messages[0]
