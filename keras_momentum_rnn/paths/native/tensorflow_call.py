"""The native kernel as an operation of TensorFlow."""

import secrets

import numpy as np
import tensorflow as tf

from keras_momentum_rnn.paths.native import kernel

# TensorFlow takes an array as it is where it begins at such an address, and copies others.
ALIGNMENT = 64
KEPT = len(kernel.Kept._fields)


def run_cell(problem, x, weights, states):
    """Return h, at all times or the last one, and the final states, for `run.run_native`."""
    cell = Cell(problem, x, weights, states)
    run = tf.custom_gradient(cell.train if problem.training else cell.infer)
    given = [tf.convert_to_tensor(w) for w in weights if w is not None]
    # The gradient of a `tf.cond` cannot take a tensor from outside of its graph.
    outputs, *finals = run(tf.identity(x), *given, *map(tf.identity, states))
    return outputs, finals


class Cell:
    """A call of a cell: on tensors, and on the arrays that TensorFlow makes of them.

    `inputs` are always x, the weights that there are, and the states; `results` are h, at all
    times or the last one, and the final states.
    """

    def __init__(self, problem, x, weights, states):
        self.problem, self.equation = problem, problem.equation
        self.present = [w is not None for w in weights]
        self.count = 1 + sum(self.present) + len(states)
        self.shapes = [self.outputs_shape(x, states), *(s.shape for s in states)]
        mask = tf.zeros((0,), "bool") if problem.mask is None else problem.mask
        # A loop of TensorFlow cannot carry a tensor from outside of its graph.
        self.mask = tf.identity(mask)
        self.dropout = tf.zeros((0,)) if problem.dropout is None else problem.dropout

    def outputs_shape(self, x, states):
        return self.equation.outputs_shape(x, states, self.problem.all_outputs)

    # On arrays

    def unpacked(self, inputs):
        x, *others = inputs
        given = iter(others)
        weights = [next(given) if there else None for there in self.present]
        return x, weights, list(given)

    def infer_arrays(self, mu, mask, *inputs):
        x, weights, states = self.unpacked(inputs)
        outputs = aligned(self.outputs_shape(x, states))
        now = self.equation.with_arrays(mu, None)
        finals = kernel.infer(now, x, weights, states, mask, outputs)
        return [outputs, *map(np.ascontiguousarray, finals)]

    def forward_arrays(self, mu, dropout, mask, *inputs):
        x, weights, states = self.unpacked(inputs)
        shapes = self.equation.kept_shapes(*x.shape[:2], weights[2].shape[0])
        finals, kept = kernel.forward(
            self.equation.with_arrays(mu, dropout), x, weights, states, mask,
            [aligned(shape) for shape in shapes],
        )  # fmt: skip
        return [kept.h, *map(np.ascontiguousarray, finals), *kept[1:]]

    def backward_arrays(self, mu, dropout, mask, *arrays):
        inputs, kept, (d_outputs, *d_finals) = self.divided(arrays)
        x, weights, states = self.unpacked(inputs)
        dx, d_weights, d_states = kernel.backward(
            self.equation.with_arrays(mu, dropout), x, weights, states, mask,
            kernel.Kept(*kept), d_outputs, d_finals, dx=aligned(x.shape),
        )  # fmt: skip
        d_weights = [d for d, there in zip(d_weights, self.present) if there]
        return [dx, *d_weights, *map(np.ascontiguousarray, d_states)]

    # On tensors

    def divided(self, arrays):
        """Return what `differentiate` takes as inputs, what is kept, and d_results."""
        kept = self.count + KEPT
        return arrays[: self.count], arrays[self.count : kept], arrays[kept:]

    def with_shapes(self, results):
        for result, shape in zip(results, self.shapes):
            result.set_shape(shape)
        return results

    def steps(self, inputs):
        """Return the results of the cell's own steps."""
        x, weights, states = self.unpacked(inputs)
        outputs, finals = self.problem.run_steps(x, *weights, *states)
        return [outputs, *finals]

    def gradients_of_steps(self, sources):
        """Return the gradients of the inputs; `sources` are they and d_results."""
        return gradients(self.steps, sources[: self.count], sources[self.count :])

    def second_gradients(self, sources, d_gradients):
        """Return what `gradients_of_steps` has as the gradients of its sources."""
        return gradients(self.gradients_of_steps, sources, d_gradients)

    def infer(self, *inputs):
        """Return the results, and a gradient, should somebody ask for it."""
        results = call(self.infer_arrays, len(self.shapes), self.problem.mu, self.mask, *inputs)

        @tf.custom_gradient
        def differentiate(*sources):
            found = self.gradients_of_steps(sources)
            return found, lambda *d_gradients: self.second_gradients(sources, d_gradients)

        return self.with_shapes(results), lambda *d: differentiate(*inputs, *dense(d))

    def train(self, *inputs):
        """Return the results, and their gradient."""
        count, arrays = len(self.shapes), (self.problem.mu, self.dropout, self.mask)
        found = call(self.forward_arrays, count + KEPT - 1, *arrays, *inputs)
        results, kept = self.with_shapes(found[:count]), found[count:]
        differentiate = tf.custom_gradient(self.differentiate)
        return results, lambda *d: differentiate(*inputs, results[0], *kept, *dense(d))

    def differentiate(self, *arrays):
        """Return the gradients of inputs, and their own, which are those of the steps."""
        inputs, kept, d_results = self.divided(arrays)
        before = self.problem.mu, self.dropout, self.mask
        d_inputs = call(self.backward_arrays, self.count, *before, *arrays)
        for d, i in zip(d_inputs, inputs):
            d.set_shape(i.shape)

        def backward(*d_gradients):
            wanted = self.second_gradients([*inputs, *d_results], d_gradients)
            nothing = [tf.zeros_like(a) for a in kept]
            return [*wanted[: self.count], *nothing, *wanted[self.count :]]

        return d_inputs, backward


