"""Tasks: what holds for each, by name; the adding problems; images pixel by pixel."""

import os

import keras
import needs
import numpy as np
import pytest
from harness import array
from hypothesis import given, settings
from hypothesis import strategies as st

from papers import tasks
from papers.tasks.addition import error_above
from papers.tasks.copying import mean_wrong_symbols

# Small tasks of every kind that need no files.
SMALL = {
    "digits": {"subset": 60},
    "adding": {"steps": 8, "samples": 40, "held_out": 12},
    "multiplication": {"steps": 20, "samples": 40, "held_out": 12},
    "copying": {"blanks": 5, "samples": 40, "held_out": 12},
    "memory20": {"blanks": 3, "samples": 40, "held_out": 12},
}
SIZE = 16


def load(name, **options):
    return tasks.load(name, **{**SMALL.get(name, {}), **options})


def contents(batches, epoch=0):
    batches.epoch = epoch
    return [array for i in range(len(batches)) for array in batches[i]]


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


# What every task gives


@pytest.mark.parametrize("name", SMALL)
def test_a_batch_is_a_function_of_seed_epoch_and_number(name):
    train = load(name).train
    batches, other_seed = train.batches(SIZE, 0), contents(train.batches(SIZE, 1))
    first, next_epoch = (contents(batches, epoch) for epoch in (0, 1))
    assert same(first, contents(load(name).train.batches(SIZE, 0)))
    assert not same(first, next_epoch) and not same(first, other_seed)
    assert not same(first[:2], first[2:4])
    assert sum(len(x) for x in first[::2]) == len(train)


@pytest.mark.parametrize("name", SMALL)
def test_validation_and_test_are_fixed_and_have_nothing_of_training(name):
    task, again = load(name), load(name)
    seen = np.concatenate(contents(task.train.batches(SIZE, seed=0))[::2])
    sets = [seen, task.validation.x, task.test.x]
    rows = np.concatenate([x.reshape(len(x), -1) for x in sets])
    assert len(np.unique(rows, axis=0)) == len(rows)
    for split in ("validation", "test"):
        got, want = getattr(again, split), getattr(task, split)
        assert same((got.x, got.y), (want.x, want.y))


@pytest.mark.parametrize("variant", ["momentumrnn", "mcrm"])
def test_a_run_that_goes_on_ends_as_one_without_a_break(variant, monkeypatch):
    """Keras shuffles batches by itself, and does not tell which epoch it reads."""
    task, read = load("adding", variant=variant), []
    batch_of = tasks.Batches.__getitem__

    def recorded(batches, i):
        read.append((batches.epoch, i))
        return batch_of(batches, i)

    monkeypatch.setattr(tasks.Batches, "__getitem__", recorded)

    def fit(model, epochs, initial_epoch):
        read.clear()
        task.fit(model, SIZE, epochs, seed=5, initial_epoch=initial_epoch, verbose=0)
        # Before the first epoch Keras may look at batches for their shapes.
        return [key for key in read if key[0] >= max(initial_epoch, 1)]

    def new_model():
        keras.utils.set_random_seed(0)
        model = task.model(keras.layers.SimpleRNN(3, **task.layer_arguments))
        task.compile(model, keras.optimizers.SGD(0.1))
        return model

    whole, broken = new_model(), new_model()
    assert fit(whole, 3, 0) == [(epoch, i) for epoch in (1, 2) for i in range(3)]
    fit(broken, 2, 0)
    assert fit(broken, 3, 2) == [(2, i) for i in range(3)]
    for a, b in zip(whole.weights, broken.weights, strict=True):
        np.testing.assert_allclose(array(a), array(b), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("addition", {}, "`task` must be one of ['digits', "),
        ("adding", {"T": 9}, "The options of adding are ['variant', 'steps', "),
        ("adding", {"seed": -1}, "`seed` must be an integer of at least 0. Received: seed=-1"),
        ("adding", {"variant": "nguyen"}, "`variant` must be one of ['momentumrnn', "),
        ("adding", {"variant": [1]}, "`variant` must be one of ['momentumrnn', "),
        ("adding", {"steps": 3}, "`steps` must be an integer of at least 4. Received: st"),
        ("multiplication", {"steps": 19}, "`steps` must be an integer of at least 20."),
        ("adding", {"samples": 0}, "`samples` must be a positive integer."),
        ("digits", {"subset": 5}, "`subset` must be an integer of at least 6, at most 1437"),
        ("mnist", {"subset": 60001}, "at most 60000. Received: subset=60001"),
        ("copying", {"symbols": 1}, "`symbols` must be an integer of at least 2."),
        ("memory5", {"cue": None}, "`cue` must be one of [True, False]. Received: cue=None"),
    ],
)
def test_bad_options_are_refused(name, options, message):
    with pytest.raises(ValueError) as error:
        tasks.load(name, **options)
    assert message in str(error.value)


