"""Deep autoencoders: their layers, their error, and the images of curves."""

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.checks import checked, checked_count
from keras_momentum_rnn.initializers import SparseUnits

# Table 6 of Sutskever et al. (2013): the encoders, from the pixels to the code.
WIDTHS = {
    "curves": (784, 400, 200, 100, 50, 25, 6),
    "mnist": (784, 1000, 500, 250, 30),
    "faces": (625, 2000, 1000, 500, 30),
}
SIDE = 28
MARGIN = 4.5
PEN = 0.8
SAMPLES = 160
BLOCK = 64


def deep_autoencoder(widths, scale=1.0, code="sigmoid", output="sigmoid"):
    """Return a model that reconstructs its input through a narrow code.

    ```
    encoder: widths[0] -> widths[1] -> ... -> widths[-1]; decoder: the same, backwards
    ```

    Kernels are `SparseUnits`, 15 incoming weights a unit; biases start at zero.

    Args:
        widths: sequence of at least two positive integers, from the pixels to the code.
        scale: number > 0, of the initial weights. Defaults to 1.
        code: activation of the code. Defaults to `"sigmoid"`, which the paper names for all
            units; Hinton and Salakhutdinov (2006) have a linear code.
        output: activation of the reconstruction. Defaults to `"sigmoid"`, for pixels in
            [0, 1].

    Raises:
        ValueError: if an argument lies outside its range.

    Example:

    >>> from autoencoders import deep_autoencoder
    >>> model = deep_autoencoder((784, 50, 6))  # that of the paper: WIDTHS["curves"]
    >>> [layer.units for layer in model.layers]
    [50, 6, 50, 784]

    Reference: Sutskever, Martens, Dahl and Hinton (2013), section 3 and Table 6.
    """
    widths = [checked_count("widths", width) for width in widths]
    if len(widths) < 2:
        raise ValueError(f"`widths` must be two numbers or more. Received: widths={widths}")
    scale = checked("scale", scale, above=0)
    mirrored = widths[1:] + widths[-2::-1]
    activations = ["sigmoid"] * len(mirrored)
    activations[len(widths) - 2], activations[-1] = code, output
    layers = [
        keras.layers.Dense(units, activation, kernel_initializer=SparseUnits(scale=scale))
        for units, activation in zip(mirrored, activations)
    ]
    return keras.Sequential([keras.Input((widths[0],)), *layers])


def squared_error(y_true, y_pred):
    """Squared error of each case, summed over its pixels: the paper's training error.

    Args:
        y_true, y_pred: tensors `(batch, pixels)`.

    Returns:
        A tensor `(batch,)`; the model's loss is its mean.

    Example:

    >>> import numpy as np
    >>> from autoencoders import squared_error
    >>> float(squared_error(np.zeros((1, 784)), np.full((1, 784), 0.5))[0])
    196.0
    """
    return ops.sum(ops.square(y_pred - y_true), axis=-1)


def cross_entropy(y_true, y_pred):
    """Cross-entropy of each case, summed over its pixels, which lie in [0, 1].

    Args:
        y_true, y_pred: tensors `(batch, pixels)`.

    Returns:
        A tensor `(batch,)`.
    """
    pixels = ops.shape(y_true)[-1]
    return pixels * keras.losses.binary_crossentropy(y_true, y_pred)


def curves(count=20_000, seed=0):
    """Draw images of smooth random curves through three points.

    ```
    p(s) = (1 - s)(1 - 2s) p_0 + 4s(1 - s) p_1 + s(2s - 1) p_2,   0 <= s <= 1
    ```

    p_0, p_1 and p_2, which it meets at s = 0, 1/2 and 1, are uniform in the 19 by 19 pixels
    around the centre of the 28 by 28. The pen is a Gaussian with a standard deviation of 0.8
    pixels. Six numbers determine an image, as many as the code of the autoencoder has.

    Args:
        count: positive integer. Defaults to 20,000, as in the paper.
        seed: int. Defaults to 0. The first images of a seed do not depend on the count.

    Returns:
        A float32 array `(count, 784)` in [0, 1], row by row.

    Raises:
        ValueError: if `count` is no positive integer.

    Example:

    >>> from autoencoders import curves
    >>> curves(3).shape
    (3, 784)

    Reference: after Hinton and Salakhutdinov (2006), "Reducing the dimensionality of data with
    neural networks", who publish neither the kind of curve nor the pen.
    """
    rng = np.random.default_rng(seed)
    count = checked_count("count", count)
    points = rng.uniform(MARGIN - 0.5, SIDE - MARGIN - 0.5, size=(count, 3, 2))
    images = np.empty((count, SIDE, SIDE), "float32")
    for first in range(0, count, BLOCK):  # blocks that fit into the CPU cache
        images[first : first + BLOCK] = _drawn(points[first : first + BLOCK])
    return images.reshape(count, SIDE * SIDE)


def _drawn(points):
    """Return the images of points, (count, 3, 2)."""
    s = np.linspace(0, 1, SAMPLES)
    basis = np.stack([(1 - s) * (1 - 2 * s), 4 * s * (1 - s), s * (2 * s - 1)])
    way = np.einsum("npd,ps->sdn", points, basis).astype("float32")
    pixels = np.arange(SIDE, dtype="float32")[:, None]
    nearest = np.full((SIDE, SIDE, len(points)), np.inf, "float32")
    for place in way:  # squared distances of all pixels to one point of each curve
        x, y = (pixels - place[:, None]) ** 2
        np.minimum(nearest, y[:, None] + x, out=nearest)
    return np.exp(nearest.transpose(2, 0, 1) / np.float32(-2 * PEN**2))
