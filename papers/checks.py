"""Checks of options: a bad value raises, naming the option, its range and the value."""

import numbers


def checked_count(name, value, at_least=1, at_most=None):
    """Return `value` as an int, or raise a `ValueError` if it is none or out of its range."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if whole and at_least <= value and (at_most is None or value <= at_most):
        return int(value)
    limit = "" if at_most is None else f" and at most {at_most}"
    raise ValueError(
        f"`{name}` must be an integer of at least {at_least}{limit}. Received: {name}={value!r}"
    )


def checked_positive(name, value):
    """Return `value` as a float, or raise a `ValueError` if it is no finite number above 0."""
    if isinstance(value, numbers.Real) and 0 < value < float("inf"):
        return float(value)
    raise ValueError(f"`{name}` must be a number above 0. Received: {name}={value!r}")


def checked_choice(name, value, choices):
    """Return `value`, or raise a `ValueError` if it is none of `choices`."""
    if value not in list(choices):  # a list compares what a dict could not hash
        raise ValueError(f"`{name}` must be one of {list(choices)}. Received: {name}={value!r}")
    return value
