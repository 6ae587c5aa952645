"""Hooks of MkDocs: pages and files that stand outside of docs/, and links to them.

Every file of the checkout that a page links to is part of the site.
"""

import importlib
import inspect
import os
import re
from pathlib import Path

import griffe
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages that stand elsewhere in the checkout.
PAGES = {
    "changes.md": ROOT / "CHANGELOG.md",
    "contribute/contributing.md": ROOT / "CONTRIBUTING.md",
}
LINK = re.compile(r"(\]\()(?!https?://|mailto:|#)([^)#\s]+)")
COMPUTED = ("keras_momentum_rnn.cells.", "keras_momentum_rnn.layers.")
# Lines of a doctest, up to the empty line that ends its output.
DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", flags=re.MULTILINE)
# A section that mkdocstrings does not know, and an argument in it.
CALLS = re.compile(r"^Call arguments:\n((?:[ ]{4}.*\n?|\n(?=[ ]{4}))+)", flags=re.MULTILINE)
ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n {5,}.*)*)", flags=re.MULTILINE)
# The signature of a class or function, and the first paragraph about it.
SIGNATURE = re.compile(
    r'(<div class="doc-signature highlight">.*?</div>)'
    r'(\s*<div class="doc doc-contents[^>]*>)(\s*<p>.*?</p>)',
    flags=re.DOTALL,
)


def on_files(files, config):
    for target, source in PAGES.items():
        files.append(File.generated(config, target, abs_src_path=str(source)))
    pages = [*DOCS.rglob("*.md"), *PAGES.values()]
    for page in pages:
        for path in linked(page):
            name = path.relative_to(ROOT).as_posix()
            if files.get_file_from_path(name) is None:
                files.append(File.generated(config, name, abs_src_path=str(path)))
                pages += [path] if path.suffix == ".md" else []
    return files


def on_page_content(html, page, config, files):
    """Say what a thing is before the list of its arguments."""
    return SIGNATURE.sub(r"\2\3\1", html)


def linked(page):
    """Return the files of the checkout outside of docs/ that a page links to."""
    targets = {(page.parent / found[2]).resolve() for found in LINK.finditer(page.read_text())}
    outside = {path for path in targets if path.is_file() and not path.is_relative_to(DOCS)}
    return sorted(outside - {*PAGES.values()})


def on_page_markdown(markdown, page, config, files):
    """Let links that leave docs/ point to the copies."""
    uri = page.file.src_uri
    source = PAGES.get(uri, DOCS / uri)
    if not source.exists():
        return markdown
    return LINK.sub(lambda found: found[1] + moved(uri, source, found[2]), markdown)


def moved(uri, source, target):
    """Return where a link of a page leads in the site; the page stands in a source file."""
    path = (source.parent / target).resolve()
    places = {source: place for place, source in PAGES.items()}
    home = DOCS if path.is_relative_to(DOCS) else ROOT
    name = places.get(path, path.relative_to(home).as_posix())
    return Path(os.path.relpath(name, Path(uri).parent)).as_posix()


class Reference(griffe.Extension):
    """Show what Python itself shows: computed signatures, and doctests as code.

    The constructors of layers and cells are read from Keras when a class is made, and their
    docstrings completed from rule and family, so no file has them in full.
    """

    def on_module_members(self, *, mod, **kwargs):
        # Stubs are for editors: they lack the docstrings.
        if getattr(mod.filepath, "suffix", None) == ".pyi":
            mod.members.clear()
            mod.imports.clear()
            mod.exports = None

    def on_class(self, *, cls, loader, **kwargs):
        module, _, name = cls.path.rpartition(".")
        if module.startswith(COMPUTED):
            found = getattr(importlib.import_module(module), name)
            text = as_code(inspect.getdoc(found))
            cls.docstring = griffe.Docstring(
                text,
                parent=cls,
                parser=loader.docstring_parser,
                parser_options=loader.docstring_options,
            )
            signature = inspect.signature(found)
            parameters = [griffe.Parameter("self"), *map(shown, signature.parameters.values())]
            init = griffe.Function("__init__", parameters=griffe.Parameters(*parameters))
            cls.set_member("__init__", init)

    def on_instance(self, *, obj, **kwargs):
        if obj.docstring is not None:
            obj.docstring.value = as_code(inspect.cleandoc(obj.docstring.value))


def as_code(docstring):
    """Return a docstring whose doctests stand in fences, and its call arguments in a list."""
    docstring = CALLS.sub(called, docstring)
    if "```pycon" in docstring:
        return docstring
    return DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", docstring)


def called(section):
    arguments = ARGUMENT.findall(section[1])
    items = [f"- **`{name}`**: {' '.join(text.split())}" for name, text in arguments]
    return "\n".join(["**Call arguments:**", "", *items, "", ""])


def shown(parameter):
    """Return a parameter as griffe has it."""
    default = None if parameter.default is parameter.empty else repr(parameter.default)
    default = "{}" if parameter.kind is parameter.VAR_KEYWORD else default
    kind = griffe.ParameterKind(parameter.kind.description)
    return griffe.Parameter(parameter.name, kind=kind, default=default)
