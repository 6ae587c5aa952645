"""Echo states and sparse units: their spectra and their counts."""

import inspect

import keras
import numpy as np
import pytest
from harness import array
from scipy import stats

from papers.initializers import EchoState, SparseUnits


@pytest.mark.parametrize(
    "initializer", [EchoState(3, 0.7, seed=4), SparseUnits(3, 0.7, seed=4)]
)
def test_every_argument_and_the_seed_are_saved(initializer):
    config = initializer.get_config()
    arguments = inspect.signature(type(initializer)).parameters
    assert config == {**dict(zip(arguments, [3, 0.7, 0.2])), "seed": 4}
    again = keras.initializers.get(keras.initializers.serialize(initializer))
    kernel = array(initializer((20, 20)))
    np.testing.assert_array_equal(array(again((20, 20))), kernel)
    other = type(initializer).from_config({**config, "seed": 5})
    assert np.abs(array(other((20, 20))) - kernel).max() > 0.1


@pytest.mark.parametrize("radius", [0.5, 1.1])
@pytest.mark.parametrize(("units", "fan_in"), [(1, 15), (7, 1), (7, 2), (14, 15), (100, 15)])
def test_spectral_radius_and_inputs_of_an_echo_state(units, fan_in, radius):
    kernel = array(EchoState(fan_in, radius, seed=units)((units, units)))
    eigenvalues = np.linalg.eigvals(kernel.astype("float64"))
    assert np.abs(eigenvalues).max() == pytest.approx(radius, rel=1e-3)
    np.testing.assert_array_equal(np.count_nonzero(kernel, axis=0), min(units, fan_in))


@pytest.mark.parametrize(("inputs", "connections"), [(14, 15), (784, 15), (784, 3)])
def test_connections_of_sparse_units(inputs, connections):
    kernel = array(SparseUnits(connections, seed=1)((inputs, 40)))
    np.testing.assert_array_equal(np.count_nonzero(kernel, axis=0), min(inputs, connections))


@pytest.mark.parametrize(
    ("initializer", "stddev"),
    [(SparseUnits(seed=5), 1), (SparseUnits(scale=0.25, seed=5), 0.25)],
)
def test_weights_are_normal_and_their_places_uniform(initializer, stddev):
    """Places that depended on the weights, by one seed for both, would skew the weights."""
    kernel = array(initializer((200, 300)))
    assert stats.kstest(kernel[kernel != 0], "norm", (0, stddev)).pvalue > 0.01
    assert stats.chisquare(np.count_nonzero(kernel, axis=1)).pvalue > 0.01
    for shift in (1, 7):  # no two units have the same inputs
        assert np.any((kernel != 0) != (np.roll(kernel, shift, axis=1) != 0), axis=0).all()


def test_an_echo_state_is_a_scaled_normal_matrix():
    kernel = array(EchoState(fan_in=100, seed=2)((100, 100)))
    assert stats.kstest(kernel.ravel() / kernel.std(), "norm").pvalue > 0.01
    sparse = array(EchoState(seed=2)((100, 100)))
    ratio = kernel[sparse != 0] / sparse[sparse != 0]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: EchoState(fan_in=0), "`fan_in` must be a positive integer"),
        (
            lambda: EchoState(spectral_radius=0),
            r"`spectral_radius` must be a number in \(0, inf",
        ),
        (lambda: SparseUnits(connections=1.5), "`connections` must be a positive integer"),
        (lambda: SparseUnits(scale=-1), r"`scale` must be a number in \(0, inf"),
        (lambda: EchoState()((4, 5)), r"`shape` must be \(units, units\)"),
        (lambda: SparseUnits()((4,)), r"`shape` must be \(inputs, units\)"),
    ],
)
def test_bad_arguments_are_refused(create, message):
    with pytest.raises(ValueError, match=message + ".*Received: "):
        create()
