"""Momentum rules: how the input drive of a recurrent cell is accelerated.

A recurrent cell computes `u_t = W x_t + b` from its input at every step. Nguyen et al.
(2020) read `u_t` as the gradient that step `t` brings, and accelerate it as an optimiser
would. A rule is that optimiser: it turns the sequence `u` into the drive `g` which the cell
uses in place of `u`. It knows neither cell nor weights, only `u` and its own slots, the
numbers that it carries from step to step.

A rule says by its class which fast paths can run it:

- `LinearRule`: the drive is a linear combination of the inputs so far. The input itself can be
  filtered, and a fused kernel can do the rest.
- `ScaledRule`: a linear velocity over the root of a running second moment, as in Adam.
- `Rule`: anything else. It is stepped.
"""

import inspect
import warnings
from typing import ClassVar

import keras
from keras import ops

from keras_momentum_rnn.checks import checked, checked_choice
from keras_momentum_rnn.hyperparameters import (
    BETA,
    EPSILON,
    MOMENTUM,
    RELAXED,
    RESTART_PERIOD,
    STEP_SIZE,
)
from keras_momentum_rnn.second_moment import update_second_moment

register = keras.saving.register_keras_serializable(package="keras_momentum_rnn")

# The protocol's former names, and those of today.
FORMER_NAMES = {
    "slot_sizes": "slots",
    "factors": "update_factored",
    "count": "advance_counter",
}


class Rule:
    """What a rule says of itself. Subclass it to write your own.

    Implement `slots`, what it remembers, and `update`, one time step. Arguments of the
    constructor that are kept under their names are saved with the model. Where the drive is
    `v_t = mu_t v_{t-1} + s u_t`, subclass `LinearRule`, which is faster.

    `hyperparameters` maps the names of constructor arguments to their
    `keras_momentum_rnn.hyperparameters.Hyperparameter`, for those that a search may choose.

    Example:

    ```python
    @keras.saving.register_keras_serializable(package="my_project")
    class Averaging(Rule):
        '''g_t = decay g_{t-1} + (1 - decay) u_t.'''

        def __init__(self, decay=0.9):
            self.decay = decay

        def slots(self, width):
            return {"g": width}

        def update(self, u, slots):
            (g,) = slots
            g = self.decay * g + (1 - self.decay) * u
            return g, [g]

    layer = RuleLSTM(32, rule=Averaging(0.8))
    ```
    """

    hyperparameters: ClassVar[dict] = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for former, name in FORMER_NAMES.items():
            if former in vars(cls):
                setattr(cls, name, named_slots if name == "slots" else vars(cls)[former])
                warnings.warn(
                    f"{cls.__name__}.{former} is now called `{name}`; see the docstring of "
                    "keras_momentum_rnn.rules.Rule",
                    DeprecationWarning,
                    stacklevel=2,
                )

    def slots(self, width):
        """Return the slots of a drive of `width` numbers: a dict from names to widths."""
        raise NotImplementedError(f"{type(self).__name__} must implement `slots`")

    def update(self, u, slots):
        """Take one step.

        Args:
            u: tensor `(batch, width)`, what this step brings.
            slots: list of tensors `(batch, slot size)`, zero at the start of a sequence.

        Returns:
            The drive, `(batch, width)`, and the list of the new slots.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `update`")

    def update_factored(self, u, slots):
        """Take one step, as `update`, but return the drive as `(v, scale, slots)`, v scale.

        A cell that passes v through a matrix of its own scales the product, not v. A rule
        that scales nothing need not override this: its scale is 1.
        """
        drive, slots = self.update(u, slots)
        return drive, 1.0, slots

    def get_config(self):
        """Return the constructor's arguments as a dict."""
        names = inspect.signature(type(self)).parameters
        if missing := [name for name in names if not hasattr(self, name)]:
            raise NotImplementedError(
                f"{type(self).__name__} must keep its argument `{missing[0]}` as "
                f"`self.{missing[0]}`, or implement `get_config`"
            )
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def build(self, add_weight):
        """Create the rule's own weights, if it learns any, with the cell's `add_weight`."""

    @property
    def linear(self):
        """Whether it is a `LinearRule`."""
        return isinstance(self, LinearRule)

    @property
    def scaled(self):
        """Whether it is a `ScaledRule`."""
        return isinstance(self, ScaledRule)

    @property
    def learns(self):
        """Whether the rule may have weights: whether its class has a `build`."""
        return type(self).build is not Rule.build


