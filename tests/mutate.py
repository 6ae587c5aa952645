"""Change the package in small ways, one at a time in a copy, and see whether a test notices.

    KERAS_BACKEND=torch python tests/mutate.py              # draws 100 changes and tries them
    KERAS_BACKEND=jax python tests/mutate.py                # tries what is not noticed yet

Operators change the syntax tree: a comparison, an operation, a number, a condition, the order
of arguments, a statement that is left out. Each change meets the quick tests that cover its
file, up to the first failure, which must pass without the change. What was found is kept in
tests/mutations.json after each change, so that the same command resumes; a change whose line
is edited is replaced by another. A change that no test can notice has the reason there by
hand, as `equivalent`. tests/mutations.md names what is not noticed.
"""

import argparse
import ast
import copy
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "keras_momentum_rnn"
RESULTS, TABLE = (ROOT / "tests" / f"mutations.{kind}" for kind in ("json", "md"))
# Seconds of the processor; a change that makes a loop endless is noticed by it.
TIME_LIMIT = 900
# The quick tests that cover the files whose paths begin so; the first that fits.
TESTS = {
    "rules/learned": "learned_momentum rules equations",
    "rules/": "rules equations arguments properties paths scale_free plan",
    "cells/orthogonal": "equations orthogonal learned_momentum orthogonal_training golden",
    "cells/": "equations arguments properties paths wrappers dtypes new_cell learned_momentum",
    "recurrent.py": "arguments plan paths equations wrappers properties against_keras training "
    "gpu_programs",
    "paths/native/": "native native_process native_backends paths learned_momentum equations "
    "plan dtypes",
    "paths/": "paths plan derivatives equations learned_momentum properties dtypes native "
    "gpu_programs",
}
BACKENDS = ("tensorflow", "jax", "torch")
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
}  # fmt: skip


def changes_of(node):
    """Yield what a node may become, a node or the text of a statement."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[op]) if type(op) in SWAPPED:
            new.ops = [SWAPPED[type(op)]()]
            yield new
        case ast.BinOp() | ast.BoolOp() if type(new.op) in SWAPPED:
            new.op = SWAPPED[type(new.op)]()
            yield new
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield new.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not new.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(new.value + 1)
        case ast.IfExp():
            yield ast.IfExp(new.test, new.orelse, new.body)
        case ast.Call(args=[first, second, *rest]):
            yield ast.Call(new.func, [second, first, *rest], new.keywords)
        case ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass"


def nodes_of(node):
    """Yield the nodes that run: no annotations, decorators, messages or `__all__`."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "exc", "msg"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from nodes_of(child)


def changes_in(path):
    """Return the changes of a file, each with the place of what it replaces."""
    text, name = path.read_text(), path.relative_to(PACKAGE).as_posix()
    lines, found = text.splitlines(), []
    for node in nodes_of(ast.parse(text)):
        for new in changes_of(node) if hasattr(node, "lineno") else ():
            code = new if isinstance(new, str) else f"({ast.unparse(new)})"
            found.append(
                {
                    "file": name,
                    "line": node.lineno,
                    "old": ast.get_source_segment(text, node),
                    "new": code,
                    "column": node.col_offset,
                    "text": lines[node.lineno - 1],
                }
            )
    return found


def changed(text, change):
    """Return a file's text with a change."""
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: change["line"] - 1]))
    start += len(lines[change["line"] - 1].encode()[: change["column"]].decode())
    assert text.startswith(change["old"], start)
    return text[:start] + change["new"] + text[start + len(change["old"]) :]


def draw(count, seed, tried):
    """Draw changes: as many of each group of files as of another, each file by its size.

    Changes that were tried and whose line still exists come first, with what was found.
    """
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py"]
    groups = {prefix: [] for prefix in TESTS}
    for path in files:
        name = path.relative_to(PACKAGE).as_posix()
        prefix = next((p for p in TESTS if name.startswith(p)), None)
        if prefix:
            groups[prefix] += changes_in(path)
    generator = random.Random(seed)
    for changes in groups.values():
        generator.shuffle(changes)
        kept = []
        for old in tried:
            same = [new for new in changes if key_of(new) == key_of(old)]
            if same:
                # Of equal lines, the nearest.
                nearest = min(same, key=lambda new: abs(new["line"] - old["line"]))
                changes.remove(nearest)
                kept.append(old | {"line": nearest["line"]})
        changes[:0] = kept
    # Learned momentum and orthogonal cells are a part of the rules and the cells.
    shares = {"rules/learned": 0.06, "rules/": 0.14, "cells/orthogonal": 0.06, "cells/": 0.14}
    counts = {prefix: round(count * shares.get(prefix, 0.2)) for prefix in TESTS}
    drawn = [change for prefix, n in counts.items() for change in groups[prefix][:n]]
    # After a change of the native kernel all of it is compiled again: these come last.
    return sorted(drawn, key=lambda change: change["file"].startswith("paths/native/"))


