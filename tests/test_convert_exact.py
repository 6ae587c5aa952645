"""`to_keras`: exact for linear rules, and otherwise a warning that says how far it is."""

import warnings

import keras
import numpy as np
import pytest
from conversions import Averaging
from harness import array, assert_close, normal, randomise
from keras import layers, ops
from masks import MASKS

import keras_momentum_rnn as kmr
from keras_momentum_rnn.convert import from_keras, to_keras

BATCH, TIME, FEATURES, UNITS = 3, 9, 3, 4
X = normal(np.random.default_rng(1), BATCH, TIME, FEATURES)
LINEAR = {
    "MomentumLSTM": kmr.MomentumLSTM(UNITS, momentum=0.9, use_recurrent_bias=True),
    "NAGLSTM": kmr.NAGLSTM(UNITS),
    "SRLSTM": kmr.SRLSTM(UNITS, restart_period=3, use_bias=False),
    "MomentumGRU": kmr.MomentumGRU(UNITS, return_sequences=True),
    "SRGRU": kmr.SRGRU(UNITS, restart_period=4, reset_after=False),
    "NAGRNN": kmr.NAGRNN(UNITS),
}


def copied(layer, **options):
    new = type(layer)(**{**layer.get_config(), "name": None, **options})
    new.build((None, None, FEATURES))
    randomise(new, np.random.default_rng(3))
    return new


def only_of_keras(model):
    for layer in model.layers:
        assert type(layer).__module__.startswith("keras.")
        if isinstance(layer, keras.Model):
            only_of_keras(layer)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("form", ["alone", "sequential", "masked"])
