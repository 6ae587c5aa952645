"""`convert.accelerate`: the same model on our plain layers, which trains on where it was."""

import json
import zipfile

import keras
import numpy as np
import pytest
from conversions import (
    BATCH,
    TIME,
    UNITS,
    WIDTH,
    Subclassed,
    assert_equal_arrays,
    assert_same,
    configs,
    distinct,
    functional,
    random,
    randomized,
    sequences,
)
from harness import array, assert_close
from keras import layers, ops

import keras_momentum_rnn as kmr
from keras_momentum_rnn.convert import accelerate, from_keras, to_keras
from keras_momentum_rnn.layers.plain import PlainLayer
from keras_momentum_rnn.paths.native.runtime import SWITCH


def plain(layer):
    """Return how many of our plain layers there are inside a layer or model."""
    return len(distinct(layer, PlainLayer))


def assert_there_and_back(model, inputs, count):
    """Accelerate a model and convert it back; return the fast one."""
    before = model.get_weights()
    fast = accelerate(model)
    back = to_keras(fast)
    assert plain(fast) == count and plain(model) == plain(back) == 0
    assert_same(model, fast, inputs)
    assert_same(model, back, inputs)
    assert configs(back) == configs(model)
    for other in (model, fast, back):
        assert_equal_arrays(before, other.get_weights())
    return fast


def test_models_of_every_structure():
    a, b = keras.Input((TIME, WIDTH), name="a"), keras.Input((TIME, WIDTH), name="b")
    many = keras.Input((2, TIME, WIDTH))
    shared = layers.GRU(UNITS, return_sequences=True, reset_after=False, name="shared")
    nested = keras.Sequential([keras.Input((TIME, UNITS)), layers.SimpleRNN(UNITS)])
    x = layers.Masking()(a)
    code, *states = layers.LSTM(UNITS, return_state=True, name="encoder")(x)
    both = layers.Bidirectional(layers.GRU(UNITS, return_sequences=True))(x)
    outputs = {
        "nested": [nested(shared(a)), nested(shared(b))],
        "decoder": layers.LSTM(UNITS, go_backwards=True)(b, initial_state=states),
        "both": layers.Add()([ops.mean(both, axis=1)[:, :UNITS], code]),
        "many": layers.TimeDistributed(layers.SimpleRNN(2, activation="relu"))(many),
    }
    model = functional(a, b, many, outputs=outputs)
    inputs = [sequences(), random(BATCH, TIME, WIDTH), random(BATCH, 2, TIME, WIDTH)]
    fast = assert_there_and_back(model, inputs, 7)
    assert [x.name for x in fast.layers] == [x.name for x in model.layers]


def test_what_is_called_by_name_keeps_its_place():
    """Keras orders layers by how they are called, and `set_weights` goes by the order."""
    inputs = keras.Input((TIME, WIDTH))
    x = layers.LSTM(4, return_sequences=True)(inputs)
    query, key, start = (layers.Dense(4, name=name)(x) for name in ("query", "key", "start"))
    attended = layers.MultiHeadAttention(1, 4)(query=query, value=key, key=key)
    start = layers.GlobalAveragePooling1D()(start)
    decoded = layers.GRU(4)(sequences=layers.Dense(3)(attended), initial_state=start)
    model = keras.Model(inputs, decoded)
    model.compile("adam", "mse")
    data = random(8, TIME, WIDTH), random(8, 4)
    fit(model, data)
    fast = accelerate(model)
    assert [x.name for x in fast.layers] == [x.name for x in model.layers]
    assert_close(fit(fast, data), fit(model, data), 1e-5)
    fast.set_weights(model.get_weights())
    assert_same(model, fast, sequences())


def halved(x):
    """An activation that no one registered."""
    return x / 2


def both_halved():
    with keras.saving.custom_object_scope({"halved": halved}):  # which Keras needs here
        return layers.Bidirectional(layers.LSTM(UNITS, activation=halved))


