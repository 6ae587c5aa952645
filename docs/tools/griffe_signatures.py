"""Show in the reference what Python itself shows: computed signatures, and examples as code.

The constructors of layers and cells are read from Keras when a class is made, so that no file
has them in full. This extension of griffe imports the class and takes its signature, defaults
included, from `inspect`.
"""

import importlib
import inspect
import re

import griffe

KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: griffe.ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.VAR_POSITIONAL: griffe.ParameterKind.var_positional,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: griffe.ParameterKind.var_keyword,
}
COMPUTED = ("keras_momentum_rnn.cells.", "keras_momentum_rnn.layers.")
# Lines of a doctest, up to the empty line that ends its output.
DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", flags=re.MULTILINE)


class Signatures(griffe.Extension):
    """Give classes with a computed `__signature__` that signature as their `__init__`."""

    def on_module_members(self, *, node, mod, agent, **kwargs):
        # Stubs are for editors: they lack the docstrings, and hide where a class is from.
        if getattr(mod.filepath, "suffix", None) == ".pyi":
            mod.members.clear()
            mod.imports.clear()
            mod.exports = None

    def on_class(self, *, cls, loader, **kwargs):
        parameters = computed(cls.path)
        if parameters is None:
            return
        found = getattr(importlib.import_module(cls.path.rpartition(".")[0]), cls.name)
        cls.docstring = griffe.Docstring(shown(inspect.getdoc(found)), parent=cls)
        init = griffe.Function("__init__", parameters=griffe.Parameters(*parameters))
        cls.set_member("__init__", init)

    def on_instance(self, *, node, obj, agent, **kwargs):
        if obj.docstring is not None:
            obj.docstring.value = shown(obj.docstring.value)


def computed(path):
    """Return the parameters of a class whose signature is computed, or None."""
    if not path.startswith(COMPUTED):
        return None
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(module), name)
    if "__signature__" not in {key for base in found.__mro__ for key in vars(base)}:
        return None
    signature = inspect.signature(found)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [as_griffe(p) for p in (own, *signature.parameters.values())]


def as_griffe(parameter):
    default = parameter.default
    text = None if default is parameter.empty else repr(default)
    if parameter.kind is parameter.VAR_KEYWORD:
        text = "{}"
    return griffe.Parameter(parameter.name, kind=KINDS[parameter.kind], default=text)


def shown(docstring):
    """Return a docstring whose doctests are blocks of code for Markdown."""
    return DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", inspect.cleandoc(docstring))
