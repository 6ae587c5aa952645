"""Run a model one time step at a time, with its states in your hands.

A stream has no end to wait for, and most exported files keep no states between two calls. A
step model takes one step of the inputs and all states, and returns one step of the outputs and
the new states.
"""

import inspect
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn import requirements
from keras_momentum_rnn.atomic_files import replaced
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.checks import checked_count
from keras_momentum_rnn.rebuilding import (
    copy_of,
    copy_state,
    has_graph,
    input_first,
    is_loop,
    layers_in,
    run_graph,
    runs_as,
)
from keras_momentum_rnn.recurrent import RuleLayer

# Layers that treat each time step alone, so that one step passes them as many do.
PER_STEP = (
    keras.layers.ActivityRegularization,
    keras.layers.Add,
    keras.layers.Average,
    keras.layers.Dropout,
    keras.layers.ELU,
    keras.layers.Embedding,
    keras.layers.GaussianDropout,
    keras.layers.GaussianNoise,
    keras.layers.Identity,
    keras.layers.LeakyReLU,
    keras.layers.Masking,
    keras.layers.Maximum,
    keras.layers.Minimum,
    keras.layers.Multiply,
    keras.layers.ReLU,
    keras.layers.Rescaling,
    keras.layers.SpatialDropout1D,
    keras.layers.Subtract,
    keras.layers.TimeDistributed,
)
# The same, where their axis comes after that of time; without one, they act on the last.
PER_AXIS = (
    keras.layers.Activation,
    keras.layers.BatchNormalization,
    keras.layers.Concatenate,
    keras.layers.Dense,
    keras.layers.LayerNormalization,
    keras.layers.Normalization,
    keras.layers.RMSNormalization,
    keras.layers.Softmax,
    keras.layers.UnitNormalization,
)
# Operations of `keras.ops`, by the names of their classes, which masks and sums are made of.
ELEMENTWISE = (
    *("Abs", "Add", "Cast", "Divide", "Equal", "Exp", "Log", "LogicalAnd", "LogicalNot"),
    *("LogicalOr", "Maximum", "Minimum", "Multiply", "Negative", "NotEqual", "OnesLike"),
    *("Power", "Relu", "Sigmoid", "Sqrt", "Square", "Subtract", "Tanh", "TrueDivide"),
    "ZerosLike",
)
OVER_AXIS = ("All", "Any", "Concatenate", "ExpandDims")
CELLS_OF_KERAS = (keras.layers.LSTMCell, keras.layers.GRUCell, keras.layers.SimpleRNNCell)
PREFIX = "state"


