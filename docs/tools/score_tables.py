"""Tables of what the layers score, from the results and reports of the studies."""

import itertools
import json
from pathlib import Path

from papers.presentation import markdown_table

RESULTS = Path(__file__).parents[2] / "papers" / "results"
COLUMNS = {
    "digits": "digits, accuracy",
    "digits_permuted": "permuted, accuracy",
    "adding": "adding, loss",
    "speech": "speech, mse",
    "characters": "characters, bits",
}
BACKENDS = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}


def results(name):
    return json.loads((RESULTS / name / "results.json").read_text())


def score(value, spread):
    text = f"{value:.3g}" if abs(value) >= 1 else f"{value:.3f}"
    return text if spread is None else f"{text} ± {spread:.1g}"


def all_scores():
    """Return the scores of all layers on the papers' tasks, in small budgets."""
    columns = {}
    for name in COLUMNS:
        found = results(name)
        column = {row["layer"]: score(row["test"], row["test_sd"]) for row in found["summary"]}
        column["constant output"] = score(found["constant"][found["settings"]["metric"]], None)
        columns[name] = column
    heads = [
        f"[{title}](../../papers/results/{name}/report.md)" for name, title in COLUMNS.items()
    ]
    rows = [[layer, *(columns[name][layer] for name in COLUMNS)] for layer in columns["digits"]]
    return markdown_table(["layer", *heads], rows)


def quick_look():
    """Return what the README's first command found, by backend."""
    runs = {backend: results(f"quick_look/{backend}") for backend in BACKENDS}
    rows = [
        [
            run["layer"],
            *(f"{f[i]['accuracy']:.2f}, {f[i]['darker']:.2f}" for f in runs.values()),
        ]
        for i, run in enumerate(runs["torch"])
    ]
    ratios = [f[1]["epoch_seconds"] / f[0]["epoch_seconds"] for f in runs.values()]
    rows.append(
        ["an epoch's time, accelerated : Keras's", *(f"{ratio:.2f}" for ratio in ratios)]
    )
    return markdown_table(["bright, dark", *BACKENDS.values()], rows)


def of_report(name, heading, columns=None):
    """Return the first table after a heading of a report, or the columns that are named."""
    report = (RESULTS / name / "report.md").read_text()
    lines = report.partition(f"# {heading}")[2].splitlines()
    lines = itertools.dropwhile(lambda line: not line.startswith("|"), lines)
    lines = itertools.takewhile(lambda line: line.startswith("|"), lines)
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    places = [head.index(column) for column in columns or head]
    return markdown_table(columns or head, [[row[place] for place in places] for row in rows])
