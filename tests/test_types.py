"""Type checkers and editors see what can be passed, and what comes back."""

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import needs
import pytest
import stubs

PACKAGE = Path(__file__).parent.parent / "keras_momentum_rnn"
CALLS = Path(__file__).parent / "checked_calls.py"
PUBLIC = [
    f"keras_momentum_rnn.{name}"
    for name in (
        "cells",
        "convert",
        "diagnostics",
        "exports",
        "initializers",
        "layers",
        "layers.registry",
        "optimizers",
        "optimizers.schedules",
        "rules",
        "streaming",
        "tuning",
    )
]
CHECKERS = {
    "mypy": ("--ignore-missing-imports", "--strict-optional", "--no-incremental"),
    "basedpyright": ("--level", "error", "--pythonpath", sys.executable),
}


def is_ours(member):
    return getattr(member, "__module__", "").startswith("keras_momentum_rnn")


def public_members(module):
    """Yield the public classes and functions of a module."""
    names = getattr(module, "__all__", None)
    for name in names or [n for n in vars(module) if not n.startswith("_")]:
        member = getattr(module, name)
        if names or getattr(member, "__module__", None) == module.__name__:
            yield member


def public_functions(module):
    """Yield the public functions of a module, and the methods of its classes, once."""
    functions = {}
    for member in public_members(module):
        if inspect.isfunction(member):
            functions[member] = None
        elif inspect.isclass(member):
            for cls in filter(is_ours, member.__mro__):
                for name, method in vars(cls).items():
                    method = getattr(method, "fget", getattr(method, "__func__", method))
                    # An attribute read from the cell is a lambda, and typed in the stubs.
                    written = inspect.isfunction(method) and method.__name__ != "<lambda>"
                    if written and (name == "__init__" or not name.startswith("_")):
                        functions[method] = None
    return list(functions)


def untyped(function):
    """Return the names of what has no annotation in a function."""
    signature = inspect.signature(function)
    names = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.annotation is parameter.empty and name not in ("self", "cls")
    ]
    return names + (["return"] if signature.return_annotation is signature.empty else [])


@pytest.mark.parametrize("name", needs.marked(PUBLIC))
def test_public_functions_are_annotated(name):
    functions = public_functions(importlib.import_module(name))
    lacking = {f"{f.__module__}.{f.__qualname__}": untyped(f) for f in functions if is_ours(f)}
    assert {name: names for name, names in lacking.items() if names} == {}
    assert functions


@pytest.mark.any_backend
@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_tell_mistakes_from_right_calls(checker, tmp_path):
    """They read the stubs, which a wheel contains and the repository does not."""
    if not find_spec(checker):
        pytest.skip(f"{checker} is not installed: it is in the extra `dev`")
    package = shutil.copytree(PACKAGE, tmp_path / PACKAGE.name)
    stubs.write(package)
    shutil.copy(CALLS, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", checker, *CHECKERS[checker], CALLS.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    errors = re.findall(rf"{CALLS.name}:(\d+).* error: .*", done.stdout)
    lines = CALLS.read_text().splitlines()
    mistakes = [i for i, line in enumerate(lines, 1) if line.endswith("# mistake")]
    assert sorted(set(map(int, errors))) == mistakes, done.stdout + done.stderr
