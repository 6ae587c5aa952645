"""What the comparison on real sequences says to one who chooses a layer, from its results."""

import json
import math
import sys
from pathlib import Path

import numpy as np

from papers.presentation import markdown_table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "papers" / "results"
if (examples := str(ROOT)) not in sys.path:
    sys.path.append(examples)

from papers import how_soon_report
from papers.contestants import CONTESTANTS, OUTSIDE, titled
from papers.ranks import LEVEL, pairwise, smallest_p
from papers.real_sequences_report import finding
from papers.real_sequences_scores import (
    FIRST,
    by_layer,
    compared,
    counted,
    has,
    lacking,
    of_classes,
    of_source,
    ranked,
    read,
    scores,
    seconds_of_update,
    signed,
    updates_of,
    whole,
)
from papers.real_sets import SETS

SEEDS = 5
# Sets on which all layers are through; with fewer, the page says nothing.
ENOUGH = 10
ONE, SEVERAL = "one channel", "several channels"
# Steps from which a series of one channel counts as long.
LONG = 150
ON_LONG = ("LSTM", "GRU", "Standardised-LSTM", "NAGLSTM")
CONTROL = "Summed-LSTM"
# A reference line, no layer.
LINEAR = "linear"
# What may change, the change's name, and on which sets it is told.
SITUATIONS = (
    ("nothing changes", None, None),
    ("the gain falls to 1/4, one channel", "gain 1/4", ONE),
    ("the gain falls to 1/4, several channels", "gain 1/4", SEVERAL),
    ("the gain rises to 4, one channel", "gain 4", ONE),
    ("an offset of one standard deviation", "offset", None),
    ("noise of half a standard deviation", "noise", None),
    ("30 % of the steps are lost", "lost steps", None),
    ("sequences take twice as many steps", "twice as long", None),
)


def found():
    """Return the results that count: sets by name, on which all layers are through.

    Raises:
        ValueError: if these are few.
    """
    every = read(RESULTS / "real_sequences", SEEDS)
    names = whole(every)
    if len(names) < ENOUGH:
        missing = {name: lacking(content) for name, content in every.items()}
        raise ValueError(f"Fewer than {ENOUGH} sets have all layers. They lack: {missing}")
    return {name: every[name] for name in names}


def series():
    """Return the results on series to forecast: the first layers are through on them."""
    every = read(RESULTS / "real_sequences", SEEDS)
    return {name: every[name] for name in counted(every) if not of_classes(every[name])}


def parts():
    """Return the texts by the names of their comments."""
    told = found()
    return {
        "study": "\n\n".join([summary(told), ranks_table(told)]),
        "situations": situations(told),
        "long": long_table(long_series()),
        "levels": levels(series()),
        "cost": cost(told),
        "how_soon": soon(),
        "in_short": "\n".join(f"- {line}" for line in in_short(told)),
    }


def summary(told):
    """Return what the sets show of ranks, a paragraph."""
    rest = [name for name in SETS if name not in told]
    left = f" Not finished with all layers, and left out: {', '.join(rest)}." if rest else ""
    return f"{len(told)} of {len(SETS)} sets.{left} {finding(told)} {told_apart(told)}"


def cell(content, layer):
    found = scores(content, layer)
    return f"{found.mean():.2f} ± {found.std(ddof=1):.2f}"


def told_apart(told):
    pairs, known = clear_pairs(told)
    listed = ", ".join(f"{name_of(a)} over {name_of(b)}" for a, b in known) or "none"
    number = f"Of {len(pairs)} pairs of layers, tested together over the sets,"
    text = f"{number} {listed} differ{'s' * (len(known) < 2)} at 5 %."
    if (least := smallest_p(len(told)) * len(pairs)) > LEVEL:
        text += (
            f" Over {len(told)} sets none could: even a layer that wins on all gets p "
            f"{min(least, 1):.2g}."
        )
    return text


def clear_pairs(told):
    """Return all pairs (better, worse) in rank, and those that differ at 5 %."""
    pairs = pairwise(by_layer(told, list(told)))
    return list(pairs), [pair for pair, p in pairs.items() if p <= LEVEL]


def ranks_table(told):
    rows = []
    for layer, rank in ranked(told, list(told)).items():
        row = [name_of(layer), f"{rank:.1f}"]
        for other in ("LSTM", "GRU"):
            signs = [compared(content, layer, other) for content in told.values()]
            counts = " / ".join(str(signs.count(sign)) for sign in (1, 0, -1))
            row.append("" if layer == other else counts)
        rows.append(row)
    head = ["layer", "mean rank", "against LSTM: won / even / lost", "against GRU"]
    return markdown_table(head, rows)


