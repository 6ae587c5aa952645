"""How far a layer is from the plain layer of Keras that has no rule."""

import numpy as np
from keras import ops

from keras_momentum_rnn import rules
from keras_momentum_rnn.causal_filters import known
from keras_momentum_rnn.rebuilding import copy_of, copy_state


def changes_the_drive(cell):
    """Return whether the drive of a cell's rule may differ from u, tried on a short sequence.

    A rule of the user may differ only later, unless its coefficients are constant.
    """
    rule, width = cell.rule, cell.drive_width
    constant = rule.linear and not rule.counts
    if rule.learns or not (constant or type(rule).__module__.startswith(rules.__name__)):
        return True
    steps = np.random.default_rng(0).normal(size=(5, 1, width)).astype("float32")
    slots = [ops.zeros((1, size), "float32") for size in rule.slots(width).values()]
    for u in map(ops.convert_to_tensor, steps):
        drive, slots = rule.update(u, slots)
        if float(ops.max(ops.abs(drive - u))) > 1e-6:
            return True
    return False


def difference(ours, plain):
    """Return a warning of how far a plain layer is from ours, and what to do instead."""
    text = (
        f"keras.layers.{type(plain).__name__} {plain.name!r} computes another function than "
        f"the {type(ours).__name__} that it is copied from: it has no "
        f"{type(ours.rule).__name__}, with {ours.rule.get_config()}. "
    )
    if ours.built:
        x = np.random.default_rng(0).standard_normal((4, 32, ours.cell.kernel.shape[0]))
        h, other = (outputs_alone(layer, x.astype("float32")) for layer in (ours, plain))
        text += (
            f"On 4 random sequences of 32 steps its outputs differ by up to "
            f"{np.abs(h - other).max():.2g}, where ours are up to {np.abs(h).max():.2g}. "
        )
    if known(ours.rule):
        return text + "With `exact=True` the copy keeps the rule, as a filter"
    return text + (
        "Fine-tune the copy, or export the original; the page Deploy of the documentation says "
        "how"
    )


def outputs_alone(layer, x):
    """Return all outputs of a layer that is left as it is."""
    changes = dict.fromkeys(("stateful", "return_state", "unroll", "go_backwards"), False)
    if "use_cudnn" in layer.get_config():
        changes["use_cudnn"] = "auto"
    alone = copy_of(layer, **changes, return_sequences=True, dtype="float32")
    copy_state(layer, alone)
    return ops.convert_to_numpy(alone(x))
