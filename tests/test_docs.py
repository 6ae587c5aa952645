"""The examples in docstrings and in the README run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import keras
import needs
import pytest
from speed import COMPILES, slow_unless

import keras_momentum_rnn

MODULES = ["keras_momentum_rnn"] + [
    module.name
    for module in pkgutil.walk_packages(keras_momentum_rnn.__path__, "keras_momentum_rnn.")
    if not module.name.endswith("__main__")
]
ROOT = Path(__file__).parent.parent
PAGES = [page for page in (ROOT / "README.md", *ROOT.glob("docs/*.md")) if page.exists()]


def page_rows():
    for page in PAGES:
        yield slow_unless(not COMPILES or page.name == "README.md", page, id=page.name)


@pytest.mark.parametrize("name", needs.marked(MODULES))
def test_docstring_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_public_layers_show_an_example():
    for name, cls in vars(keras_momentum_rnn).items():
        if isinstance(cls, type) and issubclass(cls, keras.layers.RNN):
            assert ">>> " in cls.__doc__, name
            assert "Reference" in cls.__doc__, name


@pytest.mark.parametrize("page", page_rows())
def test_examples_of_the_pages(page, tmp_path, monkeypatch):
    """Those of a checkout: an installed package has none."""
    monkeypatch.chdir(tmp_path)
    scope = {}
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(example, scope)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_of_the_pages_exist(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_readme_shows_examples():
    assert all("```python" in page.read_text() for page in PAGES if page.name == "README.md")
