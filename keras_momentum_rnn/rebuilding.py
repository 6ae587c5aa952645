"""Build a model again from its graph, with other layers or for other inputs."""

import inspect
import tempfile
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_momentum_rnn.arguments import functions_of
from keras_momentum_rnn.recurrent import RuleLayer


def has_graph(layer: Any) -> bool:
    """Return whether a layer is a Sequential or Functional model, not of a class on those."""
    return isinstance(layer, keras.Model) and type(layer).__module__.startswith("keras.")


def parts_of(layer: keras.layers.Layer) -> dict[str, keras.layers.Layer]:
    """Return the layers that a model with a graph, or a wrapper, is made of, by name."""
    if has_graph(layer):
        return {part.name: part for part in layer.layers}
    if isinstance(layer, keras.layers.Bidirectional):
        return {"layer": layer.forward_layer, "backward_layer": layer.backward_layer}
    return {"layer": layer.layer} if isinstance(layer, keras.layers.Wrapper) else {}


def layers_in(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Return a layer and all layers inside it, those of a subclassed model among them."""
    parts = layer.layers if isinstance(layer, keras.Model) else parts_of(layer).values()
    return [layer, *(inside for part in parts for inside in layers_in(part))]


def held_layers(thing: Any, seen: dict[int, Any] | None = None) -> list[keras.layers.Layer]:
    """Return a layer and all layers inside it, those in attributes of custom layers, too."""
    seen = {} if seen is None else seen
    if isinstance(thing, list | tuple | set):
        parts = thing
    elif isinstance(thing, dict):
        parts = thing.values()
    elif isinstance(thing, keras.layers.Layer) and id(thing) not in seen:
        seen[id(thing)] = thing
        parts = vars(thing).values()
    else:
        parts = ()
    for part in parts:
        held_layers(part, seen)
    return list(seen.values())


def run_graph(model: keras.Model, inputs: list[Any], call: Callable[..., Any]) -> list[Any]:
    """Run the graph of a model on other inputs, and call each layer in your own way.

    Args:
        model: a Sequential or Functional model.
        inputs: list of symbolic tensors, one for each of `model.inputs`.
        call: function `(layer, args, kwargs) -> outputs`, called for each call of a layer or
            an operation in the graph. Keras orders layers, and so weights, by how they are
            called: what is given by name has to stay so.

    Returns:
        The list of the outputs.
    """
    outputs = {}
    # Keras marks x * 2 as sparse, and PyTorch refuses a sparse input of a model.
    dense = [keras.Input(batch_shape=x.shape, dtype=x.dtype) for x in inputs]
    given = dict(zip(map(id, dense), inputs))
    # `clone_model` makes a model of what it runs. Identities at the ends of the graph catch
    # the outputs and hand an input on, so that this model, which nobody needs, is valid even
    # where `call` uses further inputs.
    ends = {keras.layers.Identity(): i for i in range(len(model.outputs))}

    def call_function(layer, *args, **kwargs):
        args, kwargs = keras.tree.map_structure(lambda x: given.get(id(x), x), (args, kwargs))
        if layer in ends:
            outputs[ends[layer]] = args[0]
            return keras.layers.Identity()(dense[0])
        return call(layer, args, kwargs)

    # Uncompiled: `clone_model` would compile its copy of a compiled model, and fail where the
    # loss is a function that Keras cannot look up.
    graph = keras.Model(model.inputs, [end(y) for end, y in zip(ends, model.outputs)])
    keras.models.clone_model(
        graph, dense, clone_function=lambda layer: layer, call_function=call_function
    )
    return [outputs[i] for i in range(len(outputs))]


def input_first(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return `(args, kwargs)` of a call, with the input among args if it is given by name."""
    if args or not isinstance(layer, keras.Layer):
        return args, kwargs
    first = next(iter(inspect.signature(layer.call).parameters.values()))
    if first.kind is not first.POSITIONAL_OR_KEYWORD or first.name not in kwargs:
        return args, kwargs
    others = {name: value for name, value in kwargs.items() if name != first.name}
    return (kwargs[first.name],), others


def copy_of(layer: keras.layers.Layer, **changes: Any) -> keras.layers.Layer:
    """Return a new layer with the config of a layer, built if that is; weights start anew.

    Args:
        layer: of any class, also of one that is not registered.
        **changes: arguments that shall differ.
    """
    if isinstance(layer, RuleLayer):
        config = layer.get_config()
        for part in {"rule", "memory"} & config.keys():
            config[part] = getattr(layer, part)  # itself, since it need not be registered
        config |= functions_of(layer.cell, config)
        new = type(layer).from_config({**config, **changes})
    else:
        serialized = keras.saving.serialize_keras_object(layer)
        serialized["config"] |= functions_of(layer, serialized["config"]) | changes
        known = {type(layer).__name__: type(layer), **functions_in(layer)}
        for part in held_layers(layer):
            cls = type(part)
            if keras.saving.get_registered_name(cls) == cls.__name__:  # or it has a package
                known.setdefault(cls.__name__, cls)
        function = layer.function if isinstance(layer, keras.layers.Lambda) else None
        if function is not None:
            known[getattr(function, "__name__", "")] = function
        new = keras.saving.deserialize_keras_object(
            serialized, custom_objects=known, safe_mode=False
        )
        if function is not None:
            # One made of its code would have other globals.
            new.function = function
        copy_functions(layer, new)
    return built_like(layer, new)


def wrapper_of(
    layer: keras.layers.Layer, parts: dict[str, keras.layers.Layer]
) -> keras.layers.Layer:
    """Return a new wrapper with the config of a wrapper, of other layers, built if that is."""
    with keras.saving.custom_object_scope(functions_in(layer)):
        new = type(layer)(**{**layer.get_config(), **parts})
    for name, part in parts_of(new).items():
        copy_functions(parts[name], part)
    return built_like(layer, new)


def functions_in(layer: keras.layers.Layer) -> dict[str, Callable[..., Any]]:
    """Return the activation functions of a layer and of those inside it, by their names."""
    parts = held_layers(layer)
    return {f.__name__: f for part in parts for f in functions_of(part, vars(part)).values()}


def copy_functions(old: keras.layers.Layer, new: keras.layers.Layer) -> None:
    """Give a layer the activation functions of another of its kind, which Keras only names."""
    for old_part, new_part in zip(held_layers(old), held_layers(new)):
        for name, activation in functions_of(old_part, vars(new_part)).items():
            setattr(new_part, name, activation)


def copy_state(old: keras.layers.Layer, new: keras.layers.Layer) -> None:
    """Copy variables, states, vocabularies and statistics into a layer of the same class."""
    for part, new_part in zip(parts_of(old).values(), parts_of(new).values()):
        copy_state(part, new_part)
    copy_own_state(old, new, lambda source, target: target.assign(copied(source)))


def copy_own_state(
    old: keras.layers.Layer, new: keras.layers.Layer, assign: Callable[..., None]
) -> None:
    """Copy as `copy_state` does, without the layers that `parts_of` gives.

    Args:
        old: the other layer.
        new: a layer of the same class, which need not be stateful where the other is.
        assign: function `(source, target)`, called for each pair of variables.

    Raises:
        ValueError: if the layers differ in the number of their variables.
    """
    sources, targets = _own_variables(old), _own_variables(new)
    if len(sources) != len(targets):
        raise ValueError(
            f"Layer {old.name!r} has {len(sources)} variables, but {len(targets)} "
            "where it is rebuilt from its config: a layer builds its own layers in `build`"
        )
    names = [variable.name for variable in sources]
    if sorted(names) == sorted({v.name for v in targets}):
        # A quantized layer that is rebuilt makes its variables in another order.
        targets.sort(key=lambda variable: names.index(variable.name))
    pairs = list(zip(sources, targets))
    layers = list(zip(_own_layers(old), _own_layers(new)))
    for one, other in layers:
        if other.trainable != one.trainable:
            other.trainable = one.trainable  # frozen, a BatchNormalization does not update
    for one, other in layers:
        pairs += zip(states_of(one), states_of(other))
    for source, target in pairs:
        assign(source, target)
    for one, other in layers:
        if hasattr(one, "save_assets"):
            with tempfile.TemporaryDirectory() as folder:
                one.save_assets(folder)
                other.load_assets(folder)
        if hasattr(other, "finalize_state"):
            # It computes with constants that it made of its variables.
            other.finalize_state()


def states_of(layer: keras.layers.Layer) -> list[Any]:
    """Return the variables of a stateful layer's states, which its `variables` may lack."""
    is_recurrent = isinstance(layer, keras.layers.RNN)
    return keras.tree.flatten(layer.states or ()) if is_recurrent else []


def _own_layers(layer):
    """Return a layer and those that it made itself, which may have statistics, too."""
    return [layer] if parts_of(layer) else held_layers(layer)


def _own_variables(layer):
    """Return the variables of a layer, less its states and those of `parts_of`."""
    others = {id(v) for part in parts_of(layer).values() for v in part.variables}
    others |= {id(v) for own in _own_layers(layer) for v in states_of(own)}
    return [v for v in layer.variables if id(v) not in others]


def copied(variable: Any) -> Any:
    """Return a copy: on JAX, training one of two layers deletes the arrays it shares."""
    return ops.copy(ops.convert_to_tensor(variable))


def description_of(part: Any) -> tuple[Any, ...]:
    """Return what a regularizer or a constraint is, whichever layer it is bound to."""
    try:
        config = repr(part.get_config())
    except (AttributeError, NotImplementedError):
        config = None
    return type(part), getattr(part, "__code__", None), config


def is_loop(layer: Any) -> bool:
    """Return whether a layer is recurrent with a loop of Keras or ours, not one of the user."""
    known = ("keras.", f"{__package__}.")
    return isinstance(layer, keras.layers.RNN) and all(
        method.__module__.startswith(known) for method in (layer.call, layer.inner_loop)
    )


def runs_as(part: Any, kind: type, *methods: str) -> bool:
    """Return whether an object is of a class, and its own class has the same methods."""
    same = (getattr(type(part), name) is getattr(kind, name) for name in methods)
    return isinstance(part, kind) and all(same)


def built_like(old: keras.layers.Layer, new: keras.layers.Layer) -> keras.layers.Layer:
    """Return the new layer, built if the old one is."""
    if old.built and not new.built and old.get_build_config():
        new.build_from_config(old.get_build_config())
    return new
