"""LSTM layers with a rule on their input."""

from typing import Any, Literal

import keras

from keras_momentum_rnn import cells
from keras_momentum_rnn.arguments import parameters_of
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.checks import checked_choice
from keras_momentum_rnn.layers.docstrings import called_as_keras, documented
from keras_momentum_rnn.recurrent import RuleLayer

__all__ = ["RuleLSTM", "MomentumLSTM", "NAGLSTM", "SRLSTM", "AdamLSTM", "RMSPropLSTM"]


@called_as_keras
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

    {calls}

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


@documented
class MomentumLSTM(RuleLSTM):
    """LSTM whose input drive is a heavy-ball velocity.

    With `use_recurrent_bias=True` it is the cell released with the paper.

    Reference: Nguyen et al. (2020), equation 9. For Penn Treebank the paper sets
    `momentum=0.0, step_size=0.6`: its gain there comes from the scaled input alone.
    """

    cell_class = cells.MomentumLSTMCell


@documented
class NAGLSTM(RuleLSTM):
    """LSTM whose input drive follows Nesterov's momentum schedule.

    The momentum tends to 1, so the drive comes close to a running sum of the inputs. `SRLSTM`
    sets it back every `restart_period` steps.
    """

    cell_class = cells.NAGLSTMCell


@documented
class SRLSTM(RuleLSTM):
    """LSTM with Nesterov's momentum schedule, restarted every `restart_period` steps.

    This is `formulation="paper"`, the text of the paper. `formulation="released"` is the code
    released with it for MNIST and TIMIT: momentum on the whole preactivation, recurrent
    product included,

    ```
    y_t = h_{t-1} U [+ b_r] - step_size (x_t W + b)
    i, f, c~, o = split(y_t + mu_t (y_t - y_{t-1}))
    ```

    with the states [h, c, y, t]. The minus is as printed there: at
    `step_size=1, restart_period=1` it is the plain LSTM with W and b negated.

    Args:
        formulation: `"paper"` or `"released"`. Defaults to `"paper"`.

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


class ScaleFreeLSTM(RuleLSTM):
    """What the LSTMs share whose rule divides the drive by its own size: `scale_free`."""

    def __init__(self, *args: Any, scale_free: bool = False, **kwargs: Any) -> None:
        self.scale_free = checked_choice("scale_free", scale_free, (True, False))
        if scale_free:
            given = dict(zip(parameters_of(keras.layers.LSTM), args))
            if twice := given.keys() & kwargs.keys():
                raise TypeError(f"got two values for {', '.join(twice)}: {args}, {kwargs}")
            args, kwargs = (), given | kwargs
            for name, value in (("use_bias", False), ("use_recurrent_bias", True)):
                if kwargs.setdefault(name, value) != value:
                    raise ValueError(
                        f"`{name}` must be {value} with `scale_free=True`, which has one bias, "
                        f"outside the rule. Received: {name}={kwargs[name]!r}"
                    )
        super().__init__(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "scale_free": self.scale_free}


@documented
class AdamLSTM(ScaleFreeLSTM):
    """LSTM whose input drive is accelerated as by Adam.

    Args:
        scale_free: bool; with `True` a common factor of the inputs changes nothing, but for
            `epsilon`: the one bias stands beside the recurrent product, outside the rule, as
            with `use_bias=False, use_recurrent_bias=True`. Defaults to `False`.
    """

    cell_class = cells.AdamLSTMCell


@documented
class RMSPropLSTM(ScaleFreeLSTM):
    """LSTM whose input drive is scaled as by RMSProp: `AdamLSTM` at momentum 0.

    Args:
        scale_free: bool, as of `AdamLSTM`. Defaults to `False`.
    """

    cell_class = cells.RMSPropLSTMCell
