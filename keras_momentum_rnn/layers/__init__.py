"""The named layers: each chooses a Keras layer, a cell and a rule, and nothing else."""

from keras_momentum_rnn.layers.gru import (
    NAGGRU,
    SRGRU,
    AdamGRU,
    MomentumGRU,
    RMSPropGRU,
    RuleGRU,
)
from keras_momentum_rnn.layers.lstm import (
    NAGLSTM,
    SRLSTM,
    AdamLSTM,
    MomentumLSTM,
    RMSPropLSTM,
    RuleLSTM,
)
from keras_momentum_rnn.layers.nested import MCRM, NestedLSTM
from keras_momentum_rnn.layers.orthogonal import (
    DTRIV,
    NAGDTRIV,
    SRDTRIV,
    AdamDTRIV,
    MomentumDTRIV,
    RMSPropDTRIV,
    RuleDTRIV,
)
from keras_momentum_rnn.layers.simple_rnn import (
    NAGRNN,
    SRRNN,
    AdamRNN,
    MomentumRNN,
    RMSPropRNN,
    RuleRNN,
)

__all__ = [
    "RuleLSTM",
    "MomentumLSTM",
    "NAGLSTM",
    "SRLSTM",
    "AdamLSTM",
    "RMSPropLSTM",
    "RuleRNN",
    "MomentumRNN",
    "NAGRNN",
    "SRRNN",
    "AdamRNN",
    "RMSPropRNN",
    "RuleGRU",
    "MomentumGRU",
    "NAGGRU",
    "SRGRU",
    "AdamGRU",
    "RMSPropGRU",
    "RuleDTRIV",
    "DTRIV",
    "MomentumDTRIV",
    "NAGDTRIV",
    "SRDTRIV",
    "AdamDTRIV",
    "RMSPropDTRIV",
    "MCRM",
    "NestedLSTM",
]