def name_of(layer):
    if layer == "LayerNorm-LSTM":
        return "`LSTM` behind LayerNormalization"
    called, *form = titled(layer).split(", ")
    return ", ".join([f"`{called}`", *form])


def in_full(layer):
    """Return one of our layers with the option that the comparison gave it."""
    if layer == "LearnedMomentum":
        return 'RuleLSTM(..., rule=LearnedMomentum(per="gate"))'
    return (
        f"{layer}(..., scale_free=True)"
        if CONTESTANTS[layer].arguments == OUTSIDE
        else CONTESTANTS[layer].layer
    )


def chosen_sets(told, where):
    """Return the sets with classes, of one channel, of several or, for None, all."""
    channels = {
        name: content["settings"]["task"]["channels"]
        for name, content in told.items()
        if of_classes(content)
    }
    wanted = {ONE: lambda n: n == 1, SEVERAL: lambda n: n > 1, None: lambda n: True}[where]
    return [told[name] for name, count in channels.items() if wanted(count)]


def mean_accuracies(contents, change):
    """Return the mean accuracy of the layers that are through on all of some sets."""
    return {
        layer: float(np.mean([scores(content, layer, change).mean() for content in contents]))
        for layer in CONTESTANTS
        if all(
            layer in content["layers"] and (change is None or has(content, layer, change))
            for content in contents
        )
    }


def situation_rows(told):
    """Yield words, number of sets, mean accuracies by layer."""
    for words, change, where in SITUATIONS:
        contents = chosen_sets(told, where)
        if where == SEVERAL:
            # Where it can, LayerNormalization is the strongest plain answer to a gain.
            contents = [one for one in contents if "LayerNorm-LSTM" in one["layers"]]
        if contents:
            yield words, len(contents), mean_accuracies(contents, change)


def best_of(means, source):
    return max((name for name in means if name in of_source(source)), key=means.get)


def situations(told):
    """Return which layer keeps most accuracy when something changes, a table."""
    rows = []
    for words, sets, means in situation_rows(told):
        plain, ours = (best_of(means, source) for source in ("plain", "ours"))
        rows.append(
            [
                words,
                str(sets),
                f"{means['LSTM']:.2f}",
                f"{means['GRU']:.2f}",
                f"{means[plain]:.2f} ({name_of(plain)})",
                f"{means[ours]:.2f} ({name_of(ours)})",
            ]
        )
    head = ["after training", "sets", "`LSTM`", "`GRU`", "best plain layer", "best of ours"]
    return markdown_table(head, rows)


def long_series():
    """Return the results on long series of one channel with classes, sets by name.

    They are those on which NAGLSTM and its control ran.
    """
    return {
        name: content
        for name, content in read(RESULTS / "real_sequences", SEEDS).items()
        if of_classes(content)
        and content["settings"]["task"]["channels"] == 1
        and content["settings"]["task"]["steps"] >= LONG
        and all(layer in content["layers"] for layer in (*ON_LONG, CONTROL))
    }


def leads(content, layer):
    """Return whether a layer has a higher mean score than every plain one on a set."""
    plain = [name for name in of_source("plain") if name in content["layers"]]
    return all(signed(content, layer) > signed(content, name) for name in plain)


def long_table(told):
    """Return what the layers make of long series of one channel, a table."""
    rows = []
    for name, content in told.items():
        task = content["settings"]["task"]
        cells = [cell(content, layer) for layer in (*ON_LONG, CONTROL)]
        rocket = "MiniRocket" in content["layers"]
        cells.append(f"{scores(content, 'MiniRocket').mean():.2f}" if rocket else "")
        rows.append([name, str(task["steps"]), str(task["samples"][0]), *cells])
    named = map(name_of, (*ON_LONG, CONTROL))
    head = ["set", "steps", "training samples", *named, "MiniRocket"]
    return markdown_table(head, rows)


