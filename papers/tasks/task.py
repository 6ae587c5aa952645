"""What a task is: data, a loss, a score, a read-out, and what chance scores."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_momentum_rnn.checks import checked_choice, checked_count


class Batches(keras.utils.PyDataset):
    """The batches of one epoch after another, for `fit`, `evaluate` and `predict`.

    Batch i of an epoch is a function of the epoch's number and i alone: a training run that
    resumes at epoch k sees what an uninterrupted one would have seen. Keras does not say which
    epoch it reads, calls `on_epoch_end` once too often where it builds a model, and shuffles:
    `Task.fit` has the callback `Epochs` count them, and `shuffle=False`.

    Args:
        count: int, how many batches an epoch has.
        batch: function (epoch, i) -> (x, y) or (x, y, sample_weight).
    """

    def __init__(self, count: int, batch: Callable[[int, int], tuple]) -> None:
        super().__init__()
        self.count = count
        self.batch = batch
        self.epoch = 0

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.batch(self.epoch, i)


class Epochs(keras.callbacks.Callback):
    """Tell `Batches` which epoch is being read.

    Args:
        batches: the `Batches` that `fit` reads. Epoch e of `fit`, its `initial_epoch` counted,
            is their epoch e.
    """

    def __init__(self, batches: Batches) -> None:
        super().__init__()
        self.batches = batches

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.batches.epoch = epoch


@dataclasses.dataclass(frozen=True)
class Split:
    """Samples that are held in memory.

    Attributes:
        x: array (samples, ...), the inputs.
        y: array (samples, ...), the targets.
        sample_weight: array (samples,) or (samples, time), or None.
    """

    x: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray | None = None

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        """Return the samples of an index: a slice or an array."""
        return Split(*(None if a is None else a[index] for a in self._arrays()))

    def _arrays(self):
        return self.x, self.y, self.sample_weight

    def batches(self, batch_size: int, seed: int | None = None) -> Batches:
        """Return `Batches` of all samples, the last one smaller where they do not divide.

        Args:
            batch_size: positive integer.
            seed: integer, or None for the samples in their order. Each epoch has an order of
                its own, drawn by seed and epoch.
        """
        size = checked_count("batch_size", batch_size)

        @functools.lru_cache(maxsize=1)
        def order(epoch):
            return np.random.default_rng([seed, epoch]).permutation(len(self))

        def batch(epoch, i):
            part = slice(i * size, (i + 1) * size)
            chosen = self[part if seed is None else order(epoch)[part]]
            return tuple(a for a in chosen._arrays() if a is not None)

        return Batches(math.ceil(len(self) / size), batch)


@dataclasses.dataclass(frozen=True)
class Generated:
    """Samples that are drawn for each batch, and never twice.

    Attributes:
        draw: function (rng, count) -> (x, y), with rng a `numpy.random.Generator`.
        samples: int, how many samples are called an epoch.
        seed: int, of the task. Batches for other seeds of a task are others.
    """

    draw: Callable
    samples: int
    seed: int

    def __len__(self):
        return self.samples

    def batches(self, batch_size: int, seed: int = 0) -> Batches:
        """Return `Batches` drawn by seed, epoch and number.

        Args:
            batch_size: positive integer.
            seed: integer, of the training run.
        """
        size = checked_count("batch_size", batch_size)

        def batch(epoch, i):
            count = min(size, self.samples - i * size)
            return self.draw(generator(self.seed, "train", seed, epoch, i), count)

        return Batches(math.ceil(self.samples / size), batch)


# Which of the disjoint streams of random numbers of a task is drawn from.
STREAMS = {"train": 0, "validation": 1, "test": 2}


def generator(seed, stream, *key):
    """Return the random generator of one stream of a task: others for another stream or key."""
    key = (STREAMS[stream], *key)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def generated(draw, samples, held_out, seed, fixed=False):
    """Return the three sets of a task whose samples are drawn, as arguments of `Task`.

    Args:
        draw: function (rng, count) -> (x, y).
        samples: int, of a training epoch.
        held_out: int, how many each of validation and test have. They are drawn once.
        seed: int.
        fixed: bool, whether training has one set of samples for all epochs.
    """

    def drawn(stream, count):
        return Split(*draw(generator(seed, stream), count))

    train = drawn("train", samples) if fixed else Generated(draw, samples, seed)
    return {
        "train": train,
        "validation": drawn("validation", held_out),
        "test": drawn("test", held_out),
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """A task of the papers, as `load` returns it.

    ```python
    task = tasks.load("adding", steps=200)
    model = task.model(keras.layers.LSTM(85, **task.layer_arguments))
    task.compile(model, keras.optimizers.Adam(1e-3))
    task.fit(model, batch_size=32, epochs=10, seed=0)
    scores = task.evaluate(model, "test", batch_size=500)
    ```

    Attributes:
        name: its name.
        options: dict of all its options, as results files have them.
        input_shape: shape of one sample, None where it varies.
        train: `Split`, `Generated` or, for text, `Text`; each has
            `batches(batch_size, seed)`, which `fit` takes.
        validation: `Split` or `Text`, fixed.
        test: `Split` or `Text`, fixed.
        loss: Keras loss.
        metric: name of the number that the papers compare, as `evaluate` returns it.
        larger_is_better: bool, of that number.
        chance: dict from names as `evaluate` returns them to what chance scores.
        chance_means: str, one sentence that says what chance is.
        return_sequences: bool, whether there is a target at every step. The last recurrent
            layer must have the same setting.
        stateful: bool, whether a batch continues where the one before ended. `model` carries
            the states; the layers themselves are not stateful.
        new_metrics: function that returns a list of new Keras metrics, which `compile` takes.
        build: function of layers and options that returns a model, see `model`.
        new_callbacks: function that returns a list of new Keras callbacks, which `fit` and
            `evaluate` need.
    """

    name: str
    options: dict
    input_shape: tuple
    train: Any
    validation: Any
    test: Any
    loss: keras.losses.Loss
    metric: str
    larger_is_better: bool
    chance: dict
    chance_means: str
    new_metrics: Callable
    build: Callable
    return_sequences: bool = False
    stateful: bool = False
    new_callbacks: Callable = list

    @property
    def layer_arguments(self) -> dict[str, Any]:
        """Arguments that the last recurrent layer must be made with, as a dict."""
        return {"return_sequences": self.return_sequences}

    def model(
        self, *layers: keras.layers.Layer, batch_size: int | None = None, **options: Any
    ) -> keras.Model:
        """Return a new model, not compiled: input, `layers`, the task's read-out.

        Args:
            *layers: recurrent layers, the lowest first, all but the last with
                `return_sequences=True`, the last with `**task.layer_arguments`.
            batch_size: positive integer, which a stateful task needs and the others ignore.
            **options: arguments of the read-out, a `keras.layers.Dense`, such as
                `kernel_initializer`; characters have none.

        Raises:
            ValueError: if there is no layer, if one does not return what the next one takes, or
                if a stateful task gets no batch size.
        """
        if not layers:
            raise ValueError("`layers` must have at least one. Received: none")
        needed = [True] * (len(layers) - 1) + [self.return_sequences]
        for layer, wanted in zip(layers, needed):
            if getattr(layer, "return_sequences", wanted) is not wanted:
                raise ValueError(
                    f"`return_sequences` of {type(layer).__name__} must be {wanted} in this "
                    f"place of {self.name}. Received: return_sequences={not wanted}"
                )
        if self.stateful:
            options["batch_size"] = checked_count("batch_size", batch_size)
        return self.build(layers, **options)

    def compile(self, model: keras.Model, optimizer: Any, **options: Any) -> None:
        """Compile a model with the task's loss and metrics, weighted as its samples are."""
        model.compile(optimizer, loss=self.loss, weighted_metrics=self.new_metrics(), **options)

    def fit(
        self,
        model: keras.Model,
        batch_size: int,
        epochs: int,
        seed: int = 0,
        initial_epoch: int = 0,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        **options: Any,
    ) -> keras.callbacks.History:
        """Train a compiled model, and return Keras's history.

        Training to epoch k and resuming with `initial_epoch=k` uses the same batches, in the
        same order, as one run without a break.

        Args:
            model: a model of this task.
            batch_size: positive integer.
            epochs: int, the epoch at which training ends.
            seed: int, of this run: of the order of samples, or of those that are drawn.
            initial_epoch: int, the epoch at which it starts.
            callbacks: further Keras callbacks.
            **options: as of `keras.Model.fit`. Pass
                `validation_data=task.validation.batches(500)` to get validation scores in the
                history.
        """
        batches = self.train.batches(batch_size, seed=seed)
        return model.fit(
            batches,
            epochs=epochs,
            initial_epoch=initial_epoch,
            callbacks=[Epochs(batches), *self.new_callbacks(), *callbacks],
            shuffle=False,
            **options,
        )

    def evaluate(self, model: keras.Model, split: str, batch_size: int) -> dict[str, float]:
        """Return a compiled model's scores as a dict of floats.

        Args:
            model: a model of this task.
            split: `"validation"`, `"test"`, or `"train"` where it is held in memory.
            batch_size: positive integer. Stateful models take the one they were made for.
        """
        checked_choice("split", split, ("train", "validation", "test"))
        batches = getattr(self, split).batches(batch_size)
        callbacks = self.new_callbacks()
        return model.evaluate(batches, callbacks=callbacks, return_dict=True, verbose=0)


def sequence_model(input_shape, outputs, symbols=None, mean=None, mask_value=None):
    """Return a function (layers, **options) -> model: input, layers, Dense(outputs).

    The options are those of the read-out: the names of arguments of `keras.layers.Dense`.

    Args:
        input_shape: shape of one sample.
        outputs: int, width of the read-out, at every step where the last layer returns all.
        symbols: int, or None. If given, the inputs are integers below it, and the layers get
            them one-hot.
        mean: array of the shares of the symbols, or None. If given, the one-hot inputs lose it.
        mask_value: float, or None. A step is masked if all of its features have this value.
    """

    def build(layers, **options):
        first = []
        if symbols is not None:
            rows = "identity"
            if mean is not None:
                rows = keras.initializers.Constant((np.eye(symbols) - mean).tolist())
            one_hot = keras.layers.Embedding(
                symbols, symbols, embeddings_initializer=rows, trainable=False
            )
            first = [one_hot]
        elif mask_value is not None:
            first = [keras.layers.Masking(mask_value)]
        dtype = None if symbols is None else "int32"
        inputs = keras.Input(input_shape, dtype=dtype)
        read_out = keras.layers.Dense(outputs, **options)
        return keras.Sequential([inputs, *first, *layers, read_out])

    return build
