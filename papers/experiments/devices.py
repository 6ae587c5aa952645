"""Training on several devices of a machine, by the public means of Keras and its backends."""

import contextlib
import gc
import os
import sys

import keras

from keras_momentum_rnn.checks import checked_count
from papers.experiments.processes import ALONE, Process
from papers.experiments.training import evaluation_batch

# Of Keras, the first in which `DataParallel` trains on PyTorch.
PARALLEL_TORCH = (3, 16)


@contextlib.contextmanager
def distributed(count):
    """Divide the batches over the first `count` devices, within the context.

    On JAX and PyTorch by `keras.distribution.DataParallel`, on TensorFlow by
    `tf.distribute.MirroredStrategy`: models made in the context hold their weights on every
    device, each computes the gradients of its part of a batch, and all take their mean. One
    device is left as it is. On PyTorch the processes have been `joined` before.

    Args:
        count: positive integer.

    Yields:
        The `Process` that this is; on JAX and TensorFlow there is one for all devices.

    Raises:
        ValueError: if there are fewer devices, or fewer processes on PyTorch.
        NotImplementedError: on PyTorch with a Keras before 3.16, for more than one.
    """
    process, backend = this_process(count), keras.config.backend()
    if count == 1:
        yield process
    elif backend == "jax":
        with parallel_jax(count):
            yield process
    elif backend == "tensorflow":
        with mirrored_tensorflow(count):
            yield process
    else:
        # Each process draws its own part of a batch; Keras would divide this part again.
        with keras.distribution.DataParallel(auto_shard_dataset=False).scope():
            yield process


def this_process(count):
    """Return the `Process` that this is, of those that train on so many devices.

    Raises:
        ValueError, NotImplementedError: as of `distributed`.
    """
    count = checked_count("devices", count)
    if not one_each(count):
        return ALONE
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started != count:
        raise ValueError(
            "On PyTorch each device has a process of its own: start the program by "
            f"`torchrun --nproc-per-node={count}`. Received: devices={count}, and {started} "
            f"process{'es' if started > 1 else ''}"
        )
    return Process(int(os.environ["RANK"]), count)


def one_each(count):
    """Return whether each of the devices has a process of its own, as on PyTorch.

    Raises:
        NotImplementedError: if Keras cannot train so yet.
    """
    if count == 1 or keras.config.backend() != "torch":
        return False
    version = tuple(int(number) for number in keras.__version__.split(".")[:2])
    if version < PARALLEL_TORCH:
        raise NotImplementedError(
            "Keras trains on several devices on PyTorch since version 3.16; update it, or use "
            f"JAX or TensorFlow. Received: devices={count}, and Keras {keras.__version__}"
        )
    return True


def start(count, script, argv):
    """Start a script again as one process for each device, where the backend needs that.

    It does nothing in a process that was started so. Otherwise this process ends here, and
    PyTorch's launcher takes its place: it ends all processes when one fails.

    Args:
        count: int, how many devices.
        script: its file.
        argv: list of its arguments.

    Raises:
        ValueError, NotImplementedError: as of `distributed`.
    """
    if "WORLD_SIZE" in os.environ or not one_each(count):
        return
    found = keras.distribution.list_devices()
    if found[0].startswith("gpu"):
        enough(found, count)
    launcher = ["torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", *launcher, str(script), *argv])


@contextlib.contextmanager
def joined(process):
    """Connect the processes within the context.

    An error leaves them connected: the launcher then ends those that wait for this one.
    """
    if process.count == 1:
        yield
        return
    import torch.distributed

    keras.distribution.initialize()
    yield
    torch.distributed.destroy_process_group()
    # A cycle of the trained model keeps the group and its threads. A thread that still drops a
    # tensor while Python ends aborts the process.
    gc.collect()


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
    """Raise an error if several devices would not give the results of one.

    Raises:
        ValueError: if a batch, the last one of a split included, cannot be divided. To fill
            one up with samples of no weight would change the mean loss.
        NotImplementedError: on TensorFlow, if gradients are clipped: there Keras clips those
            of each device by themselves, before they are summed. On TensorFlow and PyTorch, if
            the loss is a mean by weight: each device would divide by the weights of its part.
    """
    if count == 1:
        return
    if (
        keras.config.backend() != "jax"
        and getattr(task.loss, "reduction", None) == "mean_with_sample_weight"
    ):
        raise NotImplementedError(
            f"The loss of {task.name} is a mean by weight, which each device takes over its "
            f"own part of a batch; use JAX. Received: devices={count}"
        )
    for name, setup in setups.items():
        if keras.config.backend() == "tensorflow" and setup.clipnorm is not None:
            raise NotImplementedError(
                "On TensorFlow Keras clips the gradients of each device by themselves, which "
                f"one device does not; use JAX. Received: devices={count}, and "
                f"global_clipnorm={setup.clipnorm} for {name}"
            )
        sizes = {"batches of training": setup.batch_size}
        if not task.stateful:  # else all batches have as many rows
            held_out = evaluation_batch(task, setup)
            sizes |= {
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
