"""Trained Keras layers and models as ours, and ours as Keras's."""

import inspect
import warnings
from typing import Any

import keras
from keras import ops

from keras_momentum_rnn.acceleration import copy_compiled_state, report_lines
from keras_momentum_rnn.arguments import UNLISTED, functions_of, keyword_parameters
from keras_momentum_rnn.causal_filters import (
    behind_filter,
    causal_filter,
    check_exact,
    copy_behind_filter,
    known,
)
from keras_momentum_rnn.layers.plain import GRU, LSTM, SimpleRNN
from keras_momentum_rnn.rebuilding import (
    built_like,
    copied,
    copy_of,
    copy_own_state,
    description_of,
    has_graph,
    input_first,
    layers_in,
    parts_of,
    run_graph,
    states_of,
    wrapper_of,
)
from keras_momentum_rnn.recurrent import RuleLayer
from keras_momentum_rnn.rule_differences import changes_the_drive, difference

# Our layers without a rule, by the Keras layer that each stands for.
PLAIN = {cls.keras_layer: cls for cls in (LSTM, GRU, SimpleRNN)}


def from_keras(
    layer_or_model: keras.layers.Layer, layer_class: type[RuleLayer], **numbers: Any
) -> Any:
    """Copy a Keras layer, or a model with every such layer in it, into one of ours.

    `MomentumLSTM` replaces `keras.layers.LSTM`; each class replaces the Keras layer that its
    `keras_layer` names. This works in Sequential and Functional models, also nested ones, and
    in the wrappers `Bidirectional` and `TimeDistributed`. The copy keeps names, options, dtype
    policies, weights, seeds and the states of stateful layers. Slots and an extra recurrent
    bias start at zero. At momentum 0 and step size 1 the copy computes what the original does.

    The original does not change. The copy has no loss, optimizer or metrics: compile it before
    you train it. With `return_state` a layer called alone, or last in a Sequential model,
    returns its slots too; within a Functional model they are left out. Subclasses of the Keras
    layer, a `keras.layers.RNN` of cells, and layers made inside your own layer stay as they
    are.

    Args:
        layer_or_model: a Keras layer of the class `layer_class.keras_layer`, a wrapper of it,
            or a Sequential or Functional model. Unbuilt layers give unbuilt layers.
        layer_class: class of layer to convert into, a `RuleLayer`: `MomentumLSTM`, ...
        **numbers: arguments which `layer_class` adds to those of Keras (`momentum`,
            `step_size`, `rule`, ...), with the ranges and defaults it gives them.

    Returns:
        A new layer or model of the same structure.

    Raises:
        ValueError: if there is no layer to convert, if one sits in a subclassed model, which
            has no graph to copy, if `layer_class` has no Keras counterpart, or if a number is
            out of its range or not an argument that `layer_class` adds.

    Example:

    >>> import keras
    >>> from keras_momentum_rnn import MomentumLSTM, convert
    >>> lstm, dense = keras.layers.LSTM(16), keras.layers.Dense(3)
    >>> model = keras.Sequential([keras.Input((None, 8)), lstm, dense])
    >>> ours = convert.from_keras(model, MomentumLSTM, momentum=0.3, step_size=1.0)
    >>> ours.compile("adam", "mse")  # and fine-tune
    >>> type(ours.layers[0]).__name__, ours.layers[0].momentum
    ('MomentumLSTM', 0.3)
    """
    _check_counterpart(layer_class, numbers)
    theirs = layer_class.keras_layer
    classes = {cls: layer_class for cls in (theirs, PLAIN.get(theirs, theirs))}
    return _FromKeras(classes, numbers).run(layer_or_model)


