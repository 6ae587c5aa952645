"""The recurrent layer that runs a cell with a momentum rule."""

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import keras
from keras import ops
from keras.tree import is_nested

from keras_momentum_rnn.annotations import Tensor
from keras_momentum_rnn.arguments import UNLISTED, FullSignature, bound, delegate
from keras_momentum_rnn.cells.base import FIRST_STATES, RuleCell, overrides
from keras_momentum_rnn.exports import traced_by_torch, traced_for_export
from keras_momentum_rnn.hyperparameters import Hyperparameter
from keras_momentum_rnn.paths.devices import current_device
from keras_momentum_rnn.paths.filtered import powers_overflow
from keras_momentum_rnn.paths.kernels import stock_layers
from keras_momentum_rnn.paths.masks import shown
from keras_momentum_rnn.paths.native import runtime
from keras_momentum_rnn.paths.plan import ONE_STEP, Plan, plan_once
from keras_momentum_rnn.paths.run import Sequence, run
from keras_momentum_rnn.paths.transforms import transform_is_active
from keras_momentum_rnn.rules import Rule


@dataclass
class Untracked:
    """Holds what Keras must not take for weights of the layer that has it as an attribute."""

    value: object = None


class RuleLayer(keras.layers.RNN):
    """A Keras recurrent layer whose cell has a momentum rule.

    A subclass names the Keras layer that it replaces (`keras_layer`) and whose arguments it
    takes in the same order, its `family`, and the cell that it runs (`cell_class`). The
    cell's arguments can be read from the layer, as in Keras.
    """

    keras_layer: ClassVar[type[keras.layers.RNN]] = keras.layers.RNN
    family: ClassVar[str | None] = None
    cell_class: ClassVar[Any] = None
    # Those of its cell's rule, set for each subclass.
    rule_class: ClassVar[type[Rule] | None]
    hyperparameters: ClassVar[dict[str, Hyperparameter]]
    # Whether its rule must be given; named layers and nested ones have one.
    needs_rule = False
    # What a search may choose beside the hyperparameters of the rule and the cell.
    own_hyperparameters: ClassVar[dict] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cell_class = cls.cell_class
        cls.rule_class = rule_class = cell_class.rule_class
        cls.needs_rule = "needs_rule" in vars(cls)
        cls.hyperparameters = {
            **({} if rule_class is None else rule_class.hyperparameters),
            **cell_class.hyperparameters,
            **cls.own_hyperparameters,
        }
        cls.__signature__ = FullSignature(cls.keras_layer, cls.cell_class, cls)
        names = [*cell_arguments(cls.cell_class), "rule"]
        delegate(cls, [name for name in names if not hasattr(cls, name)], "cell")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cell_class = self.chosen_cell()
        if overrides(cell_class, {"call"}, "own_states"):
            raise TypeError(
                f"{type(self).__name__} does not run the `call` of its cell: override "
                "`recurrence` or `apply_rule`, or give the cell to keras.layers.RNN. "
                f"Received: a cell class with a `call` of its own, {cell_class.__name__}"
            )
        if type(self).inner_loop is not keras.layers.RNN.inner_loop:
            raise TypeError(f"{type(self).__name__} does not run `inner_loop`: override `call`")
        arguments = bound(type(self), self.keras_layer, cell_class, args, kwargs)
        use_cudnn = "auto"
        if takes_use_cudnn(self.keras_layer):
            use_cudnn = arguments.pop("use_cudnn", use_cudnn)
        names = [*cell_arguments(cell_class), *UNLISTED]
        cell = cell_class(
            **{name: arguments.pop(name) for name in names if name in arguments},
            dtype=arguments.get("dtype"),
            trainable=arguments.get("trainable", True),
            name="cell",
        )
        # Do not autocast: the cell casts inputs and states itself, and slots keep their dtype.
        super().__init__(cell, **{"autocast": False, **arguments})
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.use_cudnn = use_cudnn
        self._stock_layers = Untracked({})
        self._plans = Untracked({})
        # Once, since it looks at numbers, which a trace does not know.
        self._rule_overflows = powers_overflow(cell.rule)
        if keras.config.backend() == "tensorflow":
            # XLA cannot call a function of this process.
            paths = {self.plan(training=t, features=1).path for t in (False, True)}
            self.supports_jit = self.supports_jit and "native" not in paths

    def build(
        self, sequences_shape: tuple[int | None, ...], initial_state_shape: Any = None
    ) -> None:
        super().build(sequences_shape, initial_state_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: sequences_shape[-1]})
        layers = {}
        if current_device() == "gpu":
            layers = stock_layers(self)
            if layers and keras.config.backend() == "tensorflow":
                # XLA has no cuDNN recurrence.
                self.supports_jit = False
        self._stock_layers = Untracked(layers)

    def plan(
        self,
        mask: bool = False,
        training: bool = False,
        slots: bool = False,
        features: int | None = None,
        transformed: bool = False,
    ) -> Plan:
        """Tell which path a call takes, and why.

        Args:
            mask: bool, whether the call has a mask.
            training: bool, as of the call.
            slots: bool, whether its `initial_state` holds slots. A stateful layer also
                keeps its slots from one call to the next.
            features: positive integer, the width of the input. Defaults to that of a built
                layer; before, the layer counts as one of fewer than 2^23 weights.
            transformed: bool, whether a transform of `torch.func`, such as `vmap`, acts on
                the call.

        Returns:
            A `keras_momentum_rnn.paths.Plan`, with `path`, `reason` and how the path runs.

        Raises:
            ValueError: if the path depends on the width of the input and the layer does not
                know it yet.

        Example:

        >>> import keras_momentum_rnn
        >>> layer = keras_momentum_rnn.AdamLSTM(4, use_cudnn=False)
        >>> layer.plan().path, layer.plan().reason
        ('step', 'use_cudnn=False')
        """
        call = {
            "mask": mask,
            "training": training,
            "slots_given": slots,
            "transformed": transformed,
            "exported": None,
            "device": current_device(),
        }
        if features is None and self.cell.built:
            features = self.cell.kernel.shape[0]
        if features is not None:
            return self._plan(features=features, **call)
        narrow = self._plan(features=1, **call)
        if narrow.path != self._plan(features=self.cell.drive_width, **call).path:
            raise ValueError(
                f"The path of {type(self).__name__} depends on the width of its input: build "
                f"the layer, or pass `features`. Received: features={features}"
            )
        return narrow

    def _plan(self, **call):
        call["rule_overflows"] = self._rule_overflows
        # A subclass may give its slots other first values than zero.
        starts = type(self).get_initial_state, type(self.cell).get_initial_state
        call["slots_given"] |= starts != (keras.layers.RNN.get_initial_state, FIRST_STATES)
        return plan_once(self, self.cell, self._plans.value, **call)

    def chosen_cell(self) -> type[RuleCell]:
        """Return the class of the cell."""
        return self.cell_class

    @property
    def states(self) -> Any:
        """The variables of a stateful layer, in the order of the states, or None."""
        return self._state_variables.value

    @states.setter
    def states(self, states: Any) -> None:
        # Keras's own variables follow the dtype policy: they would be rounded wherever they
        # are read, and on PyTorch `assign` would write into the rounded copy. In the policies
        # "float16" and "bfloat16" they would be stored rounded.
        if states is not None:
            states = [
                keras.Variable(
                    ops.copy(ops.cast(ops.convert_to_tensor(state), self.cell.slot_dtype)),
                    trainable=False,
                    autocast=False,
                    name=f"rnn_state_{i}",  # on JAX, a tree of states has each path once
                )
                for i, state in enumerate(states)
            ]
        self._state_variables = Untracked(states)
        if states is not None and keras.config.backend() == "tensorflow":
            import tensorflow as tf

            # Where TensorFlow's checkpoints look, and Keras does not.
            self._checkpointed = tf.Module()
            self._checkpointed.states = states

    def reset_state(self) -> None:
        """Set the states of a stateful layer to zero.

        Raises:
            RuntimeError: on JAX within an epoch of `fit` or `predict`, which hold the states.
        """
        try:
            super().reset_state()
        except TypeError as error:  # they have no value meanwhile
            if keras.config.backend() != "jax":
                raise
            raise RuntimeError(
                f"Keras's training on JAX holds the states of {self.name} within an epoch: "
                "call `model.jax_state_sync()` first, or reset them between epochs"
            ) from error

    @property
    def variables(self) -> list[keras.Variable]:
        """All variables; on JAX, where `fit` and `predict` lose others, also the states."""
        kept = self.states if keras.config.backend() == "jax" else None
        return [*super().variables, *(kept or ())]

    def call(
        self,
        sequences: Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool = False,
    ) -> Any:
        """Run the sequence.

        This replaces `keras.layers.RNN.call`, which rounds every state to the compute dtype.
        Here the slots stay exact from one call to the next.
        """
        sequence, slots_given = self._prepared(sequences, initial_state, mask, training)
        exported = traced_for_export(sequence.x, training)
        plan = self._plan_for(sequence, slots_given, exported)
        try:
            # Before a loop that JAX traces. In inference it moves the seed, as in Keras. A file
            # needs no masks, and its sizes may be open.
            if training or not exported:
                self.cell.draw_dropout(sequence.x[:, 0], sequence.states[0])
            outputs, states = run(plan, self.cell, sequence)
        finally:
            self.cell.reset_dropout()
        return self._finished(outputs, states, sequence.mask)

    def _prepared(self, x, initial_state, mask, training):
        """Return the checked `Sequence` of a call, and whether it was given slots."""
        if not ops.is_tensor(x) or hasattr(x, "assign"):
            x = ops.copy(x)  # `call` may get an array, or a variable of TensorFlow
        self._check_length(x)
        mask = self._checked_mask(mask, x)
        states, slots_given = self._first_states(initial_state, x)
        if not self.cell.is_half or traced_for_export(x, training):
            # They may come in half precision or as integers, and Keras casts nothing here.
            # While JAX exports to ONNX, `Masking` returns float64.
            x = self.cell.to_slot_dtype(x)
        x, mask = as_read(x, mask, self.go_backwards)
        sequence = Sequence(
            x=x,
            states=states,
            mask=mask,
            training=training,
            unroll=self.unroll,
            all_outputs=self.return_sequences,
            stock_layers=self._stock_layers.value,
        )
        return sequence, slots_given

    def _plan_for(self, sequence, slots_given, exported):
        """Return the plan of a call, or raise where `use_cudnn=True` cannot be met."""
        if sequence.x.shape[1] == 1 and not exported and self.use_cudnn is not True:
            return ONE_STEP
        call = {
            "mask": sequence.mask is not None,
            "training": sequence.training,
            "slots_given": slots_given,
            "transformed": transform_is_active([sequence.x, *sequence.states], self.cell),
            "exported": exported,
            "features": self.cell.kernel.shape[0],  # which a graph may not know of its input
            "device": current_device(),
        }
        plan = self._plan(**call)
        if plan.path == "native" and not runtime.is_ready(self.cell.recurrence_name):
            # Known from now on, so another path is chosen.
            plan = self._plan(**call)
        if self.use_cudnn is True and not exported and plan.path not in ("fused", "drive"):
            raise ValueError(
                f"No fused kernel serves this call of {type(self).__name__}: {plan.reason}. "
                f"Pass `use_cudnn='auto'`. Received: use_cudnn={self.use_cudnn}"
            )
        return plan

    def _finished(self, outputs, states, mask):
        """Return what the call returns, and keep the states of a stateful layer."""
        if mask is not None:
            outputs = shown(outputs, mask, self.return_sequences, self.zero_output_for_mask)
        # PyTorch's tracers carry an assignment out, and the file would start from its result.
        if self.stateful and not traced_by_torch():
            for variable, state in zip(self.states, states):
                variable.assign(state)
        outputs = ops.cast(outputs, self.compute_dtype)
        result = outputs if self.return_sequences else outputs[:, -1]
        return (result, *states) if self.return_state else result

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return shapes and dtypes of the outputs; slots have a dtype of their own."""
        specs = super().compute_output_spec(*args, **kwargs)
        if not self.return_state:
            return specs
        first_slot = 1 + self.cell.own_state_count
        slots = [keras.KerasTensor(s.shape, self.cell.slot_dtype) for s in specs[first_slot:]]
        return type(specs)([*specs[:first_slot], *slots])

    def rematerialized_call(self, layer_call: Any, *args: Any, **kwargs: Any) -> Any:
        """Refuse to repeat, for `keras.RematScope`, a call that changes what it starts from."""
        call = super().rematerialized_call(layer_call, *args, **kwargs)
        if call is not layer_call:
            refuse_to_repeat(self, self.changed_by_calls(kwargs.get("training")))
        return call

    def changed_by_calls(self, training: bool | None) -> str | None:
        """Return the argument by which a call changes variables, as text, or None.

        Args:
            training: bool, as of the call.
        """
        return states_or_seeds_changed(self, training and self.cell.has_dropout)

    def _check_length(self, sequences):
        """Refuse a number of steps or samples that does not fit."""
        check_steps(self, sequences)
        if self.unroll and sequences.shape[1] is None:
            raise ValueError(
                f"`unroll=True` needs a known number of steps: give {type(self).__name__} an "
                f"`Input` with a length. Received: inputs of shape {tuple(sequences.shape)}"
            )
        if not self.stateful or self.states is None or sequences.shape[0] is None:
            return
        expected = self.states[0].shape[0]
        if sequences.shape[0] != expected:
            raise ValueError(
                f"A stateful {type(self).__name__} built for a batch of {expected} cannot "
                f"take another. Received: inputs of shape {tuple(sequences.shape)}"
            )

    def _checked_mask(self, mask, sequences):
        """Return the mask as a bool tensor `(batch, time)`, or None."""
        if is_nested(mask):
            mask = mask[0]
        if mask is None:
            return None
        mask = ops.cast(mask, "bool")
        if len(mask.shape) == 3 and mask.shape[-1] == 1:
            mask = mask[..., 0]
        shape, expected = tuple(mask.shape), tuple(sequences.shape[:2])
        if not alike(shape, expected):
            raise ValueError(
                f"`mask` of {type(self).__name__} must have the shape (batch, time) = "
                f"{expected}. Received: a mask of shape {shape}"
            )
        return mask

    def _first_states(self, given, sequences):
        """Return the states that a call starts from, and whether slots are among the given."""
        cell = self.cell
        given = [] if given is None else list(given) if is_nested(given) else [given]
        slots_given = len(given) > cell.own_state_count
        if not given and not self.stateful:
            return self.get_initial_state(ops.shape(sequences)[0]), slots_given
        if given:
            states = self._completed(given, sequences)
        else:
            # PyTorch's `assign` writes into the tensor that the backward pass needs.
            states = [ops.copy(ops.convert_to_tensor(s)) for s in self.states]
        own, slots = cell.split(states)
        own = [ops.cast(s, cell.compute_dtype) for s in own]
        return [*own, *map(cell.to_slot_dtype, slots)], slots_given

    def _completed(self, states, sequences):
        """Return all states, the slots at zero where only the cell's own are given."""
        own = self.cell.own_state_count
        if len(states) not in (own, len(self.state_size)):
            raise ValueError(
                f"`initial_state` of {type(self).__name__} must hold {own} tensors, "
                f"the states of the cell, or {len(self.state_size)}, its slots too. Received: "
                f"{len(states)} tensors"
            )
        for i, (state, size) in enumerate(zip(states, self.state_size)):
            shape = tuple(state.shape)
            expected = (sequences.shape[0], size)
            if not alike(shape, expected):
                raise ValueError(
                    f"`initial_state[{i}]` of {type(self).__name__} must have the shape "
                    f"(batch, size) = {expected}. Received: a tensor of shape {shape}"
                )
        return states + self.get_initial_state(ops.shape(sequences)[0])[len(states) :]

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["cell"]
        cell = self.cell.get_config()
        own = {"name", "trainable", "dtype"}
        config = {
            **{name: value for name, value in cell.items() if name not in own},
            **config,
            "activity_regularizer": keras.regularizers.serialize(self.activity_regularizer),
        }
        if takes_use_cudnn(self.keras_layer):
            config["use_cudnn"] = self.use_cudnn
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


