"""The catalogue of layers: from the registry, the docstrings, the layers and the results."""

import inspect
import json
import math
import re
from pathlib import Path

from keras_momentum_rnn.diagnostics import state_names
from keras_momentum_rnn.layers.registry import our_layers
from keras_momentum_rnn.presentation import markdown_table
from keras_momentum_rnn.rules import Identity

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
BACKENDS = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}
FEATURES, UNITS = 10, 32
NGUYEN = "[Nguyen et al. (2020)](../papers/momentumrnn.md)"
LEZCANO = "[Lezcano-Casado (2019)](../papers/dtriv.md)"
MOHAMED = "[Mohamed and Claudel (2018)](../papers/mcrm.md)"
CODE = {
    NGUYEN: "<https://github.com/minhtannguyen/MomentumRNN>",
    LEZCANO: "<https://github.com/Lezcano/expRNN>",
    MOHAMED: "<https://github.com/abduallahmohamed/MCRM>",
}
FAMILIES = {
    "LSTM": ("LSTM layers", "They replace `keras.layers.LSTM`."),
    "GRU": ("GRU layers", "They replace `keras.layers.GRU`. No paper tried them."),
    "RNN": ("SimpleRNN layers", "They replace `keras.layers.SimpleRNN`."),
    "DTRIV": (
        "Orthogonal layers",
        "The recurrent matrix stays orthogonal: [guide](../guides/orthogonal.md).",
    ),
    "nested": (
        "Nested layers",
        "The memory is a cell of its own: [guide](../guides/nested.md).",
    ),
}
# When to use a layer, by its rule or its name; the pages that are named have the numbers.
USE = {
    "HeavyBall": "Inputs that change slowly, such as speech frames; few updates.",
    "NAG": "Short sequences, no momentum to tune: its momentum tends to 1.",
    "ScheduledRestart": "As NAG, on longer sequences.",
    "Adam": "Few of many steps matter, as in adding; inputs of unknown scale.",
    "RMSProp": "The first of ours to try: inputs of unknown scale, pixels, characters.",
    "DTRIV": "The hidden state must last over many steps.",
    "MCRM": "To repeat the paper. In our small budgets it led on no task.",
    "NestedLSTM": "To repeat the paper. In our small budgets it led on no task.",
    "any": "[A rule of your own](../guides/own_rule.md).",
}
HEAD = f"""# Catalogue of layers

Equation, paper, states, parameters and cost of each layer. [Which layer?](which_layer.md) says
where to start, and the [glossary](../glossary.md) explains the words.

- **Each layer has a cell** (`MomentumLSTMCell`, ...) for `keras.layers.RNN` and
  `StackedRNNCells`.
- **Hyperparameters** are the arguments beside those of the Keras layer, by keyword only.
- **States** are per sample, h first. The [slots](../glossary.md#slot) of the rule come last.
- **Parameters** are counted with {FEATURES} features and {UNITS} units; in brackets those of
  the Keras layer that it replaces.
- **Cost** is the time of a training step as a ratio to the plain layer (Keras's; on PyTorch
  that of `torch.nn` where it has one), at 128 steps and 128 units on two CPU cores. Orthogonal
  layers: 784 steps, 170 units. For MCRM and NestedLSTM the plain layer is `RNN(LSTMCell)` of as
  many parameters. "With `cpu`" is with the [native kernel](../speed.md#the-native-kernel).
- **Arguments** are in the [reference](../reference/layers_lstm.md).
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
        return MOHAMED
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
    return ", ".join(argument(p) for p in ours if p.name not in theirs)


def argument(parameter):
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
    """Return the cost of each layer as text."""
    plain, native = {}, {}
    for backend, title in BACKENDS.items():
        measured = results(f"cpu-{backend}.json")
        for case in ("main", "orthogonal"):
            for row in measured.get(case, {"layers": []})["layers"]:
                plain.setdefault(row["layer"], {})[title] = first_baseline(row)
        rows = results("native.json").get(backend, {}).get("main", {"layers": {}})["layers"]
        for layer, row in rows.items():
            native.setdefault(layer, {})[title] = row["ratio"]["median"]
    found = {layer: listed(ratios) for layer, ratios in plain.items()}
    for layer, ratios in native.items():
        text = f"with `cpu`: {listed(ratios)}"
        found[layer] = f"{found[layer]}; {text}" if layer in found else text
    return found


def results(name):
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else {}


def first_baseline(row):
    """Return the ratio to the baseline of equal parameters, PyTorch's own, or Keras's."""
    baselines = row["baselines"]
    equal = [b for b in baselines if b["layer"].endswith("(LSTMCell)")]
    own = [b for b in baselines if b["layer"].startswith("torch.nn.")]
    return (equal or own or baselines)[0]["ratio"]["training"]["median"]


def listed(ratios):
    return ", ".join(f"{title} {ratio:.2f}" for title, ratio in ratios.items())
