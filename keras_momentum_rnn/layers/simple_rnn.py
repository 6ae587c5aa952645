"""The Elman family."""

import keras

from keras_momentum_rnn import cells
from keras_momentum_rnn.recurrent import RuleLayer
from keras_momentum_rnn.rules import register

__all__ = [
    "RuleRNN",
    "MomentumRNN",
    "NAGRNN",
    "SRRNN",
    "AdamRNN",
    "RMSPropRNN",
]


@register
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
        parameterization: `"input"` or `"hidden"`. Defaults to `"input"`.

    Every other argument is that of `keras.layers.SimpleRNN`, with its meaning, position
    and default.

    Call arguments:
        sequences: tensor `(batch, time, features)`.
        initial_state: h `(batch, units)`, alone or in a list, or the list of all states,
            h and then the rule's slots. Slots that you leave out start at zero.
        mask: bool tensor `(batch, time)`. Where it is `False`, every state is held.
        training: bool, whether dropout acts.

    Returns:
        As `keras.layers.SimpleRNN`: h at the last step `(batch, units)`, or at every step
        with `return_sequences`; then, with `return_state`, h and the rule's slots, these in
        float32 (in float64 under that policy).

    Raises:
        ValueError: if an argument is out of its range. The message has the range and the value.

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


@register
class MomentumRNN(RuleRNN):
    """Elman layer whose input drive is a heavy-ball velocity.

    ```
    v_t = momentum v_{t-1} + step_size (x_t W + b)
    ```

    v takes the place of `x_t W + b` in `RuleRNN`. States: [h, v],
    v `(batch, units)`.

    Args:
        units: positive integer.
        momentum: float, at least 0; a warning from 1 on. Defaults to 0.6.
        step_size: float above 0. Defaults to 0.6.
        parameterization: `"input"` or `"hidden"`, see `RuleRNN`. Defaults to `"input"`.

    Every other argument is that of `keras.layers.SimpleRNN`; call arguments, shapes
    and errors are those of `RuleRNN`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import MomentumRNN
    >>> tuple(MomentumRNN(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), equation 9.
    """

    cell_class = cells.MomentumRNNCell


@register
class NAGRNN(RuleRNN):
    """Elman layer whose input drive follows Nesterov's momentum schedule.

    ```
    mu_t = t / (t + 3),  t = 0, 1, ...
    v_t = mu_t v_{t-1} + step_size (x_t W + b)
    ```

    v takes the place of `x_t W + b` in `RuleRNN`. States: [h, v, t],
    v `(batch, units)`, t `(batch, 1)`.

    Args:
        units: positive integer.
        step_size: float above 0. Defaults to 0.9.
        parameterization: `"input"` or `"hidden"`, see `RuleRNN`. Defaults to `"input"`.

    Every other argument is that of `keras.layers.SimpleRNN`; call arguments, shapes
    and errors are those of `RuleRNN`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import NAGRNN
    >>> tuple(NAGRNN(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), section 2.4.
    """

    cell_class = cells.NAGRNNCell


@register
class SRRNN(RuleRNN):
    """Elman layer whose input drive follows Nesterov's schedule with restarts.

    ```
    mu_t = (t mod F) / ((t mod F) + 3),  t = 0, 1, ...
    v_t = mu_t v_{t-1} + step_size (x_t W + b)
    ```

    v takes the place of `x_t W + b` in `RuleRNN`. States: [h, v, t],
    v `(batch, units)`, t `(batch, 1)`.

    Args:
        units: positive integer.
        restart_period: positive integer F. Defaults to 40.
        step_size: float above 0. Defaults to 0.9.
        parameterization: `"input"` or `"hidden"`, see `RuleRNN`. Defaults to `"input"`.

    Every other argument is that of `keras.layers.SimpleRNN`; call arguments, shapes
    and errors are those of `RuleRNN`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import SRRNN
    >>> tuple(SRRNN(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), section 2.4.
    """

    cell_class = cells.SRRNNCell


@register
class AdamRNN(RuleRNN):
    """Elman layer whose input drive is accelerated as by Adam.

    ```
    u_t = x_t W + b
    v_t = momentum v_{t-1} + step_size u_t
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = v_t / sqrt(m_t + epsilon)
    ```

    g takes the place of `x_t W + b` in `RuleRNN`. States: [h, v, m],
    v `(batch, units)`, m `(batch, units)`.

    Args:
        units: positive integer.
        momentum: float, at least 0; a warning from 1 on. Defaults to 0.6.
        step_size: float above 0. Defaults to 0.6.
        beta: float in [0, 1). Defaults to 0.99.
        epsilon: float above 0, inside the root. Defaults to 1e-8.
        relaxed: bool; `False` for the paper's equation 14, see `rules.Adam`. Defaults to
            `True`.
        parameterization: `"input"` or `"hidden"`, see `RuleRNN`. Defaults to `"input"`.

    Every other argument is that of `keras.layers.SimpleRNN`; call arguments, shapes
    and errors are those of `RuleRNN`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import AdamRNN
    >>> tuple(AdamRNN(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), equation 15.
    """

    cell_class = cells.AdamRNNCell


@register
class RMSPropRNN(RuleRNN):
    """Elman layer whose input drive is scaled as by RMSProp.

    ```
    u_t = x_t W + b
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = step_size u_t / sqrt(m_t + epsilon)
    ```

    g takes the place of `x_t W + b` in `RuleRNN`. States: [h, m],
    m `(batch, units)`.

    Args:
        units: positive integer.
        step_size: float above 0. Defaults to 0.6.
        beta: float in [0, 1). Defaults to 0.9.
        epsilon: float above 0, inside the root. Defaults to 1e-8.
        parameterization: `"input"` or `"hidden"`, see `RuleRNN`. Defaults to `"input"`.

    Every other argument is that of `keras.layers.SimpleRNN`; call arguments, shapes
    and errors are those of `RuleRNN`.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import RMSPropRNN
    >>> tuple(RMSPropRNN(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference: Nguyen et al. (2020), after equation 15.
    """

    cell_class = cells.RMSPropRNNCell
