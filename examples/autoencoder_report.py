"""Tables and figure of deep_autoencoders.py, beside the numbers of the paper."""

import math

from matplotlib.figure import Figure

# Sutskever, Martens, Dahl and Hinton (2013): squared errors after 750,000 updates.
TABLE_1 = {
    "curves": {
        ("SGD", 0): 0.48,
        ("CM", 0.9): 0.15,
        ("CM", 0.99): 0.10,
        ("CM", 0.995): 0.10,
        ("CM", 0.999): 0.10,
        ("NAG", 0.9): 0.16,
        ("NAG", 0.99): 0.096,
        ("NAG", 0.995): 0.091,
        ("NAG", 0.999): 0.074,
    },
    "mnist": {
        ("SGD", 0): 2.1,
        ("CM", 0.9): 1.0,
        ("CM", 0.99): 0.77,
        ("CM", 0.995): 0.84,
        ("CM", 0.999): 0.90,
        ("NAG", 0.9): 1.0,
        ("NAG", 0.99): 0.73,
        ("NAG", 0.995): 0.75,
        ("NAG", 0.999): 0.80,
    },
    "faces": {
        ("SGD", 0): 36.4,
        ("CM", 0.9): 15.3,
        ("CM", 0.99): 8.7,
        ("CM", 0.995): 8.3,
        ("CM", 0.999): 9.3,
        ("NAG", 0.9): 14.2,
        ("NAG", 0.99): 8.5,
        ("NAG", 0.995): 7.8,
        ("NAG", 0.999): 7.7,
    },
}
TABLE_2 = {"curves": (0.096, 0.074), "mnist": (1.20, 0.73), "faces": (10.83, 7.7)}
TABLE_3 = {0.25: 16, 0.5: 16, 1: 0.074, 2: 0.083, 4: 0.35}  # curves
COLORS = {"SGD": "#D55E00", "CM": "#009E73", "NAG": "#0072B2"}
STYLES = [":", "-.", "--", "-"]


def report_of(runs, settings, command):
    """Return the report in Markdown."""
    dataset, updates = settings["dataset"], settings["updates"]
    rows = best_runs(runs)
    steps = (updates - settings["finish"]) // settings["period"] + 1
    title = f"# Deep autoencoders: {dataset}, {updates:,} updates"
    machine = ", ".join(
        f"{name} {settings[name]}"
        for name in ("keras", settings["backend"], "device")
        if name in settings
    )
    first = [
        f"`{command}`",
        f"Squared error summed over pixels, the mean over {settings['images']:,} training "
        f"images, with the best of the learning rates tried. {machine}. The loss is "
        f"{settings['loss']}, the code {settings['code']}. The paper's runs have 750,000 "
        f"updates. Momentum rises every {settings['period']} updates (the paper: 250) and, "
        f"before the finish, to at most {1 - 0.5 / steps:.4f}.",
        table(
            ["method", "largest momentum", "learning rate", "error", "paper, Table 1"],
            [
                [
                    run["method"],
                    f"{run['momentum']:g}",
                    f"{run['learning_rate']:g}",
                    number_of(run["error"]),
                    number_of(TABLE_1[dataset].get((run["method"], run["momentum"]))),
                ]
                for run in rows
            ],
        ),
        order_of(rows, dataset),
    ]
    finishes = [run for run in rows if run["method"] == "NAG" and run["before"] is not None]
    if finishes:
        best = min(finishes, key=final_error)
        before, after = TABLE_2[dataset]
        heading = f"NAG, {best['momentum']:g}"
        first += [
            f"The last {settings['finish']:,} updates have a momentum of at most 0.9:",
            table(
                [heading, "here", "paper, Table 2"],
                [
                    ["before", number_of(best["before"]), number_of(before)],
                    ["after", number_of(best["error"]), number_of(after)],
                ],
            ),
        ]
    scales = sorted({run["scale"] for run in runs})
    if len(scales) > 1:
        by_scale = {s: [run for run in runs if run["scale"] == s] for s in scales}
        cells = [
            [
                f"{scale:g}",
                number_of(min(by_scale[scale], key=final_error)["error"]),
                number_of(TABLE_3.get(scale) if dataset == "curves" else None),
            ]
            for scale in scales
        ]
        first += [
            "By the scale of the initial weights, the best of all runs with it:",
            table(["scale", "error", "paper, Table 3"], cells),
        ]
    return "\n\n".join([title, *first, "![Errors over updates, and at the end](curves.png)\n"])


