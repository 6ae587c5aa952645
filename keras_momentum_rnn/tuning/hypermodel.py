"""A ready hypermodel: recurrent layers under a head."""

from typing import Any

import keras
import keras_tuner

from keras_momentum_rnn.annotations import Layers
from keras_momentum_rnn.arguments import functions_of
from keras_momentum_rnn.checks import checked_choice, checked_count
from keras_momentum_rnn.tuning.space import OF_MODELS, ask, checked_spec, suggest_layer

# What the page "Which layer?" says to try first, and the plain LSTM beside them.
LAYERS = ("GRU", "LSTM", "MomentumRNN", "RMSPropLSTM")
TASKS = {
    "classification": (
        lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        ["accuracy"],
        keras_tuner.Objective("val_accuracy", "max"),
    ),
    "regression": (lambda: "mean_squared_error", [], keras_tuner.Objective("val_loss", "min")),
}


class MomentumHyperModel(keras_tuner.HyperModel):
    """Build recurrent layers under a head; a search chooses their kind and hyperparameters.

    The model is `depth` layers of `suggest_layer` with the same hyperparameters, each followed
    by dropout, and the head. It is compiled with Adam.

    Give a list of choices or an interval (low, high) to search a hyperparameter, or one value
    to fix it.

    Args:
        input_shape: tuple (time, features); time may be `None`.
        head: positive integer, the classes or the values to predict, for a `Dense` layer; or
            a Keras layer; each model gets a copy of it. A head for classification must return
            logits.
        task: `"classification"`, of integer labels, or `"regression"`. Defaults to
            `"classification"`.
        sequence: bool, whether there is an output for every step. Defaults to `False`.
        layers: list of layers by class or name. Defaults to GRU, LSTM, MomentumRNN and
            RMSPropLSTM: candidates, since no rule is shown to help by itself.
        **arguments: the hyperparameters below, and ranges and arguments for `suggest_layer`.

    Hyperparameters of the model:

    - `units`: positive integers. Defaults to [32, 64, 128].
    - `depth`: positive integer, or a list of them. Defaults to 1.
    - `bidirectional`: bool, or a list of both. Defaults to `False`.
    - `dropout`: in [0, 1). Defaults to 0.
    - `learning_rate`: above 0, on a logarithmic scale. Defaults to (1e-4, 1e-2).
    - `clipnorm`: above 0, or `None` for no clipping. Defaults to 1.

    Raises:
        ValueError: if an argument is out of its range. The message has the range and the value.

    Example:

    >>> import keras_tuner
    >>> from keras_momentum_rnn.tuning import MomentumHyperModel
    >>> hypermodel = MomentumHyperModel(
    ...     (None, 3), head=2, layers=["NAGLSTM", "GRU"], units=4, bidirectional=[False, True]
    ... )
    >>> hp = keras_tuner.HyperParameters()
    >>> hypermodel.build(hp).output_shape
    (None, 2)
    >>> list(hp.values)
    ['depth', 'bidirectional', 'dropout', 'layer', 'units', 'step_size', 'learning_rate',
     'clipnorm']

    Reference: Nguyen et al. (2020), section 3 and appendix A, whose models are one recurrent
    layer under a linear head, trained with gradients clipped to a norm of 1. There it is the
    norm of all gradients together; `clipnorm` is Keras's, for each weight apart.
    """

    def __init__(
        self,
        input_shape: tuple[int | None, ...],
        head: int | keras.layers.Layer,
        *,
        task: str = "classification",
        sequence: bool = False,
        layers: Layers | None = None,
        name: str | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(name=name)
        self.input_shape = input_shape
        is_layer = isinstance(head, keras.layers.Layer)
        self.task = checked_choice("task", task, list(TASKS))
        # The cross-entropy of one logit is always 0.
        at_least = 2 if task == "classification" else 1
        self.head = head if is_layer else checked_count("head", head, at_least=at_least)
        self.sequence = checked_choice("sequence", sequence, (True, False))
        self.objective = TASKS[self.task][2]
        self.layers = list(LAYERS) if layers is None else layers
        self.specs = {
            name: checked_spec(name, arguments.pop(name, hyperparameter.search))
            for name, hyperparameter in OF_MODELS.items()
        }
        self.arguments = arguments
        if "return_sequences" in arguments:
            raise ValueError(
                "`sequence` says whether there is an output for every step. "
                f"Received: return_sequences={arguments['return_sequences']!r}"
            )
        # A mistake shows here, and not in the middle of a search.
        suggest_layer(keras_tuner.HyperParameters(), self.layers, 1, **arguments)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor: a search goes on with the same alone."""
        return {
            "input_shape": self.input_shape,
            "head": self.head,
            "task": self.task,
            "sequence": self.sequence,
            "layers": self.layers,
            **self.specs,
            **self.arguments,
        }

    def build(self, hp: keras_tuner.HyperParameters) -> keras.Model:
        """Return a compiled model.

        Args:
            hp: `keras_tuner.HyperParameters`.
        """
        depth = ask(hp, "depth", self.specs["depth"])
        bidirectional = ask(hp, "bidirectional", self.specs["bidirectional"])
        dropout = ask(hp, "dropout", self.specs["dropout"])
        model = keras.Sequential([keras.Input(self.input_shape)])
        for i in range(depth):
            returned = self.sequence or i + 1 < depth
            units, more = self.specs["units"], self.arguments
            layer = suggest_layer(hp, self.layers, units, return_sequences=returned, **more)
            model.add(keras.layers.Bidirectional(layer) if bidirectional else layer)
            if dropout:
                model.add(keras.layers.Dropout(dropout))
        head = self.head
        if isinstance(head, keras.layers.Layer):
            config = head.get_config()
            model.add(head.from_config(config | functions_of(head, config)))
        else:
            model.add(keras.layers.Dense(head))
        loss, metrics, _ = TASKS[self.task]
        model.compile(
            optimizer=keras.optimizers.Adam(
                ask(hp, "learning_rate", self.specs["learning_rate"]),
                clipnorm=ask(hp, "clipnorm", self.specs["clipnorm"]),
            ),
            loss=loss(),
            metrics=metrics,
        )
        return model
