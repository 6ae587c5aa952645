"""A recipe: a layer, its optimizer, and how long they train."""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Self

import keras

from keras_momentum_rnn import optimizers
from keras_momentum_rnn.layers.registry import available_layers
from papers.tasks import sutskever2013


@dataclass(frozen=True)
class Recipe:
    """How to train a layer: a row of the papers' tables, see `recipe`, or your own choice.

    Attributes:
        task: name of the task, as `tasks.load` takes it.
        options: dict of the task's options, such as the length of its sequences.
        layer_name: name of the layer's class: of Keras, ours, or registered with Keras.
        units: int, its width; a tuple for a stack of layers.
        arguments: dict of its other arguments, its initializers among them.
        optimizer_name: name of a class of `keras.optimizers`, or `"MomentumSGD"`; for
            orthogonal layers that of all weights but S, the skew matrix.
        learning_rate: float, its rate; None where the paper chose one of several.
        optimizer_arguments: dict from names of optimizers to dicts of their other arguments.
        clipnorm: float, at which the norm of all gradients together is clipped, or None.
        batch_size: int.
        epochs: int, as the tables count.
        updates_per_epoch: int where sequences are generated; None for a pass over the data.
        model_options: dict, options of the task's model.
        rate_cut: `(epochs, factor)`, after how many epochs the rate is multiplied by the
            factor, again and again; None for a constant rate.
        recurrent_optimizer_name: that of S in an orthogonal layer, else None.
        recurrent_learning_rate: float, its rate, or None.
        source: the tables or other source of the numbers.
        follows: which of text, tables and released code it follows where they differ.
    """

    task: str
    layer_name: str
    units: int | tuple
    arguments: dict
    optimizer_name: str
    learning_rate: float | None
    clipnorm: float | None
    batch_size: int
    epochs: int
    source: str = ""
    follows: str = ""
    options: dict = field(default_factory=dict)
    optimizer_arguments: dict = field(default_factory=dict)
    updates_per_epoch: int | None = None
    model_options: dict = field(default_factory=dict)
    rate_cut: tuple | None = None
    recurrent_optimizer_name: str | None = None
    recurrent_learning_rate: float | None = None

    @property
    def layer(self) -> Any:
        """A new layer, at each reading; of a stack the first, see `new_layers`."""
        return self.new_layers()[0]

    @property
    def optimizer(self) -> keras.optimizers.Optimizer:
        """A new optimizer, at each reading, for all weights of a model that has the layer.

        Where S has one of the same kind, this is one optimizer, and the layer's
        `recurrent_lr_multiplier` gives S its rate. Where it has one of another kind, it is a
        `keras.optimizers.MultiOptimizer`; reading it raises a `RuntimeError` where this Keras
        has none.
        """
        of_all = self._optimizer(self.optimizer_name, self.learning_rate)
        if self.recurrent_optimizer_name in (None, self.optimizer_name):
            return of_all
        if not hasattr(keras.optimizers, "MultiOptimizer"):
            raise RuntimeError(
                f"{self.layer_name} on {self.task} trains S by {self.recurrent_optimizer_name} "
                f"and the rest by {self.optimizer_name}, for which Keras {keras.__version__} "
                "has no `keras.optimizers.MultiOptimizer`: use a newer one"
            )
        of_skew = self._optimizer(self.recurrent_optimizer_name, self.recurrent_learning_rate)
        choice = keras.optimizers.OptimizerMap(of_all, {".*/skew": of_skew})
        return keras.optimizers.MultiOptimizer(choice)

    def _optimizer(self, name, rate):
        if rate is None:
            raise ValueError(
                f"the paper chose the learning rate from {sutskever2013.LEARNING_RATES} and "
                "does not print which: name one, as in "
                "`dataclasses.replace(recipe, learning_rate=1e-4)`. "
                "Received: learning_rate=None"
            )
        where = optimizers if name == "MomentumSGD" else keras.optimizers
        return getattr(where, name)(
            rate, global_clipnorm=self.clipnorm, **self.optimizer_arguments.get(name, {})
        )

    def new_layers(self, **options: Any) -> list[Any]:
        """Return new layers, one for each number of units, with further arguments."""
        layer_class = available_layers().get(self.layer_name)
        if layer_class is None:
            layer_class = keras.saving.get_registered_object(self.layer_name)
        if layer_class is None:
            raise ValueError(
                "`layer_name` must be a layer of Keras, ours, or the registered name of your "
                f"own class. Received: layer_name={self.layer_name!r}"
            )
        *lower, last = self.units if isinstance(self.units, tuple) else (self.units,)
        given = {**self.arguments, **options}
        below = {**given, "return_sequences": True}
        return [*(layer_class(n, **below) for n in lower), layer_class(last, **given)]

    def callbacks(self) -> list[keras.callbacks.Callback]:
        """Return new callbacks of `fit`, a list: of the look-ahead, the rate."""
        found = []
        if self.optimizer_name == "MomentumSGD":
            found.append(LookAhead())
        if self.rate_cut is not None:
            period, factor = self.rate_cut
            rate = self.learning_rate
            found.append(
                keras.callbacks.LearningRateScheduler(
                    lambda epoch, _: rate * factor ** (epoch // period)
                )
            )
        return found

    def grouped(self, updates: int) -> Self:
        """Return a recipe whose epochs are one update each with epochs of so many."""
        epochs = self.epochs // updates
        return dataclasses.replace(self, epochs=epochs, updates_per_epoch=updates)

    def described(self) -> dict[str, Any]:
        """Return what results.json says of the recipe, a dict."""
        told = {
            "class": self.layer_name,
            "units": self.units,
            "arguments": {name: as_json(value) for name, value in self.arguments.items()},
            "optimizer": self._told(self.optimizer_name, self.learning_rate),
            "batch_size": self.batch_size,
            "epochs": self.epochs,
            "model": self.model_options,
            "source": "; follows ".join(part for part in (self.source, self.follows) if part),
        }
        if self.rate_cut is not None:
            told["rate_cut"] = self.rate_cut
        if self.recurrent_optimizer_name is not None:
            rate = self.recurrent_learning_rate
            told["recurrent_optimizer"] = self._told(self.recurrent_optimizer_name, rate)
        return json.loads(json.dumps(told))  # as it will be read: a tuple as a list

    def _told(self, name, rate):
        numbers = self.optimizer_arguments.get(name, {})
        return {
            "class": name,
            "learning_rate": rate,
            "global_clipnorm": self.clipnorm,
            **{name: as_json(value) for name, value in numbers.items()},
        }

    def __str__(self):
        named = {"units": self.units, **self.options}
        named = ", ".join(f"{name}={value!r}" for name, value in named.items())
        return f"({self.task!r}, {self.layer_name!r}, {named})"


def as_json(value):
    """Return an argument as results.json has it: an object as its class and config."""
    if hasattr(value, "get_config"):
        return {"class": type(value).__name__, **value.get_config()}
    return value


class LookAhead(keras.callbacks.Callback):
    """Let Nesterov's form continue in another `fit` from where the last one looked ahead."""

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.model.optimizer.resume_variable_values(self.model.trainable_variables)
