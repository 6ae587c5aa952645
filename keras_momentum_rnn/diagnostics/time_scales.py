"""The momenta and step sizes that a layer has learned."""

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.diagnostics.single_cell import recurrent
from keras_momentum_rnn.rules import LearnedMomentum


def time_scales(layer: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Return what a layer with the rule `rules.LearnedMomentum` has learned.

    Args:
        layer: a built recurrent layer of ours.

    Returns:
        dict of three arrays `(gates, units)` in the dtype of the slots, `(gates, 1)` where the
        units of a gate share a number, `(1, 1)` where all do: "momentum", "step_size", and
        "time_scale", over how many steps a momentum remembers: 1 / (1 - momentum).

    Raises:
        ValueError: if the layer is not recurrent, is not built, or has another rule.

    Example:

    >>> from keras_momentum_rnn import RuleGRU, rules
    >>> from keras_momentum_rnn.diagnostics import time_scales
    >>> layer = RuleGRU(8, rule=rules.LearnedMomentum(0.75, per="gate"))
    >>> layer.build((None, None, 3))
    >>> time_scales(layer)["time_scale"].round(3).tolist()
    [[4.0], [4.0], [4.0]]
    """
    cell = recurrent(layer).cell
    rule = getattr(cell, "rule", None)
    if not isinstance(rule, LearnedMomentum):
        raise ValueError(
            "`layer` must have the rule `rules.LearnedMomentum`, which has learned time "
            f"scales. Received: layer={layer!r} with rule={rule!r}"
        )
    shape = {"scalar": (1, 1), "gate": (cell.gates, 1), "unit": (cell.gates, -1)}[rule.per]
    mu, s, rest = rule.learned_numbers()
    numbers = {"momentum": mu, "step_size": s, "time_scale": 1 / rest}
    return {name: ops.convert_to_numpy(n).reshape(shape) for name, n in numbers.items()}
