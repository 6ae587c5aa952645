"""How each layer of a comparison is trained."""

from collections.abc import Callable
from dataclasses import dataclass, field

import keras


@dataclass(frozen=True)
class Setup:
    """How one layer is trained.

    Attributes:
        layer_name: name of its class.
        units: int, or a tuple for a stack.
        arguments: dict of its other arguments.
        optimizer: dict, what a results file says of the optimizer.
        batch_size: int.
        epochs: int.
        new_layers: function that returns new layers, a list.
        new_optimizer: function that returns a new optimizer.
        callbacks: function that returns the callbacks of `fit`, a list. Those that remember
            more than the epoch have `state` and `set_state`, as `tasks.AveragedSGD`.
        model_options: dict, options of `Task.model`.
        source: str, where the numbers are from.
    """

    layer_name: str
    units: int | tuple
    arguments: dict
    optimizer: dict
    batch_size: int
    epochs: int
    new_layers: Callable
    new_optimizer: Callable
    callbacks: Callable = list
    model_options: dict = field(default_factory=dict)
    source: str = ""

    def described(self):
        """Return what a results file says of it, a dict."""
        units = list(self.units) if isinstance(self.units, tuple) else self.units
        return {
            "class": self.layer_name,
            "units": units,
            "arguments": {name: shown(value) for name, value in self.arguments.items()},
            "optimizer": {name: shown(value) for name, value in self.optimizer.items()},
            "batch_size": self.batch_size,
            "epochs": self.epochs,
            "model": self.model_options,
            "source": self.source,
        }


@dataclass(frozen=True)
class Optimizer:
    """An optimizer that is the same for several layers.

    Attributes:
        name: of a class of `keras.optimizers`.
        learning_rate: float.
        clipnorm: float, at which the norm of all gradients together is clipped, or None.
        arguments: dict of its other arguments.
    """

    name: str
    learning_rate: float
    clipnorm: float | None = None
    arguments: dict = field(default_factory=dict)

    def new(self):
        return getattr(keras.optimizers, self.name)(
            self.learning_rate, global_clipnorm=self.clipnorm, **self.arguments
        )

    def described(self):
        return {
            "class": self.name,
            "learning_rate": self.learning_rate,
            "global_clipnorm": self.clipnorm,
            **self.arguments,
        }


def shown(value):
    """Return an argument as it stands in a results file: of an object its class and config."""
    if hasattr(value, "get_config"):
        return {"class": type(value).__name__, **value.get_config()}
    return value
