"""What a part of the library needs beside Keras."""

from importlib.util import find_spec

import keras

# The modules that a search needs, and the distributions that have them.
TUNING = {
    "keras_tuner": "keras-tuner",
    "pandas": "pandas",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
}
if keras.config.backend() == "tensorflow":
    # keras-tuner imports it in every trial on this backend, and does not require it.
    TUNING["tensorboard"] = "tensorboard"


def check(part, extra, modules):
    """Raise an `ImportError` that says what to install, if a module is missing.

    Args:
        part: what needs the modules, for the message.
        extra: the extra of this distribution that has them all.
        modules: dict from modules to the distributions that have them.
    """
    missing = [name for module, name in modules.items() if find_spec(module) is None]
    if missing:
        raise ImportError(
            f"{part} needs {', '.join(missing)} (extra `{extra}`). Install: "
            f"pip install {' '.join(missing)}"
        )
