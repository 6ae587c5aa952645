"""Momentum rules: how the input drive of a recurrent cell is accelerated.

A recurrent cell computes `u_t = W x_t + b` from its input at every step. Nguyen et al.
(2020) read `u_t` as the gradient that step `t` brings, and accelerate it as an optimiser
would. A rule is that optimiser: it turns the sequence `u` into the drive `g` which the cell
uses in place of `u`. It knows neither cell nor weights, only `u` and its own slots.
"""

import warnings

import keras
from keras import ops

from keras_momentum_rnn import second_moment
from keras_momentum_rnn.checks import checked, checked_choice, checked_count

register = keras.saving.register_keras_serializable(package="keras_momentum_rnn")


class Rule:
    """What a rule must say of itself; subclass it to write your own.

    A rule whose drive is a linear combination of the inputs so far, with coefficients that
    depend on the step alone, also overrides `coefficients`: then the drive of a whole
    sequence can be computed at once, and the recurrence be left to a fused kernel.

    Example:

    ```python
    @keras.saving.register_keras_serializable(package="my_project")
    class Averaging(Rule):
        '''g_t = decay g_{t-1} + (1 - decay) u_t.'''

        def __init__(self, decay=0.9):
            self.decay = decay

        def slot_sizes(self, width):
            return [width]

        def update(self, u, slots):
            (g,) = slots
            g = self.decay * g + (1 - self.decay) * u
            return g, [g]

        def get_config(self):
            return {"decay": self.decay}

    layer = RuleLSTM(32, rule=Averaging(0.8))
    ```
    """

    def slot_sizes(self, width):
        """Return the widths of the slots, a list, for a drive of `width` numbers."""
        raise NotImplementedError

    def update(self, u, slots):
        """Take one step.

        Args:
            u: tensor `(batch, width)`, what this step brings.
            slots: list of tensors `(batch, slot size)`, zero at the start of a sequence.

        Returns:
            The drive, `(batch, width)`, and the list of the new slots.
        """
        raise NotImplementedError

    def get_config(self):
        """Return the constructor's arguments as a dict."""
        raise NotImplementedError

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def build(self, add_weight):
        """Create the rule's own weights, if it learns any, with the cell's `add_weight`."""

    def factors(self, u, slots):
        """Take one step, as `update`, but return the drive as `(v, scale, slots)`, v scale.

        A cell that passes v through a matrix of its own scales the product, not v. A rule
        that scales nothing need not override this: its scale is 1.
        """
        drive, slots = self.update(u, slots)
        return drive, 1.0, slots

    @property
    def linear(self):
        """Whether the rule gives `coefficients`, and no class below changes its step."""
        giver = self._owner("coefficients")
        return giver is not Rule and self._steps_as(giver, "count", "slot_sizes")

    @property
    def scaled(self):
        """Whether the rule takes the step of Adam and RMSProp, with numbers of its own."""
        return isinstance(self, _Scaled) and self._steps_as(_Scaled)

    @property
    def learns(self):
        """Whether the rule may have weights: whether its class has a `build`."""
        return self._owner("build") is not Rule

    def _steps_as(self, cls, *others):
        """Return whether no class below `cls` overrides what makes the step."""
        return all(issubclass(cls, self._owner(n)) for n in ("update", "factors", *others))

    def _owner(self, name):
        """Return the class that says what `name` is."""
        return next(cls for cls in type(self).__mro__ if name in vars(cls))

    def coefficients(self, t):
        """Return `(mu_t, s)` of a linear rule, `v_t = mu_t v_{t-1} + s u_t` and `g_t = v_t`.

        `t` holds step numbers, 0 at the start of a sequence, in any shape. The slots of
        such a rule are `[v]`, or `[v, t]` where it counts.
        """
        raise NotImplementedError

    def count(self, t, steps=1):
        """Return the counter of a linear rule, `steps` steps after it was `t`."""
        return t + steps


def get(rule):
    """Return a `Rule` from a `Rule` or its serialised form, as a copy of its own.

    Weights that a rule creates belong to one cell, so no two cells share a rule.
    """
    if isinstance(rule, dict):
        rule = keras.saving.deserialize_keras_object(rule)
    if not isinstance(rule, Rule):
        raise ValueError(
            f"`rule` must be a keras_momentum_rnn.rules.Rule. Received: rule={rule!r}"
        )
    return type(rule).from_config(rule.get_config())


def checked_momentum(momentum):
    momentum = checked("momentum", momentum, at_least=0)
    if momentum >= 1:
        warnings.warn(
            "With `momentum` of 1 or more the velocity grows without bound along the "
            f"sequence. Received: momentum={momentum}",
            stacklevel=3,
        )
    return momentum


@register
class Identity(Rule):
    """No momentum, `g_t = u_t`: the plain cell. It has no slots."""

    def slot_sizes(self, width):
        return []

    def update(self, u, slots):
        return u, []

    def get_config(self):
        return {}


