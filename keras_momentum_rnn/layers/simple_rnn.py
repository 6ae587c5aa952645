"""SimpleRNN (Elman) layers with a rule on their input."""

import keras

from keras_momentum_rnn import cells
from keras_momentum_rnn.layers.docstrings import called_as_keras, documented
from keras_momentum_rnn.recurrent import RuleLayer

__all__ = ["RuleRNN", "MomentumRNN", "NAGRNN", "SRRNN", "AdamRNN", "RMSPropRNN"]


@called_as_keras
class RuleRNN(RuleLayer):
    """Elman layer (`SimpleRNN`) with any momentum rule on its input drive.

    ```
    u_t = x_t W + b                                 what the input brings
    g_t = rule(u_0, ..., u_t)                       the drive
    h_t = activation(g_t + h_{t-1} U)
    ```

    With `parameterization="hidden"`, the paper's Remarks 1 and 4, u and the velocity v live
    in the space of h, and pass through U as h does:

    ```
    h_t = activation((h_{t-1} + v_t) U)                          linear rules
    h_t = activation(h_{t-1} U + (v_t U) / sqrt(m_t + epsilon))  Adam, RMSProp
    ```

    m is the second moment of u. W has the same shape in both.

    Args:
        units: positive integer, the width of h.
        rule: a `keras_momentum_rnn.rules.Rule`. The layer takes a copy of its own.
        parameterization: `"input"` or `"hidden"`, where u and v pass through U as h does; its
            equations are those of `RuleRNN`. Defaults to `"input"`.

    {calls}

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import RuleRNN, rules
    >>> layer = RuleRNN(4, rule=rules.Adam(), parameterization="hidden")
    >>> tuple(layer(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), equations 9, 10, 14, 15 and Remarks 1 and 4.
    """

    keras_layer = keras.layers.SimpleRNN
    family = "RNN"
    cell_class = cells.RuleRNNCell
    needs_rule = True


@documented
class MomentumRNN(RuleRNN):
    """Elman layer whose input drive is a heavy-ball velocity."""

    cell_class = cells.MomentumRNNCell


@documented
class NAGRNN(RuleRNN):
    """Elman layer whose input drive follows Nesterov's momentum schedule."""

    cell_class = cells.NAGRNNCell


@documented
class SRRNN(RuleRNN):
    """Elman layer whose input drive follows Nesterov's schedule with restarts."""

    cell_class = cells.SRRNNCell


@documented
class AdamRNN(RuleRNN):
    """Elman layer whose input drive is accelerated as by Adam."""

    cell_class = cells.AdamRNNCell


@documented
class RMSPropRNN(RuleRNN):
    """Elman layer whose input drive is scaled as by RMSProp."""

    cell_class = cells.RMSPropRNNCell
