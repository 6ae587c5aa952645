"""A step model gives, step by step, what `predict` gives for the sequence so far."""

import warnings

import keras
import numpy as np
import pytest
from cases import REPRESENTATIVES
from harness import array, assert_close, normal, randomise
from keras import layers, ops
from test_convert_models import Nameless

import keras_momentum_rnn as kmr
from keras_momentum_rnn.streaming import initial_states, step_model

BATCH, TIME, FEATURES, UNITS = 2, 5, 3, 4
X = normal(np.random.default_rng(1), BATCH, TIME, FEATURES)


def streamed(step, *inputs):
    """Return the outputs of all steps, a list of `(time, batch, ...)`, and the last states."""
    states = initial_states(step, len(inputs[0]))
    outputs = []
    for t in range(inputs[0].shape[1]):
        results = [array(r) for r in step([*(x[:, t] for x in inputs), *states])]
        states = results[len(results) - len(states) :]
        outputs.append(results[: len(results) - len(states)])
    return [np.stack(parts) for parts in zip(*outputs)], states


def assert_streams(model, x=X, tolerance=2e-6):
    """Compare every step with `predict` of the sequence up to it."""
    randomise(model, np.random.default_rng(2))
    (outputs,), _ = streamed(step_model(model), x)
    has_time = len(model.outputs[0].shape) == 3
    for t in range(x.shape[1]):
        expected = array(model(x[:, : t + 1]))
        assert_close(outputs[t], expected[:, -1] if has_time else expected, tolerance)


@pytest.mark.parametrize("case", REPRESENTATIVES)
@pytest.mark.parametrize("sequences", [False, True])
def test_step_by_step_equals_predict(case, sequences):
    model = keras.Sequential(
        [
            keras.Input((None, FEATURES)),
            layers.Dense(3),
            case.layer(UNITS, return_sequences=True),
            layers.LayerNormalization(),
            case.layer(UNITS, return_sequences=sequences),
            layers.RMSNormalization(),
            layers.Dense(2),
        ]
    )
    assert_streams(model, tolerance=1e-5)


@pytest.mark.parametrize("layer", [layers.LSTM, layers.GRU, layers.SimpleRNN, kmr.GRU])
def test_layers_without_a_rule_stream_too(layer):
    assert_streams(keras.Sequential([keras.Input((TIME, FEATURES)), layer(UNITS)]), X[:, :1])
    assert_streams(keras.Sequential([keras.Input((None, FEATURES)), layer(UNITS)]))


@pytest.mark.parametrize("zero", [False, True])
def test_masked_steps(zero):
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            layers.Embedding(5, 3, mask_zero=True),
            kmr.NAGLSTM(UNITS, return_sequences=True, zero_output_for_mask=zero),
        ]
    )
    assert_streams(model, np.array([[1, 2, 0, 3, 0], [0, 4, 1, 0, 2]], "int32"))


def masked(*parts):
    return keras.Sequential([keras.Input((None, FEATURES)), layers.Masking(), *parts])


def masked_branches():
    x = keras.Input((None, FEATURES))
    y = layers.Masking()(x)
    branches = [
        kmr.MomentumLSTM(4, return_sequences=True),
        kmr.AdamGRU(3, return_sequences=True),
    ]
    y = layers.Concatenate()([branch(y) for branch in branches])
    return keras.Model(x, layers.LSTM(UNITS, return_sequences=True)(y))


def mask_into_a_nested_model():
    x = keras.Input((None, FEATURES))
    parts = [kmr.MomentumLSTM(4, return_sequences=True), kmr.AdamGRU(3, return_sequences=True)]
    inner = keras.Sequential([keras.Input((None, FEATURES)), *parts, layers.Dropout(0.5)])
    return keras.Model(x, layers.GRU(UNITS)(inner(layers.Masking()(x))))


def mask_out_of_a_nested_model():
    x = keras.Input((None, FEATURES))
    inner = masked(kmr.SRGRU(4, return_sequences=True), layers.Dense(3))
    return keras.Model(x, kmr.NAGLSTM(UNITS, return_sequences=True)(inner(x)))


