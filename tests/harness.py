"""Run a layer on the active backend: outputs, states and gradients as NumPy arrays."""

import keras
import numpy as np
from keras import ops

BACKEND = keras.config.backend()


def array(x):
    return ops.convert_to_numpy(x)


def normal(rng, *shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype("float32")


def randomise(layer, rng, scale=0.5):
    """Give every weight random values, so that no two gates are alike."""
    for weight in layer.trainable_weights:
        weight.assign(normal(rng, *weight.shape, scale=scale))


def stepping_pair(make, shape, scale=0.5):
    """Return two layers alike, built for a shape, of which the second one steps.

    Args:
        make: function that makes one of them.
        shape: `(batch, time, features)`.
        scale: of the random weights.
    """
    layers = [make() for _ in range(2)]
    for layer in layers:
        layer.build(shape)
    randomise(layers[0], np.random.default_rng(0), scale=scale)
    layers[1].set_weights(layers[0].get_weights())
    # As the argument of this name, which layers of the Elman kind do not take.
    layers[1].use_cudnn = False
    return layers


def named_weights(layer):
    """Return the trainable weights by name, those of a nested memory as "memory.name"."""
    memory = getattr(layer.cell, "memory", None)
    inner = {id(w) for w in memory.trainable_weights} if memory else set()
    return {
        ("memory." if id(w) in inner else "") + w.name: w for w in layer.cell.trainable_weights
    }


def weights_of(layer):
    """Return the weights by name, as float64, and the base of an orthogonal recurrence."""
    weights = dict(named_weights(layer))
    if hasattr(layer.cell, "base"):
        weights["base"] = layer.cell.base
    return {name: array(w).astype("float64") for name, w in weights.items()}


def run(layer, x, **call):
    """Return all that a layer returns, as a list of arrays."""
    function = layer
    if BACKEND == "tensorflow" and x.shape[1] > 100:
        import tensorflow as tf

        function = tf.function(layer)
    results = function(x, **call)
    results = results if isinstance(results, (list, tuple)) else [results]
    return [array(ops.cast(r, "float32")) for r in results]


def gradients(layer, x, cotangents, initial_state=None, **call):
    """Return the gradients alone, as `results_and_gradients`."""
    return results_and_gradients(layer, x, cotangents, initial_state, **call)[1]


def results_and_gradients(layer, x, cotangents, initial_state=None, **call):
    """Return a layer's results and the gradients of sum(result * cotangent).

    Args:
        layer: a built layer.
        x: array.
        cotangents: one array for each result of the layer.
        initial_state: list of arrays or None.

    Returns:
        The results, a list of arrays, and a dict from "x", "state0", "state1", ... and the
        names of weights to arrays.
    """
    states = list(initial_state or [])
    names = {id(w): name for name, w in named_weights(layer).items()}
    weights = layer.trainable_variables

    def loss(x, states, run_layer):
        kwargs = {**call, "initial_state": list(states)} if states else call
        results = run_layer(x, **kwargs)
        results = results if isinstance(results, (list, tuple)) else [results]
        results = [ops.cast(r, "float32") for r in results]
        pairs = zip(results, cotangents)
        return sum(ops.sum(r * ops.convert_to_tensor(c)) for r, c in pairs), results

    results, by_x, by_states, by_weights = _BACKENDS[BACKEND](layer, loss, x, states, weights)
    named = {f"state{i}": g for i, g in enumerate(by_states)}
    named |= {names[id(w)]: g for w, g in zip(weights, by_weights)}
    named = {name: array(g) for name, g in {"x": by_x, **named}.items() if g is not None}
    return [array(r) for r in results], named


def _tensorflow(layer, loss, x, states, weights):
    import tensorflow as tf

    x, states = tf.constant(x), [tf.constant(s) for s in states]
    values = [w.value for w in weights]

    def function(x, states):
        with tf.GradientTape() as tape:
            tape.watch([x, *states])
            value, results = loss(x, states, layer)
        return results, *tape.gradient(value, [x, states, values])

    # A graph costs a trace, and pays on a long loop.
    return (tf.function(function) if x.shape[1] > 100 else function)(x, states)


def _jax(layer, loss, x, states, weights):
    import jax

    rest = [v.value for v in layer.non_trainable_variables]

    def function(x, states, values):
        def run_layer(x, **kwargs):
            return layer.stateless_call(values, rest, x, **kwargs)[0]

        return loss(x, states, run_layer)

    values = [w.value for w in weights]
    # One program compiles sooner than the many operations that it is made of.
    function = jax.jit(jax.grad(function, argnums=(0, 1, 2), has_aux=True))
    by_all, results = function(ops.convert_to_tensor(x), states, values)
    return results, *by_all


def _torch(layer, loss, x, states, weights):
    import torch

    x = torch.tensor(x, requires_grad=True)
    states = [torch.tensor(s, requires_grad=True) for s in states]
    for weight in weights:
        weight.value.grad = None
    value, results = loss(x, states, layer)
    value.backward()
    return results, x.grad, [s.grad for s in states], [w.value.grad for w in weights]


_BACKENDS = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}


def assert_close(actual, expected, tolerance=2e-5):
    """Compare with a tolerance relative to the size of the whole array."""
    expected = np.asarray(expected, dtype="float64")
    actual = np.asarray(actual, dtype="float64")
    assert actual.shape == expected.shape
    assert np.all(np.isfinite(actual))
    size = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    error = float(np.max(np.abs(actual - expected), initial=0.0)) / size
    assert error < tolerance, f"relative error {error:.2e}"
