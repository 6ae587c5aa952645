"""Recipes: what the paper published, under its names, and no more."""

import dataclasses
import json

import keras
import numpy as np
import pytest
from harness import array
from keras import ops

from keras_momentum_rnn.optimizers import MomentumSGD
from papers.tasks import Recipe, recipe
from papers.tasks.recipe import LookAhead
from papers.tasks.recipes import RECIPES

MULTIPLE = hasattr(keras.optimizers, "MultiOptimizer")

# Typed from the papers, apart from the tables in papers/tasks/published: a row of each kind.
# Nguyen et al., Tables 6 to 10. task, layer, units: K, learning rate, that of S, numbers.
ORTHOGONAL = [
    ("mnist", "DTRIV", 512, 100, 0.0005, 0.0001, {}),
    ("pmnist", "MomentumDTRIV", 170, 1, 0.0007, 0.0002, {"momentum": 0.6, "step_size": 0.9}),
    ("timit", "MomentumDTRIV", 224, None, 0.001, 0.0002, {"momentum": 0.3, "step_size": 0.1}),
    ("pmnist", "RMSPropDTRIV", 512, None, 0.0003, 0.00007, {"step_size": 0.3, "beta": 0.9}),
    ("pmnist", "SRDTRIV", 512, None, 0.0003, 0.00007, {"restart_period": 2, "step_size": 0.3}),
]
# The same tables. layer, task, units, length: the rule's numbers.
LSTM = [
    ("LSTM", "timit", 84, None, {}),
    ("MomentumLSTM", "words", (1150, 1150, 400), None, {"momentum": 0.0, "step_size": 0.6}),
    ("MomentumLSTM", "copying", 190, 2000, {"momentum": 0.9, "step_size": 2.0}),
    ("AdamLSTM", "adding", 128, None, {"momentum": 0.6, "step_size": 2.0, "beta": 0.999}),
    ("RMSPropLSTM", "mnist", 128, None, {"step_size": 0.6, "beta": 0.99}),
    ("SRLSTM", "pmnist", 128, None, {"step_size": 0.01, "restart_period": 6}),
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
# Mohamed and Claudel, Table 2. task, layer, units: optimizer, rate, clipping, batch, epochs.
NESTED = [
    ("adding", "NestedLSTM", 77, "Adam", 1e-2, 0.1, 32, 60),
    ("mnist", "MCRM", 108, "RMSprop", 1e-3, 1.0, 32, 100),
    ("copying", "SimpleRNN", 1800, "RMSprop", 5e-4, 1.0, 32, 100),
    ("words", "GRU", 119, "SGD", 30, 0.35, 16, 50),
]


def test_there_is_a_recipe_for_each_printed_row_and_no_other():
    """Copying stands for two lengths; a size of MNIST, permuted MNIST or TIMIT is a row."""
    papers = ("Nguyen et al. (2020)", "Mohamed and Claudel (2018)", "Sutskever et al. (2013)")
    counts = [sum(row.source.startswith(paper) for row in RECIPES) for paper in papers]
    # Of an LSTM: 2 sizes of the two MNISTs, 3 of TIMIT, copying, adding; words for three.
    assert counts == [5 * (2 + 2 + 3 + 2 + 1) + 3 + 16, 5 * 5, 4]
    names = [(r.task, r.layer_name, str(r.units), str(r.options)) for r in RECIPES]
    assert len({*names}) == len(names)


@pytest.mark.parametrize("name, task, units, length, numbers", LSTM)
def test_lstm_recipes_are_the_printed_rows(name, task, units, length, numbers):
    found = recipe(task, name, units, **({"blanks": length} if length else {}))
    stack = found.new_layers()
    assert tuple(layer.units for layer in stack) == (units if task == "words" else (units,))
    for layer in stack:
        assert type(layer).__name__ == name
        assert {number: getattr(layer, number) for number in numbers} == numbers
        assert getattr(layer, "use_recurrent_bias", name == "LSTM") is True
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


@pytest.mark.parametrize("task, name, units, optimizer, rate, clipnorm, batch, epochs", NESTED)
def test_nested_recipes_are_the_printed_rows(
    task, name, units, optimizer, rate, clipnorm, batch, epochs
):
    found = recipe(task, name, units)
    assert (type(found.layer).__name__, found.layer.units) == (name, units)
    assert type(found.optimizer).__name__ == optimizer
    assert array(found.optimizer.learning_rate) == pytest.approx(rate)
    assert found.optimizer.global_clipnorm == clipnorm
    assert (found.batch_size, found.epochs) == (batch, epochs)
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


def test_rate_is_cut_tenfold_every_30_epochs():
    (schedule,) = recipe("mnist", "MCRM").callbacks()
    rates = [schedule.schedule(epoch, None) for epoch in (0, 29, 30, 59, 60, 90)]
    np.testing.assert_allclose(rates, [1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-6])
    assert recipe("adding", "MCRM").callbacks() == []


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


@pytest.mark.parametrize(
    "task, layer, units",
    [
        ("pmnist", "DTRIV", None),  # three sizes
        ("pmnist", "DTRIV", 171),
        ("pmnist", "NAGDTRIV", 512),
    ],
)
def test_what_is_not_published_is_refused_with_what_is(task, layer, units):
    message = r"\('pmnist', 'SRDTRIV', units=512\).*Received: task="
    with pytest.raises(ValueError, match=message) as error:
        recipe(task, layer, units=units)
    assert "'timit'" not in str(error.value)


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("adding", {"variant": "sutskever", "steps": 80, "centered": True}),
        ("multiplication", {"steps": 80, "centered": True}),
        ("memory5", {"blanks": 200, "centered": True}),
        ("memory20", {"blanks": 80, "centered": True}),
    ],
)
def test_plain_networks_learn_as_in_table_5(task, options):
    found = recipe(task, "SimpleRNN", units=100)
    assert found.options == options
    assert (found.batch_size, found.epochs, found.updates_per_epoch) == (100, 50000, 1)
    with pytest.raises(ValueError, match=r"\(0.001, 0.0001, 1e-05, 1e-06\)"):
        _ = found.optimizer
    optimizer = dataclasses.replace(found, learning_rate=1e-4).optimizer
    assert optimizer.nesterov is True
    momenta = [
        float(array(found.optimizer_arguments["MomentumSGD"]["momentum"](t)))
        for t in (0, 999, 1000)
    ]
    assert momenta == pytest.approx([0.9, 0.9, 0.995])


