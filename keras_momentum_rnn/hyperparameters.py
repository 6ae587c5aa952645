"""What the hyperparameters of rules and layers may be, and what a search tries."""

import warnings
from dataclasses import dataclass

from keras_momentum_rnn.checks import checked, checked_choice, checked_count

# Of the numbers other than 0, a float32 holds those between these at full precision.
FLOAT32_SMALLEST, FLOAT32_LARGEST = 2.0**-126, 2.0**128 - 2.0**104
# A counter in float32 is exact up to twice this: a call may add as many steps.
LARGEST_COUNT = 2**23


@dataclass(frozen=True)
class Hyperparameter:
    """The range of a hyperparameter, and the part of it that a search tries.

    Args:
        above, at_least, below: floats, the bounds of a float, or None.
        integer: bool, whether it is a positive integer in place of a float.
        choices: tuple of the allowed values, where there are only a few. Defaults to `()`.
        optional: bool, whether `None` is a value, too. Defaults to `False`.
        diverges_from: float, from which on a rule warns and a search refuses, or None.
        search: what a search tries if it is told nothing: an interval (low, high), a list of
            choices, or None for the layer's default.
        scale: on which a search divides an interval: `"linear"`, `"log"`, `"logit"`, or
            None where an interval has no meaning.
    """

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    integer: bool = False
    choices: tuple = ()
    optional: bool = False
    diverges_from: float | None = None
    search: tuple | list | None = None
    scale: str | None = "linear"

    def checked(self, name, value, searched=False):
        """Return a valid value, or raise a `ValueError` that names it and its range.

        Args:
            name: the argument, for the message.
            value: what was passed.
            searched: bool, whether a search will try it: then values that diverge are
                refused in place of a warning.
        """
        if value is None and self.optional:
            return None
        if self.choices:
            return checked_choice(name, value, self.choices)
        if self.integer:
            return checked_count(name, value, at_most=LARGEST_COUNT)
        below = self.diverges_from if searched and self.diverges_from else self.below
        value = checked(name, value, self.above, self.at_least, below)
        if value != 0 and not FLOAT32_SMALLEST <= abs(value) <= FLOAT32_LARGEST:
            raise ValueError(
                f"`{name}` must be a number that a float32 holds: 0, or {FLOAT32_SMALLEST:.2g} "
                f"to {FLOAT32_LARGEST:.2g} in size. Received: {name}={value!r}"
            )
        if self.diverges_from is not None and value >= self.diverges_from:
            warnings.warn(
                f"With `{name}` of {self.diverges_from:g} or more the velocity grows without "
                f"bound along the sequence. Received: {name}={value}",
                stacklevel=4,
            )
        return value


MOMENTUM = Hyperparameter(at_least=0, diverges_from=1, search=(0.0, 0.99))
STEP_SIZE = Hyperparameter(above=0, search=(0.01, 2.0), scale="log")
BETA = Hyperparameter(at_least=0, below=1, search=(0.01, 0.999), scale="logit")
EPSILON = Hyperparameter(above=0, scale="log")
RESTART_PERIOD = Hyperparameter(integer=True, search=(2, 128), scale="log")
RELAXED = Hyperparameter(choices=(True, False), scale=None)
# Where the momentum starts that a rule learns.
LEARNED_MOMENTUM = Hyperparameter(at_least=0, below=1)
