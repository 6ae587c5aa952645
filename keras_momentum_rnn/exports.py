"""Whether a call is traced for a file, which a runtime of its own runs later."""

import keras


def traced_for_export(sequences, training):
    """Return how a call is traced for a file: None, "torchscript" or "graph".

    A file must carry the call at other sizes than it was traced with, in few and common
    operations. It needs no gradients.

    - PyTorch says that it traces: TorchScript (for ONNX and OpenVINO) or `torch.export`.
    - On JAX only an export has sizes that are no numbers.
    - TensorFlow exports the same graph that `predict` runs. On a CPU we take every graph of
      inference for one; on a GPU it keeps its fused kernels.

    Args:
        sequences: tensor `(batch, time, features)`.
        training: bool, whether dropout acts.
    """
    backend = keras.config.backend()
    if backend == "torch":
        return traced_by_torch()
    if backend == "jax":
        return "graph" if any(_is_symbolic(size) for size in sequences.shape) else None
    import tensorflow as tf

    if training or not tf.inside_function() or tf.config.list_physical_devices("GPU"):
        return None
    return "graph"


def traced_by_torch():
    """Return how PyTorch traces what runs now: None, "torchscript" or "graph"."""
    if keras.config.backend() != "torch":
        return None
    import torch

    if torch.jit.is_tracing():
        return "torchscript"
    # PyTorch 2.6 does not tell an export from a compilation.
    exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
    return "graph" if exporting() else None


def _is_symbolic(size):
    from jax import export

    return export.is_symbolic_dim(size)


def may_become_a_file(training):
    """Return whether a value of weights alone is to be computed by common operations.

    A file lacks matrix exponentials and linear solvers. On JAX and TensorFlow every call of
    inference may be traced for one. What a scripted loop needs is computed before.

    Args:
        training: bool, whether the call trains.
    """
    backend = keras.config.backend()
    if backend == "torch":
        return traced_by_torch() == "graph"
    if training or backend == "jax":
        return not training
    import tensorflow as tf

    return tf.inside_function()
