"""The pictures of the comparison on real sequences."""

import numpy as np
from matplotlib.figure import Figure

from papers.contestants import CONTESTANTS, titled
from papers.presentation import BLUE, COLORS, VERMILION, tidy

# At most five stand out, each with the same place and colour on all sets.
SHOWN = ("LSTM", "GRU", "Standardised-LSTM", "AdamLSTM", "RMSPropLSTM")
TITLE = ("LSTM", "Standardised-LSTM", "RMSPropLSTM")
CHANGE = "gain 1/4"


def rank_picture(ranks, spread, sets):
    """Return a figure of the mean ranks, and of the difference that a test can tell."""
    figure = Figure(figsize=(7, 0.3 * len(ranks) + 1.6), layout="constrained")
    axes = figure.subplots()
    names = list(ranks)[::-1]
    for place, name in enumerate(names):
        color = BLUE if CONTESTANTS[name].source == "ours" else VERMILION
        axes.plot(ranks[name], place, "o", color=color)
    first = min(ranks.values())
    axes.axvspan(first, first + spread, color="0.93", zorder=0)
    axes.set_yticks(range(len(names)), map(titled, names))
    axes.set_xlabel(
        f"mean rank over {sets} sets, 1 is best; blue ours, red plain\n"
        "grey: not told apart from the first\n"
        f"(critical difference {spread:.1f}, Nemenyi, 5 %)"
    )
    apart = sum(rank > first + spread for rank in ranks.values())
    told = f"{apart} of {len(ranks) - 1} others are" if apart else "no other is"
    axes.set_title(
        f"{titled(names[-1])} ranks first; {told} clearly worse", loc="left", fontsize=10
    )
    tidy(axes)
    return figure


def gain_picture(found):
    """Return a figure of the accuracies when all test inputs are divided by 4."""
    figure = Figure(figsize=(8, 0.8 * len(found) + 1.6), layout="constrained")
    axes, labelled, kept = figure.subplots(), set(), {}
    for place, content in enumerate(reversed(found.values())):
        for number, layer in enumerate(SHOWN):
            runs = [run for run in content["layers"].get(layer, ()) if run["perturbed"]]
            if not runs:
                continue
            color, height = COLORS[number], place + 0.14 * (2 - number)
            before = [run["test"]["accuracy"] for run in runs]
            after = [run["perturbed"][CHANGE]["accuracy"] for run in runs]
            kept.setdefault(layer, []).append(np.mean(after))
            label = None if layer in labelled else titled(layer)
            labelled.add(layer)
            axes.plot([np.mean(before), np.mean(after)], [height] * 2, color=color, alpha=0.4)
            axes.plot(np.mean(before), height, "o", color=color, fillstyle="none")
            axes.plot(after, [height] * len(after), ".", color=color, alpha=0.5)
            axes.plot(np.mean(after), height, "D", color=color, label=label)
        chance = content["settings"]["task"]["chance"]["accuracy"]
        axes.plot([chance] * 2, [place - 0.4, place + 0.4], color="0.6")
    axes.set_yticks(range(len(found)), [*found][::-1])
    axes.set_xlabel(
        "test accuracy with all inputs divided by 4 (diamonds; dots: seeds)\n"
        "circles: with the inputs as they were; grey: the most frequent class"
    )
    told = [f"{titled(layer)} {np.mean(kept[layer]):.2f}" for layer in TITLE if layer in kept]
    axes.set_title(f"At a quarter of the gain:\n{'; '.join(told)}", loc="left", fontsize=10)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    tidy(axes)
    return figure


def progress_picture(found):
    """Return a figure of the share of runs that are past their best epoch, over updates."""
    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.subplots()
    limit, every = 0, []
    for source, color in (("plain", VERMILION), ("ours", BLUE)):
        best = []
        for content in found.values():
            budget = content["settings"]["budget"]
            updates = budget["updates of an epoch"]
            limit = max(limit, budget["epochs at most"] * updates)
            for layer, runs in content["layers"].items():
                if layer in CONTESTANTS and CONTESTANTS[layer].source == source:
                    best += [updates * r["best_epoch"] for r in runs if r["best_epoch"]]
        if best:
            every += best
            best = np.sort(best)
            share = np.arange(1, len(best) + 1) / len(best)
            axes.step([*best, limit], [*share, 1], where="post", color=color)
            # Above the upper line, below the lower one.
            height, offset = (0.5, (6, -12)) if source == "ours" else (0.65, (-30, 6))
            place = (best[int(height * len(best))], height)
            axes.annotate(source, place, offset, textcoords="offset points", color=color)
    axes.set_xlim(0, limit)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("updates, up to the most that a run may make")
    axes.set_ylabel("share of runs past their best epoch")
    early = np.mean(np.array(every) <= limit / 2)
    axes.set_title(f"{early:.0%} of runs were at their best by half of the updates", loc="left")
    tidy(axes)
    return figure
