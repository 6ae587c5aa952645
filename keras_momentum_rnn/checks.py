"""Checks of arguments: a bad value raises, naming the argument, its range and the value."""

import contextlib
import numbers


def checked(name, value, above=None, at_least=None, below=None, at_most=None):
    """Return `value` as a float, or raise a `ValueError` that says which range it left."""
    low = f"({above}" if at_least is None else f"[{at_least}"
    high = f"{'infinity' if below is None else below})" if at_most is None else f"{at_most}]"
    valid = (
        isinstance(value, numbers.Real)
        and not isinstance(value, bool)
        and (above is None or value > above)
        and (at_least is None or value >= at_least)
        and value < (float("inf") if below is None else below)
        and (at_most is None or value <= at_most)
    )
    if valid:
        with contextlib.suppress(OverflowError):
            return float(value)
    raise ValueError(f"`{name}` must be a number in {low}, {high}. Received: {name}={value!r}")


def checked_count(name, value, at_least=1, at_most=None):
    """Return `value` as an int, or raise a `ValueError` if it is none or out of its range."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < at_least or (at_most is not None and value > at_most):
        kind = "a positive integer" if at_least == 1 else f"an integer of at least {at_least}"
        limit = "" if at_most is None else f", at most {at_most}"
        raise ValueError(f"`{name}` must be {kind}{limit}. Received: {name}={value!r}")
    return int(value)


def checked_choice(name, value, choices):
    """Return `value`, or raise a `ValueError` if it is none of `choices`."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"`{name}` must be one of {list(choices)}. Received: {name}={value!r}")
    return value


def checked_seed(seed):
    """Return `seed` as an int, or None, or raise a `ValueError` if it is neither."""
    whole = isinstance(seed, numbers.Integral) and not isinstance(seed, bool)
    if seed is not None and not whole:
        raise ValueError(f"`seed` must be an integer or None. Received: seed={seed!r}")
    return None if seed is None else int(seed)
