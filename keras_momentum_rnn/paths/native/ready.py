"""Whether the native kernel can run here."""

import functools
import importlib.util
import os
import sys
import threading
import warnings

from keras_momentum_rnn.paths.devices import computes_on_host

SWITCH = "KERAS_MOMENTUM_RNN_NATIVE"
# Compiled code comes from the disk in less time than this; then nothing need be said.
PATIENCE = 2.0

_failed = threading.Event()
_compiling = threading.Lock()


def absence():
    """Return the reason why there is no native kernel, or None."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0"
    if not numba_is_installed():
        return "numba is not installed (extra `cpu`)"
    if _failed.is_set():
        return "the native kernel does not compile here"
    if not computes_on_host():
        return "arrays are not in the memory of the CPU"
    return None


@functools.cache
def numba_is_installed():
    return importlib.util.find_spec("numba") is not None


@functools.cache
def compiles(recurrence="lstm"):
    """Compile the kernel of a recurrence, or read it from the disk; return whether it runs.

    Numba keeps compiled code in the folder of the source, or where that is not writable in
    the user's cache folder, or where `NUMBA_CACHE_DIR` says. What is there of other sources
    than these is removed.
    """
    timer = threading.Timer(PATIENCE, say_what_takes_time)
    timer.daemon = True
    timer.start()
    try:
        from keras_momentum_rnn.paths.native.stale_code import fingerprint, remove_stale

        with _compiling:
            fingerprint()
            from keras_momentum_rnn.paths.native.kernel import try_out
            from keras_momentum_rnn.paths.native.loops import forward

            remove_stale(forward.stats.cache_path)
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
    finally:
        timer.cancel()
    return True


def say_what_takes_time():
    print(
        "keras_momentum_rnn prepares its native kernel: compiling takes about 10 s, once on "
        "this machine",
        file=sys.stderr,
        flush=True,
    )
