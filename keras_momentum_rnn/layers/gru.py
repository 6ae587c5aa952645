"""GRU layers with a rule on their input."""

import keras

from keras_momentum_rnn import cells
from keras_momentum_rnn.layers.docstrings import called_as_keras, documented
from keras_momentum_rnn.recurrent import RuleLayer

__all__ = ["RuleGRU", "MomentumGRU", "NAGGRU", "SRGRU", "AdamGRU", "RMSPropGRU"]


@called_as_keras
class RuleGRU(RuleLayer):
    """GRU with any momentum rule on its input drive.

    ```
    u_t = x_t W + b                                 what the input brings
    z_g, r_g, h_g = split(rule(u_0, ..., u_t))      the drive
    z_u, r_u, h_u = split(h_{t-1} U + b_r)
    z, r = sigmoid(z_g + z_u), sigmoid(r_g + r_u)
    h_t = z h_{t-1} + (1 - z) tanh(h_g + r h_u)
    ```

    With `reset_after=False` there is no b_r, and r multiplies h before its product with the
    third part of U, as in Keras. With `reset_after=True`, `bias` holds b and b_r.

    Args:
        units: positive integer, the width of h.
        rule: a `keras_momentum_rnn.rules.Rule`. The layer takes a copy of its own.

    {calls}

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import RuleGRU, rules
    >>> layer = RuleGRU(4, rule=rules.NAG(step_size=0.5))
    >>> tuple(layer(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), section 2.4, whose rules it joins to Keras's GRU, a cell
    the paper did not try.
    """

    keras_layer = keras.layers.GRU
    family = "GRU"
    cell_class = cells.RuleGRUCell
    needs_rule = True


@documented
class MomentumGRU(RuleGRU):
    """GRU whose input drive is a heavy-ball velocity."""

    cell_class = cells.MomentumGRUCell


@documented
class NAGGRU(RuleGRU):
    """GRU whose input drive follows Nesterov's momentum schedule."""

    cell_class = cells.NAGGRUCell


@documented
class SRGRU(RuleGRU):
    """GRU whose input drive follows Nesterov's schedule with restarts."""

    cell_class = cells.SRGRUCell


@documented
class AdamGRU(RuleGRU):
    """GRU whose input drive is accelerated as by Adam."""

    cell_class = cells.AdamGRUCell


@documented
class RMSPropGRU(RuleGRU):
    """GRU whose input drive is scaled as by RMSProp."""

    cell_class = cells.RMSPropGRUCell
