"""Initializers: what every one keeps to."""

import keras
import numpy as np
import pytest
from harness import array

from keras_momentum_rnn.initializers import (
    CayleySkew,
    ForgetGateBias,
    HenaffSkew,
)

SHAPES = {
    HenaffSkew: (21,),
    CayleySkew: (21,),
}


@pytest.mark.parametrize(("initializer", "shape"), SHAPES.items(), ids=lambda v: str(v))
def test_initializers_follow_keras(initializer, shape):
    one, same, other = (array(initializer(seed=s)(shape)) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert one.shape == shape and np.abs(one - other).max() > 0.1
    keras.utils.set_random_seed(3)
    free = initializer()
    np.testing.assert_array_equal(array(free(shape)), array(free(shape)))
    assert np.abs(array(free(shape)) - array(initializer()(shape))).max() > 0.1
    # A copy of an initializer without a seed draws its own; of one with a seed, the same.
    assert free.get_config()["seed"] is None
    again = keras.initializers.get(keras.initializers.serialize(initializer(seed=1)))
    np.testing.assert_array_equal(array(again(shape)), one)
    by_name = keras.initializers.get(f"keras_momentum_rnn>{initializer.__name__}")
    assert type(by_name) is initializer
    half = initializer(seed=1)(shape, dtype="float16")
    assert keras.backend.standardize_dtype(half.dtype) == "float16"
    np.testing.assert_allclose(array(half), one, atol=4e-3)


@pytest.mark.parametrize("seed", ["x", float("nan"), 2.5, True, [1]])
@pytest.mark.parametrize("initializer", SHAPES)
def test_seeds_that_are_no_integers_are_refused(initializer, seed):
    with pytest.raises(
        ValueError, match=r"`seed` must be an integer or None\. Received: seed="
    ):
        initializer(seed=seed)
    assert initializer(seed=np.int64(3)).get_config()["seed"] == 3
    assert array(initializer(seed=np.int64(3))(SHAPES[initializer])).any()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.5", None])
def test_a_forget_gate_bias_is_a_finite_number(value):
    with pytest.raises(ValueError, match=r"`value` must be a number.*Received: value="):
        ForgetGateBias(value)
