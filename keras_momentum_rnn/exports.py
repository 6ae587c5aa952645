"""Whether a call is traced for a file, which a runtime of its own runs later.

A file must carry the call at other sizes than it was traced with, in few and common operations.
It needs no gradients.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import keras

from keras_momentum_rnn.annotations import Tensor


def traced_for_export(sequences: Tensor, training: bool) -> str | None:
    """Return how a call is traced for a file, or None.

    - "torchscript": PyTorch traces it for ONNX or OpenVINO, and would write down as many steps
      as the example has.
    - "open graph": `torch.export` traces it with an open length, and refuses a Python loop.
    - "served graph": a graph of TensorFlow for inference that is not run by Keras's `predict`
      or `evaluate`, on a CPU. On a GPU such a graph keeps its fused kernels.
    - "graph": any other graph. On JAX only an export has sizes that are no numbers. With sizes
      that are numbers, jax2onnx traces as `jit` does and knows no kernel of ours: where it is
      loaded, any trace of inference may be for a file.

    Args:
        sequences: tensor `(batch, time, features)`.
        training: bool, whether dropout acts.
    """
    backend = keras.config.backend()
    if backend == "torch":
        return traced_by_torch(sequences.shape[1])
    if backend == "jax":
        import jax
        from jax import export

        is_traced = isinstance(sequences, jax.core.Tracer)
        for_onnx = not training and "jax2onnx" in sys.modules and is_traced
        is_open = any(map(export.is_symbolic_dim, sequences.shape))
        return "graph" if for_onnx or is_open else None
    if backend != "tensorflow":
        return None
    import tensorflow as tf

    if training or tf.config.list_physical_devices("GPU"):
        return None
    return "served graph" if _may_be_served() else None


def _may_be_served() -> bool:
    """Return whether TensorFlow traces a graph that may be for a file.

    Keras's `predict` and `evaluate` run their graphs by a strategy, and an export does not.
    """
    import tensorflow as tf

    if not tf.inside_function():
        return False
    inside = tf.distribute.get_replica_context()
    return inside is None or inside is _no_replica()


@cache
def _no_replica() -> Any:
    """Return TensorFlow's replica context where no strategy runs anything: one for all."""
    import tensorflow as tf

    return outside_of_the_trace(tf.distribute.get_replica_context)


def traced_by_torch(length: int = 1) -> str | None:
    """Return how PyTorch traces what runs now, as `traced_for_export`, None elsewhere.

    Args:
        length: the number of steps.
    """
    if keras.config.backend() != "torch":
        return None
    import torch

    if torch.jit.is_tracing():
        return "torchscript"
    # PyTorch 2.6 does not tell an export from a compilation.
    exporting = getattr(torch.compiler, "is_exporting", None)
    if exporting is None or not exporting():
        return None
    is_open = isinstance(length, torch.SymInt) and hasattr(torch, "while_loop")
    return "open graph" if is_open else "graph"


def trace_may_train() -> bool:
    """Return whether what TorchScript traces now may be trained: no other file is in sight.

    Elsewhere weights are constants. OpenVINO does not tell, and knows few operations: where it
    is loaded, any trace may be for it.
    """
    import torch

    for_a_file = torch.onnx.is_in_onnx_export() or "openvino" in sys.modules
    return torch.jit.is_tracing() and not for_a_file


def may_become_a_file(training: bool) -> bool:
    """Return whether a value of weights alone is to be computed by common operations.

    A file lacks matrix exponentials and linear solvers. On JAX every call of inference may be
    traced for one, and OpenVINO's backend always compiles. On PyTorch such values are computed
    before.

    Args:
        training: bool, whether the call trains.
    """
    backend = keras.config.backend()
    if training or backend == "torch":
        return False
    return backend != "tensorflow" or _may_be_served()


def outside_of_the_trace(function: Callable[[], Any]) -> Any:
    """Return what a function returns where no trace sees it: a constant of a file.

    Traces of PyTorch and TensorFlow belong to threads, so it runs in another.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()
