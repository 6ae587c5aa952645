"""Which path a layer takes, and why: a pure function of declared conditions."""

from dataclasses import dataclass

import keras


@dataclass(frozen=True)
class Plan:
    """A path and the reason for it.

    Attributes:
        path: one of the following. The results are the same.
            "fused": the input filtered for all times, the recurrence by a fused kernel.
            "drive": the drive for all times, the recurrence by a fused kernel; on a CPU,
                rule and recurrence in one lean loop.
            "filter": the loop over steps with the input filtered, in place of the drive.
            "step": the loop over steps.
        reason: one sentence.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Call:
    """What a path is chosen for.

    Attributes:
        backend: "tensorflow", "jax" or "torch".
        device: "cpu" or "gpu".
        features: the width of the input, or None where it is not known yet.
        mask, training: bool, as of the call.
        slots: bool, whether the slots may start from other values than zero.
        stateful, unroll, use_cudnn: the arguments of the layer.
    """

    backend: str
    device: str
    features: int | None
    mask: bool
    training: bool
    slots: bool
    stateful: bool
    unroll: bool
    use_cudnn: bool | str


def choose(cell, call):
    """Return the `Plan` of a `Call` of a cell with a rule."""
    if call.use_cudnn is False:
        return Plan("step", "use_cudnn=False")
    if call.unroll:
        return Plan("step", "unroll=True")
    no_kernel = first(no_kernel_because(cell, call))
    no_filter = first(no_filter_because(cell, call))
    masked = ", masked steps moved behind the others" if call.mask else ""
    if no_kernel is None and no_filter is None and not is_half(cell):
        return Plan("fused", f"the rule filters the input{masked}; the kernel does the rest")
    if no_kernel is None:
        lean = on_torch_cpu(call)
        why = no_filter or f"the rule computes in float32, the kernel in {cell.compute_dtype}"
        no_drive = first(no_drive_because(cell, call))
        if no_drive is None:
            how = "a lean loop" if lean else "the drive of all times, then the kernel"
            return Plan("drive", f"{why}: {how}{masked}")
        no_kernel = f"{why}, and {no_drive}"
    if no_filter is None:
        return Plan("filter", f"{no_kernel}; the rule filters the input")
    return Plan("step", no_kernel)


def no_kernel_because(cell, call):
    """Return reasons why no fused kernel can run the recurrence, and whether each holds."""
    return {
        f"{type(cell).__name__} has no fused kernel": cell.fused_kernel is None,
        f"{type(cell.rule).__name__} is neither linear in the input nor scaled as Adam": not (
            cell.rule.linear or cell.rule.scaled
        ),
        "a kernel has tanh and sigmoid alone": not has_kernel_activations(cell),
        "recurrent dropout acts on h": call.training and cell.recurrent_dropout > 0,
        f"{call.backend} has no fused kernel for the CPU": (
            call.backend != "torch" and call.device == "cpu"
        ),
        f"no kernel for the CPU computes in {cell.compute_dtype}": (
            call.device == "cpu" and is_half(cell)
        ),
        "cuDNN on this backend computes in 32 bits or fewer": (
            call.backend != "torch" and cell.compute_dtype == "float64"
        ),
    }


def no_filter_because(cell, call):
    """Return reasons why the rule cannot be applied to the input in place of the drive."""
    return {
        f"{type(cell.rule).__name__} is not linear in the input": not cell.rule.linear,
        f"{type(cell).__name__} does not take its drive from the input alone": (
            not cell.drive_is_linear
        ),
        "the slots do not start at zero": call.slots or call.stateful,
        "each gate has a dropout mask of its own": (
            call.training and cell.dropout > 0 and getattr(cell, "implementation", 2) == 1
        ),
        "the input is wider than the drive": (
            call.features is not None and call.features >= cell.gates * cell.units
        ),
    }


def no_drive_because(cell, call):
    """Return reasons why a kernel cannot be given the drive of all times."""
    return {
        "the rule learns": cell.rule.learns,
        "its layer was not built for slots": (
            call.backend != "torch" and call.slots and not call.stateful and cell.rule.linear
        ),
    }


def first(reasons):
    """Return the first reason that holds, or None."""
    return next((reason for reason, holds in reasons.items() if holds), None)


def on_torch_cpu(call):
    return call.backend == "torch" and call.device == "cpu"


def is_half(cell):
    return cell.compute_dtype in ("float16", "bfloat16")


def device():
    """Return the device that calls run on, "cpu" or "gpu"."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        gpu = jax.default_backend() == "gpu"
    elif backend == "tensorflow":
        import tensorflow as tf

        gpu = bool(tf.config.list_physical_devices("GPU"))
    else:
        gpu = keras.ops.zeros(()).device.type == "cuda"
    return "gpu" if gpu else "cpu"


def has_kernel_activations(cell):
    """Return whether the activations are those that fused kernels have built in."""
    return (
        cell.activation is keras.activations.tanh
        and getattr(cell, "recurrent_activation", None) is keras.activations.sigmoid
    )
