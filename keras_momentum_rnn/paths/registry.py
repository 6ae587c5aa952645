"""The kernels: each declares what it serves and why it refuses, and the best stand first.

A new kernel is a module with a function `(cell, sequence, plan) -> (outputs, states)`, see
`run.Sequence`, and an entry of `KERNELS`.
"""

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass

from keras_momentum_rnn.paths.devices import jax_is_older

FLOAT = ("float32", "float64")
ALL_DTYPES = (*FLOAT, "float16", "bfloat16")
# The names of recurrences: `RuleCell.recurrence_name`.
RECURRENCES = ("lstm", "gru", "elman", "modrelu", "released", "nested_gru", "nested_lstm")

# With more weights than these the native kernel is not measured to be faster.
NATIVE_WEIGHTS = 2**23
# More weights than these leave the second-level cache. There PyTorch's own kernel is faster,
# and the loops of JAX and TensorFlow are not.
CACHED_WEIGHTS = 2**19
# The weights of a nested memory, as multiples of the square of the units.
MEMORY_WEIGHTS = {"nested_gru": 9, "nested_lstm": 12}


@dataclass(frozen=True)
class Kernel:
    """One way to run a sequence, and the calls that it serves.

    Attributes:
        path: the name of the path in a `Plan`.
        function: "module:name" of what runs it; imported when it is first needed.
        runs: what it does, in words.
        backends, devices, dtypes: tuples of those of `Call`.
        recurrences: tuple of names, or None for any cell.
        rule_kinds: tuple of those of `Call`.
        recurrent_dropouts: tuple of recurrences of its own that it runs with dropout on h.
        learned_rules: the rules whose own weights get a gradient, "all" or "constant": linear
            rules with the same numbers at every step.
        transforms: bool, whether function transforms of PyTorch can pass through it.
        fused: bool, whether it is a fused kernel of the backend.
        in_steps: bool, whether it is a loop over the cell's own steps.
        reasons: function from a `Call` to a list of further reasons to refuse it, pairs of a
            condition and its words.
    """

    path: str
    function: str
    runs: str
    backends: tuple = ("tensorflow", "jax", "torch")
    devices: tuple = ("cpu", "gpu")
    dtypes: tuple = ALL_DTYPES
    recurrences: tuple | None = None
    rule_kinds: tuple = ("none", "linear", "elementwise", "scaled", "other")
    recurrent_dropouts: tuple = ()
    learned_rules: str = "all"
    transforms: bool = True
    fused: bool = False
    in_steps: bool = False
    reasons: Callable = lambda call: []

    def serves_device(self, call):
        """Return whether it runs on the backend and the device of a `Call`."""
        return call.backend in self.backends and call.device in self.devices

    def refusal(self, call):
        """Return the first reason that keeps the kernel from a `Call` there, or None."""
        own_equation = self.recurrences is not None
        name = "fused kernel" if self.fused else f"{self.path} kernel"
        unknown_recurrence = own_equation and call.recurrence not in self.recurrences
        drops = call.recurrent_dropout and call.recurrence not in self.recurrent_dropouts
        learns = call.rule_learns and not call.rule_constant and self.learned_rules != "all"
        reasons = [
            (unknown_recurrence, f"{call.cell} has no {name}"),
            (
                own_equation and not call.standard_activations,
                "fused and native kernels have tanh and sigmoid alone",
            ),
            (own_equation and drops, "recurrent dropout acts on h"),
            (call.dtype not in self.dtypes, f"no {name} computes in {call.dtype}"),
            (call.rule_kind not in self.rule_kinds, misfit(call, self.rule_kinds)),
            (call.transformed and not self.transforms, "a function transform acts on the call"),
            (learns, "the rule learns"),
            *self.reasons(call),
        ]
        return next((reason for holds, reason in reasons if holds), None)

    def load(self):
        """Return the function that runs it."""
        module, _, name = self.function.partition(":")
        return getattr(importlib.import_module(f"keras_momentum_rnn.paths.{module}"), name)


LINEAR_OR_SCALED = ("linear", "elementwise", "scaled")


def misfit(call, kinds):
    """Return why the rule of a call is none of these kinds."""
    if call.rule_kind == "none":
        return "no rule"
    if call.rule_kind == "elementwise":
        return f"{call.rule} has other numbers for each gate or unit"
    if "scaled" in kinds:
        return f"{call.rule} is neither linear in the input nor scaled as Adam"
    return f"{call.rule} is not linear in the input"


def overflowing(call):
    """Return the reasons why a filter in chunks would make NaN of infinity times zero."""
    # It goes on behind a sample's last step, where a momentum that has grown above 1 explodes.
    unbounded = call.mask and call.rule_learns and call.rule != "LearnedMomentum"
    return [
        (call.rule_overflows, f"powers of the momentum of {call.rule} overflow"),
        (unbounded, f"with a mask: the momentum of {call.rule} may grow above 1"),
    ]


def no_features(call):
    """Return the reason why no kernel multiplies the input by its weights."""
    return call.features == 0, "the input has no features"


def unfiltered(call):
    """Return the reasons why a rule cannot filter the input in place of the drive.

    Where there is no rule, nothing is filtered.
    """
    filters = call.rule_kind != "none"
    return [
        (
            not call.drive_from_input,
            f"{call.cell} does not take its drive from the input alone",
        ),
        (filters and (call.slots_given or call.stateful), "the slots do not start at zero"),
        (call.dropout == "gates", "each gate has a dropout mask of its own"),
        no_features(call),
        (filters and call.features >= call.drive_width, "the input is as wide as the drive"),
        *overflowing(call),
    ]


