"""Layers whose memory is itself a recurrent cell."""

import keras

from keras_momentum_rnn import cells
from keras_momentum_rnn.recurrent import RuleLayer
from keras_momentum_rnn.rules import register

__all__ = ["MCRM", "NestedLSTM"]


@register
class MCRM(RuleLayer):
    """Mother compact recurrent memory: an LSTM whose memory c is the state of a GRU.

    ```
    i, f, c~, o = split(x_t W + b + h_{t-1} U)
    c_t = GRU([sigmoid(f) c_{t-1}, sigmoid(i) tanh(c~)], c_{t-1})
    h_t = sigmoid(o) tanh(c_t)
    ```

    Args:
        units: positive integer, the width of h and c.
        memory: any Keras cell of as many units, whose input is `2 units` wide and whose
            first state is c. The layer takes a copy of its own. Defaults to
            `keras.layers.GRUCell(units)`, with `reset_after=True`. In half precision all its
            states are rounded, the slots of a rule too.
        rule: a `keras_momentum_rnn.rules.Rule` for `x_t W + b`, which no paper has tried.
            Defaults to none.
        use_recurrent_bias: bool, whether a second bias stands beside h U. Defaults to
            `False`.

    Every other argument is that of `keras.layers.LSTM`, for the shell: the initializers
    and the dropout of the memory are the memory's own.

    Call arguments: those of `RuleLSTM`. States: [h, c, the memory's other states, the
    rule's slots]; `initial_state` holds all but the slots, or all.

    A call returns what `RuleLSTM` returns.

    Raises:
        ValueError: if an argument is out of its range, or the memory is no cell of `units`.

    Weights: `cell.kernel`, `cell.recurrent_kernel`, `cell.bias`, and those of
    `cell.memory`, a Keras cell.

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import MCRM, rules
    >>> layer = MCRM(4, rule=rules.HeavyBall(momentum=0.3))
    >>> tuple(layer(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference:
        Mohamed and Claudel (2018), "MCRM: Mother Compact Recurrent Memory", equations 3 to
        5. The paper writes h = (1 - z) h + z n; its code, Keras and this layer have z and
        1 - z the other way round, the same model with z renamed. Its third state is a copy
        of c.
    """

    keras_layer = keras.layers.LSTM
    family = "nested"
    cell_class = cells.MCRMCell


@register
class NestedLSTM(RuleLayer):
    """Nested LSTM: an LSTM whose memory c is the hidden state of another LSTM.

    ```
    i, f, c~, o = split(x_t W + b + h_{t-1} U)
    c_t, inner_t = LSTM([sigmoid(f) c_{t-1}, sigmoid(i) tanh(c~)], c_{t-1}, inner_{t-1})
    h_t = sigmoid(o) tanh(c_t)
    ```

    Args:
        units: positive integer, the width of h, c and the inner cell state.
        memory: any Keras cell of as many units. Defaults to `keras.layers.LSTMCell(units)`.
        rule: a `keras_momentum_rnn.rules.Rule` for `x_t W + b`. Defaults to none.
        use_recurrent_bias: bool. Defaults to `False`.

    Every other argument is that of `keras.layers.LSTM`, for the shell. Call arguments,
    shapes, weights and errors are those of `MCRM`. States: [h, c, inner c, the rule's
    slots].

    Example:

    >>> import numpy as np
    >>> from keras_momentum_rnn import NestedLSTM
    >>> tuple(NestedLSTM(4)(np.zeros((2, 10, 3), "float32")).shape)
    (2, 4)

    Reference:
        Moniz and Krueger (2017), "Nested LSTMs", in the form of the code released with
        Mohamed and Claudel (2018), where the memory's state is the outer c.
    """

    keras_layer = keras.layers.LSTM
    family = "nested"
    cell_class = cells.NestedLSTMCell
