"""Run a sequence on the path that the plan chose."""

from dataclasses import dataclass, field

import keras

from keras_momentum_rnn.paths.registry import EXPORTED, KERNELS, UNIVERSAL
from keras_momentum_rnn.paths.transforms import untraced

# Backends may share the name of a path. Keras's backends for inference have plain steps alone.
KERNEL_OF = {
    kernel.path: kernel
    for kernel in (*KERNELS, *EXPORTED.values(), UNIVERSAL)
    if keras.config.backend() in kernel.backends or kernel is UNIVERSAL
}
LOADED = {}


@dataclass(frozen=True)
class Sequence:
    """What a kernel runs.

    Attributes:
        x: tensor `(batch, time, features)`; where it is masked it is zero.
        states: list of the initial states, the slots behind the cell's own.
        mask: bool tensor `(batch, time)` or None. Where it is False every state is held.
        training: bool, whether dropout acts.
        unroll: bool, whether the steps are written out one by one.
        all_outputs: bool; False where the last output is enough, `(batch, 1, size)`.
        stock_layers: dict, the layers built for the cell, of `kernels.stock_layers`.
    """

    x: object
    states: list
    mask: object = None
    training: bool = False
    unroll: bool = False
    all_outputs: bool = True
    stock_layers: dict = field(default_factory=dict)


def run(plan, cell, sequence):
    """Run a sequence.

    Args:
        plan: a `Plan`.
        cell: a cell with a rule.
        sequence: a `Sequence`.

    Returns:
        The first state at all times, `(batch, time, size)`, and the final states.
    """
    load(plan.path)
    return LOADED[plan.path](cell, sequence, plan)


@untraced
def load(path):
    """Import what runs a path, once."""
    if path not in LOADED:
        LOADED[path] = KERNEL_OF[path].load()
