"""The suite runs on the backend that KERAS_BACKEND names."""

import gc

import keras
import pytest


@pytest.fixture(scope="module", autouse=True)
def _small_heap():
    """Spare the collections of a file, one for each model of a search, all that came before.

    JAX's compiled programs are dropped: thousands of them exhaust a process.
    """
    gc.collect()
    gc.freeze()
    yield
    if keras.config.backend() == "jax":
        import jax

        jax.clear_caches()


@pytest.fixture(autouse=True)
def _fresh_keras():
    """No test leaves a dtype policy or names behind."""
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")
    keras.utils.clear_session(free_memory=False)
