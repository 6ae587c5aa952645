"""The loop over time, for each backend."""

import keras
from keras import ops, tree

from keras_momentum_rnn.paths.transforms import varying_alike

# Steps recomputed together; their intermediates must fit in the CPU cache.
CHUNK = 8


def run_steps(cell, sequence, plan):
    """Run a sequence step by step, by the cell's own equations: the definition of its results.

    Args:
        cell: a `RuleCell`.
        sequence: a `run.Sequence`.
        plan: a `Plan`.

    Returns:
        The first state at all times, `(batch, time, size)`, and the final states.
    """
    x, step = inputs_and_step(cell, sequence, plan)
    return scan_steps(step, x, sequence.states, **scan_options(sequence, plan))


def inputs_and_step(cell, sequence, plan):
    """Return what the steps read at all times, and a step `(x, states) -> states`."""
    training, x = sequence.training, sequence.x
    if plan.projects_before_loop:
        u = cell.projection(training)(ops.swapaxes(x, 0, 1))
        return ops.swapaxes(u, 0, 1), cell.step_from_projection(training)
    return x, cell.step_from_input(training)


def scan_options(sequence, plan):
    """Return the options of `scan_steps` for a sequence and its plan."""
    return {
        "mask": sequence.mask,
        "unroll": sequence.unroll,
        "all_outputs": sequence.all_outputs,
        "rematerialise": plan.rematerialises,
        "for_a_file": plan.path == "graph_loop",
    }


def scan_steps(
    step,
    xs,
    states,
    mask=None,
    unroll=False,
    all_outputs=True,
    rematerialise=False,
    for_a_file=False,
):
    """Run `step(x, states) -> states` over time.

    Args:
        step: function of `x`, a slice of `xs`, and the list of states.
        xs: tensor `(batch, time, ...)`.
        states: list of tensors `(batch, size)`, the output first.
        mask: bool tensor `(batch, time)` or None. Where it is False every state is held.
        unroll: True to write the steps out one by one, for a static number of them.
        all_outputs: False to return the last output alone, `(batch, 1, size)`.
        rematerialise: True to compute the steps again in the backward pass in place of
            storing what they computed, on JAX.
        for_a_file: True for a loop that every format of a file can hold, on TensorFlow.

    Returns:
        The first state at all times, `(batch, time, size)`, and the final states.
    """
    if mask is not None:
        step, xs = held(step), [xs, ops.expand_dims(mask, -1)]
    if unroll or keras.config.backend() == "torch":
        return _python_loop(step, xs, states, all_outputs)
    xs = tree.map_structure(lambda x: ops.swapaxes(x, 0, 1), xs)
    if keras.config.backend() == "tensorflow":
        from keras_momentum_rnn.paths.tensorflow_graph import loop

        outputs, states = loop(step, xs, states, all_outputs, for_a_file)
    else:
        outputs, states = _scan(step, xs, states, all_outputs, rematerialise)
    if not all_outputs:
        return ops.expand_dims(states[0], 1), states
    return ops.swapaxes(outputs, 0, 1), states


def held(step):
    """Return `step` for pairs (x, mask) which keeps every state where the mask is False."""

    def held(x_and_mask, states):
        x, mask = x_and_mask
        return [ops.where(mask, n, o) for n, o in zip(step(x, states), states)]

    return held


def _python_loop(step, xs, states, all_outputs):
    slices = [ops.unstack(x, axis=1) for x in tree.flatten(xs)]
    outputs = []
    for flat in zip(*slices):
        states = step(tree.pack_sequence_as(xs, flat), states)
        outputs.append(states[0])
    if not all_outputs:
        outputs = outputs[-1:]
    return ops.stack(outputs, axis=1), states


def _scan(step, xs, states, all_outputs, rematerialise):
    def body(states, x):
        states = step(x, states)
        return states, states[0] if all_outputs else None

    def chunk(states, xs):
        return ops.scan(body, states, xs)

    states, length = list(states), tree.flatten(xs)[0].shape[0]
    if keras.config.backend() == "jax":
        states = varying_alike(states, like=xs)
    # In an exported model the length is not a number, and there is no backward pass.
    if not rematerialise or not isinstance(length, int) or length < CHUNK:
        states, outputs = chunk(states, xs)
        return outputs, states
    import jax

    whole = length - length % CHUNK
    first = jax.tree.map(lambda x: x[:whole].reshape(whole // CHUNK, CHUNK, *x.shape[1:]), xs)
    states, outputs = jax.lax.scan(jax.checkpoint(chunk, prevent_cse=False), states, first)
    outputs = jax.tree.map(lambda x: x.reshape(whole, *x.shape[2:]), outputs)
    if length > whole:
        states, rest = chunk(states, jax.tree.map(lambda x: x[whole:], xs))
        outputs = jax.tree.map(lambda *parts: jax.numpy.concatenate(parts), outputs, rest)
    return outputs, states
