"""Recurrent cells; each runs alone in `keras.layers.RNN`, too."""

from keras_momentum_rnn.cells.gru import (
    AdamGRUCell,
    MomentumGRUCell,
    NAGGRUCell,
    RMSPropGRUCell,
    RuleGRUCell,
    SRGRUCell,
)
from keras_momentum_rnn.cells.lstm import (
    AdamLSTMCell,
    MomentumLSTMCell,
    NAGLSTMCell,
    ReleasedSRLSTMCell,
    RMSPropLSTMCell,
    RuleLSTMCell,
    SRLSTMCell,
)
from keras_momentum_rnn.cells.nested import MCRMCell, NestedLSTMCell
from keras_momentum_rnn.cells.orthogonal import (
    AdamDTRIVCell,
    DTRIVCell,
    MomentumDTRIVCell,
    NAGDTRIVCell,
    RMSPropDTRIVCell,
    RuleDTRIVCell,
    SRDTRIVCell,
)
from keras_momentum_rnn.cells.simple_rnn import (
    AdamRNNCell,
    MomentumRNNCell,
    NAGRNNCell,
    RMSPropRNNCell,
    RuleRNNCell,
    SRRNNCell,
)

__all__ = [
    "RuleLSTMCell",
    "MomentumLSTMCell",
    "NAGLSTMCell",
    "SRLSTMCell",
    "AdamLSTMCell",
    "RMSPropLSTMCell",
    "RuleRNNCell",
    "MomentumRNNCell",
    "NAGRNNCell",
    "SRRNNCell",
    "AdamRNNCell",
    "RMSPropRNNCell",
    "RuleGRUCell",
    "MomentumGRUCell",
    "NAGGRUCell",
    "SRGRUCell",
    "AdamGRUCell",
    "RMSPropGRUCell",
    "RuleDTRIVCell",
    "DTRIVCell",
    "MomentumDTRIVCell",
    "NAGDTRIVCell",
    "SRDTRIVCell",
    "AdamDTRIVCell",
    "RMSPropDTRIVCell",
    "MCRMCell",
    "NestedLSTMCell",
    "ReleasedSRLSTMCell",
]
