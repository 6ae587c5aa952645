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
    parser.add_argument("--cells", nargs="+", help="try these, and print them as JSON lines")
    options = parser.parse_args()
    if options.table:
        files = {backend: RESULTS / f"{backend}.json" for backend in BACKENDS}
        TABLE.write_text(
            table({b: json.loads(f.read_text()) for b, f in files.items() if f.exists()})
        )
    elif options.cells:
        try_here(options.cells)
    else:
        try_all()


def try_here(names):
    """Try cells in this process, which a converter may end."""
    import exports

    for cell in exports.cells():
        if cell.id in names:
            with tempfile.TemporaryDirectory() as folder:
                outcome = exports.tried(cell, Path(folder))
            print(json.dumps([cell.id, outcome]), flush=True)


def try_all():
    """Try what the record lacks, each format in a process of its own, and record each cell."""
    import exports

    path = RESULTS / f"{exports.BACKEND}.json"
    path.parent.mkdir(exist_ok=True, parents=True)
    outcomes = json.loads(path.read_text()) if path.exists() else {}
    for kind in exports.FORMATS:
        names = [cell.id for cell in exports.cells([kind])]
        while left := [name for name in names if name not in outcomes]:
            command = [sys.executable, __file__, "--cells", *left]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                for line in process.stdout:
                    if line.startswith('["'):
                        name, outcomes[name] = json.loads(line)
                        path.write_text(json.dumps(outcomes, indent=1) + "\n")
            ended = next((name for name in left if name not in outcomes), None)
            if ended:
                why = f"ends the process ({process.returncode})"
                outcomes[ended] = {"result": "does not run", "why": why}
        print(f"{kind}: {len(names)} cells", flush=True)


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
