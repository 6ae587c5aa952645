"""A recurrent language model that carries its states from one batch to the next."""

import math

import keras
from keras import ops

PACKAGE = "keras_momentum_rnn"


def language_model(symbols, layers, batch_size):
    """Return a model from integers (batch, time) to logits (batch, time, symbols).

    Args:
        symbols: int, how many there are.
        layers: recurrent layers; `Carried` runs a copy of each, with their states carried. The
            embedding, which is also the read-out, is as wide as the last.
        batch_size: int, the number of rows, fixed.

    Example:

    >>> import keras
    >>> from papers.tasks.language_model import language_model
    >>> layer = keras.layers.LSTM(16, return_sequences=True)
    >>> language_model(50, [layer], batch_size=4).output_shape
    (4, None, 50)
    """
    table = TiedEmbedding(symbols, layers[-1].units)
    tokens = keras.Input(batch_shape=(batch_size, None), dtype="int32")
    h = table(tokens)
    for layer in layers:
        h = Carried(layer)(h)
    return keras.Model(tokens, table(h, reverse=True))


@keras.saving.register_keras_serializable(package=PACKAGE)
class TiedEmbedding(keras.layers.Layer):
    """An embedding E that is also the read-out's kernel: x -> E[x], reversed h -> h E' + b.

    Args:
        symbols: int, rows of E.
        width: int, columns of E.
        **kwargs: as of any Keras layer.

    Call arguments:
        inputs: integers (batch, time), or, reversed, (batch, time, width).
        reverse: bool, whether to read out.
    """

    def __init__(self, symbols, width, **kwargs):
        super().__init__(**kwargs)
        self.symbols = symbols
        self.width = width

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            (self.symbols, self.width),
            keras.initializers.RandomUniform(-0.1, 0.1),
            name="embeddings",
        )
        self.bias = self.add_weight((self.symbols,), "zeros", name="bias")

    def call(self, inputs, reverse=False):
        table = ops.convert_to_tensor(self.embeddings)
        if reverse:
            return ops.matmul(inputs, ops.transpose(table)) + self.bias
        return ops.take(table, inputs, axis=0)

    def get_config(self):
        return {**super().get_config(), "symbols": self.symbols, "width": self.width}


@keras.saving.register_keras_serializable(package=PACKAGE)
class Carried(keras.layers.Layer):
    """Carry the states of a recurrent layer from one batch to the next.

    The states are weights that are not trained, since Keras's stateful layers lose theirs in
    `fit` on JAX and raise on PyTorch. Gradients stop at them. `ResetStates` sets them to zero.

    Args:
        layer: a recurrent layer, ours or Keras's. A copy of it runs, with
            `return_sequences` and `return_state`.
        **kwargs: as of any Keras layer.

    Call arguments:
        inputs: (batch, time, features), of a fixed batch size.
    """

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        config = {**layer.get_config(), "return_sequences": True, "return_state": True}
        self.layer = type(layer).from_config(config)

    def build(self, input_shape):
        self.layer.build(input_shape)
        self.states = [
            self.add_weight(
                tuple(state.shape),
                "zeros",
                dtype=keras.backend.standardize_dtype(state.dtype),
                trainable=False,
                autocast=False,
                name=f"state{i}",
            )
            for i, state in enumerate(self.layer.get_initial_state(input_shape[0]))
        ]

    def call(self, inputs, training=False):
        # PyTorch's `assign` writes into the tensor that the backward pass needs.
        states = [ops.copy(ops.convert_to_tensor(s)) for s in self.states]
        outputs, *states = self.layer(inputs, initial_state=states, training=training)
        for variable, state in zip(self.states, states):
            variable.assign(ops.stop_gradient(state))
        return outputs

    def reset_state(self):
        """Set the states to zero."""
        for variable in self.states:
            variable.assign(ops.zeros(variable.shape, dtype=variable.dtype))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:2], self.layer.units)

    def get_config(self):
        layer = keras.saving.serialize_keras_object(self.layer)
        return {**super().get_config(), "layer": layer}

    @classmethod
    def from_config(cls, config):
        layer = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**{**config, "layer": layer})


class ResetStates(keras.callbacks.Callback):
    """Start every epoch, evaluation and prediction with the states of `Carried` at zero."""

    def reset(self, *args, **kwargs):
        for layer in self.model.layers:
            if isinstance(layer, Carried):
                layer.reset_state()

    on_epoch_begin = on_test_begin = on_predict_begin = reset


@keras.saving.register_keras_serializable(package=PACKAGE)
class BitsPerCharacter(keras.metrics.Mean):
    """The mean cross-entropy of logits, over all characters, divided by log 2.

    Keras's own metric is a mean over rows of their means, in which the characters of a short
    batch count for more.

    Args:
        name: str. Defaults to `"bits_per_character"`.
        dtype: as of any Keras metric.

    Example:

    >>> import numpy as np
    >>> from papers.tasks.language_model import BitsPerCharacter
    >>> metric = BitsPerCharacter()
    >>> _ = metric.update_state(np.array([[3, 0, 4]]), np.zeros((1, 3, 8)))
    >>> round(float(metric.result()), 3)
    3.0
    """

    def __init__(self, name="bits_per_character", dtype=None):
        super().__init__(name, dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        losses = ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        if sample_weight is not None:
            sample_weight = ops.reshape(sample_weight, (-1,))
        return super().update_state(ops.reshape(losses, (-1,)), sample_weight)

    def result(self):
        return super().result() / math.log(2)