@pytest.mark.parametrize(
    "make",
    [
        both_halved,
        lambda: layers.LSTM(UNITS, use_cudnn=False, implementation=1, dropout=0.2, seed=3),
        lambda: layers.Bidirectional(layers.GRU(UNITS, zero_output_for_mask=True)),
        lambda: layers.SimpleRNN(UNITS, dtype="mixed_bfloat16"),
        lambda: layers.SimpleRNN(UNITS, recurrent_dropout=0.4, seed=3),
    ],
    ids=["activation", "LSTM", "bidirectional", "half", "seed"],
)
def test_a_layer_alone_keeps_its_options(make):
    layer = make()
    layer.build((BATCH, TIME, WIDTH))
    randomized(layer)
    both = isinstance(layer, layers.Bidirectional)
    fast = assert_there_and_back(layer, sequences(), 2 if both else 1)
    if isinstance(layer, layers.LSTM):
        for new in (fast, to_keras(fast)):
            assert new.use_cudnn is False and new.cell.implementation == 1
    if isinstance(layer, layers.SimpleRNN):
        assert fast.cell.seed == to_keras(fast).cell.seed == layer.cell.seed


def test_variables_that_come_in_another_order():
    """A quantized Dense layer makes its kernel last where it is rebuilt."""
    inputs = keras.Input((TIME, WIDTH))
    x = layers.LSTM(UNITS)(layers.Dense(8)(inputs))
    model = keras.Model(inputs, layers.Dense(8)(x))
    model.quantize("float8")
    assert_same(model, accelerate(model), sequences())


def test_what_was_set_on_a_weight_itself_goes_along():
    layer = layers.LSTM(UNITS, bias_constraint="non_neg")
    model = keras.Sequential([keras.Input((TIME, WIDTH)), layer])
    kernel, recurrent, bias = model.weights
    bias.constraint = None
    kernel.regularizer = keras.regularizers.L2(1.0)
    recurrent.constraint = keras.constraints.NonNeg()
    fast = accelerate(model)
    assert array(fast.losses[0]) == pytest.approx(array(model.losses[0]))
    assert [w.constraint for w in fast.weights] == [None, recurrent.constraint, None]


class Penalised(layers.Layer):
    def build(self, shape):
        self.rate = self.add_weight(shape=(), initializer="ones", trainable=False)
        self.w = self.add_weight(shape=shape[-1:], initializer="ones", regularizer=self.penalty)

    def penalty(self, w):
        return self.rate * ops.sum(w)

    def call(self, x):
        return x * self.w


def test_a_penalty_that_a_layer_computes_is_that_of_the_copy():
    rotated = kmr.DTRIV(UNITS, recurrent_regularizer="l2", initial_rotation="skew")
    inputs = keras.Input((TIME, WIDTH))
    model = keras.Model(
        inputs, Penalised()(rotated(layers.LSTM(3, return_sequences=True)(inputs)))
    )
    fast = accelerate(model)
    skew, rate = fast.layers[2].cell.skew, fast.layers[3].rate
    skew.assign(2 * ops.convert_to_tensor(skew))
    rate.assign(3.0)
    for factor, one, other in zip((4, 3), model.losses, fast.losses, strict=True):
        assert array(other) == pytest.approx(factor * array(one))


def test_a_stateful_layer_goes_on_from_its_states():
    layer = layers.SimpleRNN(UNITS, stateful=True)
    layer(sequences())
    copies = [accelerate(layer), to_keras(accelerate(layer))]
    for _ in range(2):
        expected = layer(sequences())
        for copy in copies:
            assert_close(*(ops.convert_to_numpy(y) for y in (copy(sequences()), expected)))


def test_layers_that_stay_keep_their_states():
    inputs = keras.Input(batch_shape=(BATCH, TIME, WIDTH))
    stays = kmr.MomentumLSTM(UNITS, stateful=True, return_sequences=True)
    model = randomized(keras.Sequential([inputs, stays, layers.LSTM(UNITS)]))
    model(sequences())
    assert_same(model, accelerate(model), sequences())


def test_a_rule_may_follow():
    model = keras.Sequential([keras.Input((TIME, WIDTH)), layers.LSTM(UNITS)])
    ours = from_keras(accelerate(randomized(model)), kmr.MomentumLSTM, momentum=0, step_size=1)
    assert type(ours.layers[0]) is kmr.MomentumLSTM
    assert_same(model, ours, sequences())


