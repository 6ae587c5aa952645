"""Claims about layers, and whether a comparison supports them."""

from dataclasses import dataclass

from papers.experiments.summary import BASELINE, number, rows, unfinished

# A layer beats a constant output if it is better by this share of the output's loss or score.
OFF_CHANCE = 0.05
# The verdicts on pairs of layers, in words.
GROUPS = {
    "seen": "yes for",
    "within": "within the spread of seeds:",
    "against": "the other way round:",
    "chance": "both no better than a constant output:",
    "single": "one seed only, so the spread is unknown:",
}


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
    """Return which claims hold and which layers are sooner or at chance, as Markdown lines."""
    found = {row["layer"]: row for row in rows(results) if row["test"] is not None}
    lost = at_chance(results)
    lines = [
        verdict(claim, found, lost, results["settings"]["larger_is_better"]) for claim in claims
    ]
    lines += sooner(found, unfinished(results["runs"]))
    return [line for line in lines if line] + [*no_better(lost, results)]


def verdict(claim, found, lost, larger_is_better):
    """Return a line on one claim, or None if its layers did not run.

    Args:
        claim: `Claim`.
        found: dict from layers to rows of the summary.
        lost: list of the layers at chance: among them nothing is compared.
        larger_is_better: bool, of the score.
    """
    than = [name for name in claim.than if name in found]
    better = [name for name in claim.better if name in found]
    if not than or not better:
        return None
    groups = {group: [] for group in GROUPS}
    for name in better:
        for other in than:
            pair = f"{name} against {other}" if len(than) > 1 else name
            group = compared(found[name], found[other], larger_is_better)
            groups["chance" if {name, other} <= set(lost) else group].append(pair)
    told = {group: pairs for group, pairs in groups.items() if pairs}
    missing = [name for name in (*claim.better, *claim.than) if name not in found]
    if missing and list(told) == ["seen"]:
        return (
            f"- {claim.text}. **It holds so far**: yes for {', '.join(told['seen'])}; not run: "
            f"{', '.join(missing)}."
        )
    if list(told) == ["seen"]:
        return f"- {claim.text}. **It holds**, in all cases."
    parts = [f"{GROUPS[group]} {', '.join(pairs)}" for group, pairs in told.items()]
    word = "It holds in part" if "seen" in told else "It does not hold here"
    if told.keys() <= {"single", "chance"}:  # which compares nothing
        word = "Open"
    return f"- {claim.text}. **{word}**: {'; '.join(parts)}."


def compared(row, other, larger_is_better):
    """Return "seen" if a row is better than another by more than their deviations together."""
    if row["test_sd"] is None or other["test_sd"] is None:
        return "single"
    difference = (row["test"] - other["test"]) * (1 if larger_is_better else -1)
    if abs(difference) <= row["test_sd"] + other["test_sd"]:
        return "within"
    return "seen" if difference > 0 else "against"


def sooner(found, begun=()):
    """Yield a line on which layers reach the LSTM's best in fewer epochs than it.

    Args:
        found: dict from layers to rows of the summary.
        begun: layers with runs that are not at their end.
    """
    if BASELINE not in found:
        return
    own = found[BASELINE]["epochs_to_lstm_best"]
    others = {name: row for name, row in found.items() if name != BASELINE}
    if not others:
        return
    early = [
        f"{name} ({row['epochs_to_lstm_best']})"
        for name, row in others.items()
        if (row["epochs_to_lstm_best"] or own) < own
    ]
    never = [name for name, row in others.items() if row["epochs_to_lstm_best"] is None]
    so_far = "so far has" if BASELINE in begun else "has"
    text = f"- LSTM {so_far} its best validation score after {own} epochs."
    text += f" Reached sooner by {', '.join(early)}." if early else " No layer is sooner."
    for word, names in (
        ("Never", [name for name in never if name not in begun]),
        ("Not yet", [name for name in never if name in begun]),
    ):
        text += f" {word} reached by {', '.join(names)}." if names else ""
    yield text


def at_chance(results):
    """Return the layers that are no better than a constant output, a list.

    Neither their test loss nor their score, means over seeds, is better than those of the best
    constant output by `OFF_CHANCE`.
    """
    settings, constant = results["settings"], constant_of(results)
    larger = {"loss": False, settings["metric"]: settings["larger_is_better"]}
    names = [name for name in larger if name in constant]
    tests = {}
    for run in results["runs"]:
        if run["test"]:
            tests.setdefault(run["layer"], []).append(run["test"])
    return [
        layer
        for layer, found in tests.items()
        if names and not any(better(found, constant, name, larger[name]) for name in names)
    ]


def better(tests, constant, name, larger_is_better):
    """Return whether the mean of a score is better than a constant output's."""
    mean = sum(test[name] for test in tests) / len(tests)
    gain = (mean - constant[name]) * (1 if larger_is_better else -1)
    return gain > OFF_CHANCE * abs(constant[name])


def no_better(lost, results):
    """Yield a line on the layers at chance, if there are any."""
    if lost:
        constant = constant_of(results)
        told = dict.fromkeys(["loss", results["settings"]["metric"]])
        scores = [f"{name} {number(constant[name])}" for name in told if name in constant]
        text = (
            f"- Not distinguishable from a constant output (within {OFF_CHANCE:.0%}; its test "
            f"{', '.join(scores)}): {', '.join(lost)}."
        )
        yield text + (" Do not rank these layers." if len(lost) > 1 else "")


def constant_of(results):
    """Return what a constant output scores, or by chance if that was not measured."""
    return results.get("constant", results["settings"]["chance"])
