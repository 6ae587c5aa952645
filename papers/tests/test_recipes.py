"""Recipes: what the paper published, under its names, and no more."""

import dataclasses
import json

import keras
import numpy as np
import pytest
from harness import array

from papers.tasks import AveragedSGD, Recipe, recipe
from papers.tasks.recipe import LookAhead
from papers.tasks.recipes import RECIPES

pytestmark = pytest.mark.any_backend

MULTIPLE = hasattr(keras.optimizers, "MultiOptimizer")
NO_NUMBERS = {}
MOMENTUM = {"momentum": 0.3, "step_size": 0.3}
SPEECH = {"momentum": 0.3, "step_size": 0.1}

# Typed from Tables 6 to 10. task, layer, units: K, learning rate, that of S, numbers.
ORTHOGONAL = [
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


# The same tables. layer, task, units, length: momentum, step size, beta or period.
PIXELS, SPEECH_UNITS, WORDS = (128, 256), (84, 120, 158), ((1150, 1150, 400),)
LSTM = [
    ("MomentumLSTM", "mnist", PIXELS, None, 0.6, 0.6, None),
    ("MomentumLSTM", "pmnist", PIXELS, None, 0.6, 1.0, None),
    ("MomentumLSTM", "timit", SPEECH_UNITS, None, 0.3, 0.1, None),
    ("MomentumLSTM", "words", WORDS, None, 0.0, 0.6, None),
    ("MomentumLSTM", "copying", (190,), 1000, 0.6, 0.9, None),
    ("MomentumLSTM", "copying", (190,), 2000, 0.9, 2.0, None),
    ("MomentumLSTM", "adding", (128,), 750, 0.9, 2.0, None),
    ("AdamLSTM", "mnist", PIXELS, None, 0.6, 0.6, 0.1),
    ("AdamLSTM", "pmnist", PIXELS, None, 0.6, 1.0, 0.01),
    ("AdamLSTM", "timit", SPEECH_UNITS, None, 0.3, 0.1, 0.999),
    ("AdamLSTM", "copying", (190,), 1000, 0.6, 2.0, 0.999),
    ("AdamLSTM", "copying", (190,), 2000, 0.6, 2.0, 0.999),
    ("AdamLSTM", "adding", (128,), 750, 0.6, 2.0, 0.999),
    ("RMSPropLSTM", "mnist", (256,), None, None, 0.6, 0.9),
    ("RMSPropLSTM", "mnist", (128,), None, None, 0.6, 0.99),
    ("RMSPropLSTM", "pmnist", PIXELS, None, None, 1.0, 0.01),
    ("RMSPropLSTM", "timit", SPEECH_UNITS, None, None, 0.1, 0.999),
    ("RMSPropLSTM", "copying", (190,), 1000, None, 2.0, 0.999),
    ("RMSPropLSTM", "copying", (190,), 2000, None, 2.0, 0.999),
    ("RMSPropLSTM", "adding", (128,), 750, None, 2.0, 0.999),
    ("SRLSTM", "mnist", PIXELS, None, None, 1.0, 2),
    ("SRLSTM", "pmnist", (256,), None, None, 0.9, 40),
    ("SRLSTM", "pmnist", (128,), None, None, 0.01, 6),
    ("SRLSTM", "timit", SPEECH_UNITS, None, None, 0.1, 2),
    ("SRLSTM", "words", WORDS, None, None, 0.6, 2),
    ("SRLSTM", "copying", (190,), 1000, None, 0.9, 100),
    ("SRLSTM", "copying", (190,), 2000, None, 0.9, 100),
    ("SRLSTM", "adding", (128,), 750, None, 0.9, 100),
    ("LSTM", "mnist", PIXELS, None, None, None, None),
    ("LSTM", "pmnist", PIXELS, None, None, None, None),
    ("LSTM", "timit", SPEECH_UNITS, None, None, None, None),
    ("LSTM", "words", WORDS, None, None, None, None),
    ("LSTM", "copying", (190,), 1000, None, None, None),
    ("LSTM", "copying", (190,), 2000, None, None, None),
    ("LSTM", "adding", (128,), 750, None, None, None),
]
# task: optimizer, its rate and decay, clipping, batch, epochs.
LSTM_TRAINING = {
    "mnist": ("RMSprop", 0.001, 0.9, 1.0, 128, 150),
    "pmnist": ("RMSprop", 0.001, 0.9, 1.0, 128, 150),
    "timit": ("Adam", 0.0001, None, None, 32, 700),
    "words": ("SGD", 30, None, 0.25, 20, 500),
    "copying": ("RMSprop", 0.0002, 0.9, None, 128, 7000),
    "adding": ("Adam", 0.0002, None, None, 50, 1200),
}
# Mohamed and Claudel (2018), Table 2. task, layer, units: optimizer, rate, clipping.
NESTED = [
    ("adding", "SimpleRNN", 308, "Adam", 1e-3, 0.5),
    ("adding", "GRU", 177, "Adam", 1e-3, 0.5),
    ("adding", "LSTM", 153, "Adam", 1e-3, 0.5),
    ("adding", "NestedLSTM", 77, "Adam", 1e-2, 0.1),
    ("adding", "MCRM", 85, "Adam", 1e-3, 0.5),
    ("mnist", "SimpleRNN", 384, "RMSprop", 1e-3, 1.0),
    ("mnist", "GRU", 222, "RMSprop", 1e-3, 1.0),
    ("mnist", "LSTM", 192, "RMSprop", 1e-4, 1.0),
    ("mnist", "NestedLSTM", 97, "RMSprop", 1e-3, 0.25),
    ("mnist", "MCRM", 108, "RMSprop", 1e-3, 1.0),
    ("copying", "SimpleRNN", 1800, "RMSprop", 5e-4, 1.0),
    ("copying", "GRU", 1050, "RMSprop", 5e-4, 1.0),
    ("copying", "LSTM", 900, "RMSprop", 5e-4, 1.0),
    ("copying", "NestedLSTM", 448, "RMSprop", 1e-4, 0.25),
    ("copying", "MCRM", 500, "RMSprop", 5e-4, 1.0),
    ("words", "SimpleRNN", 125, "SGD", 30, 0.35),
    ("words", "GRU", 119, "SGD", 30, 0.35),
    ("words", "LSTM", 117, "SGD", 30, 0.35),
    ("words", "NestedLSTM", 100, "SGD", 30, 0.35),
    ("words", "MCRM", 109, "SGD", 30, 0.35),
    ("characters", "SimpleRNN", 2900, "Adam", 1e-3, 0.15),
    ("characters", "GRU", 1680, "Adam", 1e-3, 0.15),
    ("characters", "LSTM", 1050, "Adam", 1e-3, 0.15),
    ("characters", "NestedLSTM", 920, "Adam", 1e-3, 0.15),
    ("characters", "MCRM", 1000, "Adam", 1e-3, 0.15),
]
NESTED_EPOCHS = {"adding": 60, "mnist": 100, "copying": 100, "words": 50, "characters": 100}


def blanks_or_steps(options):
    """Return the length of the first paper's form of a task, None for the others."""
    if options.get("variant") != "momentumrnn":
        return None
    return options.get("blanks", options.get("steps"))


def test_there_is_a_recipe_for_each_printed_row_and_no_other():
    printed = [(task, layer, units, None) for task, layer, units, *_ in [*ORTHOGONAL, *NESTED]]
    printed += [(task, "SimpleRNN", 100, None) for task in ("adding", "multiplication")]
    printed += [(task, "SimpleRNN", 100, None) for task in ("memory5", "memory20")]
    for layer, task, sizes, length, *_ in LSTM:
        printed += [(task, layer, units, length) for units in sizes]
    found = [
        (row.task, row.layer_name, row.units, blanks_or_steps(row.options)) for row in RECIPES
    ]
    assert sorted(found, key=str) == sorted(printed, key=str)


@pytest.mark.parametrize("name, task, sizes, length, momentum, step_size, last", LSTM)
def test_lstm_recipes_are_the_printed_rows(
    name, task, sizes, length, momentum, step_size, last
):
    options = {"blanks": length} if task == "copying" else {}
    for units in sizes:
        found = recipe(task, name, units=units, **options)
        stack = found.new_layers()
        assert tuple(layer.units for layer in stack) == (units if task == "words" else (units,))
        for layer in stack:
            assert type(layer).__name__ == name
            if name == "LSTM":
                continue
            assert layer.step_size == step_size
            for number in ("momentum", "beta", "restart_period"):
                if hasattr(layer, number):
                    assert getattr(layer, number) == (
                        momentum if number == "momentum" else last
                    )
            assert layer.use_recurrent_bias is True
        assert getattr(stack[0], "epsilon", 1e-16) == 1e-16
        assert getattr(stack[0], "formulation", "released") == "released"
        optimizer_name, rate, decay, clipnorm, batch_size, epochs = LSTM_TRAINING[task]
        optimizer = found.optimizer
        assert type(optimizer).__name__ == optimizer_name
        assert array(optimizer.learning_rate) == pytest.approx(rate)
        assert getattr(optimizer, "rho", None) == decay
        assert optimizer.global_clipnorm == clipnorm
        assert (found.batch_size, found.epochs) == (batch_size, epochs)
        assert "Table 6" in found.source


@pytest.mark.parametrize("task, name, units, optimizer_name, rate, clipnorm", NESTED)
def test_nested_recipes_are_the_printed_rows(task, name, units, optimizer_name, rate, clipnorm):
    found = recipe(task, name, units=units)
    assert (type(found.layer).__name__, found.layer.units) == (name, units)
    optimizer = found.optimizer
    assert type(optimizer).__name__ == optimizer_name
    assert array(optimizer.learning_rate) == pytest.approx(rate)
    assert optimizer.global_clipnorm == clipnorm
    assert (found.batch_size, found.epochs) == (
        16 if task == "words" else 32,
        NESTED_EPOCHS[task],
    )
    assert found.updates_per_epoch == {"adding": 1563, "copying": 313}.get(task)


@pytest.mark.parametrize("task, forget", [("mnist", 1), ("timit", -4)])
def test_lstm_starts_as_the_appendix_says(task, forget):
    units = 84 if task == "timit" else 128
    for name in ("AdamLSTM", "LSTM"):
        layer = recipe(task, name, units=units).layer
        layer.build((None, 5, 3))
        weights = {w.name: array(w) for w in layer.cell.weights}
        kernel = weights["kernel"]  # (3, 4 units), orthogonal rows
        np.testing.assert_allclose(kernel @ kernel.T, np.eye(3), atol=1e-5)
        expected = np.concatenate([np.eye(units), np.zeros((units, 3 * units))], axis=1)
        np.testing.assert_array_equal(weights["recurrent_kernel"], expected)
        bias = np.repeat([0, forget, 0, 0], units)
        if name == "LSTM":  # one bias in place of two
            np.testing.assert_array_equal(weights["bias"], 2 * bias)
        else:
            np.testing.assert_array_equal(weights["bias"], bias)
            np.testing.assert_array_equal(weights["recurrent_bias"], bias)
        restored = type(layer).from_config(layer.get_config())
        restored.build((None, 5, 3))
        np.testing.assert_array_equal(array(restored.cell.bias), weights["bias"])


@pytest.mark.each_backend
def test_rate_is_cut_tenfold_every_30_epochs():
    (schedule,) = recipe("mnist", "MCRM").callbacks()
    rates = [schedule.schedule(epoch, None) for epoch in (0, 29, 30, 59, 60, 90)]
    np.testing.assert_allclose(rates, [1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-6])
    assert recipe("adding", "MCRM").callbacks() == []


def test_every_layer_is_new_and_takes_further_arguments():
    found = recipe("mnist", "MCRM")
    assert found.layer is not found.layer
    assert found.new_layers(stateful=True)[0].stateful


def test_recipes_say_where_sources_differ():
    assert "epsilon, 1e-16 (text: 1e-8)" in recipe("mnist", "AdamLSTM", units=128).follows
    assert "released form" in recipe("words", "SRLSTM").follows
    assert "300 units" in recipe("adding", "MCRM").follows
    assert "other way round" in recipe("mnist", "NestedLSTM").follows


@pytest.mark.parametrize("task, name, units, k, rate, skew_rate, numbers", ORTHOGONAL)
def test_recipe_is_the_printed_row(task, name, units, k, rate, skew_rate, numbers):
    found = recipe(task, name, units=units)
    speech = task == "timit"
    layer = found.layer
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
        optimizer = found.optimizer
        assert isinstance(optimizer, keras.optimizers.RMSprop)
        assert (optimizer.rho, optimizer.global_clipnorm) == (0.99, 1.0)
        assert array(optimizer.learning_rate) == pytest.approx(rate)
        assert rate * layer.recurrent_lr_multiplier == pytest.approx(skew_rate)


@pytest.mark.each_backend
@pytest.mark.skipif(not MULTIPLE, reason="this Keras has no MultiOptimizer")
def test_speech_trains_the_skew_part_by_rmsprop_and_the_rest_by_adam():
    found = recipe("timit", "MomentumDTRIV", units=224)
    layer = found.layer
    model = keras.Sequential([keras.Input((4, 3)), layer, keras.layers.Dense(3)])
    model.compile(found.optimizer, "mse")
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
        ("copying", "LSTM", 190),
        ("mnist", "LSTM", None),
        ("words", "AdamLSTM", None),
        ("pmnist", "NAGDTRIV", 512),
    ],
)
def test_what_is_not_published_is_refused_with_what_is(task, layer, units):
    with pytest.raises(
        ValueError, match=r"\('pmnist', 'SRDTRIV', units=512\).*Received: task="
    ):
        recipe(task, layer, units=units)


