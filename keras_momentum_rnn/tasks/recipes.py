"""The settings that the papers published, by task, layer and size."""

from dataclasses import dataclass, field

import keras

from keras_momentum_rnn.initializers import ForgetGateBias
from keras_momentum_rnn.layers.names import available_layers
from keras_momentum_rnn.tasks import mohamed2018, nguyen2020
from keras_momentum_rnn.tasks.averaging import AveragedSGD
from keras_momentum_rnn.tasks.language_model import REGULARISATION

# Tasks whose read-out takes h at every step.
SEQUENCES = ("timit", "copying", "words", "characters", "memory5", "memory20")
COPYING_BLANKS = (1000, 2000)


@dataclass(frozen=True)
class Recipe:
    """One row of the papers' tables, see `recipe`.

    Attributes:
        task: name of the task, as `tasks.load` takes it.
        options: dict of the task's options, such as the length of its sequences.
        layer_name: name of the layer's class.
        units: int, its width; a tuple for a stack of layers.
        arguments: dict of its other arguments, its initializers among them.
        optimizer_name: `"RMSprop"`, `"Adam"` or `"SGD"`; for orthogonal layers that of all
            weights but S.
        learning_rate: float, its rate.
        optimizer_arguments: dict of its other arguments.
        clipnorm: float, at which the norm of all gradients together is clipped, or None.
        batch_size: int.
        epochs: int, as the tables count.
        updates_per_epoch: int where sequences are generated; None for a pass over the data.
        model_options: dict, options of the task's model.
        averaging_patience: int, after how many epochs without a better validation score the
            weights are averaged, see `tasks.AveragedSGD`; None for never.
        rate_cut: `(epochs, factor)`, after how many epochs the rate is multiplied by the
            factor, again and again; None for a constant rate.
        recurrent_optimizer_name: that of S in an orthogonal layer, else None.
        recurrent_learning_rate: float, its rate, or None.
        source: the tables.
        follows: what it follows where text, tables and released code differ or are silent.
    """

    task: str
    layer_name: str
    units: int | tuple
    arguments: dict
    optimizer_name: str
    learning_rate: float
    clipnorm: float | None
    batch_size: int
    epochs: int
    source: str
    follows: str
    options: dict = field(default_factory=dict)
    optimizer_arguments: dict = field(default_factory=dict)
    updates_per_epoch: int | None = None
    model_options: dict = field(default_factory=dict)
    averaging_patience: int | None = None
    rate_cut: tuple | None = None
    recurrent_optimizer_name: str | None = None
    recurrent_learning_rate: float | None = None

    @property
    def layer(self):
        """A new layer, at each reading; of a stack the first, see `new_layers`."""
        return self.new_layers()[0]

    @property
    def optimizer(self):
        """A new optimizer, at each reading, for all weights of a model that has the layer.

        Where S has one of the same kind, this is one optimizer, and the layer's
        `recurrent_lr_multiplier` gives S its rate. Where it has one of another kind, it is a
        `keras.optimizers.MultiOptimizer`; reading it raises a `RuntimeError` where this Keras
        has none.
        """
        of_all = self._optimizer(self.optimizer_name, self.learning_rate)
        if self.recurrent_optimizer_name in (None, self.optimizer_name):
            return of_all
        if not hasattr(keras.optimizers, "MultiOptimizer"):
            raise RuntimeError(
                f"{self.layer_name} on {self.task} trains S by {self.recurrent_optimizer_name} "
                f"and the rest by {self.optimizer_name}, for which Keras {keras.__version__} "
                "has no `keras.optimizers.MultiOptimizer`: use a newer one"
            )
        of_skew = self._optimizer(self.recurrent_optimizer_name, self.recurrent_learning_rate)
        choice = keras.optimizers.OptimizerMap(of_all, {".*/skew": of_skew})
        return keras.optimizers.MultiOptimizer(choice)

    def _optimizer(self, name, rate):
        optimizer_class = getattr(keras.optimizers, name)
        return optimizer_class(
            rate, global_clipnorm=self.clipnorm, **self.optimizer_arguments.get(name, {})
        )

    def new_layers(self, **options):
        """Return new layers, one for each number of units, with further arguments."""
        layer_class = available_layers()[self.layer_name]
        stack = self.units if isinstance(self.units, tuple) else (self.units,)
        return [layer_class(units, **{**self.arguments, **options}) for units in stack]

    def callbacks(self):
        """Return new callbacks of `fit`, a list: the rate's schedule, or the averaging."""
        if self.averaging_patience is not None:
            return [AveragedSGD(patience=self.averaging_patience)]
        if self.rate_cut is None:
            return []
        period, factor = self.rate_cut
        rate = self.learning_rate
        return [
            keras.callbacks.LearningRateScheduler(
                lambda epoch, _: rate * factor ** (epoch // period)
            )
        ]

    def __str__(self):
        named = {"units": self.units, **self.options}
        named = ", ".join(f"{name}={value!r}" for name, value in named.items())
        return f"({self.task!r}, {self.layer_name!r}, {named})"


def recipe(task, layer, units=None, **options):
    """Return the settings that a paper published for a task, a layer and its size.

    Args:
        task: `"mnist"`, `"pmnist"` (one pixel a step, permuted in the latter), `"timit"`,
            `"copying"`, `"adding"`, `"words"` or `"characters"`.
        layer: name of a layer, such as `"AdamLSTM"` or `"SimpleRNN"`.
        units: int, one of the published sizes, or a tuple for a stack of layers; may be left
            out where there is one alone.
        **options: options of the task, where several are published: `blanks=2000` for
            copying.

    Returns:
        A `Recipe`.

    Raises:
        ValueError: if no paper has settings for them, or several, with a list of what the
            papers have.

    Example:

    >>> from keras_momentum_rnn.tasks import recipe
    >>> settings = recipe("pmnist", "AdamLSTM", units=256)
    >>> layer, optimizer = settings.layer, settings.optimizer
    >>> layer.momentum, layer.step_size, layer.beta, layer.epsilon
    (0.6, 1.0, 0.01, 1e-16)
    >>> settings.learning_rate, settings.clipnorm, settings.batch_size, settings.epochs
    (0.001, 1.0, 128, 150)
    >>> settings.source
    'Nguyen et al. (2020), Table 8, Table 6'

    Reference:
        Nguyen et al. (2020), appendix A and Tables 6 to 10; Mohamed and Claudel (2018), Table
        2. Keras's optimizers add 1e-7 where PyTorch's, with which the tables were made, add
        1e-8.
    """
    matching = [
        found
        for found in RECIPES
        if (found.task, found.layer_name) == (task, layer)
        and units in (None, found.units)
        and all(found.options.get(name) == value for name, value in options.items())
    ]
    if len(matching) != 1:
        given = "".join(f", {name}={value!r}" for name, value in options.items())
        raise ValueError(
            "`task`, `layer`, `units` and the options of the task must name one recipe of the "
            f"papers: {', '.join(map(str, RECIPES))}. Received: task={task!r}, "
            f"layer={layer!r}, units={units!r}{given}"
        )
    return matching[0]


def lstm_recipes():
    """Yield LSTM and its variants of Nguyen et al. (2020)."""
    for name, (table, by_task) in nguyen2020.LSTM_NUMBERS.items():
        for task, numbers in by_task.items():
            lengths = COPYING_BLANKS if task == "copying" else (None,)
            for units in nguyen2020.LSTM_UNITS[task]:
                for length in lengths:
                    chosen = numbers.get(length or units, numbers)
                    yield lstm_recipe(task, name, units, length, table, chosen)


def lstm_recipe(task, name, units, length, table, numbers):
    optimizer, rate, batch_size, epochs = nguyen2020.LSTM_TRAINING[task]
    pixels, generated = task in ("mnist", "pmnist"), task in ("adding", "copying")
    follows = "the text" if pixels else "the text, which names clipping for pixels alone"
    if task == "timit":
        follows = "the text: no clipping (the code for TIMIT clips at 1)"
    elif task == "words":
        follows = (
            "the text; clipping, weight decay, regularisation and averaging are those of its "
            "baseline, Merity et al. (2018)"
        )
    elif generated:
        follows += "; an epoch of Table 6 is read as one update, since sequences are generated"
    follows += forget_gate(task, name)
    if name == "SRLSTM":
        follows += "; the released form of the restart, with which the tables were made"
        numbers = {**numbers, "formulation": "released"}
    elif name in ("AdamLSTM", "RMSPropLSTM"):
        follows += "; the code's epsilon, 1e-16 (text: 1e-8)"
        numbers = {**numbers, "epsilon": 1e-16}
    return Recipe(
        task=task,
        options=task_options(task, length),
        layer_name=name,
        units=units,
        arguments={
            **numbers,
            **initial_weights(task, name),
            "return_sequences": task in SEQUENCES,
        },
        optimizer_name=optimizer,
        learning_rate=rate,
        optimizer_arguments={"RMSprop": {"rho": 0.9}, "SGD": {"weight_decay": 1.2e-6}},
        model_options=REGULARISATION if task == "words" else {},
        averaging_patience=5 if task == "words" else None,
        clipnorm=1.0 if pixels else 0.25 if task == "words" else None,
        batch_size=batch_size,
        epochs=epochs,
        updates_per_epoch=1 if generated else None,
        source=cited("Nguyen et al. (2020)", table, "Table 6"),
        follows=follows,
    )


def task_options(task, length):
    """Return the options of the paper's form of a task."""
    if task == "copying":
        return {"variant": "momentumrnn", "blanks": length}
    return {"variant": "momentumrnn", "steps": 750} if task == "adding" else {}


def initial_weights(task, name):
    """Return the initializers of an LSTM of Nguyen et al. (2020), and how it has its biases.

    The forget gate starts at 1, on TIMIT at -4, in both biases of the released cells. Keras's
    LSTM has one, which stands for their sum.
    """
    forget = -4.0 if task == "timit" else 1.0
    if name == "LSTM":
        biases = {"unit_forget_bias": False, "bias_initializer": ForgetGateBias(2 * forget)}
    elif task == "timit":
        biases = {
            "unit_forget_bias": False,
            "bias_initializer": ForgetGateBias(forget),
            "use_recurrent_bias": True,
        }
    else:
        biases = {"use_recurrent_bias": True}
    if task == "words":
        return biases
    return {
        "kernel_initializer": "orthogonal",
        "recurrent_initializer": "identity",
        **biases,
    }


def forget_gate(task, name):
    """Return what a recipe says of the biases."""
    value = -4 if task == "timit" else 1
    if name == "LSTM":
        return (
            f"; the released cell has two biases, each with the forget gate at {value}: "
            f"Keras's one has it at {2 * value}"
        )
    return f"; two biases, as in the released cells, each with the forget gate at {value}"


def cited(paper, *tables):
    return ", ".join([paper, *dict.fromkeys(tables)])


def dtriv_recipes():
    """Yield DTRIV and its variants of Nguyen et al. (2020)."""
    for (task, units, layer), (table, numbers) in nguyen2020.DTRIV_NUMBERS.items():
        rebase_every, rate, recurrent_rate = nguyen2020.DTRIV_TRAINING[task, units]
        speech = task == "timit"
        initializer = "HenaffSkew" if speech else "CayleySkew"
        arguments = {
            **numbers,
            "rebase_every": rebase_every,
            "recurrent_initializer": f"keras_momentum_rnn>{initializer}",
            "return_sequences": task in SEQUENCES,
        }
        if not speech:
            arguments["recurrent_lr_multiplier"] = recurrent_rate / rate
        yield Recipe(
            task=task,
            layer_name=layer,
            units=units,
            arguments=arguments,
            optimizer_name="Adam" if speech else "RMSprop",
            learning_rate=rate,
            # PyTorch's default, with which the tables were made.
            optimizer_arguments={"RMSprop": {"rho": 0.99}},
            recurrent_optimizer_name="RMSprop",
            recurrent_learning_rate=recurrent_rate,
            clipnorm=None if speech else 1.0,
            batch_size=128,
            epochs=700 if speech else 150,
            source=cited("Nguyen et al. (2020)", table, "Table 6"),
            follows="the text; RMSprop's decay, which it leaves out, is the code's, 0.99",
        )


def nested_recipes():
    """Yield the five layers of Mohamed and Claudel (2018)."""
    for task, sizes in mohamed2018.UNITS.items():
        optimizer, rate, clipnorm, batch_size, epochs, updates = mohamed2018.TRAINING[task]
        for name, units in zip(mohamed2018.LAYERS, sizes, strict=True):
            common = {"learning_rate": rate, "clipnorm": clipnorm}
            yield Recipe(
                task=task,
                options=nested_options(task),
                layer_name=name,
                units=units,
                arguments={"return_sequences": task in SEQUENCES},
                optimizer_name=optimizer,
                optimizer_arguments={"RMSprop": {"rho": 0.99}},
                batch_size=batch_size,
                epochs=epochs,
                updates_per_epoch=updates,
                rate_cut=mohamed2018.RATE_CUTS.get(task),
                source="Mohamed and Claudel (2018), Table 2",
                follows=nested_follows(task, name),
                **{**common, **mohamed2018.EXCEPTIONS.get((task, name), {})},
            )


def nested_options(task):
    """Return the options of the form that the paper gives a task."""
    if task == "adding":
        return {"variant": "mcrm", "steps": 200}
    return {"variant": "mcrm", "blanks": 1000} if task == "copying" else {}


def nested_follows(task, name):
    follows = (
        "Table 2, and the code for batch size and epochs; weights start as Keras starts them, "
        "and every sequence of a generated task at zero, where the code goes on with the "
        "states of the batch before"
    )
    if task == "mnist":
        follows += (
            "; Table 2 has the units of NLSTM and MCRM the other way round than the code, "
            "and no cut of the rate, tenfold every 30 epochs; the code clips at 0.5"
        )
    if (task, name) == ("adding", "MCRM"):
        follows += "; the code builds 300 units, so Table 1's loss may not be that of 85"
    if task == "copying":
        follows += "; 313 updates an epoch, as the code runs (its option says 100)"
    if (task, name) == ("characters", "LSTM"):
        follows += "; 1450 units would have as many parameters as the other layers"
    if task in ("words", "characters"):
        follows += "; the code also cuts the rate when validation stalls, which is left out"
    return follows


RECIPES = (*lstm_recipes(), *dtriv_recipes(), *nested_recipes())