def test_layers_that_do_not_fit_are_refused():
    task = load("digits")
    with pytest.raises(ValueError, match="must be False in this place of digits"):
        task.model(keras.layers.GRU(3, return_sequences=True))
    with pytest.raises(ValueError, match="`return_sequences` of LSTM must be True in this"):
        task.model(keras.layers.LSTM(3), keras.layers.LSTM(3))
    with pytest.raises(ValueError, match="must have at least one"):
        task.model()


# Adding and multiplying


VARIANTS = st.sampled_from(["momentumrnn", "mcrm", "sutskever"])


@settings(deadline=None, max_examples=20)
@given(VARIANTS, st.integers(20, 60), st.booleans(), st.integers(0, 2**40))
def test_adding_is_what_its_definition_says(variant, steps, centered, seed):
    task = tasks.load(
        "adding", variant=variant, steps=steps, centered=centered, held_out=50, seed=seed
    )
    x, y = task.test.x, task.test.y
    assert x.shape == (50, steps, 2) and y.shape == (50, 1)
    assert x.dtype == y.dtype == np.float32
    if centered:
        x, y = x + np.float32([0.5, 2 / steps]), y + (0.5 if variant == "sutskever" else 1)
    values, markers = x[..., 0], np.round(x[..., 1], 5)
    assert values.min() >= -1e-6 and values.max() < 1 + 1e-6 and values.std() > 0.25
    assert set(np.unique(markers)) == {0, 1} and (markers.sum(axis=1) == 2).all()
    total = (values * markers).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y, total / (2 if variant == "sutskever" else 1), atol=1e-5)
    halves = markers[:, : steps // 2].sum(axis=1)
    if variant == "momentumrnn":
        assert (halves == 1).all()
    if variant == "sutskever":
        assert (halves == 2).all() and (markers[:, :10].sum(axis=1) >= 1).all()


def test_markers_reach_every_step_that_they_may():
    def counts(variant, steps):
        task = tasks.load("adding", variant=variant, steps=steps, held_out=6000)
        return task.test.x[..., 1].sum(axis=0) / 6000

    np.testing.assert_allclose(counts("momentumrnn", 9), [1 / 4] * 4 + [1 / 5] * 5, atol=0.03)
    np.testing.assert_allclose(counts("mcrm", 8), [2 / 8] * 8, atol=0.03)
    # First among ten; second among the other 19 of the first twenty.
    expected = [1 / 10 + 9 / 10 / 19] * 10 + [1 / 19] * 10 + [0] * 20
    np.testing.assert_allclose(counts("sutskever", 40), expected, atol=0.02)


def test_the_product_is_of_the_marked_values():
    task = tasks.load("multiplication", held_out=50)
    values, markers = np.moveaxis(task.test.x, -1, 0)
    marked = values[markers == 1].reshape(50, 2)
    assert task.input_shape == (80, 2)
    np.testing.assert_allclose(task.test.y[:, 0], marked[:, 0] * marked[:, 1], rtol=1e-6)
    centered = tasks.load("multiplication", held_out=50, centered=True)
    np.testing.assert_allclose(centered.test.y, task.test.y - 0.25, atol=1e-6)


def test_mcrm_trains_on_one_set_and_the_others_on_fresh_sequences():
    fixed = load("adding", variant="mcrm").train
    assert isinstance(fixed, tasks.Split) and len(fixed) == 40
    a, b = (contents(fixed.batches(40), epoch) for epoch in (0, 1))
    np.testing.assert_array_equal(np.sort(a[1], axis=0), np.sort(b[1], axis=0))
    assert isinstance(load("copying", variant="mcrm").train, tasks.Split)
    fresh = load("adding").train
    a, b = (contents(fresh.batches(40), epoch) for epoch in (0, 1))
    assert not np.isin(a[1], b[1]).any()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("adding", {}),
        ("adding", {"variant": "mcrm"}),
        ("adding", {"variant": "sutskever"}),
        ("multiplication", {}),
        ("multiplication", {"centered": True}),
    ],
    ids=str,
)
def test_chance_is_what_the_mean_scores(name, options):
    task = tasks.load(name, **{"samples": 1, "held_out": 40_000, "steps": 20, **options})
    y = task.test.y
    score = {"loss": np.mean((y - y.mean()) ** 2)}
    assert task.chance["loss"] == pytest.approx(score["loss"], rel=0.02)
    if task.metric == "zero_one_loss":
        missed = np.mean(np.abs(y - y.mean()) > 0.04)
        assert task.chance["zero_one_loss"] == pytest.approx(missed, abs=0.01)


