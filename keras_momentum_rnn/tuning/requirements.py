"""What a search needs beside Keras."""

import importlib.util

import keras

MODULES = {
    "keras_tuner": "keras-tuner",
    "matplotlib": "matplotlib",
    "rich": "rich",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
}


def check():
    """Raise an `ImportError` that says what to install, if a search would lack something."""
    needed = dict(MODULES)
    if keras.config.backend() == "tensorflow":
        # keras-tuner imports it in every trial on this backend, and does not require it.
        needed["tensorboard"] = "tensorboard"
    missing = [name for module, name in needed.items() if not found(module)]
    if missing:
        raise ImportError(
            f"keras_momentum_rnn.tuning needs {', '.join(missing)}. Install all that a search "
            "needs with: pip install 'keras-momentum-rnn[tuner]'"
        )


def found(module):
    return importlib.util.find_spec(module) is not None
