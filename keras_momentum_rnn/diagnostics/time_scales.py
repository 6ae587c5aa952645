"""The momenta and step sizes that a layer has learned."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.checks import checked_count
from keras_momentum_rnn.diagnostics.single_cell import recurrent
from keras_momentum_rnn.rules import LearnedMomentum


def time_scales(layer: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Return what a layer with the rule `rules.LearnedMomentum` has learned.

    Args:
        layer: a built recurrent layer of ours.

    Returns:
        dict of three arrays `(gates, units)` in float32, `(gates, 1)` where the units of a gate
        share a number, `(1, 1)` where all do: "momentum", "step_size", and "time_scale", over
        how many steps a momentum remembers: 1 / (1 - momentum).

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
    found = {"momentum": mu, "step_size": s, "time_scale": 1 / rest}
    return {name: ops.convert_to_numpy(n).reshape(shape) for name, n in found.items()}


class TimeScales(keras.callbacks.Callback):
    """Record the `time_scales` of a layer during training, for `plot_time_scales`.

    `found` is a dict from "start", "epoch 10", ... to what `time_scales` returned then.

    Args:
        layer: a layer of the model, whose rule is `rules.LearnedMomentum`.
        every: positive integer, the epochs between two records. Defaults to 1.

    Example:

    ```python
    noted = TimeScales(model.layers[0], every=10)
    model.fit(x, y, epochs=50, callbacks=[noted])
    plot_time_scales(noted.found).savefig("time_scales.png")
    ```
    """

    def __init__(self, layer: keras.layers.Layer, every: int = 1) -> None:
        super().__init__()
        self.layer, self.every = layer, checked_count("every", every)
        self.found = {}

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.found.setdefault("start", time_scales(self.layer))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if (epoch + 1) % self.every == 0:
            self.found[f"epoch {epoch + 1}"] = time_scales(self.layer)


def finding(scales):
    """Return the median time scale of the first and the last, in words."""
    medians = [(label, np.median(maps["time_scale"])) for label, maps in scales.items()]
    (first, start), (last, end) = medians[0], medians[-1]
    if len(medians) == 1:
        return f"{first}: half of the momenta remember {start:.2g} steps or more"
    return f"Median time scale: {start:.2g} steps ({first}), {end:.2g} ({last})"
