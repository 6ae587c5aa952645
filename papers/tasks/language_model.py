"""A recurrent language model that carries its states, and its regularisation."""

import math
import random

import keras
from keras import ops

from keras_momentum_rnn.checks import checked

PACKAGE = "keras_momentum_rnn"

# The options of `language_model` for the paper's baseline on words, beside its layers of 1150,
# 1150 and 400 units: MomentumRNN appendix A.3 follows Merity et al. (2018).
REGULARISATION = {
    "row_dropout": 0.1,
    "input_dropout": 0.4,
    "layer_dropout": 0.25,
    "output_dropout": 0.4,
    "weight_dropout": 0.5,
    "activation_penalty": 2.0,
    "temporal_penalty": 1.0,
}


def language_model(
    symbols,
    layers,
    batch_size,
    embedding=None,
    tied=True,
    row_dropout=0.0,
    input_dropout=0.0,
    layer_dropout=0.0,
    output_dropout=0.0,
    weight_dropout=0.0,
    activation_penalty=0.0,
    temporal_penalty=0.0,
):
    """Return a model from integers (batch, time) to logits (batch, time, symbols).

    Args:
        symbols: int, how many there are.
        layers: recurrent layers; `Carried` runs a copy of each, with their states carried.
        batch_size: int, the number of rows, fixed.
        embedding: int, width of the embedding; None for that of the last layer.
        tied: bool, whether the read-out's kernel is the embedding, of the last layer's width.
        row_dropout: float in [0, 1), the share of symbols that are dropped from the
            embedding, each in the whole batch.
        input_dropout: float, of the embedded inputs. This and the next two drop the same
            entries at all steps.
        layer_dropout: float, between the layers.
        output_dropout: float, of what the read-out reads.
        weight_dropout: float, of the recurrent kernels, see `Carried`.
        activation_penalty: float a, which adds a mean(h^2) to the training loss, h what the
            read-out reads.
        temporal_penalty: float b, which adds b mean((h_t - h_{t-1})^2), h the last layer's
            output before its dropout.

    Raises:
        ValueError: if a rate is out of its range, or the read-out is tied and the embedding is
            not as wide as the last layer.

    Example:

    >>> import keras
    >>> from papers.tasks.language_model import language_model
    >>> layer = keras.layers.LSTM(16, return_sequences=True)
    >>> model = language_model(50, [layer], batch_size=4, weight_dropout=0.5)
    >>> model.output_shape
    (4, None, 50)

    Reference:
        Merity, Keskar, Socher (2018), Regularizing and Optimizing LSTM Language Models.
    """
    width = layers[-1].units
    embedding = width if embedding is None else embedding
    if tied and embedding != width:
        raise ValueError(
            f"`embedding` must be as wide as the last layer, {width}, where the read-out is "
            f"tied to it. Received: {embedding=}"
        )
    table = TiedEmbedding(symbols, embedding, dropout=row_dropout)
    tokens = keras.Input(batch_shape=(batch_size, None), dtype="int32")
    h = locked_dropout(input_dropout)(table(tokens))
    for layer in layers[:-1]:
        h = locked_dropout(layer_dropout)(Carried(layer, weight_dropout)(h))
    h = ActivationPenalty(temporal=temporal_penalty)(Carried(layers[-1], weight_dropout)(h))
    h = ActivationPenalty(activation=activation_penalty)(locked_dropout(output_dropout)(h))
    logits = table(h, reverse=True) if tied else keras.layers.Dense(symbols)(h)
    return keras.Model(tokens, logits)


def drawn_seed(seed):
    """Return a seed.

    Without one, Keras on PyTorch draws dropout outside its own generators, whose states
    save.
    """
    return random.randrange(2**31) if seed is None else seed


def locked_dropout(rate):
    """Return a layer that drops the same entries at all steps of a sample."""
    return keras.layers.SpatialDropout1D(checked("dropout", rate, at_least=0, below=1))


