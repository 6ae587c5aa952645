"""How Sutskever et al. (2013) start recurrent and deep networks."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.checks import checked, checked_count


@keras.saving.register_keras_serializable(package="papers")
class EchoState(keras.initializers.RandomNormal):
    """Recurrent kernel of an echo-state network: few inputs a unit, a chosen spectral radius.

    ```
    U = spectral_radius W / max |eigenvalue of W|
    W[:, j]: `fan_in` entries drawn from N(0, 1) at random places, the others 0
    ```

    With tanh units, a radius below 1 forgets and one far above 1 is chaotic. Slightly above 1
    the states oscillate and gradients hardly explode.

    Args:
        fan_in: positive integer, units that feed a unit; all of them where there are fewer.
            Defaults to 15.
        spectral_radius: number > 0. Defaults to 1.1.
        seed: int, or None for one drawn from Python's generator. Defaults to None.

    Raises:
        ValueError: if an argument lies outside its range, or when called with a shape other
            than `(units, units)`.

    Example:

    >>> import keras
    >>> from papers.initializers import EchoState
    >>> layer = keras.layers.SimpleRNN(100, recurrent_initializer=EchoState(seed=0))

    Reference: Sutskever, Martens, Dahl and Hinton (2013), "On the importance of initialization
    and momentum in deep learning", section 4.1 and Table 4, after Jaeger and Haas (2004).
    """

    def __init__(
        self, fan_in: int = 15, spectral_radius: float = 1.1, seed: int | None = None
    ) -> None:
        super().__init__(seed=seed)
        self.fan_in = checked_count("fan_in", fan_in)
        self.spectral_radius = checked("spectral_radius", spectral_radius, above=0)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        if len(shape) != 2 or shape[0] != shape[1] or not shape[0]:
            raise ValueError(
                "`shape` must be (units, units) with at least one unit. "
                f"Received: shape={shape}"
            )
        kernel = sparse_normal(shape, self.fan_in, self.seed)
        # In NumPy: JAX has no eigenvalues of such matrices on a GPU.
        eigenvalues = np.linalg.eigvals(ops.convert_to_numpy(kernel).astype("float64"))
        scale = self.spectral_radius / np.abs(eigenvalues).max()
        return ops.cast(kernel * float(scale), dtype or keras.config.floatx())

    def get_config(self) -> dict[str, Any]:
        numbers = {"fan_in": self.fan_in, "spectral_radius": self.spectral_radius}
        return {**numbers, "seed": super().get_config()["seed"]}


@keras.saving.register_keras_serializable(package="papers")
class SparseUnits(keras.initializers.RandomNormal):
    """Sparse initialization of dense kernels: equally few incoming weights for each unit.

    ```
    W[:, j]: `connections` entries scale N(0, 1) at random places, the others 0
    ```

    For sigmoid units with zero biases. Tanh units behave alike with `scale=0.25` and biases
    that start at 0.5.

    Args:
        connections: positive integer, incoming weights of a unit; all of them where there are
            fewer inputs. Defaults to 15.
        scale: number > 0, by which the weights are multiplied. Defaults to 1.
        seed: int, or None for one drawn from Python's generator. Defaults to None.

    Raises:
        ValueError: if an argument lies outside its range, or when called with a shape other
            than `(inputs, units)`.

    Example:

    >>> import keras
    >>> from papers.initializers import SparseUnits
    >>> sigmoid = keras.layers.Dense(400, "sigmoid", kernel_initializer=SparseUnits())
    >>> tanh = keras.layers.Dense(
    ...     400,
    ...     "tanh",
    ...     kernel_initializer=SparseUnits(scale=0.25),
    ...     bias_initializer=keras.initializers.Constant(0.5),
    ... )

    Reference: Martens (2010), "Deep learning via Hessian-free optimization", as in Sutskever
    et al. (2013), section 3.1; the scale is that of their Table 3.
    """

    def __init__(
        self, connections: int = 15, scale: float = 1.0, seed: int | None = None
    ) -> None:
        super().__init__(seed=seed)
        self.connections = checked_count("connections", connections)
        self.scale = checked("scale", scale, above=0)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Any:
        if len(shape) != 2:
            raise ValueError(f"`shape` must be (inputs, units). Received: shape={shape}")
        kernel = sparse_normal(shape, self.connections, self.seed)
        return ops.cast(kernel * self.scale, dtype or keras.config.floatx())

    def get_config(self) -> dict[str, Any]:
        numbers = {"connections": self.connections, "scale": self.scale}
        return {**numbers, "seed": super().get_config()["seed"]}


def sparse_normal(shape: tuple[int, ...], connections: int, seed: int) -> Any:
    """Return a matrix with so many normal numbers in each column, at random rows, and zeros."""
    # One draw for both: two with the same seed would place the numbers by their size.
    values, order = keras.random.normal((2, *shape), dtype="float32", seed=seed)
    rank = np.argsort(np.argsort(ops.convert_to_numpy(order), axis=0), axis=0)
    return ops.where(ops.convert_to_tensor(rank < connections), values, 0.0)
