"""The loop over steps in a graph of TensorFlow that may become a file."""

import tensorflow as tf
from keras import ops

from keras_momentum_rnn.paths.steps import held, inputs_and_step


def run_steps_in_graph(cell, sequence, plan):
    """Run a sequence step by step in a loop that every format can hold.

    Args and returns: as of `steps.run_steps`.
    """
    x, step = inputs_and_step(cell, sequence, plan)
    xs, first = [x], list(sequence.states)
    if sequence.mask is not None:
        xs, step = [x, ops.expand_dims(sequence.mask, -1)], held(step)
    xs = [ops.swapaxes(x, 0, 1) for x in xs]
    length, like = xs[0].shape[0] or tf.shape(xs[0])[0], first[0]
    arrays = [tf.TensorArray(x.dtype, length).unstack(x) for x in xs]
    # LiteRT holds no array of outputs whose batch is open: this list gets it when it runs.
    outputs = ()
    if sequence.all_outputs:
        outputs = tf.raw_ops.TensorListReserve(
            element_shape=tf.shape(like), num_elements=length, element_dtype=like.dtype
        )

    def body(time, outputs, states):
        slices = [array.read(time) for array in arrays]
        new_states = step(slices if len(slices) > 1 else slices[0], states)
        for new, old in zip(new_states, states):
            new.set_shape(old.shape)
        if sequence.all_outputs:
            outputs = tf.raw_ops.TensorListSetItem(
                input_handle=outputs, index=time, item=new_states[0]
            )
        return time + 1, outputs, new_states

    _, outputs, states = tf.while_loop(
        lambda time, *_: time < length,
        body,
        (0, outputs, first),
        maximum_iterations=length,
    )
    if not sequence.all_outputs:
        return ops.expand_dims(states[0], 1), states
    outputs = tf.raw_ops.TensorListStack(
        input_handle=outputs,
        element_shape=tf.shape(like),
        element_dtype=like.dtype,
        num_elements=-1,
    )
    outputs.set_shape((xs[0].shape[0], *like.shape))
    return ops.swapaxes(outputs, 0, 1), states
