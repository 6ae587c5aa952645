"""A rule whose momentum and step size are weights."""

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.checks import checked_choice, checked_seed
from keras_momentum_rnn.hyperparameters import LEARNED_MOMENTUM, STEP_SIZE
from keras_momentum_rnn.rules.protocol import LinearRule, register

# What a start of 0 becomes, which a sigmoid never is: half the rounding of a float32.
SMALLEST_MOMENTUM = 2.0**-24


@register
class LearnedMomentum(LinearRule):
    """Heavy-ball momentum whose momentum and step size are learned.

    ```
    mu = sigmoid(a)                          a: the weight `momentum_logit`
    s = softplus(c)                          c: the weight `step_size_raw`
    s = softplus(c) (1 - mu)                 with `tied`
    v_t = mu v_{t-1} + s u_t,  g_t = v_t
    ```

    The layer starts as one with `HeavyBall(momentum, step_size)`. From there the optimizer
    moves a and c as any other weight. mu stays between 0 and 1, s above 0.

    With `tied`, a constant input drives v to softplus(c) u for every mu: a slower unit is
    not a louder one.

    Args:
        momentum: float in [0, 1), the first mu. A sigmoid is never 0, so 0 becomes 2^-24,
            too little to change a drive in float32. From there it takes thousands of
            updates to reach a noticeable momentum: start at 0.05 to learn one. Defaults
            to 0.6.
        step_size: float above 0, the first s. Defaults to 0.6.
        per: `"scalar"`, one mu and one s; `"gate"`, one for each gate of the cell; or
            `"unit"`, one for each number of the drive, of every gate and unit. Defaults to
            `"scalar"`.
        tied: bool, whether s is softplus(c) (1 - mu). Defaults to `False`.
        spread: tuple (low, high) in [0, 1): each mu starts between them, uniform in the
            logarithm of its time scale 1 / (1 - mu). s starts at `step_size`; with `tied`,
            softplus(c) starts at step_size / (1 - momentum). Defaults to `None`: each mu
            starts at `momentum`.
        seed: int, for the random start by `spread`, or None. Defaults to `None`.

    Slots: the velocity v, as wide as the drive.

    Weights: `momentum_logit` and `step_size_raw`, of shape `()`, `(gates,)` or
    `(gates * units,)`. To learn only one of them, set `trainable = False` on the other,
    an attribute of `layer.cell.rule`, before compiling, and again after loading, since Keras
    saves no such flag. Weight decay would draw mu to 0.5
    and softplus(c) to 0.69. Keep it off before training:
    `optimizer.exclude_from_weight_decay(var_names=LearnedMomentum.weight_names)`.

    Raises:
        ValueError: if an argument is out of its range.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import RuleLSTM, rules
    >>> rule = rules.LearnedMomentum(per="unit", tied=True, spread=(0.05, 0.98), seed=0)
    >>> layer = RuleLSTM(8, rule=rule)
    >>> layer.build((None, None, 3))
    >>> tuple(layer.cell.rule.momentum_logit.shape)
    (32,)

    Reference: Nguyen et al. (2020), equation 9. They fix the numbers and leave an adaptive
    momentum open.
    """

    weight_names = ("momentum_logit", "step_size_raw")

    def __init__(
        self,
        momentum: float = 0.6,
        step_size: float = 0.6,
        per: str = "scalar",
        tied: bool = False,
        spread: tuple[float, float] | None = None,
        seed: int | None = None,
    ) -> None:
        self.momentum = LEARNED_MOMENTUM.checked("momentum", momentum)
        self.step_size = STEP_SIZE.checked("step_size", step_size)
        self.per = checked_choice("per", per, ("scalar", "gate", "unit"))
        self.tied = checked_choice("tied", tied, (True, False))
        self.spread = checked_spread(spread)
        self.seed = checked_seed(seed)

    @property
    def shared(self) -> bool:
        return self.per == "scalar"

    def build_for(
        self, add_weight: Callable[..., Any], width: int, gates: int, dtype: str
    ) -> None:
        self.width = width
        shape = {"scalar": (), "gate": (gates,), "unit": (width,)}[self.per]
        first = self.step_size
        if self.tied:
            first /= 1 - max(self.momentum, SMALLEST_MOMENTUM)
        starts = self._first_logit, filled(inverse_softplus(first))
        self.momentum_logit, self.step_size_raw = (
            add_weight(shape=shape, initializer=start, dtype=dtype, name=name)
            for start, name in zip(starts, self.weight_names)
        )

    def _first_logit(self, shape, dtype=None):
        """The logit of mu is the inverse softplus of the logarithm of the time scale."""
        if self.spread is None:
            return filled(inverse_softplus(log_time_scale(self.momentum)))(shape, dtype)
        low, high = map(log_time_scale, self.spread)
        drawn = keras.initializers.RandomUniform(low, high, self.seed)(shape, dtype)
        return ops.log(ops.expm1(drawn))

    def coefficients(self, t: Any) -> tuple[Any, Any]:
        mu, s, _ = self.learned_numbers()
        return self._of_elements(mu), self._of_elements(s)

    def learned_numbers(self) -> tuple[Any, Any, Any]:
        """Return mu, s and 1 - mu, of the shape of the weights."""
        logit = ops.convert_to_tensor(self.momentum_logit)
        # The difference of 1 and a mu near 1 would have few digits.
        mu, rest = ops.sigmoid(logit), ops.sigmoid(-logit)
        s = ops.softplus(ops.convert_to_tensor(self.step_size_raw))
        return mu, s * rest if self.tied else s, rest

    def _of_elements(self, numbers):
        """Return the numbers of the gates, repeated for their units; others as they are."""
        if self.per != "gate":
            return numbers
        (gates,) = numbers.shape
        repeated = ops.broadcast_to(ops.expand_dims(numbers, 1), (gates, self.width // gates))
        return ops.reshape(repeated, (self.width,))


def checked_spread(spread):
    """Return `spread` as a tuple of floats, or None, or raise a `ValueError`."""
    if spread is None:
        return None
    if isinstance(spread, (tuple, list)) and len(spread) == 2:
        low, high = (LEARNED_MOMENTUM.checked("spread", end) for end in spread)
        if low < high:
            return low, high
    raise ValueError(
        "`spread` must be an interval (low, high) in [0, 1) with low < high, or None. "
        f"Received: spread={spread!r}"
    )


def filled(value):
    """Return an initializer; Keras's `Constant` rounds to float32 on TensorFlow."""
    return lambda shape, dtype=None: ops.convert_to_tensor(np.full(shape, value), dtype)


def log_time_scale(momentum):
    """Return log(1 / (1 - mu))."""
    return -math.log1p(-max(momentum, SMALLEST_MOMENTUM))


def inverse_softplus(y):
    """Return x with log(1 + exp(x)) = y."""
    return y + math.log(-math.expm1(-y))
