"""Tables of the pages are those of the data, and the reference has every public name."""

import contextlib
import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
if not (DOCS / "tools").exists():
    pytest.skip("an installed package has no pages", allow_module_level=True)

# The modules whose `__all__` a user may import from, beside the package itself.
PUBLIC = ("", ".initializers", ".optimizers", ".optimizers.schedules", ".rules", ".diagnostics")
ENTRY = re.compile(r"^::: (\S+)$", flags=re.MULTILINE)
IMPORT = re.compile(
    r"^from (keras_momentum_rnn[\w.]*) import (?:\(([^)]*)\)|(.+))$", flags=re.MULTILINE
)


def test_tables_are_up_to_date():
    from docs.tools import pages

    found = pages.written()
    old = [path.name for path, text in found.items() if path.read_text() != text]
    assert old == [], "run python -m docs.tools.pages"
    shown = [name for text in found.values() for _, name, _ in pages.PLACE.findall(text)]
    assert sorted(shown) == sorted(pages.tables())


def reference():
    """Return the names that the pages of the reference show, those of each page once."""
    pytest.importorskip("keras_tuner", reason="a page of the reference needs it")
    pages = [ENTRY.findall(page.read_text()) for page in (DOCS / "reference").glob("*.md")]
    return [name for page in pages for name in {n for path in page for n in named(path)}]


def named(path):
    """Return what an entry of the reference shows: a name, or the public ones of a module."""
    try:
        found = vars(importlib.import_module(path))
    except ModuleNotFoundError:
        return [path.rpartition(".")[2]]
    own = [name for name, v in found.items() if getattr(v, "__module__", None) == path]
    return found.get("__all__", own)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_on_one_page_of_the_reference(module):
    shown = reference()
    assert len(shown) == len({*shown})
    found = importlib.import_module(f"keras_momentum_rnn{module}")
    public = {name for name in found.__all__ if not inspect.ismodule(getattr(found, name))}
    assert public - {*shown} == set()


def test_what_the_pages_import_is_on_the_reference():
    shown = reference()
    for page in (ROOT / "README.md", *DOCS.glob("**/*.md")):
        for module, many, few in IMPORT.findall(page.read_text()):
            for name in (many or few).split("  #")[0].split(","):
                if name := name.strip():
                    with contextlib.suppress(ModuleNotFoundError):  # it is no module
                        importlib.import_module(f"{module}.{name}")
                    if not inspect.ismodule(getattr(importlib.import_module(module), name)):
                        assert name in shown, f"{page.name}: {module}.{name}"


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    listed = re.findall(r"(\S+\.md)$", text[text.index("\nnav:") :], flags=re.MULTILINE)
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.glob("**/*.md")}
    assert len(listed) == len({*listed})
    # These are files of the checkout outside of docs/.
    assert pages == {*listed} - {"changes.md", "contribute/contributing.md"}


@pytest.mark.parametrize("page", ["README.md", "docs/choose/catalogue.md"])
def test_overviews_name_every_layer(page):
    text = (ROOT / page).read_text()
    names = importlib.import_module("keras_momentum_rnn.layers").__all__
    assert [name for name in names if f"`{name}`" not in text] == []
