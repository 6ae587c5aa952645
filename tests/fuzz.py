"""Compare the path that a layer takes with its plain steps, on drawn layers and numbers.

    KERAS_BACKEND=torch python tests/fuzz.py --cases 5000 --seed 0
    KERAS_BACKEND=jax python tests/fuzz.py --seconds 60

A *program* is a layer with its options, a shape and a way to call it; its *cases* are other
weights, inputs, states, masks and cotangents. On JAX and TensorFlow a program is compiled once,
for many cases. Values and all gradients are compared with those of the same cell in plain
steps, which get options such as `go_backwards` or `stateful` done by NumPy.

How far may they differ? Roundings that add up as a random walk give eps times the root of how
many there are. Where a difference is larger, the steps run in float64, too, and again with
inputs, weights and gates that are rounded at random: what that changes is what rounding can
do. A difference counts only if the path is further from float64 than FACTOR times the steps
in float32 and any of these runs.

A case that differs is printed as code that runs in the repository's root. Figures are kept in
benchmarks/results/fuzz.json.
"""

import argparse
import itertools
import os
import time
from pathlib import Path
from unittest import mock

# Read when the backend begins: see conftest.py.
for name in ("OMP_NUM_THREADS", "JAX_DISABLE_MOST_OPTIMIZATIONS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
from fuzz_programs import (  # noqa: E402, F401
    CASES,
    PLAIN,
    Case,
    Program,
    draw_cases,
    draw_program,
)
from harness import BACKEND, array, derivative, named_weights, normal, randomise  # noqa: E402
from keras import ops  # noqa: E402
from masks import MASKS  # noqa: E402

from keras_momentum_rnn.atomic_files import locked, read_results, write_json  # noqa: E402
from keras_momentum_rnn.second_moment import update_second_moment  # noqa: E402

FACTOR = 8
EPS = {"float64": 2**-52, "float32": 2**-23, "mixed_float16": 2**-10, "mixed_bfloat16": 2**-7}
# Numbers beyond it are not compared, and an array of smaller ones counts as of this size: the
# third power of a root on the way to it may be 0 in float32.
OVERFLOW, SMALLEST = 1e35, 1e-16


class Pair:
    """The layer of a program, and its plain steps."""

    def __init__(self, program):
        self.program = program
        self.backwards = program.options.get("go_backwards", False)
        self.call = {"training": program.training, "calls": 1 + (program.mode == "twice")}
        # A program of JAX would keep the states that it began with.
        compiled = (
            program.mode != "stateful" if BACKEND == "jax" else program.mode == "compiled"
        )
        compiled &= program.mode != "eager"
        with program.surroundings():
            self.layer = program.make(stateful=program.mode == "stateful")
            slots = {} if program.layer in PLAIN else {"slots": program.states == "all"}
            self.path = self.layer.plan(program.masked, program.training, **slots).path
            self.run = derivative(self.layer, compiled, **self.call)
            if program.mode == "inference":
                self.run = inference(self.layer)
            self.steps, self.run_steps = self.stepping()
        self.counts = getattr(self.steps.cell.rule, "counts", False)
        self.exact = self.run_exactly = None

    def stepping(self, **changes):
        """Return a layer alike that steps, with NumPy in place of some options, and a run."""
        left_out = {"go_backwards": False, "return_sequences": True, "return_state": True}
        left_out |= {"unroll": False} if "unroll" in self.program.options else {}
        layer = self.program.make(steps=True, **left_out, **changes)
        layer.use_cudnn = layer.cell.cheap_steps = False
        return layer, derivative(layer, BACKEND == "jax", **self.call)

    def draw(self, case):
        """Return x, the states, cotangents and the mask of a case, and draw the weights."""
        program, cell = self.program, self.steps.cell
        rng, (batch, time, _) = np.random.default_rng(case.seed), program.shape
        randomise(self.steps, rng, scale=case.weights)
        x, scale = normal(rng, *program.shape, scale=case.inputs), min(case.inputs, 1e6)
        cotangents = [normal(rng, batch, time, program.units)]
        cotangents += [normal(rng, batch, size) for size in cell.state_size]
        for i, cotangent in enumerate(cotangents):
            drawn = {"all": True, "outputs": i == 0, "states": i > 0}
            cotangent *= drawn.get(case.cotangents, rng.random() < 0.5)
            cotangent *= i == 0 or program.options.get("return_state", True)
        states = [normal(rng, batch, size) for size in cell.state_size]
        for i, slot in enumerate(cell.rule.slots(cell.drive_width), cell.own_state_count):
            states[i] = np.abs(scale**2 * states[i]) if slot == "m" else scale * states[i]
            if slot == "m" and case.inputs > 1e15:
                # It is infinite: whether anything goes back from it is up to the path.
                cotangents[1 + i] *= 0
            if slot == "t":
                period = getattr(cell.rule, "restart_period", 4)
                states[i] = rng.integers(0, period, states[i].shape).astype("float32")
        given = {"none": 0, "own": cell.own_state_count, "all": len(states)}[program.states]
        states = [s if i < given else 0 * s for i, s in enumerate(states)]
        if not program.options.get("return_sequences", True):
            cotangents[0][:, :-1] = 0
        mask = None
        if program.masked:
            mask = MASKS.get(case.mask, lambda *shape: np.zeros(shape, bool))(batch, time)
        return x, states, cotangents, mask

    def path_on(self, x, states, cotangents, mask):
        """Return by name what the path computes."""
        program, given = self.program, []
        self.layer.set_weights(self.steps.get_weights())
        if program.states != "none" and program.mode != "stateful":
            own = self.steps.cell.own_state_count
            given = states if program.states == "all" else states[:own]
        # Of a plain layer's single step Keras makes no loop, and NaN stays NaN.
        kept_by_keras = self.path == "keras" or (program.layer in PLAIN and x.shape[1] == 1)
        if mask is not None and not kept_by_keras:
            # What is masked may be anything.
            x = np.where(mask[..., None], x, np.float32(np.nan))
        if not program.options.get("return_sequences", True):
            cotangents = [cotangents[0][:, -1], *cotangents[1:]]
        if not program.options.get("return_state", True):
            cotangents = cotangents[:1]
        with program.surroundings():
            if program.mode == "stateful":
                for variable, state in zip(self.layer.states, states):
                    variable.assign(state)
            results, gradients = self.run(x, cotangents, given, mask)
        found = named(results, gradients)
        if program.mode == "stateful" and BACKEND != "jax":  # which returns them, as all else
            found |= {f"stored {i}": array(v) for i, v in enumerate(self.layer.states)}
        return found

    def steps_on(self, run, x, states, cotangents, mask):
        """Return by name what the steps compute."""
        if self.backwards:
            x, mask = (None if a is None else a[:, ::-1].copy() for a in (x, mask))
        with self.program.surroundings():
            results, gradients = run(x, cotangents, states, mask)
        if self.backwards:
            gradients["x"] = gradients["x"][:, ::-1]
        if not self.program.options.get("return_sequences", True):
            results[0] = results[0][:, -1]
        stored = {f"stored {i}": state for i, state in enumerate(results[1:])}
        return named(results, gradients) | stored

    def differences(self, case):
        """Return by name how far the path is off and how far it may be, where it is too far."""
        program = self.program
        x, states, cotangents, mask = self.draw(case)
        if program.dtype == "float64":
            x, *rest = (a.astype("float64") for a in (x, *states, *cotangents))
            states, cotangents = rest[: len(states)], rest[len(states) :]
        path = self.path_on(x, states, cotangents, mask)
        steps = self.steps_on(self.run_steps, x, states, cotangents, mask)
        missing = {name: "missing" for name in path if name not in steps}
        # Nobody learns a number of steps.
        count = f"gradient of state{len(states) - 1}" if self.counts else None
        names = [n for n in path if n in steps and n != count]
        if any(np.isnan(a).any() for n, a in steps.items() if n.startswith("result")):
            # What a sample of NaN adds to the gradients of weights is not defined.
            weights = {f"gradient of {w}" for w in named_weights(self.steps)}
            names = [n for n in names if n not in weights]
        terms = program.shape[1] * (program.shape[2] + program.units + 8)
        floor = EPS[program.dtype] * terms**0.5
        far = {n: distance(path[n], steps[n], steps[n]) for n in names}
        if all(error <= floor for error in far.values()):
            return missing
        exact, *moved = self.exactly(x, states, cotangents, mask)
        found = {}
        for n in names:
            # What float32 hardly holds may overflow in another order of summation.
            known = np.where(np.abs(exact[n]) < OVERFLOW, steps[n], np.inf)
            error, *others = (distance(a[n], exact[n], known) for a in (path, steps, *moved))
            allowed = floor + FACTOR * max(others)
            if not error <= allowed:
                found[n] = f"off by {error:.1e}, {allowed:.1e} allowed"
        return {**missing, **found}

    def exactly(self, x, states, cotangents, mask):
        """Return the steps in float64, and three times as roundings could change them."""
        if BACKEND == "jax":
            import jax

            with jax.enable_x64(True):
                return self.rounded_runs(x, states, cotangents, mask)
        return self.rounded_runs(x, states, cotangents, mask)

    def rounded_runs(self, x, states, cotangents, mask):
        if self.exact is None:
            with self.program.surroundings():
                self.exact, self.run_exactly = self.stepping(dtype="float64")
            for cell in (self.exact.cell, getattr(self.exact.cell, "memory", None)):
                round_activations(cell, self.exact.noise)
        x, *rest = (a.astype("float64") for a in (x, *states, *cotangents))
        states, cotangents = rest[: len(states)], rest[len(states) :]
        rng, eps = np.random.default_rng(0), EPS[self.program.dtype]
        self.exact.set_weights(self.steps.get_weights())
        trained = [(w, array(w)) for w in self.exact.trainable_weights]
        runs = []

        def moved(a, size):
            return a if not size else a * (1 + size * rng.uniform(-1, 1, a.shape))

        for size in (0, eps, -eps, 2 * eps):
            for weight, value in trained:
                weight.assign(moved(value, size))
            self.exact.noise.assign(2 * size)
            some = [
                s if self.counts and i == len(states) - 1 else moved(s, size)
                for i, s in enumerate(states)
            ]
            with rounding_roots(self.exact.noise):
                runs.append(
                    self.steps_on(self.run_exactly, moved(x, size), some, cotangents, mask)
                )
        return runs


def inference(layer):
    """Return a function as of `derivative` that asks for no gradients."""

    def results(x, given):
        return layer(x, training=False, **given)

    if BACKEND == "jax":
        import jax

        def stateless(weights, rest, x, given):
            return layer.stateless_call(weights, rest, x, training=False, **given)[0]

        program = jax.jit(stateless)

        def results(x, given):
            weights = [w.value for w in layer.trainable_variables]
            return program(weights, [w.value for w in layer.non_trainable_variables], x, given)

    elif BACKEND == "tensorflow":
        import tensorflow as tf

        results = tf.function(results)
    else:
        import torch

        results = torch.no_grad()(results)

    def run(x, cotangents, states, mask):
        given = {"initial_state": list(map(ops.convert_to_tensor, states))} if states else {}
        given |= {} if mask is None else {"mask": ops.convert_to_tensor(mask)}
        found = results(ops.convert_to_tensor(x), given)
        found = found if isinstance(found, (list, tuple)) else [found]
        return [array(ops.cast(r, str(cotangents[0].dtype))) for r in found], {}

    return run


def named(results, gradients):
    """Return results and gradients as one dict."""
    results = {f"result {i}": r for i, r in enumerate(results)}
    return results | {f"gradient of {name}": g for name, g in gradients.items()}


def distance(one, other, sizes):
    """Return the largest difference where `sizes` is finite, relative to its row's largest.

    A row is a sample of a result, an input of a weight.
    """
    finite, axes = np.isfinite(sizes), tuple(range(1, sizes.ndim)) or None
    size = np.max(
        np.where(finite, np.abs(sizes), 0), axis=axes, keepdims=True, initial=SMALLEST
    )
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(np.asarray(one, "float64") - other) / size
    return np.max(np.where(finite, np.nan_to_num(error, nan=np.inf), 0), initial=0)


def round_activations(cell, noise):
    """Let a cell in float64 round what its gates give as float32 might.

    `noise` is a variable, the size of the roundings; at 0 nothing is rounded. Below it, a gate
    that float32 can hardly tell from 0 or 1 becomes that.
    """

    def rounded(function, bound, slope):
        def activation(z):
            size, y = ops.convert_to_tensor(noise), function(z)
            whole = ops.where(size < 0, ops.round(y), y)
            y = ops.where(ops.abs(z) < bound, y + size * ops.sin(1e3 * z + 1e8 * size), whole)
            y, still = ops.stop_gradient(y), ops.stop_gradient(z)
            return y + (z - still) * slope(y)

        return activation

    sigmoid, tanh = keras.activations.sigmoid, keras.activations.tanh
    gates = {
        sigmoid: rounded(sigmoid, 15, lambda y: y * (1 - y)),
        tanh: rounded(tanh, 7.5, lambda y: 1 - y * y),
    }
    for name in ("activation", "recurrent_activation"):
        if getattr(cell, name, None) in gates:
            setattr(cell, name, gates[getattr(cell, name)])


def rounding_roots(noise):
    """Let the root of a second moment be rounded: the gradient of u / |u| is 0 but for it."""

    def update(u, m, beta, epsilon):
        m, root = update_second_moment(u, m, beta, epsilon)
        return m, root + ops.stop_gradient(noise * ops.sin(1e3 * u + 1e8 * noise) * root)

    return mock.patch("keras_momentum_rnn.rules.protocol.update_second_moment", update)


def code_of(program, case):
    """Return code that shows a difference again."""
    return "\n".join(
        [
            'import sys; sys.path.insert(0, "tests")',
            "from fuzz import Case, Pair, Program",
            f"program = {program}",
            f"print(Pair(program).differences({case}))",
        ]
    )


def fuzz(seed):
    """Yield for each program its number, path, count of cases, and code by differences."""
    for number in itertools.count():
        rng = np.random.default_rng([seed, number])
        program = draw_program(rng)
        keras.utils.clear_session(free_memory=False)
        pair, found = Pair(program), {}
        for case in draw_cases(rng, program):
            if differences := pair.differences(case):
                found[code_of(program, case)] = differences
        if BACKEND == "jax":
            import jax

            jax.clear_caches()
        ending = ", inference" if program.mode == "inference" else ""
        yield number, pair.path + ending, CASES, found


def main():
    parser = argparse.ArgumentParser(description="Compare paths with plain steps.")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("fuzz.json"))
    options = parser.parse_args()
    command = f"python tests/fuzz.py --cases {options.cases} --seed {options.seed}"
    if options.seconds < float("inf"):
        command += f" --seconds {options.seconds:g}"
    row = {"programs": 0, "cases": 0, "seconds": 0.0, "paths": {}, "differences": []}
    row["command"] = f"KERAS_BACKEND={BACKEND} {command}"
    start = time.monotonic()
    for number, path, cases, found in fuzz(options.seed):
        for code, differences in found.items():
            print(f"# {differences}\n{code}\n", flush=True)
        row["programs"], row["cases"] = number + 1, row["cases"] + cases
        row["paths"][path] = row["paths"].get(path, 0) + cases
        row["differences"] += found
        row["seconds"] = round(time.monotonic() - start, 1)
        if row["cases"] >= options.cases or row["seconds"] > options.seconds:
            break
    # Other backends may write there at the same time.
    name = f"{BACKEND}, seed {options.seed}"
    with locked(options.output.with_suffix(".lock")):
        write_json(options.output, read_results(options.output, {}) | {name: row})
    print(f"{name}: {row['cases']} cases, {len(row['differences'])} differ, {row['paths']}")


if __name__ == "__main__":
    main()
