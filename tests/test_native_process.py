"""The native kernel harms no process that it runs in: threads, forks, interrupts, memory."""

import gc
import os
import subprocess
import sys
import threading
import time
import tracemalloc

import keras
import numpy as np
import pytest
from harness import BACKEND, array, normal
from pairs import pair

import keras_momentum_rnn as kmr

numba = pytest.importorskip("numba", reason="the native kernel needs it")

from keras_momentum_rnn.paths.native import kernel, runtime  # noqa: E402


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.skipif(BACKEND != "torch", reason="JAX and TensorFlow forbid a fork themselves")
def test_a_forked_child_has_threads_of_its_own(monkeypatch):
    monkeypatch.setattr(runtime, "thread_count", lambda: 2)
    layer = pair(kmr.MomentumLSTM, (16, 5, 3))[0]
    x = normal(np.random.default_rng(0), 16, 5, 3)
    before = array(layer(x)[0])
    child = os.fork()
    if child == 0:
        alike = False
        try:
            alike = np.array_equal(array(layer(x)[0]), before)
            alike &= any(os.getpid() in key for key in runtime._pools)
        finally:
            os._exit(0 if alike else 1)
    for _ in range(3000):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0


IN_FLIGHT = """
import sys
import jax
import jax.numpy as jnp
import keras_momentum_rnn as kmr
x = jnp.ones((64, 300, 8))
layer = kmr.LSTM(128, return_sequences=True)
layer.build(x.shape)
fixed = [v.value for v in layer.non_trainable_variables]
def loss(weights):
    return (layer.stateless_call(weights, fixed, x, training=True)[0] ** 2).sum()
step = jax.jit(jax.grad(loss))
weights = [v.value for v in layer.trainable_variables]
jax.block_until_ready(step(weights))
kept = step(weights) if sys.argv[1] == "kept" else step(weights) and None
"""


@pytest.mark.skipif(BACKEND != "jax", reason="JAX returns before a step has run")
@pytest.mark.parametrize("result", ["kept", "dropped"])
def test_a_process_ends_while_a_step_runs(result):
    subprocess.run([sys.executable, "-c", IN_FLIGHT, result], check=True, timeout=120)


