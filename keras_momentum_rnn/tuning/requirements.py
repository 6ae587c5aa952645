"""What a search needs beside Keras."""

import keras

from keras_momentum_rnn import requirements

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
    requirements.check("keras_momentum_rnn.tuning", "tuner", needed)