@keras.saving.register_keras_serializable(package=PACKAGE)
class TiedEmbedding(keras.layers.Layer):
    """An embedding E that is also the read-out's kernel: x -> E[x], reversed h -> h E' + b.

    Args:
        symbols: int, rows of E.
        width: int, columns of E.
        dropout: float in [0, 1), the share of rows of E that training drops when E embeds; the
            others are divided by the share that is kept.
        seed: int, of the dropout; None for one drawn by Python's `random`, which
            `keras.utils.set_random_seed` sets.
        **kwargs: as of any Keras layer.

    Call arguments:
        inputs: integers (batch, time), or, reversed, (batch, time, width).
        reverse: bool, whether to read out.
    """

    def __init__(self, symbols, width, dropout=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.symbols = symbols
        self.width = width
        self.dropout = checked("row_dropout", dropout, at_least=0, below=1)
        self.seed = drawn_seed(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            (self.symbols, self.width),
            keras.initializers.RandomUniform(-0.1, 0.1),
            name="embeddings",
        )
        self.bias = self.add_weight((self.symbols,), "zeros", name="bias")

    def call(self, inputs, reverse=False, training=False):
        table = ops.convert_to_tensor(self.embeddings)
        if reverse:
            return ops.matmul(inputs, ops.transpose(table)) + self.bias
        if training and self.dropout:
            kept = ops.ones((self.symbols, 1), dtype=table.dtype)
            table = table * keras.random.dropout(kept, self.dropout, seed=self.seed_generator)
        return ops.take(table, inputs, axis=0)

    def get_config(self):
        own = {"symbols": self.symbols, "width": self.width}
        return {**super().get_config(), **own, "dropout": self.dropout, "seed": self.seed}


@keras.saving.register_keras_serializable(package=PACKAGE)
class Carried(keras.layers.Layer):
    """Carry the states of a recurrent layer from one batch to the next.

    The states are weights that are not trained, since Keras's stateful layers lose theirs in
    `fit` on JAX and raise on PyTorch. Gradients stop at them. `ResetStates` sets them to zero.

    With weight dropout, entries of the recurrent kernel are dropped in training, the same at
    all steps of a call, and the others are divided by the share that is kept. Only the kept
    ones get a gradient.

    Args:
        layer: a recurrent layer, ours or Keras's. A copy of it runs, with
            `return_sequences` and `return_state`.
        weight_dropout: float in [0, 1). The layer's cell must have a `recurrent_kernel`; in a
            nested cell it is that of the shell.
        seed: int, as of `TiedEmbedding`.
        **kwargs: as of any Keras layer.

    Call arguments:
        inputs: (batch, time, features), of a fixed batch size.
    """

    def __init__(self, layer, weight_dropout=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        config = {**layer.get_config(), "return_sequences": True, "return_state": True}
        self.layer = type(layer).from_config(config)
        self.weight_dropout = checked("weight_dropout", weight_dropout, at_least=0, below=1)
        self.seed = drawn_seed(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)

    def build(self, input_shape):
        self.layer.build(input_shape)
        if self.weight_dropout and not hasattr(self.layer.cell, "recurrent_kernel"):
            raise ValueError(
                f"{type(self.layer).__name__} has no recurrent kernel to drop from. "
                f"Received: weight_dropout={self.weight_dropout}"
            )
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
        cell = self.layer.cell
        kernel = getattr(cell, "recurrent_kernel", None)
        try:
            if training and self.weight_dropout:
                # Past Keras's tracking: the weight stays what it is.
                vars(cell)["recurrent_kernel"] = keras.random.dropout(
                    ops.convert_to_tensor(kernel), self.weight_dropout, seed=self.seed_generator
                )
            outputs, *states = self.layer(inputs, initial_state=states, training=training)
        finally:
            if kernel is not None:
                vars(cell)["recurrent_kernel"] = kernel
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
        own = {
            "layer": keras.saving.serialize_keras_object(self.layer),
            "weight_dropout": self.weight_dropout,
            "seed": self.seed,
        }
        return {**super().get_config(), **own}

    @classmethod
    def from_config(cls, config):
        layer = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**{**config, "layer": layer})


@keras.saving.register_keras_serializable(package=PACKAGE)
class ActivationPenalty(keras.layers.Layer):
    """The identity, whose input h is penalised in training.

    ```
    loss += activation mean(h^2) + temporal mean((h_t - h_{t-1})^2)
    ```

    Args:
        activation: float of at least 0.
        temporal: float of at least 0.
        **kwargs: as of any Keras layer.
    """

    def __init__(self, activation=0.0, temporal=0.0, **kwargs):
        super().__init__(**kwargs)
        self.activation = checked("activation_penalty", activation, at_least=0)
        self.temporal = checked("temporal_penalty", temporal, at_least=0)

    def call(self, inputs, training=False):
        if training and self.activation:
            self.add_loss(self.activation * ops.mean(ops.square(inputs)))
        if training and self.temporal and inputs.shape[1] != 1:
            change = inputs[:, 1:] - inputs[:, :-1]
            self.add_loss(self.temporal * ops.mean(ops.square(change)))
        return inputs

    def get_config(self):
        own = {"activation": self.activation, "temporal": self.temporal}
        return {**super().get_config(), **own}


class ResetStates(keras.callbacks.Callback):
    """Start every epoch, evaluation and prediction with the states of `Carried` at zero."""

    def reset(self, *args, **kwargs):
        for layer in self.model.layers:
            if isinstance(layer, Carried):
                layer.reset_state()

    on_epoch_begin = on_test_begin = on_predict_begin = reset


class CrossEntropy(keras.metrics.Mean):
    """The mean cross-entropy of logits over all symbols.

    Keras's own metric is a mean over rows of their means, in which the symbols of a short
    batch count for more.
    """

    def update_state(self, y_true, y_pred, sample_weight=None):
        losses = ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        if sample_weight is not None:
            sample_weight = ops.reshape(sample_weight, (-1,))
        return super().update_state(ops.reshape(losses, (-1,)), sample_weight)


@keras.saving.register_keras_serializable(package=PACKAGE)
class Perplexity(CrossEntropy):
    """exp of the mean cross-entropy of logits, over all symbols.

    Args:
        name: str. Defaults to `"perplexity"`.
        dtype: as of any Keras metric.

    Example:

    >>> import numpy as np
    >>> from papers.tasks.language_model import Perplexity
    >>> metric = Perplexity()
    >>> _ = metric.update_state(np.array([[3, 0, 4]]), np.zeros((1, 3, 50)))
    >>> round(float(metric.result()), 3)
    50.0
    """

    def __init__(self, name="perplexity", dtype=None):
        super().__init__(name, dtype)

    def result(self):
        return ops.exp(super().result())


@keras.saving.register_keras_serializable(package=PACKAGE)
class BitsPerCharacter(CrossEntropy):
    """The mean cross-entropy of logits, over all characters, divided by log 2.

    Args:
        name: str. Defaults to `"bits_per_character"`.
        dtype: as of any Keras metric.
    """

    def __init__(self, name="bits_per_character", dtype=None):
        super().__init__(name, dtype)

    def result(self):
        return super().result() / math.log(2)
