"""Conversion from Keras and back, against the outputs of the original Keras model."""

import re

import keras
import numpy as np
import pytest
from keras import layers, ops
from speed import COMPILES, slow_if_compiled, slow_unless

from keras_momentum_rnn import (
    NAGLSTM,
    SRLSTM,
    AdamLSTM,
    MomentumGRU,
    MomentumLSTM,
    MomentumRNN,
    RMSPropLSTM,
    RuleLSTM,
    convert,
    rules,
)
from keras_momentum_rnn.convert import from_keras, to_keras

PLAIN = {"momentum": 0.0, "step_size": 1.0}
BATCH, TIME, WIDTH, UNITS = 3, 5, 4, 3


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def randomized(layer):
    """Return the layer with random numbers for all its weights, biases included."""
    for i, weight in enumerate(layer.weights):
        weight.assign(np.abs(random(*weight.shape, seed=i)) - 0.4)
    return layer


def sequences():
    """Return sequences that `Masking` masks right, left and in the middle."""
    x = random(BATCH, TIME, WIDTH)
    x[0, 3:] = x[1, :2] = x[2, 2] = 0
    return x


def arrays(outputs):
    return [ops.convert_to_numpy(ops.cast(y, "float32")) for y in keras.tree.flatten(outputs)]


def assert_same(one, two, inputs):
    """Compare the outputs of two layers or models, which must not be trivial."""
    one, two = arrays(one(inputs)), arrays(two(inputs))
    assert len(one) == len(two)
    for a, b in zip(one, two):
        assert np.abs(a).max() > 1e-2
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def assert_equal_arrays(one, two):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(*arrays([a, b]))


def found(layer, layer_class):
    """Return the distinct layers of a class inside a layer or model, by identity."""
    if isinstance(layer, layer_class):
        return {id(layer): layer}
    parts = list(layer.layers) if isinstance(layer, keras.Model) else []
    for name in ("layer", "forward_layer", "backward_layer"):
        parts += [getattr(layer, name)] if hasattr(layer, name) else []
    return {k: v for part in parts for k, v in found(part, layer_class).items()}


def configs(layer):
    """Return names and options. The names of operations in a graph are of no account."""
    if isinstance(layer, keras.Model):
        return [layer.name, type(layer), [configs(x) for x in layer.layers]]
    return layer.get_config()


def assert_converts(model, inputs, count):
    """Convert there and back; compare outputs, weights and configs; return the first."""
    before = model.get_weights()
    ours = from_keras(model, MomentumLSTM, **PLAIN)
    back = to_keras(ours)
    assert not found(ours, layers.LSTM) and not found(back, MomentumLSTM)
    assert len(found(ours, MomentumLSTM)) == len(found(back, layers.LSTM)) == count
    assert_same(model, ours, inputs)
    assert_same(model, back, inputs)
    assert configs(back) == configs(model)
    assert_equal_arrays(before, model.get_weights())
    assert_equal_arrays(before, back.get_weights())
    return ours


def functional(*inputs, outputs):
    return randomized(keras.Model(list(inputs), outputs))


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


@pytest.mark.parametrize(
    "option", [slow_unless(not COMPILES or name == "dropout", name) for name in OPTIONS]
)
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


@slow_if_compiled
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


@slow_if_compiled
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


@slow_if_compiled
def test_time_distributed_layers_and_models():
    inner = keras.Sequential([layers.LSTM(UNITS, name="inner"), layers.Dense(2)])
    x = keras.Input((2, TIME, WIDTH))
    outputs = [
        layers.TimeDistributed(layers.LSTM(UNITS))(x),
        layers.TimeDistributed(inner)(x),
        layers.TimeDistributed(layers.Bidirectional(layers.LSTM(UNITS)))(x),
    ]
    assert_converts(functional(x, outputs=outputs), random(BATCH, 2, TIME, WIDTH), 4)


