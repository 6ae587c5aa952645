"""Hooks of MkDocs: pages and files that stand outside of docs/, and links to them.

The home page is the README, whose names of pages (`docs/start/install.md`) become links here;
on a package index, where links into the checkout would break, they stay names. The reports and
pictures of papers/results and benchmarks/results are part of the site, and so is every file
of the checkout that a page links to.
"""

import os
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RESULTS = ("papers/results", "benchmarks/results")
SHOWN = (".md", ".png", ".json", ".csv", ".txt")
# Pages that stand elsewhere in the checkout.
PAGES = {"index.md": "README.md", "changes.md": "CHANGELOG.md"}
# Written by other hands; the site links to them where they exist.
OPTIONAL = {"contribute/contributing.md": "CONTRIBUTING.md", "CITATION.cff": "CITATION.cff"}
LINK = re.compile(r"(\]\()(?!https?://|mailto:|#)([^)#\s]+)")
NAMED_PAGE = re.compile(r"`docs/([\w./-]+\.md)`")


def on_config(config):
    """List the optional pages in the navigation, where they exist."""
    for target, source in OPTIONAL.items():
        section, _, name = target.rpartition("/")
        if name.endswith(".md") and (ROOT / source).exists():
            (entries,) = (e[section.title()] for e in config.nav if section.title() in e)
            entries.insert(0, target)
    return config


def on_files(files, config):
    for target, source in {**PAGES, **OPTIONAL}.items():
        if (ROOT / source).exists():
            files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    for folder in RESULTS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SHOWN:
                files.append(of_checkout(config, path))
    pages = [*DOCS.rglob("*.md"), *(ROOT / source for source in OPTIONAL.values())]
    for page in pages:
        for path in linked(page):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and files.get_file_from_path(name) is None:
                files.append(of_checkout(config, path))
                pages += [path] if path.suffix == ".md" else []
    return files


def of_checkout(config, path):
    """Return a file of the checkout, which has the same place in the site."""
    name = path.relative_to(ROOT).as_posix()
    return File.generated(config, name, abs_src_path=str(path))


def linked(page):
    """Return the files outside of docs/ that a page links to."""
    text = page.read_text() if page.exists() else ""
    targets = {(page.parent / found[2]).resolve() for found in LINK.finditer(text)}
    return sorted(path for path in targets if not path.is_relative_to(DOCS))


def on_page_markdown(markdown, page, config, files):
    """Let links that leave docs/ point to the copies, and the README's names to the pages."""
    uri = page.file.src_uri
    if uri in PAGES:
        return NAMED_PAGE.sub(lambda found: link_to(found[1]), markdown)
    source = ROOT / OPTIONAL[uri] if uri in OPTIONAL else DOCS / uri
    if uri.startswith(RESULTS) or not source.exists():
        return markdown
    return LINK.sub(lambda found: found[1] + moved(uri, source, found[2]), markdown)


def link_to(name):
    """Return a link to a page of docs/, called by its heading."""
    heading = re.search(r"^# (.+)$", (DOCS / name).read_text(), flags=re.MULTILINE)
    return f"[{heading[1]}]({name})"


def moved(uri, source, target):
    """Return where a link of a page leads in the site; the page stands in a source file."""
    path = source.parent.joinpath(target).resolve()
    if not path.is_relative_to(ROOT):
        return target
    name = path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT).as_posix()
    known = {source: place for place, source in {**PAGES, **OPTIONAL}.items()}
    if path.is_dir():
        name = f"{name}/{folder_page(path)}"
    return os.path.relpath(known.get(name, name), Path(uri).parent).replace(os.sep, "/")


def folder_page(folder):
    """Return the file that stands for a folder: a server of files shows none."""
    names = ("report.md", "tables.md", "results.json", "table.txt")
    return next(name for name in names if (folder / name).exists())
