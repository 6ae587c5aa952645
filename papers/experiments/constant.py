"""What an output that ignores the inputs scores: the least that learning must beat.

The chance that a task states is that of its distribution. Held-out targets are a sample, whose
variance differs from it: by 7 % in a thousand sequences of adding.
"""

import keras
import numpy as np

# For a class without a target: 0 times the infinite logarithm of 0 would be NaN.
LEAST = 1e-12


def constant_scores(task, batch_size):
    """Return loss and scores on test of the constant output whose loss there is least, a dict.

    It is one output for all samples; for each step its own where all samples have the same
    steps. Of a task with another loss than the mean squared error or the cross-entropy of
    integers and logits, return the chance that it states.

    Args:
        task: `papers.tasks.Task`.
        batch_size: int, of the evaluation.
    """
    symbols = isinstance(task.loss, keras.losses.SparseCategoricalCrossentropy)
    if not isinstance(task.loss, keras.losses.MeanSquaredError) and not (
        symbols and task.loss.get_config()["from_logits"]
    ):
        return dict(task.chance)
    best = mean_target(task, symbols)
    if symbols:
        best = np.log(np.maximum(best, LEAST))
    inputs = keras.Input(task.input_shape)
    model = keras.Model(inputs, Constant(best)(inputs))
    task.compile(model, "sgd")
    scores = task.evaluate(model, "test", batch_size)
    return {name: float(value) for name, value in scores.items()}


def mean_target(task, symbols):
    """Return the mean of the test targets, of symbols the share of each.

    Returns:
        Array (outputs,), or of sequences (steps, outputs), (1, outputs) for all steps alike.
    """
    if task.stateful:
        counts = np.bincount(task.test.tokens[1:])
        return counts[None] / counts.sum()
    y, weight = task.test.y, task.test.sample_weight
    if symbols:
        y = np.eye(y.max() + 1, dtype="float32")[y]
    if weight is None:
        return y.mean(axis=0, dtype="float64")
    # A weight for each step: samples have different lengths, and a step is not one in all.
    mean = np.tensordot(weight, y, weight.ndim) / weight.sum()
    return np.atleast_2d(mean) if task.return_sequences else mean


class Constant(keras.layers.Layer):
    """Return the same output for every input.

    Args:
        values: array (outputs,), or (steps, outputs) or (1, outputs) of sequences.
    """

    def __init__(self, values):
        super().__init__()
        self.values = values.astype(self.compute_dtype)

    def call(self, x):
        zero = keras.ops.zeros_like(x, dtype=self.compute_dtype)
        while len(zero.shape) > self.values.ndim:
            zero = keras.ops.sum(zero, axis=-1)
        return zero[..., None] + self.values