STACK = [layers.GRUCell(4), kmr.MomentumLSTMCell(3)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: masked(layers.RNN(kmr.MomentumLSTMCell(4), return_sequences=True)),
        lambda: masked(layers.RNN(layers.GRUCell(4), return_sequences=True)),
        lambda: masked(layers.RNN(STACK, return_sequences=True)),
        masked_branches,
        mask_into_a_nested_model,
        mask_out_of_a_nested_model,
    ],
)
def test_masks_reach_what_they_reach_in_a_sequence(make):
    x = X.copy()
    x[0, 1:3] = x[1, 0] = x[1, 4] = 0
    assert_streams(make(), x, tolerance=1e-5)


def test_stacked_cells():
    cells = [kmr.AdamLSTMCell(4), layers.SimpleRNNCell(3)]
    assert_streams(keras.Sequential([keras.Input((None, FEATURES)), layers.RNN(cells)]))


def test_arithmetic_of_the_inputs():
    x = keras.Input((None, FEATURES))
    assert_streams(keras.Model(x, kmr.MomentumLSTM(UNITS)((x / 2.0) ** 2 * np.float32(3))))


def normalized():
    parts = [layers.Normalization(), layers.TimeDistributed(layers.Normalization())]
    model = sequential(*parts, kmr.MomentumLSTM(UNITS))
    parts[0].adapt(4 * X + 7)
    parts[1].layer.adapt(2 * X[:, 0] - 1)
    return model


def quantized():
    model = sequential(layers.Dense(8), kmr.MomentumLSTM(UNITS), layers.Dense(2))
    model.quantize("float8")
    return model


def decoder():
    """Return a model that unfolds the last output again, over a time of its own."""
    parts = [layers.RepeatVector(3), layers.LSTM(UNITS, return_sequences=True)]
    return sequential(kmr.MomentumLSTM(UNITS), *parts, layers.Dense(2))


@pytest.mark.parametrize(
    "make",
    [normalized, quantized, decoder, lambda: sequential(kmr.AdamGRU(UNITS), Nameless())],
    ids=["normalized", "quantized", "decoder", "nameless"],
)
def test_the_last_step_gives_what_the_sequence_gives(make):
    model = make()
    (outputs,), _ = streamed(step_model(model), X)
    assert_close(outputs[-1], array(model(X)))


@pytest.mark.skipif(keras.config.backend() != "tensorflow", reason="strings need TensorFlow")
def test_a_vocabulary_is_copied():
    names = ops.convert_to_tensor(["ann", "bob"])
    x, who = keras.Input((None, FEATURES)), keras.Input((), dtype="string", name="who")
    lookup = layers.StringLookup()
    lookup.adapt(names)
    index = ops.cast(lookup(who), "float32")[:, None]
    model = keras.Model([x, who], layers.Concatenate()([kmr.MomentumLSTM(UNITS)(x), index]))
    step = step_model(model, constant_inputs=["who"])
    states = map(ops.convert_to_tensor, initial_states(step, BATCH))
    y, *_ = step([ops.convert_to_tensor(X[:, 0]), names, *states])
    assert_close(array(y), array(model([ops.convert_to_tensor(X[:, :1]), names])))


def test_layers_and_calls_of_one_name():
    def inner(name):
        layer = kmr.MomentumLSTM(FEATURES, return_sequences=True, name="same")
        return keras.Sequential([keras.Input((None, FEATURES)), layer], name=name)

    x = keras.Input((None, FEATURES))
    first = inner("p")
    y = first(layers.Add()([first(x), inner("q")(x)]))
    assert_streams(keras.Model(x, kmr.MomentumLSTM(UNITS, name="same_2")(y)))


def test_constant_inputs():
    x, speaker = keras.Input((None, FEATURES)), keras.Input((5,), name="speaker")
    parts = [kmr.MomentumLSTM(UNITS)(x), layers.Dense(2, activation="softmax")(speaker)]
    model = keras.Model([x, speaker], layers.Concatenate()(parts))
    randomise(model, np.random.default_rng(2))
    step = step_model(model, constant_inputs=["speaker"])
    who = normal(np.random.default_rng(3), BATCH, 5)
    states = initial_states(step, BATCH)
    for t in range(TIME):
        y, *states = map(array, step([X[:, t], who, *states]))
    assert_close(y, array(model([X, who])), 2e-6)
    with pytest.raises(ValueError, match="`constant_inputs` must be names"):
        step_model(model, constant_inputs=["listener"])
    parts[1] = layers.Dense(2, activation=lambda x: x * x)(speaker)
    for other in (model, keras.Model([x, speaker], layers.Concatenate()(parts))):
        with pytest.raises(ValueError, match="name inputs without a time axis"):
            step_model(other)


