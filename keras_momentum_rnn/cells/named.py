"""The named cells: each chooses a cell and a rule, and nothing else."""

from typing import TypeVar

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

Cell = TypeVar("Cell", bound=type)


def named(cls: Cell) -> Cell:
    """Register a cell, and name the layer that documents it, a decorator."""
    layer = cls.__name__.removesuffix("Cell")
    cls.__doc__ = f"Cell of `{layer}`, which gives equation and arguments."
    return register(cls)


@named
class MomentumLSTMCell(RuleLSTMCell):
    rule_class = rules.HeavyBall


@named
class NAGLSTMCell(RuleLSTMCell):
    rule_class = rules.NAG


@register
class SRLSTMCell(RuleLSTMCell):
    """Cell of `SRLSTM(formulation="paper")`, which gives equation and arguments."""

    rule_class = rules.ScheduledRestart


@named
class AdamLSTMCell(RuleLSTMCell):
    rule_class = rules.Adam


@named
class RMSPropLSTMCell(RuleLSTMCell):
    rule_class = rules.RMSProp


@named
class MomentumRNNCell(RuleRNNCell):
    rule_class = rules.HeavyBall


@named
class NAGRNNCell(RuleRNNCell):
    rule_class = rules.NAG


@named
class SRRNNCell(RuleRNNCell):
    rule_class = rules.ScheduledRestart


@named
class AdamRNNCell(RuleRNNCell):
    rule_class = rules.Adam


@named
class RMSPropRNNCell(RuleRNNCell):
    rule_class = rules.RMSProp


@named
class MomentumGRUCell(RuleGRUCell):
    rule_class = rules.HeavyBall


@named
class NAGGRUCell(RuleGRUCell):
    rule_class = rules.NAG


@named
class SRGRUCell(RuleGRUCell):
    rule_class = rules.ScheduledRestart


@named
class AdamGRUCell(RuleGRUCell):
    rule_class = rules.Adam


@named
class RMSPropGRUCell(RuleGRUCell):
    rule_class = rules.RMSProp


@named
class DTRIVCell(RuleDTRIVCell):
    rule_class = rules.Identity


@named
class MomentumDTRIVCell(RuleDTRIVCell):
    rule_class = rules.HeavyBall


@named
class NAGDTRIVCell(RuleDTRIVCell):
    rule_class = rules.NAG


@named
class SRDTRIVCell(RuleDTRIVCell):
    rule_class = rules.ScheduledRestart


@named
class AdamDTRIVCell(RuleDTRIVCell):
    rule_class = rules.Adam


@named
class RMSPropDTRIVCell(RuleDTRIVCell):
    rule_class = rules.RMSProp
