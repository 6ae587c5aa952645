"""Threads over the samples of a batch."""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor, wait

import keras

# Fewer samples are no work for a thread of their own.
SAMPLES = 4

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
    """Return the first and the last sample, less one, of each thread's share."""
    count = max(1, min(thread_count(), -(-samples // SAMPLES)))
    cuts = [samples * i // count for i in range(count + 1)]
    return list(itertools.pairwise(cuts))


def run_all(function, parts):
    """Call a function, which lets go of the interpreter, with each of some parts at once."""
    first, *others = parts
    futures = [pool(len(others)).submit(function, part) for part in others]
    try:
        results = [function(first)]
    finally:
        wait_for(futures)
    return results + [future.result() for future in futures]


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
                del _pools[process, other]
        _pools[key] = ThreadPoolExecutor(size, thread_name_prefix="keras_momentum_rnn")
    return _pools[key]