@slow_if_compiled
def test_a_sequential_model_with_all_kinds_of_weights():
    model = keras.Sequential(
        [
            keras.Input((TIME,), dtype="int32", name="words"),
            layers.Embedding(7, WIDTH, mask_zero=True),
            layers.LSTM(UNITS, return_sequences=True, name="first"),
            layers.BatchNormalization(),
            layers.Dropout(0.2, seed=3),
            keras.Sequential([layers.LSTM(UNITS), layers.Dense(3, trainable=False)]),
            layers.Dense(2),
        ],
        name="reader",
    )
    words = np.random.default_rng(0).integers(0, 7, (BATCH, TIME)).astype("int32")
    for variable in model.non_trainable_variables:
        if "variance" in variable.name:
            positive = variable
    randomized(model)
    positive.assign(np.abs(random(UNITS)))
    model(words, training=True)  # moves the averages and the seed of the dropout
    ours = assert_converts(model, words, 2)
    assert ours.name == "reader" and ours.inputs[0].dtype == "int32"
    assert len(ours.trainable_variables) == len(model.trainable_variables)
    assert len(ours.non_trainable_variables) == len(model.non_trainable_variables)
    assert_equal_arrays(model.variables, ours.variables)


def test_a_functional_model_with_states_masks_and_several_inputs():
    source, target = keras.Input((TIME, WIDTH), name="source"), keras.Input((None, WIDTH))
    mask, extra = keras.Input((None,), dtype="bool"), keras.Input((2 * UNITS,))
    x = layers.Masking()(source)
    code, *states = layers.LSTM(UNITS, return_state=True, name="encoder")(x)
    decoder = layers.LSTM(UNITS, return_sequences=True, return_state=True, name="decoder")
    y, _, c = decoder(target, initial_state=states, mask=mask)
    both, *more = layers.Bidirectional(layers.LSTM(UNITS, return_state=True))(x)
    z = layers.Bidirectional(layers.LSTM(UNITS), merge_mode="sum")(target, more)
    tail = keras.Sequential([layers.Bidirectional(layers.LSTM(UNITS, return_state=True))])
    t = tail(y)
    outputs = {
        "y": ops.sin(y[:, 1:]) + 2.0,
        "c": [c, code, layers.Concatenate()([more[2], more[1]])],
        "z": layers.Add()([z, ops.mean(both + extra, axis=1, keepdims=True)]),
        "t": t[0] + ops.concatenate([t[3], t[4]], axis=-1),
    }
    model = functional(source, target, mask, extra, outputs=outputs)
    keep = np.random.default_rng(3).random((BATCH, 6)) < 0.6
    inputs = [sequences(), random(BATCH, 6, WIDTH), keep, random(BATCH, 2 * UNITS)]
    ours = assert_converts(model, inputs, 8)
    assert [x.name for x in ours.layers] == [x.name for x in model.layers]
    assert set(ours.output) == set(outputs)


def test_shared_layers_and_models_stay_shared():
    shared = layers.LSTM(UNITS, return_sequences=True, name="shared")
    nested_input = keras.Input((TIME, WIDTH))
    nested = keras.Model(nested_input, layers.LSTM(2)(shared(nested_input)), name="nested")
    a, b = keras.Input((TIME, WIDTH)), keras.Input((TIME, WIDTH))
    c = keras.Input((2, TIME, WIDTH))
    states = [layers.Dense(UNITS)(ops.mean(a, axis=1)), layers.Dense(UNITS)(b[:, 0])]
    outputs = [
        shared(a),
        shared(b, states),
        nested(a),
        nested(b),
        layers.TimeDistributed(nested)(c),
    ]
    model = functional(a, b, c, outputs=outputs)
    inputs = [random(BATCH, *x.shape[1:], seed=i) for i, x in enumerate(model.inputs)]
    ours = from_keras(model, MomentumLSTM, **PLAIN)
    assert len(found(ours, MomentumLSTM)) == 2
    assert_same(model, ours, inputs)
    assert_same(model, to_keras(ours), inputs)
    assert ours.count_params() == model.count_params()


