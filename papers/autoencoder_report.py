"""Tables and figure of deep_autoencoders.py, beside the numbers of the paper."""

import itertools
import math

from matplotlib.figure import Figure

from papers.presentation import BLUE, GREEN, VERMILION, markdown_table, tidy

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
# The momentum of the finish, in the paper and here.
LOW = 0.9
# Errors that differ by less than this share count as equal.
ALIKE = 0.05
COLORS = {"SGD": VERMILION, "CM": GREEN, "NAG": BLUE}


def report_of(results, notes=""):
    """Return the report in Markdown."""
    runs, settings = results["runs"], results["settings"]
    parts = [
        f"# Deep autoencoders: {settings['dataset']}, {settings['updates']:,} updates",
        "\n".join(["```sh", *results["commands"], "```"]),
        conditions(settings),
        errors_table(runs, settings),
        order_of(best_runs(runs), settings),
        finish_table(best_runs(runs), settings),
        scales_table(runs, settings["dataset"]),
        notes,
        *(f"![{name.removesuffix('.png')}]({name})" for name in figures_of(results)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def conditions(settings):
    """Return what holds for all runs, in words."""
    machine = ", ".join(
        f"{name} {settings[name]}"
        for name in ("keras", settings["backend"], "device")
        if name in settings
    )
    return (
        f"Squared error summed over pixels, the mean over {settings['images']:,} training "
        f"images, with the best of the learning rates tried. {machine}. The loss is "
        f"{settings['loss']}, the code {settings['code']}. The paper's runs have 750,000 "
        f"updates. Momentum rises every {settings['period']} updates (the paper: 250) and, "
        f"before the finish, to no more than {reached(settings):.5g}."
    )


def reached(settings):
    """Return the momentum of equation 5 at the last update before the finish."""
    steps = (settings["updates"] - settings["finish"] - 1) // settings["period"] + 1
    return 1 - 0.5 / steps


def errors_table(runs, settings):
    """Return Table 1, ours and the paper's."""
    paper, most = TABLE_1[settings["dataset"]], reached(settings)
    rates = {}
    for run in runs:
        rates.setdefault((run["method"], run["momentum"]), set()).add(run["learning_rate"])
    rows = []
    for run in best_runs(runs):
        key = run["method"], run["momentum"]
        others = sorted(rates[key] - {run["learning_rate"]}, reverse=True)
        rows.append(
            [
                run["method"],
                f"{run['momentum']:g}"
                + (f", {most:.5g} here" if run["momentum"] > most else ""),
                f"{run['learning_rate']:g}",
                ", ".join(f"{rate:g}" for rate in others) or "-",
                number_of(run["error"]),
                number_of(paper.get(key)),
            ]
        )
    head = ["method", "largest momentum", "learning rate", "others tried", "error"]
    return markdown_table([*head, "paper, Table 1"], rows)


def best_runs(runs):
    """Return the best run of each method and momentum, of the scale nearest to 1."""
    scale = min((run["scale"] for run in runs), key=lambda s: abs(math.log(s)))
    groups = {}
    for run in runs:
        if run["scale"] == scale:
            groups.setdefault((run["method"], run["momentum"]), []).append(run)
    return [min(group, key=final_error) for group in groups.values()]


def order_of(rows, settings):
    """Return which differences between the methods of Table 1 hold here, as a list."""
    best, theirs = {}, {}
    for run in sorted(rows, key=final_error):
        best.setdefault(run["method"], final_error(run))
    for (name, _), error in TABLE_1[settings["dataset"]].items():
        theirs[name] = min(error, theirs.get(name, math.inf))
    lines = []
    for method, other in itertools.combinations(sorted(theirs, key=theirs.get), 2):
        if method in best and other in best:
            lines.append(
                f"- {method} better than {other} ({theirs[method]:g} against "
                f"{theirs[other]:g} in the paper): {verdict(best[method], best[other])}."
            )
    if not lines:
        return ""
    return "\n".join(["Does the order of the methods hold, each at its best?", "", *lines])


def verdict(error, other):
    """Return whether one error is less than another."""
    told = f"{number_of(error)} against {number_of(other)}"
    if error == other or abs(error - other) < ALIKE * other:
        return f"**no**, {told} differ by less than {ALIKE:.0%}"
    return f"**yes**, {told}" if error < other else f"**the other way round**, {told}"


def finish_table(rows, settings):
    """Return Table 2, ours and the paper's, for the best momentum of Nesterov's form.

    Runs whose momentum is never above that of the finish have nothing lowered in it.
    """
    finishes = [
        run
        for run in rows
        if run["method"] == "NAG" and run["momentum"] > LOW and run["before"] is not None
    ]
    if not finishes:
        return ""
    best = min(finishes, key=final_error)
    before, after = TABLE_2[settings["dataset"]]
    return "\n\n".join(
        [
            f"The last {settings['finish']:,} updates have a momentum of at most {LOW:g}:",
            markdown_table(
                [f"NAG, {best['momentum']:g}", "here", "paper, Table 2"],
                [
                    ["before", number_of(best["before"]), number_of(before)],
                    ["after", number_of(best["error"]), number_of(after)],
                ],
            ),
        ]
    )


def by_scale(runs):
    """Return the runs alike in all but the scale that have most scales, the best of such."""
    groups = {}
    for run in runs:
        key = run["method"], run["momentum"], run["learning_rate"]
        groups.setdefault(key, []).append(run)
    most = max(groups.values(), key=lambda group: (len(group), -min(map(final_error, group))))
    return sorted(most, key=lambda run: run["scale"])


def scales_table(runs, dataset):
    """Return Table 3, ours and the paper's, where there are several scales."""
    mine = by_scale(runs)
    if len(mine) == 1:
        return ""
    paper = TABLE_3 if dataset == "curves" else {}
    cells = [
        [f"{r['scale']:g}", number_of(r["error"]), number_of(paper.get(r["scale"]))]
        for r in mine
    ]
    text = (
        f"By the scale of the initial weights, {name_of(mine[0])}, learning rate "
        f"{mine[0]['learning_rate']:g}:"
    )
    return "\n\n".join([text, markdown_table(["scale", "error", "paper, Table 3"], cells)])


def name_of(run):
    return f"{run['method']} {run['momentum']:g}" if run["momentum"] else run["method"]


def final_error(run):
    return math.inf if run["diverged"] else run["error"]


def figures_of(results):
    """Return the pictures by the names of their files."""
    runs, settings = results["runs"], results["settings"]
    figures = {"curves.png": curves_figure(runs, settings)}
    if len(by_scale(runs)) > 1:
        figures["scales.png"] = scales_figure(by_scale(runs), settings["dataset"])
    return figures


def number_of(error):
    """Return an error as text; None is that of a run that diverged, or that there is none."""
    return "-" if error is None else f"{error:.3g}"


def curves_figure(runs, settings):
    """Draw errors over updates, and the last ones over the largest momentum."""
    rows = best_runs(runs)
    momenta = sorted({run["momentum"] for run in rows if run["momentum"]})
    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    figure.suptitle(f"Deep autoencoder, {settings['dataset']}: {finding(rows, settings)}")
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    best = best_of_methods(rows)
    for run in rows:
        if run is best[run["method"]]:
            look = {"color": COLORS[run["method"]], "label": name_of(run), "zorder": 3}
        else:
            look = {"color": "0.8", "label": "_other momenta"}
        left.semilogy(*zip(*run["curve"]), **look)
    low = settings["updates"] - settings["finish"]
    if max(momenta, default=0) > LOW:
        place = {"xycoords": ("data", "axes fraction"), "fontsize": 8}
        left.axvline(low, color="0.6", linewidth=0.8)
        left.annotate("low momentum", (low, 0.97), **place)
    left.set(xlabel="update", ylabel="squared error of an image")
    left.set_title("on the way; grey: other momenta")
    left.legend(frameon=False, ncols=2, fontsize=9)
    for method, aside in (("CM", -0.05), ("NAG", 0.05)):
        mine = {run["momentum"]: run["error"] for run in rows if run["method"] == method}
        here = [mine.get(momentum) for momentum in momenta]
        paper = [TABLE_1[settings["dataset"]].get((method, m)) for m in momenta]
        for errors, look in ((here, "o-"), (paper, "x:")):
            known = [(x + aside, error) for x, error in enumerate(errors) if error is not None]
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
    right.set_xlim(-0.4, len(momenta) - 0.6)  # both forms stand beside each other
    right.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    tidy(left)
    tidy(right)
    return figure


def finding(rows, settings):
    """Return the best error of each method, the least first."""
    best = best_of_methods(rows)
    told = ", ".join(f"{method} {number_of(run['error'])}" for method, run in best.items())
    return f"best error after {settings['updates']:,} updates: {told}"


def best_of_methods(rows):
    """Return the best run of each method, the least error first."""
    best = {}
    for run in sorted(rows, key=final_error):
        best.setdefault(run["method"], run)
    return best


def scales_figure(runs, dataset):
    """Draw the error at the end over the scale of the initial weights."""
    figure = Figure(figsize=(6.2, 4.4), layout="constrained")
    axes = figure.subplots()
    mine = {run["scale"]: run["error"] for run in runs if run["error"] is not None}
    axes.loglog(list(mine), list(mine.values()), "o-", color=BLUE, label="here")
    if dataset == "curves":
        axes.loglog(*zip(*TABLE_3.items()), "x:", color="black", label="paper, Table 3")
    scales = sorted({*mine, *(TABLE_3 if dataset == "curves" else ())})
    axes.set_xticks(scales, [f"{scale:g}" for scale in scales])
    axes.minorticks_off()
    best = min(mine, key=mine.get)
    axes.set(
        title=f"{dataset}, {name_of(runs[0])}: the error is least at scale {best:g}",
        xlabel="scale of the initial weights",
        ylabel="squared error of an image",
    )
    axes.legend(frameon=False)
    tidy(axes)
    return figure