def unbuilt(call):
    """Return the reasons why a stock layer cannot run on the drive."""
    built = call.stateful or not call.slots_given or call.rule_kind != "linear"
    not_built = not built, "its stock layer was not built for slots"
    return [not_built, *overflowing(call), *reordered(call)]


def reordered(call):
    """Return the reason why cuDNN, called by Keras on JAX, may read memory wrongly."""
    lstm = call.backend == "jax" and call.recurrence == "lstm"
    return [(lstm, "Keras on JAX does not tell XLA in which order cuDNN reads memory")]


def old_jax(call):
    """Return the reason why JAX cannot be told in which order cuDNN reads memory."""
    old = jax_is_older(0, 7)
    return [(old, "JAX before 0.7 cannot be told in which order cuDNN reads memory")]


def unfit(call):
    """Return the reasons why the native kernel would not run, or be slow."""
    weights = (call.features + call.units) * call.drive_width
    weights += MEMORY_WEIGHTS.get(call.recurrence, 0) * call.units**2
    is_fused = call.backend == "torch" and TORCH_FUSED.refusal(call) is None
    return [
        (call.use_cudnn is True, "use_cudnn=True"),
        (call.native_absence is not None, f"no native kernel: {call.native_absence}"),
        (
            weights > (CACHED_WEIGHTS if is_fused else NATIVE_WEIGHTS),
            "the native kernel is slow for so many weights",
        ),
        # To the kernel, weights without rows say that the input is the drive.
        no_features(call),
        (call.rule_extreme, f"the step size of {call.rule} is far from 1"),
    ]


NATIVE = Kernel(
    "native",
    "native.run:run_native",
    "rule and recurrence in one loop, compiled by Numba",
    devices=("cpu",),
    dtypes=("float32",),
    recurrences=RECURRENCES,
    recurrent_dropouts=("lstm", "released", "gru", "elman", "modrelu"),
    rule_kinds=("none", *LINEAR_OR_SCALED),
    learned_rules="constant",
    transforms=False,
    reasons=unfit,
)
fused = functools.partial(
    Kernel,
    "fused",
    "fused:run_on_filtered_input",
    "a fused kernel on the input of all times, which the rule, if any, filters before",
    fused=True,
)
# A fused kernel multiplies what it is given by a matrix: the drive by an identity matrix, which
# costs little on a GPU. On a CPU the loop over steps is faster.
driven = functools.partial(
    Kernel,
    "drive",
    "fused:run_on_drive",
    "the drive of all times, then a fused kernel",
    devices=("gpu",),
    rule_kinds=LINEAR_OR_SCALED,
    learned_rules="constant",
    fused=True,
)
OF_TORCH = {
    "backends": ("torch",),
    "recurrences": ("lstm", "gru", "elman"),
    "transforms": False,
}
OF_JAX = {"backends": ("jax",), "dtypes": ("float32",), "recurrences": ("lstm",)}
OF_STOCK = {"backends": ("tensorflow", "jax"), "recurrences": ("lstm", "gru")}
TORCH_FUSED = fused(**OF_TORCH, dtypes=FLOAT, rule_kinds=("none", "linear"), reasons=unfiltered)
JAX_FUSED = fused(
    **OF_JAX,
    devices=("gpu",),
    rule_kinds=("none", "linear"),
    reasons=lambda call: [*unfiltered(call), *old_jax(call)],
)
STOCK_FUSED = fused(
    **OF_STOCK,
    devices=("gpu",),
    dtypes=("float32",),
    rule_kinds=("linear",),
    reasons=lambda call: [*unfiltered(call), *reordered(call)],
)
TORCH_DRIVEN = driven(**OF_TORCH, reasons=overflowing)
JAX_DRIVEN = driven(**OF_JAX, reasons=lambda call: [*overflowing(call), *old_jax(call)])
STOCK_DRIVEN = driven(**OF_STOCK, dtypes=("float32", "float16", "bfloat16"), reasons=unbuilt)
FILTERING_STEPS = Kernel(
    "filter",
    "filtered:run_filtering_steps",
    "the rule filters the input in a loop over steps",
    rule_kinds=("linear",),
    in_steps=True,
    reasons=unfiltered,
)
# It serves every call, and is the definition of the results.
UNIVERSAL = Kernel("step", "steps:run_steps", "a loop over steps", in_steps=True)
# The same steps for files: a loop in Python would be written out, and not every loop of
# TensorFlow can be converted.
EXPORTED = {
    "torchscript": Kernel(
        "scripted",
        "torch_scripted:run_scripted_steps",
        "a scripted loop over steps",
        backends=("torch",),
    ),
    "open graph": Kernel(
        "graph_loop",
        "torch_graph:run_steps_in_graph",
        "a loop over steps in the graph",
        backends=("torch",),
    ),
    "served graph": Kernel(
        "graph_loop",
        "steps:run_steps",
        "a loop over steps in the graph",
        backends=("tensorflow",),
        in_steps=True,
    ),
}

KERNELS = (
    NATIVE,
    TORCH_FUSED,
    JAX_FUSED,
    STOCK_FUSED,
    TORCH_DRIVEN,
    JAX_DRIVEN,
    STOCK_DRIVEN,
    FILTERING_STEPS,
)
