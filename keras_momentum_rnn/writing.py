"""The former name of `keras_momentum_rnn.atomic_files`."""

from keras_momentum_rnn.atomic_files import (  # noqa: F401
    differences,
    read_json,
    read_results,
    replaced,
    write_json,
)
