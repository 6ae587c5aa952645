"""Conversion of layers from Keras and back, against the outputs of the original."""

import warnings

import keras
import numpy as np
import pytest
from conversions import (
    BATCH,
    PLAIN,
    TIME,
    UNITS,
    WIDTH,
    Subclassed,
    arrays,
    assert_converts,
    assert_equal_arrays,
    assert_same,
    functional,
    random,
    randomized,
    sequences,
)
from keras import layers

from keras_momentum_rnn import (
    MCRM,
    NAGLSTM,
    SRLSTM,
    AdamLSTM,
    MomentumDTRIV,
    MomentumGRU,
    MomentumLSTM,
    MomentumRNN,
    NestedLSTM,
    RMSPropLSTM,
    RuleLSTM,
    rules,
)
from keras_momentum_rnn.convert import from_keras, to_keras
from keras_momentum_rnn.recurrent import RuleLayer

OPTIONS = {
    "plain": {},
    "sequences": {"return_sequences": True},
    "backwards": {"go_backwards": True, "return_sequences": True},
    "unroll": {"unroll": True},
    "no_bias": {"use_bias": False},
    "use_cudnn": {"use_cudnn": False},
    "implementation": {"implementation": 1, "dropout": 0.2},
    "activations": {"activation": "relu", "recurrent_activation": "hard_sigmoid"},
    "dropout": {"dropout": 0.3, "recurrent_dropout": 0.2, "seed": 7},
    "regularizers": {
        "kernel_regularizer": keras.regularizers.L2(0.1),
        "recurrent_regularizer": "l1",
        "bias_regularizer": "l2",
        "activity_regularizer": keras.regularizers.L1(0.2),
    },
    "constraints": {
        "kernel_constraint": "non_neg",
        "recurrent_constraint": keras.constraints.MaxNorm(2.0),
        "bias_constraint": "unit_norm",
    },
    "initializers": {
        "kernel_initializer": keras.initializers.RandomNormal(0.0, 0.3, seed=5),
        "recurrent_initializer": "glorot_normal",
        "bias_initializer": "ones",
        "unit_forget_bias": False,
    },
    "frozen": {"trainable": False},
    "float64": {"dtype": "float64"},
    "zero_output": {"return_sequences": True, "zero_output_for_mask": True},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_layer_keeps_its_options(option):
    plain = layers.LSTM(UNITS, name="memory", **OPTIONS[option])
    plain.build((None, TIME, WIDTH))
    ours = assert_converts(randomized(plain), random(BATCH, TIME, WIDTH), 1)
    assert {k: ours.get_config()[k] for k in plain.get_config()} == plain.get_config()
    ours = from_keras(plain, MomentumLSTM)
    for layer in (ours, to_keras(ours)):
        assert layer.use_cudnn == plain.use_cudnn
        assert layer.cell.implementation == plain.cell.implementation
        assert len(layer.trainable_weights) == len(plain.trainable_weights)
        assert_equal_arrays(
            [plain.cell.seed_generator.state], [layer.cell.seed_generator.state]
        )


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_a_layer_keeps_its_dtype_policy(policy):
    plain = layers.LSTM(UNITS, dtype=policy)
    plain.build((None, TIME, WIDTH))
    ours = from_keras(randomized(plain), MomentumLSTM, **PLAIN)
    for layer in (ours, to_keras(ours)):
        assert layer.dtype_policy.name == layer.cell.dtype_policy.name == policy
        assert_equal_arrays(plain.cell.weights, layer.cell.weights)


def test_a_layer_keeps_its_states():
    plain = layers.LSTM(UNITS, stateful=True)
    x = random(BATCH, TIME, WIDTH)
    plain(x)
    ours = from_keras(randomized(plain), MomentumLSTM, momentum=0.5)
    assert_equal_arrays(plain.states, ours.states[:2])
    assert np.abs(arrays(plain.states[1])[0]).max() > 1e-2
    assert len(ours.states) == 3 and not np.any(arrays(ours.states[2])[0])
    ours(x)
    assert np.any(arrays(ours.states[2])[0])
    back = to_keras(ours)
    assert_equal_arrays(back.states, ours.states[:2])
    assert_same(plain, from_keras(plain, MomentumLSTM, **PLAIN), x)


def test_an_unbuilt_layer_or_model_stays_unbuilt():
    plain = layers.LSTM(UNITS, name="memory")
    wrapped = layers.Bidirectional(layers.LSTM(UNITS))
    model = keras.Sequential([layers.LSTM(UNITS), layers.Dense(2)])
    for source in (plain, wrapped, model):
        ours = from_keras(source, MomentumLSTM)
        back = to_keras(ours)
        assert not (source.built or ours.built or back.built or ours.weights)
        assert source.name == ours.name == back.name
        assert back.get_config() == source.get_config()
        assert arrays(ours(random(BATCH, TIME, WIDTH)))[0].shape[0] == BATCH


@pytest.mark.parametrize(
    "merge_mode, return_sequences",
    [("concat", True), ("sum", True), ("ave", False), ("mul", False), (None, True)],
)
def test_bidirectional(merge_mode, return_sequences):
    lstm = layers.LSTM(UNITS, return_sequences=return_sequences, dropout=0.1, use_cudnn=False)
    wrapper = layers.Bidirectional(lstm, merge_mode=merge_mode, name="both")
    masking = layers.Masking()
    x = keras.Input((TIME, WIDTH))
    model = functional(x, outputs=wrapper(masking(x)))
    ours = assert_converts(model, sequences(), 2).get_layer("both")
    # Keras 3.10 resets it to "auto", later ones keep it.
    assert ours.forward_layer.use_cudnn == wrapper.forward_layer.use_cudnn
    assert ours.backward_layer.use_cudnn == wrapper.backward_layer.use_cudnn
    assert ours.forward_layer.zero_output_for_mask is return_sequences
    bare = from_keras(wrapper, MomentumLSTM, **PLAIN)
    assert bare.name == "both" and bare.forward_layer.name == wrapper.forward_layer.name
    assert_same(wrapper, bare, random(BATCH, TIME, WIDTH))


def test_bidirectional_with_a_backward_layer_of_its_own():
    forward = layers.LSTM(UNITS, return_sequences=True)
    backward = layers.LSTM(
        UNITS + 2, activation="relu", return_sequences=True, go_backwards=True, name="other"
    )
    wrapper = layers.Bidirectional(forward, backward_layer=backward)
    model = keras.Sequential([keras.Input((TIME, WIDTH)), layers.Masking(), wrapper])
    ours = assert_converts(randomized(model), sequences(), 2)
    assert ours.layers[1].backward_layer.name == "other"
    assert ours.layers[1].backward_layer.units == UNITS + 2


def test_time_distributed_layers_and_models():
    inner = keras.Sequential([layers.LSTM(UNITS, name="inner"), layers.Dense(2)])
    x = keras.Input((2, TIME, WIDTH))
    outputs = [
        layers.TimeDistributed(layers.LSTM(UNITS))(x),
        layers.TimeDistributed(inner)(x),
        layers.TimeDistributed(layers.Bidirectional(layers.LSTM(UNITS)))(x),
    ]
    assert_converts(functional(x, outputs=outputs), random(BATCH, 2, TIME, WIDTH), 4)


RULE_NUMBERS = {
    MomentumLSTM: {"momentum": 0.4, "step_size": 0.7},
    NAGLSTM: {"step_size": 0.5},
    SRLSTM: {"restart_period": 3},
    AdamLSTM: {"beta": 0.8, "epsilon": 1e-4},
    RMSPropLSTM: {"beta": 0.7},
    RuleLSTM: {"rule": rules.NAG(step_size=0.3)},
}


@pytest.mark.parametrize("layer_class", RULE_NUMBERS, ids=lambda c: c.__name__)
def test_each_class_takes_its_numbers_and_trains(layer_class):
    model = keras.Sequential([keras.Input((TIME, WIDTH)), layers.LSTM(UNITS)])
    x, y = random(BATCH, TIME, WIDTH), random(BATCH, UNITS, seed=1)
    ours = from_keras(randomized(model), layer_class, **RULE_NUMBERS[layer_class])
    for name, value in RULE_NUMBERS[layer_class].items():
        kept = getattr(ours.layers[0], name)
        assert kept == value or (name == "rule" and kept.step_size == value.step_size)
    assert np.abs(arrays(ours(x))[0] - arrays(model(x))[0]).max() > 1e-3
    ours.compile("sgd", "mse")
    assert ours.train_on_batch(x, y) > ours.train_on_batch(x, y)


@pytest.mark.parametrize("use_bias", [True, False])
def test_recurrent_bias(use_bias):
    x = random(BATCH, TIME, WIDTH)
    plain = layers.LSTM(UNITS, use_bias=use_bias)
    plain.build(x.shape)
    ours = from_keras(randomized(plain), MomentumLSTM, use_recurrent_bias=True, **PLAIN)
    assert_same(plain, ours, x)
    ours.cell.recurrent_bias.assign(random(4 * UNITS, seed=9))
    back = to_keras(ours)
    assert_same(ours, back, x)
    assert np.abs(arrays(back(x))[0] - arrays(plain(x))[0]).max() > 1e-2
    if use_bias:
        ours.cell.bias.trainable = False
    assert to_keras(ours).cell.bias.trainable  # it stands for the other, too
    unbuilt = to_keras(MomentumLSTM(UNITS, use_bias=use_bias, use_recurrent_bias=True))
    assert unbuilt.use_bias and not unbuilt.built


@pytest.mark.parametrize(
    "plain, ours, options",
    [
        (layers.SimpleRNN, MomentumRNN, {}),
        (layers.GRU, MomentumGRU, {}),
        (layers.GRU, MomentumGRU, {"reset_after": False}),
    ],
    ids=["SimpleRNN", "GRU", "GRU-reset-before"],
)
def test_other_families(plain, ours, options):
    both = layers.Bidirectional(plain(UNITS, return_sequences=True, **options))
    model = keras.Sequential([keras.Input((TIME, WIDTH)), layers.Masking(), both])
    assert_converts(randomized(model), sequences(), 2, ours, plain)


# Refusals and warnings


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
    "base": (lambda: from_keras(layers.LSTM(2), RuleLayer), "`layer_class` must be"),
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
    "orthogonal": (
        lambda: from_keras(layers.SimpleRNN(2), MomentumDTRIV),
        "Keras counterpart, such as MomentumLSTM.*MomentumDTRIV",
    ),
    "MCRM": (lambda: to_keras(MCRM(2, name="mine")), "'mine' has no Keras counterpart"),
    "NestedLSTM": (
        lambda: to_keras(keras.Sequential([NestedLSTM(2, name="mine")])),
        "'mine' has no Keras counterpart",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_is_wrong(case):
    call, message = ERRORS[case]
    with pytest.raises(ValueError, match=message):
        call()


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
