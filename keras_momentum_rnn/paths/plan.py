"""Which path a layer takes, and why: a pure function of declared conditions."""

from dataclasses import dataclass

import keras

from keras_momentum_rnn.rules import Identity


@dataclass(frozen=True)
class Plan:
    """A path and the reason for it.

    Attributes:
        path: one of the following. The results are the same.
            "fused": the input filtered for all times, the recurrence by a fused kernel.
            "drive": the drive for all times, the recurrence by a fused kernel.
            "loop": rule and recurrence in one lean loop, with a gradient by hand.
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
    in_float32 = f"the rule computes in float32, the kernel in {cell.compute_dtype}"
    why = no_kernel or no_filter or in_float32
    if no_kernel is not None or call.device == "cpu":
        # A kernel that is given the drive multiplies it by an identity matrix, which takes
        # longer on a CPU than a loop.
        if (no_loop := first(no_loop_because(cell, call))) is None:
            return Plan("loop", f"{why}: a lean loop{masked}")
        no_drive = no_loop
    else:
        no_drive = first(no_drive_because(cell, call))
        if no_drive is None:
            return Plan("drive", f"{why}: the drive of all times, then the kernel{masked}")
    if no_kernel is None:
        why = f"{why}, and {no_drive}"
    if no_filter is None:
        return Plan("filter", f"{why}; the rule filters the input")
    return Plan("step", why)


def no_kernel_because(cell, call):
    """Return reasons why no fused kernel can run the recurrence, and whether each holds."""
    elman = cell.fused_kernel == "rnn"
    return {
        f"{type(cell).__name__} has no fused kernel": (
            cell.fused_kernel is None or (elman and call.backend != "torch")
        ),
        **no_lean_recurrence_because(cell, call),
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


def no_loop_because(cell, call):
    """Return reasons why no lean loop runs rule and recurrence, and whether each holds."""
    return {
        f"{call.backend} has no lean loop": call.backend != "torch",
        f"{type(cell).__name__} has no lean loop": cell.lean_loop is None,
        **no_lean_recurrence_because(cell, call),
        "the rule learns": cell.rule.learns,
        f"the loop does not compute in {cell.compute_dtype}": is_half(cell),
    }


def no_lean_recurrence_because(cell, call):
    """Return reasons that hold for kernels and lean loops alike."""
    rule = cell.rule
    known = rule.linear or rule.scaled or type(rule) is Identity
    return {
        f"{type(rule).__name__} is neither linear in the input nor scaled as Adam": not known,
        "kernels and lean loops have tanh and sigmoid alone": not has_kernel_activations(cell),
        "recurrent dropout acts on h": call.training and cell.recurrent_dropout > 0,
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
        f"{type(cell.rule).__name__} has no drive for all times": not (
            cell.rule.linear or cell.rule.scaled
        ),
        "its layer was not built for slots": (
            call.backend != "torch" and call.slots and not call.stateful and cell.rule.linear
        ),
    }


def first(reasons):
    """Return the first reason that holds, or None."""
    return next((reason for reason, holds in reasons.items() if holds), None)


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
    if cell.lean_loop == "modrelu":
        return True
    recurrent = getattr(cell, "recurrent_activation", keras.activations.sigmoid)
    return cell.activation is keras.activations.tanh and recurrent is keras.activations.sigmoid
