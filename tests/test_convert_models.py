"""Conversion of whole models: what they share, hold frozen or got from the user."""

import keras
import numpy as np
import pytest
from conversions import (
    BATCH,
    PLAIN,
    TIME,
    UNITS,
    WIDTH,
    arrays,
    assert_converts,
    assert_equal_arrays,
    assert_same,
    distinct,
    functional,
    random,
    randomized,
    sequences,
)
from harness import array, assert_close
from keras import layers, ops

from keras_momentum_rnn import MCRM, NAGLSTM, AdamLSTM, MomentumLSTM, streaming
from keras_momentum_rnn.convert import accelerate, from_keras, to_keras


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
    assert len(distinct(ours, MomentumLSTM)) == 2
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


def test_frozen_cells_and_weights_stay_frozen():
    model = keras.Sequential(
        [
            keras.Input((TIME, WIDTH)),
            *(layers.LSTM(UNITS, return_sequences=True) for _ in range(2)),
            layers.Dense(2),
        ]
    )
    first, second, dense = model.layers
    first.cell.trainable = False
    second.cell.kernel.trainable = dense.kernel.trainable = False
    for ours in (from_keras(model, MomentumLSTM), to_keras(from_keras(model, NAGLSTM))):
        flags = [weight.trainable for weight in ours.weights]
        assert flags == [weight.trainable for weight in model.weights]
        assert flags == [False] * 4 + [True] * 2 + [False, True]


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
    assert len(distinct(ours, MomentumLSTM)) == len(distinct(ours, AdamLSTM)) == 1
    np.testing.assert_array_equal(*[arrays(m(sequences()))[0] for m in (model, ours)])


class Doubled(layers.Layer):
    """A layer that no one registered, with weights in a layer of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense, self.norm = layers.Dense(2), layers.BatchNormalization()

    def build(self, shape):
        self.dense.build(shape)
        self.norm.build((*shape[:-1], 2))

    def call(self, x, training=False):
        return 2 * self.norm(self.dense(x), training=training)


class OwnCell(layers.SimpleRNNCell):
    """A cell that no one registered."""


class Nameless(layers.Layer):
    """A layer whose config has no name."""

    def __init__(self, factor=0.5):
        super().__init__()
        self.factor = factor

    def call(self, x):
        return self.factor * x

    def get_config(self):
        return {"factor": self.factor}


def shifted(x, by):
    return x + by


class Scaled(layers.Layer):
    def call(self, *, x, by=1.0):
        return by * x


def test_a_layer_of_the_user_may_take_its_input_by_name_alone():
    x = keras.Input((TIME, WIDTH))
    model = keras.Model(x, Scaled()(x=layers.LSTM(UNITS)(x), by=2.0))
    assert_same(model, from_keras(model, MomentumLSTM, **PLAIN), random(BATCH, TIME, WIDTH))


def test_layers_of_the_user_are_copied():
    last = [Doubled(), layers.Lambda(lambda x: ops.roll(x, 1)), Nameless()]
    last += [layers.Lambda(shifted, arguments={"by": 2})]
    cell = layers.RNN(OwnCell(3), return_sequences=True)
    model = keras.Sequential([keras.Input((TIME, WIDTH)), cell, layers.LSTM(UNITS), *last])
    variance = last[0].norm.moving_variance
    randomized(model)
    variance.assign(np.abs(array(variance)))
    last[0].norm.trainable = False  # so in training, too, it computes with its statistics
    ours = from_keras(model, MomentumLSTM, **PLAIN)
    x = random(BATCH, TIME, WIDTH)
    assert_close(array(ours(x, training=True)), array(model(x, training=True)))
    assert_same(model, ours, random(BATCH, TIME, WIDTH))
    assert_same(model, to_keras(ours), random(BATCH, TIME, WIDTH))


@keras.saving.register_keras_serializable(package="tests")
class Tied(layers.Layer):
    """A layer that reads the weight of another."""

    def __init__(self, dense, **kwargs):
        super().__init__(**kwargs)
        self.dense = dense

    def build(self, shape):
        if not self.dense.built:
            self.dense.build((None, UNITS))

    def call(self, x):
        return x @ ops.transpose(self.dense.kernel)

    def get_config(self):
        dense = keras.saving.serialize_keras_object(self.dense)
        return {**super().get_config(), "dense": dense}

    @classmethod
    def from_config(cls, config):
        dense = keras.saving.deserialize_keras_object(config.pop("dense"))
        return cls(dense, **config)


@pytest.mark.parametrize("name", ["relu", "leaky"])
def test_an_activation_need_not_be_registered_nor_have_a_name_of_its_own(name):
    def hard_sigmoid(x):  # that of Keras 2
        return ops.clip(0.2 * x + 0.5, 0, 1)

    def relu(x):
        return ops.leaky_relu(x, 0.5)

    relu.__name__ = name
    both = {"activation": relu, "recurrent_activation": hard_sigmoid}
    x = np.random.default_rng(0).normal(size=(2, 1, 3)).astype("float32")
    for layer, convert in (
        (layers.LSTM(4, **both), accelerate),
        (MomentumLSTM(4, **both), lambda model: to_keras(model, exact=True)),
    ):
        dense = layers.TimeDistributed(layers.Dense(3, relu))
        model = keras.Sequential([keras.Input((None, 3)), dense, layer])
        step = streaming.step_model(model)
        streamed, *_ = step([x[:, 0], *streaming.initial_states(step, 2)])
        for copy in (convert(model)(x), streamed):
            assert_close(array(copy), array(model(x)), tolerance=1e-6)
    with pytest.warns(UserWarning, match="computes another function"):
        plain = to_keras(model)  # a warning that is computed by copies of the layers
    assert plain.layers[-1].activation is relu
    memory = layers.GRUCell(4, **both)
    nested = MCRM(4, memory=memory)
    nested(x)
    memory.build((None, 8))
    memory.set_weights(nested.cell.memory.get_weights())
    drive, state = random(2, 8), random(2, 4)
    h, expected = nested.cell.memory(drive, [state])[0], memory(drive, [state])[0]
    assert_close(array(h), array(expected), tolerance=1e-6)


def test_a_weight_that_two_layers_share_is_not_split():
    x, dense = keras.Input((TIME, WIDTH)), layers.Dense(2, use_bias=False)
    model = keras.Model(x, Tied(dense)(dense(layers.LSTM(UNITS)(x))))
    with pytest.raises(ValueError, match=r"share the weight '.*/kernel'"):
        from_keras(model, MomentumLSTM)
    dense.trainable = False
    assert_same(model, from_keras(model, MomentumLSTM, **PLAIN), random(BATCH, TIME, WIDTH))


class Standardised(layers.Layer):
    """A layer that holds one of Keras with statistics."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.normalization = layers.Normalization()

    def build(self, shape):
        self.normalization.build(shape)

    def call(self, x):
        return self.normalization(x)


def test_statistics_are_copied():
    x, normalization, own = 5 * sequences() + 7, layers.Normalization(), Standardised()
    model = keras.Sequential(
        [keras.Input((TIME, WIDTH)), normalization, own, layers.LSTM(UNITS)]
    )
    normalization.adapt(x)
    own.normalization.adapt(sequences())
    ours = from_keras(model, MomentumLSTM, **PLAIN)
    assert_same(model, ours, x)
    assert_same(model, to_keras(ours), x)


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
