"""What the quick suite leaves out: but on PyTorch each row is a program to compile."""

import keras
import pytest

COMPILES = keras.config.backend() != "torch"
# The mark of a file of many models, each of which is compiled but on PyTorch.
SLOW_IF_COMPILED = [pytest.mark.slow] if COMPILES else []
# The mark of a file whose traps no backend changes, and whose many small models TensorFlow
# traces one by one: it is quick on the others.
SLOW_ON_TENSORFLOW = [pytest.mark.slow] if keras.config.backend() == "tensorflow" else []


def slow_unless(quick, *values, id=None, of_each_backend=True):
    """Return the parameters of a test, marked slow unless they are to be in the quick suite.

    Args:
        quick: whether they are.
        values: the parameters.
        id: name of the row.
        of_each_backend: False for a row that the full checks need on PyTorch alone, since
            other rows show on each backend what a backend may change.
    """
    marks = [] if quick else [pytest.mark.slow]
    if not (quick or of_each_backend):
        marks.append(pytest.mark.any_backend)
    return pytest.param(*values, marks=marks, id=id)


def few(cases, *names, **options):
    """Return cases as parameters; where they are compiled, those of these names are quick.

    Args:
        cases: list of `Case`s.
        names: their ids.
        options: more of `slow_unless`.
    """
    return [
        slow_unless(not COMPILES or case.id in names, case, id=case.id, **options)
        for case in cases
    ]


def slow_if_compiled(test):
    """Mark a test slow that trains models, each of which is compiled but on PyTorch."""
    return pytest.mark.slow(test) if COMPILES else test