def test_words_are_trained_as_their_baseline():
    found = recipe("words", "MomentumLSTM")
    assert found.optimizer.weight_decay == 1.2e-6
    assert found.model_options["weight_dropout"] == 0.5
    (averaging,) = found.callbacks()
    assert averaging.patience == 5
    assert recipe("words", "MCRM").callbacks() == []
    assert recipe("words", "GRU").model_options == {}


@pytest.mark.each_backend
@pytest.mark.parametrize(
    ("task", "options", "scale"),
    [
        ("adding", {"variant": "sutskever", "steps": 80, "centered": True}, 0.001),
        ("multiplication", {"steps": 80, "centered": True}, 0.001),
        ("memory5", {"blanks": 200}, 0.1),
        ("memory20", {"blanks": 80}, 0.1),
    ],
)
def test_plain_networks_start_and_learn_as_in_tables_4_and_5(task, options, scale):
    found = recipe(task, "SimpleRNN", units=100)
    assert found.options == options
    assert (found.batch_size, found.epochs, found.updates_per_epoch) == (100, 50000, 1)
    layers = found.layer, found.layer
    for layer in layers:
        layer.build((None, 5, 40))
    kernel, other = (array(layer.cell.kernel) for layer in layers)
    assert kernel.std() == pytest.approx(scale, rel=0.1) and not np.allclose(kernel, other)
    recurrent = array(layers[0].cell.recurrent_kernel).astype("float64")
    assert (np.count_nonzero(recurrent, axis=0) == 15).all()
    assert np.abs(np.linalg.eigvals(recurrent)).max() == pytest.approx(1.1, abs=1e-4)
    with pytest.raises(ValueError, match=r"\(0.001, 0.0001, 1e-05, 1e-06\)"):
        _ = found.optimizer
    optimizer = dataclasses.replace(found, learning_rate=1e-4).optimizer
    assert optimizer.nesterov is True
    momenta = [
        float(array(found.optimizer_arguments["MomentumSGD"]["momentum"](t)))
        for t in (0, 999, 1000)
    ]
    assert momenta == pytest.approx([0.9, 0.9, 0.995])