def accelerate(layer_or_model: keras.layers.Layer, report: bool = False) -> Any:
    """Copy a model so that its LSTM, GRU and SimpleRNN layers of Keras run faster on a CPU.

    Each `keras.layers.LSTM`, `GRU` and `SimpleRNN` becomes the layer of the same name of this
    library, which computes the same. This works in Sequential and Functional models, also
    nested ones, and in the wrappers `Bidirectional` and `TimeDistributed`. The copy keeps what
    `from_keras` keeps. If the model is compiled, the copy has the same loss and metrics, and
    an optimizer in the same state: `fit` goes on where it was. Metrics start anew.

    The original does not change. `to_keras` puts Keras's layers back, so that a saved file
    needs Keras alone.

    Args:
        layer_or_model: a Keras layer, a wrapper of it, or a Sequential or Functional model.
        report: bool, whether to print a line for each recurrent layer: whether it was replaced,
            which path it takes in training, and why. Defaults to `False`.

    Returns:
        A new layer or model of the same structure.

    Raises:
        ValueError: if there is no layer to replace; if one sits in a subclassed model, which
            has no graph to copy; or if the model was compiled with what cannot be copied.

    Example:

    >>> import keras
    >>> from keras_momentum_rnn import convert
    >>> lstm, dense = keras.layers.LSTM(16), keras.layers.Dense(3)
    >>> model = keras.Sequential([keras.Input((None, 8)), lstm, dense])
    >>> model.compile("adam", "mse")
    >>> fast = convert.accelerate(model)  # and train it
    >>> plain = convert.to_keras(fast)
    >>> fast.compiled, type(plain.layers[0]) is keras.layers.LSTM
    (True, True)
    """
    conversion = _FromKeras(PLAIN, {})
    new = conversion.run(layer_or_model)
    if report:
        print("\n".join(report_lines(layer_or_model, conversion.converted)))
    return new


def to_keras(layer_or_model: keras.layers.Layer, exact: bool = False) -> Any:
    """Copy one of our layers, or a model with every such layer in it, into Keras's own.

    The inverse of `from_keras`, which says what is kept. The rule, its numbers and slots are
    dropped: the copy computes what the original does only where the rule changes nothing,
    as at momentum 0 and step size 1. A warning says where it does not, and by how much on
    random sequences. A recurrent bias is added to the bias, which for the plain layer is the
    same function. Where all layers of ours are without a rule, as `accelerate` made them, the
    copy of a compiled model is compiled, with an optimizer in the same state.

    With `exact=True` a linear rule (heavy ball, NAG, scheduled restart) becomes a small filter
    of Keras layers in front of the plain layer, and the copy predicts what the original does:
    in any runtime with a fused LSTM or GRU. The copy of a layer alone is then a model, and that
    of a Sequential model a Functional one.

    Args:
        layer_or_model: one of our layers, a wrapper of it, or a Sequential or Functional
            model. Unbuilt layers give unbuilt layers.
        exact: bool, whether the copy must predict what the original does. Defaults to `False`.

    Returns:
        A new layer or model of the same structure, of the classes `keras_layer`.

    Raises:
        ValueError: if there is no layer to convert, if one sits in a subclassed model, which
            has no graph to copy, or if one has no Keras counterpart: a momentum on the
            recurrent product (`SRLSTM(formulation="released")`), a subclass with a method of
            its own that Keras's layer lacks, or a slot used in the graph other than as a part
            of `initial_state`. With `exact`, also if a rule is not heavy
            ball, NAG, a restart of at most 512 steps or linear without counting, or learns;
            if a layer is unbuilt, wrapped, stateful, goes backwards or takes slots in its
            `initial_state`.

    Example:

    >>> from keras_momentum_rnn import MomentumLSTM, convert
    >>> layer = MomentumLSTM(16, momentum=0.0, step_size=1.0)
    >>> layer.build((None, 5, 8))
    >>> type(convert.to_keras(layer)).__name__
    'LSTM'
    """
    return _ToKeras(exact).run(layer_or_model)


class _Slot(str):
    """Names, in a graph, a slot that the converted layer does not have."""


