"""The suite runs on the backend that KERAS_BACKEND names."""

import gc

import keras
import pytest


@pytest.fixture(scope="session", autouse=True)
def _frozen_imports():
    """Spare every collection a walk through the modules that stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _fresh_programs():
    """Drop JAX's compiled programs with each file, or thousands of them exhaust a process."""
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
    keras.utils.clear_session()
