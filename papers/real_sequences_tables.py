"""The tables of the report on real sequences, each with what a reader needs to know of it."""

import math

import numpy as np

from papers.contestants import CONTESTANTS, REFERENCES, titled
from papers.perturbations import PERTURBATIONS
from papers.presentation import markdown_table
from papers.ranks import LEVEL, against, pairwise, smallest_p
from papers.real_sequences_scores import (
    by_layer,
    compared,
    has,
    of_classes,
    ranked,
    scores,
    seconds_of_update,
    updates_of,
    updates_to_reach,
    verdict,
)

BASELINES = ("LSTM", "GRU")


def shown(content, layer, change=None, named=True):
    """Return mean and standard deviation of a layer's scores as text."""
    if layer is None or layer not in content["layers"]:
        return ""
    if change and not has(content, layer, change):
        return ""
    found = scores(content, layer, change)
    told = f"{found.mean():.3f} ± {found.std(ddof=1):.3f}"
    return f"{titled(layer)} {told}" if named else told


def best_table(found):
    """Return a row for each set: the plain layer and ours that validation chose, references."""
    head = ["set", "steps x channels", "training", "plain, chosen", "ours, chosen", "verdict"]
    rows = []
    for name, content in found.items():
        told, (plain, ours, word) = content["settings"]["task"], verdict(content)
        cells = [name, f"{told['steps']} x {told['channels']}", f"{told['samples'][0]}"]
        cells += [shown(content, plain), shown(content, ours), word or ""]
        rows.append(cells + [shown(content, name, named=False) for name in REFERENCES])
    return markdown_table([*head, *REFERENCES], rows)


def tests(found, sets):
    """Return the tests of each layer against LSTM and GRU, a paragraph and a table."""
    table, ranks = by_layer(found, sets), ranked(found, sets)
    rows = []
    for layer, rank in ranks.items():
        row = [titled(layer), f"{rank:.1f}"]
        for baseline in BASELINES:
            if layer == baseline:
                row += ["", ""]
                continue
            signs = [compared(found[one], layer, baseline) for one in sets]
            row.append(" / ".join(str(signs.count(sign)) for sign in (1, 0, -1)))
            row.append(f"{against(table, baseline)[layer]:.2g}")
        rows.append(row)
    head = ["layer", "mean rank"]
    for baseline in BASELINES:
        head += [f"won / even / lost against {baseline}", f"p against {baseline}"]
    note = (
        f"Over {len(sets)} sets. Won or lost: by more than both standard deviations together. "
        "p: Wilcoxon's signed-rank test over the sets, with Holm's correction for the number "
        "of layers."
    )
    if missing := [titled(layer) for layer in CONTESTANTS if layer not in table]:
        note += f" Not ranked, since they lack some of these sets: {', '.join(missing)}."
    return f"{note}\n\n{markdown_table(head, rows)}\n\n{all_pairs(table)}"


def all_pairs(table):
    """Return which pairs of layers differ, all pairs tested together, a paragraph."""
    found = pairwise(table)
    sets = len(next(iter(table.values())))
    told = [
        f"{titled(better)} over {titled(worse)} (p {p:.2g})"
        for (better, worse), p in sorted(found.items(), key=lambda item: item[1])
        if p <= LEVEL
    ]
    note = f"All {len(found)} pairs together, with Holm's correction: "
    if told:
        return note + "; ".join(told) + "."
    least = smallest_p(sets) * len(found)
    note += f"no pair differs at {LEVEL:.0%}."
    if least > LEVEL:
        note += (
            f" Over {sets} sets none could: even a layer that wins on all gets p "
            f"{min(least, 1):.2g}."
        )
    return note


