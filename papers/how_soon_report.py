"""Write the report on how soon layers learn to add.

    python -m papers.how_soon_report papers/results/how_soon

The folder has the results.json of how_soon.py, as far as it has come, and receives report.md
and how_soon.png. Of a layer counts, at each length, the learning rate at which the most seeds
learned, and of equal ones that with the fewest updates: the same favour for every layer.
"""

import json
import math

import numpy as np
from matplotlib.figure import Figure

from papers.command_line import documented_parser, folder, publish, run_example
from papers.presentation import BLUE, VERMILION, markdown_table, tidy

SHAPES = ("o", "s", "D", "^")
TICKS = [digit * 10**power for power in range(1, 6) for digit in (1, 2, 3, 5)]


def main(argv=None):
    return run_example(__file__, argv, parse, report)


def parse(argv):
    parser = documented_parser(__doc__)
    parser.add_argument("results", type=folder, help="the output of how_soon.py")
    return parser.parse_args(argv)


def report(options, command):
    content = json.loads((options.results / "results.json").read_text(encoding="utf-8"))
    publish(options.results, *report_of(content))


def report_of(content):
    """Return the report as Markdown, and its figures by the names of their files."""
    found = whole(content["runs"])
    figures = {"how_soon.png": picture(found, content["settings"])} if found else {}
    return text(content, found, figures), figures


def whole(runs):
    """Return the runs by length, layer and rate, of the seeds that all at that length have.

    A run counts where every layer and rate of its length has its seed. Seeds run one after
    another, so the first one of a length is whole when a second has begun.
    """
    by_steps = {}
    for run in runs:
        arms = by_steps.setdefault(run["steps"], {})
        arms.setdefault((run["layer"], run["learning_rate"]), {})[run["seed"]] = run
    found, several = {}, len({run["seed"] for run in runs}) > 1
    for steps, arms in sorted(by_steps.items()):
        seeds = sorted(set.intersection(*(set(arm) for arm in arms.values())))
        begun = {seed for arm in arms.values() for seed in arm}
        if not seeds or (len(begun) == 1 and several):
            continue
        layers = found.setdefault(steps, {})
        for (layer, rate), arm in sorted(arms.items(), key=lambda pair: pair[0][1]):
            layers.setdefault(layer, {})[rate] = [arm[seed] for seed in seeds]
    return found


def is_plain(layer):
    return layer.partition(",")[0] in ("LSTM", "GRU")


def updates(runs):
    """Return the updates of each run until it had learned, infinite where it never had."""
    return [run["updates"] or math.inf for run in runs]