@keras.saving.register_keras_serializable(package="tests")
class Wrong(keras.metrics.Metric):
    """A metric with a variable of its own."""

    def __init__(self, name="wrong", **kwargs):
        super().__init__(name=name, **kwargs)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign(self.total + ops.sum(ops.abs(y_true - y_pred)))

    def result(self):
        return self.total.value


def huge(y_true, y_pred):
    """A loss that no one registered."""
    return 10 * ops.mean(ops.square(y_true - y_pred), axis=-1)


def trained():
    """Return a model of all kinds of layers after an epoch, and the data."""
    keras.utils.set_random_seed(0)
    a, b = keras.Input((TIME, WIDTH), name="a"), keras.Input((TIME, WIDTH), name="b")
    shared = layers.GRU(UNITS, return_sequences=True, dropout=0.2, seed=1)
    frozen = layers.LSTM(UNITS, trainable=False)
    both = layers.Bidirectional(layers.LSTM(UNITS, recurrent_regularizer="l2"))(shared(a))
    y = layers.Dropout(0.2, seed=3)(frozen(shared(b)))
    outputs = {"y": layers.Dense(2, name="y")(both), "z": layers.Dense(2, name="z")(y)}
    model = keras.Model({"a": a, "b": b}, outputs)
    rate = keras.optimizers.schedules.ExponentialDecay(0.05, 4, 0.5)
    model.compile(
        keras.optimizers.Adam(rate, clipnorm=1.0, amsgrad=True),
        {"y": huge, "z": keras.losses.Huber(delta=0.5)},
        loss_weights={"y": 0.1, "z": 1.0},
        metrics={"y": ["mae", Wrong()], "z": keras.metrics.RootMeanSquaredError()},
    )
    x = {name: random(8, TIME, WIDTH, seed=i) for i, name in enumerate("ab")}
    data = x, {"y": random(8, 2, seed=2), "z": random(8, 2, seed=3)}
    fit(model, data)
    return model, data


def fit(model, data, epochs=2):
    """Train, in an order that does not change, and return every number of the history."""
    history = model.fit(*data, batch_size=4, epochs=epochs, shuffle=False, verbose=0).history
    return [history[name] for name in sorted(history)]


def test_training_goes_on_as_if_nothing_had_happened():
    model, data = trained()
    fast = accelerate(model)
    back = to_keras(fast)
    for other in (fast, back):
        assert other.compiled and int(other.optimizer.iterations) == 4
        assert_equal_arrays(model.optimizer.variables, other.optimizer.variables)
    expected = fit(model, data)
    for other in (fast, back):
        np.testing.assert_allclose(fit(other, data), expected, rtol=2e-5)
        for one, two in zip(other.get_weights(), model.get_weights(), strict=True):
            assert_close(one, two, 1e-5)


def test_a_file_of_the_way_back_needs_keras_alone(tmp_path):
    model, data = trained()
    model.compile("adam", "mse", metrics={"y": "mae"})
    back = to_keras(accelerate(model))
    fit(back, data)
    back.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as file:
        assert "momentum_rnn" not in file.read("config.json").decode()
        assert json.loads(file.read("config.json"))["compile_config"]["optimizer"]
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_equal_arrays(back.optimizer.variables, loaded.optimizer.variables)


