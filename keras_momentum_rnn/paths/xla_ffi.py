"""Python functions on NumPy arrays as custom calls of XLA, by its stable C interface.

XLA hands its buffers over as they are: nothing is copied, as it is for `jax.pure_callback`.
The structures are those of `xla/ffi/api/c_api.h`, which each carry their size: a size that is
not ours means another version, and is refused when a function is registered.
"""

import ctypes
import math
import threading
import time
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p

import numpy as np

# Versions of the interface with these structures.
MAJOR, MINORS = 0, range(1, 4)
METADATA, EXECUTE = 1, 3
INTERNAL_ERROR = 13
DTYPES = {4: np.int32, 11: np.float32}


class Extension(Structure):
    pass


HEAD = [("struct_size", c_size_t), ("extension_start", POINTER(Extension))]
Extension._fields_ = [("struct_size", c_size_t), ("type", c_int), ("next", POINTER(Extension))]


class Version(Structure):
    _fields_ = [*HEAD, ("major", c_int), ("minor", c_int)]


class Metadata(Structure):
    _fields_ = [("struct_size", c_size_t), ("version", Version), ("traits", c_uint32)]


class MetadataExtension(Structure):
    _fields_ = [("base", Extension), ("metadata", POINTER(Metadata))]


class Buffer(Structure):
    _fields_ = [
        *HEAD,
        ("dtype", c_int),
        ("data", c_void_p),
        ("rank", c_int64),
        ("dims", POINTER(c_int64)),
    ]


class Buffers(Structure):
    _fields_ = [
        *HEAD,
        ("size", c_int64),
        ("types", c_void_p),
        ("buffers", POINTER(POINTER(Buffer))),
    ]


class ErrorArguments(Structure):
    _fields_ = [*HEAD, ("message", c_char_p), ("code", c_int)]


class Api(Structure):
    _fields_ = [
        *HEAD,
        ("version", Version),
        ("internal", c_void_p),
        ("create_error", ctypes.CFUNCTYPE(c_void_p, POINTER(ErrorArguments))),
    ]


class CallFrame(Structure):
    _fields_ = [
        *HEAD,
        ("api", POINTER(Api)),
        ("context", c_void_p),
        ("stage", c_int),
        ("arguments", Buffers),
        ("results", Buffers),
        ("attributes", c_int64 * 6),  # a structure that is not read
        ("future", c_void_p),
    ]


Handler = ctypes.CFUNCTYPE(c_void_p, POINTER(CallFrame))

# The threads that run a handler now, and the time when a handler last ended.
RUNNING = set()
LAST = [0.0]


def handler(function):
    """Return the C function that calls `function(*arguments, *results)` with arrays.

    Keep it for as long as XLA may call it.
    """

    @Handler
    def handle(frame):
        frame, thread = frame.contents, threading.get_ident()
        RUNNING.add(thread)
        try:
            if frame.extension_start and frame.extension_start.contents.type == METADATA:
                describe(frame)
            elif frame.stage == EXECUTE:
                function(*arrays(frame.arguments), *arrays(frame.results))
        except BaseException as error:  # an interrupt, too, must reach XLA as an error
            return error_of(frame, f"{type(error).__name__}: {error}")
        finally:
            RUNNING.discard(thread)
            LAST[0] = time.monotonic()
        return None

    return handle


def wait_until_idle(seconds):
    """Wait until no handler has run for so many seconds, counted from now at the earliest."""
    LAST[0] = time.monotonic()
    while RUNNING or time.monotonic() < LAST[0] + seconds:
        time.sleep(0.01)


def describe(frame):
    """Answer, when a handler is registered, which version it is written for."""
    version = frame.api.contents.version
    if version.major != MAJOR or version.minor not in MINORS:
        raise RuntimeError(f"XLA's interface has version {version.major}.{version.minor}")
    sizes = frame.struct_size, frame.arguments.struct_size
    # The size of a frame does not count its last field.
    if sizes != (CallFrame.future.offset, ctypes.sizeof(Buffers)):
        raise RuntimeError(f"XLA's call frames have another layout: {sizes} bytes")
    extension = ctypes.cast(frame.extension_start, POINTER(MetadataExtension))
    metadata = extension.contents.metadata.contents
    metadata.version.major, metadata.version.minor = version.major, version.minor
    metadata.traits = 0


def arrays(buffers):
    return [array(buffers.buffers[i].contents) for i in range(buffers.size)]


def array(buffer):
    """Return a view of a buffer."""
    if buffer.struct_size != ctypes.sizeof(Buffer):
        raise RuntimeError(f"XLA's buffers have another layout: {buffer.struct_size} bytes")
    shape = tuple(buffer.dims[: buffer.rank])
    dtype = np.dtype(DTYPES[buffer.dtype])
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(buffer.data)
    return np.frombuffer(memory, dtype).reshape(shape)


def error_of(frame, message):
    arguments = ErrorArguments(
        ctypes.sizeof(ErrorArguments), None, message.encode(), INTERNAL_ERROR
    )
    return frame.api.contents.create_error(ctypes.byref(arguments))
