"""Tables of what the layers score, from the results files of the studies."""

import itertools
import json
import sys
from pathlib import Path
from statistics import mean, median

import numpy as np
from layer_tables import table

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from papers.sequences import first_study as real
from papers.sequences.first_study import CONTESTANTS, titled
from papers.tasks import mohamed2018, sutskever2013

RESULTS = ROOT / "papers" / "results"
COLUMNS = {
    "digits": "digits, accuracy",
    "digits_permuted": "permuted, accuracy",
    "mnist_subset": "MNIST subset, accuracy",
    "adding": "adding, loss",
    "copying": "copying, loss",
    "speech": "speech, mse",
    "characters": "characters, bits",
}
BACKENDS = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}
SEEDS = 5
ON_LONG = ("LSTM", "GRU", "Standardised-LSTM", "NAGLSTM", "Summed-LSTM", "MiniRocket")
ON_SERIES = ("linear", *real.FIRST, "MomentumGRU")
# What changes after training, its name in the results, and the sets by their channels.
SITUATIONS = (
    ("nothing changes", None, "any"),
    ("the gain falls to 1/4, one channel", "gain 1/4", "one"),
    ("the gain falls to 1/4, several channels", "gain 1/4", "several"),
    ("the gain rises to 4, one channel", "gain 4", "one"),
    ("an offset of one standard deviation", "offset", "any"),
    ("noise of half a standard deviation", "noise", "any"),
    ("30 % of the steps are lost", "lost steps", "any"),
    ("sequences take twice as many steps", "twice as long", "any"),
)


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
    return table(["layer", *heads], rows)


def of_report(name, heading, columns=None):
    """Return the first table after a heading of a report, or the columns that are named."""
    report = (RESULTS / name / "report.md").read_text()
    lines = report.partition(f"# {heading}")[2].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in taken(lines[start:])]
    head, _, *body = rows
    places = [head.index(column) for column in columns or head]
    return table(columns or head, [[row[place] for place in places] for row in body])


def taken(lines):
    return itertools.takewhile(lambda line: line.startswith("|"), lines)


def table5(task):
    """Return the errors of Sutskever et al. (2013), Table 5, beside ours, seed after seed."""
    found = results(f"sutskever_table5/{task}")
    metric = f"{found['settings']['metric']}"
    errors, rates = {}, {}
    for run in found["runs"]:
        layer, column = run["layer"].split()
        if len(run["curve"]) == run["setup"]["epochs"]:
            errors.setdefault((layer, column), []).append(f"{run['test'][metric]:.3f}")
            rates[layer, column] = f"{run['setup']['optimizer']['learning_rate']:g}"
    columns = [name for name in sutskever2013.COLUMNS if ("SimpleRNN", name) in errors]
    rows = [
        [layer, *(", ".join(errors.get((layer, name), [])) for name in columns)]
        for layer in dict.fromkeys(layer for layer, _ in errors)
    ]
    paper = dict(zip(sutskever2013.COLUMNS, sutskever2013.ERRORS[task]))
    rows.append(["learning rate", *(rates["SimpleRNN", name] for name in columns)])
    rows.append(["paper, mean of four seeds", *(f"{paper[name]:g}" for name in columns)])
    return table(["", *columns], rows)


def mcrm_adding():
    """Return Table 1 of Mohamed and Claudel (2018) on adding, beside the paper's."""
    found = results("mcrm_table1")
    paper = dict(zip(mohamed2018.LAYERS, mohamed2018.RESULTS["adding"]))
    order = [*reversed(mohamed2018.LAYERS), "AdamLSTM", "RMSPropLSTM"]
    rows = []
    for run in sorted(found["runs"], key=lambda run: (run["seed"], order.index(run["layer"]))):
        losses = [epoch["test_loss"] for epoch in run["curve"]]
        bound = paper.get(run["layer"], 0)
        first = next((f"{i}" for i, loss in enumerate(losses, 1) if loss < bound), "")
        rows.append(
            [
                run["layer"],
                f"{run['seed']}",
                f"{len(losses)} of {mohamed2018.TRAINING['adding'][-2]}",
                f"{run['test']['loss']:.1e}",
                f"{median(losses[-10:]):.1e}",
                first,
                f"{bound:.1e}" if bound else "",
            ]
        )
    constant = f"{found['constant']['loss']:.1e}"
    rows.append(["constant output", "", "", constant, constant, "", ""])
    best, last = "test loss, best epoch", "median of the last 10"
    below = "below the paper's from epoch"
    return table(["layer", "seed", "epochs", best, last, below, "paper"], rows)


def quick_look():
    """Return what the README's first command found, by backend."""
    runs = {backend: results(f"quick_look/{backend}") for backend in BACKENDS}
    rows = []
    for layer in dict.fromkeys(run["layer"] for run in runs["tensorflow"]):
        found = [
            [run["accuracy"] for run in runs[backend] if run["layer"] == layer]
            for backend in BACKENDS
        ]
        rows.append([layer, *(f"{mean(scores):.2f}" for scores in found)])
    return table(["test accuracy", *BACKENDS.values()], rows)


def real_sequences():
    """Return the tables on real sequences, by the names of their places."""
    every = real.read(RESULTS / "real_sequences", SEEDS)
    long_ones = [c for c in every.values() if "Summed-LSTM" in c["layers"]]
    series = [c for c in every.values() if not real.of_classes(c) and "GRU" in c["layers"]]
    return {
        "study": of_report("real_sequences", "Ranks over"),
        "cost": of_report("real_sequences", "What does a layer cost?"),
        "situations": situations([every[name] for name in real.whole(every)]),
        "long": by_set(long_ones, ON_LONG),
        "levels": by_set(series, ON_SERIES),
    }


def named(layer):
    name, *form = titled(layer).split(", ")
    return ", ".join([f"`{name}`", *form])


def by_set(contents, layers):
    """Return what layers score on sets, a row each."""
    rows = []
    for content in contents:
        task = content["settings"]["task"]
        row = [task["name"], str(task["steps"]), str(task["samples"][0])]
        row.append(f"{task['chance'][task['metric']]:.2g}")
        for layer in layers:
            found = real.scores(content, layer)
            row.append(f"{found.mean():.2g} ± {found.std(ddof=1):.1g}")
        rows.append(row)
    return table(["set", "steps", "training samples", "chance", *map(named, layers)], rows)


def situations(done):
    """Return which layer keeps most accuracy when something changes after training."""
    sets = [content for content in done if real.of_classes(content)]
    rows = []
    for words, change, where in SITUATIONS:
        contents = [one for one in sets if where in ("any", channels(one))]
        if where == "several":
            # Where it can, LayerNormalization is the strongest plain answer to a gain.
            contents = [one for one in contents if "LayerNorm-LSTM" in one["layers"]]
        means = {
            layer: np.mean([real.scores(one, layer, change).mean() for one in contents])
            for layer in CONTESTANTS
            if all(layer in one["layers"] for one in contents)
            and all(change is None or real.has(one, layer, change) for one in contents)
        }
        row = [words, str(len(contents)), f"{means['LSTM']:.2f}", f"{means['GRU']:.2f}"]
        for source in ("plain", "ours"):
            best = max((n for n in means if n in real.of_source(source)), key=means.get)
            row.append(f"{means[best]:.2f} ({named(best)})")
        rows.append(row)
    head = ["after training", "sets", "`LSTM`", "`GRU`", "best plain layer", "best of ours"]
    return table(head, rows)


def channels(content):
    return "one" if content["settings"]["task"]["channels"] == 1 else "several"
