"""Pages of reference: every public name, by module, whose docstring mkdocstrings shows."""

import importlib

from keras_momentum_rnn import cells
from keras_momentum_rnn.layers.registry import our_layers

FAMILIES = {
    "LSTM": "LSTM layers",
    "GRU": "GRU layers",
    "RNN": "SimpleRNN layers",
    "DTRIV": "Orthogonal layers",
    "nested": "Nested layers",
}
# Pages of one module: title, module, and what the page says first.
MODULES = {
    "rules": ("Rules", "keras_momentum_rnn.rules", ""),
    "optimizers": ("Optimizers", "keras_momentum_rnn.optimizers", ""),
    "schedules": ("Momentum schedules", "keras_momentum_rnn.optimizers.schedules", ""),
    "initializers": ("Initializers", "keras_momentum_rnn.initializers", ""),
    "convert": ("Conversion", "keras_momentum_rnn.convert", ""),
    "streaming": ("One step at a time", "keras_momentum_rnn.streaming", ""),
    "diagnostics": ("Diagnostics", "keras_momentum_rnn.diagnostics", ""),
    "tasks": ("Tasks", "papers.tasks", ""),
    "experiments": ("Comparisons", "papers.experiments", ""),
    "tuning": ("Search", "keras_momentum_rnn.tuning", ""),
}
OF_ALL_LAYERS = ("recurrent.RuleLayer", "paths.plan.Plan")
MEMBERS = """\
    options:
      members: true
      filters: ['!^_', '!^build$', '!^get_config$']
"""


def public(module_name):
    """Return the names that a module is for: its `__all__`, or what it defines itself."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module_name and not name.startswith("_")
        ]
    return [name for name in names if not inspect_module(getattr(module, name))]


def inspect_module(value):
    return type(value).__name__ == "module"


def entry(path, members=False):
    return f"::: {path}\n" + (MEMBERS if members else "")


def pages():
    """Return the text of each page by its name."""
    found = {}
    for family, title in FAMILIES.items():
        names = our_layers(family)
        text = f"# {title}\n\n[Equations, states and costs](../choose/catalogue.md)\n\n"
        text += "\n".join(entry(f"keras_momentum_rnn.{name}") for name in names)
        found[f"layers_{family.lower()}"] = text
    found["layer_methods"] = "# What all layers have\n\n" + "\n".join(
        entry(f"keras_momentum_rnn.{name}", True) for name in OF_ALL_LAYERS
    )
    text = "# Cells\n\nEach runs alone in `keras.layers.RNN`, too.\n\n"
    found["cells"] = text + entry("keras_momentum_rnn.cells.base.RuleCell", True) + "\n"
    found["cells"] += "\n".join(entry(f"keras_momentum_rnn.{name}") for name in cells.__all__)
    for page, (title, module, first) in MODULES.items():
        entries = [entry(f"{module}.{name}", True) for name in public(module)]
        found[page] = f"# {title}\n\n" + (f"{first}\n\n" if first else "") + "\n".join(entries)
    return found