def test_exact_copies_predict_the_same(name, form):
    layer = copied(LINEAR[name])
    model, x = layer, X
    if form == "sequential":
        model = keras.Sequential(
            [keras.Input((None, FEATURES)), layers.Dense(FEATURES), layer, layers.Dense(2)]
        )
    elif form == "masked":
        model = keras.Sequential([keras.Input((None, FEATURES)), layers.Masking(), layer])
        x = X * MASKS["holes"](BATCH, TIME)[..., None].astype("float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        plain = to_keras(model, exact=True)
    only_of_keras(plain)
    # Those of the filter are fixed, and two biases are one.
    joined = getattr(layer, "use_recurrent_bias", False)
    assert len(plain.trainable_weights) == len(model.trainable_weights) - joined
    assert_close(array(plain(x)), array(model(x)), tolerance=1e-5)
    longer = normal(np.random.default_rng(2), 2, 70, FEATURES)
    assert_close(array(plain(longer)), array(model(longer)), tolerance=1e-5)
    assert any(type(part).__name__ == type(layer).keras_layer.__name__ for part in plain.layers)


def test_an_exact_copy_stays_close_where_the_drive_grows():
    """Nesterov's grows at every step, and rounding with it."""
    layer = kmr.NAGGRU(8, return_sequences=True)
    layer.build((None, None, FEATURES))
    randomise(layer, np.random.default_rng(3), scale=1.0)
    x = normal(np.random.default_rng(2), 4, 700, FEATURES)
    assert np.abs(array(to_keras(layer, exact=True)(x)) - array(layer(x))).max() < 5e-4


def test_an_exact_copy_shares_no_array_with_its_original():
    model = keras.Sequential([keras.Input((None, FEATURES)), copied(LINEAR["MomentumLSTM"])])
    plain = to_keras(model, exact=True)
    expected = plain.predict(X, verbose=0)
    # On JAX, `predict` deletes the arrays that it was given.
    assert_close(model.predict(X, verbose=0), expected, tolerance=1e-5)
    assert_close(plain.predict(X, verbose=0), expected)


def test_exact_copies_of_graphs_take_the_cells_states():
    x = keras.Input((None, FEATURES))
    encoder = kmr.MomentumLSTM(UNITS, return_state=True)
    _, h, c, _ = encoder(x)
    y = kmr.SRLSTM(UNITS, restart_period=2, return_sequences=True)(x, initial_state=[h, c])
    model = keras.Model(x, layers.Dense(2)(y))
    randomise(model, np.random.default_rng(3))
    plain = to_keras(model, exact=True)
    assert_close(array(plain(X)), array(model(X)), tolerance=1e-5)


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("name", ["MomentumLSTM", "SRGRU"])
def test_exact_copies_take_a_mask_of_the_graph(name, by_name):
    x, mask = keras.Input((None, FEATURES)), keras.Input((None,), dtype="bool")
    layer = copied(LINEAR[name])
    model = keras.Model([x, mask], layer(x, mask=mask) if by_name else layer(x, None, mask))
    plain = to_keras(model, exact=True)
    inputs = [X, MASKS["holes"](BATCH, TIME)]
    assert_close(array(plain(inputs)), array(model(inputs)), tolerance=1e-5)


def test_exact_copies_take_an_input_by_name_and_louder():
    """Keras marks a tensor times a number as sparse; PyTorch has no sparse inputs."""
    x = keras.Input((TIME, FEATURES))
    model = keras.Model(x, copied(LINEAR["NAGLSTM"])(sequences=x * 10))
    assert_close(array(to_keras(model, exact=True)(X)), array(model(X)), tolerance=1e-5)


def test_an_exact_copy_of_a_sequential_model_keeps_its_input():
    words = keras.Input((TIME,), batch_size=2, dtype="int32", name="words")
    model = keras.Sequential([words, layers.Embedding(7, FEATURES), copied(LINEAR["NAGLSTM"])])
    plain = to_keras(model, exact=True)
    (given,), (kept,) = model.inputs, plain.inputs
    assert (kept.name, kept.dtype, kept.shape) == (given.name, given.dtype, given.shape)
    x = np.random.default_rng(2).integers(0, 7, (2, TIME)).astype("int32")
    assert_close(array(plain(x)), array(model(x)), tolerance=1e-5)


def test_an_exact_copy_can_be_saved(tmp_path):
    layer = copied(LINEAR["SRLSTM"])
    model = keras.Sequential([keras.Input((None, FEATURES)), layers.Masking(), layer])
    plain = to_keras(model, exact=True)
    plain.save(tmp_path / "plain.keras")
    x = X * MASKS["holes"](BATCH, TIME)[..., None].astype("float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        loaded = keras.saving.load_model(tmp_path / "plain.keras")
        actual = array(loaded(x))
    assert_close(actual, array(model(x)), tolerance=1e-5)


def test_a_rule_that_changes_nothing_needs_no_filter():
    layer = copied(kmr.MomentumLSTM(UNITS, momentum=0.0, step_size=1.0))
    assert type(to_keras(layer, exact=True)) is layers.LSTM


@keras.saving.register_keras_serializable(package="test_convert_exact")
class OfUnits(kmr.rules.LinearRule):
    """Each unit has a momentum of its own."""

    shared = False

    def __init__(self, units):
        self.units = units

    def coefficients(self, t):
        return ops.linspace(0.1, 0.9, self.units), 0.8


@keras.saving.register_keras_serializable(package="test_convert_exact")
class Slower(kmr.rules.NAG):
    def coefficients(self, t):
        return t / (t + 10), self.step_size


@keras.saving.register_keras_serializable(package="test_convert_exact")
class Once(kmr.rules.ScheduledRestart):
    """It does not restart."""

    def advance_counter(self, t, steps=1):
        return ops.minimum(t + steps, self.restart_period - 1.0)


@keras.saving.register_keras_serializable(package="test_convert_exact")
class Late(kmr.rules.LinearRule):
    """It does nothing at first."""

    counts = True

    def coefficients(self, t):
        return 0.9 * ops.cast(t >= 6, "float32"), 1.0


@pytest.mark.parametrize(
    "units, rule",
    [
        # Where the drive is as wide as [x, 1], too, it has no filter of x.
        (FEATURES + 1, OfUnits(FEATURES + 1)),
        (7, OfUnits(7)),
        (UNITS, Slower()),
        (UNITS, Once(3)),
        (UNITS, Late()),
        (UNITS, kmr.rules.ScheduledRestart(513)),
        # Its numbers may still change.
        (UNITS, kmr.rules.LearnedMomentum(0.6)),
    ],
)
def test_a_linear_rule_without_a_filter(units, rule):
    layer = copied(kmr.RuleRNN(units, rule=rule))
    with pytest.raises(ValueError, match="without such a filter"):
        to_keras(layer, exact=True)
    with pytest.warns(UserWarning, match="differ by up to"):
        assert type(to_keras(layer)) is layers.SimpleRNN


def with_slots(by_name):
    x = keras.Input((None, FEATURES))
    _, *states = kmr.MomentumLSTM(UNITS, return_state=True)(x)
    decoder = kmr.MomentumLSTM(UNITS)
    return keras.Model(x, decoder(x, initial_state=states) if by_name else decoder(x, states))


def stateful():
    x = keras.Input(batch_shape=(BATCH, TIME, FEATURES))
    return keras.Model(x, kmr.MomentumLSTM(UNITS, stateful=True)(x))


class Louder(kmr.MomentumLSTM):
    def call(self, sequences, **options):
        return super().call(2 * sequences, **options)


class RaisedCell(kmr.cells.MomentumLSTMCell):
    def get_initial_state(self, batch_size=None):
        return [state + 1 for state in super().get_initial_state(batch_size)]


class Raised(kmr.MomentumLSTM):
    cell_class = RaisedCell


@pytest.mark.parametrize("kind, method", [(Louder, "Louder.call"), (Raised, "RaisedCell.get_")])
@pytest.mark.parametrize("exact", [False, True])
def test_a_layer_with_methods_of_its_own_is_not_taken_for_ours(kind, method, exact):
    layer = kind(UNITS, momentum=0.0, step_size=1.0)
    layer.build((None, None, FEATURES))
    for part in (layer, copied(kind(UNITS))):
        with pytest.raises(ValueError, match=f"no Keras counterpart.*{method}"):
            to_keras(part, exact=exact)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: with_slots(True), "takes slots in its `initial_state`"),
        (lambda: with_slots(False), "takes slots in its `initial_state`"),
        (stateful, "is stateful"),
        (lambda: copied(kmr.AdamLSTM(UNITS)), "a rule without such a filter"),
        (lambda: kmr.MomentumLSTM(UNITS), "unbuilt"),
        (lambda: copied(kmr.MomentumLSTM(UNITS, go_backwards=True)), "goes backwards"),
        (lambda: layers.Bidirectional(kmr.MomentumLSTM(UNITS)), "is wrapped"),
        (lambda: kmr.DTRIV(UNITS), "no Keras counterpart"),
    ],
)
def test_what_has_no_exact_copy_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        to_keras(make(), exact=True)


