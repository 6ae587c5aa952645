"""Orthogonal (DTRIV) cells whose input drive is accelerated by a momentum rule."""

from typing import Any, ClassVar, Literal

import keras
from keras import ops

from keras_momentum_rnn.annotations import Identifier, Step, Tensor
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.checks import checked, checked_choice
from keras_momentum_rnn.exports import (
    may_become_a_file,
    outside_of_the_trace,
    trace_may_train,
    traced_by_torch,
)
from keras_momentum_rnn.hyperparameters import Hyperparameter
from keras_momentum_rnn.initializers import CayleySkew
from keras_momentum_rnn.rotations import PARAMETRIZATIONS, packed_size, rotation, unpacked
from keras_momentum_rnn.rules import register


def modrelu(z, b):
    """Return `sign(z) max(|z| + b, 0)`: the size of each z moved by b, its sign kept."""
    return ops.sign(z) * ops.relu(ops.abs(z) + b)


@register
class RuleDTRIVCell(RuleCell, keras.layers.SimpleRNNCell):
    """Cell of `RuleDTRIV`, which gives equation and arguments.

    A bare cell in `keras.layers.RNN` or `keras.layers.StackedRNNCells` computes Q at every
    step, which is as exact but much slower, and never changes its base: only the layer has
    `rebase_every`. Call arguments and what Keras's RNN rounds: see `RuleLSTMCell`; the states
    are [h, slots].

    Arguments are those of `RuleDTRIV` but for `rebase_every` and what `keras.layers.RNN` takes.
    """

    keras_cell = keras.layers.SimpleRNNCell
    extends_keras_cell = False
    recurrence_name = "modrelu"
    skew: keras.Variable
    modrelu_bias: keras.Variable
    base: keras.Variable
    skew_origin: keras.Variable
    calls_at_base: keras.Variable
    # Its only activation is modrelu, which is part of the equation.
    standard_activations = True
    left_out = ("activation", "recurrent_constraint")
    other_defaults: ClassVar = {
        "use_bias": False,
        "kernel_initializer": "he_normal",
        "recurrent_initializer": CayleySkew,
    }
    hyperparameters: ClassVar = {
        "parametrization": Hyperparameter(
            choices=tuple(PARAMETRIZATIONS), search=list(PARAMETRIZATIONS), scale=None
        )
    }

    def __init__(
        self,
        *args: Any,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0,
        modrelu_bias_initializer: Identifier = None,
        **kwargs: Any,
    ) -> None:
        checked_choice("parametrization", parametrization, tuple(PARAMETRIZATIONS))
        checked_choice("initial_rotation", initial_rotation, ("base", "skew"))
        multiplier = checked("recurrent_lr_multiplier", recurrent_lr_multiplier, above=0)
        super().__init__(*args, **kwargs)
        # Keras's cell has one, which the equation has no place for.
        self.activation = keras.activations.linear
        self.fixed_matrix = None
        self.parametrization = parametrization
        self.initial_rotation = initial_rotation
        self.recurrent_lr_multiplier = multiplier
        if modrelu_bias_initializer is None:
            modrelu_bias_initializer = keras.initializers.RandomUniform(-0.01, 0.01)
        self.modrelu_bias_initializer = keras.initializers.get(modrelu_bias_initializer)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        shape = (packed_size(self.units),)
        on_skew = None if self.recurrent_regularizer is None else _OnDisplacement(self)
        # Not trained, but assigned in the forward pass; one replica's value counts for all.
        still = {"trainable": False, "aggregation": "only_first_replica"}
        self.kernel = self.add_weight(
            shape=(input_shape[-1], self.units),
            name="kernel",
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.skew = self.add_weight(
            shape=shape,
            name="skew",
            initializer=self._initial_skew,
            regularizer=on_skew,
            dtype=self.slot_dtype,
        )
        self.modrelu_bias = self._add_bias("modrelu_bias", self.modrelu_bias_initializer)
        self.bias = self._add_bias("bias", self.bias_initializer) if self.use_bias else None
        self.base = self.add_weight(
            shape=(self.units, self.units),
            name="base",
            initializer=self._initial_base,
            dtype=self.slot_dtype,
            **still,
        )
        self.skew_origin = self.add_weight(
            shape=shape, name="skew_origin", initializer="zeros", dtype=self.slot_dtype, **still
        )
        self.calls_at_base = self.add_weight(
            name="calls_at_base", initializer="zeros", dtype="int32", **still
        )
        self.build_rule()

    def _add_bias(self, name, initializer):
        return self.add_weight(
            shape=(self.units,),
            name=name,
            initializer=initializer,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )

    def _initial_skew(self, shape, dtype=None):
        if self.initial_rotation == "base":
            return ops.zeros(shape, dtype=dtype)
        return self.recurrent_initializer(shape, dtype=dtype) / self.recurrent_lr_multiplier

    def _initial_base(self, shape, dtype=None):
        eye = ops.eye(self.units, dtype=dtype)
        if self.initial_rotation == "skew":
            return eye
        drawn = self.recurrent_initializer((packed_size(self.units),), dtype=dtype)
        return rotation(eye, unpacked(drawn, self.units), self.parametrization)

    def displacement(self) -> Tensor:
        """Return the packed S of the equation: how far Q has moved from its base.

        It is `recurrent_lr_multiplier` times what the weight `skew` has moved, with the
        gradient of that weight alone: under any optimizer, its step is that many times
        as long, and depends on the gradient as it would for S.
        """
        moved = ops.convert_to_tensor(self.skew) - ops.convert_to_tensor(self.skew_origin)
        if self.recurrent_lr_multiplier == 1:
            return moved
        still = ops.stop_gradient(moved)
        return self.recurrent_lr_multiplier * still + (moved - still)

    def recurrent_matrix(self, portable: bool = False) -> Tensor:
        """Return Q, a tensor `(units, units)`, in float32 (in float64 under that policy).

        Args:
            portable: bool, whether to compute it by operations that every file format has.
        """
        # PyTorch assigns to the base in place; a backward pass may still need the old value.
        base = ops.copy(ops.convert_to_tensor(self.base))
        skew = unpacked(self.displacement(), self.units)
        return rotation(base, skew, self.parametrization, portable)

    def fix_matrix(self) -> None:
        """Compute Q once for all calls; the weights must not change afterwards."""
        self.fixed_matrix = ops.convert_to_numpy(self.recurrent_matrix())

    def rebase(self, every: int) -> None:
        """Count a call in training; after `every` calls, make Q the base and S zero.

        Neither Q nor the weight `skew` changes, so its optimizer is not affected: S counts
        from `skew_origin` from now on.
        """
        calls, base, skew, origin = (
            ops.convert_to_tensor(v)
            for v in (self.calls_at_base, self.base, self.skew, self.skew_origin)
        )
        due = calls >= every
        base, origin = ops.cond(
            due,
            lambda: (ops.stop_gradient(self.recurrent_matrix()), ops.stop_gradient(skew)),
            lambda: (base, origin),
        )
        self.base.assign(base)
        self.skew_origin.assign(origin)
        self.calls_at_base.assign(ops.where(due, 0, calls) + 1)

    def recurrent_weights(self, training: bool = False) -> list[Any]:
        if self.fixed_matrix is not None:
            matrix = ops.convert_to_tensor(self.fixed_matrix)
        elif traced_by_torch() and not trace_may_train():
            matrix = outside_of_the_trace(lambda: self.recurrent_matrix().detach())
        else:
            matrix = self.recurrent_matrix(portable=may_become_a_file(training))
        return [matrix, self.modrelu_bias]

    def recurrence(self, training: bool = False, weights: list[Any] | None = None) -> Step:
        """h = modrelu(g + h Q, b), in the dtype of Q.

        A Q rounded to bfloat16 has singular values of 0.998 to 1.002, and at 16 units h would
        be up to twice as long after 2,000 steps.
        """
        masks = self.recurrent_masks(training)
        matrix, bias = self.recurrent_weights(training) if weights is None else weights
        product = self._product(matrix, None, masks, self.slot_dtype)
        bias = ops.convert_to_tensor(bias, dtype=self.slot_dtype)

        def step(drive, states):
            (h,) = states
            h = modrelu(self.to_slot_dtype(drive) + product(self.to_slot_dtype(h)), bias)
            return [ops.cast(h, self.compute_dtype)]

        return step

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "parametrization": self.parametrization,
            "initial_rotation": self.initial_rotation,
            "recurrent_lr_multiplier": self.recurrent_lr_multiplier,
            "modrelu_bias_initializer": keras.initializers.serialize(
                self.modrelu_bias_initializer
            ),
        }


class _OnDisplacement(keras.regularizers.Regularizer):
    """Penalise S, not the weight `skew` that it is computed from."""

    def __init__(self, cell):
        self.cell = cell

    def __call__(self, skew):
        return self.cell.recurrent_regularizer(self.cell.displacement())
