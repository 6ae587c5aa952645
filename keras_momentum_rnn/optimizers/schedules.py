"""Schedules of momentum: each gives mu_t for the update t = 0, 1, ...."""

from typing import Any, Self

import keras
from keras import ops

from keras_momentum_rnn.annotations import Tensor
from keras_momentum_rnn.checks import checked, checked_count
from keras_momentum_rnn.rules import register

__all__ = ["SteppedMomentum", "NesterovMomentum", "WarmConstant", "LowMomentumFinish"]

Schedule = keras.optimizers.schedules.LearningRateSchedule


def is_schedule(momentum: Any) -> bool:
    return isinstance(momentum, Schedule)


def checked_momentum(name: str, momentum: float) -> float:
    """Return a momentum as a float, or raise a `ValueError` if it is no number in [0, 1)."""
    value = checked(name, momentum, at_least=0, below=1)
    if value >= 1 - 2**-25:
        raise ValueError(
            f"`{name}` must be below 1 when rounded to float32. Received: {name}={value}"
        )
    return value


def saved(value: Any) -> Any:
    """Return what a config holds of a schedule, or of a number or a variable."""
    if is_schedule(value):
        return keras.optimizers.schedules.serialize(value)
    return float(ops.convert_to_numpy(value))


def loaded(
    config: dict[str, Any], name: str, custom_objects: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a config with the schedule that its entry `name` tells of, if it tells of one."""
    if not isinstance(config.get(name), dict):
        return config
    schedule = keras.optimizers.schedules.deserialize(
        config[name], custom_objects=custom_objects
    )
    return {**config, name: schedule}


@register
class SteppedMomentum(Schedule):
    """Momentum that approaches 1 in steps, up to a largest one.

    ```
    mu_t = min(1 - 2^(-1 - log2(floor(t / period) + 1)), max_momentum)
    ```

    which is `1 - 1 / (2 (floor(t / period) + 1))`: 1/2, 3/4, 5/6, 7/8, ....

    Args:
        max_momentum: number in [0, 1). At 0.999 it is reached after 499 periods.
        period: positive integer, in updates. Defaults to 250.

    Raises:
        ValueError: if an argument lies outside its range.

    Example:

    >>> from keras_momentum_rnn.optimizers.schedules import SteppedMomentum
    >>> momentum = SteppedMomentum(0.8)
    >>> [round(float(momentum(t)), 3) for t in (0, 249, 250, 500)]
    [0.5, 0.5, 0.75, 0.8]

    Reference: Sutskever et al. (2013), equation 5, for deep autoencoders.
    """

    def __init__(self, max_momentum: float, period: int = 250) -> None:
        self.max_momentum = checked_momentum("max_momentum", max_momentum)
        self.period = checked_count("period", period)

    def __call__(self, step: Any) -> Tensor:
        steps = ops.cast(ops.floor_divide(step, self.period), "float32")
        return ops.minimum(1 - 0.5 / (steps + 1), self.max_momentum)

    def get_config(self) -> dict[str, Any]:
        return {"max_momentum": self.max_momentum, "period": self.period}


@register
class NesterovMomentum(Schedule):
    """Nesterov's momentum for functions that are not strongly convex.

    ```
    mu_t = 1 - 3 / (t + 5)
    ```

    Example:

    >>> from keras_momentum_rnn.optimizers.schedules import NesterovMomentum
    >>> [round(float(NesterovMomentum()(t)), 3) for t in (0, 1, 1000)]
    [0.4, 0.5, 0.997]

    Reference: Nesterov (1983), as rewritten by Sutskever et al. (2013), section 3 and
    appendix A.1.
    """

    def __call__(self, step: Any) -> Tensor:
        return 1 - 3 / (ops.cast(step, "float32") + 5)

    def get_config(self) -> dict[str, Any]:
        return {}


@register
class WarmConstant(Schedule):
    """A constant momentum after a warm-up with another.

    ```
    mu_t = warm_momentum where t < warm_steps, else momentum
    ```

    Args:
        momentum: number in [0, 1).
        warm_momentum: number in [0, 1). Defaults to 0.9.
        warm_steps: positive integer, in updates. Defaults to 1000.

    Raises:
        ValueError: if an argument lies outside its range.

    Example:

    >>> from keras_momentum_rnn.optimizers.schedules import WarmConstant
    >>> momentum = WarmConstant(0.995)
    >>> [round(float(momentum(t)), 3) for t in (0, 999, 1000)]
    [0.9, 0.9, 0.995]

    Reference: Sutskever et al. (2013), section 4.2, for recurrent networks.
    """

    def __init__(
        self, momentum: float, warm_momentum: float = 0.9, warm_steps: int = 1000
    ) -> None:
        self.momentum = checked_momentum("momentum", momentum)
        self.warm_momentum = checked_momentum("warm_momentum", warm_momentum)
        self.warm_steps = checked_count("warm_steps", warm_steps)

    def __call__(self, step: Any) -> Tensor:
        warm = ops.cast(ops.less(step, self.warm_steps), "float32")
        return warm * self.warm_momentum + (1 - warm) * self.momentum

    def get_config(self) -> dict[str, Any]:
        return {
            "momentum": self.momentum,
            "warm_momentum": self.warm_momentum,
            "warm_steps": self.warm_steps,
        }


@register
class LowMomentumFinish(Schedule):
    """Another momentum, kept low over the last updates, for fine convergence.

    ```
    mu_t = min(momentum_t, finish_momentum) where t >= total_steps - finish_steps
    ```

    and momentum_t before.

    Args:
        momentum: number in [0, 1), or a schedule.
        total_steps: positive integer, how many updates there will be.
        finish_momentum: number in [0, 1). Defaults to 0.9.
        finish_steps: positive integer, in updates. Defaults to 1000.

    Raises:
        ValueError: if an argument lies outside its range.

    Example:

    >>> from keras_momentum_rnn.optimizers import schedules
    >>> momentum = schedules.LowMomentumFinish(
    ...     schedules.SteppedMomentum(0.999), total_steps=750_000
    ... )
    >>> [round(float(momentum(t)), 3) for t in (0, 748_999, 749_000)]
    [0.5, 0.999, 0.9]

    Reference: Sutskever et al. (2013), section 3 and Table 2.
    """

    def __init__(
        self,
        momentum: float | Schedule,
        total_steps: int,
        finish_momentum: float = 0.9,
        finish_steps: int = 1000,
    ) -> None:
        fixed = not is_schedule(momentum)
        self.momentum = checked_momentum("momentum", momentum) if fixed else momentum
        self.total_steps = checked_count("total_steps", total_steps)
        self.finish_momentum = checked_momentum("finish_momentum", finish_momentum)
        self.finish_steps = checked_count("finish_steps", finish_steps)

    def __call__(self, step: Any) -> Tensor:
        momentum = self.momentum(step) if is_schedule(self.momentum) else self.momentum
        low = ops.minimum(momentum, self.finish_momentum)
        finishing = ops.greater_equal(step, self.total_steps - self.finish_steps)
        return ops.where(finishing, low, momentum)

    def get_config(self) -> dict[str, Any]:
        return {
            "momentum": saved(self.momentum),
            "total_steps": self.total_steps,
            "finish_momentum": self.finish_momentum,
            "finish_steps": self.finish_steps,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**loaded(config, "momentum"))
