"""The suite runs on the backend that KERAS_BACKEND names."""

import gc
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# Read when a backend starts, so set before one is imported. A setting from outside stays.
CACHE = Path(__file__).parent / ".pytest_cache" / "jax"
SURROUNDINGS = {
    # PyTorch slows a hundredfold where several processes have as many threads as cores each.
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # On JAX compiling takes most of the time: compile quickly, and each program once.
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_COMPILATION_CACHE_DIR": str(CACHE),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
for name, value in SURROUNDINGS.items():
    os.environ.setdefault(name, value)

# Keras is imported where it is needed: what starts xdist's workers has no use for it.


def pytest_sessionstart(session):
    """Compile the native kernel before xdist's workers would, each for itself."""
    config = session.config
    has_workers = getattr(config.option, "numprocesses", None)
    if has_workers and config.args == config.getini("testpaths") and find_spec("numba"):
        code = "from keras_momentum_rnn.paths.native import runtime; runtime.compiles({!r})"
        commands = [[sys.executable, "-c", code.format(r)] for r in ("lstm", "nested_lstm")]
        for process in [subprocess.Popen(c, cwd=Path(__file__).parent) for c in commands]:
            process.wait()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark slow tests, and leave out those of another backend: tests/selection.py has both."""
    import keras
    import selection

    backend = keras.config.backend()
    here, elsewhere = selection.select(items, backend)
    whole_files = not any("::" in argument for argument in config.args)
    if whole_files and backend == "torch" and (stale := selection.stale(items)):
        raise pytest.UsageError(f"Lines of tests/selection.py fit no test: {stale}")
    items[:] = here
    config.hook.pytest_deselected(items=elsewhere)


def pytest_make_parametrize_id(val):
    """Name the rows of tests/cases.py."""
    return val.id if type(val).__name__ == "Case" else None


def start_afresh():
    """Seed as `keras.utils.set_random_seed`, which would import TensorFlow on each backend."""
    import keras
    import numpy as np

    # Keras seeds what it draws with by Python's `random`.
    keras.utils.clear_session(free_memory=False)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002, Keras draws from it
    backend = keras.config.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        tf.random.set_seed(0)
    elif backend == "torch":
        import torch

        torch.manual_seed(0)


@pytest.fixture(scope="module", autouse=True)
def _small_heap():
    """Spare the collections of a file, one for each model of a search, all that came before.

    JAX's compiled programs are dropped: thousands of them exhaust a process.
    """
    import keras

    gc.collect()
    gc.freeze()
    yield
    if keras.config.backend() == "jax":
        import jax

        jax.clear_caches()


@pytest.fixture
def no_native_kernel(monkeypatch):
    """The other paths, without the one that would take most of their calls."""
    from keras_momentum_rnn.paths.native.runtime import SWITCH

    monkeypatch.setenv(SWITCH, "0")


@pytest.fixture(params=["native", "cpu", "gpu"])
def device(request, monkeypatch):
    """The device that plans see. On a CPU the kernels of a GPU compute the same, slowly."""
    from harness import cudnn_of_jax

    from keras_momentum_rnn.paths.devices import computes_on_host
    from keras_momentum_rnn.paths.native.runtime import SWITCH

    if request.param == "native":
        pytest.importorskip("numba", reason="the native kernel needs it")
        if not computes_on_host():
            pytest.skip("the native kernel reads the memory of a CPU")
        monkeypatch.delenv(SWITCH, raising=False)
    else:
        monkeypatch.setenv(SWITCH, "0")
    seen = "gpu" if request.param == "gpu" else "cpu"
    monkeypatch.setattr("keras_momentum_rnn.recurrent.current_device", lambda: seen)
    with cudnn_of_jax():
        yield request.param


@pytest.fixture(autouse=True)
def _fresh_keras():
    """No test leaves a dtype policy, names or random numbers behind."""
    import keras

    start_afresh()
    yield
    keras.config.set_dtype_policy("float32")
