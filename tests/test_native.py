"""The native kernel: its numbers on every shape, and when it steps aside."""

import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import keras
import native_reference
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, normal, results_and_gradients
from masks import MASKS
from native_layers import compare, pair

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths.native import runtime

numba = pytest.importorskip("numba", reason="the native kernel needs it")

from keras_momentum_rnn.paths.native import kernel  # noqa: E402
from keras_momentum_rnn.paths.native.kernel import RECURRENCES  # noqa: E402

ROOT = Path(__file__).parent.parent
LAYERS = (
    "MomentumLSTM",
    "NAGLSTM",
    "AdamLSTM",
    "RMSPropLSTM",
    "SRGRU",
    "AdamGRU",
    "NAGRNN",
    "AdamRNN",
    "MomentumDTRIV",
    "AdamDTRIV",
    "MCRM",
    "MCRM-NAG",
    "MCRM-Adam",
    "NestedLSTM",
    "NestedLSTM-RMSProp",
    "NestedLSTM-ScheduledRestart",
)


def pair_of(name, shape, units=4, **options):
    """A `pair` of a layer, or of a nested one with a rule: "MCRM-NAG"."""
    name, _, rule = name.partition("-")
    if rule:
        options["rule"] = getattr(kmr.rules, rule)()
    return pair(getattr(kmr, name), shape, units, **options)


SHAPES = {
    # Rows and columns that fill no tile, one sample and many, more steps than one chunk has.
    "one": ((1, 1, 1), 1),
    "ragged": ((3, 9, 5), 5),
    "wide": ((7, 5, 35), 37),
    "long": ((2, 150, 2), 16),
    "many": ((257, 4, 3), 19),
    "chunks": ((5, 40, 2), 130),
}


def shape_rows():
    for name in LAYERS:
        for shape in SHAPES:
            for count in (1, 3):  # one thread takes whole what several divide
                yield pytest.param(name, shape, count, id=f"{count}-{name}-{shape}")


@pytest.mark.parametrize("name, shape, count", shape_rows())
def test_every_shape_equals_the_steps(name, shape, count, monkeypatch):
    monkeypatch.setattr(runtime, "thread_count", lambda: count)
    shape, units = SHAPES[shape]
    layers = pair_of(name, shape, units)
    assert layers[0].plan(training=True).path == "native"
    # Adam divides by the root of m, and multiplies what a small u was rounded by.
    tolerance = 1e-4 if layers[0].cell.rule.scaled else 1e-5
    compare(layers, shape, tolerance=tolerance)
    compare(layers, shape, MASKS["dead_row"](*shape[:2]), tolerance)


def test_the_way_back_is_that_of_plain_numpy():
    """Over several chunks of a scaled rule, several rings, and units that fill no vector."""
    rng, units, gates = np.random.default_rng(0), 130, 4 * 130

    def draw(*shape, scale=0.3):
        return (scale * rng.normal(size=shape)).astype("float32")

    numbers = SimpleNamespace(mu=0.6, gain=1.1, factor=0.8, beta=0.9, share=0.1, epsilon=1e-3)
    mu = np.full((1, 1), numbers.mu, np.float32)
    equation = kernel.Equation(
        "lstm", "scaled", numbers.gain, numbers.factor, numbers.beta, numbers.share,
        numbers.epsilon, mu,
    )  # fmt: skip
    x, d_outputs = draw(5, 40, 3), draw(5, 40, units)
    weights = [draw(3, gates), draw(gates), draw(units, gates, scale=0.05), draw(gates)]
    states = [draw(5, units), draw(5, units), draw(5, gates), np.abs(draw(5, gates))]
    d_finals = [draw(*state.shape) for state in states]
    finals, kept = kernel.forward(equation, x, weights, states)
    found = kernel.backward(equation, x, weights, states, None, kept, d_outputs, d_finals)
    x, d_outputs, *rest = (a.astype("float64") for a in (x, d_outputs, *weights, *d_finals))
    weights, d_finals = rest[:4], rest[4:]
    outputs, exact_finals, steps = native_reference.forward(numbers, x, weights, states)
    exact = native_reference.backward(numbers, weights, steps, d_outputs, d_finals)
    for one, other in zip([kept.h, *finals], [outputs, *exact_finals], strict=True):
        assert_close(one, other, 1e-5)
    for one, other in zip(keras.tree.flatten(found), keras.tree.flatten(exact), strict=True):
        assert_close(one, other, 1e-4)