def best_runs(runs):
    """Return the best run of each method and momentum, of the scale nearest to 1."""
    scale = min((run["scale"] for run in runs), key=lambda s: abs(math.log(s)))
    groups = {}
    for run in runs:
        if run["scale"] == scale:
            groups.setdefault((run["method"], run["momentum"]), []).append(run)
    return [min(group, key=final_error) for group in groups.values()]


def order_of(rows, dataset):
    """Return a sentence: the methods from the least error to the largest, here and there."""
    best = {}
    for run in sorted(rows, key=final_error):
        best.setdefault(run["method"], run)
    here = ", ".join(f"{name} {number_of(run['error'])}" for name, run in best.items())
    there = {}
    for (name, _), error in sorted(TABLE_1[dataset].items(), key=lambda item: item[1]):
        there.setdefault(name, error)
    paper = ", ".join(f"{name} {number_of(error)}" for name, error in there.items())
    return f"From best to worst: {here}. In the paper: {paper}."


def final_error(run):
    return math.inf if run["diverged"] else run["error"]


def number_of(error):
    """Return an error as text; None is that of a run that diverged, or that there is none."""
    return "-" if error is None else f"{error:.3g}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def curves_figure(runs, settings):
    """Draw errors over updates, and the last ones over the largest momentum."""
    rows = best_runs(runs)
    momenta = sorted({run["momentum"] for run in rows if run["momentum"]})
    figure = Figure(figsize=(12, 4.8), layout="constrained")
    figure.suptitle(f"Deep autoencoder, {settings['dataset']}: squared error of an image")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    for run in rows:
        number = momenta.index(run["momentum"]) if run["momentum"] else -1
        label = f"{run['method']} {run['momentum']:g}" if run["momentum"] else run["method"]
        style = STYLES[number % len(STYLES)]
        left.semilogy(*zip(*run["curve"]), style, color=COLORS[run["method"]], label=label)
    low = settings["updates"] - settings["finish"]
    left.axvline(low, color="0.6", linewidth=0.8)
    left.annotate("low momentum", (low, 0.97), xycoords=("data", "axes fraction"), fontsize=8)
    left.set(xlabel="update", title="on the way, with the best learning rate")
    left.legend(frameon=False, ncols=2, fontsize=8)
    for method in ("CM", "NAG"):
        mine = {run["momentum"]: run["error"] for run in rows if run["method"] == method}
        here = [mine.get(momentum) for momentum in momenta]
        paper = [TABLE_1[settings["dataset"]].get((method, m)) for m in momenta]
        for errors, look in ((here, "o-"), (paper, "x:")):
            known = [(x, error) for x, error in enumerate(errors) if error is not None]
            if known:
                name = "" if errors is here else ", paper"
                right.plot(*zip(*known), look, color=COLORS[method], label=f"{method}{name}")
    for run in rows:
        if run["method"] == "SGD" and run["error"] is not None:
            right.axhline(run["error"], color=COLORS["SGD"], label="SGD")
    right.axhline(
        TABLE_1[settings["dataset"]]["SGD", 0],
        color=COLORS["SGD"],
        linestyle=":",
        label="SGD, paper",
    )
    right.set(yscale="log", xlabel="largest momentum", title="at the end")
    right.set_xticks(range(len(momenta)), [f"{momentum:g}" for momentum in momenta])
    right.margins(x=0.08)
    right.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    return figure
