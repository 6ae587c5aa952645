"""The native kernel as an operation of JAX."""

import atexit
import contextlib
import ctypes
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from keras_momentum_rnn.paths import xla_ffi
from keras_momentum_rnn.paths.native import kernel, runtime
from keras_momentum_rnn.paths.transforms import varying_alike, varying_axes

# The names by which XLA knows the functions begin with it.
PREFIX = "keras_momentum_rnn.native"


def run_cell(problem, x, weights, states):
    """Return h, at all times or the last one, and the final states, for `run.run_native`."""
    present = [w is not None for w in weights]
    # A missing bias is as wide as the matrix before it.
    weights = [
        jnp.zeros(weights[i - 1].shape[-1], jnp.float32) if w is None else w
        for i, w in enumerate(weights)
    ]

    masked, equation = problem.mask is not None, problem.equation
    # What is traced must not hide in a function: a second derivative may be taken when this
    # trace has ended.
    static = dataclasses.replace(problem, mu=None, dropout=None, counters=None, mask=None)

    def run_steps(constants, *inputs):
        _, dropout, mask, counters = constants
        x, weights, states = equation.divided(inputs)
        given = [w if there else None for w, there in zip(weights, present)]
        traced = dataclasses.replace(
            static,
            dropout=dropout if dropout.size else None,
            mask=mask.astype(bool) if masked else None,
            counters=counters,
        )
        return traced.run_steps(x, *given, *states)

    mask = problem.mask if masked else jnp.zeros(0)
    # With `jax_enable_x64` they may be of 64 bits.
    mu, dropout = problem.mu.astype(jnp.float32), problem.dropout
    dropout = jnp.zeros(0, jnp.float32) if dropout is None else dropout
    constants = mu, dropout, mask.astype(jnp.int32), problem.counters
    constants, inputs = varying_alike((constants, (x, *weights, *states)))
    if not problem.training:
        flat, structure = jax.tree.flatten((constants, inputs))
        outputs, *finals = inference.bind(
            *flat,
            structure=structure,
            equation=equation,
            run_steps=run_steps,
            all_outputs=problem.all_outputs,
        )
        return outputs, finals
    (outputs, finals), _ = native_cell(equation, run_steps, constants, inputs)
    return outputs, list(finals)


# Training: a gradient by hand.
# (x, weights, states) -> ((h at all times, final states), `Kept` as a list).
# What a rule of differentiation runs may be differentiated again: it calls the function itself.


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def native_cell(equation, run_steps, constants, inputs):
    x, _, states = equation.divided(inputs)
    batch, time, _ = x.shape
    shapes = equation.kept_shapes(batch, time, states[0].shape[-1])
    shapes = [*shapes, *(s.shape for s in states)]
    *arrays, _ = constants
    outputs, *rest = call("forward", equation, shapes, *arrays, *inputs)
    return (outputs, tuple(rest[KEPT - 1 :])), rest[: KEPT - 1]


def native_cell_forward(equation, run_steps, constants, inputs):
    results, kept = native_cell(equation, run_steps, constants, inputs)
    return (results, kept), (constants, inputs, results[0], kept)


def native_cell_backward(equation, run_steps, residuals, cotangents):
    # What is kept is a function of the inputs, which `native_gradients` accounts for.
    d_results, _ = cotangents
    return None, native_gradients(equation, run_steps, residuals, d_results)


