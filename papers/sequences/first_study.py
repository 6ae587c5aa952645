"""The first study on real sequences, 19 layers on 12 sets: its committed results, to be read.

papers/results/real_sequences has them, and report.md there every set, test and setting. The
study itself, and that on how soon layers learn to add (papers/results/how_soon), ran from
papers/real_sequences.py and papers/how_soon.py of commit 374b1a4.
"""

import json
from pathlib import Path

import numpy as np

# The layers, and how tables call them where the name of a run would mislead.
CONTESTANTS = {
    "LSTM": "LSTM",
    "GRU": "GRU",
    "SimpleRNN": "SimpleRNN",
    "LayerNorm-LSTM": "LayerNorm-LSTM",
    "Standardised-LSTM": "LSTM, each sequence standardised",
    "MomentumLSTM": "MomentumLSTM",
    "SRLSTM": "SRLSTM",
    "NAGLSTM": "NAGLSTM",
    "AdamLSTM": "AdamLSTM, scale-free",
    "RMSPropLSTM": "RMSPropLSTM, scale-free",
    "Default-AdamLSTM": "AdamLSTM",
    "Default-RMSPropLSTM": "RMSPropLSTM",
    "AdamGRU": "AdamGRU",
    "MomentumGRU": "MomentumGRU",
    "MomentumRNN": "MomentumRNN",
    "DTRIV": "DTRIV",
    "MomentumDTRIV": "MomentumDTRIV",
    "MCRM": "MCRM",
    "NestedLSTM": "NestedLSTM",
    "LearnedMomentum": "RuleLSTM, momentum learned per gate",
}
PLAIN = ("LSTM", "GRU", "SimpleRNN", "LayerNorm-LSTM", "Standardised-LSTM")
# The layers without which a set does not count.
FIRST = ("LSTM", "GRU", "SimpleRNN", "Standardised-LSTM", "AdamLSTM", "RMSPropLSTM")
# A layer beside the comparison, and models without a recurrence.
CONTROLS = {"Summed-LSTM": "LSTM, running sums of the inputs"}
REFERENCES = ("linear", "MiniRocket")


def titled(layer):
    """Return the name of a layer or a model in tables."""
    return {**CONTESTANTS, **CONTROLS}.get(layer, layer)


def of_source(source):
    """Return the layers of a source, "plain" or "ours"."""
    return [name for name in CONTESTANTS if (name in PLAIN) == (source == "plain")]


def read(directory, seeds):
    """Return the results of the sets by name, the runs of layers that are through by layer."""
    found = {}
    for path in sorted(Path(directory).glob("*/results.json")):
        content, layers = json.loads(path.read_text(encoding="utf-8")), {}
        for run in content["runs"]:
            layers.setdefault(run["layer"], []).append(run)
        known = [name for name in (*CONTESTANTS, *CONTROLS, *REFERENCES) if name in layers]
        content["layers"] = {n: layers[n] for n in known if len(layers[n]) >= seeds}
        if content["layers"]:
            found[path.parent.name] = content
    return found


def whole(found):
    """Return the names of the sets on which every layer that can have a part is through."""
    return [
        name
        for name, content in found.items()
        if all(layer in content["layers"] for layer in wanted(content["settings"]["task"]))
    ]


def wanted(task):
    """Return the layers and models that can have a part in a set.

    LayerNormalization over one channel gives 0, and MiniRocket's kernels are 9 steps long.
    """
    without = {"LayerNorm-LSTM"} if task["channels"] == 1 else set()
    without |= {"MiniRocket"} if task["steps"] < 9 else set()
    return [name for name in (*CONTESTANTS, *REFERENCES) if name not in without]


def of_classes(content):
    return content["settings"]["task"]["larger_is_better"]


def scores(content, layer, change=None):
    """Return the test scores of a layer's runs as an array, chance for those that diverged.

    Args:
        content: the results of a set.
        layer: a name.
        change: name of a change of the inputs after training, or None.
    """
    task = content["settings"]["task"]
    runs = content["layers"][layer]
    found = [(run["perturbed"] or {}).get(change) if change else run["test"] for run in runs]
    return np.array([(one or task["chance"])[task["metric"]] for one in found])


def has(content, layer, change):
    """Return whether a layer was tested with a change of the inputs."""
    return any(change in (run["perturbed"] or {}) for run in content["layers"].get(layer, ()))
