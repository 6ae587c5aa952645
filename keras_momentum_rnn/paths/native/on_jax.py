"""The native kernel as an operation of JAX."""

import ctypes
import functools

import jax
import jax.numpy as jnp
import numpy as np

from keras_momentum_rnn.paths.native import kernel, xla_ffi

KINDS = tuple(kernel.KINDS)


def run_lstm(problem, x, weights, states):
    """Return h at all times and the final states, for `run.run_native`."""
    W, b, U, side = weights
    nothing = jnp.zeros(W.shape[-1], jnp.float32)
    has_bias, has_side = b is not None, side is not None

    def run_steps(W, b, U, side, x, *states):
        return problem.run_steps(
            x, W, b if has_bias else None, U, side if has_side else None, *states
        )

    lengths = problem.lengths
    if lengths is None:
        lengths = jnp.full(x.shape[0], x.shape[1], jnp.int32)
    rule = problem.rule
    numbers = jnp.array(
        [KINDS.index(rule.kind), rule.gain, rule.factor, rule.beta, rule.epsilon], jnp.float32
    )
    constants = problem.mu, numbers, lengths
    inputs = W, nothing if b is None else b, U, nothing if side is None else side, x, *states
    (outputs, finals), _ = native_lstm(rule, run_steps, constants, inputs)
    return outputs, list(finals)


# (W, b, U, side bias, x, states) -> ((h at all times, final states), `Kept` as a list).
# What a rule of differentiation runs may be differentiated again: it calls the function itself.


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def native_lstm(rule, run_steps, constants, inputs):
    W, _, U, _, x, *states = inputs
    batch, time, _ = x.shape
    shapes = [*kernel.result_shapes(batch, time, U.shape[0], rule), *(s.shape for s in states)]
    outputs, *rest = call("forward", forward_on_arrays, shapes, *constants, *inputs)
    return (outputs, tuple(rest[4:])), rest[:4]


def native_lstm_forward(rule, run_steps, constants, inputs):
    results, kept = native_lstm(rule, run_steps, constants, inputs)
    return (results, kept), (constants, inputs, results[0], kept)


def native_lstm_backward(rule, run_steps, residuals, cotangents):
    # What is kept is a function of the inputs, which `native_gradients` accounts for.
    d_results, _ = cotangents
    return None, native_gradients(rule, run_steps, residuals, d_results)


native_lstm.defvjp(native_lstm_forward, native_lstm_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def native_gradients(rule, run_steps, residuals, d_results):
    """Return the gradients of the inputs; their own are those of the cell's own steps."""
    constants, inputs, outputs, kept = residuals
    d_outputs, d_finals = d_results
    gradients = call(
        "backward", backward_on_arrays, [i.shape for i in inputs],
        *constants, *inputs, outputs, *kept, d_outputs, *d_finals,
    )  # fmt: skip
    return tuple(gradients)


def native_gradients_forward(rule, run_steps, residuals, d_results):
    gradients = native_gradients(rule, run_steps, residuals, d_results)
    return gradients, (residuals, d_results)


def native_gradients_backward(rule, run_steps, residuals, d_gradients):
    (_, inputs, outputs, kept), d_results = residuals

    def gradients(inputs, d_results):
        _, pull_back = jax.vjp(lambda inputs: run_steps(*inputs), inputs)
        d_outputs, d_finals = d_results
        return pull_back((d_outputs, list(d_finals)))[0]

    _, pull_back = jax.vjp(gradients, inputs, d_results)
    d_inputs, d_d_results = pull_back(d_gradients)
    nothing = jax.tree.map(jnp.zeros_like, (outputs, kept))
    return (None, d_inputs, *nothing), d_d_results


native_gradients.defvjp(native_gradients_forward, native_gradients_backward)


# The calls of XLA


def rule_of(mu, numbers):
    kind, *numbers = numbers
    return kernel.Rule(KINDS[int(kind)], mu, *map(float, numbers))


def forward_on_arrays(mu, numbers, lengths, W, b, U, side, x, *states_and_results):
    count = (len(states_and_results) - 5) // 2
    states, results = states_and_results[:count], states_and_results[count:]
    _, finals, _ = kernel.forward(
        x, W, b, U, side, states, rule_of(mu, numbers), lengths, results[:5]
    )
    for result, final in zip(results[5:], finals):
        result[...] = final


def backward_on_arrays(mu, numbers, lengths, W, b, U, side, x, *others):
    # States, outputs, kept, the gradients of outputs and states, those to write.
    count = (len(others) - 11) // 3
    states, others = others[:count], others[count:]
    outputs, C, gates, v, m, d_outputs, *others = others
    d_finals, results = others[:count], others[count:]
    dx, *d_weights, d_states = kernel.backward(
        x, W, b, U, side, states, rule_of(mu, numbers), lengths, outputs,
        kernel.Kept(C, gates, v, m), d_outputs, d_finals,
    )  # fmt: skip
    for result, gradient in zip(results, [*d_weights, dx, *d_states]):
        result[...] = gradient


def call(name, function, shapes, *arguments):
    """Return what a function on arrays writes to its results, of these shapes."""
    results = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    if by_ffi():
        target = f"keras_momentum_rnn.native.{name}"
        return jax.ffi.ffi_call(target, results, vmap_method="sequential")(*arguments)

    def written(*arguments):
        arrays = [np.empty(result.shape, np.float32) for result in results]
        function(*map(np.asarray, arguments), *arrays)
        return arrays

    return jax.pure_callback(written, results, *arguments, vmap_method="sequential")


@functools.cache
def by_ffi():
    """Register the functions with XLA; return whether this version of it can call them."""
    functions = {"forward": forward_on_arrays, "backward": backward_on_arrays, "test": double}
    for name, function in functions.items():
        handler = xla_ffi.handler(function)
        HANDLERS.append(handler)
        address = ctypes.cast(handler, ctypes.c_void_p).value
        jax.ffi.register_ffi_target(
            f"keras_momentum_rnn.native.{name}", jax.ffi.pycapsule(address), platform="cpu"
        )
    numbers = np.arange(3, dtype=np.float32)
    shape = jax.ShapeDtypeStruct(numbers.shape, numbers.dtype)
    try:
        with jax.ensure_compile_time_eval():
            doubled = jax.ffi.ffi_call("keras_momentum_rnn.native.test", shape)(numbers)
            return np.array_equal(doubled, 2 * numbers)
    except Exception:  # of whatever kind: then the slower way is taken
        return False


HANDLERS = []  # XLA calls them for as long as the process lives.


def double(numbers, result):
    result[...] = 2 * numbers