@pytest.mark.parametrize("task, name", [("pmnist", "SRLSTM"), ("mnist", "MCRM")])
def test_small_gradients_make_whole_steps_as_in_pytorch(task, name):
    """PyTorch's first step is rate / sqrt(1 - rho) for each weight, to a gradient of 1e-6."""
    found = recipe(task, name, units=108 if name == "MCRM" else 128)
    optimizer = found.optimizer
    weight = keras.Variable([1.0, 1.0, 1.0])
    optimizer.build([weight])
    optimizer.apply([ops.convert_to_tensor([1e-6, 1e-4, 1e-1])])
    step = found.learning_rate / np.sqrt(1 - optimizer.rho)
    np.testing.assert_allclose(1 - array(weight), step, rtol=0.05)


def test_the_read_out_of_pixels_starts_as_in_pytorch():
    for name, units in (("AdamLSTM", 256), ("DTRIV", 170)):
        read_out = keras.layers.Dense(300, **recipe("pmnist", name, units).model_options)
        read_out.build((None, units))
        for weight in read_out.weights:
            largest = np.max(np.abs(array(weight)))
            assert largest == pytest.approx(units**-0.5, rel=0.1)
            assert largest <= units**-0.5
    assert recipe("adding", "LSTM", 128).model_options == {}


def test_each_task_has_the_restart_of_its_released_code():
    forms = {r.task: r.layer.formulation for r in RECIPES if r.layer_name == "SRLSTM"}
    assert forms.pop("words") == "paper"
    assert {*forms.values()} == {"released"} and len(forms) == 5


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
    ahead, schedule = choice(optimizer_name="MomentumSGD", rate_cut=(1, 0.5)).callbacks()
    assert type(ahead) is LookAhead
    assert schedule.schedule(2, 0.7) == pytest.approx(0.1 * 0.5**2)


def test_a_look_ahead_goes_on_from_one_fit_to_the_next():
    x, ends = np.random.default_rng(0).normal(size=(8, 3)).astype("float32"), []
    for fits in (1, 2):
        start = keras.initializers.Constant(0.5)
        layer = keras.layers.Dense(1, kernel_initializer=start)
        model = keras.Sequential([keras.Input((3,)), layer])
        model.compile(MomentumSGD(0.1, 0.9, nesterov=True), "mse")
        for _ in range(fits):
            model.fit(x, x[:, :1], 8, 4 // fits, verbose=0, callbacks=[LookAhead()])
        ends.append(array(layer.kernel))
    np.testing.assert_allclose(*ends, atol=1e-6)


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