def named_slots(self, width):
    """Give names to the slots of a rule that lists their widths, as rules once did."""
    return {f"slot {i}": size for i, size in enumerate(self.slot_sizes(width))}


def refuse_another_step(cls, base, instead, names=("update", "update_factored", "slots")):
    """Raise a `TypeError` if a class overrides the step that its fast paths rely on."""
    for name in names:
        if name in vars(cls):
            raise TypeError(
                f"{cls.__name__} must not override `{name}`: the fast paths of a "
                f"{base.__name__} would not see it. Override `{instead}`, or subclass `Rule`"
            )


class LinearRule(Rule):
    """A rule whose drive is linear in the inputs: `v_t = mu_t v_{t-1} + s u_t`, `g_t = v_t`.

    A subclass gives `coefficients`, and sets `counts` to True if mu_t depends on t. Its
    slots are v and, where it counts, t.

    Example:

    ```python
    class Fading(LinearRule):
        '''The momentum falls as 1 / (t + 2).'''

        counts = True

        def coefficients(self, t):
            return 1 / (t + 2), 1.0
    ```
    """

    counts = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        refuse_another_step(cls, LinearRule, "coefficients")

    def coefficients(self, t):
        """Return `(mu_t, s)`.

        Args:
            t: tensor of step numbers in any shape, 0 at the start of a sequence; None where
                the rule does not count.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `coefficients`")

    def advance_counter(self, t, steps=1):
        """Return the counter, `steps` steps after it was `t`."""
        return t + steps

    def slots(self, width):
        return {"v": width, "t": 1} if self.counts else {"v": width}

    def update(self, u, slots):
        v, *t = slots
        mu, step_size = self.coefficients(*t or [None])
        v = mu * v + step_size * u
        return v, [v, *map(self.advance_counter, t)]


class ScaledRule(Rule):
    """A rule which divides a velocity by the root of a running second moment.

    ```
    v_t = mu v_{t-1} + gain u_t
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = factor v_t / sqrt(m_t + epsilon)
    ```

    A subclass has the attributes `beta` and `epsilon` and gives `scaling`. Its slots are v
    and m, or m alone where `has_velocity` is False and mu 0.
    """

    has_velocity = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        refuse_another_step(cls, ScaledRule, "scaling")

    @property
    def scaling(self):
        """The numbers (mu, gain, factor)."""
        raise NotImplementedError(f"{type(self).__name__} must implement `scaling`")

    def slots(self, width):
        return {"v": width, "m": width} if self.has_velocity else {"m": width}

    def update(self, u, slots):
        v, scale, slots = self.update_factored(u, slots)
        return v * scale, slots

    def update_factored(self, u, slots):
        *v, m = slots
        mu, gain, factor = self.scaling
        m, scale = update_second_moment(u, m, self.beta, self.epsilon)
        if not v:
            return u, gain * factor * scale, [m]
        new = mu * v[0] + gain * u
        return new, scale if factor == 1 else factor * scale, [new, m]


def get(rule):
    """Return a `Rule` from a `Rule` or its serialised form, as a copy of its own.

    Weights that a rule creates belong to one cell, so no two cells share a rule.
    """
    if isinstance(rule, dict):
        rule = keras.saving.deserialize_keras_object(rule)
    if not isinstance(rule, Rule):
        name = rule if isinstance(rule, str) else getattr(rule, "__name__", None)
        hint = f", such as rules.{name}()" if name in NAMED else ""
        raise ValueError(
            f"`rule` must be a keras_momentum_rnn.rules.Rule{hint}. Received: rule={rule!r}"
        )
    return type(rule).from_config(rule.get_config())


@register
class Identity(Rule):
    """No momentum, `g_t = u_t`: the plain cell. It has no slots."""

    def slots(self, width):
        return {}

    def update(self, u, slots):
        return u, []


@register
class HeavyBall(LinearRule):
    """Heavy-ball momentum, `v_t = momentum v_{t-1} + step_size u_t`, `g_t = v_t`.

    With `momentum=0, step_size=1` the drive is `u_t` itself: the plain cell.

    Args:
        momentum: float, at least 0; a warning from 1 on, where the velocity grows.
            Defaults to 0.6.
        step_size: float above 0. Defaults to 0.6.

    Slots: the velocity v, as wide as the drive.

    Raises:
        ValueError: if an argument is out of its range.

    Reference: Nguyen et al. (2020), equation 9. The bias is part of u, as in the paper,
    whose W stands for [W, b].
    """

    hyperparameters: ClassVar = {"momentum": MOMENTUM, "step_size": STEP_SIZE}

    def __init__(self, momentum=0.6, step_size=0.6):
        self.momentum = MOMENTUM.checked("momentum", momentum)
        self.step_size = STEP_SIZE.checked("step_size", step_size)

    def coefficients(self, t):
        return self.momentum, self.step_size


@register
class NAG(LinearRule):
    """Nesterov's schedule, `v_t = mu_t v_{t-1} + step_size u_t`, `mu_t = t / (t + 3)`.

    Args:
        step_size: float above 0. Defaults to 0.9.

    Slots: the velocity v, as wide as the drive, and the step number t = 0, 1, ..., of
    width 1. The momentum tends to 1, so on a long sequence of one sign v grows like t.

    Raises:
        ValueError: if `step_size` is out of its range.

    Reference: Nguyen et al. (2020), section 2.4, whose (t - 1) / (t + 2) counts from 1.
    """

    hyperparameters: ClassVar = {"step_size": STEP_SIZE}
    counts = True

    def __init__(self, step_size=0.9):
        self.step_size = STEP_SIZE.checked("step_size", step_size)

    def coefficients(self, t):
        return t / (t + 3), self.step_size


@register
class ScheduledRestart(LinearRule):
    """Nesterov's schedule restarted, `mu_t = (t mod F) / ((t mod F) + 3)`, F the period.

    Args:
        restart_period: positive integer up to 2^24, the steps from one restart to the next.
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

    def __init__(self, restart_period=40, step_size=0.9):
        self.restart_period = RESTART_PERIOD.checked("restart_period", restart_period)
        self.step_size = STEP_SIZE.checked("step_size", step_size)

    def coefficients(self, t):
        t = ops.mod(t, self.restart_period)
        return t / (t + 3), self.step_size

    def advance_counter(self, t, steps=1):
        return ops.mod(t + steps, self.restart_period)


