"""Names for the types of arguments that have none in Keras."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import keras

# A tensor of the backend, a symbolic one of Keras, or an array: no type covers the three.
Tensor: TypeAlias = Any
# One step of a cell: a function of what drives it and of its states.
Step: TypeAlias = Callable[..., Any]
# What Keras looks up: a function, an object or its class, its name, or its config.
Identifier: TypeAlias = Callable[..., Any] | str | dict[str, Any] | None
# Recurrent layers, by class or by name.
Layers: TypeAlias = Sequence[str | type[keras.layers.RNN]]
LearningRate: TypeAlias = (
    float | keras.optimizers.schedules.LearningRateSchedule | Callable[[], float]
)
