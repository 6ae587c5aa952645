"""Which path a layer takes, and why: a pure function of declared conditions."""

from dataclasses import dataclass

import keras

from keras_momentum_rnn.paths.filtered import has_fixed_numbers, is_number
from keras_momentum_rnn.paths.native import runtime
from keras_momentum_rnn.paths.registry import EXPORTED, KERNELS, UNIVERSAL
from keras_momentum_rnn.rules import Identity, LinearRule, ScheduledRestart

# A kernel of so many weights no longer fits in the CPU cache.
LARGE = 2**19
HALF = ("float16", "bfloat16")


@dataclass(frozen=True)
class Plan:
    """A path, how it runs, and the reason for it.

    Attributes:
        path: one of the following. The results are the same.
            "native": rule and recurrence in one loop on the CPU, compiled by Numba.
            "fused": the rule filters the input for all times, a fused kernel does the rest.
            "drive": the drive of all times, then a fused kernel.
            "filter": the loop over steps with the input filtered, in place of the drive.
            "step": the loop over steps.
            "scripted", "graph_loop": that loop in TorchScript, or in a graph of PyTorch, for
                a file.
            "keras": the loop or the kernel of Keras, of the layers without a rule.
        reason: why, in words.
        projects_before_loop: bool, whether `W x + b` is computed for all times before the
            loop of "filter" and "step", since W no longer fits in the CPU cache.
        rematerialises: bool, whether that loop computes its steps again in the backward
            pass in place of storing what they computed.
    """

    path: str
    reason: str
    projects_before_loop: bool = False
    rematerialises: bool = False


# To choose and prepare a kernel takes longer than the one step of a stream.
ONE_STEP = Plan("step", "the sequence has one step")


@dataclass(frozen=True)
class Call:
    """Everything that the choice of a path depends on.

    Attributes:
        backend: "tensorflow", "jax" or "torch".
        device: "cpu" or "gpu".
        dtype: the compute dtype.
        cell: what messages call the cell.
        recurrence: the name of the cell's own equation among `registry.RECURRENCES`, or None.
        standard_activations: bool, whether its activations are the usual ones.
        drive_from_input: bool, whether the drive is the rule's of W x + b and nothing else.
        cheap_steps: bool, whether recomputing a step is faster than storing what it computed.
        features: the width of the input.
        units: the width of h.
        drive_width: the width of the drive.
        rule: the name of the rule's class, for messages.
        rule_kind: "none", "linear", "elementwise", "scaled" or "other"; "elementwise" is
            linear, with numbers of its own for each element of the drive.
        rule_learns: bool, whether the rule's numbers may be learned.
        rule_constant: bool, whether it is linear and has the same numbers at every step.
        rule_extreme: bool, whether its step size is far from 1, see `EXTREME`.
        rule_overflows: bool, whether powers of its momentum overflow, see `powers_overflow`.
        training: bool, as of the call.
        dropout: None, "input", or "gates" where each gate has a mask of its own.
        recurrent_dropout: bool, whether dropout acts on h in this call.
        drops: bool, whether any dropout acts in this call, that of a memory included.
        mask: bool, whether the call has a mask.
        slots_given: bool, whether the call's `initial_state` holds slots.
        transformed: bool, whether a function transform of PyTorch acts on the call.
        native_absence: str, why there is no native kernel here, or None.
        exported: None, or how the call is traced for a file, of `traced_for_export`.
        stateful, unroll, use_cudnn: the arguments of the layer.
    """

    backend: str
    device: str
    dtype: str
    cell: str
    recurrence: str | None
    standard_activations: bool
    drive_from_input: bool
    cheap_steps: bool
    features: int
    units: int
    drive_width: int
    rule: str
    rule_kind: str
    rule_learns: bool
    rule_constant: bool
    rule_extreme: bool
    rule_overflows: bool
    training: bool
    dropout: str | None
    recurrent_dropout: bool
    drops: bool
    mask: bool
    slots_given: bool
    transformed: bool
    native_absence: str | None
    exported: str | None
    stateful: bool
    unroll: bool
    use_cudnn: bool | str


# Outside of these step sizes the squares in the gradient of the native kernel leave float32.
EXTREME = (1e-6, 1e6)


