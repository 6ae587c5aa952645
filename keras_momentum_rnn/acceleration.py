"""What `convert.accelerate` does beside the conversion of layers."""

import keras
from keras.saving import serialize_keras_object as serialized

from keras_momentum_rnn.layers.plain import PlainLayer
from keras_momentum_rnn.rebuilding import layers_in
from keras_momentum_rnn.recurrent import RuleLayer


def copy_compiled_state(old, new, assigned):
    """Compile a model as another is, with an optimizer in the same state.

    Args:
        old: the other model. Nothing happens if it is a layer, or is not compiled.
        new: a model of the same structure.
        assigned: dict from the ids of the old model's variables to the new ones.

    Raises:
        ValueError: if Keras cannot copy what the model was compiled with, or if its optimizer
            was made for other variables than it would train now.
    """
    if not getattr(old, "compiled", False):
        return
    # That of the config lacks the loss scale of half precision.
    config = {**old.get_compile_config(), "optimizer": serialized(old.optimizer)}
    # A loss keeps no state, and its function may be unknown to Keras.
    loss = None if config.pop("loss", None) is None else old.loss
    try:
        options = keras.saving.deserialize_keras_object(config)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Keras cannot copy what model {old.name!r} was compiled with. Register a metric "
            "or an optimizer of your own by `keras.saving.register_keras_serializable`, or "
            f"call this within `keras.saving.custom_object_scope`. Keras says: {error}"
        ) from error
    new.compile(**options, loss=loss, auto_scale_loss=False)
    if old.optimizer is None or not old.optimizer.built:
        return
    trained = new.trainable_variables
    new.optimizer.build(trained)
    sources, targets = old.optimizer.variables, new.optimizer.variables
    counterparts = [assigned[id(variable)] for variable in old.trainable_variables]
    fresh = keras.saving.deserialize_keras_object(serialized(old.optimizer))
    fresh.build(old.trainable_variables)
    same = [v.name for v in fresh.variables] == [v.name for v in sources]
    if not same or list(map(id, counterparts)) != list(map(id, trained)):
        raise ValueError(
            f"The optimizer of model {old.name!r} was made for other variables than the model "
            "trains now. Compile the model again, as Keras asks for after a change of "
            f"`trainable`. Received: {len(trained)} trainable variables"
        )
    for source, target in zip(sources, targets):
        target.assign(keras.ops.copy(source))


def report_lines(model, converted):
    """Return a line for each recurrent layer of a model: what became of it, and why.

    Args:
        model: the original.
        converted: dict from the ids of its layers that were replaced to pairs of them and the
            new layers.
    """
    lines = []
    for layer, owner in recurrent_layers(model):
        name = f"{layer.name} ({type(layer).__name__})"
        if id(layer) in converted:
            plan = converted[id(layer)][1].plan(training=True)
            lines.append(f"{name}: replaced, trains on the path {plan.path!r}: {plan.reason}")
        else:
            lines.append(f"{name}: kept, {reason_to_keep(layer, owner)}")
    return lines


def recurrent_layers(layer):
    """Return the recurrent layers in a layer or model, each once, with its owner.

    The owner is the user's own layer that made it, or None for a part of a model's graph.
    """
    owned = {}
    for part in layers_in(layer):
        if isinstance(part, keras.layers.RNN):
            owned[id(part)] = part, None
        elif not isinstance(part, (keras.Model, keras.layers.Wrapper)):
            for made in keras.tree.flatten(vars(part)):
                if isinstance(made, keras.layers.RNN):
                    owned.setdefault(id(made), (made, part))
    return list(owned.values())


def reason_to_keep(layer, owner):
    """Return why a recurrent layer was not replaced."""
    if isinstance(layer, (RuleLayer, PlainLayer)):
        return "a layer of keras_momentum_rnn"
    if owner is not None:
        return f"made by the layer {owner.name!r} of the class {type(owner).__name__}"
    if isinstance(layer, (keras.layers.LSTM, keras.layers.GRU, keras.layers.SimpleRNN)):
        return "of a subclass of Keras's, which may run another step"
    return "no LSTM, GRU or SimpleRNN"
