"""The pages that are made of code and results are up to date, and have every public name."""

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
PUBLIC = (
    "keras_momentum_rnn",
    "keras_momentum_rnn.initializers",
    "keras_momentum_rnn.optimizers",
    "keras_momentum_rnn.optimizers.schedules",
    "keras_momentum_rnn.rules",
    "keras_momentum_rnn.diagnostics",
    "papers.tasks",
    "papers.experiments",
    "keras_momentum_rnn.tuning",
)

ENTRY = re.compile(r"^::: (\S+)$", flags=re.MULTILINE)
IMPORT = re.compile(
    r"^from (keras_momentum_rnn[\w.]*) import (?:\(([^)]*)\)|(.+))$", flags=re.MULTILINE
)


@pytest.fixture
def tools(monkeypatch):
    """Return a module of docs/tools by its name."""
    monkeypatch.syspath_prepend(DOCS / "tools")
    return importlib.import_module


def reference():
    """Return the names that the pages of the reference show, by dotted path."""
    pages = (DOCS / "reference").glob("*.md")
    return [path for page in pages for path in ENTRY.findall(page.read_text())]


def named(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def needed(module):
    """Skip where an extra that a module needs is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        pytest.skip(f"{module} needs {error.name}")


def test_generated_pages_are_up_to_date(tools):
    for module in ("papers.experiments", "keras_momentum_rnn.tuning"):
        needed(module)
    found = tools("pages").written()
    old = [path.name for path, text in found.items() if path.read_text() != text]
    assert old == [], "run python docs/tools/pages.py"
    assert {*(DOCS / "reference").glob("*.md")} <= found.keys()


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_on_one_page_of_the_reference(module):
    shown = reference()
    assert len(shown) == len({*shown})
    names = {path.rpartition(".")[2] for path in shown}
    found = needed(module)
    public = {name for name in found.__all__ if not inspect.ismodule(getattr(found, name))}
    assert public - names == set()


def test_what_the_pages_import_is_on_the_reference():
    shown = {path.rpartition(".")[2] for path in reference()}
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
    # These two are the README and the changelog of the checkout.
    assert pages == {*listed} - {"index.md", "changes.md"}


@pytest.fixture
def shown_signatures(tools):
    """Return what the reference shows of a class, as griffe finds it."""
    griffe = pytest.importorskip("griffe", reason="the extra docs brings it")
    extensions = griffe.load_extensions(tools("griffe_signatures").Signatures())
    package = griffe.load("keras_momentum_rnn", search_paths=[ROOT], extensions=extensions)
    return lambda name: package[name].final_target if package[name].is_alias else package[name]


def test_the_reference_shows_whole_signatures(shown_signatures):
    import keras_momentum_rnn

    for name in (*keras_momentum_rnn.layers.__all__, *keras_momentum_rnn.cells.__all__):
        signature = inspect.signature(getattr(keras_momentum_rnn, name)).parameters
        cls = shown_signatures(name)
        shown = {p.name: p for p in cls.members["__init__"].parameters if p.name != "self"}
        assert list(shown) == list(signature), name
        for parameter in signature.values():
            optional = parameter.default is not parameter.empty
            expected = repr(parameter.default) if optional else None
            if parameter.kind is not parameter.VAR_KEYWORD:
                assert shown[parameter.name].default == expected, f"{name}.{parameter.name}"
                assert shown[parameter.name].required is not optional
    assert shown_signatures("MomentumLSTM").parameters["momentum"].default == "0.6"


def test_docstrings_have_arguments_only_under_that_heading(shown_signatures):
    import keras_momentum_rnn

    for name in keras_momentum_rnn.layers.__all__:
        cls = shown_signatures(name)
        parsed = cls.docstring.parse("google", warn_missing_types=False)
        for section in parsed:
            if section.kind.value == "parameters":
                told = [p.name for p in section.value]
                known = [p.name for p in cls.members["__init__"].parameters]
                assert [p for p in told if p not in known] == [], name
                required = {p.name for p in section.value if p.default is None}
                assert required <= {"units", "rule"}, name


def test_doctests_become_code(tools):
    pytest.importorskip("griffe", reason="the extra docs brings it")
    shown = tools("griffe_signatures").shown
    text = "Add.\n\nExample:\n\n>>> 1 + 1\n2\n>>> 2\n2\n\nReference: none."
    assert "Example:\n\n```pycon\n>>> 1 + 1\n2\n>>> 2\n2\n```\n\nReference" in shown(text)
