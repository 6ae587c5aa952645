"""Write the report on the pairs, as far as the runs have come.

    python -m papers.sequences.report papers/results/pairs

Reads the folder that run.py fills, and the committed results of the first study. The output
directory receives results.json (the pairs' tests), report.md and pairs.png. A set counts when
all layers have `--seeds` seeds on it.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats
from statsmodels.stats.multitest import multipletests

from keras_momentum_rnn.atomic_files import write_json
from papers.command_line import documented_parser, folder, positive, publish, run_example
from papers.presentation import BLUE, markdown_table, tidy
from papers.sequences.layers import CONTESTANTS, PAIRS, SCALE_FREE, called
from papers.sequences.new_sets import SETS

FIRST_STUDY = Path(__file__).parents[1] / "results" / "real_sequences"
LEVEL = 0.05
RESAMPLES = 10_000
# Which sets a test is over, in the order of the report.
OVER = {"new": "new sets", "old": "sets of the first study", "all": "all sets"}


def main(argv=None):
    return run_example(__file__, argv, parse, report)


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("results", type=folder, help="the output of run.py")
    add("--first", type=folder, default=FIRST_STUDY, help="results of the first study")
    add("--seeds", type=positive(int), default=5, help="of which a layer's runs are complete")
    add("--output", type=Path, help="for the report; default: beside the results")
    return parser.parse_args(argv)


def report(options, command):
    output = options.output or options.results
    new = scores_in(options.results, options.seeds)
    old = scores_in(options.first, options.seeds)
    # A set that both studies began is new.
    old = old[~old["set"].isin(SETS)]
    tables = [new.assign(study="new"), old.assign(study="old")]
    if not (tables := [table for table in tables if len(table)]):
        raise ValueError(f"No set has {options.seeds} seeds of all layers in {options.results}")
    runs = pd.concat(tables)
    tests = tested(runs)
    output.mkdir(parents=True, exist_ok=True)
    pairs = tests.assign(scale_free=tests["layer"].isin(SCALE_FREE)).to_dict("records")
    write_json(output / "results.json", {"command": command, "pairs": pairs})
    figures = {"pairs.png": picture(runs, tests)}
    # Its tables of each set are wider than a terminal.
    told = text(runs, tests, command, fewer_trials(options.results))
    publish(output, told, figures, until="\n## Each set")


def scores_in(results, seeds):
    """Return the runs of the sets that count as a table: set, layer, seed, value, score."""
    tables = []
    for path in sorted(Path(results).glob("*/results.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        task = content["settings"]["task"]
        runs = [run for run in content["runs"] if run["layer"] in CONTESTANTS]
        table = pd.DataFrame(
            {
                "set": path.parent.name,
                "layer": [run["layer"] for run in runs],
                "seed": [run["seed"] for run in runs],
                "value": [value(run, task) for run in runs],
            }
        )
        counts = table.groupby("layer")["seed"].nunique().reindex(CONTESTANTS, fill_value=0)
        if (counts >= seeds).all():
            tables.append(
                table.assign(metric=task["metric"], score=score(table["value"], task))
            )
    columns = ["set", "layer", "seed", "value", "metric", "score"]
    return pd.concat(tables) if tables else pd.DataFrame(columns=columns)


def fewer_trials(results):
    """Return a sentence on searches in which fewer trials than planned completed, in a list."""
    found = []
    for path in sorted(Path(results).glob("*/results.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        planned = content["settings"].get("budget", {}).get("trials", 0)
        for layer, setup in content.get("setups", {}).items():
            if setup["trials"] < planned:
                found.append(
                    f"{called(layer)} on {path.parent.name} ({setup['trials']} of {planned})"
                )
    return [f"Searches in which trials failed: {'; '.join(found)}."] if found else []


def value(run, task):
    """Return what a run scored by its task's metric, chance if a loss was not finite."""
    return (run["test"] or task["chance"])[task["metric"]]


def score(values, task):
    """Return the share of chance's error that is removed, 0 where that is negative."""
    chance = task["chance"][task["metric"]]
    if task["larger_is_better"]:
        values, chance = 1 - values, 1 - chance
    return (1 - values / chance).clip(lower=0)


def tested(runs):
    """Return a row for each pair and each choice of sets: wins, p-values and effect.

    Args:
        runs: table with the columns study, set, layer and score.
    """
    rows = []
    for over in OVER:
        chosen = runs if over == "all" else runs[runs["study"] == over]
        if chosen.empty or (over == "all" and runs["study"].nunique() == 1):
            continue
        found = [{"over": over, **compared(chosen, *pair)} for pair in PAIRS]
        corrected = multipletests([row["p"] for row in found], method="holm")[1]
        rows += [{**row, "p_holm": p} for row, p in zip(found, corrected.tolist())]
    return pd.DataFrame(rows)


def compared(runs, layer, base):
    """Return the test of a layer against its base over sets, a dict."""
    found = differences(runs, layer, base)
    moved = found[found != 0]
    effect, low, high = interval(found)
    return {
        "layer": layer,
        "base": base,
        "sets": len(found),
        "won": int((found > 0).sum()),
        "lost": int((found < 0).sum()),
        "p": float(stats.wilcoxon(moved).pvalue) if len(moved) else 1.0,
        "effect": effect,
        "low": low,
        "high": high,
    }


