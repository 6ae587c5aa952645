"""The layers of the study on real sequences: pairs of a layer and its base, and their sizes."""

import inspect
import math
from dataclasses import dataclass, field

import keras
import numpy as np

import keras_momentum_rnn as kmr
from keras_momentum_rnn.layers.registry import available_layers
from keras_momentum_rnn.tuning import suggest_layer

# A layer with a rule, and the same layer without.
PAIRS = (
    ("MomentumRNN", "SimpleRNN"),
    ("MomentumDTRIV", "DTRIV"),
    ("MomentumGRU", "GRU"),
    ("MomentumLSTM", "LSTM"),
    ("NAGLSTM", "LSTM"),
    ("SRLSTM", "LSTM"),
    ("AdamLSTM", "LSTM"),
    ("RMSPropLSTM", "LSTM"),
)
RATES = (3e-4, 3e-2)
DEFAULT_RATE = 3e-3
CLIPNORM = 1.0
# Three widths tell the parameters of every width, a polynomial of degree 2.
WIDTHS = (2, 4, 6)


@dataclass(frozen=True)
class Contestant:
    """A layer and its arguments that are not searched."""

    layer: str
    arguments: dict = field(default_factory=dict)

    def new_layer(self, units, **numbers):
        """Return a new layer of so many units, with the numbers of a search."""
        # Keras's LSTM, GRU and SimpleRNN are this library's, which take less time.
        return getattr(kmr, self.layer)(units, **self.arguments, **numbers)

    def suggested(self, hp, units):
        """Return a new layer with the numbers that a search suggests."""
        if self.layer in ("LSTM", "GRU", "SimpleRNN"):
            return self.new_layer(units)
        return suggest_layer(hp, [self.layer], units, **self.arguments)

    def first_trial(self):
        """Return learning rate and searched numbers as they are by default, a dict."""
        layer_class = available_layers()[self.layer]
        defaults = inspect.signature(layer_class).parameters
        declared = getattr(layer_class, "hyperparameters", {}).items()
        searched = {
            name: defaults[name].default
            for name, number in declared
            if number.search is not None and name not in self.arguments
        }
        return {"learning_rate": DEFAULT_RATE, **searched}

    def model(self, task, layer, learning_rate):
        """Return the task's compiled model of a layer."""
        model = task.model(layer)
        task.compile(model, keras.optimizers.Adam(learning_rate, global_clipnorm=CLIPNORM))
        model.optimizer.build(model.trainable_variables)
        return model

    def parameters(self, task, units):
        """Return how many numbers of the task's model are trained."""
        weights = self.model(task, self.new_layer(units), DEFAULT_RATE).trainable_weights
        return sum(math.prod(weight.shape) for weight in weights)

    def units_for(self, task, budget):
        """Return the units with which the model comes nearest to a number of parameters."""
        counts = [self.parameters(task, units) for units in WIDTHS]
        curve = np.polynomial.Polynomial.fit(WIDTHS, counts, 2)
        low = max(2, math.floor(max((curve - budget).roots().real)))
        return min((low, low + 1), key=lambda units: abs(curve(units) - budget))


# These train in their scale-free form, as in the results of the first study.
SCALE_FREE = ("AdamLSTM", "RMSPropLSTM")
CONTESTANTS = {
    name: Contestant(name, {"scale_free": True} if name in SCALE_FREE else {})
    for name in dict.fromkeys(name for pair in PAIRS for name in pair[::-1])
}


def called(layer):
    """Return what a report calls a layer."""
    return f"{layer}, scale-free" if layer in SCALE_FREE else layer
