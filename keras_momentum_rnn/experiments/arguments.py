"""Types of command-line arguments."""

import argparse
import ast
import contextlib
import math
from pathlib import Path


def positive(kind):
    """Return a type of `argparse`: a finite number above 0, `int` or `float`."""

    def parsed(text):
        with contextlib.suppress(ValueError):
            if 0 < kind(text) < math.inf:
                return kind(text)
        raise argparse.ArgumentTypeError(
            f"must be a positive {kind.__name__}. Received: {text}"
        )

    return parsed


def folder(text):
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"must be an existing directory. Received: {text}")
    return Path(text)


def new_folder(text):
    """A directory, or a place where one can be made."""
    if Path(text).exists() and not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"must be a directory. Received: {text}")
    return Path(text)


def assignment(text):
    """`name=value`, the value a Python literal or else text, as a pair."""
    name, equals, value = text.partition("=")
    if not name.isidentifier() or not equals:
        raise argparse.ArgumentTypeError(f"must be name=value. Received: {text}")
    with contextlib.suppress(ValueError, SyntaxError):
        return name, ast.literal_eval(value)
    return name, value


def widths(text):
    """`32` for all layers, or `MCRM=85` for one, as a pair; a stack's as `400,200`."""
    name, _, sizes = text.rpartition("=")
    counts = tuple(positive(int)(size) for size in sizes.split(","))
    return name or None, counts if len(counts) > 1 else counts[0]
