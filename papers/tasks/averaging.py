"""Averaged SGD, begun when validation no longer improves."""

from typing import Any

import keras
from keras import ops

from keras_momentum_rnn.checks import checked_count


class AveragedSGD(keras.callbacks.Callback):
    """Average the weights over updates once validation has not improved for some epochs.

    ```
    begin after epoch e   if v_e > min(v_0, ..., v_{e - 1 - patience})
    a_k = a_{k-1} + (w_k - a_{k-1}) / k,   k = 1, 2, ... updates since then
    ```

    v_e is the validation score after epoch e, w_k the trained weights. Every evaluation, in
    `fit` or with this callback, sees a in place of w; training continues from w. `apply` ends
    with a. Merity et al. (2018) train like this with plain SGD, and the paper's language models
    follow them.

    Args:
        monitor: name of a validation score that falls, as in the logs of `fit`.
        patience: positive integer. Defaults to 5.

    Attributes:
        values: list of floats, v_e.
        updates: int k, or None before averaging has begun.
        averages: list of arrays, a, in the order of the model's trainable weights.

    Example:

    >>> from papers.tasks import AveragedSGD
    >>> averaging = AveragedSGD("val_perplexity")
    >>> averaging.updates is None
    True
    """

    def __init__(self, monitor: str = "val_perplexity", patience: int = 5) -> None:
        super().__init__()
        self.monitor = monitor
        self.patience = checked_count("patience", patience)
        self.values = []
        self.updates = None
        self.averages = []

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if self.updates is None:
            return
        self.updates += 1
        weights = [ops.stop_gradient(ops.convert_to_tensor(w)) for w in self.weights()]
        if self.updates == 1:
            self.averages = [ops.copy(w) for w in weights]
        else:
            self.averages = [a + (w - a) / self.updates for a, w in zip(self.averages, weights)]

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.monitor not in logs:
            raise ValueError(
                f"`monitor` must be in the logs of `fit`, {sorted(logs)}: give it "
                f"`validation_data`. Received: monitor={self.monitor!r}"
            )
        value, before = float(logs[self.monitor]), self.values[: -self.patience]
        self.values.append(value)
        if self.updates is None and before and value > min(before):
            self.updates = 0

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        if self.updates:
            self.trained = [ops.copy(ops.convert_to_tensor(w)) for w in self.weights()]
            self.apply()

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        if self.updates:
            for weight, trained in zip(self.weights(), self.trained):
                weight.assign(trained)

    def weights(self) -> list[keras.Variable]:
        """Return the model's trainable weights."""
        return self.model.trainable_variables

    def apply(self) -> None:
        """Put the averages into the model, if averaging has begun."""
        for weight, average in zip(self.weights(), self.averages):
            # JAX gives the memory of what a weight holds to the next update.
            weight.assign(ops.copy(average))

    def state(self) -> dict[str, Any]:
        """Return what a run needs to resume here: a dict of NumPy arrays and numbers."""
        averages = [ops.convert_to_numpy(a) for a in self.averages]
        return {"values": list(self.values), "updates": self.updates, "averages": averages}

    def set_state(self, state: Any) -> None:
        """Go on from what `state` returned."""
        self.values, self.updates = list(state["values"]), state["updates"]
        self.averages = [ops.convert_to_tensor(a) for a in state["averages"]]
