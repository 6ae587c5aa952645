"""The catalogue of layers: from the registry, the docstrings, the layers and the results."""

import inspect
import json
import math
import re
from pathlib import Path

from keras_momentum_rnn.diagnostics import state_names
from keras_momentum_rnn.layers.registry import our_layers
from keras_momentum_rnn.rules import Identity
from papers.presentation import markdown_table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
BACKENDS = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}
FEATURES, UNITS = 10, 32
NGUYEN = "[Nguyen et al. (2020)](../papers/momentumrnn.md)"
LEZCANO = "[Lezcano-Casado (2019)](../papers/dtriv.md)"
MOHAMED = "[Mohamed and Claudel (2018)](../papers/mcrm.md)"
MONIZ = f"Moniz and Krueger (2017), in the form of {MOHAMED}"
CODE = {
    NGUYEN: "<https://github.com/minhtannguyen/MomentumRNN>",
    LEZCANO: "<https://github.com/Lezcano/expRNN>",
    MOHAMED: "<https://github.com/abduallahmohamed/MCRM>",
    MONIZ: "<https://github.com/abduallahmohamed/MCRM>",
}
FAMILIES = {
    "LSTM": ("LSTM layers", "They replace `keras.layers.LSTM`."),
    "GRU": ("GRU layers", "They replace `keras.layers.GRU`. No paper tried them."),
    "RNN": ("SimpleRNN layers", "They replace `keras.layers.SimpleRNN`."),
    "DTRIV": (
        "Orthogonal layers",
        "Their recurrent matrix is always orthogonal. "
        "[Orthogonal layers](../guides/orthogonal.md) explains them.",
    ),
    "nested": (
        "Nested layers",
        "Their memory is a recurrent cell itself. "
        "[Nested layers](../guides/nested.md) explains them.",
    ),
}
# When to use a layer, by its rule or its name; the pages that are named have the numbers.
USE = {
    "HeavyBall": "inputs that change slowly, such as speech frames; very few updates",
    "NAG": "long series of one channel with few examples; its momentum rises towards 1",
    "ScheduledRestart": "sequences where NAG's momentum would come too near to 1",
    "Adam": "tasks where few of many steps matter, such as adding; inputs of unknown scale",
    "RMSProp": "inputs of unknown scale, pixels, characters",
    "DTRIV": "sequences whose hidden state must last over many steps",
    "MCRM": "adding over 200 steps, where its loss was lowest; it led on no other task",
    "NestedLSTM": "repeating the paper; in our small budgets it led on no task",
    "any": "[your own rule](../guides/own_rule.md)",
}
HEAD = f"""# Catalogue of layers

Equation, paper, states, parameters and cost of each layer. [Which layer?](which_layer.md) says
where to start, and the [glossary](../glossary.md) explains the words.

- **Hyperparameters** are the arguments that the Keras layer does not have. Pass them by
  keyword. The [reference](../reference/layers_lstm.md) explains them.
- **States** are per sample, h first. The [slots](../glossary.md#slot) of the rule come last.
- **Parameters** are counted with {FEATURES} features and {UNITS} units; in brackets those of
  the Keras layer that it replaces.
- **Cost** is the time of a training step, divided by that of the plain layer of the same
  kind: Keras's, on PyTorch `torch.nn`'s. We measured it at 128 steps and 128 units on two idle
  CPU cores, without and with the extra `cpu` (the
  [native kernel](../speed.md#the-native-kernel)). The plain layer of MCRM and NestedLSTM
  is an LSTM of as many parameters.
- **An asterisk** marks a cost from another run, without the extra `cpu` and on a machine that
  may have been busy. There `DTRIV` has 784 steps and 170 units.
- **Use it for** follows from our runs of LSTM layers. On other cells we hardly compared rules.
- **Each layer has a cell** (`MomentumLSTMCell`, ...) for `keras.layers.RNN` and
  `StackedRNNCells`.
"""


def page():
    """Return the text of the catalogue."""
    costs = all_costs()
    parts = [HEAD]
    for family, (title, first) in FAMILIES.items():
        parts.append(f"## {title}\n\n{first}\n")
        parts += [of_layer(name, cls, costs) for name, cls in our_layers(family).items()]
    return "\n".join(parts)