def call_of(cell, training, **call):
    """Return the `Call` of a cell.

    Args:
        cell: a `RuleCell`.
        training: bool, whether dropout acts.
        **call: what a cell cannot know, as of `Call`.
    """
    rule = cell.rule
    dropout = None
    if training and cell.dropout:
        dropout = "gates" if getattr(cell, "implementation", 2) == 1 else "input"
    # Before it is built, a rule may lack weights that these numbers are made of.
    known = rule.scaled and (cell.built or not rule.has_weights)
    mu, gain, factor = rule.scaling if known else (0, 1, 1)
    if known and not rule.has_velocity and is_number(mu) and mu != 0:
        raise ValueError(
            f"{type(rule).__name__} has no velocity, so mu must be 0 in its `scaling`. "
            f"Received: scaling={rule.scaling}"
        )
    numbers = (mu, gain, factor, rule.beta, rule.epsilon) if known else ()
    learns = rule.learns or not all(map(is_number, numbers))
    return Call(
        dtype=cell.compute_dtype,
        cell=type(cell).__name__.removeprefix("Plain")
        + " with reset_after=False" * (getattr(cell, "reset_after", True) is False),
        recurrence=cell.recurrence_name,
        standard_activations=cell.standard_activations,
        drive_from_input=cell.drive_from_input,
        cheap_steps=cell.cheap_steps,
        units=cell.units,
        drive_width=cell.drive_width,
        rule=type(rule).__name__,
        rule_kind=kind_of(rule),
        rule_learns=learns,
        rule_constant=rule.linear and not rule.counts,
        rule_extreme=not learns and not EXTREME[0] <= gain * factor <= EXTREME[1],
        training=bool(training),
        dropout=dropout,
        recurrent_dropout=bool(training and cell.recurrent_dropout),
        drops=bool(training and (cell.dropout or cell.recurrent_dropout or cell.has_dropout)),
        **call,
    )


def kind_of(rule):
    """Return the kind of a rule, see `Call`."""
    if rule.scaled:
        return "scaled"
    if not rule.linear:
        # A subclass of `Identity` may do anything.
        return "none" if type(rule) is Identity else "other"
    if rule.counts and not (
        rule.shared and counts_as_known(rule) and (rule.learns or has_fixed_numbers(rule))
    ):
        return "other"
    return "linear" if rule.shared else "elementwise"


def counts_as_known(rule):
    """Return whether mu_t of a rule that counts is that of the first counter plus the steps."""
    kind = type(rule)
    if kind.advance_counter is ScheduledRestart.advance_counter:
        return kind.coefficients is ScheduledRestart.coefficients
    return kind.advance_counter is LinearRule.advance_counter


def choose(call):
    """Return the `Plan` of a `Call`: the first kernel of the registry that serves it."""
    if call.exported:
        # A traced step has no dropout.
        steps = call.unroll or (call.exported == "torchscript" and call.drops)
        kernel = UNIVERSAL if steps else EXPORTED.get(call.exported, UNIVERSAL)
        reason = "the call is traced for a file, which carries plain steps"
        return plan_with(kernel, call, [reason])
    if call.use_cudnn is False:
        return plan_with(UNIVERSAL, call, ["use_cudnn=False"])
    if call.unroll:
        return plan_with(UNIVERSAL, call, ["unroll=True"])
    kernels = [kernel for kernel in KERNELS if kernel.serves_device(call)]
    refusals = []
    if not any(kernel.fused for kernel in kernels):
        refusals.append(f"{call.backend} has no fused kernel for the {call.device.upper()}")
    for kernel in kernels:
        reason = kernel.refusal(call)
        if reason is None:
            return plan_with(kernel, call, [*refusals, kernel.runs])
        refusals.append(reason)
    return plan_with(UNIVERSAL, call, refusals)


def plan_with(kernel, call, reasons):
    """Return the `Plan` that runs a kernel, for these reasons."""
    projects = kernel.in_steps and call.features * call.drive_width >= LARGE
    if projects:
        reasons = [*reasons, "W x + b before the loop, since W is large"]
    return Plan(
        path=kernel.path,
        reason="; ".join(dict.fromkeys(reasons)),
        projects_before_loop=projects,
        rematerialises=(
            kernel.in_steps
            and call.cheap_steps
            and call.backend == "jax"
            and call.device == "cpu"
        ),
    )


def plan_once(layer, cell, plans, **call):
    """Return the plan of a call. It takes as long as a small call: calls alike share it.

    Args:
        layer: the layer that is called.
        cell: its cell as the paths see it.
        plans: dict of the plans of this layer so far.
        **call: as of `paths.plan.Call`, but for what layer and cell say.
    """
    call |= {
        "training": bool(call["training"]),  # Keras makes NumPy's a tensor
        "stateful": layer.stateful,
        "unroll": layer.unroll,
        "use_cudnn": layer.use_cudnn,
        "native_absence": runtime.absence(),
    }
    if getattr(cell, "memory", None) is not None and layer.compute_dtype != cell.compute_dtype:
        # The weights of a memory, Keras's, would be rounded for the layer.
        call["native_absence"] = f"layer: {layer.compute_dtype}, cell: {cell.compute_dtype}"
    dropouts = cell.dropout, cell.recurrent_dropout, cell.has_dropout
    equation = cell.compute_dtype, cell.recurrence_name, cell.standard_activations
    # The rule by its `id`, since that of a user may have no hash.
    key = (*sorted(call.items()), id(cell.rule), cell.rule.learns, *dropouts, *equation)
    if key not in plans:
        plan = choose(call_of(cell, backend=keras.config.backend(), **call))
        plans[key] = plan, cell.rule  # as long as it is kept, no other has its `id`
    return plans[key][0]
