"""What every cell with a momentum rule shares."""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import keras
from keras import ops

from keras_momentum_rnn.annotations import Step, Tensor
from keras_momentum_rnn.arguments import (
    UNLISTED,
    FullSignature,
    bound,
    delegate,
    rule_parameters,
    take_rule,
)
from keras_momentum_rnn.exports import traced_by_torch
from keras_momentum_rnn.rules import Rule

# Methods of one step that fast paths do not call, or not all of them.
OF_THE_DRIVE = {"projection", "apply_rule", "step_from_input", "step_from_projection"}
OF_A_STEP = {
    *OF_THE_DRIVE,
    *("recurrence", "recurrent_product", "recurrent_weights", "recurrent_masks"),
}


def overrides(cls, methods, declaration):
    """Return whether a class has one of some methods from below the class with `declaration`.

    Then the declaration is of another step than its own.
    """
    below = itertools.takewhile(lambda base: declaration not in vars(base), cls.__mro__)
    return any(methods & vars(base).keys() for base in below)


class RuleCell:
    """Mixin of a recurrent cell: one step is project, then rule, then recurrence.

    `u = project(x)` is the input term, `rule.update(u, slots)` turns it into the
    drive, and `recurrence()` is the cell's own equation, driven by it. Only the last knows
    h, so a layer may compute the first two for all times at once. The states are the cell's
    own, h first, then the rule's slots.

    A cell that extends one of Keras names it (`keras_cell`) and sets `gates`, how many times
    as wide as h the drive is. Any other cell extends `keras.layers.Layer`, creates `kernel`,
    `bias` and its other weights in `build`, and implements `own_states` and, where the drive
    is not `gates` times as wide as h, `drive_width`. Both kinds implement `recurrence`.

    A subclass of a cell may override methods of its step. It then runs step by step, unless it
    also says which fast paths serve it: `recurrence_name`, `drive_from_input`.
    """

    keras_cell: ClassVar[type[keras.layers.Layer] | None] = None
    gates = 1
    rule_class: ClassVar[type[Rule] | None] = None
    # Whether the cell is the Keras cell with a rule on its input: then weights can be copied.
    extends_keras_cell = True
    # Arguments of the Keras cell that have no place in the equation, or another default.
    left_out = ()
    other_defaults: ClassVar = {}
    # What a search may choose beside the rule's hyperparameters.
    hyperparameters: ClassVar[dict] = {}
    # Its equation's name among `paths.registry.RECURRENCES`; None if it only runs in steps.
    recurrence_name = None
    # Whether the drive is the rule's of W x + b, so that a linear rule may filter x instead.
    drive_from_input = True
    # Whether recomputing a step in the backward pass is faster than storing what it computed.
    cheap_steps = False
    # Cells of Keras set these in their constructor; others have no dropout.
    dropout = 0.0
    recurrent_dropout = 0.0
    _given_masks: list[Any] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Fast paths and Keras's layers would run the step that it overrides.
        if overrides(cls, OF_A_STEP, "recurrence_name"):
            cls.recurrence_name = None
            cls.extends_keras_cell = False
        if overrides(cls, OF_THE_DRIVE, "drive_from_input"):
            cls.drive_from_input = False
        cls.__signature__ = FullSignature(cls.keras_cell, cls)
        names = rule_parameters(cls.rule_class)
        delegate(cls, [name for name in names if not hasattr(cls, name)], "rule")

    def __init__(
        self, *args: Any, rule: Rule | dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        rule = take_rule(type(self), rule, kwargs)
        cls = type(self)
        arguments = bound(cls, self.keras_cell, cls, args, kwargs)
        units = arguments["units"]
        if self.keras_cell is None:
            del arguments["units"]
        super().__init__(**arguments)
        self.units = units
        self.rule: Rule = rule
        self._set_states(self.own_states())

    def _set_states(self, own):
        self.own_state_count, slots = len(own), self.rule.slots(self.drive_width)
        if {"h", "c"} & slots.keys():
            raise ValueError(
                "A slot of a rule must not be named h or c: states have these names. Received: "
                f"the slots {list(slots)} of {type(self.rule).__name__}"
            )
        self.state_size = [*own, *slots.values()]

    def own_states(self) -> list[int]:
        """Return the widths of the cell's own states, h first, a list."""
        return [self.units] if self.keras_cell is None else keras.tree.flatten(self.state_size)

    @property
    def drive_width(self) -> int:
        """The width of the drive."""
        return self.gates * self.units

    def split(self, states: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the cell's own states and the rule's slots, two lists."""
        return list(states[: self.own_state_count]), list(states[self.own_state_count :])

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        super().build(input_shape)
        self.build_rule()

    def build_rule(self) -> None:
        """Create the weights of the rule."""
        numbers = itertools.count()

        def add_weight(*args: Any, **kwargs: Any) -> keras.Variable:
            weight = self.add_weight(*args, **kwargs)
            # TensorFlow's checkpoints have what attributes hold.
            setattr(self, f"_rule_weight_{next(numbers)}", weight)
            return weight

        self.rule.build_for(add_weight, self.drive_width, self.gates, self.slot_dtype)
        if not (self.rule.linear or self.rule.scaled):
            self._check_update()
        if self.rule.linear and self.rule.shared and not self.rule.counts:
            shapes = [tuple(getattr(n, "shape", ())) for n in self.rule.coefficients(None)]
            if any(math.prod(shape) > 1 for shape in shapes):
                raise ValueError(
                    f"{type(self.rule).__name__} must set `shared = False`: mu and s have "
                    f"the shapes {shapes}"
                )

    def _check_update(self):
        """Refuse an `update` that returns other shapes: samples or gates would be mixed."""
        widths = self.drive_width, *self.rule.slots(self.drive_width).values()
        u, *slots = (ops.zeros((2, width), self.slot_dtype) for width in widths)
        drive, slots = self.rule.update(u, slots)
        new = [drive, *slots] if isinstance(slots, (list, tuple)) else [drive]
        shapes = [tuple(getattr(x, "shape", ())) for x in new]
        if shapes != [(2, width) for width in widths]:
            raise ValueError(
                f"`update` of {type(self.rule).__name__} must return the drive and a list of "
                f"the new slots, of the shapes {[('batch', width) for width in widths]}. "
                f"Received for a batch of 2: {shapes}, the slots in a {type(slots).__name__}"
            )

    def add_weight(self, *args: Any, **kwargs: Any) -> keras.Variable:
        """Add a weight without autocasting: each use casts it to the dtype that it needs."""
        return super().add_weight(*args, **{"autocast": False, **kwargs})

    @property
    def is_half(self) -> bool:
        """Whether the cell computes in half precision."""
        return self.compute_dtype in ("float16", "bfloat16")

    @property
    def slot_dtype(self) -> str:
        """The dtype of the rule's arithmetic: float32, or float64 if the cell computes in it.

        In half precision a velocity at momentum 0.99 stops at half its value, the square
        of 256 overflows, and a counter stops at 256.
        """
        return "float32" if self.is_half else self.compute_dtype

    def to_slot_dtype(self, x: Tensor) -> Tensor:
        """Return a tensor in the dtype of the rule's arithmetic."""
        return ops.cast(x, self.slot_dtype)

    @property
    def standard_activations(self) -> bool:
        """Whether the activations are those that fused kernels have built in."""
        recurrent = getattr(self, "recurrent_activation", keras.activations.sigmoid)
        return (
            getattr(self, "activation", None) is keras.activations.tanh
            and recurrent is keras.activations.sigmoid
        )

    @property
    def input_bias(self) -> Any:
        """The bias that rides with the input, or None."""
        return self.bias

    @property
    def recurrent_side_bias(self) -> Any:
        """The bias that rides with the recurrent product, or None."""
        return None

    def recurrent_weights(self, training: bool = False) -> list[Any]:
        """Return what its `recurrence` multiplies and adds, a list of tensors and None.

        The matrix of h and the bias beside it come first.
        """
        return [self.recurrent_kernel, self.recurrent_side_bias]

    def projection(self, training: bool = False) -> Callable[[Tensor], Tensor]:
        """Return the function x -> u = W x + b.

        Weights and dropout masks are read once, here, and not at every step. u has the
        dtype of the slots: in float16 the gradient of Adam's drive at u = 0, its step size
        over the root of epsilon, would soon overflow.
        """
        masks = self._drawn(self._dropout_mask) if training and self.dropout else None
        product = self._product(self.kernel, self.input_bias, masks, self.slot_dtype)
        return lambda x: product(self.to_slot_dtype(x))

    def recurrent_product(
        self, training: bool = False, weights: list[Any] | None = None
    ) -> Callable[[Tensor], Tensor]:
        """Return the function h -> h U, plus the bias that rides with it.

        Args:
            training: bool, whether dropout acts.
            weights: list, in place of `recurrent_weights`.
        """
        masks = self.recurrent_masks(training)
        kernel, bias, *_ = self.recurrent_weights() if weights is None else weights
        return self._product(kernel, bias, masks, self.compute_dtype)

    @contextlib.contextmanager
    def recurrent_masks_given(self, masks: Tensor | None) -> Iterator[None]:
        """Let steps made inside drop h by masks `(batch, gates * units)`, if given."""
        if masks is not None:
            self._given_masks = ops.split(masks, self.gates, axis=-1)
        try:
            yield
        finally:
            self._given_masks = None

    def recurrent_masks(self, training: bool) -> Any:
        """Return the dropout masks of h: None, one, or a list of one for each gate."""
        if self._given_masks is not None:
            return self._given_masks
        drops = training and self.recurrent_dropout
        return self._drawn(self._recurrent_dropout_mask) if drops else None

    def _drawn(self, masks):
        """Return the dropout masks of this call, which another thread may have reset."""
        if masks is None:
            raise RuntimeError(
                f"{type(self).__name__} {self.name!r} has lost its dropout masks to another "
                "thread that called the layer. Let one thread at a time call it"
            )
        return masks

    def _product(self, kernel, bias, masks, dtype):
        """Return x -> x @ kernel + bias, x under one dropout mask or one for each gate."""
        kernel = ops.convert_to_tensor(kernel, dtype=dtype)
        bias = None if bias is None else ops.convert_to_tensor(bias, dtype=dtype)
        if traced_by_torch() not in (None, "torchscript"):
            # A loop in a graph refuses two views of one weight.
            kernel, bias = (None if w is None else ops.copy(w) for w in (kernel, bias))
        masks = keras.tree.map_structure(
            lambda m: None if m is None else ops.cast(m, dtype), masks
        )
        kernels = ops.split(kernel, len(masks), axis=-1) if isinstance(masks, list) else None

        def product(x):
            if masks is None:
                y = x @ kernel
            elif kernels is None:
                y = (x * masks) @ kernel
            else:
                parts = [(x * m) @ k for m, k in zip(masks, kernels)]
                y = ops.concatenate(parts, axis=-1)
            return y if bias is None else y + bias

        return product

    def apply_rule(self, u: Tensor, slots: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Return the drive of u in the compute dtype, and the slots in the dtype they had."""
        drive, wide = self.rule.update(u, [self.to_slot_dtype(s) for s in slots])
        slots = [ops.cast(new, old.dtype) for new, old in zip(wide, slots)]
        return ops.cast(drive, self.compute_dtype), slots

    def recurrence(self, training: bool = False, weights: list[Any] | None = None) -> Step:
        """Return the cell's own equation, a function (drive, own states) -> own states.

        Args:
            training: bool, whether dropout acts.
            weights: list, in place of `recurrent_weights`: a gradient is differentiated by
                them.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `recurrence`")

    def step_from_input(self, training: bool = False) -> Step:
        """Return one step, a function (x, states) -> states. It defines the cell."""
        project, step = self.projection(training), self.step_from_projection(training)
        return lambda x, states: step(project(x), states)

    def step_from_projection(
        self, training: bool = False, weights: list[Any] | None = None
    ) -> Step:
        """Return one step past the projection, a function (u, states) -> states."""
        recur = self.recurrence(training, weights)

        def step(u, states):
            own, slots = self.split(states)
            drive, slots = self.apply_rule(u, slots)
            return [*recur(drive, own), *slots]

        return step

    def step_from_filtered_input(self, training: bool = False) -> Step:
        """Return one step of a linear rule which filters x in place of u.

        v = mu v + s (W x + b) is W times the filtered x plus b times the filtered 1. The
        slot in the states of this step is the filtered [x, 1], narrower than v.
        """
        recur, rows = self.recurrence(training), self.input_rows()
        drops = training and self.dropout
        mask = self.to_slot_dtype(self._drawn(self._dropout_mask)) if drops else None

        def step(x, states):
            own, slots = self.split(states)
            x = self.to_slot_dtype(x) if mask is None else self.to_slot_dtype(x) * mask
            x = ops.concatenate([x, ops.ones_like(x[:, :1])], axis=-1)
            x, slots = self.rule.update(x, slots)
            drive = ops.cast(_narrow_product(x, rows), self.compute_dtype)
            return [*recur(drive, own), *slots]

        return step

    def input_rows(self) -> Tensor:
        """Return [W; b], the kernel and under it the bias that rides with the input."""
        kernel = self.to_slot_dtype(self.kernel)
        bias = self.input_bias
        bias = ops.zeros_like(kernel[0]) if bias is None else self.to_slot_dtype(bias)
        return ops.concatenate([kernel, ops.expand_dims(bias, 0)], axis=0)

    def call(
        self, inputs: Tensor, states: list[Tensor], training: bool = False
    ) -> tuple[Tensor, list[Tensor]]:
        if training:
            self.draw_dropout(inputs, states[0])
        states = self.step_from_input(training)(inputs, list(states))
        return states[0], states

    @property
    def has_dropout(self) -> bool:
        """Whether a call draws dropout masks."""
        return self.keras_cell is not None and bool(self.dropout or self.recurrent_dropout)

    def draw_dropout(self, x: Tensor, h: Tensor) -> None:
        """Draw the dropout masks, unless they are drawn already, for one step's x and h."""
        if self.has_dropout:
            self.get_dropout_mask(x)
            self.get_recurrent_dropout_mask(h)

    def reset_dropout(self) -> None:
        """Forget the dropout masks: the next call draws its own."""
        if self.has_dropout:
            self.reset_dropout_mask()
            self.reset_recurrent_dropout_mask()

    def get_initial_state(self, batch_size: int | None = None) -> list[Tensor]:
        own, slots = self.split(self.state_size)
        return [
            *(ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in own),
            *(ops.zeros((batch_size, size), dtype=self.slot_dtype) for size in slots),
        ]

    def get_config(self) -> dict[str, Any]:
        config = {**super().get_config(), "units": self.units}
        config |= {name: getattr(self, name) for name in UNLISTED if hasattr(self, name)}
        for name in self.left_out:
            del config[name]
        if self.rule_class is not None:
            return {**config, **self.rule.get_config()}
        return {**config, "rule": keras.saving.serialize_keras_object(self.rule)}


def _narrow_product(x, rows):
    """Return x @ rows; of two columns as a sum, which XLA fuses into what follows."""
    if x.shape[-1] == 2:
        return x[:, :1] * rows[0] + x[:, 1:] * rows[1]
    return x @ rows


# The method by which slots start at zero; a subclass may have another.
FIRST_STATES = RuleCell.get_initial_state
