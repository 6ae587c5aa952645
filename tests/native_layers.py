"""Pairs of layers alike, of which one takes the native kernel in training and one steps."""

import numpy as np
from harness import assert_close, normal, results_and_gradients, stepping_pair


def pair(layer_class, shape, units=4, **options):
    """Two layers alike, but that the second one steps."""
    options = {"return_sequences": True, "return_state": True, **options}
    # Of many units with large weights every rounding error would grow.
    scale = min(0.4, units**-0.5)
    return stepping_pair(lambda: layer_class(units, **options), shape, scale)


def compare(layers, shape, mask=None, tolerance=1e-5):
    """Compare results and gradients of the two in training, from states that are not zero."""
    batch, length, _ = shape
    rng = np.random.default_rng(1)
    x, units = normal(rng, *shape), layers[0].units
    sizes = layers[0].state_size
    states = [np.abs(normal(rng, batch, s)) for s in sizes]
    counted = None
    if getattr(layers[0].cell.rule, "counts", False):
        counted = f"state{len(sizes) - 1}"
        states[-1] = np.arange(batch, dtype="float32")[:, None] % 5
    cotangents = [normal(rng, batch, length, units), *(normal(rng, batch, s) for s in sizes)]
    call = {"training": True} if mask is None else {"training": True, "mask": mask}
    (fast, by_fast), (exact, by_step) = (
        results_and_gradients(layer, x, cotangents, states, **call) for layer in layers
    )
    for one, other in zip(fast, exact):
        assert_close(one, other, tolerance)
    for name, expected in by_step.items():
        # Nobody learns a number of steps.
        if name != counted:
            assert_close(by_fast[name], expected, 10 * tolerance)