def median(values):
    """Return the middle one, the later of two: that of infinite ones is infinite."""
    return sorted(values)[len(values) // 2]


def order(runs):
    """Return by what runs are put in order: fewest that failed, then the fewest updates."""
    found = updates(runs)
    return sum(map(math.isinf, found)), median(found), sum(f for f in found if f < math.inf)


def best_rate(rates):
    """Return the learning rate of a layer at which it learned best, and its runs."""
    return min(rates.items(), key=lambda pair: order(pair[1]))


def ranked(layers):
    """Return layers, each with its best rate and runs, the soonest first."""
    best = {layer: best_rate(rates) for layer, rates in layers.items()}
    return sorted(best.items(), key=lambda item: order(item[1][1]))


def finding(found):
    """Return who learns first at each length, one sentence."""
    first = {}
    for steps, layers in found.items():
        if learned_of(layers):
            first.setdefault(ranked(layers)[0][0], []).append(str(steps))
    if not first:
        return "No layer learned to add"
    told = [f"{layer} at {', '.join(steps)} steps" for layer, steps in first.items()]
    return f"First to learn to add: {'; '.join(told)}"


def shown(runs, most):
    """Return the updates of runs as text: the median, the range, how many learned."""
    found = updates(runs)
    learned = [value for value in found if value < math.inf]
    if not learned:
        return f"none in {most:,}"
    middle = median(found)
    told = f"{middle:,}" if middle < math.inf else f"> {most:,}"
    last = f"{max(found):,}" if len(learned) == len(found) else f"> {most:,}"
    return f"{told} ({min(found):,} to {last}), {len(learned)} of {len(found)}"


def table(steps, layers, settings):
    rows = []
    for layer, (rate, runs) in ranked(layers):
        middle, second = median(updates(runs)), np.median([run["seconds"] for run in runs])
        rows.append(
            [
                layer,
                f"{runs[0]['parameters']:,}",
                f"{rate:g}",
                shown(runs, settings["most"]),
                f"{1000 * second:.1f}",
                f"{middle * second:.0f}" if middle < math.inf else "",
            ]
        )
    head = [
        "layer",
        "parameters",
        "learning rate",
        "updates: median (range), seeds that learned",
    ]
    head += ["milliseconds an update", "seconds"]
    seeds = len(next(iter(next(iter(layers.values())).values())))
    return (
        f"**{steps} steps**, {seeds} seed{'s' * (seeds > 1)}:\n\n{markdown_table(head, rows)}"
    )


def comparisons(found):
    """Return the best of ours and of the plain layers at each length, a list."""
    lines = []
    for steps, layers in found.items():
        kinds = {"ours": [], "plain": [], "louder": []}
        for name, (_, runs) in ranked(layers):
            kind = "ours" if not is_plain(name) else "louder" if "," in name else "plain"
            kinds[kind].append((name, runs))
        if not kinds["ours"] or not kinds["plain"]:
            continue
        told = ", ".join(in_words(*item) for item in kinds["ours"][:1] + kinds["plain"][:2])
        if louder := [in_words(*item) for item in kinds["louder"][:2]]:
            told += f"; on inputs x 10: {', '.join(louder).replace(', inputs x 10', '')}"
        lines.append(f"- {steps} steps: {told}.")
    return "\n".join(lines)


def in_words(name, runs):
    middle = median(updates(runs))
    return f"{name} {middle:,}" if middle < math.inf else f"{name} not in time"


def text(content, found, figures):
    settings = content["settings"]
    parts = [
        "# How soon does a layer learn to add?",
        f"{finding(found)}." if found else "No seed is through.",
        "Updates until half of the seeds had learned:",
        comparisons(found),
        "![Updates until the sum is learned](how_soon.png)" * bool(figures),
        *(table(steps, layers, settings) for steps, layers in found.items()),
        "## How it was done",
        how(settings, {run["learning_rate"] for run in content["runs"]}),
        "```sh\n" + "\n".join(content["commands"]) + "\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def how(settings, rates):
    chosen = (
        f"The learning rate is {next(iter(rates)):g}."
        if len(rates) == 1
        else "Each layer is shown at its better learning rate, chosen by these runs themselves."
    )
    names = ("backend", "device", "keras_momentum_rnn", "keras", settings["backend"])
    return (
        f"Learned: squared error below {settings['error']:g} on {settings['held_out']} new "
        f"sequences, looked at every {settings['interval']} updates. A run ends then, or after "
        f"{settings['most']:,} updates. All layers have {settings['units']} units "
        f"(a GRU of as many has fewer parameters), batches of {settings['batch_size']} fresh "
        f"sequences, Adam, gradients clipped to a norm of {settings['clipnorm']:g}. {chosen} "
        "`inputs x 10` multiplies the inputs before the layer. LayerNormalization before an "
        "LSTM has no part: over two channels it keeps only which is larger. Seconds are of one "
        "processor core, without compilation. "
        + ", ".join(f"{n} {settings[n]}" for n in names)
        + "."
    )


def learned_of(layers):
    """Return the updates of all runs that are shown and learned."""
    shown = [updates(runs) for _, (_, runs) in ranked(layers)]
    return [value for values in shown for value in values if value < math.inf]


def picture(found, settings):
    """Return a figure of the updates of all seeds, a row for each layer."""
    first = next(iter(found.values()))
    names = [name for name, _ in ranked(first)][::-1]
    figure = Figure(figsize=(8, 0.5 * len(names) + 1.6), layout="constrained")
    axes = figure.subplots()
    most = settings["most"]
    for number, (steps, layers) in enumerate(found.items()):
        shape, offset = SHAPES[number % len(SHAPES)], 0.24 * (len(found) / 2 - 0.5 - number)
        for layer, (_, runs) in ranked(layers):
            if layer not in names:
                continue
            color = VERMILION if is_plain(layer) else BLUE
            values, place = updates(runs), names.index(layer) + offset
            learned = [value for value in values if value < math.inf]
            given = {"color": color, "alpha": 0.4, "markersize": 4}
            axes.plot(learned, [place] * len(learned), shape, **given)
            failed = len(values) - len(learned)
            if failed:
                axes.text(most * 1.06, place, f"{failed} not", color=color, va="center", size=7)
            if median(values) < math.inf:
                axes.plot(median(values), place, shape, color=color, markersize=7)
        axes.plot([], [], shape, color="0.4", label=f"{steps} steps")
    axes.axvline(most, color="0.7")
    axes.set_xscale("log")
    low = min((v for one in found.values() for v in learned_of(one)), default=most)
    axes.set_xlim(0.8 * low, 1.25 * most)
    axes.set_ylim(-0.6, len(names) - 0.4)
    ticks = [tick for tick in TICKS if 0.8 * low <= tick <= most]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel(
        f"updates until the squared error is below {settings['error']:g}; fewer is better\n"
        "large: the median of the seeds; blue ours, red plain"
    )
    axes.set_title(finding(found), loc="left", fontsize=10)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    tidy(axes)
    return figure


if __name__ == "__main__":
    main()
