"""Run a layer on the active backend: outputs, states and gradients as NumPy arrays."""

import contextlib
import random
import socket
from unittest import mock

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.paths.devices import current_device

BACKEND = keras.config.backend()


def free_port():
    """Return a free port as text, of those that the system gives to nobody by itself."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return str(port)


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


def results_and_gradients(layer, x, cotangents, initial_state=None, mask=None, **call):
    """Return a layer's results and the gradients of sum(result * cotangent).

    Args:
        layer: a built layer.
        x: array.
        cotangents: one array for each result of the layer.
        initial_state: list of arrays or None.
        mask: bool array or None.

    Returns:
        The results, a list of arrays, and a dict from "x", "state0", "state1", ... and the
        names of weights to arrays.
    """
    # On TensorFlow a graph costs a trace, and pays on a long loop. On JAX one program compiles
    # sooner than the many operations that it is made of.
    compiled = {"jax": True, "tensorflow": x.shape[1] > 100, "torch": False}[BACKEND]
    return derivative(layer, compiled, **call)(x, cotangents, initial_state, mask)


def derivative(layer, compiled, calls=1, **call):
    """Return `results_and_gradients` of a layer as a function (x, cotangents, states, mask).

    Args:
        layer: a built layer.
        compiled: bool, whether the first call makes one program of it.
        calls: int, how often the layer is called, the second time with half of x. The results
            are those of the first call, the gradients those of the sum over all calls.
        **call: what the layer is called with, beside the initial states and the mask.
    """
    names = {id(w): name for name, w in named_weights(layer).items()}
    weights = layer.trainable_variables

    def loss(run_layer, x, cotangents, states, mask):
        given = call if mask is None else {**call, "mask": mask}
        given = {**given, "initial_state": list(states)} if states else given
        dtype = keras.backend.standardize_dtype(cotangents[0].dtype)
        results = []
        for i in range(calls):
            found = run_layer(x / (i + 1), **given)
            found = found if isinstance(found, (list, tuple)) else [found]
            results.append([ops.cast(r, dtype) for r in found])
        terms = [ops.sum(r * c) for found in results for r, c in zip(found, cotangents)]
        return sum(terms), results[0]

    differentiated = _BACKENDS[BACKEND](layer, loss, weights, compiled)

    def results_and_gradients(x, cotangents, states=None, mask=None):
        # Tensors, since a program is made anew for another value of anything else.
        x, *cotangents = map(ops.convert_to_tensor, [x, *cotangents])
        states = list(map(ops.convert_to_tensor, states or []))
        mask = None if mask is None else ops.convert_to_tensor(mask)
        results, by_x, by_states, by_weights = differentiated(x, cotangents, states, mask)
        named = {"x": by_x, **{f"state{i}": g for i, g in enumerate(by_states)}}
        named |= {names[id(w)]: g for w, g in zip(weights, by_weights)}
        named = {name: array(g) for name, g in named.items() if g is not None}
        return [array(r) for r in results], named

    return results_and_gradients


def _tensorflow(layer, loss, weights, compiled):
    import tensorflow as tf

    def function(x, cotangents, states, mask):
        values = [w.value for w in weights]
        with tf.GradientTape() as tape:
            tape.watch([x, *states])
            value, results = loss(layer, x, cotangents, states, mask)
        return results, *tape.gradient(value, [x, states, values])

    return tf.function(function) if compiled else function


def _jax(layer, loss, weights, compiled):
    import jax

    def function(x, states, values, rest, cotangents, mask):
        def run_layer(x, **given):
            return layer.stateless_call(values, rest, x, **given)[0]

        return loss(run_layer, x, cotangents, states, mask)

    function = jax.grad(function, argnums=(0, 1, 2), has_aux=True)
    function = jax.jit(function) if compiled else function

    def differentiated(x, cotangents, states, mask):
        values = [w.value for w in weights]
        rest = [v.value for v in layer.non_trainable_variables]
        by_all, results = function(x, states, values, rest, cotangents, mask)
        return results, *by_all

    return differentiated


def _torch(layer, loss, weights, compiled):
    import torch

    run_layer = torch.compile(layer, backend="eager") if compiled else layer

    def differentiated(x, cotangents, states, mask):
        x, *states = (a.clone().requires_grad_() for a in (x, *states))
        for weight in weights:
            weight.value.grad = None
        value, results = loss(run_layer, x, cotangents, states, mask)
        value.backward()
        return results, x.grad, [s.grad for s in states], [w.value.grad for w in weights]

    return differentiated


_BACKENDS = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}


def lstm_of_jax(x, h, c, weights, lengths, input_size, hidden_size, num_layers, **_):
    """As `jax.experimental.rnn.lstm`, cuDNN's, which only a GPU has."""
    from jax.experimental import rnn

    sizes = input_size, hidden_size, num_layers
    matrices = rnn.unpack_lstm_weights(weights, *sizes, bidirectional=False)
    return rnn.lstm_ref(x, h, c, *matrices, lengths, *sizes, dropout=0.0, bidirectional=False)


def cudnn_of_jax():
    """Return a context in which JAX has cuDNN's LSTM, or without a GPU its reference."""
    if BACKEND != "jax" or current_device() == "gpu":
        return contextlib.nullcontext()
    return mock.patch("jax.experimental.rnn.lstm", lstm_of_jax)


def assert_close(actual, expected, tolerance=2e-5):
    """Compare with a tolerance relative to the size of the whole array."""
    expected = np.asarray(expected, dtype="float64")
    actual = np.asarray(actual, dtype="float64")
    assert actual.shape == expected.shape
    assert np.all(np.isfinite(actual))
    size = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    error = float(np.max(np.abs(actual - expected), initial=0.0)) / size
    assert error < tolerance, f"relative error {error:.2e}"
