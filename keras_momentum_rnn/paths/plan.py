"""Which path a layer takes, and why: a pure function of declared conditions."""

from dataclasses import dataclass

import keras


@dataclass(frozen=True)
class Plan:
    """A path and the reason for it.

    Attributes:
        path: "fused", the linear rule applied to the input and the recurrence left to the
            backend's own kernel; "drive", the input product of all times at once, then rule
            and recurrence in a lean loop; or "step", the loop over steps. The results are
            the same.
        reason: one sentence.
    """

    path: str
    reason: str


def choose(cell, backend, mask, training, slots, unroll, use_cudnn):
    """Return the `Plan` of a call.

    Args:
        cell: a cell with a rule.
        backend: "tensorflow", "jax" or "torch".
        mask, training: bool, as of the call.
        slots: bool, whether the slots may start from other values than zero.
        unroll, use_cudnn: the arguments of the layer.
    """
    obstacles = {
        "use_cudnn=False": use_cudnn is False,
        "unroll=True": unroll,
        f"no fused kernel of the {backend} backend is in use": backend != "torch",
        f"{type(cell).__name__} has no fused kernel": cell.fused_kernel is None,
        f"{type(cell.rule).__name__} is neither linear in the input nor scaled as Adam": not (
            cell.rule.linear or cell.rule.scaled
        ),
        "a kernel has tanh and sigmoid alone": not has_kernel_activations(cell),
        "recurrent dropout acts on h": training and cell.recurrent_dropout > 0,
        f"no kernel computes in {cell.compute_dtype}": (
            cell.compute_dtype not in ("float32", "float64")
        ),
    }
    for reason, holds in obstacles.items():
        if holds:
            return Plan("step", reason)
    # Why the rule cannot be applied to the input, before its product with the kernel.
    unfiltered = {
        "the rule scales the drive": not cell.rule.linear,
        "the slots do not start at zero": slots,
        "each gate has a dropout mask of its own": (
            training and cell.dropout > 0 and getattr(cell, "implementation", 2) == 1
        ),
    }
    masked = ", masked steps moved behind the others" if mask else ""
    for reason, holds in unfiltered.items():
        if holds and cell.rule.learns:
            return Plan("step", f"{reason}, and the rule learns")
        if holds:
            return Plan("drive", f"{reason}: rule and recurrence in one lean loop{masked}")
    return Plan("fused", f"the rule filters the input{masked}, {backend} runs the recurrence")


def has_kernel_activations(cell):
    """Return whether the activations are those that fused kernels have built in."""
    return (
        cell.activation is keras.activations.tanh
        and getattr(cell, "recurrent_activation", None) is keras.activations.sigmoid
    )
