"""The settings that the MomentumRNN paper published, by task, layer and size."""

from dataclasses import dataclass

import keras

from keras_momentum_rnn import layers

# Table 6: K, the learning rate, and that of S, by task and units.
DTRIV_TRAINING = {
    ("mnist", 170): (1, 1e-3, 1e-4),
    ("mnist", 360): (None, 5e-4, 1e-4),
    ("mnist", 512): (100, 5e-4, 1e-4),
    ("pmnist", 170): (1, 7e-4, 2e-4),
    ("pmnist", 360): (None, 7e-4, 5e-5),
    ("pmnist", 512): (None, 3e-4, 7e-5),
    ("timit", 224): (None, 1e-3, 2e-4),
    ("timit", 322): (None, 1e-3, 2e-4),
}
# Tables 7 to 10: what the rules add, by task, units and layer.
DTRIV_NUMBERS = {
    ("pmnist", 170, "MomentumDTRIV"): ("Table 7", {"momentum": 0.6, "step_size": 0.9}),
    ("pmnist", 360, "MomentumDTRIV"): ("Table 7", {"momentum": 0.3, "step_size": 0.3}),
    ("pmnist", 512, "MomentumDTRIV"): ("Table 7", {"momentum": 0.3, "step_size": 0.3}),
    ("timit", 224, "MomentumDTRIV"): ("Table 7", {"momentum": 0.3, "step_size": 0.1}),
    ("timit", 322, "MomentumDTRIV"): ("Table 7", {"momentum": 0.3, "step_size": 0.1}),
    ("pmnist", 512, "AdamDTRIV"): (
        "Table 8",
        {"momentum": 0.3, "step_size": 0.3, "beta": 0.8},
    ),
    ("pmnist", 512, "RMSPropDTRIV"): ("Table 9", {"step_size": 0.3, "beta": 0.9}),
    ("pmnist", 512, "SRDTRIV"): ("Table 10", {"restart_period": 2, "step_size": 0.3}),
    **{(task, units, "DTRIV"): ("Table 6", {}) for task, units in DTRIV_TRAINING},
}


@dataclass(frozen=True)
class Recipe:
    """One row of the paper's tables, see `recipe`.

    Attributes:
        task: `"mnist"`, `"pmnist"` (one pixel a step, permuted in the latter) or `"timit"`.
        layer_name: name of the layer's class.
        units: its width.
        arguments: dict of its other arguments.
        optimizer_name: `"RMSprop"` or `"Adam"`, of all weights but S.
        learning_rate: float, its rate.
        recurrent_optimizer_name: `"RMSprop"`, of S.
        recurrent_learning_rate: float, its rate.
        clipnorm: float, at which the norm of all gradients together is clipped, or None.
        batch_size: int.
        epochs: int.
        source: the tables of Nguyen et al. (2020), appendix A.
    """

    task: str
    layer_name: str
    units: int
    arguments: dict
    optimizer_name: str
    learning_rate: float
    recurrent_optimizer_name: str
    recurrent_learning_rate: float
    clipnorm: float | None
    batch_size: int
    epochs: int
    source: str

    def layer(self, **options):
        """Return a new layer, with further arguments of its class if they are given."""
        layer_class = getattr(layers, self.layer_name)
        return layer_class(self.units, **{**self.arguments, **options})

    def optimizer(self):
        """Return a new optimizer, for all weights of a model that has the layer.

        Where S has one of the same kind, this is one optimizer, and the layer's
        `recurrent_lr_multiplier` gives S its rate. Where it has one of another kind, it is a
        `keras.optimizers.MultiOptimizer`.

        Raises:
            RuntimeError: if the recipe needs a MultiOptimizer and this Keras has none.
        """
        if self.optimizer_name == self.recurrent_optimizer_name:
            return self._optimizer(self.optimizer_name, self.learning_rate)
        if not hasattr(keras.optimizers, "MultiOptimizer"):
            raise RuntimeError(
                f"{self.layer_name} on {self.task} trains S by {self.recurrent_optimizer_name} "
                f"and the rest by {self.optimizer_name}, for which Keras {keras.__version__} "
                "has no `keras.optimizers.MultiOptimizer`: use a newer one"
            )
        others = self._optimizer(self.optimizer_name, self.learning_rate)
        of_skew = self._optimizer(self.recurrent_optimizer_name, self.recurrent_learning_rate)
        choice = keras.optimizers.OptimizerMap(others, {".*/skew": of_skew})
        return keras.optimizers.MultiOptimizer(choice)

    def _optimizer(self, name, rate):
        # PyTorch's defaults, in which the tables were made.
        options = {"rho": 0.99} if name == "RMSprop" else {}
        optimizer_class = getattr(keras.optimizers, name)
        return optimizer_class(rate, global_clipnorm=self.clipnorm, **options)


def recipe(task, layer, units=None):
    """Return the settings that the paper published for a task, a layer and its size.

    Args:
        task: `"mnist"`, `"pmnist"` or `"timit"`.
        layer: name of a layer, such as `"MomentumDTRIV"`.
        units: int, one of the published sizes; may be left out where there is one alone.

    Returns:
        A `Recipe`.

    Raises:
        ValueError: if the paper has no settings for them, with a list of what it has.

    Example:

    >>> from keras_momentum_rnn.tasks import recipe
    >>> settings = recipe("pmnist", "MomentumDTRIV", units=170)
    >>> settings.learning_rate, settings.recurrent_learning_rate, settings.batch_size
    (0.0007, 0.0002, 128)
    >>> layer, optimizer = settings.layer(), settings.optimizer()
    >>> layer.rebase_every, layer.momentum, layer.step_size
    (1, 0.6, 0.9)

    Reference:
        Nguyen et al. (2020), appendix A and Tables 6 to 10. They leave out the decay of
        RMSprop, here PyTorch's 0.99, in which they were run; and Keras's optimizers add 1e-7
        where PyTorch's add 1e-8.
    """
    matching = [
        key
        for key in DTRIV_NUMBERS
        if key[0] == task and key[2] == layer and units in (None, key[1])
    ]
    if len(matching) != 1:
        published = ", ".join(
            f"({task!r}, {layer!r}, units={units})" for task, units, layer in DTRIV_NUMBERS
        )
        raise ValueError(
            f"`task`, `layer` and `units` must name one recipe of the paper: {published}. "
            f"Received: task={task!r}, layer={layer!r}, units={units!r}"
        )
    return _dtriv_recipe(*matching[0])


def _dtriv_recipe(task, units, layer):
    table, numbers = DTRIV_NUMBERS[task, units, layer]
    rebase_every, rate, recurrent_rate = DTRIV_TRAINING[task, units]
    speech = task == "timit"
    initializer = "HenaffSkew" if speech else "CayleySkew"
    arguments = {
        **numbers,
        "rebase_every": rebase_every,
        "recurrent_initializer": f"keras_momentum_rnn>{initializer}",
    }
    if not speech:
        arguments["recurrent_lr_multiplier"] = recurrent_rate / rate
    return Recipe(
        task=task,
        layer_name=layer,
        units=units,
        arguments=arguments,
        optimizer_name="Adam" if speech else "RMSprop",
        learning_rate=rate,
        recurrent_optimizer_name="RMSprop",
        recurrent_learning_rate=recurrent_rate,
        clipnorm=None if speech else 1.0,
        batch_size=128,
        epochs=700 if speech else 150,
        source=table if table == "Table 6" else f"{table}, Table 6",
    )