class _Momentum(Rule):
    """v_t = mu_t v_{t-1} + s u_t; g_t = v_t. Subclasses say what mu_t is."""

    def update(self, u, slots):
        v, *t = slots
        mu, step_size = self.coefficients(*t or [None])
        v = mu * v + step_size * u
        return v, [v, *map(self.count, t)]


@register
class HeavyBall(_Momentum):
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

    def __init__(self, momentum=0.6, step_size=0.6):
        self.momentum = checked_momentum(momentum)
        self.step_size = checked("step_size", step_size, above=0)

    def slot_sizes(self, width):
        return [width]

    def coefficients(self, t):
        return self.momentum, self.step_size

    def get_config(self):
        return {"momentum": self.momentum, "step_size": self.step_size}


@register
class NAG(_Momentum):
    """Nesterov's schedule, `v_t = mu_t v_{t-1} + step_size u_t`, `mu_t = t / (t + 3)`.

    Args:
        step_size: float above 0. Defaults to 0.9.

    Slots: the velocity v, as wide as the drive, and the step number t = 0, 1, ..., of
    width 1. The momentum tends to 1, so on a long sequence of one sign v grows like t.

    Raises:
        ValueError: if `step_size` is out of its range.

    Reference: Nguyen et al. (2020), section 2.4, whose (t - 1) / (t + 2) counts from 1.
    """

    def __init__(self, step_size=0.9):
        self.step_size = checked("step_size", step_size, above=0)

    def slot_sizes(self, width):
        return [width, 1]

    def coefficients(self, t):
        return t / (t + 3), self.step_size

    def get_config(self):
        return {"step_size": self.step_size}


@register
class ScheduledRestart(_Momentum):
    """Nesterov's schedule restarted, `mu_t = (t mod F) / ((t mod F) + 3)`, F the period.

    Args:
        restart_period: positive integer, the steps from one restart to the next.
            With 1 the momentum is always 0. Defaults to 40.
        step_size: float above 0. Defaults to 0.9.

    Slots: the velocity v, as wide as the drive, and the step number modulo the period,
    of width 1.

    Raises:
        ValueError: if an argument is out of its range.

    Reference: Nguyen et al. (2020), section 2.4. The code released with the paper restarts
    another quantity; see `SRLSTM`.
    """

    def __init__(self, restart_period=40, step_size=0.9):
        self.restart_period = checked_count("restart_period", restart_period)
        self.step_size = checked("step_size", step_size, above=0)

    def slot_sizes(self, width):
        return [width, 1]

    def coefficients(self, t):
        t = ops.mod(t, self.restart_period)
        return t / (t + 3), self.step_size

    def count(self, t, steps=1):
        return ops.mod(t + steps, self.restart_period)

    def get_config(self):
        return {"restart_period": self.restart_period, "step_size": self.step_size}


class _Scaled(Rule):
    """v_t = mu v_{t-1} + gain u_t; m_t = beta m_{t-1} + (1 - beta) u_t^2;
    g_t = factor v_t / sqrt(m_t + epsilon). Subclasses say what mu, gain and factor are.
    """

    @property
    def velocity(self):
        """The numbers (mu, gain, factor). A rule whose mu is always 0 keeps no v."""
        raise NotImplementedError

    def update(self, u, slots):
        v, scale, slots = self.factors(u, slots)
        return v * scale, slots

    def factors(self, u, slots):
        *v, m = slots
        mu, gain, factor = self.velocity
        m, scale = second_moment.updated(u, m, self.beta, self.epsilon)
        if not v:
            return u, gain * factor * scale, [m]
        new = mu * v[0] + gain * u
        return new, scale if factor == 1 else factor * scale, [new, m]


@register
class Adam(_Scaled):
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

    def __init__(self, momentum=0.6, step_size=0.6, beta=0.99, epsilon=1e-8, relaxed=True):
        self.relaxed = checked_choice("relaxed", relaxed, (True, False))
        if self.relaxed:
            self.momentum = checked_momentum(momentum)
        else:
            self.momentum = checked("momentum", momentum, at_least=0, below=1)
        self.step_size = checked("step_size", step_size, above=0)
        self.beta = checked("beta", beta, at_least=0, below=1)
        self.epsilon = checked("epsilon", epsilon, above=0)

    def slot_sizes(self, width):
        return [width, width]

    @property
    def velocity(self):
        if self.relaxed:
            return self.momentum, self.step_size, 1
        return self.momentum, 1 - self.momentum, self.step_size

    def get_config(self):
        return {
            "momentum": self.momentum,
            "step_size": self.step_size,
            "beta": self.beta,
            "epsilon": self.epsilon,
            "relaxed": self.relaxed,
        }


@register
class RMSProp(_Scaled):
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

    def __init__(self, step_size=0.6, beta=0.9, epsilon=1e-8):
        self.step_size = checked("step_size", step_size, above=0)
        self.beta = checked("beta", beta, at_least=0, below=1)
        self.epsilon = checked("epsilon", epsilon, above=0)

    def slot_sizes(self, width):
        return [width]

    @property
    def velocity(self):
        return 0, self.step_size, 1

    def get_config(self):
        return {"step_size": self.step_size, "beta": self.beta, "epsilon": self.epsilon}
