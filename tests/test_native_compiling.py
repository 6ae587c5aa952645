"""The native kernel is compiled once, and when it cannot be, other paths serve."""

import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from harness import BACKEND, array, assert_close, normal
from pairs import compare, pair

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths.native import runtime

numba = pytest.importorskip("numba", reason="the native kernel needs it")

from keras_momentum_rnn.paths.native import kernel  # noqa: E402
from keras_momentum_rnn.paths.native.kernel import RECURRENCES  # noqa: E402

ROOT = Path(__file__).parent.parent


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
weights += [normal(38, 76), normal(76), normal(19, 76), normal(76)]
states = [normal(7, 19), normal(7, 19), normal(7, 19), normal(7, 76), normal(7, 76) ** 2]
x = normal(7, 12, 5)
equation = kernel.Equation("nested_lstm", "scaled", 0.6, 1.1, 0.9, 0.1, 1e-3)
finals, kept = kernel.forward(equation, x, weights, states)
dx, by_weights, by_states = kernel.backward(
    equation, x, weights, states, None, kept, kept.h, finals)
np.savez(sys.argv[1], simd.VECTORS, kept.h, *finals, dx, *by_weights, *by_states)
"""


def test_the_tile_of_other_processors(tmp_path):
    """AVX2 and NEON take another. Forced here, in a process that compiles the kernel anew."""
    in_a_process(TILES, str(tmp_path / "own"))
    in_a_process(TILES, str(tmp_path / "narrow"), "narrow", NUMBA_CACHE_DIR=str(tmp_path))
    own, narrow = (
        list(np.load(tmp_path / f"{name}.npz").values()) for name in ("own", "narrow")
    )
    assert narrow[0] == 1
    for one, other in zip(own[1:], narrow[1:], strict=True):
        assert_close(other, one, 1e-4)


UPDATED = """
import keras, sys
sys.path.insert(0, sys.argv[1])
import keras_momentum_rnn as kmr
assert kmr.__file__.startswith(sys.argv[1])
layer = kmr.MomentumRNN(4, momentum=0.5, step_size=1.0, kernel_initializer="ones")
assert layer.plan(features=1, training=True).path == "native"
h = layer(keras.ops.convert_to_tensor([[[0.0], [1.0]]]), training=True)
from keras_momentum_rnn.paths.native import equations, simd
functions = {**vars(equations), **vars(simd)}.values()
kinds = [len(f.signatures) for f in functions if hasattr(f, "signatures")]
print(keras.ops.convert_to_numpy(h)[0, 0], *sorted(kinds)[-2:])
"""


def test_an_update_compiles_what_it_changes(tmp_path):
    """Numba itself compares the file of the compiled function alone.

    Whoever compiles says so, once; whoever reads compiled code says nothing. No function is
    compiled again for a literal, which would take up to two seconds each: only `add_tiles` is,
    since products are faster where a step is known to be 1.
    """
    assert runtime.compiles()
    package = tmp_path / "keras_momentum_rnn"
    shutil.copytree(ROOT / package.name, package)  # with what Numba compiled

    def result():
        printed = in_a_process(UPDATED, str(tmp_path))
        h, *kinds = map(float, printed.split()[:3])
        return h, printed.count("prepares its native kernel"), kinds

    assert result() == (pytest.approx(np.tanh(1)), 0, [0, 0])
    rules = package / "paths/native/equations.py"
    source, old = rules.read_text(), "gain * load(u, i + k)"
    assert source.count(old) == 1
    rules.write_text(source.replace(old, f"mu * {old}"))
    assert result() == (pytest.approx(np.tanh(0.5)), 1, [1, 2])


def test_stale_code_goes_with_its_index(tmp_path):
    """Numba writes a new index before the code, so that a kill leaves it before the old."""
    left = tmp_path / "two.f-1.nbi"  # of another module, which another process may compile
    for file in (tmp_path / "one.f-1.nbi", tmp_path / "one.f-1.1.nbc", left):
        file.write_text("of other sources")
    runtime.remove_stale(tmp_path, "one")
    stamp = tmp_path / "one.sha256"
    assert {*tmp_path.iterdir()} == {left, stamp}
    new = tmp_path / "one.f-1.nbc"
    new.touch()
    stamp.write_bytes(b"\xff\xfe")
    runtime.remove_stale(tmp_path, "one")
    assert not new.exists()
    new.touch()
    runtime.remove_stale(tmp_path, "one")
    assert new.exists() and stamp.read_text() == runtime.fingerprint()


def test_another_numba_makes_compiled_code_stale(monkeypatch):
    """It would compile over the code of the first, and say nothing."""
    old = runtime.fingerprint.__wrapped__()
    monkeypatch.setattr(runtime, "version", lambda name: "0.0.1")
    assert runtime.fingerprint.__wrapped__() != old


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


@pytest.mark.skipif(os.name == "nt", reason="on Windows there is no lock")
def test_one_process_compiles_at_a_time(monkeypatch, tmp_path):
    """Its code is tried out only when no other process writes the same module's."""
    folder, tried = tmp_path / "cache", threading.Event()
    stats = mock.Mock(cache_path=str(folder))
    monkeypatch.setattr(RECURRENCES["lstm"].loops, "backward", mock.Mock(stats=stats))
    monkeypatch.setattr(kernel, "try_out", lambda recurrence: tried.set())
    runtime.compiles.cache_clear()
    waiting = threading.Thread(target=runtime.compiles)
    # A lock belongs to an open file: opened once more, it keeps out as one of another process.
    with runtime.only_process(folder, "loops"):
        waiting.start()
        assert not tried.wait(0.5)
    assert tried.wait(60)
    waiting.join()
    runtime.compiles.cache_clear()
    assert runtime.absence() is None


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


