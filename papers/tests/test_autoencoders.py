"""Deep autoencoders: the images of curves, the layers and the errors."""

import itertools

import keras
import numpy as np
import pytest
from harness import array

from papers.autoencoders import (
    WIDTHS,
    cross_entropy,
    curves,
    deep_autoencoder,
    squared_error,
)


def test_an_image_is_the_distance_to_a_parabola_through_its_points():
    images = curves(6, seed=3).reshape(6, 28, 28)
    points = np.random.default_rng(3).uniform(4, 23, size=(6, 3, 2))
    rows, columns = np.mgrid[:28, :28]
    for image, three in zip(images, points):
        x, y = (
            np.polyval(np.polyfit([0, 0.5, 1], c, 2), np.linspace(0, 1, 3000)) for c in three.T
        )
        squared = (rows[..., None] - y) ** 2 + (columns[..., None] - x) ** 2
        np.testing.assert_allclose(image, np.exp(-squared.min(-1) / (2 * 0.8**2)), atol=0.05)
        for x, y in three:  # within half a pixel of its points an image is dark
            assert image[round(y), round(x)] > 0.6


def test_curves_are_seeded_lie_in_the_image_and_differ():
    images = curves(300, seed=1)
    assert images.shape == (300, 784) and images.dtype == "float32"
    assert images.min() >= 0 and 0.99 < images.max() <= 1
    np.testing.assert_array_equal(curves(70, seed=1), images[:70])  # across a block
    assert len(np.unique(images, axis=0)) == 300
    assert np.abs(curves(300, seed=2) - images).max() > 0.9
    frames = images.reshape(300, 28, 28)
    assert max(frames[:, [0, -1]].max(), frames[:, :, [0, -1]].max()) < 0.1


def test_widths_of_the_paper():
    encoders = {name: "-".join(map(str, widths)) for name, widths in WIDTHS.items()}
    assert encoders == {
        "curves": "784-400-200-100-50-25-6",
        "mnist": "784-1000-500-250-30",
        "faces": "625-2000-1000-500-30",
    }


def test_layers_are_mirrored_sparse_and_start_apart():
    model = deep_autoencoder((30, 20, 20, 8))
    widths = [30, 20, 20, 8, 20, 20, 30]
    assert [layer.kernel.shape for layer in model.layers] == list(itertools.pairwise(widths))
    for layer in model.layers:
        assert layer.activation is keras.activations.sigmoid
        assert not array(layer.bias).any()
        kernel = array(layer.kernel)
        np.testing.assert_array_equal(np.count_nonzero(kernel, axis=0), min(15, len(kernel)))
    assert not np.array_equal(array(model.layers[1].kernel), array(model.layers[4].kernel))


def test_scale_code_and_output():
    keras.utils.set_random_seed(4)
    plain = deep_autoencoder((30, 20, 8))
    keras.utils.set_random_seed(4)
    other = deep_autoencoder((30, 20, 8), scale=4, code="linear", output="linear")
    names = [layer.activation.__name__ for layer in other.layers]
    assert names == ["sigmoid", "linear", "sigmoid", "linear"]
    for one, four in zip(plain.layers, other.layers):
        np.testing.assert_allclose(array(four.kernel), 4 * array(one.kernel), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"widths": (784,)}, "`widths` must be two numbers or more"),
        ({"widths": (784, 0)}, "`widths` must be a positive integer"),
        ({"widths": (9, 2), "scale": 0}, r"`scale` must be a number in \(0, infinity\)"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message + ".* Received: "):
        deep_autoencoder(**arguments)


def test_errors_are_sums_over_pixels():
    rng = np.random.default_rng(5)
    y, p = (rng.uniform(0.1, 0.9, size=(4, 30)).astype("float32") for _ in range(2))
    np.testing.assert_allclose(array(squared_error(y, p)), ((y - p) ** 2).sum(1), rtol=1e-5)
    entropy = -(y * np.log(p) + (1 - y) * np.log(1 - p)).sum(axis=1)
    np.testing.assert_allclose(array(cross_entropy(y, p)), entropy, rtol=1e-5)
    model = keras.Sequential([keras.Input((30,)), keras.layers.Activation("linear")])
    model.compile(loss=squared_error)
    assert model.evaluate(p, y, verbose=0) == pytest.approx(((y - p) ** 2).sum(1).mean())