def refuse_to_repeat(layer, changes):
    """Raise a `ValueError` if a call of a layer changes variables; `changes` names by what."""
    if changes is not None:
        raise ValueError(
            f"A call of {type(layer).__name__} {layer.name!r} changes what it starts from, and "
            "`keras.RematScope` would repeat it in the backward pass. Make the layer outside "
            f"of the scope. Received: {changes}"
        )


def states_or_seeds_changed(layer, drops):
    """Return by which argument a call changes states, or seeds if it `drops`, or None."""
    if layer.stateful:
        return "stateful=True"
    if not drops:
        return None
    rates = layer.cell.dropout, layer.cell.recurrent_dropout
    named = "dropout={}, recurrent_dropout={}".format(*rates)
    return named if any(rates) else "a memory with dropout"


def check_steps(layer, sequences):
    """Refuse a sequence without a step."""
    if sequences.shape[1] == 0:
        raise ValueError(
            f"{type(layer).__name__} needs at least one time step. "
            f"Received: inputs of shape {tuple(sequences.shape)}"
        )


def alike(shape, expected):
    """Return whether two shapes agree in all sizes that are known."""
    return len(shape) == len(expected) and all(
        a is None or b is None or a == b for a, b in zip(shape, expected)
    )


def as_read(x, mask, go_backwards):
    """Return the input in the order of the steps, zero where it is masked, and its mask."""
    if go_backwards:
        x, mask = (None if a is None else ops.flip(a, axis=1) for a in (x, mask))
    if mask is not None:
        # A masked value may be NaN, and 0 times NaN is not 0.
        x = ops.where(ops.expand_dims(mask, -1), x, ops.zeros_like(x))
    return x, mask


def cell_arguments(cell_class):
    """Return the names of the arguments of a cell."""
    return [n for n in inspect.signature(cell_class).parameters if n != "kwargs"]


def takes_use_cudnn(keras_layer):
    """Return whether a Keras layer has a fused kernel to choose: LSTM and GRU do."""
    return "use_cudnn" in inspect.signature(keras_layer).parameters
