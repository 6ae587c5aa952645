"""What cannot be converted is refused with its name."""

import keras
import pytest
from keras import layers

from keras_momentum_rnn import MCRM, NAGLSTM, SRLSTM, AdamLSTM, MomentumLSTM, NestedLSTM
from keras_momentum_rnn.convert import from_keras, to_keras

TIME, WIDTH, UNITS = 5, 4, 3


class Subclassed(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.memory = layers.LSTM(UNITS)

    def call(self, x):
        return self.memory(x)


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
