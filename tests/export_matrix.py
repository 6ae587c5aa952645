"""Try every export: write a file, run it in its own runtime, compare it with `predict`.

    KERAS_BACKEND=torch python tests/export_matrix.py
    python tests/export_matrix.py --table

The first writes runs/exports/BACKEND.json: what became of each cell of the matrix, see
exports.py. It takes up to an hour; if it was stopped, the same command tries what is left. The
second makes docs/exports.md of the files of all backends. It needs the extra `export`,
jax2onnx and litert-torch; a format whose packages are missing is recorded as not tried.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "runs" / "exports"
TABLE = ROOT / "docs" / "exports.md"
BACKENDS = ("tensorflow", "jax", "torch")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="make the table of all files")
    parser.add_argument("--again", default="", help="try again the cells whose names have this")
    parser.add_argument("--format", help="try the cells of stdin, and print them as JSON lines")
    options = parser.parse_args()
    if options.table:
        TABLE.write_text(table(read()))
    elif options.format:
        one_format(options.format, set(sys.stdin.read().split()))
    else:
        all_formats(options.again)


def read():
    """Return the recorded results: a dict by backends of dicts by the ids of cells."""
    files = {backend: RESULTS / f"{backend}.json" for backend in BACKENDS}
    return {
        backend: json.loads(file.read_text())["cells"]
        for backend, file in files.items()
        if file.exists()
    }


def one_format(name, left):
    import exports

    for cell in exports.cells([name]):
        if cell.id in left:
            with tempfile.TemporaryDirectory() as folder:
                outcome = exports.tried(cell, Path(folder))
            print(json.dumps([cell.id, outcome]), flush=True)


def all_formats(again):
    """Try what the record lacks, each format in a process of its own.

    Each cell is recorded at once: a run that was stopped goes on where it was. A cell that ends
    its process, as a converter may, is recorded as such, and the next ones are tried.
    """
    import exports

    path, versions = RESULTS / f"{exports.BACKEND}.json", exports.versions()
    RESULTS.mkdir(exist_ok=True, parents=True)
    old = json.loads(path.read_text()) if path.exists() else {}
    known = old["cells"] if old.get("versions") == versions else {}
    outcomes = {name: known[name] for name in known if not again or again not in name}

    def keep(name, outcome):
        outcomes[name] = outcome
        cells = {c.id: outcomes[c.id] for c in exports.cells() if c.id in outcomes}
        record = {"versions": versions, "cells": cells}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(record, indent=1) + "\n")
        part.replace(path)

    for kind in exports.FORMATS:
        wanted = [cell.id for cell in exports.cells([kind])]
        while left := [name for name in wanted if name not in outcomes]:
            code = try_cells(kind, left, keep)
            if code and (left := [name for name in left if name not in outcomes]):
                keep(left[0], {"result": "does not run", "why": f"ends the process ({code})"})
        print(f"{kind}: {len(wanted)} cells", flush=True)


def try_cells(kind, names, keep):
    """Try cells of one format in a process, keep each, and return how the process ended."""
    command = [sys.executable, __file__, "--format", kind]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=surroundings(),
    ) as process:
        process.stdin.write("\n".join(names))
        process.stdin.close()
        for line in process.stdout:
            if line.startswith('["'):
                keep(*json.loads(line))
        return process.wait()


def surroundings():
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    return {**quiet, **os.environ}


HEAD = """# Which exports work?

We wrote each file with `model.export`, and ran it in the format's own runtime on other inputs.
Where the file leaves batch and length open, these inputs have another batch and length. A file
is equal if its outputs are those of `predict` to 1e-5, for Adam and RMSProp to 1e-4.

"Ours" counts the layers of this package, in several ways to use them. "Keras" counts
`keras.layers.LSTM`, `GRU` and `SimpleRNN`. [Deploy](deploy.md) has the commands.

`python tests/export_matrix.py --table` writes this page from the runs of all backends.
"""


def table(results):
    """Return the table as text."""
    lines = [HEAD, "| backend | format | open sizes | ours equal | Keras equal | why not |"]
    lines.append("|---|---|---|---|---|---|")
    stateful = ["| backend | format | ours equal | Keras equal |", "|---|---|---|---|"]
    untried = []
    for backend, cells in results.items():
        groups = {}
        for name, outcome in cells.items():
            layer, form, kind, sizes = name.split("-")
            key = (kind, "stateful" if form == "stateful" else sizes)
            groups.setdefault(key, []).append((layer, outcome))
        for (kind, sizes), members in groups.items():
            outcomes = [o for _, o in members]
            if all(o["result"] == "not tried" for o in outcomes):
                why = f"- {shown(kind)} from {backend}: {reasons(outcomes)}"
                untried += [why] * (why not in untried)
                continue
            ours = [o for layer, o in members if not is_keras(layer)]
            theirs = [o for layer, o in members if is_keras(layer)]
            counts = f"{count(ours)} | {count(theirs)}"
            if sizes == "stateful":
                stateful.append(f"| {backend} | {shown(kind)} | {counts} |")
            else:
                row = (backend, shown(kind), shown(sizes), counts, reasons(ours))
                lines.append(f"| {' | '.join(row)} |")
    title = "Stateful layers, with a known batch and length (first call):"
    return "\n".join([*lines, "", title, "", *stateful, "", "Not tried:", "", *untried, ""])


def is_keras(layer):
    """Not that of exports.py, which imports a backend."""
    return layer in ("LSTM", "GRU", "SimpleRNN")


def shown(name):
    return {"static": "none"}.get(name, name.replace("_", " "))


def count(outcomes):
    return f"{sum(o['result'] == 'equal' for o in outcomes)} of {len(outcomes)}"


def reasons(outcomes):
    """Return why cells are not equal, the most frequent reason first."""
    why = [o["why"] for o in outcomes if o["result"] != "equal"]
    if not why:
        return ""
    first = max(dict.fromkeys(why), key=why.count)
    return first.replace("|", "/").replace("<", "(").replace(">", ")")


if __name__ == "__main__":
    main()
