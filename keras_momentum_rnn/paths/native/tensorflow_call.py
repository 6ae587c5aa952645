"""The native kernel as an operation of TensorFlow."""

import numpy as np
import tensorflow as tf

from keras_momentum_rnn.paths.native import kernel

# TensorFlow takes an array as it is where it begins at such an address, and copies others.
ALIGNMENT = 64
KEPT = len(kernel.Kept._fields)


def run_cell(problem, x, weights, states):
    """Return h at all times and the final states, for `run.run_native`."""
    present = [w is not None for w in weights]
    batch, time = x.shape[0], x.shape[1]
    mask = tf.zeros((0,), "bool") if problem.mask is None else problem.mask
    dropout = tf.zeros((0,)) if problem.dropout is None else problem.dropout
    equation = problem.equation

    def unpacked(inputs):
        x, *others = inputs
        given = iter(others)
        weights = [next(given) if there else None for there in present]
        return x, weights, list(given)

    def inference_on_arrays(mu, mask, *inputs):
        x, weights, states = unpacked(inputs)
        outputs = aligned((*x.shape[:2], states[0].shape[1]))
        now = equation.with_arrays(mu, None)
        finals = kernel.infer(now, x, weights, states, mask, outputs)
        return [outputs, *map(np.ascontiguousarray, finals)]

    def forward_on_arrays(mu, dropout, mask, *inputs):
        x, weights, states = unpacked(inputs)
        shapes = equation.kept_shapes(*x.shape[:2], weights[2].shape[0])
        finals, kept = kernel.forward(
            equation.with_arrays(mu, dropout), x, weights, states, mask,
            [aligned(shape) for shape in shapes],
        )  # fmt: skip
        return [kept.h, *map(np.ascontiguousarray, finals), *kept[1:]]

    def backward_on_arrays(mu, dropout, mask, count, *arrays):
        inputs, kept, d_results = (
            arrays[:count], arrays[count : count + KEPT], arrays[count + KEPT :]
        )  # fmt: skip
        x, weights, states = unpacked(inputs)
        dx, d_weights, d_states = kernel.backward(
            equation.with_arrays(mu, dropout), x, weights, states, mask,
            kernel.Kept(*kept), d_results[0], list(d_results[1:]), dx=aligned(x.shape),
        )  # fmt: skip
        d_weights = [d for d, there in zip(d_weights, present) if there]
        return [dx, *d_weights, *map(np.ascontiguousarray, d_states)]

    def run_steps(*inputs):
        x, weights, states = unpacked(inputs)
        outputs, finals = problem.run_steps(x, *weights, *states)
        return [outputs, *finals]

    def with_shapes(results):
        shapes = [(batch, time, states[0].shape[-1]), *(s.shape for s in states)]
        for result, shape in zip(results, shapes):
            result.set_shape(shape)
        return results

    @tf.custom_gradient
    def native_inference(*inputs):
        count = 1 + len(states)
        results = call(inference_on_arrays, count, problem.mu, mask, *inputs)

        def backward(*d_results):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                stepped = run_steps(*inputs)
            return tape.gradient(stepped, inputs, d_results, "zero")

        return with_shapes(results), backward

    @tf.custom_gradient
    def native_cell(*inputs):
        count = 1 + len(states)
        arrays = problem.mu, dropout, mask
        results = call(forward_on_arrays, count + KEPT - 1, *arrays, *inputs)
        results, kept = with_shapes(results[:count]), results[count:]

        def backward(*d_results):
            return gradients(*inputs, results[0], *kept, *d_results)

        return results, backward

    @tf.custom_gradient
    def gradients(*arrays):
        count = 1 + sum(present) + len(states)
        inputs, d_results = arrays[:count], arrays[count + KEPT :]
        d_inputs = call(
            lambda mu, dropout, mask, *arrays: backward_on_arrays(
                mu, dropout, mask, count, *arrays
            ),
            count, problem.mu, dropout, mask, *arrays,
        )  # fmt: skip
        for d, i in zip(d_inputs, inputs):
            d.set_shape(i.shape)

        def backward(*d_gradients):
            """The gradients' own gradients are those of the cell's own steps."""
            with tf.GradientTape() as outer:
                outer.watch([*inputs, *d_results])
                with tf.GradientTape() as inner:
                    inner.watch(inputs)
                    stepped = run_steps(*inputs)
                found = inner.gradient(stepped, inputs, d_results, "zero")
            wanted = outer.gradient(found, [*inputs, *d_results], list(d_gradients), "zero")
            d_inputs, d_d_results = wanted[:count], wanted[count:]
            nothing = [tf.zeros_like(a) for a in arrays[count : count + KEPT]]
            return [*d_inputs, *nothing, *d_d_results]

        return d_inputs, backward

    inputs = [x, *(tf.convert_to_tensor(w) for w in weights if w is not None), *states]
    outputs, *finals = (native_cell if problem.training else native_inference)(*inputs)
    return outputs, finals


def call(function, count, *arguments):
    """Return what a function on arrays returns, so many tensors of float32."""
    return tf.numpy_function(function, arguments, [tf.float32] * count, stateful=False)


def aligned(shape):
    """Return a new float32 array that begins where TensorFlow takes it."""
    size = int(np.prod(shape)) * 4
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(np.float32).reshape(shape)
