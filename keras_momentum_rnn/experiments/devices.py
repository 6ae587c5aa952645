"""Training on several devices of a machine, by the public means of Keras and its backends."""

import contextlib

import keras

from keras_momentum_rnn.checks import checked_count
from keras_momentum_rnn.experiments.training import evaluation_batch


@contextlib.contextmanager
def distributed(count):
    """Divide the batches over the first `count` devices, within the context.

    On JAX by `keras.distribution.DataParallel`, on TensorFlow by
    `tf.distribute.MirroredStrategy`: models made in the context hold their weights on every
    device, each computes the gradients of its part of a batch, and all take their mean. One
    device is left as it is.

    Args:
        count: positive integer.

    Raises:
        ValueError: if there are fewer devices.
        NotImplementedError: on PyTorch, for more than one: Keras documents a training loop
            of one's own there, and none for `fit`.
    """
    count = checked_count("devices", count)
    if count == 1:
        yield
        return
    backend = keras.config.backend()
    if backend == "jax":
        with parallel_jax(count):
            yield
    elif backend == "tensorflow":
        with mirrored_tensorflow(count):
            yield
    else:
        raise NotImplementedError(
            f"Keras documents no `fit` over several devices on {backend}; use JAX or "
            f"TensorFlow. Received: devices={count}"
        )


@contextlib.contextmanager
def parallel_jax(count):
    found = keras.distribution.list_devices()
    enough(found, count)
    before = keras.distribution.distribution()
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=found[:count]))
    try:
        yield
    finally:
        keras.distribution.set_distribution(before)


@contextlib.contextmanager
def mirrored_tensorflow(count):
    import tensorflow as tf

    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    found = [device.name for device in tf.config.list_logical_devices(kind)]
    enough(found, count)
    with tf.distribute.MirroredStrategy(found[:count]).scope():
        yield


def enough(found, count):
    if len(found) < count:
        raise ValueError(
            f"`devices` must be at most {len(found)}, as many as there are here. "
            f"Received: devices={count}"
        )


def check(task, setups, count):
    """Raise an error if several devices would not give what one gives.

    Raises:
        ValueError: if a batch, the last one of a split included, cannot be divided. To fill
            one up with samples of no weight would change the mean loss.
        NotImplementedError: on TensorFlow, if gradients are clipped: there Keras clips those
            of each device by themselves, before they are summed.
    """
    if count == 1:
        return
    for name, setup in setups.items():
        if keras.config.backend() == "tensorflow" and setup.clipnorm is not None:
            raise NotImplementedError(
                "On TensorFlow Keras clips the gradients of each device by themselves, which "
                f"one device does not; use JAX. Received: devices={count}, and "
                f"global_clipnorm={setup.clipnorm} for {name}"
            )
        held_out = evaluation_batch(task, setup)
        sizes = {
            "batches of training": setup.batch_size,
            "last batch of training": len(task.train) % setup.batch_size,
            "last batch of validation": len(task.validation) % held_out,
            "last batch of test": len(task.test) % held_out,
        }
        for batch, size in sizes.items():
            if size % count:
                raise ValueError(
                    f"`devices` must divide every batch. Received: devices={count}, and the "
                    f"{batch} for {name} has {size} samples"
                )
