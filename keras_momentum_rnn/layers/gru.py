"""The GRU family."""

import keras

from keras_momentum_rnn import cells
from keras_momentum_rnn.recurrent import RuleLayer
from keras_momentum_rnn.rules import register

__all__ = [
    "RuleGRU",
    "MomentumGRU",
    "NAGGRU",
    "SRGRU",
    "AdamGRU",
    "RMSPropGRU",
]


@register
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

    Every other argument is that of `keras.layers.GRU`, with its meaning, position and
    default. `use_cudnn=True` raises a `ValueError` where no fused kernel can run the call.

    Call arguments:
        sequences: tensor `(batch, time, features)`.
        initial_state: h `(batch, units)`, alone or in a list, or the list of all states,
            h and then the rule's slots. Slots that you leave out start at zero.
        mask: bool tensor `(batch, time)`. Where it is `False`, every state is held.
        training: bool, whether dropout acts.

    Returns:
        As `keras.layers.GRU`: h at the last step `(batch, units)`, or at every step with
        `return_sequences`; then, with `return_state`, h and the rule's slots, these in
        float32 (in float64 under that policy).

    Raises:
        ValueError: if an argument is out of its range. The message has the range and the value.

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


@register
class MomentumGRU(RuleGRU):
    """GRU whose input drive is a heavy-ball velocity.

    ```
    v_t = momentum v_{t-1} + step_size (x_t W + b)
    ```

    v takes the place of `x_t W + b` in `RuleGRU`. States: [h, v],
    v `(batch, 3 units)`.

    Args:
        units: positive integer.
        momentum: float, at least 0; a warning from 1 on. Defaults to 0.6.
        step_size: float above 0. Defaults to 0.6.

    Every other argument is that of `keras.layers.GRU`; call arguments, shapes
    and errors are those of `RuleGRU`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import MomentumGRU
    >>> tuple(MomentumGRU(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), equation 9.
    """

    cell_class = cells.MomentumGRUCell


@register
class NAGGRU(RuleGRU):
    """GRU whose input drive follows Nesterov's momentum schedule.

    ```
    mu_t = t / (t + 3),  t = 0, 1, ...
    v_t = mu_t v_{t-1} + step_size (x_t W + b)
    ```

    v takes the place of `x_t W + b` in `RuleGRU`. States: [h, v, t],
    v `(batch, 3 units)`, t `(batch, 1)`.

    Args:
        units: positive integer.
        step_size: float above 0. Defaults to 0.9.

    Every other argument is that of `keras.layers.GRU`; call arguments, shapes
    and errors are those of `RuleGRU`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import NAGGRU
    >>> tuple(NAGGRU(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), section 2.4.
    """

    cell_class = cells.NAGGRUCell


@register
class SRGRU(RuleGRU):
    """GRU whose input drive follows Nesterov's schedule with restarts.

    ```
    mu_t = (t mod F) / ((t mod F) + 3),  t = 0, 1, ...
    v_t = mu_t v_{t-1} + step_size (x_t W + b)
    ```

    v takes the place of `x_t W + b` in `RuleGRU`. States: [h, v, t],
    v `(batch, 3 units)`, t `(batch, 1)`.

    Args:
        units: positive integer.
        restart_period: positive integer F. Defaults to 40.
        step_size: float above 0. Defaults to 0.9.

    Every other argument is that of `keras.layers.GRU`; call arguments, shapes
    and errors are those of `RuleGRU`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import SRGRU
    >>> tuple(SRGRU(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), section 2.4.
    """

    cell_class = cells.SRGRUCell


@register
class AdamGRU(RuleGRU):
    """GRU whose input drive is accelerated as by Adam.

    ```
    u_t = x_t W + b
    v_t = momentum v_{t-1} + step_size u_t
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = v_t / sqrt(m_t + epsilon)
    ```

    g takes the place of `x_t W + b` in `RuleGRU`. States: [h, v, m],
    v `(batch, 3 units)`, m `(batch, 3 units)`.

    Args:
        units: positive integer.
        momentum: float, at least 0; a warning from 1 on. Defaults to 0.6.
        step_size: float above 0. Defaults to 0.6.
        beta: float in [0, 1). Defaults to 0.99.
        epsilon: float above 0, inside the root. Defaults to 1e-8.
        relaxed: bool; `False` for the paper's equation 14, see `rules.Adam`. Defaults to
            `True`.

    Every other argument is that of `keras.layers.GRU`; call arguments, shapes
    and errors are those of `RuleGRU`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import AdamGRU
    >>> tuple(AdamGRU(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), equation 15.
    """

    cell_class = cells.AdamGRUCell


@register
class RMSPropGRU(RuleGRU):
    """GRU whose input drive is scaled as by RMSProp.

    ```
    u_t = x_t W + b
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = step_size u_t / sqrt(m_t + epsilon)
    ```

    g takes the place of `x_t W + b` in `RuleGRU`. States: [h, m],
    m `(batch, 3 units)`.

    Args:
        units: positive integer.
        step_size: float above 0. Defaults to 0.6.
        beta: float in [0, 1). Defaults to 0.9.
        epsilon: float above 0, inside the root. Defaults to 1e-8.

    Every other argument is that of `keras.layers.GRU`; call arguments, shapes
    and errors are those of `RuleGRU`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import RMSPropGRU
    >>> tuple(RMSPropGRU(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), after equation 15.
    """

    cell_class = cells.RMSPropGRUCell
