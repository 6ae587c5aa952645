"""Run a model one time step at a time, with its states in your hands.

A stream has no end to wait for, and an exported file keeps no states between two calls. A step
model takes one step of the inputs and all states, and returns one step of the outputs and the
new states.
"""

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.recurrent import RuleLayer

# Layers that treat each time step alone, so that one step passes them as many do.
PER_STEP = (
    keras.layers.Activation,
    keras.layers.ActivityRegularization,
    keras.layers.Add,
    keras.layers.Average,
    keras.layers.Concatenate,
    keras.layers.Dense,
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
    keras.layers.Normalization,
    keras.layers.ReLU,
    keras.layers.Rescaling,
    keras.layers.SpatialDropout1D,
    keras.layers.Subtract,
    keras.layers.TimeDistributed,
    keras.layers.UnitNormalization,
)
# The same, where they act on the last axis.
ON_LAST_AXIS = (
    keras.layers.BatchNormalization,
    keras.layers.LayerNormalization,
    keras.layers.Softmax,
)
# Operations of `keras.ops`, by the names of their classes, which masks and sums are made of.
ELEMENTWISE = (
    *("Abs", "Add", "Cast", "Divide", "Equal", "Exp", "Log", "LogicalAnd", "LogicalNot"),
    *("LogicalOr", "Maximum", "Minimum", "Multiply", "Negative", "NotEqual", "Relu"),
    *("Sigmoid", "Sqrt", "Square", "Subtract", "Tanh"),
)
OVER_LAST_AXIS = ("All", "Any")
OF_KERAS = (keras.layers.LSTM, keras.layers.GRU, keras.layers.SimpleRNN)
PREFIX = "state"