def test_the_original_is_left_alone():
    x = keras.Input((TIME, WIDTH))
    model = functional(x, outputs=layers.Dense(2)(layers.LSTM(UNITS, name="memory")(x)))
    model.compile("sgd", lambda y, z: ops.mean(ops.square(y - z)))
    config, weights = model.get_config(), model.get_weights()
    ours = from_keras(model, MomentumLSTM)
    assert model.compiled and not ours.compiled
    ours.compile("sgd", "mse")
    ours.fit(random(BATCH, TIME, WIDTH), random(BATCH, 2), verbose=0)
    assert model.get_config() == config and isinstance(model.get_layer("memory"), layers.LSTM)
    assert model.get_layer("memory").output is not None  # one node, as before
    assert_equal_arrays(weights, model.get_weights())
    model.fit(random(BATCH, TIME, WIDTH), random(BATCH, 2), verbose=0)
    assert all(np.isfinite(w).all() for w in ours.get_weights())


def test_frozen_layers_stay_frozen():
    inner = keras.Sequential([layers.LSTM(UNITS, return_sequences=True), layers.Dense(2)])
    model = keras.Sequential([keras.Input((TIME, WIDTH)), inner, layers.LSTM(UNITS)])
    inner.trainable = False
    inner.layers[1].trainable = True
    for ours in (from_keras(model, MomentumLSTM), to_keras(from_keras(model, NAGLSTM))):
        assert ours.trainable and not ours.layers[0].trainable
        assert [x.trainable for x in ours.layers[0].layers] == [False, True]
        assert len(ours.trainable_variables) == len(model.trainable_variables) == 5


RULE_NUMBERS = {
    MomentumLSTM: {"momentum": 0.4, "step_size": 0.7},
    NAGLSTM: {"step_size": 0.5},
    SRLSTM: {"restart_period": 3},
    AdamLSTM: {"beta": 0.8, "epsilon": 1e-4},
    RMSPropLSTM: {"beta": 0.7},
    RuleLSTM: {"rule": rules.NAG(step_size=0.3)},
}


@slow_if_compiled
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


@slow_if_compiled
def test_a_converted_model_saves_and_reloads(tmp_path):
    first = layers.Bidirectional(layers.LSTM(UNITS, return_sequences=True))
    model = keras.Sequential([keras.Input((TIME, WIDTH)), first, layers.LSTM(UNITS)])
    ours = from_keras(randomized(model), RuleLSTM, rule=rules.Adam(0.5))
    ours.compile("sgd", "mse")
    ours.fit(random(BATCH, TIME, WIDTH), random(BATCH, UNITS), verbose=0)
    ours.save(tmp_path / "ours.keras")
    reloaded = keras.saving.load_model(tmp_path / "ours.keras")
    assert_same(ours, reloaded, random(BATCH, TIME, WIDTH))


def test_dropout_acts_in_training_only():
    x = keras.Input((TIME, WIDTH))
    model = functional(x, outputs=layers.LSTM(UNITS, dropout=0.5)(layers.Masking()(x)))
    ours = from_keras(model, MomentumLSTM)
    first, trained, last = (
        arrays(ours(sequences(), training=training))[0] for training in (False, True, False)
    )
    assert np.abs(first - trained).max() > 1e-3
    np.testing.assert_array_equal(first, last)


def test_a_restart_at_every_step_is_the_plain_layer():
    plain = layers.LSTM(UNITS)
    plain.build((None, TIME, WIDTH))
    ours = from_keras(randomized(plain), SRLSTM, restart_period=1, step_size=1.0)
    assert_same(plain, ours, random(BATCH, TIME, WIDTH))


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
    unbuilt = to_keras(MomentumLSTM(UNITS, use_bias=use_bias, use_recurrent_bias=True))
    assert unbuilt.use_bias and not unbuilt.built


