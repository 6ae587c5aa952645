"""The report and the picture of `autoencoders.py`, beside the numbers of the paper."""

import math

from matplotlib.figure import Figure

from papers.presentation import BLUE, GREEN, VERMILION, markdown_table, tidy
from papers.tasks.paper_results import table

# Table 1: squared errors after 750,000 updates.
TABLE_1 = {
    (row["dataset"], row["method"], row["momentum"]): row["error"]
    for row in table("sutskever2013_autoencoders")
}
# Before the finish with its lower momentum, and after it.
TABLE_2 = {"curves": (0.096, 0.074), "mnist": (1.20, 0.73)}
# By the scale of the initial weights, on curves.
TABLE_3 = {0.25: 16, 0.5: 16, 1: 0.074, 2: 0.083, 4: 0.35}
COLORS = {"SGD": VERMILION, "CM": GREEN, "NAG": BLUE}


def report_of(results, notes=""):
    """Return the report in Markdown, of what results.json holds and the text of notes.md."""
    settings = results["settings"]
    dataset = settings["dataset"]
    before, after = TABLE_2[dataset]
    parts = [
        f"# Deep autoencoders: {dataset}, {settings['updates']:,} updates",
        "\n".join(["```sh", *results["commands"], "```"]),
        f"Squared error summed over pixels, the mean over {settings['images']:,} training "
        f"images. keras {settings['keras']}, {settings['backend']} "
        f"{settings[settings['backend']]}, device {settings['device']}. The loss is the "
        "cross-entropy. The paper's runs have 750,000 updates. Momentum rises every "
        f"{settings['period']} updates (the paper: 250) and, before the finish, to no more "
        f"than {reached(settings):.5g}. It is at most 0.9 in the finish, the last "
        f"{settings['finish']:,} updates; in the paper's Table 2 this takes NAG from "
        f"{before:g} to {after:g}.",
        table_of(results["runs"], dataset),
        "![curves](curves.png)",
        notes,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def reached(settings):
    """Return the momentum of equation 5 at the last update before the finish."""
    steps = (settings["updates"] - settings["finish"] - 1) // settings["period"] + 1
    return 1 - 0.5 / steps


def table_of(runs, dataset):
    """Return a row for each run, beside the paper's Tables 1 and 3."""
    scaled = TABLE_3 if dataset == "curves" else {}
    cells = []
    for run in runs:
        paper = number_of(TABLE_1.get((dataset, run["method"], run["momentum"])))
        if run["scale"] != 1:
            paper = f"{number_of(scaled.get(run['scale']))} (Table 3)"
        numbers = (run[name] for name in ("momentum", "learning_rate", "scale"))
        errors = number_of(run["before"]), number_of(run["error"])
        cells.append([run["method"], *(f"{n:g}" for n in numbers), *errors, paper])
    head = ["method", "largest momentum", "learning rate", "scale of weights"]
    return markdown_table([*head, "before the finish", "error", "paper, Table 1"], cells)


def number_of(error):
    """Return an error as text; None is that of a run that diverged, or that there is none."""
    return "-" if error is None else f"{error:.3g}"


def figures_of(results):
    """Draw errors over updates, of scale 1: the best of each method in colour."""
    settings = results["settings"]
    runs = [run for run in results["runs"] if run["scale"] == 1]
    best = {}
    for run in sorted(runs, key=lambda run: math.inf if run["diverged"] else run["error"]):
        best.setdefault(run["method"], run)
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    for run in runs:
        look = {"color": "0.8"}
        if run is best[run["method"]]:
            name = " ".join(
                [run["method"], *([f"{run['momentum']:g}"] if run["momentum"] else [])]
            )
            look = {"color": COLORS[run["method"]], "label": name, "zorder": 3}
        axes.semilogy(*zip(*run["curve"]), **look)
    axes.axvline(settings["updates"] - settings["finish"], color="0.6", linewidth=0.8)
    ends = ", ".join(f"{name} {number_of(run['error'])}" for name, run in best.items())
    axes.set(
        title=f"Autoencoders of {settings['dataset']}, {settings['updates']:,} updates: {ends}",
        xlabel="update; at the vertical line the finish begins, grey: other runs",
        ylabel="squared error of an image",
    )
    axes.legend(frameon=False)
    tidy(axes)
    return {"curves.png": figure}
