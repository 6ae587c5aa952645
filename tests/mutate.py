"""Change the package in small ways, one at a time in a copy, and see whether a test notices.

    KERAS_BACKEND=torch python tests/mutate.py                # all changes of mutations.toml
    KERAS_BACKEND=torch python tests/mutate.py --only mask    # those whose name has a word
    KERAS_BACKEND=torch python tests/mutate.py --check        # is the changed text still there?

Each change is run on its own backend or, where it names none, on that of KERAS_BACKEND, with
the quick tests that it names. They pass without it, or the change counts for nothing. The table
is written to tests/mutations.md.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHANGES, TABLE = ROOT / "tests" / "mutations.toml", ROOT / "tests" / "mutations.md"
COPIED = ("keras_momentum_rnn", "tests", "examples", "benchmarks", "docs")
PYTEST = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line", "-m", "not slow"]
TIME_LIMIT = 900  # seconds; a change that makes a loop endless is noticed by it
PASSED, FAILED = 0, 1  # what pytest returns


@dataclass(frozen=True)
class Change:
    """A change of the package.

    Attributes:
        name: what is wrong then, in words.
        file: path below the package.
        old, new: text that is in the file once, and what takes its place.
        tests: arguments of pytest, the quick tests most likely to notice.
        backend: the backend whose tests run.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str
    backend: str = os.environ.get("KERAS_BACKEND", "torch")

    def applied_to(self, text):
        found = text.count(self.old)
        if found != 1 or self.old == self.new:
            raise ValueError(
                f"{self.name}: the old text must be in {self.file} once, and differ from the "
                f"new. Found: {found} times"
            )
        return text.replace(self.old, self.new)


def main():
    parser = argparse.ArgumentParser(description="See which small changes the tests notice.")
    parser.add_argument("--only", nargs="+", default=[""], help="words in the names of changes")
    parser.add_argument("--check", action="store_true", help="run no test")
    options = parser.parse_args()
    changes = [Change(**entry) for entry in tomllib.loads(CHANGES.read_text())["change"]]
    check(changes)
    if options.check:
        print(f"{len(changes)} changes can be made")
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        copy_checkout(copy)
        chosen = [c for c in changes if any(word in c.name for word in options.only)]
        passing = set()
        rows = [row_of(change, copy, passing) for change in chosen]
    if len(rows) == len(changes):
        TABLE.write_text(table(rows))
    print(f"{sum(map(noticed, rows))} of {len(rows)} changes were noticed")


def check(changes):
    """Raise a `ValueError` for every change that cannot be made."""
    wrong = [name for name, n in Counter(c.name for c in changes).items() if n > 1]
    wrong = [f"{name}: two changes have this name" for name in wrong]
    for change in changes:
        try:
            change.applied_to((ROOT / "keras_momentum_rnn" / change.file).read_text())
        except (OSError, ValueError) as error:
            wrong.append(str(error))
    if wrong:
        raise ValueError("\n".join(wrong))


def copy_checkout(copy):
    for name in COPIED:
        if (ROOT / name).exists():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for file in ("pyproject.toml", "README.md", "mkdocs.yml"):
        shutil.copy(ROOT / file, copy)
    # The package of the copy is tested, not one that is installed.
    code = "import keras_momentum_rnn as k; print(k.__file__)"
    found = python(copy, "torch", ["-c", code]).stdout.strip()
    assert Path(found).is_relative_to(copy.resolve()), found


def python(copy, backend, arguments):
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": str(copy.resolve()),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # What JAX has compiled for the checkout's own tests serves here too.
    environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".pytest_cache" / "jax"))
    command = [sys.executable, *arguments]
    options = {"capture_output": True, "text": True, "timeout": TIME_LIMIT}
    return subprocess.run(command, cwd=copy, env=environment, **options)


def row_of(change, copy, passing):
    """Make a change in the copy, run its tests, and take it back. Return a row of the table.

    Args:
        change: `Change`.
        copy: path of the copy.
        passing: set of the backends and tests that are known to pass without a change.
    """
    selection = change.backend, change.tests
    if selection not in passing:
        done = python(copy, change.backend, [*PYTEST, *shlex.split(change.tests)])
        if done.returncode != PASSED:
            return told(change, "its tests fail without it, or there are none", "")
        passing.add(selection)
    path = copy / "keras_momentum_rnn" / change.file
    text, start = path.read_text(), time.monotonic()
    path.write_text(change.applied_to(text))
    try:
        done = python(copy, change.backend, [*PYTEST, *shlex.split(change.tests)])
        failures = [s for s in done.stdout.splitlines() if s.startswith(("FAILED", "ERROR"))]
        verdict = {PASSED: "no", FAILED: "yes"}.get(done.returncode, "yes: tests cannot start")
        by = failures[0].split()[1] if failures else ""
    except subprocess.TimeoutExpired:
        verdict, by = "yes: they do not end", ""
    finally:
        path.write_text(text)
    return told(change, verdict, by, time.monotonic() - start)


def told(change, verdict, by, seconds=0.0):
    row = (change.name, change.file, change.backend, verdict, by)
    print(f"{seconds:4.0f} s  {' | '.join(row)}", flush=True)
    return row


def noticed(row):
    return row[3].startswith("yes")


def table(rows):
    share = sum(map(noticed, rows)) / max(1, len(rows))
    lines = [
        "# Small changes of the package, and whether the quick tests notice them",
        "",
        f"{sum(map(noticed, rows))} of {len(rows)} changes are noticed, {share:.0%}. Each is "
        "made alone, with the tests named in [mutations.toml](mutations.toml). Written by "
        "`python tests/mutate.py`.",
        "",
        "| change | file | backend | noticed | by |",
        "|---|---|---|---|---|",
    ]
    shown = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in shown), ""])


if __name__ == "__main__":
    main()