@pytest.mark.parametrize("name", ["AdamLSTM", "NestedLSTM"])
def test_a_batch_of_no_samples(name):
    layer = pair_of(name, (None, None, 3))[0]
    outputs, *states = layer(np.zeros((0, 5, 3), "float32"), training=True)
    assert outputs.shape == (0, 5, 4) and all(s.shape[0] == 0 for s in states)
    if BACKEND == "torch":
        outputs.sum().backward()
        for weight in layer.trainable_weights:
            assert not array(weight.value.grad).any()


@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamGRU", "NAGRNN", "MCRM-Adam"])
def test_an_input_without_features(name):
    """Of it there is the bias alone."""
    compare(pair_of(name, (3, 4, 0)), (3, 4, 0))


@pytest.mark.parametrize("name", ["AdamLSTM", "RMSPropRNN"])
def test_a_second_moment_that_hardly_decays(name):
    """Of 1 - beta in float32 there would be one digit. A small step makes up for a small m."""
    shape, numbers = (3, 6, 2), {"beta": 1 - 1e-7, "epsilon": 1e-16, "step_size": 1e-3}
    rng = np.random.default_rng(1)
    layers = pair(getattr(kmr, name), shape, **numbers)
    x, cotangents = normal(rng, *shape), [normal(rng, 3, 6, 4)]
    (fast, by_fast), (exact, by_step) = (
        results_and_gradients(layer, x, cotangents, training=True) for layer in layers
    )
    assert_close(1e7 * fast[-1], 1e7 * exact[-1], 1e-5)
    for one, other in zip(fast, exact, strict=True):
        assert_close(one, other, 1e-5)
    for key, expected in by_step.items():
        assert_close(by_fast[key], expected, 1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamGRU", "MCRM-NAG", "NestedLSTM"])
def test_what_is_not_finite_stays_in_its_own_sample(name, value):
    layer = pair_of(name, (9, 6, 3))[0]
    x = normal(np.random.default_rng(0), 9, 6, 3)
    sound, *_ = map(array, layer(x, training=True))
    x[4, 2, 1] = value
    outputs, *_ = map(array, layer(x, training=True))
    others = np.arange(9) != 4
    assert np.array_equal(outputs[others], sound[others])
    assert np.array_equal(outputs[4, :2], sound[4, :2])
    if np.isnan(value):
        assert np.isnan(outputs[4, 2:]).all()


@pytest.mark.parametrize("name", ["RMSPropLSTM", "AdamGRU", "AdamRNN", "MCRM-Adam"])
def test_a_second_moment_that_overflows_makes_the_drive_zero(name):
    """u is finite and its square is not: as by the steps, results and gradients are finite."""
    layers = pair_of(name, (3, 7, 5))
    x = normal(np.random.default_rng(0), 3, 7, 5)
    x[1, 2] = 1e20
    shapes = [(3, 7, 4), *((3, size) for size in layers[0].state_size)]
    # m itself is infinite: nothing goes back from it.
    cotangents = [np.ones(shapes[0], "float32"), *(np.zeros(s, "float32") for s in shapes[1:])]
    (fast, by_fast), (exact, by_step) = (
        results_and_gradients(layer, x, cotangents, training=True) for layer in layers
    )
    assert np.isinf(exact[-1][1]).any() and np.isfinite(fast[0]).all()
    for one, other in zip(fast, exact):
        assert_close(np.nan_to_num(one), np.nan_to_num(other), 1e-4)
    for key, expected in by_step.items():
        assert np.isfinite(expected).all()
        assert_close(by_fast[key], expected, 1e-3)


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch's tensors can be changed")
@pytest.mark.parametrize("units", [4, 16])
@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamGRU", "NestedLSTM"])
def test_outputs_and_states_share_no_memory(name, units):
    import torch

    for options in ({}, {"return_sequences": False}):
        layer = pair_of(name, (3, 9, 5), units, **options)[0]
        with torch.no_grad():
            results = layer(normal(np.random.default_rng(0), 3, 9, 5), training=True)
            for i, changed in enumerate(results):
                others = [array(r).copy() for r in results]
                changed.view(-1).add_(1)
                for j, (result, before) in enumerate(zip(results, others)):
                    assert np.array_equal(array(result), before) == (i != j)


@pytest.mark.parametrize("counts", [False, True])
def test_a_step_size_that_is_a_tensor(counts):
    """In a graph it has no number that a compiled loop could hold."""

    class Scaled(kmr.rules.LinearRule):
        def coefficients(self, t):
            s = keras.ops.convert_to_tensor(0.7, dtype="float32")
            return (1 / (t + 2) if counts else 0.5), s

    Scaled.counts = counts
    layer = kmr.RuleLSTM(4, rule=Scaled())
    model = keras.Sequential([keras.Input((5, 3)), layer])
    step = kmr.RuleLSTM(4, rule=Scaled(), use_cudnn=False)
    step.build((None, 5, 3))
    step.set_weights(layer.get_weights())
    assert layer.plan(training=True).path == ("step" if counts else "native")
    x = normal(np.random.default_rng(0), 6, 5, 3)
    assert_close(array(layer(x, training=True)), array(step(x)), 1e-5)
    model.compile("sgd", "mse")
    model.fit(x, np.zeros((6, 4)), verbose=0)


def test_modrelu_of_zero_is_zero():
    """Its sign is 0, whatever the bias adds."""
    layers = pair(kmr.MomentumDTRIV, (2, 6, 3), modrelu_bias_initializer="ones")
    x = np.zeros((2, 6, 3), "float32")
    x[0, 3:] = 1
    fast, step = (array(layer(x, training=True)[0]) for layer in layers)
    assert_close(fast, step, 1e-6)
    assert not fast[1].any() and fast[0, 3:].any()


TILES = """
import sys
import llvmlite.binding
import numpy as np
from numba import njit
njit(lambda: 0)  # reads the features for itself
features = llvmlite.binding.get_host_cpu_features
if "narrow" in sys.argv:
    llvmlite.binding.get_host_cpu_features = dict
from keras_momentum_rnn.paths.native import simd
llvmlite.binding.get_host_cpu_features = features
from keras_momentum_rnn.paths.native import kernel
rng = np.random.default_rng(0)
normal = lambda *shape: rng.normal(size=shape).astype("float32")
weights = [normal(5, 76), normal(76), normal(19, 76), normal(76)]
memory = [normal(38, 76), normal(76), normal(19, 76), normal(76)]
states = [normal(7, 19), normal(7, 19), normal(7, 76), normal(7, 76) ** 2]
x = normal(7, 12, 5)
results = []
for cell, weights, states in (
    ("lstm", weights, states), ("nested_lstm", weights + memory, [normal(7, 19), *states])
):
    equation = kernel.Equation(cell, "scaled", 0.6, 1.1, 0.9, 0.1, 1e-3)
    finals, kept = kernel.forward(equation, x, weights, states)
    dx, by_weights, by_states = kernel.backward(
        equation, x, weights, states, None, kept, kept.h, finals)
    results += [kept.h, *finals, dx, *by_weights, *by_states]
np.savez(sys.argv[1], simd.VECTORS, *results)
"""


def test_the_tile_of_other_processors(tmp_path):
    """AVX2 and NEON take another. Forced here, in a process that compiles the kernel anew."""
    for name in ("own", "narrow"):
        in_a_process(
            TILES, str(tmp_path / name), name, NUMBA_CACHE_DIR=str(tmp_path / "cache" / name)
        )
    own, narrow = (
        list(np.load(tmp_path / f"{name}.npz").values()) for name in ("own", "narrow")
    )
    assert narrow[0] == 1
    for one, other in zip(own[1:], narrow[1:]):
        assert_close(other, one, 1e-4)


UPDATED = """
import keras, sys
sys.path.insert(0, sys.argv[1])
import keras_momentum_rnn as kmr
assert kmr.__file__.startswith(sys.argv[1])
layer = kmr.MomentumRNN(4, momentum=0.5, step_size=1.0, kernel_initializer="ones")
assert layer.plan(features=1, training=True).path == "native"
h = layer(keras.ops.ones((1, 1, 1)), training=True)
print(keras.ops.convert_to_numpy(h)[0, 0])
"""


def test_an_update_compiles_what_it_changes(tmp_path):
    """Numba itself compares the file of the compiled function alone."""
    package = tmp_path / "keras_momentum_rnn"
    shutil.copytree(ROOT / package.name, package, ignore=shutil.ignore_patterns("__pycache__"))

    def result():
        return float(in_a_process(UPDATED, str(tmp_path)).split()[0])

    assert result() == pytest.approx(np.tanh(1))
    rules = package / "paths/native/equations.py"
    source, old = rules.read_text(), "gain * load(u, i + k)"
    assert source.count(old) == 1
    rules.write_text(source.replace(old, f"mu * {old}"))
    assert result() == pytest.approx(np.tanh(0.5))


def test_stale_code_goes_with_its_index(tmp_path):
    """Numba writes a new index before the code, so that a kill leaves it before the old."""
    left = tmp_path / "other.txt"
    for file in (tmp_path / "one.nbi", tmp_path / "one.1.nbc", left):
        file.write_text("of other sources")
    runtime.remove_stale(tmp_path)
    stamp = tmp_path / runtime.STAMP
    assert {*tmp_path.iterdir()} == {left, stamp}
    (tmp_path / "two.nbc").touch()
    runtime.remove_stale(tmp_path)
    assert (tmp_path / "two.nbc").exists() and stamp.read_text() == runtime.fingerprint()


def test_sources_that_change_later_are_not_those_of_this_process(tmp_path, monkeypatch):
    source = tmp_path / "rules.py"
    source.write_text("old")
    monkeypatch.setattr(runtime, "__file__", str(source))
    runtime.fingerprint.cache_clear()
    try:
        old = runtime.fingerprint()
        source.write_text("new")
        assert runtime.fingerprint() == old
        runtime.fingerprint.cache_clear()
        assert runtime.fingerprint() != old
    finally:
        runtime.fingerprint.cache_clear()


def test_one_thread_compiles_at_a_time(monkeypatch):
    running, most = [], []

    def try_out(recurrence):
        running.append(recurrence)
        time.sleep(0.05)
        most.append(len(running))
        running.pop()

    monkeypatch.setattr(kernel, "try_out", try_out)
    runtime.compiles.cache_clear()
    workers = [threading.Thread(target=runtime.compiles, args=(name,)) for name in RECURRENCES]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        runtime.compiles.cache_clear()
    assert most == [1] * len(RECURRENCES)
    assert runtime.absence() is None


def in_a_process(code, *arguments, **environment):
    """Return what a Python program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


# Whether it can run


def test_numba_is_imported_by_the_first_run_alone():
    code = """
import sys
import keras_momentum_rnn as kmr
layer = kmr.MomentumLSTM(4)
print(layer.plan(features=3, training=True).path, "numba" in sys.modules)
"""
    assert "native False" in in_a_process(code)


def test_a_plan_needs_no_numba(monkeypatch):
    assert runtime.numba_is_installed()  # which is remembered
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, kernel.__name__)
    assert kmr.MomentumLSTM(4).plan(features=3, training=True).path == "native"


@pytest.mark.parametrize("how", ["switched off", "not installed"])
def test_without_it_everything_is_as_before(how, monkeypatch):
    if how == "switched off":
        monkeypatch.setenv(runtime.SWITCH, "0")
    else:
        monkeypatch.setattr(runtime, "numba_is_installed", lambda: False)
    layers = pair(kmr.MomentumLSTM, (3, 9, 5))
    plan = layers[0].plan(training=True)
    assert plan.path == ("fused" if BACKEND == "torch" else "filter")
    assert (
        "KERAS_MOMENTUM_RNN_NATIVE=0" if how == "switched off" else "extra `cpu`"
    ) in plan.reason
    compare(layers, (3, 9, 5))


def test_on_another_device_it_is_absent(monkeypatch):
    """A TPU is no GPU, and no memory of the CPU either."""
    monkeypatch.setattr(runtime, "computes_on_host", lambda: False)
    plan = kmr.MomentumLSTM(4).plan(features=3, training=True)
    assert plan.path != "native" and "not in the memory of the CPU" in plan.reason


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch's tensors can be changed")
def test_a_state_that_is_changed_does_not_reach_the_gradient():
    import torch

    gradients = []
    for changes in (False, True):
        layer = pair(kmr.MomentumLSTM, (3, 9, 5), units=16)[0]
        x = torch.tensor(normal(np.random.default_rng(0), 3, 9, 5), requires_grad=True)
        outputs, h, c, v = layer(x, training=True)
        if changes:
            for state in (h, c, v):
                state.detach().zero_()
        outputs.sum().backward()
        gradients.append(array(x.grad))
    assert np.array_equal(*gradients)


@pytest.mark.skipif(BACKEND != "torch", reason="a checkpoint of PyTorch")
def test_a_checkpoint_computes_the_same_gradients():
    import torch
    from torch.utils.checkpoint import checkpoint

    layer = pair(kmr.AdamLSTM, (3, 9, 5), units=16)[0]
    x = torch.tensor(normal(np.random.default_rng(0), 3, 9, 5), requires_grad=True)
    kept, again = layer(x)[0], checkpoint(layer, x, use_reentrant=False)[0]
    gradients = [torch.autograd.grad(outputs.sum(), x)[0] for outputs in (kept, again)]
    assert np.array_equal(*map(array, gradients))


def test_a_machine_that_cannot_compile_it_warns_once(monkeypatch):
    layer, step = pair(kmr.AdamLSTM, (3, 9, 5))
    x = normal(np.random.default_rng(0), 3, 9, 5)
    monkeypatch.setattr(runtime, "_failed", threading.Event())
    runtime.compiles.cache_clear()
    broken = mock.patch.object(kernel, "try_out", side_effect=RuntimeError("no such target"))
    with broken, pytest.warns(RuntimeWarning, match="does not compile here.*no such target"):
        first = layer(x, training=True)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = layer(x, training=True)[0]
    assert "does not compile here" in layer.plan(training=True).reason
    runtime.compiles.cache_clear()
    for outputs in (first, again):
        assert_close(array(outputs), array(step(x, training=True)[0]), 1e-5)


def test_a_cold_start_says_what_it_does(tmp_path):
    """Whoever reads compiled code says nothing, however long that takes."""
    code = """
from keras_momentum_rnn.paths.native import runtime
print(runtime.compiles(), runtime.compiles())
"""
    cold, warm = (in_a_process(code, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert "True True" in cold and "True True" in warm and list(tmp_path.rglob("*.nbi"))
    assert cold.count("prepares its native kernel") == 1 and "prepares" not in warm


def test_numba_that_must_not_compile_is_said_to_be_the_reason(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    plan = kmr.AdamLSTM(4).plan(features=3, training=True)
    assert plan.path == "step" and "NUMBA_DISABLE_JIT=1" in plan.reason


def test_each_compiled_function_is_compiled_for_one_kind_of_arguments():
    """Numba writes its index before the code: two kinds could be swapped by two processes."""
    for name in RECURRENCES:
        kernel.try_out(name)
        equation = kernel.Equation(name)
        for loop in (equation.recurrence.loops.forward, equation.recurrence.loops.backward):
            assert len(loop.signatures) == 1


@pytest.mark.skipif(BACKEND != "tensorflow", reason="XLA is a choice on TensorFlow alone")
def test_a_model_for_xla_is_compiled_without_it():
    model = keras.Sequential([keras.Input((5, 3)), kmr.MomentumLSTM(4), keras.layers.Dense(1)])
    with pytest.warns(UserWarning, match="jit_compile"):
        model.compile("sgd", "mse", jit_compile=True)
    model.fit(np.zeros((4, 5, 3)), np.zeros((4, 1)), verbose=0)
    assert not model.jit_compile


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
def test_without_the_interface_of_xla_the_numbers_stay(monkeypatch):
    from keras_momentum_rnn.paths.native import jax_call

    assert jax_call.by_ffi()
    monkeypatch.setattr(jax_call, "by_ffi", lambda: False)
    compare(pair(kmr.AdamLSTM, (3, 9, 5)), (3, 9, 5), MASKS["holes"](3, 9), tolerance=1e-4)


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
def test_with_numbers_of_64_bits_on_jax():
    import jax

    with jax.enable_x64(True):
        compare(pair(kmr.NAGLSTM, (3, 9, 5)), (3, 9, 5), MASKS["holes"](3, 9))


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
def test_an_interface_of_another_version_is_not_called(monkeypatch):
    from keras_momentum_rnn.paths import xla_ffi
    from keras_momentum_rnn.paths.native import jax_call

    monkeypatch.setattr(xla_ffi, "MINORS", ())
    monkeypatch.setattr(jax_call, "PREFIX", "keras_momentum_rnn.other_version")
    assert not jax_call.by_ffi.__wrapped__()


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("name", ["AdamGRU", "MCRM"])
def test_jax_transforms_in_training(name):
    import jax

    options = {"return_sequences": False, "return_state": False}
    fast, step = pair_of(name, (3, 9, 5), **options)
    x = normal(np.random.default_rng(0), 3, 9, 5)

    def functions(layer):
        rest = [v.value for v in layer.non_trainable_variables]
        weights = [v.value for v in layer.trainable_variables]

        def loss(weights, x):
            outputs, _ = layer.stateless_call(weights, rest, x, training=True)
            return (outputs**2).sum()

        def penalty(weights):
            return (jax.grad(loss, 1)(weights, x) ** 2).sum()

        def over_time(total, part):
            return total + loss(weights, part), None

        parts = np.stack([x, 2 * x])
        return (
            jax.vmap(jax.grad(loss), (None, 0))(weights, x[:, None]),
            jax.jit(jax.grad(penalty))(weights),
            jax.jit(jax.vmap(jax.grad(loss, 1), (None, 0)))(weights, parts),
            jax.lax.scan(over_time, 0.0, parts)[0],
            jax.grad(jax.checkpoint(loss))(weights, x),
        )

    for one, other in zip(jax.tree.leaves(functions(fast)), jax.tree.leaves(functions(step))):
        assert_close(array(one), array(other), 1e-4)
    with pytest.raises(TypeError, match="forward-mode"):
        weights = [v.value for v in fast.trainable_variables]
        rest = [v.value for v in fast.non_trainable_variables]
        jax.jvp(lambda x: fast.stateless_call(weights, rest, x, training=True)[0], (x,), (x,))


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("name, mask", [("MomentumLSTM", "holes"), ("NAGLSTM", None)])
def test_a_second_derivative_of_a_jax_trace_that_has_ended(name, mask):
    """With `jax.jit` or `jax.lax.scan` within the first derivative."""
    import jax

    options = {"return_sequences": False, "return_state": False}
    fast, step = pair_of(name, (3, 9, 5), **options)
    x = normal(np.random.default_rng(0), 3, 9, 5)
    mask = None if mask is None else MASKS[mask](3, 9)

    def penalties(layer):
        rest = [v.value for v in layer.non_trainable_variables]
        weights = [v.value for v in layer.trainable_variables]

        def loss(weights, x, mask):
            call = {"training": True, "mask": mask}
            outputs, _ = layer.stateless_call(weights, rest, x, **call)
            return (outputs**2).sum()

        def looped(weights, x, mask):
            def body(total, part):
                return total + loss(weights, part, mask), None

            return jax.lax.scan(body, 0.0, x[None])[0]

        def penalty(weights, loss):
            return (jax.grad(loss, 1)(weights, x, mask) ** 2).sum()

        return [jax.grad(penalty)(weights, inner) for inner in (jax.jit(loss), looped)]

    for one, other in zip(jax.tree.leaves(penalties(fast)), jax.tree.leaves(penalties(step))):
        assert_close(array(one), array(other), 1e-4)


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
@pytest.mark.parametrize("name, options", [("AdamLSTM", {"epsilon": 1e-2}), ("MCRM-NAG", {})])
def test_torch_second_derivatives_in_float32(name, options):
    import torch

    fast, step = pair_of(name, (3, 9, 5), **options)
    penalties = []
    for layer in (fast, step):
        x = torch.tensor(normal(np.random.default_rng(0), 3, 9, 5), requires_grad=True)
        outputs, *_ = layer(x, training=True)
        (by_x,) = torch.autograd.grad(outputs.square().sum(), x, create_graph=True)
        weights = [v.value for v in layer.trainable_variables]
        penalties.append(torch.autograd.grad(by_x.square().sum(), weights))
    for one, other in zip(*penalties):
        assert_close(array(one), array(other), 1e-4)


@pytest.mark.parametrize("gate", [16.0, 100.0])
@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamLSTM", "NestedLSTM"])
def test_saturated_gates_hold_a_memory_to_the_last_bit(name, gate):
    """A forget gate of 1 and an input gate of 0 keep c for 10,000 steps, whatever c is."""
    nested = name == "NestedLSTM"
    # A bias beside the recurrent product is none of the rule's: the gates are what it says.
    options = {} if nested else {"use_recurrent_bias": True}
    layer = pair_of(name, (2, 10_000, 1), units=3, **options)[0]
    for weight in layer.weights:
        weight.assign(np.zeros(weight.shape, "float32"))
    bias = layer.cell.memory.bias if nested else layer.cell.recurrent_bias
    bias.assign(np.repeat(np.float32([-gate, gate, 0, gate]), 3))
    states = [np.zeros((2, size), "float32") for size in layer.state_size]
    held = 2 if nested else 1
    states[held] = np.float32([[1, -0.3, 1000], [1e-6, 12345.678, -1]])
    call = {"initial_state": list(map(keras.ops.convert_to_tensor, states)), "training": True}
    assert layer.plan(training=True).path == "native"
    _, *after = layer(np.zeros((2, 10_000, 1), "float32"), **call)
    assert np.array_equal(array(after[held]), states[held])


def test_sigmoid_and_tanh_over_all_of_float32():
    """Off by at most 2e-7 of 1 anywhere; exactly at their bounds beyond 16 and 8."""
    from keras_momentum_rnn.paths.native import simd
    from keras_momentum_rnn.paths.native.simd import load, store

    @numba.njit
    def both(x, sigmoids, tanhs):
        for i in range(0, len(x), 16):
            store(sigmoids, i, simd.sigmoid(load(x, i)))
            store(tanhs, i, simd.tanh(load(x, i)))

    # Every 2^12th of all numbers, infinities and NaN among them, and all near the bounds.
    bits = np.arange(0, 2**32, 2**12, dtype="uint32")
    x = np.concatenate([bits.view("float32"), np.linspace(-17, 17, 2**20, dtype="float32")])
    sigmoids, tanhs = np.empty_like(x), np.empty_like(x)
    both(x, sigmoids, tanhs)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = x.astype("float64")
        assert np.nanmax(np.abs(tanhs - np.tanh(exact))) < 3e-7
        assert np.nanmax(np.abs(sigmoids - 1 / (1 + np.exp(-exact)))) < 2e-7
    assert (
        np.nanmax(np.abs(tanhs)) == 1 and np.nanmin(sigmoids) == 0 and np.nanmax(sigmoids) == 1
    )
    assert (tanhs[x >= 8] == 1).all() and (tanhs[x <= -8] == -1).all()
    assert (sigmoids[x >= 16] == 1).all() and (sigmoids[x <= -16] == 0).all()
    assert np.isnan(tanhs[np.isnan(x)]).all() and np.isnan(sigmoids[np.isnan(x)]).all()
