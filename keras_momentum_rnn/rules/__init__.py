"""Momentum rules: how the input drive of a recurrent cell is accelerated.

A recurrent cell computes `u_t = x_t W + b` from its input at every step. Nguyen et al.
(2020) read `u_t` as the gradient that step `t` brings, and accelerate it as an optimiser
would. A rule is that optimiser: it turns the sequence `u` into the drive `g` which the cell
uses in place of `u`. It knows neither cell nor weights, only `u` and its own slots, the
numbers that it carries from step to step.

A rule says by its class which fast paths can run it:

- `LinearRule`: the drive is a linear combination of the inputs so far. The input itself can be
  filtered, and a fused kernel can do the rest.
- `ScaledRule`: a linear velocity over the root of a running second moment, as in Adam.
- `Rule`: anything else. It runs step by step.
"""

from keras_momentum_rnn.rules.learned import LearnedMomentum
from keras_momentum_rnn.rules.named import (
    NAG,
    Adam,
    HeavyBall,
    Identity,
    RMSProp,
    ScheduledRestart,
    get,
)
from keras_momentum_rnn.rules.protocol import LinearRule, Rule, ScaledRule, register

__all__ = [
    "Rule",
    "LinearRule",
    "ScaledRule",
    "Identity",
    "HeavyBall",
    "NAG",
    "ScheduledRestart",
    "Adam",
    "RMSProp",
    "LearnedMomentum",
    "get",
    "register",
]
