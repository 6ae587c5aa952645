"""The report and the picture of `hessian_free.py`, from what results.json holds."""

import statistics

from matplotlib.figure import Figure

from papers.presentation import COLORS, markdown_table, tidy

TITLES = {
    "adding": "adding, {steps} steps, a plain network of {units} tanh units",
    "curves": "curves, the deep autoencoder",
}
NAMES = {"adding": "Adding", "curves": "Autoencoder of curves"}
SCORES = {
    "adding": "share of test sequences with an error above 0.04",
    "curves": "squared error summed over pixels, the mean of 5,000 training images",
}
# A run with this score or less has learned.
GOOD = {"adding": 0.1, "curves": 12.0}


def report_of(content, notes=""):
    """Return the report in Markdown, of what results.json holds and the text of notes.md."""
    settings, rows = content["settings"], rows_of(content)
    task = settings["task"]
    loads = [run["load"] for run in content["runs"] if "load" in run]
    under = (
        f", load average of the machine {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    )
    parts = [
        f"# Hessian-free optimisation: {TITLES[task].format(**settings)}",
        "```sh\n" + "\n".join(content["commands"]) + "\n```",
        f"Each run has {settings['seconds']} seconds of CPU time for its updates; compiling "
        f"and evaluating do not count. Score: {SCORES[task]}. keras {settings['keras']}, "
        f"{settings['backend']} {settings[settings['backend']]}, {settings['device']}, "
        f"{settings['cores']} cores, OMP_NUM_THREADS {settings['OMP_NUM_THREADS']}{under}.",
        score_table(rows, task),
        "A row is one sample in one gradient, or in one product with the curvature.",
        "![Scores over CPU time](curves.png)",
        notes,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def rows_of(content):
    """Return the runs by method and learning rate, the first seed first."""
    found = {}
    for run in sorted(content["runs"], key=lambda run: run["seed"]):
        found.setdefault((run["method"], run["learning_rate"]), []).append(run)
    return found


def last_score(run):
    """Return the score at the end, infinite where the run diverged."""
    return float("inf") if run["diverged"] else run["curve"][-1][2]


def seconds_to(run, score):
    """Return the CPU time of the first point with a score as good as that, as text."""
    return next((f"{seconds:.0f}" for seconds, _, at in run["curve"] if at <= score), "-")


def score_table(rows, task):
    """Return one row for each method and learning rate, as `rows_of` returns them."""
    head = ["method", "learning rate", "updates", "CG steps", "million rows"]
    head.append(f"seconds to {GOOD[task]:g}, by seed")
    cells = []
    for (method, rate), runs in rows.items():
        updates, cg_steps, samples = (
            statistics.fmean(run[name] for run in runs)
            for name in ("updates", "cg_steps", "rows")
        )
        cells.append(
            [
                method,
                f"{rate:g}",
                f"{updates:,.0f}",
                f"{cg_steps:,.0f}",
                f"{samples / 1e6:.2f}",
                ", ".join(seconds_to(run, GOOD[task]) for run in runs),
                *(f"{last_score(run):.3g}" for run in runs),
            ]
        )
    seeds = max(map(len, rows.values()))
    return markdown_table([*head, *(f"seed {seed}" for seed in range(seeds))], cells)


def figures_of(content):
    """Draw the scores over CPU time: methods at their best rate, the others in grey."""
    rows, task = rows_of(content), content["settings"]["task"]
    means = {row: statistics.fmean(map(last_score, runs)) for row, runs in rows.items()}
    best = {}
    for method, rate in sorted(means, key=means.get):
        best.setdefault(method, rate)
    colors = dict(zip(dict.fromkeys(method for method, _ in rows), COLORS))
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    for (method, rate), runs in rows.items():
        look = {"color": "0.8", "linewidth": 1, "zorder": 1}
        label = "other learning rates"
        if rate == best[method]:
            look = {"color": colors[method], "linewidth": 1.6}
            label = f"{method} at {rate:g}"
        for run in runs:
            seconds, _, scores = zip(*run["curve"])
            axes.plot(seconds, scores, label=label, **look)
    ends = "; ".join(f"{m} {means[m, rate]:.2g}" for m, rate in best.items())
    figure.suptitle(f"{NAMES[task]}, after equal CPU time: {ends}")
    axes.set(
        xlabel="CPU seconds of training",
        ylabel=SCORES[task].split(",")[0],
        yscale="log" if task == "curves" else "linear",
    )
    lines, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, lines))  # each label of several seeds once
    # Beside the lines, some of which reach every corner.
    place = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
    axes.legend(once.values(), once, frameon=False, **place)
    tidy(axes)
    return {"curves.png": figure}