def test_a_loss_scale_goes_along():
    """Keras puts it around the optimizer, and not into the config."""
    keras.config.set_dtype_policy("mixed_float16")
    model = keras.Sequential(
        [keras.Input((TIME, WIDTH)), layers.LSTM(UNITS), layers.Dense(2, dtype="float32")]
    )
    model.compile(keras.optimizers.SGD(0.1, momentum=0.5), "mse")
    data = random(8, TIME, WIDTH), random(8, 2)
    fit(model, data)
    fast = accelerate(model)
    assert type(fast.optimizer) is keras.optimizers.LossScaleOptimizer
    assert type(fast.optimizer.inner_optimizer) is type(model.optimizer.inner_optimizer)
    assert_equal_arrays(model.optimizer.variables, fast.optimizer.variables)
    assert_close(fit(fast, data), fit(model, data), 1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_without_a_trained_optimizer(compiled):
    model = keras.Sequential([keras.Input((TIME, WIDTH)), layers.LSTM(UNITS)])
    if compiled:
        model.compile(keras.optimizers.SGD(0.25), "mse", jit_compile=False)
    fast = accelerate(model)
    assert fast.compiled == compiled
    if compiled:
        assert float(fast.optimizer.learning_rate) == 0.25
        assert fast.loss == "mse" and not fast.jit_compile


def frozen_after_training():
    model, _ = trained()
    model.layers[-1].trainable = False
    return model


def with_another_layer_frozen():
    """Keras's `fit` refuses it, though as many weights are trained as before."""
    first, second = layers.LSTM(2, return_sequences=True, trainable=False), layers.LSTM(2)
    model = keras.Sequential([keras.Input((TIME, 2)), first, second])
    model.compile("adam", "mse")
    fit(model, (random(4, TIME, 2), random(4, 2)))
    first.trainable, second.trainable = True, False
    return model


def with_a_nameless_metric():
    model = keras.Sequential([keras.Input((TIME, WIDTH)), layers.LSTM(2)])
    model.compile("sgd", "mse", metrics=[huge])
    return model


def with_weights_in_another_order():
    """As in `test_variables_that_come_in_another_order`."""
    inputs = keras.Input((TIME, WIDTH))
    model = keras.Model(inputs, layers.LSTM(UNITS)(layers.Dense(8)(inputs)))
    model.quantize("float8")
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return model


ERRORS = {
    "nothing": (lambda: layers.Dense(2), "no keras.layers.LSTM, GRU, SimpleRNN"),
    "again": (lambda: accelerate(layers.LSTM(2)), "no keras.layers.LSTM, GRU, SimpleRNN"),
    "subclassed": (lambda: Subclassed(name="mine"), "'mine'.*class of its own, Subclassed"),
    "frozen": (frozen_after_training, "made for other variables.*Compile the model again"),
    "another frozen": (with_another_layer_frozen, "made for other variables"),
    "reordered": (with_weights_in_another_order, "made for other variables"),
    "metric": (with_a_nameless_metric, "custom_object_scope.*huge"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_is_wrong(case):
    make, message = ERRORS[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        accelerate(make())


def test_a_metric_may_be_named_to_keras():
    with keras.saving.custom_object_scope({"huge": huge}):
        fast = accelerate(with_a_nameless_metric())
    assert len(fit(fast, (random(8, TIME, WIDTH), random(8, 2)), epochs=1)) == 2


class MyLSTM(layers.LSTM):
    """A subclass, which may do anything."""


class Reader(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.memories = [layers.GRU(UNITS, name="hidden")]

    def call(self, x):
        return self.memories[0](x)


def test_the_report_names_what_was_replaced_and_what_not(capsys, monkeypatch):
    monkeypatch.setenv(SWITCH, "0")  # so that a dropout of h changes the path
    many = {"return_sequences": True}
    drops = {"recurrent_dropout": 0.2, **many}
    model = keras.Sequential(
        [
            keras.Input((TIME, WIDTH)),
            layers.Bidirectional(layers.LSTM(UNITS, **drops), name="both"),
            layers.GRU(UNITS, reset_after=False, name="slow", **many),
            MyLSTM(UNITS, name="mine", **many),
            layers.RNN(layers.LSTMCell(UNITS), name="loop", **many),
            kmr.MomentumLSTM(UNITS, name="ours", **many),
            Reader(name="reader"),
        ]
    )
    accelerate(model)
    assert capsys.readouterr().out == ""
    fast = accelerate(model, report=True)
    path = fast.layers[0].forward_layer.plan(training=True).path
    lines = capsys.readouterr().out.splitlines()
    expected = [
        ("forward_", f"(LSTM): replaced, trains on the path '{path}': "),
        ("backward_", f"(LSTM): replaced, trains on the path '{path}': "),
        ("slow (GRU): replaced, trains on the path 'keras': ", "reset_after=False has no"),
        ("mine (MyLSTM)", ": kept, of a subclass of Keras's"),
        ("loop (RNN)", ": kept, no LSTM, GRU or SimpleRNN"),
        ("ours (MomentumLSTM)", ": kept, a layer of keras_momentum_rnn"),
        ("hidden (GRU)", ": kept, made by the layer 'reader' of the class Reader"),
    ]
    for line, (start, rest) in zip(lines, expected, strict=True):
        assert line.startswith(start) and rest in line