def step_model(model: keras.Model, constant_inputs: Sequence[str] = ()) -> keras.Model:
    """Return a model of one time step, for streams.

    Step by step it gives what `predict` gives for the sequence so far. An output that has a
    time axis loses it; any other is that of the sequence up to this step. The result is a
    Keras model like any other and exports to every format. It is a copy: training the original
    does not change it, and streams start at zero also where a `stateful` layer holds states.
    The matrix of an orthogonal layer is computed here, once. Load weights into `model`
    beforehand: loaded into the result, they would not change this matrix.

    Args:
        model: a built Sequential or Functional model. The second axis of each input is time.
            Its recurrent layers go forwards.
        constant_inputs: names of inputs without a time axis, such as an embedding of the
            speaker, which every step gets whole. They may only join tensors without a time
            axis, so after a recurrent layer with `return_sequences=False`. Defaults to none.

    Returns:
        A `keras.Model`. Its inputs are those of `model` without their time axis, then the
        states of each recurrent layer, slots included, `(batch, width)`, in order, with names
        such as `state_lstm_h`. Its outputs are those of `model`, then the new states in the
        same order, such as `output_dense` and `new_state_lstm_h`. `initial_states` gives the
        first states.

    Raises:
        ValueError: if a layer needs other time steps than those that were: `Bidirectional`,
            `go_backwards`, a convolution or attention over time; if a layer may need them: one
            of a class of your own, or a subclass with a `call` of its own; if a recurrent
            layer takes its initial state from the graph, or its cell has a first state other
            than zero; if there is no recurrent layer; if a constant input is no input of the
            model; or if the name of an input begins with `state_`.

    Example:

    >>> import keras, numpy as np
    >>> from keras_momentum_rnn import MomentumLSTM, streaming
    >>> x = np.random.default_rng(0).normal(size=(1, 5, 3)).astype("float32")
    >>> model = keras.Sequential([keras.Input((None, 3)), MomentumLSTM(4)])
    >>> step = streaming.step_model(model)
    >>> states = streaming.initial_states(step)
    >>> for t in range(5):
    ...     y, *states = step.predict_on_batch([x[:, t], *states])
    >>> bool(np.allclose(y, model.predict(x, verbose=0), atol=1e-6))
    True
    """
    if not has_graph(model) or not model.built:
        raise ValueError(
            "`model` must be a built Sequential or Functional model. For one of another class "
            f"pass `keras.Model(model.inputs, model.outputs)`. Received: model={model!r}"
        )
    names = [x.name for x in model.inputs]
    if isinstance(constant_inputs, str):
        constant_inputs = [constant_inputs]
    if unknown := set(constant_inputs) - set(names):
        raise ValueError(
            f"`constant_inputs` must be names of the model's inputs, {names}. Received: "
            f"constant_inputs={constant_inputs}, of which {sorted(unknown)} are not"
        )
    if like_states := [name for name in names if name.startswith(f"{PREFIX}_")]:
        raise ValueError(
            f"Names that begin with `{PREFIX}_` are those of the states. Rename the inputs "
            f"{like_states} of `model`"
        )
    _warn_of_open_lengths(model, constant_inputs)
    graph = _OneStep(layer.name for layer in layers_in(model))
    output_names = [f"output_{name}" for name in _output_names(model)]
    graph.copy_names |= dict.fromkeys(output_names, 1)
    steps, inputs = [], []
    taken = dict.fromkeys(names, 0)
    for x in model.inputs:
        constant = x.name in constant_inputs
        # Keras's own name for an input without one says nothing in a file.
        name = _free("input", taken) if x.name.startswith("keras_tensor") else x.name
        step = keras.Input(x.shape[1 if constant else 2 :], dtype=x.dtype, name=name)
        steps.append(step)
        graph.copy_names[name] = 1
        inputs.append(step if constant else graph.with_time(ops.expand_dims(step, 1)))
    outputs = [graph.without_time(y) for y in run_graph(model, inputs, graph.call)]
    if not graph.states:
        raise ValueError(f"Model {model.name!r} has no recurrent layer to run step by step")
    # Files and `output_names` take the name of the layer that an output comes from.
    outputs = dict(zip(output_names, outputs))
    outputs |= {f"new_{x.name}": new for x, new in zip(graph.states, graph.new_states)}
    # A layer of the process's dtype policy might round them.
    named = [keras.layers.Identity(name=name, dtype=y.dtype)(y) for name, y in outputs.items()]
    return keras.Model([*steps, *graph.states], named, name=f"{model.name}_step")


def initial_states(step: keras.Model, batch_size: int = 1) -> list[np.ndarray]:
    """Return the states that a stream starts from, a list of arrays of zeros.

    Args:
        step: what `step_model` returned, or the same loaded from a `.keras` file.
        batch_size: positive integer, the number of streams.

    Raises:
        ValueError: if `step` has no states, or `batch_size` is out of its range.
    """
    batch_size = checked_count("batch_size", batch_size)
    states = [x for x in step.inputs if x.name.startswith(f"{PREFIX}_")]
    if not states:
        raise ValueError(f"`step` must come from `step_model`. Received: step={step!r}")
    return [np.zeros((batch_size, *x.shape[1:]), x.dtype) for x in states]


def name_outputs(path: Path | str, model: keras.Model) -> None:
    """Name the outputs of an ONNX file as the model does; an export numbers them.

    Args:
        path: the file, which is written anew. Its outputs are those of `model`, in order.
        model: what was exported: what `step_model` returned, or any Functional or Sequential
            model. An output has the name of the layer that it comes from.

    Raises:
        ImportError: if onnx is not installed.
        ValueError: if the file has another number of outputs.
    """
    requirements.check("streaming.name_outputs", "export", {"onnx": "onnx"})
    import onnx

    file = onnx.load(path)
    names, outputs = _output_names(model), file.graph.output
    if len(names) != len(outputs):
        raise ValueError(
            f"{path} has {len(outputs)} outputs, and model {model.name!r} has {names}"
        )
    for name, output in zip(names, outputs):
        if output.name != name:
            node = onnx.helper.make_node("Identity", [output.name], [name])
            file.graph.node.append(node)
            output.name = name
    with replaced(path) as new:
        onnx.save(file, new)