class _Conversion:
    """Rebuilds a layer or model, with a `counterpart` for each layer that `converts`."""

    def __init__(self):
        self.clones = {}
        # The new variable of each old one.
        self.assigned = {}
        # The converted layers and the new ones in the result, by the ids of the former.
        # `Bidirectional` makes its layers anew, so those in it are not the clones.
        self.converted = {}

    def run(self, layer):
        if not isinstance(layer, keras.Layer) or not self.holds(layer):
            raise ValueError(f"There is no {self.wanted} to convert. Received: {layer!r}")
        new = self.clone(layer)
        self.copy_state(layer, new)
        if not any(
            isinstance(one, RuleLayer) for pair in self.converted.values() for one in pair
        ):
            # Old and new weights are the same.
            copy_compiled_state(layer, new, self.assigned)
        return new

    def holds(self, layer):
        """Return whether a layer is to be converted, or one inside it."""
        return any(map(self.converts, layers_in(layer)))

    def clone(self, layer):
        """Return the new layer of an old one: one and the same where the old one is shared."""
        if id(layer) not in self.clones:
            self.clones[id(layer)] = self.rebuilt(layer)
        return self.clones[id(layer)]

    def rebuilt(self, layer):
        if self.converts(layer):
            return built_like(layer, self.counterpart(layer))
        if has_graph(layer):
            sequential = isinstance(layer, keras.Sequential)
            return self.sequential(layer) if sequential else self.functional(layer)
        if parts := parts_of(layer):
            parts = {argument: self.clone(part) for argument, part in parts.items()}
            return wrapper_of(layer, parts)
        if self.holds(layer):
            raise ValueError(
                f"Model {layer.name!r} is of a class of its own, {type(layer).__name__}, whose "
                "calls are no graph that could be converted. Convert its layers one by one or, "
                "if it has inputs and outputs, `keras.Model(model.inputs, model.outputs)`"
            )
        return copy_of(layer)

    def sequential(self, model):
        layers = list(model.layers)
        if hasattr(model, "inputs"):
            layers = [*keras.Model(model.inputs, model.outputs).layers[:1], *layers]
        return keras.Sequential([self.clone(layer) for layer in layers], name=model.name)

    def functional(self, model):
        layers = [x for x in model.layers if isinstance(x, keras.layers.InputLayer)]
        sources = {id(layer.output): layer for layer in layers}
        inputs = keras.tree.map_structure(
            lambda x: self.clone(sources[id(x)]).output, model.input
        )
        outputs = run_graph(model, keras.tree.flatten(inputs), self.called)
        outputs = keras.tree.pack_sequence_as(model.output, outputs)
        return keras.Model(inputs, outputs, name=model.name)

    def called(self, layer, args, kwargs):
        """Call the new layer as the old one was, in a graph of the old one's states."""
        new = self.clone(layer) if isinstance(layer, keras.Layer) else layer
        core, new_core, directions = layer, new, 1
        while isinstance(core, keras.Sequential):
            core, new_core = core.layers[-1], new_core.layers[-1]
        if isinstance(core, keras.layers.Bidirectional):
            core, new_core, directions = core.forward_layer, new_core.forward_layer, 2
        converted = self.converts(core)
        if converted and len(args) > 1:
            names = list(inspect.signature(new.call).parameters)
            kwargs = {**dict(zip(names[1:], args[1:])), **kwargs}
            args = args[:1]
        if converted and kwargs.get("initial_state") is not None:
            states = keras.tree.flatten(kwargs["initial_state"])
            count = min(len(states) // directions, len(new_core.state_size))
            kwargs["initial_state"] = _resized(states, directions, count)
        for x in keras.tree.flatten((args, kwargs)):
            if isinstance(x, _Slot):
                raise ValueError(f"Layer {new.name!r} is called on {x}")
        outputs = new(*args, **kwargs)
        if not converted or not core.return_state:
            return outputs
        outputs = keras.tree.flatten(outputs)
        first = len(outputs) - directions * len(new_core.state_size)
        slot = _Slot(f"a slot of {core.name!r}, which has no Keras counterpart")
        return outputs[:first] + _resized(
            outputs[first:], directions, len(core.state_size), slot
        )

    def copy_state(self, old, new):
        """Assign weights, seeds and states."""
        if new.trainable != old.trainable:
            new.trainable = old.trainable
        new_parts = parts_of(new)
        for name, part in parts_of(old).items():
            # A layer whose config has no name has another one in the new graph.
            same = self.clones[id(part)] if has_graph(old) else new_parts[name]
            self.copy_state(part, same)
        if self.converts(old):
            self.converted[id(old)] = old, new
            _share_flag([old.cell], new.cell)
            if old.built:
                self.copy_cell(old.cell, new.cell)
            for source, target in zip(states_of(old), states_of(new)):
                self.assign([source], target)
            self.assign([old.cell.seed_generator.state], new.cell.seed_generator.state)
        else:
            copy_own_state(old, new, lambda source, target: self.assign([source], target))

    def assign(self, sources, target):
        """Assign the sum of old variables to a new one, which stands for them."""
        for source in sources:
            if source.trainable and self.assigned.get(id(source), target) is not target:
                raise ValueError(
                    f"Two layers share the weight {source.path!r}, and their configs do not "
                    "say so: their copies would train it apart. Freeze it, or let both layers "
                    "call one layer that has it"
                )
        first, *others = map(copied, sources)
        target.assign(sum(others, start=first))
        for name in () if others else ("regularizer", "constraint"):
            # A config does not say what was set on the weight itself.
            part = getattr(sources[0], name)
            if description_of(part) != description_of(getattr(target, name)):
                setattr(target, name, part)
        _share_flag(sources, target)
        self.assigned.update((id(source), target) for source in sources)


def _check_counterpart(layer_class, numbers):
    """Raise a `ValueError` if a class with its numbers cannot stand for a Keras layer."""
    if (
        not isinstance(layer_class, type)
        or not issubclass(layer_class, RuleLayer)
        or getattr(layer_class.cell_class, "keras_cell", None) is None
        or layer_class.cell_class.extends_keras_cell is False
    ):
        raise ValueError(
            "`layer_class` must be a class of ours with a Keras counterpart, such as "
            f"MomentumLSTM. Received: layer_class={layer_class!r}"
        )
    added = keyword_parameters(layer_class) | keyword_parameters(layer_class.cell_class)
    if wrong := sorted(set(numbers) - set(added)):
        raise ValueError(
            f"{layer_class.__name__} adds the arguments {sorted(added)} to those of Keras, "
            f"which are copied. Received: {', '.join(wrong)}"
        )


class _FromKeras(_Conversion):
    def __init__(self, layer_classes, numbers):
        super().__init__()
        self.layer_classes, self.numbers = layer_classes, numbers
        names = dict.fromkeys(cls.__name__ for cls in layer_classes)
        self.wanted = f"keras.layers.{', '.join(names)}"

    def converts(self, layer):
        return type(layer) in self.layer_classes

    def counterpart(self, layer):
        config = _options(layer)
        if self.numbers.get("scale_free"):
            del config["use_bias"]
        return _with_counterpart(self.layer_classes[type(layer)](**config, **self.numbers))

    def copy_cell(self, plain, ours):
        if (extra := getattr(ours, "recurrent_bias", None)) is not None:
            extra.assign(ops.zeros_like(copied(extra)))
        for weight in plain.weights:
            own = getattr(ours, weight.name)
            # With no bias inside the rule, the one beside the recurrent product is the bias.
            own = extra if own is None else own
            self.assign([weight], own)


class _ToKeras(_Conversion):
    wanted = "layer of keras_momentum_rnn"

    def __init__(self, exact=False):
        super().__init__()
        # The filters in front of new layers, by the ids of these.
        self.exact, self.filters = exact, {}

    def run(self, layer):
        new = super().run(layer)
        for ours, plain in self.converted.values():
            if not self.exact and _has_effect(ours):
                warnings.warn(difference(ours, plain), stacklevel=3)
        if id(new) in self.filters:
            x = keras.Input((None, layer.cell.kernel.shape[0]), dtype=layer.compute_dtype)
            filtered = behind_filter(x, self.filters[id(new)])
            return keras.Model(x, new(filtered), name=layer.name)
        return new

    def rebuilt(self, layer):
        if not self.exact:
            return super().rebuilt(layer)
        if parts_of(layer) and not has_graph(layer) and self.holds(layer):
            check_exact(layer, {"is wrapped": True})
        if not self.converts(layer) or not _has_effect(layer):
            return super().rebuilt(layer)
        _with_counterpart(layer)
        check_exact(
            layer,
            {
                "has a rule without such a filter": not known(layer.rule),
                "is unbuilt": not layer.built,
                "is stateful": layer.stateful,
                "goes backwards": layer.go_backwards,
            },
        )
        new = self.counterpart(layer)
        new.build((None, None, layer.cell.kernel.shape[0] + 1))
        self.filters[id(new)] = causal_filter(layer)
        return new

    def sequential(self, model):
        if not any(id(self.clone(layer)) in self.filters for layer in model.layers):
            return super().sequential(model)
        # A filter may have branches, so the copy is a Functional model.
        (x,), y = model.inputs, model.outputs
        return self.functional(keras.Model(x, y[0] if len(y) == 1 else y, name=model.name))

    def called(self, layer, args, kwargs):
        new = self.clone(layer) if isinstance(layer, keras.Layer) else layer
        if id(new) in self.filters:
            args, kwargs = input_first(layer, args, kwargs)
            states = keras.tree.flatten(kwargs.get("initial_state") or args[1:2])
            too_many = len(states) > layer.cell.own_state_count
            check_exact(layer, {"takes slots in its `initial_state`": too_many})
            mask = kwargs.get("mask", args[2] if len(args) > 2 else None)
            args = (behind_filter(args[0], self.filters[id(new)], mask), *args[1:])
        return super().called(layer, args, kwargs)

    def converts(self, layer):
        return isinstance(layer, RuleLayer) or type(layer) in PLAIN.values()

    def counterpart(self, layer):
        keras_class = _with_counterpart(layer).keras_layer
        _refuse_own_methods(layer)
        bases = (keras_class, keras.layers.RNN, keras.Layer)
        known = {*UNLISTED}.union(*(inspect.signature(b.__init__).parameters for b in bases))
        config = _options(layer)
        config["use_bias"] |= config.get("use_recurrent_bias", False)
        return keras_class(**{k: v for k, v in config.items() if k in known})

    def copy_cell(self, ours, plain):
        if plain.kernel.shape != ours.kernel.shape:
            copy_behind_filter(ours, plain)
            return
        for weight in plain.weights:
            parts = [getattr(ours, weight.name)]
            if weight.name == "bias":
                parts.append(getattr(ours, "recurrent_bias", None))
            self.assign([part for part in parts if part is not None], weight)


def _options(layer):
    """Return the config of a layer, with the options that Keras leaves out of it."""
    config = layer.get_config()
    config |= {
        name: getattr(layer.cell, name)
        for name in (*UNLISTED, "seed")
        if hasattr(layer.cell, name)
    }
    config |= functions_of(layer.cell, config)
    if isinstance(layer, (keras.layers.LSTM, keras.layers.GRU)):
        config["use_cudnn"] = layer.use_cudnn
    return config


def _has_effect(layer):
    """Return whether a layer has a rule that changes what it computes."""
    return isinstance(layer, RuleLayer) and changes_the_drive(layer.cell)


def _with_counterpart(layer):
    if not getattr(layer.cell, "extends_keras_cell", True):
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r} has no Keras counterpart: its cell is not "
            f"that of keras.layers.{layer.keras_layer.__name__} with a rule for its input"
        )
    return layer


def _refuse_own_methods(layer):
    """Raise a `ValueError` for a subclass that computes what Keras's layer does not."""
    for part, step in (layer, "inner_loop"), (layer.cell, "recurrence"):
        for name in {"call", "get_initial_state", step} & {*dir(part)}:
            method = getattr(part, name)
            if not method.__module__.startswith(("keras.", f"{__package__}.")):
                raise ValueError(
                    f"{type(layer).__name__} {layer.name!r} has no Keras counterpart. "
                    f"Received: a subclass with a method of its own, {method.__qualname__}"
                )


def _share_flag(sources, target):
    """Let a variable or a cell be trained if one of those is that it stands for."""
    trainable = any(source.trainable for source in sources)
    if target.trainable != trainable:
        target.trainable = trainable


def _resized(states, directions, count, fill=None):
    """Return `count` states of each direction, filled up where there are fewer."""
    size = len(states) // directions
    parts = [states[i * size : (i + 1) * size] for i in range(directions)]
    return [s for part in parts for s in part[:count] + [fill] * (count - size)]
