"""Files that are written whole or not at all."""

import contextlib
import json
import os
import secrets
import shutil
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# The names of what `replaced` has begun to write, as a pattern of `glob`.
UNFINISHED = "unfinished-" + 16 * "[0-9a-f]" + "-{}"


@contextlib.contextmanager
def replaced(path):
    """Give a path to write a new file to; it replaces `path` when it is complete.

    A link stays, and the file that it points to is replaced. The file keeps its mode.

    Raises:
        OSError: if it cannot be written, a full disk for one. `path` is then as it was.
    """
    target = Path(os.path.realpath(path))
    new = target.with_name(f"unfinished-{secrets.token_hex(8)}-{target.name}")
    try:
        new.touch(exist_ok=False)  # follows no link, and shares the file with no process
        yield new
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(target, new)
        os.replace(new, target)
    except OSError as error:
        reason = error.strerror or error  # h5py and pandas raise it without a number
        raise OSError(
            error.errno, f"{path} was not written and is as it was before: {reason}"
        ) from error
    finally:
        with contextlib.suppress(OSError):  # there is none
            new.unlink()


@contextlib.contextmanager
def locked(path, wait=True):
    """Let one process at a time run the code of the context.

    The system releases the lock of a killed process. On Windows nothing is locked.

    Args:
        path: of a file for the lock, which stays and is empty.
        wait: bool, whether to wait while another process has the lock. Defaults to `True`.

    Raises:
        ValueError: if another process has the lock, and `wait` is `False`.
    """
    with open(path, "a") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ValueError(
                    f"Another process works in {Path(path).parent}: wait for it, or choose "
                    "another directory"
                ) from error
        try:
            yield
        finally:
            if fcntl is not None:  # a child that was forked meanwhile has the file open, too
                fcntl.flock(file, fcntl.LOCK_UN)


def write_json(path, value):
    with replaced(path) as new:
        new.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def read_results(path, default):
    """Return what a file holds that cannot be made again, or `default` if it is missing.

    Raises:
        ValueError: if it is not a JSON object. A new file in its place would lose all that it
            held.
    """
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (ValueError, RecursionError) as error:  # not JSON, or not even text
        raise ValueError(f"{path} is not valid JSON; repair or remove it: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} lacks the entries of a results file; repair or remove it")
    return value
