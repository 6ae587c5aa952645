"""The loop over steps on TensorFlow, also for a graph that may become a file."""

import tensorflow as tf
from keras import tree


def loop(step, xs, states, all_outputs, for_a_file):
    """Run steps over time. `keras.ops.scan` would write all states: the first is enough.

    Args:
        step: function of a slice of `xs` and the list of states.
        xs: tensor `(time, batch, ...)`, or a list of such.
        states: list of tensors `(batch, size)`.
        all_outputs: False for the final states alone.
        for_a_file: True for a list of outputs in place of an array.

    Returns:
        The first state at all times, `(time, batch, size)`, or None, and the final states.
    """
    flat, like = tree.flatten(xs), states[0]
    length = flat[0].shape[0] or tf.shape(flat[0])[0]
    arrays = [tf.TensorArray(x.dtype, length).unstack(x) for x in flat]
    # XLA refuses to carry an array that nothing is written to.
    outputs = ()
    if all_outputs:
        begun, write, stack = LIST if for_a_file else ARRAY
        outputs = begun(length, like)

    def body(time, outputs, states):
        x = tree.pack_sequence_as(xs, [array.read(time) for array in arrays])
        new_states = step(x, states)
        for new, old in zip(new_states, states):
            new.set_shape(old.shape)
        if all_outputs:
            outputs = write(outputs, time, new_states[0])
        return time + 1, outputs, new_states

    _, outputs, states = tf.while_loop(
        lambda time, *_: time < length,
        body,
        (0, outputs, list(states)),
        maximum_iterations=length,
        swap_memory=not for_a_file,
    )
    if not all_outputs:
        return None, states
    outputs = stack(outputs, length, like)
    outputs.set_shape((flat[0].shape[0], *like.shape))
    return outputs, states


def new_list(length, like):
    return tf.raw_ops.TensorListReserve(
        element_shape=tf.shape(like), num_elements=length, element_dtype=like.dtype
    )


def written_list(outputs, time, state):
    return tf.raw_ops.TensorListSetItem(input_handle=outputs, index=time, item=state)


def stacked_list(outputs, length, like):
    # LiteRT refuses to stack a list of known length as one of any length.
    known = length if isinstance(length, int) else -1
    return tf.raw_ops.TensorListStack(
        input_handle=outputs,
        element_shape=tf.shape(like),
        element_dtype=like.dtype,
        num_elements=known,
    )


# How outputs begin, how one is written, and how all are stacked.
ARRAY = (
    lambda length, like: tf.TensorArray(like.dtype, length, element_shape=like.shape),
    lambda outputs, time, state: outputs.write(time, state),
    lambda outputs, length, like: outputs.stack(),
)
# LiteRT holds no array of outputs whose batch is open: this list gets it when it runs.
LIST = (new_list, written_list, stacked_list)