@keras.saving.register_keras_serializable("tests")
class OwnRNN(keras.layers.SimpleRNN):
    pass


def choice(**changed):
    """Return settings that no paper has."""
    given = {"layer_name": "AdamLSTM", "units": 3, "arguments": {"beta": 0.5}}
    given |= {"optimizer_name": "SGD", "learning_rate": 0.1, "clipnorm": None}
    return Recipe(task="adding", batch_size=4, epochs=2, **{**given, **changed})


def test_settings_of_your_own_are_a_recipe():
    (layer,) = choice().new_layers()
    assert (layer.units, layer.beta) == (3, 0.5)
    lower, upper = choice(units=(4, 3)).new_layers(return_sequences=False)
    assert (lower.return_sequences, upper.return_sequences) == (True, False)
    own = choice(layer_name="tests>OwnRNN", arguments={})
    assert type(own.layer) is OwnRNN
    with pytest.raises(ValueError, match="Received: layer_name='FooLSTM'"):
        choice(layer_name="FooLSTM").new_layers()
    stop = keras.callbacks.TerminateOnNaN
    assert [type(c) for c in choice(further_callbacks=lambda: [stop()]).callbacks()] == [stop]
    averaged = choice(averaging_patience=3, further_callbacks=lambda: [stop()]).callbacks()
    assert [type(c) for c in averaged] == [AveragedSGD, stop]
    every = {"optimizer_name": "MomentumSGD", "averaging_patience": 3, "rate_cut": (1, 0.5)}
    averaging, ahead, schedule = choice(**every).callbacks()
    assert (type(averaging), type(ahead)) == (AveragedSGD, LookAhead)
    assert schedule.schedule(2, 0.7) == pytest.approx(0.1 * 0.5**2)