def dense(d_results):
    """Return gradients as tensors: that of `tf.gather` comes as slices."""
    return map(tf.convert_to_tensor, d_results)


def gradients(function, inputs, d_results):
    """Return the gradients of the inputs of a function from tensors to tensors."""
    if tapes_record():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            results = function(inputs)
        return tape.gradient(results, inputs, d_results, "zero")
    if tf.executing_eagerly():
        graph = tf.function(lambda *given: gradients(function, *given))
        return graph.get_concrete_function(inputs, d_results)(inputs, d_results)
    return tf.gradients(function(inputs), inputs, d_results, unconnected_gradients="zero")


def tapes_record():
    """Return whether a tape records: not in `stop_recording`, nor for `ForwardAccumulator`."""
    number = tf.zeros(())
    with tf.GradientTape() as tape:
        tape.watch(number)
        same = tf.identity(number)
    return tape.gradient(same, number) is not None


NO_FORWARD_MODE = (
    "TensorFlow's forward mode does not pass through the native kernel in a `tf.function`: "
    "call the layer outside of one, or give it `unroll=True`"
)


# What no other process has. A graph names our functions by their numbers alone, which in the
# process that loads its file may be those of another layer.
PROCESS = secrets.token_hex(8)


def of_this_process(function):
    """Return the function with an argument more, by which it refuses another's graph."""

    def checked(process, *arrays):
        if process.decode() != PROCESS:
            raise RuntimeError(
                "This graph calls the native kernel of the process that made it. Build its "
                "layers with `use_cudnn=False` before you save it"
            )
        return function(*arrays)

    return checked


def call(function, count, *arguments):
    """Return what a function on arrays returns, so many tensors of float32."""
    if not tf.executing_eagerly():  # where forward mode would find 0, and say nothing
        message = {"message": NO_FORWARD_MODE}
        arguments = [tf.raw_ops.PreventGradient(input=a, **message) for a in arguments]
        function, arguments = of_this_process(function), [tf.constant(PROCESS), *arguments]
    return tf.numpy_function(function, arguments, [tf.float32] * count, stateful=False)


def aligned(shape):
    """Return a new float32 array that begins where TensorFlow takes it."""
    size = int(np.prod(shape)) * 4
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(np.float32).reshape(shape)
