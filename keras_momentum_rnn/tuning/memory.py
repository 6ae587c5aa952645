"""Keep the memory of a search from growing."""

import contextlib

import keras


@contextlib.contextmanager
def freed_graphs():
    """Let TensorFlow free the graph of a training that happens inside.

    There Keras's optimizers sum the gradients over the replicas, by an operation with a
    gradient of its own, even where there is one replica. TensorFlow keeps such gradients, and
    with each the graph that it is in, for ever: about 10 MB for each small LSTM. A sum over one
    is that one. `test_models_and_graphs_of_earlier_trials_are_freed` holds it.
    """
    if keras.config.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    original = tf.distribute.ReplicaContext.all_reduce

    def all_reduce(self, reduce_op, value, options=None):
        if tf.distribute.has_strategy():
            return original(self, reduce_op, value, options)
        return value

    tf.distribute.ReplicaContext.all_reduce = all_reduce
    try:
        yield
    finally:
        tf.distribute.ReplicaContext.all_reduce = original
