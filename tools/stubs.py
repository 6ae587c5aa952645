"""Write the type stubs of the layers and the cells, whose constructors are computed.

Type checkers and editors run no code. They read the arguments from `layers/__init__.pyi` and
`cells/__init__.pyi`. Run this before you build a wheel, or to have them in your checkout:

    python tools/stubs.py [FOLDER OF THE PACKAGE]
"""

import inspect
import re
import sys
import textwrap
from pathlib import Path

import keras

from keras_momentum_rnn import annotations, cells, layers, rules
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.layers import plain
from keras_momentum_rnn.recurrent import RuleLayer

HEAD = '''\
"""Written by tools/stubs.py from the signatures."""

from typing import Any, Literal

import keras

from keras_momentum_rnn.annotations import Identifier
'''
LINE = 96
BASES = {RuleLayer: "keras_momentum_rnn.recurrent", RuleCell: "keras_momentum_rnn.cells.base"}
# The types of Keras's arguments, where neither Keras nor the default tells them.
TYPES = {
    "units": "int",
    "name": "str | None",
    "seed": "int | keras.random.SeedGenerator | None",
    "use_cudnn": 'bool | Literal["auto"]',
    "input_shape": "tuple[int | None, ...]",
}
IDENTIFIERS = ("activation", "_initializer", "_regularizer", "_constraint")
# What a base class of Keras takes, and the classes below it hand on without listing it.
OF_LAYERS = inspect.signature(keras.layers.Layer.__init__).parameters
OF_RNN = inspect.signature(keras.layers.RNN.__init__).parameters
UNLISTED = {
    "input_shape": inspect.Parameter("input_shape", inspect.Parameter.KEYWORD_ONLY, default=()),
    "implementation": inspect.Parameter(
        "implementation", inspect.Parameter.KEYWORD_ONLY, default=2
    ),
}
NOT_HANDED_ON = ("self", "cell", "kwargs")
# Where they stand, Keras's classes have other names.
PUBLIC_NAMES = {keras.Variable: "keras.Variable", keras.layers.Layer: "keras.layers.Layer"}
# A rule, where one must be given.
RULE = inspect.signature(rules.get).parameters["rule"]


def public(module):
    """Return the public classes of a package whose constructors are computed.

    Those of the layers without a rule are Keras's own.
    """
    classes = [getattr(module, name) for name in module.__all__]
    return [cls for cls in classes if not issubclass(cls, plain.PlainLayer)]


def needs_rule(cls):
    """Return whether a layer, or the layer of a cell, must be given a rule."""
    generic = [layer for layer in public(layers) if layer.needs_rule]
    return cls in generic or cls in [layer.cell_class for layer in generic]


def is_public(cls):
    """Return whether a class has a stub."""
    return cls in public(cells) or cls in public(layers)


def bases_of(cls):
    """Return the bases of a class; in place of one without a stub, those of it."""
    bases = []
    for base in cls.__bases__:
        hidden = issubclass(base, tuple(BASES)) and base not in BASES and not is_public(base)
        bases += bases_of(base) if hidden else [base]
    return bases


