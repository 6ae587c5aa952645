"""Initializers of an LSTM's bias, and of S.

S is the skew-symmetric matrix of an orthogonal layer. Its initializers draw it packed, as the
numbers above its diagonal, row by row. They read units from the shape,
`(units (units - 1) / 2,)`.
"""

import math
import random
from typing import Any

import keras
from keras import ops

from keras_momentum_rnn.annotations import Tensor
from keras_momentum_rnn.checks import checked, checked_seed
from keras_momentum_rnn.rotations import packed_size
from keras_momentum_rnn.rules import register

__all__ = ["ForgetGateBias", "HenaffSkew", "CayleySkew"]


@register
class ForgetGateBias(keras.initializers.Initializer):
    """The bias of an LSTM: a number at the forget gate, zero at the other gates.

    ```
    b = [0, value, 0, 0]  for the gates i, f, c, o
    ```

    For `bias_initializer`, with `unit_forget_bias=False`, of `keras.layers.LSTM` and of the
    LSTM family here, whose recurrent bias it starts too.

    Args:
        value: float, at the forget gate. Defaults to 1.

    Raises:
        ValueError: if `value` is no finite number, or when called with a shape other than
            `(4 units,)`.

    Example:

    >>> import keras
    >>> from keras_momentum_rnn.initializers import ForgetGateBias
    >>> keras.ops.convert_to_numpy(ForgetGateBias(-4)((8,))).tolist()
    [0.0, 0.0, -4.0, -4.0, 0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, value: float = 1.0) -> None:
        self.value = checked("value", value, above=-math.inf)

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        shape = tuple(shape)
        if len(shape) != 1 or shape[0] % 4:
            raise ValueError(f"`shape` must be (4 units,). Received: shape={shape}")
        units = shape[0] // 4
        dtype = keras.backend.standardize_dtype(dtype)
        gate = ops.full((units,), self.value, dtype=dtype)
        others = ops.zeros((2 * units,), dtype=dtype)
        return ops.concatenate([others[:units], gate, others])

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value}


def units_of(shape: tuple[int, ...]) -> int:
    """Return how many rows a skew-symmetric matrix has whose packed numbers have this shape."""
    if len(shape) == 1:
        units = (1 + math.isqrt(1 + 8 * shape[0])) // 2
        if packed_size(units) == shape[0]:
            return units
    raise ValueError(
        "`shape` must be (n,) with n = units (units - 1) / 2, as many numbers as stand above "
        f"the diagonal of a square matrix. Received: shape={shape}"
    )


class BlockSkew(keras.initializers.Initializer):
    """S of 2x2 blocks along the diagonal, `[[0, s], [-s, 0]]`, each with a number of its own.

    With odd units the last row and column are zero.

    Args:
        seed: int, or None for one drawn from Python's generator, which
            `keras.utils.set_random_seed` sets. One initializer draws the same numbers at
            every call.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._given_seed = checked_seed(seed)
        self.seed = random.randint(1, 10**9) if seed is None else self._given_seed

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Return a tensor.

        Args:
            shape: tuple of ints.
            dtype: a float dtype. Defaults to `keras.config.floatx()`.

        Raises:
            ValueError: if the shape is none of those that the initializer fills.
        """
        shape, dtype = tuple(shape), keras.backend.standardize_dtype(dtype)
        units = units_of(shape)
        # The rows 2i, whose first number belongs to a block.
        places = [[row * units - row * (row + 1) // 2] for row in range(0, units - 1, 2)]
        if not places:
            return ops.zeros((0,), dtype=dtype)
        half = dtype in ("float16", "bfloat16")
        values = self.draw_blocks(len(places), "float32" if half else dtype)
        places = ops.convert_to_tensor(places, dtype="int32")
        return ops.cast(ops.scatter(places, values, shape), dtype)

    def draw_blocks(self, count: int, dtype: Any) -> Tensor:
        """Return `count` numbers s, in float32 or float64."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return {"seed": self._given_seed}


@register
class HenaffSkew(BlockSkew):
    """2x2 blocks of angles drawn uniformly from (-pi, pi).

    ```
    S = blocks [[0, s], [-s, 0]],  s ~ U(-pi, pi)
    ```

    exp(S) turns each plane by its own s.

    Args:
        seed: int, or None for one drawn from Python's generator. Defaults to None.

    Raises:
        ValueError: when called with a shape other than `(units (units - 1) / 2,)`.

    Example:

    >>> from keras_momentum_rnn.initializers import HenaffSkew
    >>> tuple(HenaffSkew(seed=0)((6,)).shape)  # 4 units
    (6,)

    Reference: Henaff, Szlam and LeCun (2016), "Recurrent orthogonal networks and long-memory
    tasks"; in this form Lezcano-Casado and Martinez-Rubio (2019).
    """

    def draw_blocks(self, count: int, dtype: Any) -> Tensor:
        return keras.random.uniform((count,), -math.pi, math.pi, dtype=dtype, seed=self.seed)


@register
class CayleySkew(BlockSkew):
    """2x2 blocks of the Cayley transform's numbers for angles from (0, pi / 2).

    ```
    S = blocks [[0, s], [-s, 0]],  s = -sqrt((1 - cos a) / (1 + cos a)),  a ~ U(0, pi / 2)
    ```

    s is `-tan(a / 2)`: the Cayley transform turns each plane by a, exp(S) by s, as in the code
    of DTRIV, which draws the same S for both.

    Args:
        seed: int, or None for one drawn from Python's generator. Defaults to None.

    Raises:
        ValueError: when called with a shape other than `(units (units - 1) / 2,)`.

    Example:

    >>> from keras_momentum_rnn.initializers import CayleySkew
    >>> tuple(CayleySkew(seed=0)((6,)).shape)  # 4 units
    (6,)

    Reference: Helfrich, Willmott and Ye (2018), "Orthogonal recurrent neural networks with
    scaled Cayley transform".
    """

    def draw_blocks(self, count: int, dtype: Any) -> Tensor:
        angle = keras.random.uniform((count,), 0, math.pi / 2, dtype=dtype, seed=self.seed)
        return -ops.sqrt((1 - ops.cos(angle)) / (1 + ops.cos(angle)))