def step_model(model: keras.Model) -> keras.Model:
    """Return a model of one time step, for streams.

    It gives, step by step, what `predict` gives for the sequence so far: an output that has a
    time axis loses it, any other is that of the sequence up to this step. It is a Keras model
    like any other, exports to every format, and is a copy: training the original does not
    change it. The matrix of an orthogonal layer is computed here, once.

    Args:
        model: a built Sequential or Functional model. The second axis of each input is time.
            Its recurrent layers go forwards.

    Returns:
        A `keras.Model`. Inputs: those of `model` without their time axis, then the states of
        each recurrent layer, slots included, `(batch, width)`, in order. Outputs: those of
        `model`, then the new states in the same order. `initial_states` gives the first.

    Raises:
        ValueError: if a layer needs other time steps than those that were: `Bidirectional`,
            `go_backwards`, a convolution or attention over time; if a recurrent layer takes
            its initial state from the graph; or if there is no recurrent layer.

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
    if not _has_graph(model) or not model.built:
        raise ValueError(
            f"`model` must be a built Sequential or Functional model. Received: model={model!r}"
        )
    calls = _Graph().count(model)
    if not calls:
        raise ValueError(f"Model {model.name!r} has no recurrent layer to run step by step")
    return _Graph().run(model, calls)


def initial_states(step: keras.Model, batch_size: int = 1) -> list[np.ndarray]:
    """Return the states that a stream starts from, a list of arrays of zeros.

    Args:
        step: what `step_model` returned, or the same loaded from a `.keras` file.
        batch_size: positive integer, the number of streams.
    """
    states = [x for x in step.inputs if x.name.startswith(f"{PREFIX}_")]
    return [np.zeros((batch_size, *x.shape[1:]), x.dtype) for x in states]


class _Graph:
    """Rebuilds the graph of a model for one step.

    Attributes:
        timed: dict from the ids of tensors with a time axis to the tensors.
        placed: list of pairs of inputs and outputs for states.
    """

    def __init__(self):
        self.copies, self.timed, self.calls, self.placed = {}, {}, [], []
        self.inputs = self.placeholders = None

    def count(self, model):
        """Return the recurrent layers of a model, one for each call."""
        self.rebuild = False
        self.walk(model, [self.with_time(x) for x in map(_like, model.inputs)])
        return self.calls

    def run(self, model, calls):
        self.rebuild = True
        taken = {}
        for layer in calls:
            taken[layer.name] = taken.get(layer.name, 0) + 1
            nth = "" if taken[layer.name] == 1 else f"_{taken[layer.name]}"
            inputs = [
                keras.Input((size,), dtype=dtype, name=f"{PREFIX}_{layer.name}{nth}_{name}")
                for name, size, dtype in _states_of(layer)
            ]
            self.placed.append([inputs, None])
        self.placeholders = [x for inputs, _ in self.placed for x in inputs]
        steps = [keras.Input(x.shape[2:], dtype=x.dtype, name=x.name) for x in model.inputs]
        timed = [self.with_time(ops.expand_dims(x, 1)) for x in steps]
        outputs = [
            ops.squeeze(y, 1) if id(y) in self.timed else y for y in self.walk(model, timed)
        ]
        states = [state for _, new in self.placed for state in new]
        name = f"{model.name}_step"
        return keras.Model([*steps, *self.placeholders], [*outputs, *states], name=name)

    def with_time(self, x):
        self.timed[id(x)] = x
        return x

    def walk(self, model, inputs):
        """Run the graph of a model on inputs; return its outputs, a list."""
        outputs = {}
        # `clone_model` returns a model of tensors of its own; behind these stand ours.
        ends = {keras.layers.Identity(): i for i in range(len(model.outputs))}

        def called(layer, *args, **kwargs):
            if layer in ends:
                outputs[ends[layer]] = args[0]
                return args[0]
            return self.call(layer, args, kwargs)

        # Inputs that the graph does not use let tensors made of them into it.
        extra = self.placeholders or []
        ended = [end(y) for end, y in zip(ends, model.outputs)]
        graph = keras.Model([*model.inputs, *map(_like, extra)], ended)
        keras.models.clone_model(
            graph, [*inputs, *extra], clone_function=lambda layer: layer, call_function=called
        )
        return [outputs[i] for i in range(len(outputs))]

    def call(self, layer, args, kwargs):
        tensors = [x for x in keras.tree.flatten((args, kwargs)) if hasattr(x, "shape")]
        timed = [id(x) in self.timed for x in tensors]
        if _has_graph(layer):
            outputs = self.walk(layer, keras.tree.flatten(args))
            return keras.tree.pack_sequence_as(layer.output, outputs)
        if isinstance(layer, keras.layers.RNN) and any(timed):
            return self.recur(layer, args, kwargs)
        if any(timed):
            _check_per_step(layer, all(timed))
        outputs = self.copy(layer)(*args, **kwargs)
        if any(timed):
            keras.tree.map_structure(self.with_time, outputs)
        return outputs

    def recur(self, layer, args, kwargs):
        _check_forwards(layer, args, kwargs)
        index = len(self.calls)
        self.calls.append(layer)
        if not self.rebuild:
            outputs = keras.tree.flatten(layer(*args, **kwargs))
            if layer.return_sequences:
                self.with_time(outputs[0])
            return outputs if layer.return_state else outputs[0]
        states, _ = self.placed[index]
        h, *new = self.copy(layer)(args[0], initial_state=states, mask=kwargs.get("mask"))
        self.placed[index][1] = new
        if isinstance(layer, (RuleLayer, *OF_KERAS)) and not layer.zero_output_for_mask:
            # Of one masked step Keras shows zero; of a sequence it repeats the last output.
            h = new[0]
        if layer.return_sequences:
            h = self.with_time(ops.expand_dims(h, 1))
        return [h, *new] if layer.return_state else h

    def copy(self, layer):
        """Return the copy of a layer, one and the same where the layer is shared."""
        if not self.rebuild or not isinstance(layer, keras.Layer):
            return layer
        if id(layer) not in self.copies:
            config = layer.get_config()
            if isinstance(layer, keras.layers.RNN):
                config |= {
                    "return_sequences": False,
                    "return_state": True,
                    "stateful": False,
                    "unroll": True,
                }
                if "use_cudnn" in config:
                    config["use_cudnn"] = "auto"
            new = type(layer).from_config(config)
            new.build_from_config(layer.get_build_config())
            new.trainable = layer.trainable
            count = len(new.weights)
            new.set_weights(layer.get_weights()[:count])
            if hasattr(getattr(new, "cell", None), "fix_matrix"):
                new.cell.fix_matrix()
            self.copies[id(layer)] = new
        return self.copies[id(layer)]


def _has_graph(layer):
    """Return whether a layer is a Sequential or Functional model, not of a class on those."""
    return isinstance(layer, keras.Model) and type(layer).__module__.startswith("keras.")


def _like(x):
    return keras.Input(batch_shape=x.shape, dtype=x.dtype)


def _states_of(layer):
    """Return name, width and dtype of each state of a recurrent layer."""
    sizes = keras.tree.flatten(layer.cell.state_size)
    names = ["h", "c", *(f"s{i}" for i in range(2, len(sizes)))][: len(sizes)]
    dtypes = [layer.compute_dtype] * len(sizes)
    if isinstance(layer, RuleLayer):
        slots = list(layer.cell.rule.slots(layer.cell.drive_width))
        first = len(sizes) - len(slots)
        names[first:] = [name.replace(" ", "_") for name in slots]
        dtypes[first:] = [layer.cell.slot_dtype] * len(slots)
    return list(zip(names, sizes, dtypes))


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


def _check_per_step(layer, all_timed):
    """Refuse a layer that needs more than the present step."""
    axis = getattr(layer, "axis", -1)
    axis = axis[0] if isinstance(axis, (list, tuple)) and len(axis) == 1 else axis
    last = axis in (-1, 2)
    fits = isinstance(layer, PER_STEP) or (isinstance(layer, ON_LAST_AXIS) and last)
    if not isinstance(layer, keras.Layer):
        name = type(layer).__name__
        fits = name in ELEMENTWISE or (name in OVER_LAST_AXIS and last)
    if isinstance(layer, keras.layers.Concatenate):
        fits = last
    if not fits or not all_timed:
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r} acts on the time axis and is not known to "
            "treat each step alone, so a model of one step cannot hold it. Put it behind a "
            "recurrent layer with `return_sequences=False`, or inside `TimeDistributed`"
        )