def test_error_above_counts_misses():
    metric = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(error_above(0.04))
    )
    y = np.float32([[0.5], [0.5], [0.5], [0.5]])
    metric.update_state(y, y + np.float32([[0.039], [-0.039], [0.041], [-0.041]]))
    metric.update_state(y[:1], y[:1])
    assert float(metric.result()) == pytest.approx(2 / 5)
    assert metric.name == "zero_one_loss"


# Copying and memorising


def test_copying_looks_like_the_figure_of_the_paper():
    """Figure 8: N = 4, K = 5, L = 20; 0 is the blank, 5 the cue."""
    task = tasks.load("copying", blanks=20, length=5, symbols=4, held_out=500)
    x, y = task.test.x, task.test.y
    assert x.shape == y.shape == (500, 30) and task.input_shape == (30,)
    assert (x[:, 5:] == [0] * 20 + [5] + [0] * 4).all()
    assert (y[:, :25] == 0).all()
    np.testing.assert_array_equal(y[:, 25:], x[:, :5])
    counts = np.bincount(x[:, :5].ravel(), minlength=6)
    np.testing.assert_allclose(counts, [0, 625, 625, 625, 625, 0], atol=100)


@settings(deadline=None, max_examples=10)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(2, 9), st.integers(0, 2**40))
def test_copying_of_mcrm_is_what_its_code_draws(blanks, length, symbols, seed):
    task = tasks.load(
        "copying",
        variant="mcrm",
        blanks=blanks,
        length=length,
        symbols=symbols,
        held_out=9,
        samples=1,
        seed=seed,
    )
    x, y = task.test.x[..., 0], task.test.y
    assert x.dtype == np.float32 and task.input_shape == (blanks + 2 * length, 1)
    assert x[:, :length].min() >= 1 and x[:, :length].max() <= symbols
    rest = [0] * (blanks - 1) + [symbols + 1] * (length + 1)
    assert (x[:, length:] == rest).all()
    assert (y[:, : blanks + length] == 0).all()
    np.testing.assert_array_equal(y[:, blanks + length :], x[:, :length])


@pytest.mark.parametrize(
    ("name", "kinds", "length", "blanks", "chance"),
    [("memory5", 2, 5, 200, 2.5), ("memory20", 5, 10, 80, 8.0)],
)
def test_memorising_is_what_its_definition_says(name, kinds, length, blanks, chance):
    task = tasks.load(name, held_out=300)
    x, y = task.test.x, task.test.y
    assert x.shape == y.shape == (300, blanks + 2 * length)
    assert set(np.unique(x[:, :length])) == set(range(1, kinds + 1))
    assert (x[:, length:] == [0] * blanks + [kinds + 1] + [0] * (length - 1)).all()
    assert (y[:, :-length] == -1).all()
    np.testing.assert_array_equal(y[:, -length:], x[:, :length] - 1)
    assert task.metric == "wrong_symbols" and task.chance["wrong_symbols"] == chance
    silent = tasks.load(name, held_out=300, cue=False)
    assert (silent.test.x[:, length:] == 0).all()


@pytest.mark.parametrize("cue", [True, False])
def test_centered_symbols_have_a_mean_of_zero(cue):
    task = tasks.load("memory20", held_out=3000, cue=cue, centered=True)
    model = task.model(keras.layers.SimpleRNN(2, return_sequences=True))
    read = array(model.layers[0](task.test.x)).reshape(-1, 7)
    np.testing.assert_allclose(read.mean(0), 0, atol=2e-3)
    np.testing.assert_allclose(np.ptp(read, axis=0), [1] * 6 + [cue], atol=1e-6)


