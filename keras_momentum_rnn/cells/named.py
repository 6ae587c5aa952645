"""The named cells: each chooses a cell and a rule, and nothing else."""

from keras_momentum_rnn import rules
from keras_momentum_rnn.cells.gru import RuleGRUCell
from keras_momentum_rnn.cells.lstm import RuleLSTMCell
from keras_momentum_rnn.cells.orthogonal import RuleDTRIVCell
from keras_momentum_rnn.cells.simple_rnn import RuleRNNCell
from keras_momentum_rnn.rules import register

__all__ = [
    "MomentumLSTMCell",
    "NAGLSTMCell",
    "SRLSTMCell",
    "AdamLSTMCell",
    "RMSPropLSTMCell",
    "MomentumRNNCell",
    "NAGRNNCell",
    "SRRNNCell",
    "AdamRNNCell",
    "RMSPropRNNCell",
    "MomentumGRUCell",
    "NAGGRUCell",
    "SRGRUCell",
    "AdamGRUCell",
    "RMSPropGRUCell",
    "DTRIVCell",
    "MomentumDTRIVCell",
    "NAGDTRIVCell",
    "SRDTRIVCell",
    "AdamDTRIVCell",
    "RMSPropDTRIVCell",
]


@register
class MomentumLSTMCell(RuleLSTMCell):
    """Cell of `MomentumLSTM`, which gives equation and arguments."""

    rule_class = rules.HeavyBall


@register
class NAGLSTMCell(RuleLSTMCell):
    """Cell of `NAGLSTM`, which gives equation and arguments."""

    rule_class = rules.NAG


@register
class SRLSTMCell(RuleLSTMCell):
    """Cell of `SRLSTM(formulation="paper")`, which gives equation and arguments."""

    rule_class = rules.ScheduledRestart


@register
class AdamLSTMCell(RuleLSTMCell):
    """Cell of `AdamLSTM`, which gives equation and arguments."""

    rule_class = rules.Adam


@register
class RMSPropLSTMCell(RuleLSTMCell):
    """Cell of `RMSPropLSTM`, which gives equation and arguments."""

    rule_class = rules.RMSProp


@register
class MomentumRNNCell(RuleRNNCell):
    """Cell of `MomentumRNN`, which gives equation and arguments."""

    rule_class = rules.HeavyBall


@register
class NAGRNNCell(RuleRNNCell):
    """Cell of `NAGRNN`, which gives equation and arguments."""

    rule_class = rules.NAG


@register
class SRRNNCell(RuleRNNCell):
    """Cell of `SRRNN`, which gives equation and arguments."""

    rule_class = rules.ScheduledRestart


@register
class AdamRNNCell(RuleRNNCell):
    """Cell of `AdamRNN`, which gives equation and arguments."""

    rule_class = rules.Adam


@register
class RMSPropRNNCell(RuleRNNCell):
    """Cell of `RMSPropRNN`, which gives equation and arguments."""

    rule_class = rules.RMSProp


@register
class MomentumGRUCell(RuleGRUCell):
    """Cell of `MomentumGRU`, which gives equation and arguments."""

    rule_class = rules.HeavyBall


@register
class NAGGRUCell(RuleGRUCell):
    """Cell of `NAGGRU`, which gives equation and arguments."""

    rule_class = rules.NAG


@register
class SRGRUCell(RuleGRUCell):
    """Cell of `SRGRU`, which gives equation and arguments."""

    rule_class = rules.ScheduledRestart


@register
class AdamGRUCell(RuleGRUCell):
    """Cell of `AdamGRU`, which gives equation and arguments."""

    rule_class = rules.Adam


@register
class RMSPropGRUCell(RuleGRUCell):
    """Cell of `RMSPropGRU`, which gives equation and arguments."""

    rule_class = rules.RMSProp


@register
class DTRIVCell(RuleDTRIVCell):
    """Cell of `DTRIV`, which gives equation and arguments."""

    rule_class = rules.Identity


@register
class MomentumDTRIVCell(RuleDTRIVCell):
    """Cell of `MomentumDTRIV`, which gives equation and arguments."""

    rule_class = rules.HeavyBall


@register
class NAGDTRIVCell(RuleDTRIVCell):
    """Cell of `NAGDTRIV`, which gives equation and arguments."""

    rule_class = rules.NAG


@register
class SRDTRIVCell(RuleDTRIVCell):
    """Cell of `SRDTRIV`, which gives equation and arguments."""

    rule_class = rules.ScheduledRestart


@register
class AdamDTRIVCell(RuleDTRIVCell):
    """Cell of `AdamDTRIV`, which gives equation and arguments."""

    rule_class = rules.Adam


@register
class RMSPropDTRIVCell(RuleDTRIVCell):
    """Cell of `RMSPropDTRIV`, which gives equation and arguments."""

    rule_class = rules.RMSProp