def test_recipes_that_train_otherwise_are_told_apart():
    plain = choice().described()
    assert choice(rate_cut=(1, 0.5)).described() == {**plain, "rate_cut": [1, 0.5]}
    assert choice(averaging_patience=3).described() == {**plain, "averaging_patience": 3}


def test_a_recipe_says_all_that_results_tell():
    initializer = keras.initializers.Constant(2.0)
    told = choice(units=(4, 3), arguments={"bias_initializer": initializer}).described()
    assert (
        told
        == json.loads(json.dumps(told))
        == {
            "class": "AdamLSTM",
            "units": [4, 3],
            "arguments": {"bias_initializer": {"class": "Constant", "value": 2.0}},
            "optimizer": {"class": "SGD", "learning_rate": 0.1, "global_clipnorm": None},
            "batch_size": 4,
            "epochs": 2,
            "model": {},
            "source": "",
        }
    )
    speech = recipe("timit", "MomentumDTRIV", units=224)
    assert speech.described()["source"] == f"{speech.source}; follows {speech.follows}"
    told = speech.described()["recurrent_optimizer"]
    assert (told["class"], told["learning_rate"], told["rho"]) == ("RMSprop", 2e-4, 0.99)


def test_updates_are_grouped_into_epochs_where_they_alone_are_counted():
    grouped = recipe("adding", "AdamLSTM").grouped(100)
    assert (grouped.epochs, grouped.updates_per_epoch) == (12, 100)
    assert recipe("adding", "MCRM").grouped(100) == recipe("adding", "MCRM")
