"""Pages of reference: every public name, by module, whose docstring mkdocstrings shows."""

import importlib
import inspect

from keras_momentum_rnn import cells
from keras_momentum_rnn.layers import plain
from keras_momentum_rnn.layers.registry import our_layers

FAMILIES = {
    "LSTM": "LSTM layers",
    "GRU": "GRU layers",
    "RNN": "SimpleRNN layers",
    "DTRIV": "Orthogonal layers",
    "nested": "Nested layers",
}
MODULES = {
    "rules": "Rules",
    "optimizers": "Optimizers",
    "optimizers.schedules": "Momentum schedules",
    "initializers": "Initializers",
    "convert": "Conversion",
    "streaming": "One step at a time",
    "diagnostics": "Diagnostics",
    "tuning": "Tuning",
}
MEMBERS = """\
    options:
      members: true
      filters: ['!^_', '!^build$', '!^get_config$']
"""


def entries(module, names, members=""):
    return "\n".join(f"::: keras_momentum_rnn.{module}{name}\n{members}" for name in names)


def public(module):
    """Return the names that a module is for: its `__all__`, or what it defines itself."""
    found = vars(importlib.import_module(module))
    own = [n for n, v in found.items() if getattr(v, "__module__", None) == module]
    names = found.get("__all__", [name for name in own if not name.startswith("_")])
    return [name for name in names if not inspect.ismodule(found[name])]


def pages():
    """Return the text of each page by its name."""
    found = {}
    for family, title in FAMILIES.items():
        page = "mcrm" if family == "nested" else family.lower()
        link = f"[Equations, states and costs](../choose/{page}.md)"
        text = f"# {title}\n\n{link}\n\n{entries('', our_layers(family))}"
        found[f"layers_{family.lower()}"] = text
    guide = "[How to use them](../guides/accelerate.md)\n\n"
    found["layers_plain"] = f"# Layers without a rule\n\n{guide}{entries('', plain.__all__)}"
    found["layer_methods"] = "# What all layers have\n\n" + entries(
        "", ["recurrent.RuleLayer", "paths.plan.Plan"], MEMBERS
    )
    found["cells"] = (
        "# Cells\n\nEach runs alone in `keras.layers.RNN`, too.\n\n"
        + entries("", ["cells.base.RuleCell"], MEMBERS)
        + f"\n{entries('', cells.__all__)}"
    )
    for module, title in MODULES.items():
        names = public(f"keras_momentum_rnn.{module}")
        page = module.rpartition(".")[2]
        found[page] = f"# {title}\n\n{entries(f'{module}.', names, MEMBERS)}"
    return found
