"""Pairs of layers alike, of which one takes a path and one steps, and their comparison."""

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
    """A `pair` of a layer, of "SRLSTM-released", or of a nested one with a rule: "MCRM-NAG"."""
    name, _, rule = name.partition("-")
    if rule == "released":
        options["formulation"] = rule
    elif rule:
        options["rule"] = getattr(kmr.rules, rule)()
    return pair(getattr(kmr, name), shape, units, **options)


def compare(layers, shape, mask=None, tolerance=1e-5, training=True, slots=True):
    """Compare results and gradients of two layers.

    Args:
        layers: the two, built for the shape.
        shape: `(batch, time, features)`.
        mask: bool array `(batch, time)` or None.
        tolerance: of the results; gradients may be off by ten times as much.
        training: bool, as of the call.
        slots: bool, whether the call starts from states and slots that are not zero.
    """
    batch, length, _ = shape
    rng, layer = np.random.default_rng(1), layers[0]
    x, units, sizes = normal(rng, *shape), layer.units, layer.state_size
    counts = getattr(getattr(layer.cell, "rule", None), "counts", False)
    states = None
    if slots:
        # As a call may leave them: second moments are positive, counters whole.
        states = [np.abs(normal(rng, batch, size)) for size in sizes]
        if counts:
            states[-1] = np.arange(batch, dtype="float32")[:, None] % 5
    outputs = (batch, length, units) if layer.return_sequences else (batch, units)
    cotangents = [normal(rng, *outputs), *(normal(rng, batch, size) for size in sizes)]
    (fast, by_fast), (exact, by_step) = (
        results_and_gradients(each, x, cotangents, states, mask, training=training)
        for each in layers
    )
    for one, other in zip(fast, exact, strict=True):
        assert_close(one, other, tolerance)
    assert by_fast.keys() == by_step.keys()
    for name, expected in by_step.items():
        # Nobody learns a number of steps, and so the paths do not agree on its gradient.
        if not (counts and name == f"state{len(sizes) - 1}"):
            assert_close(by_fast[name], expected, 10 * tolerance)
