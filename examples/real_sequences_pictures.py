"""The pictures of the comparison on real sequences."""

import numpy as np
from contestants import CONTESTANTS
from matplotlib.figure import Figure

from keras_momentum_rnn.presentation import BLUE, COLORS, VERMILION, tidy

# At most five stand out, each with the same place and colour on all sets.
SHOWN = ("LSTM", "GRU", "Standardised-LSTM", "AdamLSTM", "RMSPropLSTM")
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
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel(
        f"mean rank over {sets} sets, 1 is best; blue ours, red plain\n"
        f"grey: not told apart from the first (critical difference {spread:.1f}, Nemenyi, 5 %)"
    )
    axes.set_title(f"{names[-1]} ranks first, {ranks[names[-1]]:.1f} on average", loc="left")
    tidy(axes)
    return figure


def gain_picture(found):
    """Return a figure of the scores when all test inputs are divided by 4."""
    figure = Figure(figsize=(7.5, 0.5 * len(found) + 2), layout="constrained")
    axes, labelled = figure.subplots(), set()
    for place, (_, content) in enumerate(reversed(found.items())):
        metric = content["settings"]["task"]["metric"]
        for number, layer in enumerate(SHOWN):
            runs = content["layers"].get(layer, ())
            told = [run["perturbed"][CHANGE][metric] for run in runs if run["perturbed"]]
            if not told:
                continue
            height = place + 0.12 * (2 - number)
            label = None if layer in labelled else layer
            labelled.add(layer)
            axes.plot(told, [height] * len(told), ".", color=COLORS[number], alpha=0.5)
            axes.plot(np.mean(told), height, "D", color=COLORS[number], label=label)
        chance = content["settings"]["task"]["chance"][metric]
        axes.plot([chance] * 2, [place - 0.35, place + 0.35], color="0.6")
    axes.set_yticks(range(len(found)), [*found][::-1])
    axes.set_xlabel("test score with all inputs divided by 4; dots: seeds; grey: chance")
    axes.set_title("What is left when a sensor's gain falls to a quarter", loc="left")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    tidy(axes)
    return figure


def progress_picture(found):
    """Return a figure of the share of runs that are past their best epoch, over updates."""
    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.subplots()
    limit = 0
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
            best = np.sort(best)
            share = np.arange(1, len(best) + 1) / len(best)
            axes.step([*best, limit], [*share, 1], where="post", color=color)
            place = (best[len(best) // 2], 0.5 if source == "ours" else 0.35)
            axes.annotate(source, place, (5, 0), textcoords="offset points", color=color)
    axes.set_xlim(0, limit)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("updates, up to the most that a run may make")
    axes.set_ylabel("share of runs past their best epoch")
    axes.set_title("When validation was at its best", loc="left")
    tidy(axes)
    return figure
