"""The recurrent layer that runs a cell with a momentum rule."""

import inspect
from contextvars import ContextVar
from types import SimpleNamespace

import keras
from keras import ops
from keras.tree import is_nested

from keras_momentum_rnn.arguments import UNLISTED, FullSignature, bound, delegate
from keras_momentum_rnn.paths.kernels import kernels_for
from keras_momentum_rnn.paths.plan import Call, choose, device
from keras_momentum_rnn.paths.run import run

# What a call hands to its inner loop past `keras.layers.RNN.call`, and gets back. Not on the
# layer: two threads may call it at once.
CARRIED = ContextVar("CARRIED")


class RuleLayer(keras.layers.RNN):
    """A Keras recurrent layer whose cell has a momentum rule.

    A subclass says which Keras layer it stands in for (`keras_layer`), whose arguments it
    takes in Keras's order, and which cell it runs (`cell_class`). The cell's arguments can
    be read from the layer, as in Keras.
    """

    keras_layer = None
    cell_class = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.rule_class = cls.cell_class.rule_class
        cls.__signature__ = FullSignature(cls.keras_layer, cls.cell_class, cls)
        delegate(cls, [*cell_arguments(cls.cell_class), "rule"], "cell")

    def __init__(self, units, *args, **kwargs):
        cell_class = self.chosen_cell()
        arguments = bound(self.keras_layer, cell_class, (units, *args), kwargs)
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
        # Inputs and states are cast where they are used: slots stay as they come.
        super().__init__(cell, **{"autocast": False, **arguments})
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self.use_cudnn = use_cudnn

    def build(self, sequences_shape, initial_state_shape=None):
        super().build(sequences_shape, initial_state_shape)
        kernels = {}
        if self.use_cudnn is not False and device() == "gpu":
            kernels = kernels_for(self.cell, self.stateful)
            if kernels and keras.config.backend() == "tensorflow":
                # XLA has no cuDNN recurrence.
                self.supports_jit = False
        # Past Keras's tracking: their weights are none of this layer's.
        vars(self)["kernels"] = kernels

    def plan(self, mask=False, training=False, slots=False):
        """Tell which path a call takes, and why.

        Args:
            mask: bool, whether the call has a mask.
            training: bool, as of the call.
            slots: bool, whether its `initial_state` holds slots. Those of a stateful layer
                go on from the call before, too.

        Returns:
            A `keras_momentum_rnn.paths.Plan`, a named pair of `path` and `reason`.

        Example:

        >>> import keras_momentum_rnn
        >>> layer = keras_momentum_rnn.AdamLSTM(4, use_cudnn=False)
        >>> layer.plan()
        Plan(path='step', reason='use_cudnn=False')
        """
        call = Call(
            backend=keras.config.backend(),
            device=device(),
            features=self.cell.kernel.shape[0] if self.cell.built else None,
            mask=mask,
            training=training,
            slots=slots,
            stateful=self.stateful,
            unroll=self.unroll,
            use_cudnn=self.use_cudnn,
        )
        return choose(self.cell, call)

    def chosen_cell(self):
        """Return the class of the cell."""
        return self.cell_class

    @property
    def states(self):
        """The variables of a stateful layer, in the order of the states, or None."""
        return vars(self).get("state_variables")

    @states.setter
    def states(self, states):
        # Keras's own variables follow the dtype policy: they would be rounded wherever they
        # are read, and on PyTorch `assign` would write into the rounded copy.
        if states is not None:
            states = [
                keras.Variable(
                    ops.zeros(state.shape, dtype=self.variable_dtype),
                    trainable=False,
                    autocast=False,
                    name="rnn_state",
                )
                for state in states
            ]
        # Past Keras's tracking, as it keeps them itself: they are no weights.
        vars(self)["state_variables"] = states

    def call(self, sequences, initial_state=None, mask=None, training=False):
        """Run the sequence.

        `keras.layers.RNN.call` rounds every state to the compute dtype. The slots go past
        it, here, into the loop and back, so that they stay exact from one call to the next.
        """
        count = len(self.cell.cell_state_size)
        given = 0
        if initial_state is not None:
            initial_state = list(initial_state) if is_nested(initial_state) else [initial_state]
            given = len(initial_state)
            initial_state = self._completed(initial_state, sequences)
        elif self.stateful:
            initial_state = self.states
        else:
            initial_state = self.get_initial_state(ops.shape(sequences)[0])
        slots = [self.cell.wide(s) for s in initial_state[count:]]
        carried = SimpleNamespace(slots=slots, given=given > count)
        token = CARRIED.set(carried)
        try:
            result = super().call(
                sequences, initial_state=initial_state, mask=mask, training=training
            )
        finally:
            CARRIED.reset(token)
        if self.stateful:
            for variable, slot in zip(self.states[count:], carried.slots):
                variable.assign(slot)
        return (*result[: 1 + count], *carried.slots) if self.return_state else result

    def _completed(self, states, sequences):
        """Return all states, the slots at zero where only the cell's own are given."""
        expected = (len(self.cell.cell_state_size), len(self.state_size))
        if len(states) not in expected:
            raise ValueError(
                f"`initial_state` of {type(self).__name__} must hold {expected[0]} tensors, "
                f"the states of the cell, or {expected[1]}, its slots too. Received: "
                f"{len(states)} tensors"
            )
        for i, (state, size) in enumerate(zip(states, self.state_size)):
            shape = tuple(state.shape)
            expected = (sequences.shape[0], size)
            if len(shape) != 2 or any(a and b and a != b for a, b in zip(shape, expected)):
                raise ValueError(
                    f"`initial_state[{i}]` of {type(self).__name__} must have the shape "
                    f"(batch, size) = {expected}. Received: a tensor of shape {shape}"
                )
        return states + self.get_initial_state(ops.shape(sequences)[0])[len(states) :]

    def inner_loop(self, sequences, initial_state, mask, training=False):
        cell, count, carried = self.cell, len(self.cell.cell_state_size), CARRIED.get()
        states = [*initial_state[:count], *carried.slots]
        if self.stateful:
            # PyTorch's `assign` writes into the tensor that the backward pass needs.
            states = [ops.copy(s) for s in states]
        if is_nested(mask):
            mask = mask[0]
        if mask is not None:
            mask = ops.cast(mask, "bool")
        if self.go_backwards:
            sequences = ops.flip(sequences, axis=1)
            mask = None if mask is None else ops.flip(mask, axis=1)
        plan = self.plan(mask is not None, training, carried.given)
        if self.use_cudnn is True and plan.path in ("filter", "step"):
            raise ValueError(
                f"No fused kernel serves this call of {type(self).__name__}: {plan.reason}. "
                f"Pass `use_cudnn='auto'`. Received: use_cudnn={self.use_cudnn}"
            )
        outputs, states = run(
            plan,
            cell,
            self.kernels,
            sequences,
            states,
            training,
            mask=mask,
            unroll=self.unroll,
            all_outputs=self.return_sequences,
        )
        if mask is not None:
            outputs = self._masked(outputs, mask)
        carried.slots = states[count:]
        return outputs[:, -1], outputs, states

    def _masked(self, outputs, mask):
        """Return the outputs as Keras shows them where the mask is False.

        There it repeats the last output, or shows zero with `zero_output_for_mask`. Before
        the first step, JAX repeats the initial h and the other backends show zero.
        """
        if not self.zero_output_for_mask:
            if keras.config.backend() == "jax":
                return outputs
            mask = ops.cumsum(ops.cast(mask, "int32"), axis=1) > 0
        if not self.return_sequences:
            mask = mask[:, -1:]
        return ops.where(ops.expand_dims(mask, -1), outputs, ops.zeros_like(outputs))

    def get_config(self):
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
    def from_config(cls, config):
        return cls(**config)


def cell_arguments(cell_class):
    """Return the names of the arguments of a cell."""
    return [n for n in inspect.signature(cell_class).parameters if n != "kwargs"]


def takes_use_cudnn(keras_layer):
    """Return whether a Keras layer has a fused kernel to choose: LSTM and GRU do."""
    return "use_cudnn" in inspect.signature(keras_layer).parameters
