"""The table of layers under test. A new layer is a new row."""

import inspect
from dataclasses import dataclass, field
from functools import partial

import keras
import reference

import keras_momentum_rnn as kmr
from keras_momentum_rnn.layers.registry import our_layers

# Options of keras.layers.RNN that some layers of Keras pass on without listing them.
RNN_OPTIONS = ("return_state", "zero_output_for_mask")


@dataclass
class Case:
    """A layer, its rule's name and numbers, and the oracle of its cell."""

    layer_class: type
    rule: str
    numbers: dict
    cell: type
    keras_layer: type
    options: dict = field(default_factory=dict)
    label: str = ""

    @property
    def id(self):
        return self.label or self.layer_class.__name__

    def layer(self, units=4, **options):
        numbers = {} if "rule" in self.options else self.numbers
        return self.layer_class(units, **{**numbers, **self.options, **options})

    def takes(self, options):
        """Return those of the options that the layer takes."""
        names = {*inspect.signature(self.layer_class).parameters, *RNN_OPTIONS}
        if self.keras_layer is not keras.layers.SimpleRNN:
            names.add("implementation")
        return {name: value for name, value in options.items() if name in names}

    @property
    def formulation(self):
        return self.options.get("formulation", "paper")


HEAVY_BALL, RESTART, ADAM, RMSPROP = (
    reference.NUMBERS[rule] for rule in ("HeavyBall", "ScheduledRestart", "Adam", "RMSProp")
)


def family(name, cell, keras_layer):
    """The named layers of a family, as the registry has them."""
    return [
        Case(layer, rule, reference.NUMBERS[rule], cell, keras_layer)
        for layer in our_layers(family=name).values()
        if not layer.needs_rule
        for rule in [layer.rule_class.__name__]
    ]


LSTM = (reference.LSTM, keras.layers.LSTM)
ELMAN = (reference.Elman, keras.layers.SimpleRNN)
HIDDEN = (reference.HiddenElman, keras.layers.SimpleRNN)
GRU = (reference.GRU, keras.layers.GRU)
RESET_BEFORE = partial(reference.GRU, reset_after=False)
IN_HIDDEN = {"parameterization": "hidden"}
DTRIV = (reference.DTRIV, keras.layers.SimpleRNN)
CAYLEY = partial(reference.DTRIV, parametrization="cayley")
HEAVY_BALL_RULE = {"rule": kmr.rules.HeavyBall(**HEAVY_BALL)}

LSTM_CASES = [
    *family("LSTM", *LSTM),
    Case(
        kmr.SRLSTM,
        "ScheduledRestart",
        RESTART,
        *LSTM,
        options={"formulation": "released"},
        label="SRLSTM-released",
    ),
]

OTHER_CASES = [
    *family("RNN", *ELMAN),
    *family("GRU", *GRU),
    Case(kmr.MomentumRNN, "HeavyBall", HEAVY_BALL, *HIDDEN, IN_HIDDEN, "MomentumRNN-hidden"),
    Case(kmr.AdamRNN, "Adam", ADAM, *HIDDEN, IN_HIDDEN, "AdamRNN-hidden"),
    Case(kmr.RMSPropRNN, "RMSProp", RMSPROP, *HIDDEN, IN_HIDDEN, "RMSPropRNN-hidden"),
    Case(kmr.AdamRNN, "Adam", {**ADAM, "relaxed": False}, *ELMAN, label="AdamRNN-equation14"),
    Case(
        kmr.AdamGRU,
        "Adam",
        ADAM,
        RESET_BEFORE,
        keras.layers.GRU,
        {"reset_after": False},
        "AdamGRU-reset-before",
    ),
    *family("DTRIV", *DTRIV),
    Case(
        kmr.AdamDTRIV,
        "Adam",
        ADAM,
        CAYLEY,
        keras.layers.SimpleRNN,
        {"parametrization": "cayley", "initial_rotation": "skew", "use_bias": True},
        "AdamDTRIV-cayley",
    ),
    Case(kmr.MCRM, "Identity", {}, reference.MCRM, keras.layers.LSTM),
    Case(kmr.NestedLSTM, "Identity", {}, reference.NestedLSTM, keras.layers.LSTM),
    Case(
        kmr.MCRM,
        "HeavyBall",
        HEAVY_BALL,
        reference.MCRM,
        keras.layers.LSTM,
        HEAVY_BALL_RULE,
        "MCRM-momentum",
    ),
]
CASES = LSTM_CASES + OTHER_CASES

# A rule and a cell do not know each other: every rule on one cell and every other cell with
# one rule stand for their products.
EVERY_RULE_AND_CELL = LSTM_CASES + [
    case
    for case in OTHER_CASES
    if case.id
    in {
        "MomentumRNN",
        "AdamRNN-hidden",
        "MomentumGRU",
        "AdamGRU-reset-before",
        "MomentumDTRIV",
        "MCRM-momentum",
        "NestedLSTM",
    }
]

# Where a test is about the wrapping and not about the equation: each kind of states once.
REPRESENTATIVES = [
    case
    for case in EVERY_RULE_AND_CELL
    if case.id
    in {
        "MomentumLSTM",
        "SRLSTM",
        "AdamLSTM",
        "SRLSTM-released",
        "AdamRNN-hidden",
        "MomentumGRU",
        "MomentumDTRIV",
        "MCRM-momentum",
    }
]
