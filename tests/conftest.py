"""The suite runs on the backend that KERAS_BACKEND names."""

import keras
import pytest


@pytest.fixture(autouse=True)
def _fresh_keras():
    """No test leaves a dtype policy or names behind."""
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")
    keras.utils.clear_session()
