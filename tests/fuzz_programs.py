"""What the fuzz draws: programs, which are layers with a way to call them, and their cases."""

import contextlib
import dataclasses
import inspect
import itertools
import os
import warnings
from unittest import mock

import keras
from harness import BACKEND, cudnn_of_jax
from keras import ops
from masks import MASKS

import keras_momentum_rnn as kmr
from keras_momentum_rnn.layers.registry import our_layers
from keras_momentum_rnn.paths.native import runtime

# Cases of one program: on PyTorch nothing is compiled.
CASES = {"torch": 3, "jax": 10, "tensorflow": 10}[BACKEND]
# The plain layers, each with the layer whose steps it equals.
PLAIN = {"LSTM": "RuleLSTM", "GRU": "RuleGRU", "SimpleRNN": "RuleRNN"}
# Drawn weights follow: nothing is compiled for these.
ZEROS = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
# What the plan sees: the native kernel, the CPU without it, or a GPU, whose paths run here.
DEVICES = ("native", "native", "native", "cpu", "gpu")


@keras.saving.register_keras_serializable(package="fuzz")
class Fading(kmr.rules.LinearRule):
    """A rule of one's own that counts: the momentum falls."""

    counts = True

    def __init__(self, start=1.0):
        self.start = start

    def coefficients(self, t):
        return self.start / (t + 2), 0.9


@keras.saving.register_keras_serializable(package="fuzz")
class Mean(kmr.rules.LinearRule):
    """The mean of the inputs so far: the step size changes, too."""

    counts = True

    def coefficients(self, t):
        return t / (t + 1), 1 / (t + 1)


@keras.saving.register_keras_serializable(package="fuzz")
class Squashed(kmr.rules.Rule):
    """Neither linear nor scaled."""

    def slots(self, width):
        return {"g": width}

    def update(self, u, slots):
        g = ops.tanh(0.5 * slots[0] + u)
        return g, [g]


NUMBERS = {
    "momentum": (0.0, 0.6, 0.9, 0.99, 1.0, 4.0),
    "step_size": (0.01, 0.6, 1.0, 30.0),
    "beta": (0.0, 0.5, 0.9, 0.999, 1 - 1e-6),
    "epsilon": (1e-8, 1e-2, 1e-16),
    "relaxed": (True, True, False),
    "restart_period": (1, 2, 5, 40),
    "per": ("scalar", "gate", "unit"),
    "tied": (False, True),
    "start": (1.0, 50.0),
}
RULES = {
    **kmr.rules.named.NAMED,
    "Identity": kmr.rules.Identity,
    "LearnedMomentum": kmr.rules.LearnedMomentum,
    "Fading": Fading,
    "Mean": Mean,
    "Squashed": Squashed,
}
OPTIONS = {
    "use_bias": (False,),
    "use_recurrent_bias": (True,),
    "scale_free": (True,),
    "go_backwards": (True,),
    "return_sequences": (False,),
    "return_state": (False,),
    "zero_output_for_mask": (True,),
    "unroll": (True,),
    "activation": ("relu", "sigmoid", "linear"),
    "recurrent_activation": ("tanh", "hard_sigmoid"),
    "reset_after": (False,),
    "parameterization": ("hidden",),
    "formulation": ("released",),
    "parametrization": ("cayley",),
    "initial_rotation": ("skew",),
    "memory": (
        ("GRUCell", {"use_bias": False}),
        ("GRUCell", {"reset_after": False}),
        ("LSTMCell", {}),
        ("LSTMCell", {"use_bias": False}),
    ),
}


@dataclasses.dataclass(frozen=True)
class Program:
    """A layer, and how it is called."""

    layer: str
    units: int
    shape: tuple  # of x
    rule: str | None = None  # where the layer has none of its own
    numbers: dict = dataclasses.field(default_factory=dict)  # of the rule
    options: dict = dataclasses.field(default_factory=dict)
    dtype: str = "float32"
    device: str = "native"
    mode: str = "eager"  # or "compiled", "stateful", "twice", "inference": without gradients
    training: bool = True
    states: str = "none"  # that are given: "none", "own", "all"
    masked: bool = False
    threads: int = 1

    def make(self, steps=False, **changes):
        """Return the layer, built, or with `steps` one with the same steps."""
        name, rule = self.layer, self.rule
        if steps and name in PLAIN:
            name, rule = PLAIN[name], "Identity"
        layer_class = getattr(kmr, name)
        returned = {"return_sequences": True, "return_state": True}
        known = inspect.signature(layer_class).parameters
        zeros = {key: value for key, value in ZEROS.items() if key in known}
        options = {"dtype": self.dtype, **zeros, **returned, **self.options, **changes}
        if "memory" in options:
            name, arguments = options["memory"]
            cell = getattr(keras.layers, name)
            options["memory"] = cell(self.units, dtype=options["dtype"], **arguments)
        if rule is None:
            options |= self.numbers
        else:
            options["rule"] = RULES[rule](**self.numbers)
        layer = layer_class(self.units, **options)
        wide = "float64" if options["dtype"] == "float64" else "float32"
        layer.noise = keras.Variable(0.0, trainable=False, dtype=wide)
        layer.build(self.shape)
        return layer

    @contextlib.contextmanager
    def surroundings(self):
        """What the layer sees while it is built and called."""
        device = "gpu" if self.device == "gpu" else "cpu"
        native = "1" if self.device == "native" else "0"
        with (
            warnings.catch_warnings(action="ignore"),
            mock.patch("keras_momentum_rnn.recurrent.current_device", lambda: device),
            mock.patch("keras_momentum_rnn.layers.plain.current_device", lambda: device),
            mock.patch.object(runtime, "thread_count", lambda: self.threads),
            mock.patch.object(runtime, "SMALL", 0),
            mock.patch.dict(os.environ, {runtime.SWITCH: native}),
            cudnn_of_jax(),
        ):
            yield


