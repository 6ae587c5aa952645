"""The modules of the package import Keras alone, or what they declare."""

import ast
import subprocess
import sys
from pathlib import Path

import needs
import pytest

import keras_momentum_rnn

PACKAGE = Path(keras_momentum_rnn.__file__).parent
WITH_KERAS = {"keras", "numpy", "keras_momentum_rnn", *sys.stdlib_module_names}


def imported(path):
    """Yield what a module imports as soon as it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


IMPORTED = """
import sys
import keras
before = set(sys.modules)
import keras_momentum_rnn
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
print(*(name for name in sys.modules if name.startswith("keras_momentum_rnn.")))
assert keras_momentum_rnn.optimizers.MomentumSGD
"""


@pytest.mark.slow
def test_what_is_rarely_needed_is_imported_when_asked_for():
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    )
    packages, own = (set(line.split()) for line in done.stdout.splitlines())
    assert not packages - {"keras_momentum_rnn", *sys.stdlib_module_names}
    parts = {name.split(".")[1] for name in own}
    assert not parts & {"convert", "diagnostics", "optimizers", "streaming", "tuning"}


def test_modules_import_what_is_declared_and_no_more():
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(
            ["keras_momentum_rnn", *path.relative_to(PACKAGE).with_suffix("").parts]
        )
        part, backend = needs.part_of(name), needs.backend_of(name)
        others = {*imported(path)} - WITH_KERAS - {backend}
        assert others <= {*needs.PARTS.get(part, ())}, name
