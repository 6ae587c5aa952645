"""The named groups of tests: none is empty, and the page on faults lists them all."""

import ast
import json
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "faults.md"
MARKERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
GROUPS = [marker.partition(":")[0] for marker in MARKERS["markers"]]
# The others say when a test runs, and not what it is about.
for name in ("slow", "any_backend", "each_backend", "repeated"):
    GROUPS.remove(name)
needs_page = pytest.mark.skipif(not PAGE.exists(), reason="only a checkout has docs")


def marks(node):
    """Return the names of pytest's marks in an expression."""
    return {
        inner.attr
        for inner in ast.walk(node)
        if isinstance(inner, ast.Attribute) and ast.unparse(inner.value) == "pytest.mark"
    }


def groups_of(path):
    """Return the pairs of a test of a file and a mark that it has."""
    body = ast.parse(path.read_text()).body
    tests = [n for n in body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
    of_all = set()
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            of_all |= marks(node.value)
    for test in tests:
        for mark in of_all.union(*map(marks, test.decorator_list)):
            yield f"{path.name}::{test.name}", mark


FOUND = [pair for path in Path(__file__).parent.glob("test_*.py") for pair in groups_of(path)]


@pytest.mark.parametrize("group", GROUPS)
def test_no_group_is_empty(group):
    assert [test for test, mark in FOUND if mark == group]


@needs_page
@pytest.mark.parametrize("group", GROUPS)
def test_the_page_lists_each_group(group):
    assert f"`-m {group}`" in PAGE.read_text()


@needs_page
def test_the_page_has_the_figures_of_the_kills():
    found = json.loads((ROOT / "benchmarks" / "results" / "faults.json").read_text())
    page = PAGE.read_text()
    for name, figures in found["searches"].items():
        assert f"| {name} | {figures['kills']} | {figures['equal']} |" in page