@dataclasses.dataclass(frozen=True)
class Case:
    """The numbers of a case: a seed, sizes of weights and inputs, a mask, and cotangents."""

    seed: int
    weights: float
    inputs: float
    mask: str
    cotangents: str


SIZES = {
    "weights": (0.1, 0.5, 2.0, 30.0),
    # The square of the last one overflows. In a graph TensorFlow may multiply by 1 - beta
    # before u^2 does: there, about 1e20, a gradient leaves float32.
    "inputs": (1e-6, 1.0, 1e3, 1e8, 1e14, 1e30 if BACKEND == "tensorflow" else 1e25),
    "mask": (*MASKS, "all"),
    "cotangents": ("all", "outputs", "states", "some"),
}


def draw_program(rng):
    """Return a random `Program`."""

    def one(pool):
        return pool[rng.integers(len(pool))]

    def rarely(value, default, share=0.2):
        return value if rng.random() < share else default

    name = one([*our_layers(), *PLAIN])
    layer_class = getattr(kmr, name)
    rule_class = getattr(layer_class, "rule_class", kmr.rules.Identity)
    rule = one(list(RULES)) if rule_class is None else None
    rule_class = rule_class or RULES[rule]
    shape = (one((1, 3, 16)), one((1, 2, 5, 9, 20, rarely(70, 9))), one((1, 3, 20)))
    known = inspect.signature(rule_class).parameters
    numbers = {key: one(pool) for key, pool in NUMBERS.items() if key in known}
    if rule == "LearnedMomentum" or not numbers.get("relaxed", True):
        numbers.pop("momentum", None)  # learned, or to be below 1
    known = {*inspect.signature(layer_class).parameters, "zero_output_for_mask"}
    options = {key: one(pool) for key, pool in OPTIONS.items() if key in known}
    options = {key: value for key, value in options.items() if rng.random() < 0.08}
    if "scale_free" in options:
        # It says itself where the bias is.
        options = {
            key: options[key] for key in options.keys() - {"use_bias", "use_recurrent_bias"}
        }
    if shape[1] > 9:
        options.pop("unroll", None)
    mode = rarely(one(("compiled", "stateful", "twice")), "eager")
    if BACKEND == "torch" and mode == "compiled":
        mode = rarely(mode, "eager", 0.1)
    elif BACKEND != "torch":
        # An operation of JAX by itself is a program to compile.
        usual = rarely("eager", "compiled", 0.02 if BACKEND == "jax" else 0.5)
        mode = usual if mode == "eager" else rarely(mode, usual)
    mode = rarely("inference", mode, 0.15)
    dtypes = ("mixed_bfloat16", "mixed_float16", *["float64"] * (BACKEND != "jax"))
    dtype = rarely(one(dtypes), "float32", 0.1)
    if mode == "stateful" and name in PLAIN and dtype.startswith("mixed"):
        mode = "eager"  # Keras's own layers round the states that they keep
    program = Program(
        layer=name,
        units=one((1, 4, 17)),
        shape=shape,
        rule=rule,
        numbers=numbers,
        options=options,
        dtype=dtype,
        device=one(DEVICES),
        mode=mode,
        training=mode != "inference" and rarely(False, True),
        states=one(("none", "own", "all")),
        masked=bool(rng.random() < 0.5),
        threads=one((1, 3)),
    )
    if program.masked and name in PLAIN:
        # Where no step came yet, Keras gives 0 if it unrolls, and else the first h.
        program.options.pop("unroll", None)
    return program


def draw_cases(rng, program):
    """Return random cases of a program, no two alike in all of `SIZES`."""
    pools = {**SIZES, **({} if program.masked else {"mask": ("none",)})}
    if program.dtype.startswith("mixed"):
        # Others overflow in half precision.
        pools |= {"weights": (0.1, 0.5), "inputs": (1e-2, 1.0)}
    sizes = list(itertools.product(*pools.values()))
    chosen = rng.choice(len(sizes), CASES, replace=False)
    return [Case(int(rng.integers(2**31)), *sizes[i]) for i in chosen]