def test_nested_models_and_shared_layers():
    shared = kmr.MomentumLSTM(UNITS, return_sequences=True, name="shared")
    inner = keras.Sequential([keras.Input((None, FEATURES)), shared], name="inner")
    x = keras.Input((None, FEATURES), name="x")
    y = layers.Concatenate()([inner(x), shared(layers.Dense(FEATURES)(x))])
    model = keras.Model(x, kmr.AdamGRU(UNITS)(y))
    step = step_model(model)
    names = [i.name for i in step.inputs]
    assert names[0] == "x" and "state_shared_v" in names and "state_shared_2_v" in names
    assert_streams(model)


def test_a_nested_model_takes_its_inputs_by_name_and_in_its_dtype():
    z, a = keras.Input((None, FEATURES), name="z"), keras.Input((None, FEATURES), name="a")
    whole = keras.Input((None, FEATURES), dtype="int32", name="whole")
    h = kmr.MomentumLSTM(UNITS, return_sequences=True)(layers.Subtract()([z, a]))
    inner = keras.Model([z, a, whole], layers.Concatenate()([h, ops.cast(whole, "float32")]))
    x = keras.Input((None, FEATURES))
    assert_streams(keras.Model(x, inner({"z": x, "a": 2 * x * x, "whole": 3 * x})))


def test_names_of_inputs_outputs_and_layers_do_not_collide():
    x = keras.Input((None, FEATURES))
    h = layers.Dense(2, name="output_dense")(layers.Dense(3, name="input")(x))
    model = keras.Model(x, layers.Dense(2, name="dense")(kmr.AdamGRU(UNITS)(h)))
    assert_streams(model)
    assert step_model(model).output_names[0] == "output_dense"


def test_states_are_named_and_slots_come_last():
    model = keras.Sequential(
        [keras.Input((None, FEATURES)), kmr.AdamLSTM(UNITS, name="memory")], name="net"
    )
    step = step_model(model)
    assert [i.name for i in step.inputs][1:] == [f"state_memory_{n}" for n in "hcvm"]
    assert [s.shape for s in initial_states(step, 3)] == [(3, 4), (3, 4), (3, 16), (3, 16)]
    _, states = streamed(step, X)
    expected = kmr.AdamLSTM(UNITS, return_state=True)
    expected.build(X.shape)
    expected.set_weights(model.get_weights())
    for actual, state in zip(states, expected(X)[1:], strict=True):
        assert_close(actual, array(state), 1e-5)
    keras.config.set_dtype_policy("mixed_bfloat16")  # which the layers do not have
    half = sequential(kmr.AdamLSTM(UNITS, dtype="mixed_float16"))
    half.add(layers.Dense(2, dtype="float32"))
    step = step_model(half)
    dtypes = [state.dtype for state in initial_states(step)]
    assert dtypes == ["float16", "float16", "float32", "float32"]
    assert [y.dtype for y in step.outputs] == ["float32", *dtypes]


def test_every_output_is_given_and_named():
    """One without time, and two of one layer, whose names would fall together."""
    x = keras.Input((None, FEATURES))
    h = kmr.MomentumLSTM(UNITS, return_sequences=True)(x)
    dense = layers.Dense(2, name="dense")
    model = keras.Model(x, [dense(h), kmr.AdamGRU(UNITS, name="last")(h), dense(2 * h)])
    randomise(model, np.random.default_rng(2))
    step = step_model(model)
    assert step.output_names[:3] == ["output_dense", "output_last", "output_dense_2"]
    outputs, _ = streamed(step, X)
    for actual, expected in zip(outputs, map(array, model(X)), strict=True):
        assert_close(actual[-1], expected[:, -1] if expected.ndim == 3 else expected, 2e-6)
    last = sequential(kmr.MomentumLSTM(UNITS, return_state=True, name="last"))
    outputs, states = streamed(step_model(last), X)
    for actual, expected in zip([y[-1] for y in outputs], map(array, last(X)), strict=True):
        assert_close(actual, expected, 2e-6)
    assert len(states) == 3


def test_first_states_are_zeros_of_a_step_model():
    step = step_model(sequential(kmr.MomentumLSTM(UNITS)))
    with pytest.raises(ValueError, match=r"`batch_size` must be .* Received: batch_size=0"):
        initial_states(step, 0)
    with pytest.raises(ValueError, match="`step` must come from `step_model`"):
        initial_states(sequential(layers.Dense(2)))


