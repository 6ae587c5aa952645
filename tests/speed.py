"""Which rows of a table are in the quick suite."""

import pytest


def slow_unless(quick, *values, id=None):
    """Return the parameters of a test, marked slow unless they are to be in the quick suite."""
    return pytest.param(*values, marks=() if quick else pytest.mark.slow, id=id)
