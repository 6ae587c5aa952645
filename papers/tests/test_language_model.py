"""The language model: carried states, tied read-out, score."""

import harness
import keras
import numpy as np
import pytest
from harness import randomise

from keras_momentum_rnn import MCRM, AdamLSTM, MomentumLSTM
from papers import tasks
from papers.tasks.language_model import BitsPerCharacter, Carried, TiedEmbedding, language_model

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


def reset(model):
    for layer in model.layers:
        if isinstance(layer, Carried):
            layer.reset_state()


def bits(y, logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(log_p, y[..., None], axis=-1).mean() / np.log(2)


def randomised(model):
    randomise(model, np.random.default_rng(1), scale=0.6)
    return model


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
        x, y = getattr(whole, split).batches(ROWS)[0]
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


class TwoWindows(keras.layers.Layer):
    """Only the first window goes through `dense`, and only the second is returned."""

    def __init__(self):
        super().__init__()
        self.dense, self.carried = keras.layers.Dense(1), Carried(keras.layers.GRU(3))

    def call(self, x):
        self.carried(self.dense(x))
        return self.carried(x)


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_gradients_stop_at_the_window():
    """On JAX a state that a window assigns would lead into it, were it left as it is."""
    layer = TwoWindows()
    model = keras.Sequential([keras.Input(batch_shape=(ROWS, 4, 1)), layer])
    model.compile("sgd", "mse")
    weights = [layer.dense.kernel, layer.carried.layer.cell.kernel]
    before = [array(w) for w in weights]
    model.train_on_batch(np.ones((ROWS, 4, 1)), np.ones((ROWS, 4, 3)))
    moved = [np.abs(array(w) - old).max() for w, old in zip(weights, before)]
    assert moved[0] == 0 and moved[1] > 0


def test_a_saved_model_goes_on(tmp_path):
    layers = [AdamLSTM(4, return_sequences=True), keras.layers.GRU(3, return_sequences=True)]
    model = randomised(language_model(7, layers, 2))
    x = np.random.default_rng(0).integers(0, 7, (2, 9)).astype("int32")
    model(x[:, :5])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(array(loaded(x[:, 5:])), array(model(x[:, 5:])), atol=1e-6)
    assert len(loaded.trainable_weights) == len(model.trainable_weights) == 2 + 3 + 3


def test_read_out_is_the_embedding():
    table = TiedEmbedding(5, 3)
    table.build((None, None))
    randomise(table, np.random.default_rng(0))
    e, b = array(table.embeddings), array(table.bias)
    x = np.array([[4, 0, 4]])
    h = np.random.default_rng(0).standard_normal((1, 2, 3)).astype("float32")
    np.testing.assert_allclose(array(table(x)), e[x])
    np.testing.assert_allclose(array(table(h, reverse=True)), h @ e.T + b, atol=1e-6)


def test_the_score_is_of_all_characters_whatever_the_windows():
    rng = np.random.default_rng(0)
    y, logits = rng.integers(0, 4, (2, 9)), rng.normal(size=(2, 9, 4)).astype("float32")
    metric = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(BitsPerCharacter())
    )
    for part in (slice(0, 2), slice(2, 9)):
        metric.update_state(y[:, part], logits[:, part])
    assert float(metric.result()) == pytest.approx(bits(y, logits), rel=1e-5)