def test_a_machine_that_cannot_compile_it_warns_once(monkeypatch):
    layer, step = pair(kmr.AdamLSTM, (3, 9, 5))
    x = normal(np.random.default_rng(0), 3, 9, 5)
    monkeypatch.setattr(runtime, "_failed", threading.Event())
    runtime.compiles.cache_clear()
    monkeypatch.setattr(runtime, "remove_compiled", lambda folder, module: False)
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


def test_damaged_code_on_the_disk_is_compiled_anew(monkeypatch):
    removed = mock.Mock(return_value=True)
    monkeypatch.setattr(runtime, "remove_compiled", removed)
    runtime.compiles.cache_clear()
    with mock.patch.object(kernel, "try_out", side_effect=[EOFError, None]):
        assert runtime.compiles()
    runtime.compiles.cache_clear()
    loops = RECURRENCES["lstm"].loops
    removed.assert_called_once_with(loops.backward.stats.cache_path, "loops")


def test_numba_that_must_not_compile_is_said_to_be_the_reason(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    plan = kmr.AdamLSTM(4).plan(features=3, training=True)
    assert plan.path == "step" and "NUMBA_DISABLE_JIT=1" in plan.reason


def test_each_compiled_function_is_compiled_for_one_kind_of_arguments():
    """Numba writes its index before the code: two kinds could be swapped by two processes."""
    ones = np.ones

    def read_only(*arguments):  # as arrays of JAX are
        array = ones(*arguments)
        array.flags.writeable = False
        return array

    for name in RECURRENCES:
        kernel.try_out(name)
        with mock.patch.object(np, "ones", read_only):
            kernel.try_out(name)
        equation = kernel.Equation(name)
        for loop in (equation.recurrence.loops.forward, equation.recurrence.loops.backward):
            assert len(loop.signatures) == 1


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


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("version, path", [((0, 8, 3), "filter"), ((0, 9, 0), "native")])
def test_jax_that_would_crash_does_not_call_the_kernel(version, path, monkeypatch):
    import jax

    monkeypatch.setattr(jax, "__version_info__", version)
    layer = kmr.MomentumLSTM(8)
    layer.build((2, 9, 5))
    plan = layer.plan(training=True)
    assert plan.path == path
    assert ("JAX before 0.9 cannot call it" in plan.reason) == (path != "native")
