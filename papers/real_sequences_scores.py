"""What the results of the comparison on real sequences say: scores, ranks, verdicts."""

import json
import math
from pathlib import Path

import numpy as np

from papers.contestants import CONTESTANTS, EVERY, REFERENCES, excluded
from papers.ranks import mean_ranks
from papers.real_sets import SETS

# The layers without which a set does not count.
FIRST = ("LSTM", "GRU", "SimpleRNN", "Standardised-LSTM", "AdamLSTM", "RMSPropLSTM")


def read(directory, seeds):
    """Return the results of the sets, the runs of layers that are through by layer."""
    found = {}
    paths = {path.parent.name: path for path in Path(directory).glob("*/results.json")}
    for name in sorted(paths, key=lambda n: (SETS.index(n) if n in SETS else len(SETS), n)):
        content = json.loads(paths[name].read_text(encoding="utf-8"))
        layers = {}
        for run in content["runs"]:
            layers.setdefault(run["layer"], []).append(run)
        known = [layer for layer in (*EVERY, *REFERENCES) if layer in layers]
        content["layers"] = {n: layers[n] for n in known if len(layers[n]) >= seeds}
        if content["layers"]:
            found[name] = content
    return found


def counted(found):
    """Return the sets that count in ranks and means: all of `FIRST` are through on them."""
    return [name for name in found if all(one in found[name]["layers"] for one in FIRST)]


def whole(found):
    """Return the names of the sets on which every layer that has a part is through."""
    return [name for name in counted(found) if not lacking(found[name])]


def lacking(content):
    """Return the layers that are not through on a set and could be, in order."""
    told = content["settings"]["task"]
    return [
        layer
        for layer in (*CONTESTANTS, *REFERENCES)
        if layer not in content["layers"]
        and not excluded(layer, told["steps"], told["channels"])
    ]


def of_classes(content):
    return content["settings"]["task"]["larger_is_better"]


def scores(content, layer, change=None):
    """Return the test scores of a layer's runs as an array, chance for those that diverged.

    Args:
        content: the results of a set.
        layer: a name.
        change: name of a change of the inputs, or None.
    """
    told = content["settings"]["task"]
    metric = told["metric"]
    chance = {metric: told["chance"][metric]}
    tested = [
        (run["perturbed"] or {}).get(change) if change else run["test"]
        for run in content["layers"][layer]
    ]
    return np.array([(found or chance)[metric] for found in tested])


def has(content, layer, change):
    """Return whether a layer was tested with a change of the inputs."""
    runs = content["layers"].get(layer, ())
    return any(change in (run["perturbed"] or {}) for run in runs)


def signed(content, layer, change=None):
    """Return a layer's mean score on a set, larger is better."""
    sign = 1 if of_classes(content) else -1
    return sign * scores(content, layer, change).mean()


def by_layer(found, sets):
    """Return the scores of the layers that have a part in all sets, a list each."""
    layers = [name for name in CONTESTANTS if all(name in found[one]["layers"] for one in sets)]
    return {layer: [signed(found[one], layer) for one in sets] for layer in layers}


def ranked(found, sets):
    return mean_ranks(by_layer(found, sets))


def best(content, layers):
    """Return the layer with the best mean score among some, or None."""
    known = [layer for layer in layers if layer in content["layers"]]
    return max(known, key=lambda layer: signed(content, layer), default=None)


def chosen(content, layers):
    """Return the layer that validation prefers among some, or None; the test set has no say.

    That is the one whose runs have the lowest median of their best validation loss.
    """
    known = [layer for layer in layers if layer in content["layers"]]
    return min(known, key=lambda layer: validation_loss(content, layer), default=None)


def validation_loss(content, layer):
    """Return the median over runs of the lowest validation loss, infinite if they diverged."""
    runs = content["layers"][layer]
    losses = [[loss for loss, *_ in run["curve"] if math.isfinite(loss)] for run in runs]
    return float(np.median([min(found, default=math.inf) for found in losses]))


def of_source(source):
    return [name for name, contestant in CONTESTANTS.items() if contestant.source == source]


def verdict(content):
    """Return the plain layer and that of ours which validation prefers, and which tests better.

    The last is "ours", "plain" or "even". Choosing by the test scores would favour the side
    with more layers.
    """
    plain, ours = (chosen(content, of_source(source)) for source in ("plain", "ours"))
    if plain is None or ours is None:
        return plain, ours, None
    return plain, ours, {1: "ours", 0: "even", -1: "plain"}[compared(content, ours, plain)]


def compared(content, layer, other):
    """Return 1, 0 or -1: better, even or worse; even is within both deviations together."""
    difference = signed(content, layer) - signed(content, other)
    spread = sum(scores(content, name).std(ddof=1) for name in (layer, other))
    return 0 if abs(difference) <= spread else int(np.sign(difference))


def updates_of(content):
    return content["settings"]["budget"]["updates of an epoch"]


def recurrent(found):
    """Yield the runs of recurrent layers, with the updates of their epochs."""
    for content in found.values():
        for layer, runs in content["layers"].items():
            for run in runs:
                if layer in CONTESTANTS:
                    yield layer, run, updates_of(content)


def updates_to_reach(content, layer):
    """Return the updates of each run until its validation loss was the LSTM's best.

    That is the median over seeds of the LSTM's lowest validation loss. A run that never comes
    so far has infinitely many.
    """
    bounds = [min(loss for loss, *_ in run["curve"]) for run in content["layers"]["LSTM"]]
    bound, found = float(np.median(bounds)), []
    for run in content["layers"][layer]:
        reached = [i for i, (loss, *_) in enumerate(run["curve"], 1) if loss <= bound]
        found.append(reached[0] * updates_of(content) if reached else math.inf)
    return found


def seconds_of_update(run, updates):
    """Return the processor seconds of an update, compilation and validation shared out."""
    return run["seconds"] / (len(run["curve"]) * updates)
