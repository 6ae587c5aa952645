"""The language model: carried states, tied read-out, dropout, penalties, averaged SGD."""

import harness
import keras
import numpy as np
import pytest
from harness import randomise
from keras import ops
from speed import slow_if_compiled

from keras_momentum_rnn import DTRIV, MCRM, AdamLSTM, MomentumLSTM
from papers import tasks
from papers.tasks.language_model import (
    REGULARISATION,
    ActivationPenalty,
    BitsPerCharacter,
    Carried,
    Perplexity,
    TiedEmbedding,
    language_model,
)
from papers.tasks.task import Epochs, ScaledRate

ROWS, LENGTH = 3, 20


def array(x):
    """A copy, which later assignments leave alone."""
    return np.array(harness.array(x))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts of six letters, which the rows divide."""
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    for name in ("train", "valid", "test"):
        letters = rng.choice(list("abcd \n"), ROWS * LENGTH + 1)
        (folder / f"{name}.txt").write_text(
            "abcd \n"[: 6 * (name == "train")] + "".join(letters)
        )
    return folder


def rows(task, split="train"):
    x, y = getattr(task, split).batches(ROWS)[0]
    return x, y


def reset(model):
    for layer in model.layers:
        if isinstance(layer, Carried):
            layer.reset_state()


def bits(y, logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(log_p, y[..., None], axis=-1).mean() / np.log(2)


def randomised(model, scale=0.6):
    rng = np.random.default_rng(1)
    for weight in model.trainable_weights:
        weight.assign(scale * rng.standard_normal(weight.shape))
    return model


# States that are carried


@slow_if_compiled
@pytest.mark.parametrize(
    "layers",
    [(keras.layers.LSTM, keras.layers.SimpleRNN), (AdamLSTM, MCRM), (MomentumLSTM,)],
    ids=lambda layers: "-".join(layer.__name__ for layer in layers),
)
def test_windows_score_as_the_whole_text_does(layers, folder):
    """In every epoch of `fit`, in its validation, and in `evaluate`."""
    task = tasks.load("characters", folder=folder, steps=5)
    whole = tasks.load("characters", folder=folder, steps=1000)
    model = task.model(*(layer(4, return_sequences=True) for layer in layers), batch_size=ROWS)
    task.compile(randomised(model), keras.optimizers.SGD(0.0))

    def score(split):
        x, y = rows(whole, split)
        reset(model)
        return bits(y, array(model(x)))

    expected = score("train")
    history = task.fit(
        model, ROWS, 2, verbose=0, validation_data=task.validation.batches(ROWS)
    ).history
    assert history["bits_per_character"] == pytest.approx([expected] * 2, rel=1e-4)
    validation = score("validation")
    assert history["val_bits_per_character"] == pytest.approx([validation] * 2, rel=1e-4)
    got = task.evaluate(model, "test", ROWS)["bits_per_character"]
    assert got == pytest.approx(score("test"), rel=1e-4)
    # From zero in every window the score is another: the states matter.
    parts = task.train.batches(ROWS)
    alone = []
    for i in range(len(parts)):
        reset(model)
        alone.append((bits(parts[i][1], array(model(parts[i][0]))), parts[i][0].shape[1]))
    values, weights = zip(*alone)
    assert abs(np.average(values, weights=weights) - expected) > 1e-3


def test_gradients_stop_at_the_window(folder):
    """An update by the second window is that of a model that starts with the same states."""
    x = np.random.default_rng(0).integers(0, 5, (2, 6)).astype("int32")
    model = randomised(language_model(5, [keras.layers.GRU(3, return_sequences=True)], 2))
    model.compile(
        keras.optimizers.SGD(1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    carried = model.layers[3]
    assert isinstance(carried, Carried)
    model(x[:, :3])
    state, before = array(carried.states[0]), [array(w) for w in model.trainable_weights]
    assert np.abs(state).max() > 0.05
    model.train_on_batch(x[:, 3:], x[:, 3:])
    moved = [array(w) for w in model.trainable_weights]
    for weight, value in zip(model.trainable_weights, before):
        weight.assign(value)
    carried.states[0].assign(state)
    model.train_on_batch(x[:, 3:], x[:, 3:])
    for weight, value in zip(model.trainable_weights, moved):
        np.testing.assert_allclose(array(weight), value, atol=1e-5)
    assert not np.allclose(array(carried.states[0]), state)


@slow_if_compiled
def test_a_saved_model_goes_on(tmp_path):
    layers = [AdamLSTM(4, return_sequences=True), keras.layers.GRU(3, return_sequences=True)]
    model = randomised(language_model(7, layers, 2, **REGULARISATION))
    x = np.random.default_rng(0).integers(0, 7, (2, 9)).astype("int32")
    model(x[:, :5])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(array(loaded(x[:, 5:])), array(model(x[:, 5:])), atol=1e-6)
    assert len(loaded.trainable_weights) == len(model.trainable_weights) == 2 + 3 + 3
    assert loaded.layers[3].weight_dropout == 0.5


# The model of the paper


def test_the_baseline_for_words_has_24_million_parameters():
    layers = [
        keras.layers.LSTM(
            units,
            return_sequences=True,
            kernel_initializer="zeros",
            recurrent_initializer="zeros",
        )
        for units in (1150, 1150, 400)
    ]
    model = language_model(10_000, layers, 1, embedding=400, **REGULARISATION)
    count = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    gates = [4 * u * (d + u + 1) for d, u in ((400, 1150), (1150, 1150), (1150, 400))]
    assert count == sum(gates) + 10_000 * 401 == 24_210_800


def test_read_out_is_the_embedding():
    table = TiedEmbedding(5, 3)
    table.build((None, None))
    randomise(table, np.random.default_rng(0))
    e, b = array(table.embeddings), array(table.bias)
    x = np.array([[4, 0, 4]])
    h = np.random.default_rng(0).standard_normal((1, 2, 3)).astype("float32")
    np.testing.assert_allclose(array(table(x)), e[x])
    np.testing.assert_allclose(array(table(h, reverse=True)), h @ e.T + b, atol=1e-6)
    free = language_model(5, [keras.layers.GRU(3, return_sequences=True)], 2, 4, tied=False)
    assert len(free.trainable_weights) == 2 + 3 + 2


def test_rows_of_the_embedding_are_dropped_everywhere_alike():
    table = TiedEmbedding(200, 3, dropout=0.25)
    table.build((None, None))
    randomise(table, np.random.default_rng(0))
    e, x = array(table.embeddings), np.arange(400).reshape(2, 200) % 200
    out = array(table(x, training=True))
    np.testing.assert_array_equal(out[0], out[1])
    kept = np.abs(out[0]).sum(axis=1) > 0
    assert 0.15 < 1 - kept.mean() < 0.35
    np.testing.assert_allclose(out[0][kept], e[kept] / 0.75, rtol=1e-5)
    np.testing.assert_allclose(array(table(x)), e[x])
    h = np.eye(3, dtype="float32")[None]
    read = array(table(h, reverse=True, training=True))
    np.testing.assert_allclose(read[0] - array(table.bias), e.T, atol=1e-6)


@pytest.mark.parametrize("layer", [keras.layers.LSTM, keras.layers.GRU, MomentumLSTM, MCRM])
def test_weight_dropout_takes_one_mask_for_all_steps(layer):
    carried = Carried(layer(8, return_sequences=True), weight_dropout=0.5)
    carried.build((2, None, 3))
    randomise(carried.layer, np.random.default_rng(0))
    kernel = carried.layer.cell.recurrent_kernel
    x = np.random.default_rng(1).standard_normal((2, 6, 3)).astype("float32")
    seed = array(carried.seed_generator.state)
    dropped = array(carried(x, training=True))
    assert carried.layer.cell.recurrent_kernel is kernel
    carried.seed_generator.state.assign(seed)
    value = ops.convert_to_tensor(kernel)
    masked = array(keras.random.dropout(value, 0.5, seed=carried.seed_generator))
    kept = masked != 0
    assert 0.35 < kept.mean() < 0.65
    np.testing.assert_allclose(masked[kept], 2 * array(kernel)[kept], rtol=1e-6)

    def plain(recurrent_kernel):
        """What the layer computes with this kernel, all steps."""
        own = array(kernel)
        kernel.assign(recurrent_kernel)
        carried.reset_state()
        out = array(carried(x))
        kernel.assign(own)
        return out

    np.testing.assert_allclose(dropped, plain(masked), atol=1e-6)
    assert np.abs(dropped - plain(array(kernel))).max() > 1e-2


def test_only_kept_entries_of_the_kernel_learn():
    layer = keras.layers.SimpleRNN(12, return_sequences=True)
    model = randomised(language_model(5, [layer], 2, weight_dropout=0.5), 0.3)
    model.compile(
        keras.optimizers.SGD(1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    kernel = model.layers[3].layer.cell.recurrent_kernel
    before = array(kernel)
    x = np.random.default_rng(0).integers(0, 5, (2, 7)).astype("int32")
    model.train_on_batch(x, x)
    moved = array(kernel) != before
    assert 0.3 < moved.mean() < 0.7


def test_penalties_are_means_of_squares_in_training_alone():
    penalty = ActivationPenalty(activation=2.0, temporal=3.0)
    h = np.random.default_rng(0).standard_normal((2, 5, 4)).astype("float32")
    np.testing.assert_array_equal(array(penalty(h, training=True)), h)
    expected = 2 * np.mean(h**2) + 3 * np.mean(np.diff(h, axis=1) ** 2)
    assert sum(float(loss) for loss in penalty.losses) == pytest.approx(expected, rel=1e-5)
    silent = ActivationPenalty(activation=2.0, temporal=3.0)
    silent(h)
    assert not silent.losses
    single = ActivationPenalty(temporal=3.0)
    single(h[:, :1], training=True)
    assert not single.losses


@slow_if_compiled
def test_everything_together_learns_a_text(folder):
    task = tasks.load("words", folder=folder, steps=10)
    layers = [keras.layers.LSTM(u, return_sequences=True) for u in (6, 5)]
    model = task.model(*layers, batch_size=2, embedding=5, **REGULARISATION)
    task.compile(model, keras.optimizers.SGD(1.0, global_clipnorm=0.25, weight_decay=1.2e-6))
    averaging = tasks.AveragedSGD("val_perplexity", patience=1)
    history = task.fit(
        model,
        2,
        2,
        callbacks=[averaging],
        validation_data=task.validation.batches(2),
        verbose=0,
    ).history
    assert np.isfinite(history["loss"]).all() and len(averaging.values) == 2
    assert float(model.optimizer.learning_rate) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"weight_dropout": 1.0},
            "`weight_dropout` must be a number in [0, 1). Received: weig",
        ),
        ({"row_dropout": -0.1}, "`row_dropout` must be a number in [0, 1). Received: row_drop"),
        ({"output_dropout": 1}, "`dropout` must be a number in [0, 1). Received: dropout=1"),
        ({"temporal_penalty": -1}, "`temporal_penalty` must be a number in [0, infinity)."),
        ({"embedding": 4}, "`embedding` must be as wide as the last layer, 3, where"),
    ],
)
def test_bad_options_are_refused(options, message):
    layer = keras.layers.GRU(3, return_sequences=True)
    with pytest.raises(ValueError) as error:
        language_model(5, [layer], 2, **options)
    assert message in str(error.value)


def test_what_has_no_kernel_or_no_batch_size_is_refused(folder):
    with pytest.raises(ValueError, match="DTRIV has no recurrent kernel to drop from"):
        language_model(5, [DTRIV(3, return_sequences=True)], 2, weight_dropout=0.5)
    task = tasks.load("characters", folder=folder)
    with pytest.raises(ValueError, match=r"`batch_size` must be a positive integer. Received"):
        task.model(keras.layers.GRU(3, return_sequences=True))


# Scores


@pytest.mark.parametrize("symbols", [2, 50, 10_000])
def test_a_uniform_model_scores_the_size_of_the_vocabulary(symbols):
    y = np.random.default_rng(0).integers(0, symbols, (2, 5))
    metrics = [
        keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
        for metric in (Perplexity(), BitsPerCharacter())
    ]
    for metric in metrics:
        metric.update_state(y, np.full((2, 5, symbols), 0.3, "float32"))
    perplexity, bits_each = (float(metric.result()) for metric in metrics)
    assert perplexity == pytest.approx(symbols, rel=1e-4)
    assert bits_each == pytest.approx(np.log2(symbols), rel=1e-5)


def test_scores_are_of_all_symbols_whatever_the_windows():
    rng = np.random.default_rng(0)
    y, logits = rng.integers(0, 4, (2, 9)), rng.normal(size=(2, 9, 4)).astype("float32")
    metric = Perplexity()
    for part in (slice(0, 2), slice(2, 9)):
        metric.update_state(y[:, part], logits[:, part])
    assert float(metric.result()) == pytest.approx(2 ** bits(y, logits), rel=1e-5)


# Callbacks


def constant_gradient(batches=2):
    """A model of one weight, which falls by the learning rate at every update."""
    model = keras.Sequential(
        [keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")]
    )
    model.compile(keras.optimizers.SGD(1.0), loss=lambda y, y_pred: ops.mean(y_pred))
    one = np.ones((1, 1), "float32")
    return model, tasks.Batches(batches, lambda epoch, i: (one, one)), one


def test_the_rate_is_scaled_for_each_batch():
    model, batches, _ = constant_gradient(3)
    batches.rate = lambda epoch, i: 1 + epoch + 10 * i
    callbacks = [Epochs(batches), ScaledRate(batches)]
    model.fit(batches, epochs=2, callbacks=callbacks, verbose=0, shuffle=False)
    assert array(model.weights[0]).item() == -(1 + 11 + 21 + 2 + 12 + 22)
    assert float(model.optimizer.learning_rate) == 1.0


def test_a_rate_that_is_scaled_follows_a_schedule_by_epochs():
    model, batches, _ = constant_gradient(2)
    batches.rate = lambda epoch, i: 1 + i
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 4)
    callbacks = [Epochs(batches), ScaledRate(batches), schedule]
    model.fit(batches, epochs=2, callbacks=callbacks, verbose=0, shuffle=False)
    assert array(model.weights[0]).item() == -3 * (1 / 4 + 1 / 16)
    assert float(model.optimizer.learning_rate) == 1 / 16


def test_averaging_begins_once_validation_is_worse_and_goes_on_after_a_break():
    """The validation score rises with every update: -w, w = -1, -2, ..."""

    def fit(model, batches, one, averaging, epochs, initial_epoch):
        return model.fit(
            batches,
            epochs=epochs,
            initial_epoch=initial_epoch,
            validation_data=(-one, one),
            callbacks=[averaging],
            verbose=0,
        ).history["val_loss"]

    model, batches, one = constant_gradient()
    averaging = tasks.AveragedSGD("val_loss", patience=1)
    seen = fit(model, batches, one, averaging, 4, 0)
    assert seen == [2, 4, 6, 7.5]
    assert array(model.weights[0]).item() == -8
    again = tasks.AveragedSGD("val_loss", patience=1)
    again.set_state(averaging.state())
    assert fit(model, batches, one, again, 5, 4) == [8.5]
    assert model.evaluate(-one, one, callbacks=[again], verbose=0) == 8.5
    assert array(model.weights[0]).item() == -10
    again.apply()
    assert array(model.weights[0]).item() == -8.5


def test_averaging_waits_while_validation_improves():
    model, batches, one = constant_gradient()
    averaging = tasks.AveragedSGD("val_loss", patience=2)
    model.fit(batches, epochs=5, validation_data=(one, one), callbacks=[averaging], verbose=0)
    assert averaging.updates is None and averaging.values == [-2, -4, -6, -8, -10]
    with pytest.raises(ValueError, match=r"`monitor` must be in the logs of `fit`"):
        model.fit(batches, callbacks=[averaging], verbose=0)