def parameters_of(cls):
    """Return the parameters of a class by name, those that Keras does not list among them."""
    parameters = dict(inspect.signature(cls).parameters)
    del parameters["kwargs"]
    is_layer = issubclass(cls, RuleLayer)
    further = {**OF_RNN, **OF_LAYERS, **UNLISTED} if is_layer else {**OF_LAYERS, **UNLISTED}
    keras_class = cls.keras_layer if is_layer else cls.keras_cell
    if not keras_class.__name__.startswith(("LSTM", "GRU")):
        del further["implementation"]
    for name, parameter in further.items():
        if name not in (*parameters, *NOT_HANDED_ON):
            parameters[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    if needs_rule(cls):
        parameters["rule"] = RULE.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    return parameters


def type_of(parameter):
    """Return the type of a parameter as text."""
    name, default = parameter.name, parameter.default
    if parameter.annotation is not parameter.empty:
        return as_text(parameter.annotation)
    if name in TYPES:
        return TYPES[name]
    if name.endswith(IDENTIFIERS):
        return "Identifier"
    return type(default).__name__ if isinstance(default, (bool, int, float)) else "Any"


def as_text(annotation):
    """Return an annotation as it stands in a stub."""
    if annotation == annotations.Identifier:
        return "Identifier"
    text = inspect.formatannotation(annotation).replace("'", '"').replace("NoneType", "None")
    for cls, name in PUBLIC_NAMES.items():
        text = text.replace(inspect.formatannotation(cls), name)
    return re.sub(r"\b(typing|keras_momentum_rnn[\w.]*)\.", "", text)


def shown(parameter):
    """Return a parameter with its type and its default as text."""
    text, default = f"{parameter.name}: {type_of(parameter)}", parameter.default
    if default is parameter.empty:
        return text
    if default is not None and not isinstance(default, (bool, int, float, str)):
        return f"{text} = ..."
    return f"{text} = {default!r}".replace("'", '"')


def method(name, parameters, returns):
    """Return a method as lines."""
    texts, keyword_only = ["self"], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            texts.append("*")
            keyword_only = True
        texts.append(shown(parameter))
    line = f"    def {name}({', '.join(texts)}) -> {returns}: ..."
    if len(line) <= LINE:
        return [line]
    # A line breaks between two parameters alone.
    joined = ", ".join(text.replace(" ", "\0") for text in texts)
    wrapped = textwrap.wrap(joined, LINE - 8, break_on_hyphens=False)
    indented = [f"        {line}".replace("\0", " ") for line in wrapped]
    return [f"    def {name}(", *indented, f"    ) -> {returns}: ..."]


def property_lines(name, kind):
    """Return a property as lines."""
    return ["    @property", *method(name, [], kind)]


def docstring_lines(cls):
    """Return the docstring of a class as lines: in the source it may be incomplete."""
    text = textwrap.indent(inspect.getdoc(cls), "    ").strip()
    return [f'    """{text}\n    """' if "\n" in text else f'    """{text}"""']


def documented(lines, cls):
    """Return a constructor with what its class is, which editors show in place of Keras's."""
    *first, last = lines
    return [*first, last.removesuffix(" ..."), f'        """{cls.__doc__.splitlines()[0]}"""']


def attribute(cls, name, kind):
    """Return the declaration of an attribute as lines."""
    is_property = isinstance(inspect.getattr_static(cls, name, None), property)
    return property_lines(name, kind) if is_property else [f"    {name}: {kind}"]


def attributes(cls, parameters):
    """Yield the lines of what a class has, and its bases have not: arguments, cell, rule."""
    bases = filter(is_public, bases_of(cls))
    inherited = {name for base in bases for name in parameters_of(base)}
    if issubclass(cls, RuleLayer) and "chosen_cell" not in vars(cls):
        # Not as a plain attribute: to pyright, what has an unknown base may be a descriptor.
        yield from property_lines("cell", cls.cell_class.__name__)
    if cls.rule_class is not None or "rule" not in inherited:
        yield from attribute(cls, "rule", (cls.rule_class or rules.Rule).__name__)
    for name, parameter in parameters.items():
        if name not in (*inherited, *OF_LAYERS, *UNLISTED, "rule"):
            kind = type_of(parameter)
            is_object = kind == "Identifier" or "keras.layers" in kind
            yield from attribute(cls, name, "Any" if is_object else kind)
    for name, annotation in vars(cls).get("__annotations__", {}).items():
        if "ClassVar" not in str(annotation):
            yield f"    {name}: {as_text(annotation)}"


def methods(cls):
    """Yield the lines of the public methods that a class has and its bases have not."""
    for name, member in vars(cls).items():
        new = not any(hasattr(base, name) for base in cls.__bases__)
        if inspect.isfunction(member) and new and not name.startswith("_"):
            signature = inspect.signature(member)
            _, *parameters = signature.parameters.values()
            yield from method(name, parameters, as_text(signature.return_annotation))


def class_lines(cls):
    """Return a class as lines."""
    bases = [
        ("" if base in BASES or is_public(base) else "keras.layers.") + base.__name__
        for base in bases_of(cls)
    ]
    parameters = parameters_of(cls)
    return [
        f"class {cls.__name__}({', '.join(bases)}):",
        *docstring_lines(cls),
        *attributes(cls, parameters),
        *documented(method("__init__", parameters.values(), "None"), cls),
        *methods(cls),
        "",
    ]


def import_lines(module, names):
    """Return the import of some names as lines."""
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def stub(module):
    """Return the text of a package's stub."""
    bases_first = [base for cls in public(module) for base in reversed(cls.__mro__)]
    classes = list(dict.fromkeys(filter(is_public, bases_first)))
    body = [line for cls in classes for line in class_lines(cls)]
    words = set(re.findall(r"\w+", "\n".join(body)))
    lines = HEAD.splitlines()
    if module is layers:
        lines += import_lines(cells.__name__, [n for n in cells.__all__ if n in words])
        lines += import_lines(plain.__name__, plain.__all__)
    lines += [f"from {BASES[c]} import {c.__name__}" for c in BASES if c.__name__ in words]
    lines += import_lines(rules.__name__, [n for n in rules.__all__ if n in words])
    exported = ["__all__ = [", *(f'    "{name}",' for name in module.__all__), "]"]
    return "\n".join([*lines, "", *exported, "", *body])


def write(package):
    """Write the stubs into a folder of the package; return their paths."""
    paths = []
    for module in (cells, layers):
        name = module.__name__.rpartition(".")[2]
        paths.append(Path(package) / name / "__init__.pyi")
        paths[-1].write_text(stub(module))
    return paths


if __name__ == "__main__":
    own_folder = Path(layers.__file__).parent.parent
    for path in write(*sys.argv[1:2] or [own_folder]):
        print(path)
