"""The rules of the papers."""

from numbers import Real
from typing import Any, ClassVar

import keras
from keras import ops

from keras_momentum_rnn.annotations import Tensor
from keras_momentum_rnn.checks import checked, checked_choice
from keras_momentum_rnn.hyperparameters import (
    BETA,
    EPSILON,
    MOMENTUM,
    RELAXED,
    RESTART_PERIOD,
    STEP_SIZE,
)
from keras_momentum_rnn.rules.protocol import LinearRule, Rule, ScaledRule, register


@register
class Identity(Rule):
    """No momentum, `g_t = u_t`: the plain cell. It has no slots."""

    def slots(self, width: int) -> dict[str, int]:
        return {}

    def update(self, u: Tensor, slots: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        return u, []


@register
class HeavyBall(LinearRule):
    """Heavy-ball momentum: the drive is a velocity.

    ```
    v_t = momentum v_{t-1} + step_size u_t
    g_t = v_t
    ```

    With `momentum=0, step_size=1` the drive is u_t itself: the plain cell.

    Args:
        momentum: float, at least 0. From 1 on the velocity grows without bound, and a
            warning says so. Defaults to 0.6.
        step_size: float above 0. Defaults to 0.6.

    Slots: the velocity v, as wide as the drive.

    Raises:
        ValueError: if an argument is out of its range.

    Reference: Nguyen et al. (2020), equation 9. The bias is part of u, as in the paper,
    whose W stands for [W, b].
    """

    hyperparameters: ClassVar = {"momentum": MOMENTUM, "step_size": STEP_SIZE}

    def __init__(self, momentum: float = 0.6, step_size: float = 0.6) -> None:
        self.momentum: float = MOMENTUM.checked("momentum", momentum)
        self.step_size: float = STEP_SIZE.checked("step_size", step_size)

    def coefficients(self, t: Any) -> tuple[Any, Any]:
        return self.momentum, self.step_size


@register
class NAG(LinearRule):
    """Nesterov's schedule of the momentum.

    ```
    mu_t = t / (t + 3),  t = 0, 1, ...
    v_t = mu_t v_{t-1} + step_size u_t
    g_t = v_t
    ```

    A masked step does not count. The momentum tends to 1, so on a long sequence of one sign v
    grows like t.

    Args:
        step_size: float above 0. Defaults to 0.9.

    Slots: the velocity v, as wide as the drive, and the step number t, of width 1.

    Raises:
        ValueError: if `step_size` is out of its range.

    Reference: Nguyen et al. (2020), section 2.4, whose (t - 1) / (t + 2) counts from 1.
    """

    hyperparameters: ClassVar = {"step_size": STEP_SIZE}
    counts = True

    def __init__(self, step_size: float = 0.9) -> None:
        self.step_size: float = STEP_SIZE.checked("step_size", step_size)

    def coefficients(self, t: Any) -> tuple[Any, Any]:
        return t / (t + 3), self.step_size


@register
class ScheduledRestart(LinearRule):
    """Nesterov's schedule restarted, F being the restart period.

    ```
    mu_t = (t mod F) / ((t mod F) + 3),  t = 0, 1, ...
    v_t = mu_t v_{t-1} + step_size u_t
    g_t = v_t
    ```

    A masked step does not count.

    Args:
        restart_period: positive integer up to 2^23, the steps from one restart to the next.
            With 1 the momentum is always 0. Defaults to 40.
        step_size: float above 0. Defaults to 0.9.

    Slots: the velocity v, as wide as the drive, and the step number modulo the period,
    of width 1.

    Raises:
        ValueError: if an argument is out of its range.

    Reference: Nguyen et al. (2020), section 2.4. The code released with the paper restarts
    another quantity; see `SRLSTM`.
    """

    hyperparameters: ClassVar = {"restart_period": RESTART_PERIOD, "step_size": STEP_SIZE}
    counts = True

    def __init__(self, restart_period: int = 40, step_size: float = 0.9) -> None:
        self.restart_period: int = RESTART_PERIOD.checked("restart_period", restart_period)
        self.step_size: float = STEP_SIZE.checked("step_size", step_size)

    def coefficients(self, t: Any) -> tuple[Any, Any]:
        t = self._since_restart(t)
        return t / (t + 3), self.step_size

    def advance_counter(self, t: Any, steps: int = 1) -> Any:
        return self._since_restart(t + steps)

    def _since_restart(self, t: Any) -> Any:
        if keras.config.backend() == "jax":
            # The remainder of an open batch cannot be exported to ONNX. Half a step more keeps
            # the quotient away from whole numbers, where rounding would decide.
            return t - self.restart_period * ops.floor((t + 0.5) / self.restart_period)
        # `keras.ops.mod` would make a tensor of the period, which `torch.export` cannot save.
        return t % self.restart_period


@register
class Adam(ScaledRule):
    """Adam: a velocity over the root of a running second moment.

    ```
    v_t = momentum v_{t-1} + step_size u_t
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = v_t / sqrt(m_t + epsilon)
    ```

    With `relaxed=False`, `v_t = momentum v_{t-1} + (1 - momentum) u_t` and
    `g_t = step_size v_t / sqrt(m_t + epsilon)`.

    Args:
        momentum: float, at least 0; a warning from 1 on. Defaults to 0.6. Below 1 where
            `relaxed=False`.
        step_size: float above 0. Defaults to 0.6.
        beta: float in [0, 1), the decay of the second moment. Defaults to 0.99.
        epsilon: float above 0, added inside the root. Defaults to 1e-8.
        relaxed: bool, the paper's equation 15 (True) or 14 (False), which the paper
            relaxed "for better performance". Defaults to `True`.

    Slots: the velocity v and the second moment m, each as wide as the drive.

    Raises:
        ValueError: if an argument is out of its range.

    Reference: Nguyen et al. (2020), equations 14 and 15, without Adam's bias correction, as
    there, and with W x in place of U^-1 W x. The paper's epsilon is 1e-8, that of its
    released code 1e-16.
    """

    hyperparameters: ClassVar = {
        "momentum": MOMENTUM,
        "step_size": STEP_SIZE,
        "beta": BETA,
        "epsilon": EPSILON,
        "relaxed": RELAXED,
    }

    def __init__(
        self,
        momentum: float = 0.6,
        step_size: float = 0.6,
        beta: float = 0.99,
        epsilon: float = 1e-8,
        relaxed: bool = True,
    ) -> None:
        self.relaxed: bool = checked_choice("relaxed", relaxed, RELAXED.choices)
        if not relaxed:
            checked("momentum", momentum, at_least=0, below=1)
        self.momentum: float = MOMENTUM.checked("momentum", momentum)
        self.step_size: float = STEP_SIZE.checked("step_size", step_size)
        self.beta: float = BETA.checked("beta", beta)
        self.epsilon: float = EPSILON.checked("epsilon", epsilon)

    @property
    def scaling(self) -> tuple[float, float, float]:
        if self.relaxed:
            return self.momentum, self.step_size, 1
        return self.momentum, 1 - self.momentum, self.step_size


@register
class RMSProp(ScaledRule):
    """RMSProp: `Adam` at momentum 0, without its velocity.

    ```
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = step_size u_t / sqrt(m_t + epsilon)
    ```

    Args:
        step_size: float above 0. Defaults to 0.6.
        beta: float in [0, 1), the decay of the second moment. Defaults to 0.9.
        epsilon: float above 0, added inside the root. Defaults to 1e-8.

    Slots: the second moment m, as wide as the drive.

    Raises:
        ValueError: if an argument is out of its range.

    Reference: Nguyen et al. (2020), after equation 15.
    """

    hyperparameters: ClassVar = {"step_size": STEP_SIZE, "beta": BETA, "epsilon": EPSILON}
    has_velocity = False

    def __init__(
        self, step_size: float = 0.6, beta: float = 0.9, epsilon: float = 1e-8
    ) -> None:
        self.step_size: float = STEP_SIZE.checked("step_size", step_size)
        self.beta: float = BETA.checked("beta", beta)
        self.epsilon: float = EPSILON.checked("epsilon", epsilon)

    @property
    def scaling(self) -> tuple[float, float, float]:
        return 0, self.step_size, 1


NAMED = {rule.__name__: rule for rule in (HeavyBall, NAG, ScheduledRestart, Adam, RMSProp)}


def get(rule: Rule | dict[str, Any]) -> Rule:
    """Return a `Rule` from a `Rule` or its serialised form, as a copy of its own.

    Weights that a rule creates belong to one cell, so no two cells share a rule.

    Args:
        rule: a `Rule`, or a dict as `keras.saving.serialize_keras_object` makes of one.

    Returns:
        A new `Rule` with the same arguments.

    Raises:
        ValueError: if it is neither, or if the copy has other numbers. The message has what
            was given.

    Example:

    >>> from keras_momentum_rnn import rules
    >>> rules.get(rules.HeavyBall(0.9)).momentum
    0.9
    """
    if isinstance(rule, dict):
        rule = keras.saving.deserialize_keras_object(rule)
    if not isinstance(rule, Rule):
        # The name or the class of a rule, or an optimizer of Keras.
        name = rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)
        meant = [rule_name for rule_name in NAMED if rule_name.lower() == name.lower()]
        hint = f", such as rules.{meant[0] if meant else 'Adam'}()"
        raise ValueError(
            f"`rule` must be a keras_momentum_rnn.rules.Rule{hint}. Received: rule={rule!r}"
        )
    config = rule.get_config()
    copy = type(rule).from_config(config)
    for name, value in copy.get_config().items():
        kept = config[name]
        if isinstance(value, Real) and isinstance(kept, Real) and value != kept == kept:
            raise ValueError(
                f"`{name}` of {type(rule).__name__} must be kept as it was given, or each copy "
                f"changes it again; or implement `get_config`. Received: {name}={kept}, in a "
                f"copy {value}"
            )
    return copy
