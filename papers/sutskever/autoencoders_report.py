"""The tables and pictures of `autoencoders.py`, beside the numbers of the paper."""

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
}
# Before the finish with its lower momentum, and after it.
TABLE_2 = {"curves": (0.096, 0.074), "mnist": (1.20, 0.73)}
# By the scale of the initial weights, on curves.
TABLE_3 = {0.25: 16, 0.5: 16, 1: 0.074, 2: 0.083, 4: 0.35}
# The momentum of the finish, in the paper and here.
LOW = 0.9
COLORS = {"SGD": VERMILION, "CM": GREEN, "NAG": BLUE}


def report_of(results, notes=""):
    """Return the report in Markdown, of what results.json holds and the text of notes.md."""
    runs, settings = results["runs"], results["settings"]
    rows = best_rates(runs)
    parts = [
        f"# Deep autoencoders: {settings['dataset']}, {settings['updates']:,} updates",
        "\n".join(["```sh", *results["commands"], "```"]),
        conditions(settings),
        table_1(runs, rows, settings),
        table_2(rows, settings),
        table_3(by_scale(runs), settings),
        notes,
        *(f"![{name.removesuffix('.png')}]({name})" for name in figures_of(results)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def conditions(settings):
    """Return what holds for all runs, in words."""
    return (
        f"Squared error summed over pixels, the mean over {settings['images']:,} training "
        f"images, with the best of the learning rates tried. keras {settings['keras']}, "
        f"{settings['backend']} {settings[settings['backend']]}, device {settings['device']}. "
        "The loss is the cross-entropy. The paper's runs have 750,000 updates. Momentum rises "
        f"every {settings['period']} updates (the paper: 250) and, before the finish, to no "
        f"more than {reached(settings):.5g}."
    )


def reached(settings):
    """Return the momentum of equation 5 at the last update before the finish."""
    steps = (settings["updates"] - settings["finish"] - 1) // settings["period"] + 1
    return 1 - 0.5 / steps


def table_1(runs, rows, settings):
    """Return the error of each method and momentum at its best rate, beside the paper's."""
    paper, most, cells = TABLE_1[settings["dataset"]], reached(settings), []
    for run in rows:
        method, momentum = key = run["method"], run["momentum"]
        tried = {r["learning_rate"] for r in runs if (r["method"], r["momentum"]) == key}
        others = sorted(tried - {run["learning_rate"]}, reverse=True)
        cells.append(
            [
                method,
                f"{momentum:g}" + (f", {most:.5g} here" if momentum > most else ""),
                f"{run['learning_rate']:g}",
                ", ".join(f"{rate:g}" for rate in others) or "-",
                number_of(run["error"]),
                number_of(paper.get(key)),
            ]
        )
    head = ["method", "largest momentum", "learning rate", "others tried", "error"]
    return markdown_table([*head, "paper, Table 1"], cells)


def table_2(rows, settings):
    """Return the errors around the finish, of the best run with a momentum that it lowers."""
    lowered = [run for run in rows if run["momentum"] > LOW and run["method"] == "NAG"]
    best = min(lowered, key=final_error, default={"before": None})
    if best["before"] is None:
        return ""
    before, after = map(number_of, TABLE_2[settings["dataset"]])
    text = f"The last {settings['finish']:,} updates have a momentum of at most {LOW:g}:"
    table = markdown_table(
        [name_of(best), "here", "paper, Table 2"],
        [
            ["before", number_of(best["before"]), before],
            ["after", number_of(best["error"]), after],
        ],
    )
    return f"{text}\n\n{table}"


def table_3(runs, settings):
    """Return the errors by scale, where there are several."""
    if len(runs) == 1:
        return ""
    paper = TABLE_3 if settings["dataset"] == "curves" else {}
    text = (
        f"By the scale of the initial weights, {name_of(runs[0])}, learning rate "
        f"{runs[0]['learning_rate']:g}:"
    )
    cells = [
        [f"{r['scale']:g}", number_of(r["error"]), number_of(paper.get(r["scale"]))]
        for r in runs
    ]
    return f"{text}\n\n{markdown_table(['scale', 'error', 'paper, Table 3'], cells)}"


def best_rates(runs):
    """Return the best run of each method and momentum, of scale 1 or the one next to it."""
    scale = min((run["scale"] for run in runs), key=lambda s: abs(math.log(s)))
    best = {}
    for run in runs:
        if run["scale"] == scale:
            key = run["method"], run["momentum"]
            best[key] = min(best.get(key, run), run, key=final_error)
    return list(best.values())


def by_scale(runs):
    """Return the runs alike in all but the scale that have most scales, the best of such."""
    groups = {}
    for run in runs:
        groups.setdefault((run["method"], run["momentum"], run["learning_rate"]), []).append(
            run
        )
    most = max(groups.values(), key=lambda group: (len(group), -min(map(final_error, group))))
    return sorted(most, key=lambda run: run["scale"])


def final_error(run):
    return math.inf if run["diverged"] else run["error"]


def name_of(run):
    return f"{run['method']} {run['momentum']:g}" if run["momentum"] else run["method"]


def number_of(error):
    """Return an error as text; None is that of a run that diverged, or that there is none."""
    return "-" if error is None else f"{error:.3g}"


def figures_of(results):
    """Return the pictures by the names of their files."""
    runs, settings = results["runs"], results["settings"]
    figures = {"curves.png": curves_figure(best_rates(runs), settings)}
    if len(by_scale(runs)) > 1:
        figures["scales.png"] = scales_figure(by_scale(runs), settings)
    return figures


def curves_figure(rows, settings):
    """Draw errors over updates, and the last ones over the largest momentum."""
    best = {}
    for run in sorted(rows, key=final_error):
        best.setdefault(run["method"], run)
    told = ", ".join(f"{method} {number_of(run['error'])}" for method, run in best.items())
    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    figure.suptitle(
        f"Deep autoencoder, {settings['dataset']}: "
        f"best error after {settings['updates']:,} updates: {told}"
    )
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    for run in rows:
        look = {"color": "0.8"}
        if run is best[run["method"]]:
            look = {"color": COLORS[run["method"]], "label": name_of(run), "zorder": 3}
        left.semilogy(*zip(*run["curve"]), **look)
    left.axvline(settings["updates"] - settings["finish"], color="0.6", linewidth=0.8)
    left.set(xlabel="update", ylabel="squared error of an image")
    left.set_title("on the way; grey: other momenta; vertical line: the finish", fontsize=10)
    left.legend(frameon=False, ncols=2, fontsize=9)
    draw_ends(right, rows, TABLE_1[settings["dataset"]])
    tidy(left)
    tidy(right)
    return figure


def draw_ends(axes, rows, paper):
    """Draw the errors at the end by the largest momentum, ours and the paper's."""
    here = {(run["method"], run["momentum"]): run["error"] for run in rows}
    momenta = sorted({momentum for _, momentum in here if momentum})
    for errors, look, where in ((here, "o-", ""), (paper, "x:", ", paper")):
        if errors.get(("SGD", 0)) is not None:
            color, label = COLORS["SGD"], f"SGD{where}"
            axes.axhline(errors["SGD", 0], color=color, linestyle=look[1], label=label)
        for method, aside in (("CM", -0.05), ("NAG", 0.05)):
            places = enumerate(errors.get((method, momentum)) for momentum in momenta)
            ends = [(x + aside, error) for x, error in places if error is not None]
            if ends:
                axes.plot(*zip(*ends), look, color=COLORS[method], label=f"{method}{where}")
    axes.set(yscale="log", xlabel="largest momentum", title="at the end")
    axes.set_xticks(range(len(momenta)), [f"{momentum:g}" for momentum in momenta])
    axes.set_xlim(-0.4, max(len(momenta), 1) - 0.6)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))


def scales_figure(runs, settings):
    """Draw the error at the end over the scale of the initial weights."""
    figure = Figure(figsize=(6.2, 4.4), layout="constrained")
    axes = figure.subplots()
    mine = {run["scale"]: run["error"] for run in runs if not run["diverged"]}
    axes.loglog(list(mine), list(mine.values()), "o-", color=BLUE, label="here")
    if settings["dataset"] == "curves":
        axes.loglog(*zip(*TABLE_3.items()), "x:", color="black", label="paper, Table 3")
    axes.set_xticks(list(mine), [f"{scale:g}" for scale in mine])
    axes.minorticks_off()
    best = min(mine, key=mine.get)
    axes.set(
        title=f"{settings['dataset']}, {name_of(runs[0])}: the error is least at {best:g}",
        xlabel="scale of the initial weights",
        ylabel="squared error of an image",
    )
    axes.legend(frameon=False)
    tidy(axes)
    return figure
