"""What must be equal for runs to stand side by side."""

import sys

import keras

import keras_momentum_rnn


def surroundings():
    """Return backend, device and versions, a dict."""
    backend = keras.config.backend()
    return {
        "backend": backend,
        "device": str(keras.ops.zeros(1).device),
        "keras_momentum_rnn": keras_momentum_rnn.__version__,
        "keras": keras.__version__,
        backend: sys.modules[backend].__version__,
    }


def check_same(folder, different):
    """Raise a `ValueError` if lines, of `writing.differences`, say that settings differ."""
    if different:
        raise ValueError(
            f"{folder} holds runs with other settings; remove it or choose another output:"
            + "".join(dict.fromkeys(different))
        )
