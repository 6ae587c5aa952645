"""Files that are written whole or not at all."""

import contextlib
import hashlib
import json
import os
import secrets
import time
import zipfile
import zlib
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# Seconds after which a partly written file is litter: its process was killed.
ABANDONED = 3600
# The name of a file that is being written: a number that nobody can guess, and its own name.
UNFINISHED = "unfinished-{}-{}"
# What a file of `model.save` consists of.
PARTS_OF_A_MODEL = {"metadata.json", "config.json", "model.weights.h5"}


@contextlib.contextmanager
def replaced(path):
    """Give a path to write a new file to; it replaces `path` when it is complete.

    A link stays, and the file that it points to is replaced.

    Raises:
        OSError: if it cannot be written, a full disk for one. `path` is then as it was.
    """
    target = Path(os.path.realpath(path))
    new = target.with_name(UNFINISHED.format(secrets.token_hex(8), target.name))
    try:
        new.touch(exist_ok=False)  # follows no link, and shares the file with no process
        yield new
        os.replace(new, target)
    except OSError as error:
        raise OSError(
            error.errno, f"{path} was not written and is as it was before: {error.strerror}"
        ) from error
    finally:
        new.unlink(missing_ok=True)


def remove_abandoned(folder):
    """Remove, from a folder and those in it, what killed processes left half written.

    What a link in the folder points to is written beside its target, and is removed there.
    """
    found = list(Path(folder).rglob(UNFINISHED.format("*", "*")))
    for link in filter(Path.is_symlink, Path(folder).rglob("*")):
        target = Path(os.path.realpath(link))
        found += target.parent.glob(UNFINISHED.format("*", target.name))
    for path in found:
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()


@contextlib.contextmanager
def locked(path, wait=True):
    """Let one process at a time run the code of the context.

    The system releases the lock of a killed process. On Windows nothing is locked.

    Args:
        path: of a file for the lock, which stays and is empty.
        wait: bool, whether to wait while another process has the lock. Defaults to `True`.

    Raises:
        BlockingIOError: if another process has the lock, and `wait` is `False`.
    """
    with open(path, "a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def check_model_file(path):
    """Raise a `ValueError` if a file is not a complete file of `model.save`."""
    try:
        with zipfile.ZipFile(path) as file:
            damaged, lacking = file.testzip(), PARTS_OF_A_MODEL - {*file.namelist()}
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, zlib.error) as error:
        raise ValueError(f"{path} is not a complete model file: {error}") from error
    if damaged or lacking:
        what = (
            f"{damaged} is damaged" if damaged else f"{', '.join(sorted(lacking))} is missing"
        )
        raise ValueError(f"{path} is not a complete model file: {what}")


def write_json(path, value):
    with replaced(path) as new:
        new.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def write_sealed(path, value):
    """Write a value as JSON, with a digest by which `read_sealed` notices damage."""
    value = json.loads(json.dumps(value))
    write_json(path, {"digest": digest(value), "content": value})


def read_sealed(path):
    """Return what `write_sealed` wrote, or `None` if the file is missing.

    Raises:
        ValueError: if the file holds anything else.
    """
    stored = read_results(path, {"digest": digest(None), "content": None})
    if stored.get("digest") != digest(stored.get("content")):
        raise ValueError(f"{path} was changed or damaged; repair or remove it")
    return stored["content"]


def digest(value):
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=16).hexdigest()


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


def differences(stored, given):
    """Return lines that name the differences between two dicts of settings, if any."""
    return [
        f"\n  {name}: {stored.get(name)!r} there, {given.get(name)!r} now"
        for name in {**stored, **given}
        if stored.get(name) != given.get(name)
    ]