def of_layer(name, cls, costs):
    summary, equation = told(cls)
    paper = paper_of(name, cls)
    rows = [
        ["paper", paper or "-"],
        ["authors' code", CODE.get(paper, "-")],
        ["hyperparameters", hyperparameters(cls)],
        ["states", states(cls)],
        ["parameters", parameters(cls)],
        ["cost", costs.get(name, "not measured")],
        ["use it for", use_of(name, cls)],
    ]
    table = markdown_table([f"`{name}`", ""], rows)
    code = f"```\n{equation}\n```\n\n" if equation else ""
    return f"### {name}\n\n{summary}\n\n{code}{table}\n"


def told(cls):
    """Return the first sentence of a docstring and its first block of equations."""
    text = inspect.getdoc(cls)
    block = re.search(r"```\n(.*?)\n```", text, flags=re.DOTALL)
    return " ".join(text.split("\n\n")[0].split()), block[1] if block else ""


def paper_of(name, cls):
    """Return the paper of a layer, or nothing where no paper has tried it."""
    if cls.family == "nested":
        return MONIZ if name == "NestedLSTM" else MOHAMED
    if name in ("DTRIV", "RuleDTRIV"):
        return LEZCANO
    return None if cls.family == "GRU" else NGUYEN


def use_of(name, cls):
    if cls.family == "nested" or name == "DTRIV":
        return USE[name]
    return USE["any"] if cls.needs_rule else USE[cls.rule_class.__name__]


def hyperparameters(cls):
    """Return the arguments that Keras's layer does not have, with their defaults."""
    theirs = inspect.signature(cls.keras_layer).parameters
    ours = inspect.signature(cls).parameters.values()
    return ", ".join(argument(p, cls.needs_rule) for p in ours if p.name not in theirs)


def argument(parameter, needs_rule):
    if needs_rule and parameter.name == "rule":
        return "`rule` (required)"
    if parameter.default is parameter.empty:
        return f"`{parameter.name}`"
    return f"`{parameter.name}={parameter.default!r}`"


def made(cls, units):
    return cls(units, rule=Identity()) if cls.needs_rule else cls(units)


def states(cls):
    """Return the names of the states with their widths, in units."""
    small, large = (made(cls, units).cell for units in (2, 4))
    sizes = zip(state_names(small), small.state_size, large.state_size)
    text = ", ".join(f"{name} {width(a, b)}" for name, a, b in sizes)
    return text + (", then the rule's slots" if cls.needs_rule else "")


def width(of_two, of_four):
    """Return a width as text, from those for 2 and for 4 units."""
    if of_two == of_four:
        return f"`({of_two},)`"
    times = of_two // 2
    return "`(units,)`" if times == 1 else f"`({times} units,)`"


def parameters(cls):
    def count(layer):
        layer.build((None, None, FEATURES))
        return sum(math.prod(weight.shape) for weight in layer.trainable_weights)

    plain = cls.keras_layer
    return f"{count(made(cls, UNITS)):,} ({plain.__name__}: {count(plain(UNITS)):,})"


def all_costs():
    """Return the cost of each layer as text: from one run with and without the kernel.

    Layers that it does not have are in another run, without the kernel.
    """
    other, without, native = {}, {}, {}
    for backend, title in BACKENDS.items():
        measured = results(f"cpu-{backend}.json")
        for case in ("main", "orthogonal"):
            for row in measured.get(case, {"layers": []})["layers"]:
                other.setdefault(row["layer"], {})[title] = first_baseline(row)
        rows = results("native.json").get(backend, {}).get("main", {"layers": {}})["layers"]
        for layer, row in rows.items():
            without.setdefault(layer, {})[title] = row["ratio_without"]["median"]
            native.setdefault(layer, {})[title] = row["ratio"]["median"]
    found = {layer: f"{listed(ratios)} *" for layer, ratios in other.items()}
    for layer, ratios in native.items():
        found[layer] = f"{listed(without[layer])}; with `cpu`: {listed(ratios)}"
    return found


def results(name):
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else {}


def first_baseline(row):
    """Return the ratio to the plain layer: PyTorch's own, or Keras's."""
    baselines = row["baselines"]
    own = [b for b in baselines if b["layer"].startswith("torch.nn.")]
    return (own or baselines)[0]["ratio"]["training"]["median"]


def listed(ratios):
    return ", ".join(f"{title} {ratio:.2f}" for title, ratio in ratios.items())