@register
class Adam(ScaledRule):
    """Adam, `v_t = momentum v_{t-1} + step_size u_t`, `m_t = beta m_{t-1} + (1 - beta) u_t^2`,
    `g_t = v_t / sqrt(m_t + epsilon)`.

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

    def __init__(self, momentum=0.6, step_size=0.6, beta=0.99, epsilon=1e-8, relaxed=True):
        self.relaxed = checked_choice("relaxed", relaxed, RELAXED.choices)
        if not relaxed:
            checked("momentum", momentum, at_least=0, below=1)
        self.momentum = MOMENTUM.checked("momentum", momentum)
        self.step_size = STEP_SIZE.checked("step_size", step_size)
        self.beta = BETA.checked("beta", beta)
        self.epsilon = EPSILON.checked("epsilon", epsilon)

    @property
    def scaling(self):
        if self.relaxed:
            return self.momentum, self.step_size, 1
        return self.momentum, 1 - self.momentum, self.step_size


@register
class RMSProp(ScaledRule):
    """RMSProp, `m_t = beta m_{t-1} + (1 - beta) u_t^2`,
    `g_t = step_size u_t / sqrt(m_t + epsilon)`.

    `Adam` at momentum 0, without its velocity.

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

    def __init__(self, step_size=0.6, beta=0.9, epsilon=1e-8):
        self.step_size = STEP_SIZE.checked("step_size", step_size)
        self.beta = BETA.checked("beta", beta)
        self.epsilon = EPSILON.checked("epsilon", epsilon)

    @property
    def scaling(self):
        return 0, self.step_size, 1


NAMED = {rule.__name__: rule for rule in (HeavyBall, NAG, ScheduledRestart, Adam, RMSProp)}
