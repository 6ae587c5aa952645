"""Orthogonal (DTRIV) layers, without and with a rule on their input."""

from typing import Any, ClassVar

import keras

from keras_momentum_rnn import cells
from keras_momentum_rnn.hyperparameters import Hyperparameter
from keras_momentum_rnn.layers.docstrings import called_as_keras, documented
from keras_momentum_rnn.recurrent import RuleLayer
from keras_momentum_rnn.rules import register

REBASE_EVERY = Hyperparameter(integer=True, optional=True, search=[1, 100, None], scale=None)
__all__ = [
    "RuleDTRIV",
    "DTRIV",
    "MomentumDTRIV",
    "NAGDTRIV",
    "SRDTRIV",
    "AdamDTRIV",
    "RMSPropDTRIV",
]


@called_as_keras
class RuleDTRIV(RuleLayer):
    """Orthogonal layer with any momentum rule on its input drive.

    ```
    u_t = x_t W [+ b]                               what the input brings
    g_t = rule(u_0, ..., u_t)                       the drive
    h_t = modrelu(g_t + h_{t-1} Q, b_m),  modrelu(z, b) = sign(z) max(|z| + b, 0)
    Q = base exp(S),  S' = -S
    ```

    Q is always orthogonal, so multiplying by it never shrinks or blows up h. S is stored
    packed, as the `units (units - 1) / 2` numbers above its diagonal, row by row. With
    `parametrization="cayley"`, `Q = base (I + S)^-1 (I - S)`. Q is computed once per call. Q
    and the product h Q are in float32 at least, in half precision too.

    Dynamic trivialisation: with `rebase_every=K`, Q becomes the new base after every K calls
    in training, and S counts from zero again. The outputs and the optimizer's moments do not
    change; only the direction in which later steps of S move Q does. The base moves inside
    the training step: you need no callback, and a saved model continues where it stopped. A
    model that calls the layer twice in one update counts two calls.

    With `recurrent_lr_multiplier=m`, any optimizer makes m times as long a step on S, as with
    m times the learning rate. `recurrent_regularizer` penalises S counted from the last base,
    not Q. Decoupled weight decay acts on the weight `skew`. Without `rebase_every` it draws Q
    towards the base; with it, it has no meaning, since `skew` is never reset: turn it off by
    `optimizer.exclude_from_weight_decay(var_names=["skew"])`. The guide to orthogonal layers
    shows how S gets another optimizer.

    Args:
        units: positive integer, the width of h.
        rule: a `keras_momentum_rnn.rules.Rule`. The layer takes a copy of its own.
        parametrization: `"expm"` or `"cayley"`, how S becomes a rotation. Defaults to
            `"expm"`.
        rebase_every: positive integer K, or `None` for never. Defaults to `None`.
        initial_rotation: `"base"`: the base starts at the rotation of the S that
            `recurrent_initializer` draws, and S at zero, as in dynamic trivialisations.
            `"skew"`: S starts as drawn, and the base at the identity, as in expRNN. Defaults
            to `"base"`.
        recurrent_lr_multiplier: float above 0. Defaults to 1.0.
        recurrent_initializer: of S, packed: one of `keras_momentum_rnn.initializers`, or any
            of Keras for a shape of one dimension. Defaults to `CayleySkew`.
        modrelu_bias_initializer: of b_m. Defaults to `RandomUniform(-0.01, 0.01)`.
        use_bias: bool, whether b is added to x_t W. Defaults to `False`.
        kernel_initializer: of W. Defaults to `"he_normal"`.
        bias_regularizer: of both biases. Defaults to `None`.
        bias_constraint: of both biases. Defaults to `None`.

    There is no `activation` and no `recurrent_constraint`.

    {calls}

    Weights: `cell.kernel` W `(features, units)`, `cell.skew`, S packed, over
    `recurrent_lr_multiplier` and less `cell.skew_origin`; `cell.modrelu_bias` b_m and
    `cell.bias` b `(units,)`. Not trained: `cell.base` `(units, units)`, `cell.skew_origin`,
    where S counts from, and `cell.calls_at_base`. `cell.recurrent_matrix()` returns Q.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import RuleDTRIV, rules
    >>> layer = RuleDTRIV(4, rule=rules.NAG(), rebase_every=100)
    >>> tuple(layer(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)
    >>> tuple(layer.cell.recurrent_matrix().shape)
    (4, 4)

    References:
        Nguyen et al. (2020), section 4 and appendix; Lezcano-Casado (2019),
        "Trivializations for gradient-based optimization on manifolds"; Lezcano-Casado and
        Martinez-Rubio (2019), "Cheap orthogonal constraints in neural networks". Their code
        changes the base between updates, sets S to zero and keeps the optimizer's moments;
        here S keeps its value and its origin moves, which is equivalent. Unlike theirs, Q gets
        one Newton-Schulz step, which keeps rounding from adding up.
    """

    keras_layer = keras.layers.SimpleRNN
    family = "DTRIV"
    cell_class = cells.RuleDTRIVCell
    needs_rule = True
    own_hyperparameters: ClassVar = {"rebase_every": REBASE_EVERY}

    def __init__(self, *args: Any, rebase_every: int | None = None, **kwargs: Any) -> None:
        self.rebase_every = REBASE_EVERY.checked("rebase_every", rebase_every)
        super().__init__(*args, **kwargs)

    def _prepared(self, x, initial_state, mask, training):
        if training and self.trainable and self.rebase_every is not None:
            self.cell.rebase(self.rebase_every)
        return super()._prepared(x, initial_state, mask, training)

    def changed_by_calls(self, training: bool | None) -> str | None:
        if self.rebase_every is None or not (training and self.trainable):
            return super().changed_by_calls(training)
        return f"rebase_every={self.rebase_every}"

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rebase_every": self.rebase_every}


@register
class DTRIV(RuleDTRIV):
    """Orthogonal layer whose recurrent matrix is a rotation, without momentum.

    ```
    h_t = modrelu(x_t W [+ b] + h_{t-1} Q, b_m)
    ```

    States: [h].

    Args:
        units: positive integer.

    Every other argument, call arguments, shapes and errors are those of `RuleDTRIV`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import DTRIV
    >>> tuple(DTRIV(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Lezcano-Casado (2019), "Trivializations for gradient-based optimization on
    manifolds".
    """

    cell_class = cells.DTRIVCell


@documented
class MomentumDTRIV(RuleDTRIV):
    """Orthogonal layer whose input drive is a heavy-ball velocity."""

    cell_class = cells.MomentumDTRIVCell


@documented
class NAGDTRIV(RuleDTRIV):
    """Orthogonal layer whose input drive follows Nesterov's momentum schedule."""

    cell_class = cells.NAGDTRIVCell


@documented
class SRDTRIV(RuleDTRIV):
    """Orthogonal layer whose input drive follows Nesterov's schedule with restarts.

    The code released with the paper has this form here, not that of its LSTM.
    """

    cell_class = cells.SRDTRIVCell


@documented
class AdamDTRIV(RuleDTRIV):
    """Orthogonal layer whose input drive is accelerated as by Adam."""

    cell_class = cells.AdamDTRIVCell


@documented
class RMSPropDTRIV(RuleDTRIV):
    """Orthogonal layer whose input drive is scaled as by RMSProp."""

    cell_class = cells.RMSPropDTRIVCell
