"""Build a model again from its graph, with other layers or for other inputs."""

from collections.abc import Callable
from typing import Any

import keras

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


def run_graph(model: keras.Model, inputs: list[Any], call: Callable[..., Any]) -> list[Any]:
    """Run the graph of a model on other inputs, and call each layer in your own way.

    Args:
        model: a Sequential or Functional model.
        inputs: list of symbolic tensors, one for each of `model.inputs`.
        call: function `(layer, args, kwargs) -> outputs`, called for each call of a layer or
            an operation in the graph.

    Returns:
        The list of the outputs.
    """
    outputs = {}
    # `clone_model` makes a model of what it runs. Identities at the ends of the graph catch
    # the outputs and hand an input on, so that this model, which nobody needs, is valid even
    # where `call` uses further inputs.
    ends = {keras.layers.Identity(): i for i in range(len(model.outputs))}

    def call_function(layer, *args, **kwargs):
        if layer in ends:
            outputs[ends[layer]] = args[0]
            return keras.layers.Identity()(inputs[0])
        return call(layer, args, kwargs)

    # Uncompiled: `clone_model` would compile its copy of a compiled model, and fail where the
    # loss is a function that Keras cannot look up.
    graph = keras.Model(model.inputs, [end(y) for end, y in zip(ends, model.outputs)])
    keras.models.clone_model(
        graph, inputs, clone_function=lambda layer: layer, call_function=call_function
    )
    return [outputs[i] for i in range(len(outputs))]


def copy_of(layer: keras.layers.Layer, **changes: Any) -> keras.layers.Layer:
    """Return a new layer with the config of a layer, built if that is; weights start anew.

    Args:
        layer: of any class, also of one that is not registered.
        **changes: arguments that shall differ.
    """
    if isinstance(layer, RuleLayer):
        config = layer.get_config()
        if "rule" in config:
            config["rule"] = layer.rule  # itself, since it need not be registered
        new = type(layer).from_config({**config, **changes})
    else:
        serialized = keras.saving.serialize_keras_object(layer)
        serialized["config"] |= changes
        new = keras.saving.deserialize_keras_object(
            serialized, custom_objects={type(layer).__name__: type(layer)}, safe_mode=False
        )
    return built_like(layer, new)


def built_like(old: keras.layers.Layer, new: keras.layers.Layer) -> keras.layers.Layer:
    """Return the new layer, built if the old one is."""
    if old.built and not new.built and old.get_build_config():
        new.build_from_config(old.get_build_config())
    return new