@pytest.mark.parametrize("name", ["copying", "memory20"])
def test_chance_of_recalling_is_what_an_even_guess_scores(name):
    task = load(name, held_out=50)
    y, length = task.test.y, 10
    symbols = round(length / (length - task.chance["wrong_symbols"]))
    model = task.model(keras.layers.SimpleRNN(2, **task.layer_arguments))
    task.compile(model, "sgd")
    logits = np.random.default_rng(0).normal(size=(*y.shape, model.output_shape[-1]))
    logits = logits.astype("float32")
    logits[:, -length:, -symbols:] = 0
    if name == "copying":  # whose blanks count
        logits[:, :-length], logits[:, -length:, 0] = [30, *[-30] * symbols], -30
    scores = model.compute_loss(y=y, y_pred=keras.ops.convert_to_tensor(logits))
    assert float(array(scores)) == pytest.approx(task.chance["loss"], rel=1e-4)
    metric = mean_wrong_symbols(length)
    metric.update_state(y, logits + np.random.default_rng(0).random(logits.shape))
    assert float(metric.result()) == pytest.approx(task.chance["wrong_symbols"], abs=0.4)


def test_wrong_symbols_counts_those_at_the_end():
    metric = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(mean_wrong_symbols(3))
    )
    y = np.array([[1, 1, 0, 1, 2], [2, 2, 2, 1, 0]])
    said = np.array([[0, 0, 0, 1, 2], [2, 2, 1, 2, 0]])
    metric.update_state(y, np.eye(3, dtype="float32")[said])
    assert float(metric.result()) == (0 + 2) / 2


def test_symbols_reach_the_layer_one_hot():
    task = load("copying")
    model = task.model(keras.layers.SimpleRNN(4, **task.layer_arguments))
    one_hot = array(model.layers[0](task.test.x[:2]))
    np.testing.assert_array_equal(one_hot, np.eye(10)[task.test.x[:2]])
    assert len(model.trainable_weights) == 3 + 2
    assert model.output_shape == (None, 25, 9)
    plain = load("copying", variant="mcrm")
    model = plain.model(keras.layers.SimpleRNN(4, **plain.layer_arguments))
    assert model.input_shape == (None, 25, 1) and model.output_shape == (None, 25, 10)


# Pixels


def test_digits_are_split_scaled_and_permuted_alike():
    plain, permuted = (load("digits", subset=600, permute=p) for p in (False, True))
    sets = [getattr(plain, name) for name in ("train", "validation", "test")]
    assert [len(s) for s in sets] == [500, 100, 360]
    order = np.random.default_rng(0).permutation(64)
    for split, other in zip(sets, (permuted.train, permuted.validation, permuted.test)):
        assert split.x.shape == (len(split), 64, 1) and split.x.dtype == "float32"
        assert split.x.min() == 0 and split.x.max() == 1
        np.testing.assert_array_equal(other.x, split.x[:, order])
        np.testing.assert_array_equal(other.y, split.y)
    another = load("digits", subset=600, permute=True, seed=1)
    assert not np.array_equal(another.test.x, permuted.test.x)


@needs.prepared_data
def test_mnist_is_read_and_permuted():
    data_dir = os.environ["KERAS_MOMENTUM_RNN_TFDS"]
    plain = tasks.load("mnist", data_dir=data_dir, subset=60)
    permuted = tasks.load("pmnist", data_dir=data_dir, subset=60)
    assert [len(s) for s in (plain.train, plain.validation, plain.test)] == [50, 10, 10000]
    assert plain.test.x.shape == (10000, 784, 1)
    assert plain.test.x.min() == 0 and plain.test.x.max() == 1
    assert np.bincount(plain.test.y).tolist()[:3] == [980, 1135, 1032]
    order = np.random.default_rng(0).permutation(784)
    np.testing.assert_array_equal(permuted.train.x, plain.train.x[:, order])
    # The first training image is a five: row by row, its middle is darker than its corners.
    assert plain.train.x[0].reshape(28, 28)[:4].sum() == 0