@pytest.mark.parametrize(
    "layer, advice",
    [(kmr.MomentumLSTM(UNITS), "With `exact=True`"), (kmr.AdamLSTM(UNITS), "Fine-tune")],
)
def test_the_warning_says_how_far_and_what_to_do(layer, advice):
    layer = copied(layer)
    with pytest.warns(UserWarning, match="differ by up to") as caught:
        plain = to_keras(layer)
    (message,) = [str(w.message) for w in caught if "differ by" in str(w.message)]
    assert advice in message
    x = np.random.default_rng(0).standard_normal((4, 32, FEATURES)).astype("float32")
    sequences = [type(part)(UNITS, return_sequences=True) for part in (layer, plain)]
    for new, part in zip(sequences, (layer, plain)):
        new.build(x.shape)
        new.set_weights(part.get_weights())
    far = np.abs(array(sequences[0](x)) - array(sequences[1](x))).max()
    said = float(message.split("differ by up to ")[1].split(",")[0])
    assert said == pytest.approx(far, rel=0.06)


def test_the_warnings_of_a_wrapper_measure_the_layers_in_the_copy():
    """`Bidirectional` makes its forward layer anew; that given to it keeps other weights."""
    wrapper = layers.Bidirectional(kmr.AdamGRU(UNITS, name="mine"))
    wrapper(X)
    randomise(wrapper, np.random.default_rng(3))
    with pytest.warns(UserWarning, match="differ by up to") as of_both:
        to_keras(wrapper)
    with pytest.warns(UserWarning, match="differ by up to") as of_each:
        for layer in (wrapper.forward_layer, wrapper.backward_layer):
            to_keras(layer)
    said = [
        [str(w.message) for w in caught if "differ by" in str(w.message)]
        for caught in (of_both, of_each)
    ]
    assert len(said[0]) == 2 and said[0] == said[1]


def test_a_rule_need_not_be_registered_to_be_converted():
    ours = kmr.RuleLSTM(UNITS, rule=Averaging(), name="mine")
    ours.build((None, None, FEATURES))
    with pytest.warns(UserWarning, match="no Averaging.* differ by up to"):
        assert type(to_keras(ours)) is layers.LSTM
    model = keras.Sequential(
        [
            keras.Input((None, FEATURES)),
            kmr.RuleGRU(UNITS, rule=Averaging(), return_sequences=True),
            layers.LSTM(UNITS),
        ]
    )
    randomise(model, np.random.default_rng(3))
    new = from_keras(model, kmr.MomentumLSTM, momentum=0.0, step_size=1.0)
    assert type(new.layers[0].rule) is Averaging
    assert_close(array(new(X)), array(model(X)), tolerance=1e-5)
