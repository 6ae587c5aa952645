"""Pairs of layers alike, of which one takes the native kernel in training and one steps."""

import numpy as np
from harness import assert_close, normal, results_and_gradients, stepping_pair

import keras_momentum_rnn as kmr


def pair(layer_class, shape, units=4, **options):
    """Two layers alike, but that the second one steps."""
    options = {"return_sequences": True, "return_state": True, **options}
    # Of many units with large weights every rounding error would grow.
    scale = min(0.4, units**-0.5)
    return stepping_pair(lambda: layer_class(units, **options), shape, scale)


def pair_of(name, shape, units=4, **options):
    """A `pair` of a layer, or of a nested one with a rule: "MCRM-NAG"."""
    name, _, rule = name.partition("-")
    if rule:
        options["rule"] = getattr(kmr.rules, rule)()
    return pair(getattr(kmr, name), shape, units, **options)


def compare(layers, shape, mask=None, tolerance=1e-5, training=True):
    """Compare results and gradients of the two, from states that are not zero."""
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
    call = {"training": training} if mask is None else {"training": training, "mask": mask}
    (fast, by_fast), (exact, by_step) = (
        results_and_gradients(layer, x, cotangents, states, **call) for layer in layers
    )
    for one, other in zip(fast, exact):
        assert_close(one, other, tolerance)
    for name, expected in by_step.items():
        # Nobody learns a number of steps.
        if name != counted:
            assert_close(by_fast[name], expected, 10 * tolerance)
