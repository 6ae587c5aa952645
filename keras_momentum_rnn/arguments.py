"""Constructor arguments of classes built on a Keras class: those of Keras, the rule's, our own.

Keras spells the argument list of each recurrent layer in full. Here it is read from the Keras
class, so that every argument of the installed Keras is accepted, in its order, and shown by
`help`.
"""

import inspect

from keras_momentum_rnn import rules
from keras_momentum_rnn.checks import checked, checked_choice, checked_count

# Keras accepts it for LSTM and GRU without listing it.
UNLISTED = ("implementation",)
UNITS = inspect.Parameter("units", inspect.Parameter.POSITIONAL_OR_KEYWORD)
REST = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)


def rule_parameters(rule_class):
    """Return the names of a rule's numbers, none for no rule."""
    return [] if rule_class is None else list(inspect.signature(rule_class).parameters)


def keyword_parameters(cls):
    """Return the keyword-only parameters that `cls` and its bases add to those of Keras.

    Where a class names its rule (`rule_class`), the rule's numbers stand in place of `rule`.
    """
    found = {}
    for base in reversed(cls.__mro__):
        if "__init__" in vars(base) and not base.__module__.startswith("keras."):
            for name, parameter in inspect.signature(base.__init__).parameters.items():
                if parameter.kind is parameter.KEYWORD_ONLY:
                    found[name] = parameter
    if cls.rule_class is not None:
        found.pop("rule", None)
        for name, parameter in inspect.signature(cls.rule_class).parameters.items():
            found[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    return found


class FullSignature:
    """The signature of a class: the Keras class's arguments, then those of our classes.

    It is that of the class alone: `inspect` asks an instance for the signature of its call.

    Args:
        keras_class: the Keras class, or None.
        *classes: the class of the cell, then that of the layer, if it is a layer's.
    """

    def __init__(self, keras_class, *classes):
        parameters = keras_parameters(keras_class, classes[0])
        rest = parameters.pop("kwargs")
        for cls in classes:
            parameters.update(keyword_parameters(cls))
        self.signature = inspect.Signature([*parameters.values(), rest])

    def __get__(self, instance, owner):
        if instance is not None:
            raise AttributeError("__signature__")
        return self.signature


def keras_parameters(keras_class, cell_class):
    """Return the parameters of a Keras class that a cell's takes, with the defaults it has.

    `units` stands first for `keras.layers.RNN`, in place of its cell, and for no class, None.
    """
    parameters = {"units": UNITS, "kwargs": REST}
    if keras_class is not None:
        parameters = {**parameters, **inspect.signature(keras_class).parameters}
        parameters.pop("cell", None)
        parameters["kwargs"] = parameters.pop("kwargs")
    for name in cell_class.left_out:
        del parameters[name]
    for name, default in cell_class.other_defaults.items():
        parameters[name] = parameters[name].replace(default=default)
    return parameters


def bound(keras_class, cell_class, args, kwargs):
    """Return the arguments of a call as one dict, checked.

    They are those of `keras_class`, for a cell of the class `cell_class`.
    """
    if wrong := sorted({*cell_class.left_out} & {*kwargs}):
        raise ValueError(
            f"{cell_class.__name__} takes no `{wrong[0]}`, which its equation has no place "
            f"for. Received: {wrong[0]}={kwargs[wrong[0]]!r}"
        )
    parameters = keras_parameters(keras_class, cell_class)
    given = inspect.Signature([*parameters.values()]).bind(*args, **kwargs)
    arguments = {**cell_class.other_defaults, **given.arguments}
    arguments.update(arguments.pop("kwargs", {}))
    arguments["units"] = checked_count("units", arguments["units"])
    for name in ("dropout", "recurrent_dropout"):
        if name in arguments:
            arguments[name] = checked(name, arguments[name], at_least=0, below=1)
    if "use_cudnn" in arguments:
        checked_choice("use_cudnn", arguments["use_cudnn"], ("auto", True, False))
    return arguments


def take_rule(cls, rule, arguments):
    """Return the rule of a cell: `rule`, or the one that `cls` names, made of `arguments`."""
    if cls.rule_class is None:
        return rules.get(rule)
    if rule is not None:
        raise ValueError(
            f"{cls.__name__} has a rule of its own, {cls.rule_class.__name__}; the generic "
            f"layers and cells (RuleLSTM, ...) take `rule`. Received: rule={rule!r}"
        )
    names = rule_parameters(cls.rule_class)
    return cls.rule_class(**{name: arguments.pop(name) for name in names if name in arguments})


def delegate(cls, names, part):
    """Give `cls` read-only properties which read `names` from its attribute `part`."""

    def reader(name):
        return property(
            lambda self: getattr(getattr(self, part), name), doc=f"`{part}.{name}`."
        )

    for name in names:
        setattr(cls, name, reader(name))
