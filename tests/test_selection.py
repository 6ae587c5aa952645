"""Every test runs in the full checks: what one backend leaves to another, the other has."""

import re
from pathlib import Path

import keras
import pytest
from harness import BACKEND

from conftest import pytest_collection_modifyitems

CHECKS = Path(__file__).parent.parent / ".ci" / "run"


class Item:
    """A test as pytest collects it, with marks."""

    def __init__(self, *marks):
        self.marks = set(marks)

    def get_closest_marker(self, name):
        return name if name in self.marks else None

    def add_marker(self, name):
        self.marks.add(name)


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_what_no_backend_changes_is_left_to_pytorch(backend, monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: backend)
    items = plain, of_any, of_each = Item(), Item("any_backend"), Item("any_backend")
    of_each.marks.add("each_backend")
    pytest_collection_modifyitems(items)
    assert plain.marks == set() and of_each.marks == {"any_backend", "each_backend"}
    added = set() if backend == "torch" else {"slow", "repeated"}
    assert of_any.marks == {"any_backend"} | added


@pytest.mark.skipif(BACKEND != "torch", reason="on the others these tests are left out")
def test_what_is_left_to_pytorch_is_skipped_there_for_no_lack(request):
    """Data or packages that the step of another backend has would be missed."""
    for item in request.session.items:
        if item.get_closest_marker("any_backend") and not item.get_closest_marker(
            "each_backend"
        ):
            lacks = [mark for mark in item.iter_markers("skipif") if mark.args[0]]
            assert not lacks, item.nodeid


@pytest.mark.skipif(not CHECKS.exists(), reason="only a checkout has the checks")
def test_the_checks_leave_out_what_is_repeated_alone():
    """With the README's command, of all that is not slow, they have every other test."""
    text = CHECKS.read_text()
    (slow,) = re.findall(r"tests (-m .*) \\\n\s+--ignore (\S+)$", text, flags=re.MULTILINE)
    assert slow == ('-m "slow and not repeated"', "tests/test_export.py")
    # Which runs whole, on every backend, in a step of its own.
    step = re.search(r"^exports\(\).*?^}", text, flags=re.MULTILINE | re.DOTALL)[0]
    assert "for backend in torch tensorflow jax" in step
    assert "tests tests/test_export.py" in step and "test_export or" in step