def _output_names(model):
    """Return a name for each output: that of its layer, numbered where it is given twice."""
    last = [model.layers[-1].name] * len(model.outputs)
    names, taken = getattr(model, "output_names", last), {}  # a Sequential model has none
    return [_free(name, taken) for name in names]


class _OneStep:
    """Calls the layers of a model for one step, which stands on a time axis of length 1.

    Attributes:
        states: list of the inputs for states, in the order of the recurrent calls.
        new_states: list of as many outputs.
        timed: dict from the ids of tensors with a time axis to the tensors.
        masks: dict from the ids of tensors with a time axis to their masks.
    """

    def __init__(self, names):
        self.states, self.new_states = [], []
        self.timed, self.masks = {}, {}
        self.copies, self.copy_names = {}, {}
        # No number behind a layer's name may make the name of another layer.
        self.state_names = dict.fromkeys(names, 0)

    def with_time(self, x):
        self.timed[id(x)] = x
        return x

    def without_time(self, x):
        return ops.squeeze(x, 1) if id(x) in self.timed else x

    def call(self, layer, args, kwargs):
        """Call the copy of a layer, or an operation."""
        args, kwargs = input_first(layer, args, kwargs)
        # A scalar of NumPy is no more than a number.
        tensors = [
            x
            for x in keras.tree.flatten((args, kwargs))
            if isinstance(x, keras.KerasTensor) or len(getattr(x, "shape", ()))
        ]
        timed = [id(x) in self.timed for x in tensors]
        _check_inference(layer, args, kwargs)
        if has_graph(layer):
            inputs = _in_order(layer, args[0])
            for x, mask in zip(inputs, keras.tree.flatten(kwargs.get("mask"))):
                self.masks[id(x)] = mask
            return run_graph(layer, list(map(self.cast, inputs, layer.inputs)), self.call)
        if any(timed) and is_loop(layer):
            return self.recur(layer, args, kwargs)
        if any(timed):
            _check_per_step(layer, tensors, timed)
        outputs = self.call_copy(layer, *args, **kwargs)
        if any(timed):
            keras.tree.map_structure(self.with_time, outputs)
            self.pass_mask(layer, args, outputs)
        return outputs

    def cast(self, x, expected):
        """Return what an input of a model inside the graph makes of a tensor."""
        if x.dtype == expected.dtype:
            return x
        new = ops.cast(x, expected.dtype)
        if id(x) in self.timed:
            self.with_time(new)
            self.masks[id(new)] = self.masks.get(id(x))
        return new

    def pass_mask(self, layer, args, outputs):
        """Keep the mask of a layer's output; operations on the way drop Keras's own."""
        if isinstance(layer, keras.layers.Layer) and layer.supports_masking and args:
            masks = keras.tree.map_structure(lambda x: self.masks.get(id(x)), args[0])
            mask = layer.compute_mask(args[0], masks)
            if hasattr(mask, "shape"):
                self.masks[id(outputs)] = mask

    def recur(self, layer, args, kwargs):
        """Call the copy of a recurrent layer on inputs for its states."""
        _check_forwards(layer, args, kwargs)
        _check_starts_at_zero(layer)
        _check_takes_vectors(layer, args[0])
        mask = kwargs.get("mask")
        mask = self.masks.get(id(args[0])) if mask is None else mask
        # Of one masked step Keras shows zero; of a sequence it repeats the last output.
        shown = None if layer.zero_output_for_mask else _shown_state(layer, mask is not None)
        prefix = f"{PREFIX}_{_free(layer.name, self.state_names)}"
        states = [
            keras.Input((size,), dtype=dtype, name=f"{prefix}_{name}")
            for name, size, dtype in _states_of(layer)
        ]
        packed = keras.tree.pack_sequence_as(layer.cell.state_size, states)
        h, *new = self.call_copy(layer, args[0], one_step=True, initial_state=packed, mask=mask)
        flat = keras.tree.flatten(new)
        self.states += states
        self.new_states += flat
        if shown is not None:
            h = flat[shown]
        if layer.return_sequences:
            h = self.with_time(ops.expand_dims(h, 1))
            self.masks[id(h)] = mask
        return [h, *new] if layer.return_state else h

    def call_copy(self, layer, *args, one_step=False, **kwargs):
        """Call the copy of a layer, one and the same where the layer is shared.

        Args:
            layer: a layer, or an operation, which is its own copy.
            *args: of the call, as `kwargs`.
            one_step: bool, whether it is recurrent and shall take one step, with its states.
        """
        if not isinstance(layer, keras.layers.Layer):
            return layer(*args, **kwargs)
        key = id(layer), one_step
        if key in self.copies:
            return self.copies[key](*args, **kwargs)
        config, changes = layer.get_config(), {}
        if "name" in config:
            # Layers of two models may share a name, which stand in one here.
            changes["name"] = _free(layer.name, self.copy_names)
        if isinstance(layer, keras.layers.RNN):
            changes["stateful"] = False
        if one_step:
            changes |= {"return_sequences": False, "return_state": True, "unroll": True}
            if "use_cudnn" in config:
                changes["use_cudnn"] = "auto"
        self.copies[key] = new = copy_of(layer, **changes)
        new.trainable = layer.trainable
        outputs = new(*args, **kwargs)  # which may build layers inside
        copy_state(layer, new)
        if hasattr(getattr(new, "cell", None), "fix_matrix"):
            new.cell.fix_matrix()
        return outputs