def verdict(change, folder):
    """Return the test that notices a change in the copy, and None if none does."""
    path = folder / "keras_momentum_rnn" / change["file"]
    text = path.read_text()
    path.write_text(changed(text, change))
    names = next(names for p, names in TESTS.items() if change["file"].startswith(p))
    try:
        failure = first_failure([f"tests/test_{name}.py" for name in names.split()], folder)
    finally:
        path.write_text(text)
    is_test = failure and failure.startswith("tests/") and "::" in failure
    if is_test and first_failure([failure], folder):
        raise SystemExit(f"{failure} fails without any change")
    return failure


def first_failure(tests, folder):
    """Return the first test of a copy that fails, and None if all pass."""
    log = folder / "log.txt"
    # The frameworks are imported once; the tests run in a process that is forked from them.
    child = os.fork()
    if not child:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.chdir(folder)
        sys.path[:0] = [str(folder), str(folder / "tests")]
        sys.dont_write_bytecode = True
        signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT)
        pytest = importlib.import_module("pytest")
        options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-m", "not slow"]
        os._exit(pytest.main([*options, *tests]))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    if not os.WEXITSTATUS(status):
        return None
    lines = log.read_text(errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].split(maxsplit=1)[1] if failed else "tests cannot start"


def key_of(change):
    return tuple(change[name] for name in ("file", "text", "column", "old", "new"))


def noticed(change):
    return any(change["noticed"].values())


def table(changes):
    lines = [
        "# Do the quick tests notice small changes of the package?",
        "",
        f"They notice {sum(map(noticed, changes))} of {len(changes)} drawn changes; of the "
        f"others {sum('equivalent' in c for c in changes)} change nothing that can be seen. "
        "`python tests/mutate.py` writes this page; [mutations.json](mutations.json) has all "
        "changes and a test that notices each.",
        "",
        "| not noticed | becomes | |",
        "|---|---|---|",
    ]
    for change in changes:
        if not noticed(change):
            place = f"{change['file']}:{change['line']}"
            old, new = (" ".join(change[key].split())[:60] for key in ("old", "new"))
            lines.append(f"| {place} `{old}` | `{new}` | {change.get('equivalent', '')} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description="See which small changes the tests notice.")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    backend = os.environ.get("KERAS_BACKEND", "torch")
    tried = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    drawn = draw(options.count, options.seed, tried)
    changes = [{"noticed": {}} | change for change in drawn]
    for name in ("keras", backend, "pytest", "hypothesis", "numba"):
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("keras_momentum_rnn", "tests", "examples", "docs"):
            shutil.copytree(ROOT / name, folder / name)  # with what Numba compiled
        for name in ("pyproject.toml", "conftest.py", "README.md", "mkdocs.yml"):
            shutil.copy(ROOT / name, folder)
        for change in changes:
            stem = Path(change["file"]).stem.partition("_")[0]
            elsewhere = stem in BACKENDS and stem != backend
            if noticed(change) or elsewhere or backend in change["noticed"]:
                continue
            start = time.monotonic()
            change["noticed"][backend] = verdict(change, folder)
            print(
                f"{time.monotonic() - start:4.0f} s  {change['file']}:{change['line']}",
                f"{change['old']} -> {change['new']}:",
                change["noticed"][backend] or "NOT NOTICED",
                flush=True,
            )
            tried = [change for change in changes if change["noticed"]]
            RESULTS.write_text(json.dumps(tried, indent=1) + "\n")
            TABLE.write_text(table(tried))
    print(f"{sum(map(noticed, changes))} of {len(changes)} changes are noticed")


if __name__ == "__main__":
    main()