native_cell.defvjp(native_cell_forward, native_cell_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def native_gradients(equation, run_steps, residuals, d_results):
    """Return the gradients of the inputs; their own are those of the cell's own steps."""
    (*arrays, _), inputs, outputs, kept = residuals
    d_outputs, d_finals = d_results
    gradients = call(
        "backward", equation, [i.shape for i in inputs],
        *arrays, *inputs, outputs, *kept, d_outputs, *d_finals,
    )  # fmt: skip
    return tuple(gradients)


def native_gradients_forward(equation, run_steps, residuals, d_results):
    gradients = native_gradients(equation, run_steps, residuals, d_results)
    return gradients, (residuals, d_results)


def native_gradients_backward(equation, run_steps, residuals, d_gradients):
    (constants, inputs, outputs, kept), d_results = residuals

    def gradients(inputs, d_results):
        _, pull_back = jax.vjp(lambda inputs: run_steps(constants, *inputs), inputs)
        d_outputs, d_finals = d_results
        return pull_back((d_outputs, list(d_finals)))[0]

    _, pull_back = jax.vjp(gradients, inputs, d_results)
    d_inputs, d_d_results = pull_back(d_gradients)
    nothing = jax.tree.map(jnp.zeros_like, (outputs, kept))
    return (None, d_inputs, *nothing), d_d_results


native_gradients.defvjp(native_gradients_forward, native_gradients_backward)


# Inference: the kernel is how this operation is computed, and the cell's own steps are what any
# transform and any export makes of it.

inference = Primitive("keras_momentum_rnn.native")
inference.multiple_results = True


@inference.def_impl
def by_kernel(*flat, structure, equation, run_steps, all_outputs):
    (*arrays, _), inputs = jax.tree.unflatten(structure, flat)
    shapes = shapes_of(inputs, equation, all_outputs)
    return call("inference", equation, shapes, *arrays, *inputs)


def by_steps(*flat, structure, equation, run_steps, all_outputs):
    constants, inputs = jax.tree.unflatten(structure, flat)
    outputs, finals = run_steps(constants, *inputs)
    return [outputs, *finals]


def shapes_of(inputs, equation, all_outputs):
    """Return the shapes of h and of the final states."""
    x, _, states = equation.divided(inputs)
    return [equation.outputs_shape(x, states, all_outputs), *(s.shape for s in states)]


@inference.def_abstract_eval
def abstract_results(*flat, structure, equation, run_steps, all_outputs):
    _, inputs = jax.tree.unflatten(structure, flat)
    shapes = shapes_of(inputs, equation, all_outputs)
    if varying_axes(inputs[0]):  # an array of as many axes tells how
        alike = {array.ndim: array for array in inputs}
        return [alike[len(shape)].update(shape=shape) for shape in shapes]
    return [jax.core.ShapedArray(shape, jnp.float32) for shape in shapes]


def tangents_of_steps(flat, tangents, **options):
    tangents = tuple(ad.instantiate_zeros(tangent) for tangent in tangents)
    return jax.jvp(functools.partial(by_steps, **options), flat, tangents)


def batch_of_steps(flat, axes, **options):
    results = jax.vmap(functools.partial(by_steps, **options), axes)(*flat)
    return results, [0] * len(results)


def lowered(context, *flat, **options):
    """Return the code for a CPU."""
    exported = context.module_context.lowering_parameters.for_export
    batch, _, units = context.avals_out[0].shape
    function = by_steps if exported or batch * units < runtime.SMALL else by_kernel
    return mlir.lower_fun(function, multiple_results=True)(context, *flat, **options)


ad.primitive_jvps[inference] = tangents_of_steps
batching.primitive_batchers[inference] = batch_of_steps
mlir.register_lowering(inference, mlir.lower_fun(by_steps, multiple_results=True))
mlir.register_lowering(inference, lowered, platform="cpu")


# The calls of XLA


def inference_on_arrays(numbers, mu, dropout, mask, *others):
    # The inputs; h, at all times or the last one, and the final states, to write.
    equation = kernel.Equation.of_numbers(numbers).with_arrays(mu, dropout)
    x, weights, others = equation.divided(others)
    count = len(others) // 2
    states, (outputs, *results) = others[:count], others[count:]
    finals = kernel.infer(equation, x, weights, states, mask, outputs)
    for result, final in zip(results, finals):
        result[...] = final


def forward_on_arrays(numbers, mu, dropout, mask, *others):
    # The inputs; `Kept` and the final states, to write.
    equation = kernel.Equation.of_numbers(numbers).with_arrays(mu, dropout)
    x, weights, others = equation.divided(others)
    count = (len(others) - KEPT) // 2
    states, kept, results = others[:count], others[count : count + KEPT], others[-count:]
    finals, _ = kernel.forward(equation, x, weights, states, mask, kept)
    for result, final in zip(results, finals):
        result[...] = final


def backward_on_arrays(numbers, mu, dropout, mask, *others):
    # The inputs, `Kept`, the gradients of h and of the states; those of all inputs, to write.
    equation = kernel.Equation.of_numbers(numbers).with_arrays(mu, dropout)
    x, weights, others = equation.divided(others)
    count = (len(others) - KEPT - len(weights) - 2) // 3
    states, kept, others = others[:count], others[count : count + KEPT], others[count + KEPT :]
    d_outputs, d_finals, (dx, *results) = others[0], others[1 : count + 1], others[count + 1 :]
    _, d_weights, d_states = kernel.backward(
        equation, x, weights, states, mask, kernel.Kept(*kept), d_outputs, d_finals, dx=dx
    )
    for result, gradient in zip(results, [*d_weights, *d_states]):
        result[...] = gradient


KEPT = len(kernel.Kept._fields)
FUNCTIONS = {
    "inference": inference_on_arrays,
    "forward": forward_on_arrays,
    "backward": backward_on_arrays,
}


def call(name, equation, shapes, *arguments):
    """Return what a function on arrays writes to its results, of these shapes."""
    results = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    arguments = varying_alike((np.array(equation.as_numbers(), np.float32), *arguments))
    if by_ffi():
        target = f"{PREFIX}.{name}"
        found = jax.ffi.ffi_call(target, results, vmap_method="sequential")(*arguments)
        return varying_alike(found, like=arguments)

    def written(*arguments):
        arrays = [np.empty(result.shape, np.float32) for result in results]
        FUNCTIONS[name](*map(np.asarray, arguments), *arrays)
        return arrays

    found = jax.pure_callback(written, results, *arguments, vmap_method="sequential")
    return varying_alike(found, like=arguments)


@functools.cache
def by_ffi():
    """Register the functions with XLA; return whether this version of it can call them."""
    numbers = np.arange(3, dtype=np.float32)
    shape = jax.ShapeDtypeStruct(numbers.shape, numbers.dtype)
    try:
        for name, function in {**FUNCTIONS, "test": double}.items():
            handler = xla_ffi.handler(function)
            HANDLERS.append(handler)
            address = ctypes.cast(handler, ctypes.c_void_p).value
            jax.ffi.register_ffi_target(
                f"{PREFIX}.{name}", jax.ffi.pycapsule(address), platform="cpu"
            )
        with jax.ensure_compile_time_eval(), jax.transfer_guard("allow"):
            doubled = jax.ffi.ffi_call(f"{PREFIX}.test", shape)(numbers)
            works = np.array_equal(doubled, 2 * numbers)
        # What was registered last runs first: this before JAX's own.
        atexit.register(finish)
        return works
    except (RuntimeError, ValueError):  # what a handler returned, or XLA itself
        return False


HANDLERS = []  # XLA calls them for as long as the process lives.


def finish():
    """Wait for programs that still run, since JAX would wait for them for ever at the exit.

    It holds Python's lock while it waits for its threads, and a handler there needs the lock.
    """
    for result in jax.live_arrays():
        with contextlib.suppress(Exception):  # of a computation that failed
            result.block_until_ready()
    xla_ffi.wait_until_idle(0.1)  # for programs whose results nobody kept


def double(numbers, result):
    result[...] = 2 * numbers