def levels(told):
    """Return what the layers make of series to forecast, a table."""
    layers = [name for name in by_layer(told, list(told)) if name in (*FIRST, "MomentumGRU")]
    linear = [LINEAR] * all(LINEAR in content["layers"] for content in told.values())
    rows = []
    for name, content in told.items():
        before = content["settings"]["task"]["chance"]["loss"]
        cells = [f"{scores(content, layer).mean():.2g}" for layer in (*linear, *layers)]
        rows.append([name, f"{before:.2g}", *cells])
    if not rows:
        return "No series is through yet."
    head = ["series: squared error", "the value before", *linear, *map(name_of, layers)]
    return markdown_table(head, rows)


def cost(told):
    """Return what an update of ours costs beside LSTM, one sentence."""
    ratios = {}
    for layer in by_layer(told, list(told)):
        logs = []
        for content in told.values():
            both = [
                np.median([seconds_of_update(r, updates_of(content)) for r in runs])
                for runs in (content["layers"][layer], content["layers"]["LSTM"])
            ]
            logs.append(math.log(both[0] / both[1]))
        ratios[layer] = math.exp(np.mean(logs))
    listed = [
        f"{name_of(layer)} {ratio:.1f}"
        for layer, ratio in sorted(ratios.items(), key=lambda pair: pair[1])
        if layer in ("GRU", "SimpleRNN", *of_source("ours"))
    ]
    settings = next(iter(told.values()))["settings"]
    return (
        f"With as many parameters, an update takes this much of the LSTM's processor time "
        f"({settings['backend']}, one CPU core, compilation included): {', '.join(listed)}."
    )


def soon():
    """Return who learns to add first at each length, a list; nothing before it has run."""
    path = RESULTS / "how_soon" / "results.json"
    if not path.exists():
        return ""
    content = json.loads(path.read_text(encoding="utf-8"))
    told = how_soon_report.comparisons(how_soon_report.whole(content["runs"]))
    return told.replace(", bias outside", " (scale-free)")


def in_short(told):
    """Return what the README says of the study, one sentence each."""
    ranks = ranked(told, list(told))
    plain = next(name for name in ranks if name in of_source("plain"))
    ours = next(name for name in ranks if name in of_source("ours"))
    clear = any({ours, plain} == {*pair} for pair in clear_pairs(told)[1])
    first = in_full(ours) if ranks[ours] < ranks[plain] else plain
    yield (
        f"**Test data like the training data: `{first}` ranks first"
        f"{'' if clear else ', but not clearly'}.** Over {len(told)} real sets, at equal size "
        f"and with a search for each of {len(ranks)} layers, the mean rank of "
        f"`{in_full(ours)}` is {ranks[ours]:.1f}, that of {name_of(plain)} {ranks[plain]:.1f}, "
        f"of `LSTM` {ranks['LSTM']:.1f}."
    )
    if series := long_series():
        ahead = {n: content for n, content in series.items() if leads(content, "NAGLSTM")}
        (rest,) = (content for name, content in series.items() if name not in ahead)
        means, other = (
            {
                n: np.mean([scores(content, n).mean() for content in contents])
                for n in (*of_source("plain"), "NAGLSTM", "MiniRocket")
                if all(n in content["layers"] for content in contents)
            }
            for contents in (ahead.values(), [rest])
        )
        plain, first = (best_of(found, "plain") for found in (means, other))
        yield (
            f"**Long series of one channel**: on {len(ahead)} of {len(series)} sets, those "
            "with the fewest examples, `NAGLSTM` has a higher mean accuracy than every plain "
            f"layer: {means['NAGLSTM']:.2f} over these sets, {name_of(plain)} "
            f"{means[plain]:.2f}. On the other one it has {other['NAGLSTM']:.2f}, "
            f"{name_of(first)} {other[first]:.2f}. MiniRocket, which is no recurrent network, "
            f"has {means['MiniRocket']:.2f} and {other['MiniRocket']:.2f}."
        )
    for words, sets, means in situation_rows(told):
        if words.startswith("the gain falls"):
            plain, ours = (best_of(means, source) for source in ("plain", "ours"))
            yield (
                f"**{words[0].upper()}{words[1:]}, after training** ({sets} "
                f"set{'s' * (sets > 1)}): accuracy {means[ours]:.2f} with `{in_full(ours)}`; "
                f"{means['LSTM']:.2f} with `LSTM`, {means['GRU']:.2f} with `GRU`, "
                f"{means[plain]:.2f} with {name_of(plain)}."
            )
    lines = soon().splitlines()
    for line in dict.fromkeys([*lines[:1], *lines[-1:]]):  # the shortest and the longest
        yield f"**Updates to learn to add**, {line.removeprefix('- ')}"
