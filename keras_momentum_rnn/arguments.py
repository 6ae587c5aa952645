"""Constructor arguments of classes built on a Keras class: those of Keras, the rule's, our own.

Keras spells the argument list of each recurrent layer in full. Here it is read from the Keras
class, so that every argument of the installed Keras is accepted, in its order, and shown by
`help`.
"""

import difflib
import functools
import inspect
import numbers

import keras

from keras_momentum_rnn import rules
from keras_momentum_rnn.checks import checked, checked_choice, checked_count

# Keras accepts it for LSTM and GRU without listing it.
UNLISTED = ("implementation",)
# Keras accepts these, too, and lists none of them for LSTM, GRU and SimpleRNN or their cells.
ALSO_TAKEN = (
    *UNLISTED,
    *("name", "dtype", "trainable", "autocast", "activity_regularizer"),
    *("input_shape", "input_dim", "zero_output_for_mask"),
)
UNITS = inspect.Parameter("units", inspect.Parameter.POSITIONAL_OR_KEYWORD)
REST = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)


@functools.cache
def parameters_of(function):
    """Return the parameters of a function or a class by name."""
    return inspect.signature(function).parameters


def rule_parameters(rule_class):
    """Return the names of a rule's numbers, none for no rule."""
    return [] if rule_class is None else list(parameters_of(rule_class))


def keyword_parameters(cls):
    """Return the parameters that `cls` and its bases add to those of Keras, keyword-only.

    Where a class names its rule (`rule_class`), the rule's numbers stand in place of `rule`.
    """
    keras_class = getattr(cls, "keras_layer", None) or getattr(cls, "keras_cell", None)
    of_class = () if keras_class is None else parameters_of(keras_class)
    known = {"self", "units", *ALSO_TAKEN, *of_class}
    added = {}
    for base in reversed(cls.__mro__):
        of_keras = base.__module__.startswith("keras.") or base in keras.layers.Layer.__mro__
        if "__init__" in vars(base) and not of_keras:
            for name, parameter in parameters_of(base.__init__).items():
                named = parameter.kind in (parameter.KEYWORD_ONLY, UNITS.kind)
                if named and name not in known:
                    added[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    if cls.rule_class is not None:
        added.pop("rule", None)
        for name, parameter in parameters_of(cls.rule_class).items():
            added[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    return added


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
        parameters = {**parameters, **parameters_of(keras_class)}
        parameters.pop("cell", None)
        parameters["kwargs"] = parameters.pop("kwargs")
    for name in cell_class.left_out:
        del parameters[name]
    for name, default in cell_class.other_defaults.items():
        parameters[name] = parameters[name].replace(default=default)
    return parameters


def bound(owner, keras_class, cell_class, args, kwargs):
    """Return the arguments of a call as one dict, checked.

    Args:
        owner: the class that is called, ours.
        keras_class: the Keras class whose arguments it takes, or None.
        cell_class: its cell's class.
        args, kwargs: what was passed.
    """
    refuse_unknown(owner, cell_class, kwargs)
    parameters = keras_parameters(keras_class, cell_class)
    try:
        given = inspect.Signature([*parameters.values()]).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{owner.__name__}: {error}") from None
    arguments = {**cell_class.other_defaults, **given.arguments}
    arguments.update(arguments.pop("kwargs", {}))
    if isinstance(arguments.get("activation"), numbers.Number):
        raise ValueError(
            f"`activation` of {owner.__name__}, the second positional argument as in Keras, "
            f"must be a function or its name. Pass {keywords_of(owner)} by keyword. "
            f"Received: activation={arguments['activation']!r}"
        )
    arguments["units"] = checked_count("units", arguments["units"])
    for name in ("dropout", "recurrent_dropout"):
        if name in arguments:
            arguments[name] = checked(name, arguments[name], at_least=0, below=1)
    if "use_cudnn" in arguments:
        checked_choice("use_cudnn", arguments["use_cudnn"], ("auto", True, False))
    return arguments


def refuse_unknown(owner, cell_class, kwargs):
    """Raise a `ValueError` that names the nearest argument, if one is not known."""
    names = [name for name in inspect.signature(owner).parameters if name != "kwargs"]
    for name, value in kwargs.items():
        if name in cell_class.left_out:
            raise ValueError(
                f"{owner.__name__} takes no `{name}`, which its equation has no place "
                f"for. Received: {name}={value!r}"
            )
        if name == "rule" and owner.rule_class is not None:
            take_rule(owner, value, {})
        if name not in (*names, *ALSO_TAKEN):
            nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
            hint = f" Did you mean `{nearest[0]}`?" if nearest else ""
            raise ValueError(
                f"{owner.__name__} has no argument `{name}`.{hint} Received: {name}={value!r}"
            )


def keywords_of(owner):
    """Return the names of a class's own keyword arguments, as text."""
    rule_class = owner.rule_class
    names = rule_parameters(rule_class) if rule_class else ["rule"]
    return ", ".join(f"`{name}`" for name in names)


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


def functions_of(part, names):
    """Return those of the attributes of a layer or a cell that are activation functions.

    Where a function has the name of one of Keras's, Keras saves the name alone, and would load
    its own. One that is not registered it could not load at all.
    """
    wanted = {"activation", "recurrent_activation"}.intersection(names)
    functions = {name: vars(part).get(name) for name in wanted}
    return {name: f for name, f in functions.items() if inspect.isfunction(f)}


def delegate(cls, names, part):
    """Give `cls` read-only properties which read `names` from its attribute `part`."""

    def reader(name):
        return property(
            lambda self: getattr(getattr(self, part), name), doc=f"`{part}.{name}`."
        )

    for name in names:
        setattr(cls, name, reader(name))
