"""What the native kernel needs of the process: compiled code, threads, and memory.

Nothing here imports Numba: a plan must not.
"""

import collections
import contextlib
import functools
import hashlib
import importlib.util
import itertools
import math
import os
import pickle
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor, wait
from importlib.metadata import version
from pathlib import Path

import keras
import numpy as np

from keras_momentum_rnn.atomic_files import locked, replaced
from keras_momentum_rnn.paths.devices import computes_on_host, jax_is_older
from keras_momentum_rnn.paths.transforms import untraced

SWITCH = "KERAS_MOMENTUM_RNN_NATIVE"
# Numba's own switch, with which every step would be interpreted.
NUMBA_SWITCH = "NUMBA_DISABLE_JIT"

# Of so few numbers in h, the loop that XLA compiles on JAX predicts faster.
SMALL = 1024

# What pickle and LLVM raise for a damaged file of compiled code; Numba's own errors, for code
# that does not compile, are none of these.
OF_DAMAGED_FILES = (
    *(pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, ImportError),
    *(LookupError, MemoryError, RuntimeError, TypeError, ValueError),
)

_failed = threading.Event()
_compiling = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child would wait for a thread that it does not have
    os.register_at_fork(
        before=_compiling.acquire,
        after_in_parent=_compiling.release,
        after_in_child=_compiling.release,
    )


@untraced
def absence():
    """Return the reason why there is no native kernel, or None."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0"
    if not numba_is_installed():
        return "numba is not installed (extra `cpu`)"
    if os.environ.get(NUMBA_SWITCH, "0") not in ("", "0"):
        return f"{NUMBA_SWITCH}={os.environ[NUMBA_SWITCH]} keeps Numba from compiling"
    if _failed.is_set():
        return "the native kernel does not compile here"
    if keras.config.backend() == "jax" and jax_is_older(0, 9):
        return "JAX before 0.9 cannot call it"  # it would crash the process
    if not computes_on_host():
        return "arrays are not in the memory of the CPU"
    return None


@functools.cache
def numba_is_installed():
    return importlib.util.find_spec("numba") is not None


# Compiled code


@untraced
def is_ready(recurrence):
    """Return whether the kernel of a recurrence runs, as `compiles`, once it is tried."""
    return compiles(recurrence)


@functools.cache
def compiles(recurrence="lstm"):
    """Compile the kernel of a recurrence, or read it from the disk; return whether it runs.

    Numba keeps compiled code in the folder of the source, or where that is not writable in
    the user's cache folder, or where `NUMBA_CACHE_DIR` says.
    """
    try:
        with _compiling:
            fingerprint()
            from keras_momentum_rnn.paths.native import run  # noqa: F401, imported later
            from keras_momentum_rnn.paths.native.kernel import RECURRENCES, try_out

            loops = RECURRENCES[recurrence].loops
            module, folder = loops.__name__.rpartition(".")[2], loops.backward.stats.cache_path
            with only_process(folder, module):
                functions = "forward", "backward"
                if not all(any(Path(folder).glob(f"{module}.{f}-*.nbc")) for f in functions):
                    say_what_takes_time()
                try:
                    try_out(recurrence)
                except OF_DAMAGED_FILES:
                    if not remove_compiled(folder, module):
                        raise
                    say_what_takes_time()
                    try_out(recurrence)
    except Exception as error:
        _failed.set()
        warnings.warn(
            "The native kernel does not compile here; layers take other paths. "
            f"{type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


@contextlib.contextmanager
def only_process(folder, module):
    """Let one process at a time compile or read a module; stale code is removed before.

    Args:
        folder: where Numba keeps the code.
        module: name of the module of the loops, whose functions alone Numba keeps.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / f"{module}.lock"):
        remove_stale(folder, module)
        yield


def say_what_takes_time():
    print(
        "keras_momentum_rnn prepares its native kernel: compiling takes 10 to 25 s, once on "
        "this machine",
        file=sys.stderr,
        flush=True,
    )


def remove_stale(folder, module):
    """Remove the compiled code of a module that is not of these sources.

    Numba takes compiled code from the disk as long as the file of the compiled function is
    as it was. What the function calls stands in other files, so after an update of the
    package the kernel would go on with some of the old equations.
    """
    stamp, sources = folder / f"{module}.sha256", fingerprint().encode()
    if stamp.is_file() and stamp.read_bytes() == sources:
        return
    remove_compiled(folder, module)
    with replaced(stamp) as new:
        new.write_bytes(sources)


def remove_compiled(folder, module):
    """Remove the compiled code of a module, and return whether there was any."""
    # Numba writes an index before the code: old code must not stand behind a new index.
    files = [f for end in ("nbi", "nbc") for f in Path(folder).glob(f"{module}.*.{end}")]
    for file in files:
        file.unlink(missing_ok=True)
    return bool(files)


@functools.cache
def fingerprint():
    """Return a digest of all files of the kernel and of what compiles them, a str.

    It is made once, before they are imported: later they may differ from what this process
    compiles. Of another version's code Numba compiles everything anew.
    """
    files = sorted(Path(__file__).parent.glob("*.py"))
    parts = [version("numba").encode(), *(file.read_bytes() for file in files)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


# Threads over the samples of a batch

# Fewer samples are no work for a thread of their own.
SAMPLES_OF_A_THREAD = 4
# Shares of the work for each thread: one that begins late takes fewer.
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
    parts = min(SHARES * threads, -(-samples // SAMPLES_OF_A_THREAD))
    count = 1 if threads == 1 else max(1, parts)
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


# Memory of a call, used again by later ones
#
# The system hands out a large array page by page, which takes a fifth of a step of 784 time
# steps. A workspace belongs to its call: its block goes back to the pool with the last array
# that views it.

# Bytes in the pool at most.
MOST = 2**28
# Smaller blocks come from the allocator, which keeps them itself.
LEAST = 2**20

# Free blocks, flat float32 arrays by their ids. Each move is one operation of a dict, no lock:
# another thread could hold that at a fork.
_free = {}


class Workspace:
    """A block of the pool while it is used, as NumPy sees it."""

    def __init__(self, block, shape):
        self.__array_interface__ = {**block.__array_interface__, "shape": shape}
        weakref.finalize(self, give_back, block).atexit = False


def workspace(shape):
    """Return a float32 array, its numbers anything."""
    size = math.prod(shape)
    if 4 * size < LEAST:
        return np.empty(shape, np.float32)
    return np.asarray(Workspace(take(size), shape))


def take(size):
    """Return the smallest free block that holds so many numbers, or a new one."""
    for block in sorted(_free.copy().values(), key=len):
        fits = size <= len(block) <= 2 * size
        if fits and _free.pop(id(block), None) is not None:
            return block
    return np.empty(size, np.float32)


def give_back(block):
    """Keep a block; the oldest ones make room for it."""
    if block.nbytes > MOST:
        return
    others = list(_free.copy().items())
    held = block.nbytes + sum(other.nbytes for _, other in others)
    for key, other in others:
        if held <= MOST:
            break
        _free.pop(key, None)
        held -= other.nbytes
    _free[id(block)] = block