def _free(name, taken):
    """Return a name, numbered where it was given before, and note that it is given.

    Args:
        name: str.
        taken: dict from names to how often they were given.
    """
    taken[name] = taken.get(name, 0) + 1
    if taken[name] == 1:
        return name
    numbered = f"{name}_{taken[name]}"
    return _free(name, taken) if numbered in taken else _free(numbered, taken)


def _states_of(layer):
    """Return name, width and dtype of each state of a recurrent layer."""
    sizes = keras.tree.flatten(layer.cell.state_size)
    names = ["h", "c", *(f"s{i}" for i in range(2, len(sizes)))][: len(sizes)]
    dtypes = [layer.compute_dtype] * len(sizes)
    if isinstance(layer, RuleLayer):
        slots = list(layer.cell.rule.slots(layer.cell.drive_width))
        first = len(sizes) - len(slots)
        names[first:] = [re.sub(r"\W", "_", name) for name in slots]
        dtypes[first:] = [layer.cell.slot_dtype] * len(slots)
    return list(zip(names, sizes, dtypes))


def _in_order(model, inputs):
    """Return what a model in the graph is called on, in the order of its inputs."""
    if isinstance(inputs, dict) and not isinstance(model.input, dict):
        return [inputs[x.name] for x in model.inputs]
    return keras.tree.flatten(inputs)


def _check_forwards(layer, args, kwargs):
    if layer.go_backwards:
        raise ValueError(
            f"Layer {layer.name!r} goes backwards: its first output needs the end of the "
            "stream. Received: go_backwards=True"
        )
    if len(args) > 1 or kwargs.get("initial_state") is not None:
        raise ValueError(
            f"Layer {layer.name!r} takes its initial state from the graph, which a stream "
            "would set anew at every step. Make a step model of each part"
        )


def _check_starts_at_zero(layer):
    first = [ops.convert_to_numpy(s) for s in keras.tree.flatten(layer.get_initial_state(1))]
    if any(map(np.any, first)):
        raise ValueError(
            f"Layer {layer.name!r} has a first state of its own, where `initial_states` gives "
            f"zeros. Received: {first}"
        )


def _check_inference(layer, args, kwargs):
    """Refuse a layer that always trains, but for noise, which a step may draw for itself."""
    kinds = keras.layers.RNN, keras.layers.BatchNormalization
    flags = [value for value in (*args, *kwargs.values()) if value is True]
    if flags and (has_graph(layer) or isinstance(layer, kinds)):
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r} must run as in inference: noise and "
            "statistics of a whole sequence are not those of one step. Received: training=True"
        )


