"""What the comparison on real sequences compares: layers, and how each is built and sized."""

import inspect
import math
from dataclasses import dataclass, field

import keras
import numpy as np

from keras_momentum_rnn import rules
from keras_momentum_rnn.layers.registry import available_layers
from papers.same_sooner import same_sooner

# The bias beside the recurrent product: then the rule sees the input alone, and an Adam or
# RMSProp rule takes the input's common scale out of it.
OUTSIDE = {"use_bias": False, "use_recurrent_bias": True}
SAMPLE = "sample"
LEARNED = keras.saving.serialize_keras_object(rules.LearnedMomentum(per="gate"))
# Three widths tell the parameters of every width, a polynomial of degree 2.
WIDTHS = (2, 4, 6)


@dataclass(frozen=True)
class Contestant:
    """One row of the comparison.

    Attributes:
        layer: name of the recurrent layer.
        arguments: dict of its arguments that are not searched.
        front: class of a layer that comes before it, or None.
        standardise: how the task standardises, as `tasks.load("archive", ...)` takes it.
        source: "plain" or "ours".
        sooner: bool, whether layers of Keras run as `same_sooner` has them.
    """

    layer: str
    arguments: dict = field(default_factory=dict)
    front: type | None = None
    standardise: str = "training"
    source: str = "ours"
    sooner: bool = False

    def model(self, task, layer, learning_rate, clipnorm=None):
        """Return the task's compiled model of a layer."""
        model = task.model(*([self.front()] if self.front else []), layer)
        task.compile(model, keras.optimizers.Adam(learning_rate, global_clipnorm=clipnorm))
        model.optimizer.build(model.trainable_variables)
        return model

    def new_layer(self, units, **numbers):
        """Return a new layer of so many units, with further arguments."""
        name, rule = same_sooner(self.layer) if self.sooner else (self.layer, {})
        return available_layers()[name](units, **self.arguments, **numbers, **rule)

    def defaults(self):
        """Return the searched numbers of the layer as they are by default, a dict."""
        layer_class = available_layers()[self.layer]
        arguments = inspect.signature(layer_class).parameters
        declared = getattr(layer_class, "hyperparameters", {}).items()
        return {
            name: arguments[name].default
            for name, hyperparameter in declared
            if hyperparameter.search is not None and name not in self.arguments
        }


class RunningSum(keras.layers.Layer):
    """The sum of all inputs so far, over the root of the number of all steps, padding included.

    Masked steps must come last, as those of padded sequences do.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        steps = keras.ops.cast(keras.ops.shape(inputs)[1], inputs.dtype)
        return keras.ops.cumsum(inputs, axis=1) / keras.ops.sqrt(steps)


def titled(layer):
    """Return the name of a contestant or a reference line in tables and pictures."""
    return TITLES.get(layer, layer)


def plain(layer, **more):
    return Contestant(layer, source="plain", **more)


CONTESTANTS = {
    "LSTM": plain("LSTM"),
    "GRU": plain("GRU"),
    "SimpleRNN": plain("SimpleRNN"),
    "LayerNorm-LSTM": plain("LSTM", front=keras.layers.LayerNormalization),
    "Standardised-LSTM": plain("LSTM", standardise=SAMPLE),
    "MomentumLSTM": Contestant("MomentumLSTM"),
    "SRLSTM": Contestant("SRLSTM"),
    "NAGLSTM": Contestant("NAGLSTM"),
    "AdamLSTM": Contestant("AdamLSTM", OUTSIDE),
    "RMSPropLSTM": Contestant("RMSPropLSTM", OUTSIDE),
    "Default-AdamLSTM": Contestant("AdamLSTM"),
    "Default-RMSPropLSTM": Contestant("RMSPropLSTM"),
    "AdamGRU": Contestant("AdamGRU"),
    "MomentumGRU": Contestant("MomentumGRU"),
    "MomentumRNN": Contestant("MomentumRNN"),
    "DTRIV": Contestant("DTRIV"),
    "MomentumDTRIV": Contestant("MomentumDTRIV"),
    "MCRM": Contestant("MCRM"),
    "NestedLSTM": Contestant("NestedLSTM"),
    "LearnedMomentum": Contestant("RuleLSTM", {"rule": LEARNED}),
}
# Beside the comparison: is a sum of the inputs what a momentum near 1 brings?
CONTROLS = {"Summed-LSTM": plain("LSTM", front=RunningSum)}
EVERY = {**CONTESTANTS, **CONTROLS}
# How tables and pictures call them, where the name of a run would mislead: in a call,
# AdamLSTM is the default form.
TITLES = {
    "Standardised-LSTM": "LSTM, each sequence standardised",
    "AdamLSTM": "AdamLSTM, scale-free",
    "RMSPropLSTM": "RMSPropLSTM, scale-free",
    "Default-AdamLSTM": "AdamLSTM",
    "Default-RMSPropLSTM": "RMSPropLSTM",
    "LearnedMomentum": "RuleLSTM, momentum learned per gate",
    "Summed-LSTM": "LSTM, running sums of the inputs",
}
# Classifiers and regressors without a recurrence, as lines to compare with.
REFERENCES = ("linear", "MiniRocket")
SHORTEST_FOR_MINIROCKET = 9


def excluded(layer, steps, channels):
    """Return why a layer or a reference line has no part in a set, or None.

    Args:
        layer: a name of `EVERY` or `REFERENCES`.
        steps, channels: ints, of the set's sequences.
    """
    if layer == "LayerNorm-LSTM" and channels == 1:
        return "LayerNormalization over one channel gives 0 at every step"
    if layer == "MiniRocket" and steps < SHORTEST_FOR_MINIROCKET:
        return f"MiniRocket needs {SHORTEST_FOR_MINIROCKET} steps, the length of its kernels"
    return None


def parameters(model):
    """Return how many numbers of a model are trained."""
    return sum(math.prod(weight.shape) for weight in model.trainable_weights)


def parameters_of(task, contestant, units):
    return parameters(contestant.model(task, contestant.new_layer(units), 1e-3))


def solved_units(task, contestant, budget):
    """Return the units with which a model comes nearest to a number of parameters."""
    counts = [parameters_of(task, contestant, units) for units in WIDTHS]
    square, linear, constant = np.polyfit(WIDTHS, counts, 2)
    near = [root.real for root in np.roots([square, linear, constant - budget])]
    low = max(2, math.floor(max(near)))
    widths = {units: np.polyval([square, linear, constant], units) for units in (low, low + 1)}
    return min(widths, key=lambda units: abs(widths[units] - budget))
