"""Former names of marks: the papers' tests run on PyTorch alone, where nothing is compiled."""

import pytest

COMPILES = False
SLOW_IF_COMPILED = SLOW_ON_TENSORFLOW = []


def slow_unless(quick, *values, id=None, of_each_backend=True):
    return pytest.param(*values, marks=[] if quick else [pytest.mark.slow], id=id)


def slow_if_compiled(test):
    return test