def test_a_step_model_is_a_copy_and_can_be_saved(tmp_path):
    model = keras.Sequential([keras.Input((None, FEATURES)), kmr.MomentumDTRIV(UNITS)])
    randomise(model, np.random.default_rng(2))
    step = step_model(model)
    (rotating,) = (x for x in step.layers if isinstance(x, kmr.MomentumDTRIV))
    assert rotating.cell.fixed_matrix is not None  # computed once
    (before,), _ = streamed(step, X)
    step.save(tmp_path / "step.keras")
    loaded = keras.saving.load_model(tmp_path / "step.keras")
    assert_close(streamed(loaded, X)[0][0], before, 1e-5)
    for weight in model.trainable_weights:
        weight.assign(0 * array(weight))
    assert_close(streamed(step, X)[0][0], before, 1e-6)


def sequential(*parts):
    return keras.Sequential([keras.Input((TIME, FEATURES)), *parts])


class Doubled(layers.GRUCell):
    def call(self, inputs, states, training=False):
        h, states = super().call(inputs, states, training)
        return 2 * h, states


def test_a_memory_need_not_be_registered():
    model = sequential(kmr.MCRM(UNITS, memory=Doubled(UNITS), return_sequences=True))
    randomise(model, np.random.default_rng(2))
    (outputs,), _ = streamed(step_model(model), X)
    assert_close(np.stack(outputs, 1), array(model(X)), 2e-6)


class Differences(layers.Identity):
    def call(self, x):
        return x - ops.roll(x, 1, axis=1)


class Detrended(layers.LSTM):
    def call(self, sequences, initial_state=None, **kwargs):
        mean = ops.mean(sequences, axis=1, keepdims=True)
        return super().call(sequences - mean, initial_state, **kwargs)


def centred(x):
    return x - ops.mean(x, axis=1, keepdims=True)


@keras.saving.register_keras_serializable(package="tests")
def halved(x):
    return x / 2


@keras.saving.register_keras_serializable(package="tests")
def compressed(x):
    """Only for numbers that are not negative; others give NaN."""
    return ops.log(ops.sqrt(x) + 1)


@pytest.mark.parametrize("activation", [halved, compressed, layers.PReLU(shared_axes=[1])])
def test_an_activation_of_the_user_streams(activation):
    x = keras.Input((None, FEATURES))
    inputs = layers.ReLU()(x)
    dense = layers.Activation(activation)(layers.Dense(UNITS, "relu")(inputs))
    assert_streams(keras.Model(x, kmr.AdamGRU(4)(sequences=dense)))


class Head(layers.Layer):
    """Its layer is built when it is called first, as in many examples of Keras."""

    def __init__(self, **options):
        super().__init__(**options)
        self.dense = layers.Dense(3)

    def call(self, x):
        return self.dense(x)


def test_a_layer_that_builds_its_layers_in_a_call():
    assert_streams(sequential(kmr.MomentumLSTM(UNITS), Head()))


def windowed(x):
    return x * ops.reshape(ops.arange(TIME, dtype="float32"), (TIME, 1))


def dropped_where_zero(**options):
    """Return a model that multiplies its inputs by whether any of them is not zero."""
    x = keras.Input((None, FEATURES))
    kept = ops.any(ops.not_equal(x, 0.0), **options)
    return keras.Model(x, kmr.AdamGRU(4)(x * ops.cast(kept, "float32")))


def test_whether_any_feature_is_not_zero():
    x = X.copy()
    x[:, 2] = 0
    assert_streams(dropped_where_zero(axis=-1, keepdims=True), x)


def scaled_by_the_end():
    x = keras.Input((None, FEATURES))
    return keras.Model(x, kmr.AdamGRU(4)(x * ops.mean(kmr.MomentumLSTM(4)(x))))


def scaled_by_step():
    """Keras takes the steps of one input for the features of the other."""
    x, w = keras.Input((TIME, TIME)), keras.Input((TIME,))
    return keras.Model([x, w], kmr.AdamGRU(4)(layers.Multiply()([x, w])))


def over_time(layer):
    """Return a model whose layer acts on the steps of sequences of numbers."""
    x = keras.Input((TIME,))
    return keras.Model(x, kmr.AdamGRU(4)(layers.Embedding(5, 3)(layer(x))))


class Raised(layers.SimpleRNNCell):
    """A cell whose states start at one."""

    def get_initial_state(self, batch_size=None):
        return [ops.ones((batch_size, self.units))]


