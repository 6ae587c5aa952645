"""Echo states and sparse units: their spectra and their counts."""

import inspect

import keras
import numpy as np
import pytest
from harness import array

from papers.initializers import EchoState, SparseUnits

SHAPES = {EchoState: (20, 20), SparseUnits: (30, 12)}


@pytest.mark.parametrize(("initializer", "shape"), SHAPES.items(), ids=lambda v: str(v))
def test_initializers_are_saved_with_their_seed(initializer, shape):
    one, other = (array(initializer(seed=s)(shape)) for s in (1, 2))
    assert one.shape == shape and np.abs(one - other).max() > 0.1
    again = keras.initializers.get(keras.initializers.serialize(initializer(seed=1)))
    np.testing.assert_array_equal(array(again(shape)), one)


@pytest.mark.parametrize(
    "initializer", [EchoState(3, 0.7, seed=4), SparseUnits(3, 0.7, 0.2, seed=4)]
)
def test_config_has_every_argument(initializer):
    config = initializer.get_config()
    values = dict(zip(inspect.signature(type(initializer)).parameters, [3, 0.7, 0.2, 4]))
    values["seed"] = 4
    assert config == values
    again = type(initializer).from_config(config)
    np.testing.assert_array_equal(array(again((6, 6))), array(initializer((6, 6))))


@pytest.mark.parametrize("radius", [0.5, 1.1])
@pytest.mark.parametrize("units", [1, 14, 16, 100])
def test_spectral_radius_and_inputs_of_an_echo_state(units, radius):
    kernel = array(EchoState(spectral_radius=radius, seed=units)((units, units)))
    eigenvalues = np.linalg.eigvals(kernel.astype("float64"))
    assert np.abs(eigenvalues).max() == pytest.approx(radius, rel=1e-5)
    np.testing.assert_array_equal(np.count_nonzero(kernel, axis=0), min(units, 15))


@pytest.mark.parametrize("fan_in", [1, 2])
def test_echo_states_of_few_inputs_have_their_radius(fan_in):
    for seed in range(10):
        kernel = array(EchoState(fan_in, seed=seed)((7, 7)))
        np.testing.assert_array_equal(np.count_nonzero(kernel, axis=0), fan_in)
        assert np.abs(np.linalg.eigvals(kernel)).max() == pytest.approx(1.1, rel=1e-3)


@pytest.mark.parametrize("inputs", [14, 784])
def test_connections_of_sparse_units(inputs):
    kernel = array(SparseUnits(seed=1)((inputs, 40)))
    np.testing.assert_array_equal(np.count_nonzero(kernel, axis=0), min(inputs, 15))
    kernel = array(SparseUnits(connections=3, seed=1)((inputs, 40)))
    np.testing.assert_array_equal(np.count_nonzero(kernel, axis=0), min(inputs, 3))


@pytest.fixture
def stats():
    return pytest.importorskip("scipy.stats", reason="it tests distributions")


@pytest.mark.parametrize(
    ("initializer", "stddev"),
    [(SparseUnits(seed=5), 1), (SparseUnits(stddev=2, scale=0.25, seed=5), 0.5)],
)
def test_weights_are_normal_and_their_places_uniform(initializer, stddev, stats):
    """Places that depended on the weights, by one seed for both, would skew the weights."""
    kernel = array(initializer((200, 300)))
    assert stats.kstest(kernel[kernel != 0], "norm", (0, stddev)).pvalue > 0.01
    assert stats.chisquare(np.count_nonzero(kernel, axis=1)).pvalue > 0.01
    for shift in (1, 7):  # no two units have the same inputs
        assert np.any((kernel != 0) != (np.roll(kernel, shift, axis=1) != 0), axis=0).all()


def test_an_echo_state_is_a_scaled_normal_matrix(stats):
    kernel = array(EchoState(fan_in=100, seed=2)((100, 100)))
    assert stats.kstest(kernel.ravel() / kernel.std(), "norm").pvalue > 0.01
    sparse = array(EchoState(seed=2)((100, 100)))
    ratio = kernel[sparse != 0] / sparse[sparse != 0]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: EchoState(fan_in=0), "`fan_in` must be a positive integer"),
        (lambda: EchoState(spectral_radius=0), r"`spectral_radius` must be a number in \(0, "),
        (lambda: SparseUnits(connections=1.5), "`connections` must be a positive integer"),
        (lambda: SparseUnits(stddev=-1), r"`stddev` must be a number in \(0, "),
        (lambda: SparseUnits(scale=0), r"`scale` must be a number in \(0, "),
        (lambda: EchoState()((4, 5)), r"`shape` must be \(units, units\)"),
        (lambda: EchoState()((0, 0)), r"`shape` must be \(units, units\)"),
        (lambda: EchoState()((4,)), r"`shape` must be \(units, units\)"),
        (lambda: SparseUnits()((4,)), r"`shape` must be \(inputs, units\)"),
    ],
)
def test_bad_arguments_are_refused(create, message):
    with pytest.raises(ValueError, match=message + ".*Received: "):
        create()