def _check_per_step(layer, tensors, timed):
    """Refuse a layer that needs more than the present step."""
    is_layer, name = isinstance(layer, keras.Layer), type(layer).__name__
    if is_layer:
        # A subclass with a `call` of its own may look at other steps.
        fits = any(runs_as(layer, kind, "call") for kind in PER_STEP)
        has_axis = any(runs_as(layer, kind, "call") for kind in PER_AXIS)
    else:
        fits, has_axis = name in ELEMENTWISE, name in OVER_AXIS
    if has_axis:
        axes = keras.tree.flatten(getattr(layer, "axis", -1))
        rank = len(tensors[0].shape) + (name == "ExpandDims")
        fits = all(axis is not None and axis % rank >= 2 for axis in axes)
        fits = fits and (not is_layer or _activates_per_step(layer, tensors[0]))
    if isinstance(layer, keras.layers.Rescaling):
        fits &= max(np.ndim(layer.scale), np.ndim(layer.offset)) < 2
    # Keras's merging layers put an axis behind that of the batch, so that times meet features.
    fits = fits and len({len(x.shape) for x in tensors}) == 1
    if not fits or not all(timed):
        raise ValueError(
            f"{name} {layer.name!r} acts on the time axis and is not known to "
            "treat each step alone, so a model of one step cannot hold it. Put it behind a "
            "recurrent layer with `return_sequences=False`, or take a layer that treats each "
            "step alone, such as `Dense`; name inputs without a time axis in `constant_inputs`"
        )


def _activates_per_step(layer, x):
    """Return whether a layer's activation, which may be the user's, treats steps alone."""
    activation = getattr(layer, "activation", None)
    is_function = inspect.isfunction(activation)
    if activation is None or (is_function and activation.__module__.startswith("keras.")):
        return True
    as_given = isinstance(layer, keras.layers.Activation)
    dtype = x.dtype if as_given else layer.compute_dtype
    *inner, width = (size or 2 for size in x.shape[2:])
    drawn = np.random.default_rng(0).normal(size=(1, 2, *inner, getattr(layer, "units", width)))
    try:
        both, *each = (
            ops.convert_to_numpy(activation(ops.convert_to_tensor(steps, dtype=dtype)))
            for steps in (drawn, drawn[:, :1], drawn[:, 1:])
        )
        return np.allclose(both, np.concatenate(each, axis=1), 1e-2, 1e-3, equal_nan=True)
    except Exception:  # of its own; it may ask for another number of steps
        return False


def _warn_of_open_lengths(model, constant_inputs):
    """Warn of `TimeDistributed` on an open length, which Keras 3.15 takes for the batch's."""
    lengths = [x.shape[1] for x in model.inputs if x.name not in constant_inputs]
    wrappers = [x for x in layers_in(model) if isinstance(x, keras.layers.TimeDistributed)]
    if wrappers and None in lengths:
        warnings.warn(
            f"TimeDistributed {wrappers[0].name!r} has an input of unknown length. The step "
            "model is right, but in exported files of the whole model, and in `predict` on "
            "TensorFlow, Keras gives its output another shape. Use a layer that treats each "
            "step alone, such as `Dense`, or give `keras.Input` the length",
            stacklevel=3,
        )


def _check_takes_vectors(layer, x):
    # The states of such a layer, a ConvLSTM1D, have shapes that its `state_size` lacks.
    if len(x.shape) != 3:
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r} takes steps that are no vectors, which a "
            f"model of one step cannot hold. Received: inputs of shape {x.shape}"
        )


def _shown_state(layer, is_masked):
    """Return which of a layer's states, as a flat list, its output is, or None."""
    cell, before = layer.cell, 0
    if isinstance(cell, keras.layers.StackedRNNCells):
        before = len(keras.tree.flatten(cell.state_size[:-1]))
        cell = cell.cells[-1]
    if isinstance(cell, RuleCell) or type(cell) in CELLS_OF_KERAS:
        return before
    if is_masked:
        raise ValueError(
            f"{type(cell).__name__} in layer {layer.name!r} may have an output that is not its "
            "first state, so a model of one step cannot repeat it where the input is masked. "
            "Pass `zero_output_for_mask=True` to the layer"
        )
    return None
