"""The LSTM family."""

from typing import Any, Literal

import keras

from keras_momentum_rnn import cells
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.checks import checked_choice
from keras_momentum_rnn.recurrent import RuleLayer
from keras_momentum_rnn.rules import register

__all__ = [
    "RuleLSTM",
    "MomentumLSTM",
    "NAGLSTM",
    "SRLSTM",
    "AdamLSTM",
    "RMSPropLSTM",
]


# The place of `use_bias` among the arguments of `keras.layers.LSTM`.
USE_BIAS = 3


def with_bias_outside(
    scale_free: bool, args: tuple[Any, ...], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Return keyword arguments with the biases of `scale_free`, unchanged without it.

    Raises:
        ValueError: if they say otherwise.
    """
    if not scale_free:
        return arguments
    wanted = {"use_bias": False, "use_recurrent_bias": True}
    given = {**arguments, **dict(zip(["use_bias"], args[USE_BIAS:]))}
    for name, value in wanted.items():
        if given.get(name, value) != value:
            raise ValueError(
                f"`{name}` must be {value} with `scale_free=True`, which has one bias, outside "
                f"the rule. Received: {name}={given[name]!r}"
            )
    if len(args) > USE_BIAS:
        del wanted["use_bias"]
    return {**arguments, **wanted}


@register
class RuleLSTM(RuleLayer):
    """LSTM with any momentum rule on its input drive.

    ```
    u_t = x_t W + b                                 what the input brings
    g_t = rule(u_0, ..., u_t)                       the drive
    i, f, c~, o = split(g_t + h_{t-1} U [+ b_r])
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(c~)
    h_t = sigmoid(o) tanh(c_t)
    ```

    Args:
        units: positive integer, the width of h and c.
        rule: a `keras_momentum_rnn.rules.Rule`. The layer takes a copy of its own.
        use_recurrent_bias: bool, whether b_r stands beside the recurrent product, outside
            the momentum, as in the cells released with the paper. It starts as the bias
            does, with `unit_forget_bias` its forget gate at 1. Defaults to `False`.

    Every other argument is that of `keras.layers.LSTM`, with its meaning, position and
    default. `use_cudnn=True` raises a `ValueError` where no fused kernel can run the call.

    Call arguments:
        sequences: tensor `(batch, time, features)`.
        initial_state: list of the cell's states [h, c], each `(batch, units)`, or of all
            states: h, c and then the rule's slots. Slots that you leave out start at zero.
        mask: bool tensor `(batch, time)`. Where it is `False`, every state is held.
        training: bool, whether dropout acts.

    Returns:
        As `keras.layers.LSTM`: h at the last step `(batch, units)`, or at every step
        `(batch, time, units)` with `return_sequences`; then, with `return_state`, h, c and
        the rule's slots. The slots are in float32 (in float64 under that policy), since half
        precision would stall a velocity.

    Raises:
        ValueError: if an argument is out of its range. The message has the range and the value.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import RuleLSTM, rules
    >>> layer = RuleLSTM(4, rule=rules.NAG(step_size=0.5))
    >>> tuple(layer(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference:
        Nguyen et al. (2020), "MomentumRNN: Integrating Momentum into Recurrent Neural
        Networks", section 2.4. The paper's LSTM equation has no forget gate. Its released
        cell has one, as this layer does.
    """

    keras_layer = keras.layers.LSTM
    family = "LSTM"
    cell_class = cells.RuleLSTMCell
    needs_rule = True


@register
class MomentumLSTM(RuleLSTM):
    """LSTM whose input drive is a heavy-ball velocity.

    ```
    v_t = momentum v_{t-1} + step_size (x_t W + b)
    ```

    takes the place of `x_t W + b` in the gates of `RuleLSTM`. With `momentum=0` and
    `step_size=1` it is `keras.layers.LSTM`. States: [h, c, v], v `(batch, 4 units)`.

    Args:
        units: positive integer.
        momentum: float, at least 0. From 1 on v grows without bound, and a warning says so.
            Defaults to 0.6.
        step_size: float above 0. Defaults to 0.6.
        use_recurrent_bias: bool; with `True` it is the cell released with the paper. Defaults
            to `False`.

    Every other argument is that of `keras.layers.LSTM`; call arguments, shapes and
    errors are those of `RuleLSTM`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import MomentumLSTM
    >>> layer = MomentumLSTM(4, momentum=0.9, return_sequences=True)
    >>> tuple(layer(np.zeros((2, 10, 3), "float32")).shape)
    (2, 10, 4)

    Reference: Nguyen et al. (2020), equation 9. For Penn Treebank the paper sets
    `momentum=0.0, step_size=0.6`: its gain there comes from the scaled input alone.
    """

    cell_class = cells.MomentumLSTMCell


@register
class NAGLSTM(RuleLSTM):
    """LSTM whose input drive follows Nesterov's momentum schedule.

    ```
    mu_t = t / (t + 3),  t = 0, 1, ...
    v_t = mu_t v_{t-1} + step_size (x_t W + b)
    ```

    v takes the place of `x_t W + b` in the gates of `RuleLSTM`. States: [h, c, v, t],
    v `(batch, 4 units)`, t `(batch, 1)`; a masked step does not count.

    Args:
        units: positive integer.
        step_size: float above 0. Defaults to 0.9.
        use_recurrent_bias: bool, as of `RuleLSTM`. Defaults to `False`.

    Every other argument is that of `keras.layers.LSTM`; call arguments, shapes and
    errors are those of `RuleLSTM`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import NAGLSTM
    >>> tuple(NAGLSTM(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), section 2.4. The momentum tends to 1: on long sequences
    prefer `SRLSTM`.
    """

    cell_class = cells.NAGLSTMCell


@register
class SRLSTM(RuleLSTM):
    """LSTM with Nesterov's momentum schedule, restarted every `restart_period` steps.

    `formulation="paper"`, the text of the paper: momentum on the input drive,

    ```
    mu_t = (t mod F) / ((t mod F) + 3),  t = 0, 1, ...
    v_t = mu_t v_{t-1} + step_size (x_t W + b)
    ```

    and v takes the place of `x_t W + b` in the gates of `RuleLSTM`. States: [h, c, v, t],
    v `(batch, 4 units)`, t `(batch, 1)`, counted modulo F; a masked step does not count.

    `formulation="released"`, the code released with the paper, which made its tables:
    momentum on the whole preactivation, recurrent product included,

    ```
    y_t = h_{t-1} U [+ b_r] - step_size (x_t W + b)
    i, f, c~, o = split(y_t + mu_t (y_t - y_{t-1}))
    ```

    States: [h, c, y, t]. The minus is as printed there: at `step_size=1, restart_period=1`
    it is the plain LSTM with W and b negated.

    Args:
        units: positive integer.
        restart_period: positive integer F. Defaults to 40.
        step_size: float above 0. Defaults to 0.9.
        formulation: `"paper"` or `"released"`. Defaults to `"paper"`.
        use_recurrent_bias: bool, as of `RuleLSTM`. Defaults to `False`.

    Every other argument is that of `keras.layers.LSTM`; call arguments, shapes and
    errors are those of `RuleLSTM`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import SRLSTM
    >>> layer = SRLSTM(4, restart_period=6, formulation="released")
    >>> tuple(layer(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), section 2.4, and the code released with it.
    """

    cell_class = cells.SRLSTMCell

    def __init__(
        self, *args: Any, formulation: Literal["paper", "released"] = "paper", **kwargs: Any
    ) -> None:
        self.formulation = checked_choice("formulation", formulation, ("paper", "released"))
        super().__init__(*args, **kwargs)

    def chosen_cell(self) -> type[RuleCell]:
        return cells.SRLSTMCell if self.formulation == "paper" else cells.ReleasedSRLSTMCell

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "formulation": self.formulation}


@register
class AdamLSTM(RuleLSTM):
    """LSTM whose input drive is accelerated as by Adam.

    ```
    u_t = x_t W + b
    v_t = momentum v_{t-1} + step_size u_t
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = v_t / sqrt(m_t + epsilon)
    ```

    g takes the place of u in the gates of `RuleLSTM`. States: [h, c, v, m], v and m
    `(batch, 4 units)`.

    Args:
        units: positive integer.
        momentum: float, at least 0; a warning from 1 on. Defaults to 0.6.
        step_size: float above 0. Defaults to 0.6.
        beta: float in [0, 1). Defaults to 0.99.
        epsilon: float above 0, inside the root. Defaults to 1e-8; the released code has
            1e-16.
        relaxed: bool; `False` for the paper's equation 14, see `rules.Adam`. Defaults to
            `True`.
        scale_free: bool; with `True` a common factor of the inputs changes nothing, but for
            `epsilon`: the one bias stands beside the recurrent product, outside the rule, as
            with `use_bias=False, use_recurrent_bias=True`. Defaults to `False`.
        use_recurrent_bias: bool, as of `RuleLSTM`. Defaults to `False`.

    Every other argument is that of `keras.layers.LSTM`; call arguments, shapes and
    errors are those of `RuleLSTM`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import AdamLSTM
    >>> tuple(AdamLSTM(4, beta=0.9)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), equation 15, without a bias correction, as there.
    """

    cell_class = cells.AdamLSTMCell

    def __init__(self, *args: Any, scale_free: bool = False, **kwargs: Any) -> None:
        self.scale_free = checked_choice("scale_free", scale_free, (True, False))
        super().__init__(*args, **with_bias_outside(scale_free, args, kwargs))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "scale_free": self.scale_free}


@register
class RMSPropLSTM(RuleLSTM):
    """LSTM whose input drive is scaled as by RMSProp: `AdamLSTM` at momentum 0.

    ```
    u_t = x_t W + b
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = step_size u_t / sqrt(m_t + epsilon)
    ```

    g takes the place of u in the gates of `RuleLSTM`. States: [h, c, m], m
    `(batch, 4 units)`.

    Args:
        units: positive integer.
        step_size: float above 0. Defaults to 0.6.
        beta: float in [0, 1). Defaults to 0.9.
        epsilon: float above 0, inside the root. Defaults to 1e-8; the released code has
            1e-16.
        scale_free: bool; with `True` a common factor of the inputs changes nothing, but for
            `epsilon`: the one bias stands beside the recurrent product, outside the rule, as
            with `use_bias=False, use_recurrent_bias=True`. Defaults to `False`.
        use_recurrent_bias: bool, as of `RuleLSTM`. Defaults to `False`.

    Every other argument is that of `keras.layers.LSTM`; call arguments, shapes and
    errors are those of `RuleLSTM`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import RMSPropLSTM
    >>> tuple(RMSPropLSTM(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), after equation 15.
    """

    cell_class = cells.RMSPropLSTMCell

    def __init__(self, *args: Any, scale_free: bool = False, **kwargs: Any) -> None:
        self.scale_free = checked_choice("scale_free", scale_free, (True, False))
        super().__init__(*args, **with_bias_outside(scale_free, args, kwargs))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "scale_free": self.scale_free}
