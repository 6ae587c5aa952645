"""Threads over the samples of a batch."""

import collections
import contextlib
import itertools
import os
from concurrent.futures import ThreadPoolExecutor, wait

import keras

# Fewer samples are no work for a thread of their own.
SAMPLES = 4
# So many shares for each thread: one that begins late takes fewer.
SHARES = 2

_pools = {}


def thread_count():
    """Return how many threads may run: those of PyTorch, or one for each core allowed."""
    if keras.config.backend() == "torch":
        import torch

        return torch.get_num_threads()
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(cores, int(limit)) if limit.isdigit() and int(limit) else cores


def shares(samples):
    """Return the first and the last sample, less one, of each share of the work."""
    threads = thread_count()
    count = 1 if threads == 1 else max(1, min(SHARES * threads, -(-samples // SAMPLES)))
    cuts = [samples * i // count for i in range(count + 1)]
    return list(itertools.pairwise(cuts))


def run_all(function, parts):
    """Call a function, which lets go of the interpreter, with each of some parts.

    A thread that is done takes the next part, and nobody waits for one that never began: on
    PyTorch, idle threads of OpenMP hold cores for milliseconds after each operation.
    """
    waiting, results = collections.deque(enumerate(parts)), [None] * len(parts)

    def work():
        while waiting:
            try:
                i, part = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            results[i] = function(part)

    others, futures = min(thread_count(), len(parts)) - 1, []
    try:
        # At the end of a process there are no new threads.
        with contextlib.suppress(RuntimeError):
            for _ in range(others):
                futures.append(pool(others).submit(work))
        work()
    finally:
        waiting.clear()
        futures = [future for future in futures if not future.cancel()]
        wait_for(futures)
    for future in futures:
        future.result()
    return results


def wait_for(futures):
    """Wait, an interrupt or not: the memory that is written to may not be ours to keep."""
    interrupt = None
    while pending := [future for future in futures if not future.done()]:
        try:
            wait(pending)
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def pool(size):
    """Return the pool of this process: a forked child has none of its parent's threads."""
    key = os.getpid(), size
    if key not in _pools:
        for process, other in list(_pools):
            if process != os.getpid():
                _pools.pop((process, other), None)
        _pools[key] = ThreadPoolExecutor(size, thread_name_prefix="keras_momentum_rnn")
    return _pools[key]