def test_two_models_in_two_threads(monkeypatch):
    monkeypatch.setattr(runtime, "thread_count", lambda: 2)
    layers = [pair(kmr.AdamLSTM, (16, 9, 3), units)[0] for units in (4, 21)]
    x = normal(np.random.default_rng(0), 16, 9, 3)
    expected = [array(layer(x, training=True)[0]) for layer in layers]
    wrong = []

    def work(layer, expected):
        for _ in range(30):
            if not np.array_equal(array(layer(x, training=True)[0]), expected):
                wrong.append(layer.name)

    workers = [threading.Thread(target=work, args=pair) for pair in zip(layers, expected)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert not wrong and not any(worker.is_alive() for worker in workers)


@pytest.mark.parametrize(
    "threads, samples, count", [(1, 100, 1), (3, 0, 1), (3, 9, 3), (3, 100, 6)]
)
def test_threads_share_the_samples(threads, samples, count, monkeypatch):
    monkeypatch.setattr(runtime, "thread_count", lambda: threads)
    shares = runtime.shares(samples)
    assert len(shares) == count
    assert [i for share in shares for i in range(*share)] == list(range(samples))


def test_an_interrupt_waits_for_what_has_begun(monkeypatch):
    monkeypatch.setattr(runtime, "thread_count", lambda: 2)
    begun, waited, written = threading.Event(), threading.Event(), []
    wait = runtime.wait

    def waiting(futures):
        waited.set()
        return wait(futures)

    monkeypatch.setattr(runtime, "wait", waiting)

    def slowly(part):
        if threading.current_thread() is threading.main_thread():
            begun.wait()
            raise KeyboardInterrupt
        begun.set()
        # Until the other thread has been interrupted and waits for this one.
        waited.wait(60)
        written.append(part)

    with pytest.raises(KeyboardInterrupt):
        runtime.run_all(slowly, range(10))
    assert len(written) == 1
    with pytest.raises(ValueError, match="of a part"):
        runtime.run_all(fail_on_two, [0, 1, 2])


def test_nobody_waits_for_a_thread_that_does_not_begin(monkeypatch):
    monkeypatch.setattr(runtime, "thread_count", lambda: 2)
    busy = threading.Event()
    held = runtime.pool(1).submit(busy.wait, 60)
    try:
        assert runtime.run_all(lambda part: 2 * part, range(5)) == [0, 2, 4, 6, 8]
        assert not held.done()
    finally:
        busy.set()


def fail_on_two(part):
    if part == 2:
        raise ValueError("of a part")


def test_calls_keep_no_memory():
    """A call leaves less than a quarter of its smallest array, and outside Python of its h."""
    resource = pytest.importorskip("resource", reason="Windows has none")
    unit = 1 if sys.platform == "darwin" else 1024
    layer = pair(kmr.AdamLSTM, (64, 50, 3), units=16, return_state=False)[0]
    model = keras.Sequential([keras.Input((50, 3)), layer])
    model.compile("sgd", "mse")
    x, y = np.zeros((64, 50, 3), "float32"), np.zeros((64, 50, 16), "float32")

    def after(calls):
        for _ in range(calls):
            model.train_on_batch(x, y)
        gc.collect()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return np.array([tracemalloc.get_traced_memory()[0], peak])

    tracemalloc.start()
    try:
        before = after(30)
        traced, peak = (after(200) - before) / 200
    finally:
        tracemalloc.stop()
    assert traced < 64 * 16 and peak < 64 * 50 * 16  # bytes; a float32 takes four


def test_memory_is_used_again_when_its_last_array_is_gone(monkeypatch):
    monkeypatch.setattr(runtime, "_free", {})
    size = runtime.LEAST // 4
    first, second = runtime.workspace((4, size)), runtime.workspace((4, size))
    assert not np.shares_memory(first, second)
    part, place = first[1:], first.ctypes.data
    part[...] = 1
    del first
    assert not runtime._free and (part == 1).all()
    del part
    # Less than half as much would waste it.
    assert runtime.workspace((1, size)).ctypes.data != place
    assert runtime.workspace((3, size)).ctypes.data == place


def test_the_pool_has_a_bound_and_keeps_the_newest(monkeypatch):
    monkeypatch.setattr(runtime, "_free", {})
    monkeypatch.setattr(runtime, "MOST", 3 * runtime.LEAST)
    size = runtime.LEAST // 4
    arrays = [runtime.workspace((size,)) for _ in range(5)]
    del arrays
    assert len(runtime._free) == 3
    larger = runtime.workspace((3 * size,))
    del larger
    assert [len(block) for block in runtime._free.values()] == [3 * size]
    runtime.give_back(np.empty(4 * size, np.float32))  # more than there may be
    assert len(runtime._free) == 1


@pytest.mark.skipif(BACKEND != "torch", reason="on the others the arrays are the backend's")
def test_two_calls_before_their_gradients_share_no_memory(monkeypatch):
    import torch

    monkeypatch.setattr(runtime, "LEAST", 1)
    layer = pair(kmr.AdamLSTM, (3, 9, 5))[0]
    inputs = [normal(np.random.default_rng(i), 3, 9, 5) for i in range(2)]

    def gradients(together):
        xs = [torch.tensor(x, requires_grad=True) for x in inputs]
        if together:
            sum(layer(x, training=True)[0].square().sum() for x in xs).backward()
        else:
            for x in xs:
                layer(x, training=True)[0].square().sum().backward()
        return [array(x.grad) for x in xs]

    apart = gradients(False)  # first, so that it leaves memory that is free
    for one, other in zip(apart, gradients(True)):
        assert np.array_equal(one, other)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.skipif(BACKEND != "torch", reason="JAX and TensorFlow forbid a fork themselves")
def test_a_fork_waits_for_a_thread_that_compiles():
    holds = threading.Event()

    def compiling():
        with runtime._compiling:
            holds.set()
            time.sleep(0.5)

    other = threading.Thread(target=compiling)
    other.start()
    holds.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if runtime._compiling.acquire(blocking=False) else 1)
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_error_in_another_thread_is_raised(monkeypatch):
    monkeypatch.setattr(runtime, "thread_count", lambda: 2)
    caller, met = threading.get_ident(), threading.Barrier(2, timeout=60)

    def part(_):
        met.wait()
        if threading.get_ident() != caller:
            raise MemoryError("of a part")

    with pytest.raises(MemoryError, match="of a part"):
        runtime.run_all(part, [0, 1])


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
def test_what_a_call_keeps_lives_no_longer_than_it_is_needed(monkeypatch):
    import torch

    monkeypatch.setattr(runtime, "LEAST", 1)
    monkeypatch.setattr(runtime, "_free", {})
    layer = pair(kmr.AdamLSTM, (3, 9, 5), return_state=False)[0]
    x = torch.tensor(normal(np.random.default_rng(0), 3, 9, 5))
    loss = layer(x, training=True).square().sum()
    held = len(runtime._free)
    loss.backward()
    assert len(runtime._free) == held + 4  # c, gates, v and m, though the loss lives
    kept, forward = [], kernel.forward

    def noted(*arguments, keeps=True, **options):
        kept.append(keeps)
        return forward(*arguments, keeps=keeps, **options)

    monkeypatch.setattr(kernel, "forward", noted)
    with torch.no_grad():
        layer(x)
    layer(x, training=True)
    assert kept == [False, True]


def test_without_new_threads_the_caller_does_all(monkeypatch):
    """As at the end of a process."""
    monkeypatch.setattr(runtime, "thread_count", lambda: 2)
    ended = runtime.ThreadPoolExecutor(1)
    ended.shutdown()
    monkeypatch.setattr(runtime, "pool", lambda size: ended)
    assert runtime.run_all(lambda part: 2 * part, range(5)) == [0, 2, 4, 6, 8]