def differences(runs, layer, base):
    """Return the mean score of a layer less that of its base, a series by set."""
    means = runs.pivot_table(index="set", columns="layer", values="score", sort=False)
    return (means[layer] - means[base]).round(6)


def interval(found):
    """Return the mean of differences with its bootstrap interval of 95 %."""
    if len(found) < 2:
        return float(found.mean()), float("nan"), float("nan")
    drawn = stats.bootstrap(
        (found.to_numpy(),), np.mean, n_resamples=RESAMPLES, method="percentile", rng=0
    )
    bounds = drawn.confidence_interval
    return float(found.mean()), float(bounds.low), float(bounds.high)


def confirmed(tests):
    """Return the rows of the new sets in which a difference is confirmed, see protocol.md."""
    apart = (tests["low"] > 0) | (tests["high"] < 0)
    return tests[(tests["over"] == "new") & (tests["p_holm"] < LEVEL) & apart]


def text(runs, tests, command, failed=()):
    """Return the report as Markdown, `failed` as of `fewer_trials`."""
    new = [name for name in SETS if name in {*runs.loc[runs["study"] == "new", "set"]}]
    cut = [name for name in SETS if name not in new]
    state = f"{len(new)} of {len(SETS)} new sets are through"
    state += f"; not finished: {', '.join(cut)}." if cut else "."
    if new:
        known = confirmed(tests).itertuples()
        told = [f"{called(row.layer)} and {row.base} ({row.effect:+.3f})" for row in known]
        state += f" Confirmed on new sets, of {len(PAIRS)} pairs: {'; '.join(told) or 'none'}."
    parts = [
        "# Does a rule help the layer it is put on?",
        state,
        "![The pairs](pairs.png)",
        "A score is the share of chance's error that a layer removes: 0 is nothing learned, 1 "
        "is no error. The effect is the mean difference of the scores over sets, with a "
        "bootstrap interval of 95 %. p is Wilcoxon's signed-rank test over sets, then with "
        "Holm's correction for eight pairs. [The protocol](../../sequences/protocol.md) came "
        "before the runs.",
    ]
    for over, title in OVER.items():
        if (rows := tests[tests["over"] == over]).size:
            parts += [f"## {title[0].upper()}{title[1:]}", pairs_table(rows)]
    parts.append("## Each set")
    parts.append(
        "Mean and standard deviation over seeds: accuracy (larger is better), or mean squared "
        "error of standardised targets (smaller is better)."
    )
    for study in ("new", "old"):
        if (chosen := runs[runs["study"] == study]).size:
            parts.append(sets_table(chosen))
    parts += [*failed, f"```sh\n{command}\n```"]
    return "\n\n".join(parts) + "\n"


def pairs_table(rows):
    head = ["layer : base", "sets", "won, lost", "effect", "interval", "p", "p, Holm"]
    return markdown_table(
        head,
        [
            [
                f"{called(row.layer)} : {row.base}",
                str(row.sets),
                f"{row.won}, {row.lost}",
                f"{row.effect:+.3f}",
                "" if np.isnan(row.low) else f"{row.low:+.3f} to {row.high:+.3f}",
                f"{row.p:.2g}",
                f"{row.p_holm:.2g}",
            ]
            for row in rows.itertuples()
        ],
    )


def sets_table(runs):
    """Return what each layer scored on each set by the task's own metric."""
    found = runs.groupby(["set", "metric", "layer"], sort=False)["value"].agg(["mean", "std"])
    cells = found["mean"].map("{:.3f}".format) + " ± " + found["std"].map("{:.3f}".format)
    table = cells.unstack("layer")[list(CONTESTANTS)]
    rows = [[name, metric, *row] for (name, metric), row in zip(table.index, table.to_numpy())]
    return markdown_table(["set", "metric", *map(called, CONTESTANTS)], rows)


def picture(runs, tests):
    """Return a figure of the pairs' effects with intervals, and of each set."""
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    for place, (layer, base) in enumerate(reversed(PAIRS)):
        for study, color, shift in (("new", BLUE, 0.13), ("old", "0.55", -0.17)):
            row = tests.query("over == @study and layer == @layer").squeeze(axis=0)
            if row.empty:
                continue
            dots = differences(runs[runs["study"] == study], layer, base)
            height = place + shift
            axes.plot(dots, [height] * len(dots), ".", color=color, alpha=0.35)
            axes.plot([row["low"], row["high"]], [height] * 2, color=color, linewidth=2.5)
            axes.plot(row["effect"], height, "D", color=color, markersize=5)
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.set_ylim(-0.6, len(PAIRS) - 0.4)
    names = [f"{called(layer)}\nbeside {base}" for layer, base in reversed(PAIRS)]
    axes.set_yticks(range(len(PAIRS)), names, fontsize=8)
    axes.set_xlabel(
        "worse than its base  <-  difference in the share of chance's error removed  ->  better"
        "\n"
        "blue: new sets; grey: sets of the first study; dots: sets; diamonds: means, 95 % "
        "bootstrap",
        fontsize=8,
    )
    count = tests.loc[tests["over"] == "new", "sets"].max()
    known = confirmed(tests)["layer"].map(called).tolist()
    found = f"confirmed: {', '.join(known)}" if known else "no difference is confirmed"
    measured = f"{count:.0f} of {len(SETS)} new sets measured, {found}"
    axes.set_title(measured if count > 0 else "The first study", loc="left")
    tidy(axes)
    return figure


if __name__ == "__main__":
    main()