def test_to_keras_drops_the_slots_of_a_graph():
    x = keras.Input((TIME, WIDTH))
    lstm = {**PLAIN, "return_state": True}
    _, *states = MomentumLSTM(UNITS, **lstm)(x)
    y, *more = layers.Bidirectional(MomentumLSTM(UNITS, **lstm))(x)
    z = layers.Bidirectional(MomentumLSTM(UNITS, **PLAIN))(x, initial_state=more)
    model = functional(
        x, outputs=[y, z, more[3], MomentumLSTM(UNITS, **PLAIN)(x, initial_state=states)]
    )
    # At momentum 0 the carried slot is without effect.
    assert_same(model, to_keras(model), random(BATCH, TIME, WIDTH))
    with pytest.raises(ValueError, match="a slot of 'memory'"):
        _, _, _, v = MomentumLSTM(UNITS, name="memory", return_state=True)(x)
        to_keras(keras.Model(x, v))
    with pytest.raises(ValueError, match="'late' is called on a slot of 'memory'"):
        to_keras(keras.Model(x, layers.Dense(2, name="late")(v)))


def test_layers_of_ours_within_a_model_stay_when_others_are_converted():
    x = keras.Input((TIME, WIDTH))
    _, _, _, v = MomentumLSTM(UNITS, return_state=True)(x)
    model = functional(x, outputs=[v, layers.LSTM(UNITS)(x)])
    ours = from_keras(model, AdamLSTM)
    assert len(found(ours, MomentumLSTM)) == len(found(ours, AdamLSTM)) == 1
    np.testing.assert_array_equal(*[arrays(m(sequences()))[0] for m in (model, ours)])


class Doubled(layers.Layer):
    """A layer that no one registered, with weights in a layer of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(2)

    def build(self, shape):
        self.dense.build(shape)

    def call(self, x):
        return 2 * self.dense(x)


def test_layers_of_the_user_are_copied():
    last = [Doubled(), layers.Lambda(lambda x: 3 * x)]
    model = keras.Sequential([keras.Input((TIME, WIDTH)), layers.LSTM(UNITS), *last])
    ours = from_keras(randomized(model), MomentumLSTM, **PLAIN)
    assert_same(model, ours, random(BATCH, TIME, WIDTH))
    assert_same(model, to_keras(ours), random(BATCH, TIME, WIDTH))


@pytest.mark.skipif(keras.config.backend() != "tensorflow", reason="strings need TensorFlow")
def test_a_vocabulary_is_copied():
    lines = ["a b c", "c c d", "b a d"]
    text = layers.TextVectorization(output_sequence_length=TIME)
    text.adapt(lines)
    model = keras.Sequential(
        [keras.Input((), dtype="string"), text, layers.Embedding(9, WIDTH), layers.LSTM(UNITS)]
    )
    model(ops.convert_to_tensor(lines))
    ours = from_keras(model, MomentumLSTM, **PLAIN)
    assert_same(model, ours, ops.convert_to_tensor(lines))


@pytest.mark.parametrize("function", [from_keras, to_keras], ids=lambda f: f.__name__)
def test_the_example_of_the_docstring_runs(function):
    (code,) = re.findall(r"```python\n(.*?)```", function.__doc__, re.DOTALL)
    names = {}
    exec("\n".join(line[4:] for line in code.splitlines()), names)
    assert names["convert"] is convert
    assert isinstance(names.get("plain", names.get("ours")), keras.Layer)


@slow_if_compiled
@pytest.mark.parametrize(
    "plain, ours, options",
    [
        (keras.layers.SimpleRNN, MomentumRNN, {}),
        (keras.layers.GRU, MomentumGRU, {}),
        (keras.layers.GRU, MomentumGRU, {"reset_after": False}),
    ],
    ids=["SimpleRNN", "GRU", "GRU-reset-before"],
)
def test_other_families(plain, ours, options):
    rng = np.random.default_rng(0)
    model = keras.Sequential(
        [keras.Input((None, 3)), keras.layers.Bidirectional(plain(4, **options))]
    )
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape))
    x = rng.normal(size=(2, 6, 3)).astype("float32")
    converted = from_keras(model, ours, momentum=0.0, step_size=1.0)
    assert type(converted.layers[0].forward_layer) is ours
    back = to_keras(converted)
    assert type(back.layers[0].forward_layer) is plain
    for other in (converted, back):
        np.testing.assert_allclose(
            other.predict(x, verbose=0), model.predict(x, verbose=0), atol=2e-6
        )
