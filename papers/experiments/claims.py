"""Claims about layers, and whether a comparison supports them."""

from dataclasses import dataclass

from papers.experiments.summary import going_on, layers, number, of_layer, rows

# A layer beats a constant output if it is better by this share of the output's loss or score.
OFF_CHANCE = 0.05
# What a comparison says of a pair of layers, in words.
GROUPS = {
    "seen": "yes for",
    "within": "within the spread of seeds:",
    "against": "the other way round:",
    "chance": "both no better than a constant output:",
    "single": "one seed only, so the spread is unknown:",
    "diverged": "a seed diverged before it had a score:",
}
# Groups that compare nothing.
OPEN = {"chance", "single", "diverged"}
RULE = (
    "We call a layer better if the difference of the means exceeds the sum of the two standard "
    "deviations."
)


@dataclass(frozen=True)
class Claim:
    """A claim that some layers are better than some others.

    Attributes:
        text: the claim, in words.
        better: names of layers.
        than: names of layers.
    """

    text: str
    better: tuple
    than: tuple


def verdicts(results, claims=()):
    """Return which claims hold and which layers are at chance, as Markdown lines."""
    found = {row["layer"]: row for row in rows(results) if row["test"] is not None}
    lost, runs = at_chance(results), results["runs"]
    diverged = {run["layer"] for run in runs if run["test"] is None}

    def group(name, other):
        """Return the group of a pair of layers."""
        if {name, other} <= {*lost}:
            return "chance"
        if {name, other} & diverged:
            return "diverged"
        return compared(found[name], found[other], results["settings"]["larger_is_better"])

    unfinished = {run["layer"] for run in runs if going_on(run)}
    lines = [verdict(claim, found, group, unfinished) for claim in claims]
    return [line for line in [*lines, no_better(lost, results)] if line]


def verdict(claim, found, group_of, unfinished):
    """Return a line on one claim, or None if its layers did not run.

    Args:
        claim: `Claim`.
        found: the layers that have a score.
        group_of: function from a pair of layers to a key of `GROUPS`.
        unfinished: the layers that train on.
    """
    named = (*claim.better, *claim.than)
    missing = [name for name in named if name not in found]
    training = [name for name in named if name in unfinished]
    than = [name for name in claim.than if name in found]
    pairs = {}
    for name in claim.better:
        for other in than if name in found else ():
            group = group_of(name, other)
            pair = f"{name} against {other}" if len(than) > 1 else name
            pairs.setdefault(group, []).append(pair)
    if not pairs:
        return None
    parts = [f"{GROUPS[group]} {', '.join(pairs[group])}" for group in GROUPS if group in pairs]
    if pairs.keys() <= OPEN:
        word = "Open"
    elif "seen" not in pairs:
        word = "It does not hold here"
    elif len(pairs) > 1:
        word = "It holds in part"
    elif missing or training:
        word = "It holds"
        parts += [f"not run: {', '.join(missing)}"] if missing else []
    else:
        return f"- {claim.text}. **It holds**, in all cases."
    if word != "Open" and (training or (word == "It holds" and missing)):
        word += " so far"
    parts += [f"not trained to their end: {', '.join(training)}"] if training else []
    return f"- {claim.text}. **{word}**: {'; '.join(parts)}."


def compared(row, other, larger_is_better):
    """Return "seen" if a row is better than another by more than their deviations together."""
    if row["test_sd"] is None or other["test_sd"] is None:
        return "single"
    difference = (row["test"] - other["test"]) * (1 if larger_is_better else -1)
    if abs(difference) <= row["test_sd"] + other["test_sd"]:
        return "within"
    return "seen" if difference > 0 else "against"


def at_chance(results):
    """Return the layers that are no better than a constant output, a list.

    Neither their test loss nor their score, means over seeds, is better than those of the best
    constant output by `OFF_CHANCE`.
    """
    settings, constant = results["settings"], results["constant"]
    larger = {"loss": False, settings["metric"]: settings["larger_is_better"]}
    names = [name for name in larger if name in constant]
    runs = results["runs"]
    tests = {
        layer: [run["test"] for run in of_layer(runs, layer) if run["test"]]
        for layer in layers(runs)
    }
    return [
        layer
        for layer, found in tests.items()
        if found
        and names
        and not any(better(found, constant, name, larger[name]) for name in names)
    ]


def better(tests, constant, name, larger_is_better):
    """Return whether the mean of a score is better than a constant output's."""
    mean = sum(test[name] for test in tests) / len(tests)
    gain = (mean - constant[name]) * (1 if larger_is_better else -1)
    return gain > OFF_CHANCE * abs(constant[name])


def no_better(lost, results):
    """Return a line on the layers at chance, or None."""
    if not lost:
        return None
    constant = results["constant"]
    names = dict.fromkeys(["loss", results["settings"]["metric"]])
    scores = [f"{name} {number(constant[name])}" for name in names if name in constant]
    text = (
        f"- No better than a constant output (by more than {OFF_CHANCE:.0%}; its test "
        f"{', '.join(scores)}): {', '.join(lost)}."
    )
    return text + (" Do not rank these layers." if len(lost) > 1 else "")