def cost_table(found, sets):
    """Return what the layers cost beside LSTM, a paragraph and a table."""
    rows = []
    for layer in by_layer(found, sets):
        ratios = {"units": [], "parameters": [], "update": [], "best": []}
        for one in sets:
            runs, base = (found[one]["layers"][name] for name in (layer, "LSTM"))
            updates = updates_of(found[one])
            measured = {
                "units": lambda run: run["setup"]["units"],
                "parameters": lambda run: run["parameters"],
                "update": lambda run, updates=updates: seconds_of_update(run, updates),
                "best": lambda run: run["best_epoch"],
            }
            for name, value in measured.items():
                both = [
                    np.median([value(r) for r in of if r["best_epoch"]]) for of in (runs, base)
                ]
                ratios[name].append(both[0] / both[1])
        rows.append(
            [titled(layer), *(f"{np.exp(np.mean(np.log(r))):.2f}" for r in ratios.values())]
        )
    head = ["layer", "units", "parameters", "seconds an update", "updates to the best model"]
    return (
        f"Ratios to LSTM, the geometric mean over {len(sets)} sets. Seconds are "
        "of one processor core, compilation and validation included, which weigh most in the "
        f"shortest runs.\n\n{markdown_table(head, rows)}"
    )


def soon_table(found, layers):
    """Return how soon layers reach the LSTM's best validation loss, a paragraph and a table."""
    rows = []
    for name, content in found.items():
        if "LSTM" not in content["layers"]:
            continue
        cells = [
            soon(updates_to_reach(content, layer)) if layer in content["layers"] else ""
            for layer in layers
        ]
        rows.append([name, *cells])
    return (
        "Updates until the validation loss is as low as the LSTM's best (the median of its "
        "seeds): the median over seeds, and how many came so far.\n\n"
        f"{markdown_table(['set', *map(titled, layers)], rows)}"
    )


def soon(updates):
    reached = sum(value < math.inf for value in updates)
    middle = sorted(updates)[len(updates) // 2]
    told = f"{middle:,}" if middle < math.inf else "-"
    return f"{told} ({reached} of {len(updates)})"


def mean_robustness(found, sets, layers):
    """Return the mean accuracy of layers with changed inputs over sets of classes, a table."""
    named = [name for name in sets if of_classes(found[name])]
    rows = []
    for layer in layers:
        cells = []
        for change in (None, *PERTURBATIONS):
            if change and not all(has(found[name], layer, change) for name in named):
                cells.append("")
                continue
            values = [scores(found[name], layer, change).mean() for name in named]
            cells.append(f"{np.mean(values):.3f}")
        rows.append([titled(layer), *cells])
    head = ["layer", "unchanged", *PERTURBATIONS]
    return (
        f"Mean test accuracy over {len(named)} sets of classes:\n\n{markdown_table(head, rows)}"
    )


def robustness(name, content):
    """Return the scores of all layers with changed inputs, a table."""
    rows = [
        [titled(layer), shown(content, layer, named=False)]
        + [shown(content, layer, change, named=False) for change in PERTURBATIONS]
        for layer in content["layers"]
    ]
    metric = content["settings"]["task"]["metric"]
    head = ["layer", "unchanged", *PERTURBATIONS]
    return f"**{name}**, test {metric}:\n\n{markdown_table(head, rows)}"


def set_table(name, content):
    """Return the results on a set, a table with what precedes it."""
    told, updates = content["settings"]["task"], updates_of(content)
    rows = []
    for layer, runs in content["layers"].items():
        setup, epochs = runs[0]["setup"] or {}, [r["best_epoch"] for r in runs]
        given = {**setup.get("numbers", {}), "rate": setup.get("learning_rate", "")}
        numbers = ", ".join(f"{n} {number(v)}" for n, v in given.items() if v != "")
        rows.append(
            [
                titled(layer),
                str(setup.get("units", "")),
                f"{runs[0]['parameters']:,}" if runs[0]["parameters"] else "",
                shown(content, layer, named=False),
                f"{np.median([e for e in epochs if e]) * updates:.0f}" if any(epochs) else "",
                f"{np.median([run['seconds'] for run in runs]):.1f}",
                numbers,
            ]
        )
    train, validation, test = told["samples"]
    chance = told["chance"][told["metric"]]
    head = ["layer", "units", "parameters", f"test {told['metric']}"]
    head += ["updates to the best", "seconds", "numbers of the best trial"]
    return (
        f"**{name}**: {train} sequences for training, {validation} for validation, {test} for "
        f"test; {told['steps']} steps of {told['channels']} channels"
        f"{', of unequal lengths' if told['masked'] else ''}; without the inputs one scores "
        f"{chance:.3f}.\n\n{markdown_table(head, rows)}"
    )


def number(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)