def from_the_graph():
    x = keras.Input((None, FEATURES))
    _, *states = kmr.MomentumLSTM(UNITS, return_state=True)(x)
    return keras.Model(x, kmr.MomentumLSTM(UNITS, name="decoder")(x, initial_state=states))


def always_training(layer):
    x = keras.Input((None, FEATURES))
    return keras.Model(x, kmr.AdamGRU(4)(layer(x, training=True)))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: sequential(layers.Bidirectional(kmr.MomentumLSTM(4))), "Bidirectional"),
        (
            lambda: always_training(
                kmr.NAGLSTM(4, dropout=0.5, return_sequences=True, name="noisy")
            ),
            "NAGLSTM 'noisy' must run as in inference.*Received: training=True",
        ),
        (lambda: always_training(layers.BatchNormalization()), "BatchNormalization .*training"),
        (
            lambda: always_training(
                keras.Sequential([keras.Input((None, FEATURES)), layers.Dropout(0.5)])
            ),
            "Sequential .*training=True",
        ),
        (lambda: sequential(kmr.MomentumLSTM(4, go_backwards=True)), "goes backwards"),
        (lambda: sequential(layers.Conv1D(4, 2), kmr.MomentumLSTM(4)), "Conv1D .* each step"),
        (
            lambda: sequential(layers.LayerNormalization(axis=1), kmr.AdamGRU(4)),
            "LayerNormalization",
        ),
        (lambda: over_time(layers.Dense(TIME)), "Dense"),
        (lambda: sequential(layers.Rescaling(np.ones((TIME, 1))), kmr.AdamGRU(4)), "Rescaling"),
        (lambda: sequential(Differences(), kmr.AdamGRU(4)), "Differences .* each step"),
        (lambda: sequential(Detrended(4)), "Detrended .* each step"),
        (lambda: sequential(layers.Dense(2, centred), kmr.AdamGRU(4)), "Dense .* each step"),
        (lambda: sequential(layers.Activation(centred), kmr.AdamGRU(4)), "Activation .* each"),
        (lambda: sequential(layers.Dense(2, windowed), kmr.AdamGRU(4)), "Dense .* each step"),
        (
            lambda: sequential(layers.Dense(2, layers.Softmax(axis=1)), kmr.AdamGRU(4)),
            "Dense .* each step",
        ),
        (dropped_where_zero, "Any .* each step"),
        (scaled_by_the_end, "Multiply .* each step"),
        (scaled_by_step, "Multiply .* each step"),
        (lambda: masked(layers.RNN(Doubled(4))), "Doubled .* Pass `zero_output_for_mask"),
        (
            lambda: keras.Sequential([keras.Input((TIME, 4, 3)), layers.ConvLSTM1D(2, 2)]),
            "ConvLSTM1D .* steps that are no vectors",
        ),
        (lambda: sequential(layers.Dense(2)), "no recurrent layer"),
        (
            lambda: keras.Sequential(
                [keras.Input((None, 3), name="state_of_x"), kmr.AdamGRU(4)]
            ),
            r"Rename the inputs \['state_of_x'\]",
        ),
        (lambda: sequential(layers.RNN(Raised(2), name="up")), "'up' has a first state of its"),
        (from_the_graph, "'decoder' takes its initial state from the graph"),
        (lambda: kmr.MomentumLSTM(4), "Sequential or Functional"),
    ],
)
def test_what_needs_other_steps_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        step_model(make())


@pytest.mark.parametrize("length", [TIME, None])
def test_an_open_length_in_time_distributed_warns(length):
    parts = [layers.TimeDistributed(layers.Dense(2), name="each"), kmr.AdamGRU(UNITS)]
    model = keras.Sequential([keras.Input((length, FEATURES)), *parts])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert_streams(model, X)
    warned = any("'each' has an input of unknown length" in str(w.message) for w in caught)
    assert warned == (length is None)


def test_training_stays_off():
    model = keras.Sequential(
        [keras.Input((None, FEATURES)), layers.Dropout(0.9), kmr.AdamLSTM(4, dropout=0.9)]
    )
    assert_streams(model)


def test_a_stateful_layer_streams_any_batch_from_zero():
    model = keras.Sequential([keras.Input((None, FEATURES), 3), kmr.AdamLSTM(4, stateful=True)])
    step = step_model(model)
    assert [x.shape[0] for x in step.inputs] == [None] * len(step.inputs)
