"""The report and the picture of `hessian_free.py`, from what results.json holds."""

import statistics

from matplotlib.figure import Figure

from papers.hybrid_phases import HYBRID, NAG_BATCH, NAG_UPDATES, row_products, times_nag
from papers.presentation import BLUE, COLORS, markdown_table, tidy

SCORES = {
    "adding": "share of test sequences with an error above 0.04",
    "curves": "squared error summed over pixels, the mean of 5,000 training images",
}
# A run with this score or less has learned.
GOOD = {"adding": 0.1, "curves": 12.0}
WHAT = {
    "adding": "adding, {steps} steps, a plain network of {units} tanh units",
    "curves": "curves, the deep autoencoder",
}


def rows_of(content):
    """Return the runs by method and learning rate, the first seed first."""
    found = {}
    for run in sorted(content["runs"], key=lambda run: run["seed"]):
        found.setdefault((run["method"], run["learning_rate"]), []).append(run)
    return {name: runs for name, runs in found.items() if all(r["curve"] for r in runs)}


def last_score(run):
    """Return the score at the end, infinite where the run diverged."""
    return float("inf") if run["diverged"] else run["curve"][-1][2]


def best_rates(rows):
    """Return, for each method, the learning rate of the best mean score."""
    means = {row: statistics.fmean(map(last_score, runs)) for row, runs in rows.items()}
    best = {}
    for method, rate in means:
        known = best.setdefault(method, rate)
        if means[method, rate] < means[method, known]:
            best[method] = rate
    return best


def report_of(content, notes=""):
    settings, rows = content["settings"], rows_of(content)
    task = settings["task"]
    parts = [
        f"# Hessian-free optimisation: {WHAT[task].format(**settings)}",
        "```sh\n" + "\n".join(content["commands"]) + "\n```",
        f"Each run has {settings['seconds']} seconds of CPU time for its updates; compiling "
        f"and evaluating do not count. Score: {SCORES[task]}. keras {settings['keras']}, "
        f"{settings['backend']} {settings[settings['backend']]}, {settings['device']}, "
        f"{settings['cores']} cores, OMP_NUM_THREADS {settings['OMP_NUM_THREADS']}, load "
        f"average of the machine {load(content)}.",
        score_table(rows, task),
        "A row is one sample in one gradient, or in one product with the curvature.",
    ]
    if task == "curves":
        parts += budget(rows)
    parts += ["![Scores over CPU time](curves.png)", notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def load(content):
    loads = [run["load"] for run in content["runs"] if run["load"] is not None]
    return f"{min(loads):.1f} to {max(loads):.1f}" if loads else "not measured"


def seconds_to(run, score):
    """Return the CPU time of the first point with a score as good as that, or None."""
    return next((seconds for seconds, _, at in run["curve"] if at <= score), None)


def score_table(rows, task):
    seeds = max(map(len, rows.values()), default=0)
    head = ["method", "learning rate", "updates", "CG steps", "million rows"]
    head.append(f"seconds to {GOOD[task]:g}, by seed")
    cells = []
    for (method, rate), runs in rows.items():
        means = [statistics.fmean(r[n] for r in runs) for n in ("updates", "cg_steps", "rows")]
        scores = [last_score(run) for run in runs]
        times = [seconds_to(run, GOOD[task]) for run in runs]
        times = ["-" if t is None else f"{t:.0f}" for t in times]
        cells.append(
            [method, f"{rate:g}", f"{means[0]:,.0f}", f"{means[1]:,.0f}"]
            + [f"{means[2] / 1e6:.2f}", ", ".join(times)]
            + [f"{score:.3g}" for score in scores]
        )
    return markdown_table([*head, *(f"seed {seed}" for seed in range(seeds))], cells)


def budget(rows):
    """Return what the paper's recipe takes, and what share of it was run."""
    phases = HYBRID["curves"]
    whole = sum(phase.total_cg_steps or 0 for phase in phases)
    head = ["phase", "CG steps", "in an update", "decay", "images in an update", "L2"]
    cells = [
        [
            str(number),
            "not printed" if phase.total_cg_steps is None else f"{phase.total_cg_steps:,}",
            str(phase.cg_steps),
            f"{phase.decay:g}",
            f"{phase.batch_size(20_000):,}",
            f"{phase.l2:g}",
            "" if phase.error is None else f"{phase.error:g}",
        ]
        for number, phase in enumerate(phases, 1)
    ]
    parts = [
        "The recipe of appendix A.6, whose first phase the hybrid has begun:",
        markdown_table([*head, "error in the paper"], cells),
        f"Its phases of printed length take {row_products('curves') / 1e9:.1f} billion "
        f"products of one image, {times_nag('curves'):.0f} times the "
        f"{NAG_UPDATES * NAG_BATCH / 1e6:.0f} million gradients of one image in a run of NAG.",
    ]
    for (method, _), runs in rows.items():
        if method == "HF, hybrid":
            steps = statistics.fmean(run["cg_steps"] for run in runs)
            parts.append(
                f"The run here made {steps:,.0f} CG steps: "
                f"{steps / phases[0].total_cg_steps:.2%} of the first phase, and "
                f"{steps * phases[0].batch_size(20_000) / row_products('curves'):.4%} of the "
                f"products of the {whole:,} CG steps in all."
            )
    return parts


def figures_of(content):
    """Draw the scores over CPU time: methods at their best rate, the others in grey."""
    rows, task = rows_of(content), content["settings"]["task"]
    best = best_rates(rows)
    colors = dict(zip(best, COLORS))
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    drawn = set()
    for (method, rate), runs in rows.items():
        chosen = rate == best[method]
        several = sum(name == method for name, _ in rows) > 1
        label = f"{method} at {rate:g}" if several else method
        for run in runs:
            seconds, _, scores = zip(*run["curve"])
            text = label if chosen else "other learning rates"
            axes.plot(
                seconds,
                scores,
                color=colors.get(method, BLUE) if chosen else "0.8",
                linewidth=1.6 if chosen else 1,
                zorder=2 if chosen else 1,
                label=None if text in drawn else text,
            )
            drawn.add(text)
    axes.set(xlabel="CPU seconds of training", ylabel=SCORES[task].split(",")[0])
    if task == "curves":
        axes.set_yscale("log")
    axes.set_title(title(rows, best, task))
    axes.legend(frameon=False)
    tidy(axes)
    return {"curves.png": figure}


def title(rows, best, task):
    """Return the scores at the end in a few words."""
    scores = {m: statistics.fmean(map(last_score, rows[m, rate])) for m, rate in best.items()}
    order = sorted(scores, key=scores.get)
    ends = "; ".join(f"{method}: {scores[method]:.2g}" for method in order)
    return f"{task}, equal CPU time. {ends}"
