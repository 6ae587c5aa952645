"""Deep autoencoders, the images of curves that they learn, and their error."""

import functools

import keras
import numpy as np
from keras import ops
from scipy.special import expit

from papers.initializers import SparseUnits
from papers.tasks import Batches, Split

# Table 6 of Sutskever et al. (2013): the encoders, from the pixels to the code.
WIDTHS = {"curves": (784, 400, 200, 100, 50, 25, 6), "mnist": (784, 1000, 500, 250, 30)}
IMAGES = {"curves": 20_000, "mnist": 60_000}
SIDE = 28
MARGIN = 4.5
PEN = 0.8
POINTS_OF_A_CURVE = 160
BLOCK = 64


@functools.cache
def curves(count, seed=0):
    """Draw images of smooth random curves through three points.

    ```
    p(s) = (1 - s)(1 - 2s) p_0 + 4s(1 - s) p_1 + s(2s - 1) p_2,   0 <= s <= 1
    ```

    p_0, p_1 and p_2, which it meets at s = 0, 1/2 and 1, are uniform in the 19 by 19 pixels
    around the centre of the 28 by 28. The pen is a Gaussian with a standard deviation of 0.8
    pixels. Six numbers determine an image, as many as the code of the autoencoder has.

    Args:
        count: positive integer. The first images of a seed do not depend on it.
        seed: int.

    Returns:
        A float32 array `(count, 784)` in [0, 1], row by row.

    Reference: after Hinton and Salakhutdinov (2006), "Reducing the dimensionality of data with
    neural networks", who publish neither the kind of curve nor the pen.
    """
    rng = np.random.default_rng(seed)
    points = rng.uniform(MARGIN - 0.5, SIDE - MARGIN - 0.5, size=(count, 3, 2))
    images = np.empty((count, SIDE, SIDE), "float32")
    for first in range(0, count, BLOCK):  # blocks that fit into the CPU cache
        images[first : first + BLOCK] = drawn(points[first : first + BLOCK])
    return images.reshape(count, SIDE * SIDE)


def drawn(points):
    """Return the images of points, (count, 3, 2)."""
    s = np.linspace(0, 1, POINTS_OF_A_CURVE)
    basis = np.stack([(1 - s) * (1 - 2 * s), 4 * s * (1 - s), s * (2 * s - 1)])
    way = np.einsum("npd,ps->sdn", points, basis).astype("float32")
    pixels = np.arange(SIDE, dtype="float32")[:, None]
    nearest = np.full((SIDE, SIDE, len(points)), np.inf, "float32")
    for place in way:  # squared distances of all pixels to one point of each curve
        x, y = (pixels - place[:, None]) ** 2
        np.minimum(nearest, y[:, None] + x, out=nearest)
    return np.exp(nearest.transpose(2, 0, 1) / np.float32(-2 * PEN**2))


def deep_autoencoder(widths, scale=1.0):
    """Return a model that reconstructs its input through a narrow code of sigmoid units.

    ```
    encoder: widths[0] -> widths[1] -> ... -> widths[-1]; decoder: the same, backwards
    ```

    Kernels are `SparseUnits`, 15 incoming weights a unit; biases start at zero. The outputs
    are logits of the pixels, so that the cross-entropy is convex in them.

    Args:
        widths: sequence of positive integers, from the pixels to the code.
        scale: number > 0, of the initial weights.
    """
    mirrored = [*widths[1:], *widths[-2::-1]]
    activations = ["sigmoid"] * (len(mirrored) - 1) + ["linear"]
    layers = [
        keras.layers.Dense(units, activation, kernel_initializer=SparseUnits(scale=scale))
        for units, activation in zip(mirrored, activations)
    ]
    return keras.Sequential([keras.Input((widths[0],)), *layers])


def cross_entropy(y_true, logits):
    """Return the cross-entropy of each case, summed over its pixels, which lie in [0, 1]."""
    each = keras.losses.binary_crossentropy(y_true, logits, from_logits=True)
    return each * ops.shape(y_true)[-1]


def squared_error(model, images):
    """Return the paper's error: squared, summed over pixels, the mean over images."""
    logits = model.predict(images, batch_size=1000, verbose=0)
    return float(np.mean(np.sum((expit(logits) - images) ** 2, axis=1), dtype="float64"))


def updates_of(images, batch_size, seed, first, last):
    """Return the `Batches` of some updates: every pass over the images has its own order.

    Args:
        images: array (images, pixels).
        batch_size: int.
        seed: int, of the orders.
        first, last: the updates, counted from 0; the last is not among them.
    """
    whole, passes = len(images) // batch_size, Split(images, images).batches(batch_size, seed)
    return Batches(last - first, lambda _, i: passes.batch(*divmod(first + i, whole)))
