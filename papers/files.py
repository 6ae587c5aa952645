"""Files of results: written whole or not at all, and read with care."""

import contextlib
import json
import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextlib.contextmanager
def replaced(path):
    """Give a path to write a new file to; it replaces `path` when it is complete.

    One process at a time may write a path. A link stays, and the file that it points to is
    replaced.

    Raises:
        OSError: if it cannot be written, a full disk for one. `path` is then as it was.
    """
    target = Path(os.path.realpath(path))
    new = target.with_name(f"unfinished-{target.name}")
    try:
        yield new
        os.replace(new, target)
    except OSError as error:
        raise OSError(
            error.errno, f"{path} was not written and is as it was before: {error.strerror}"
        ) from error
    finally:
        new.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path):
    """Let one process at a time run the code of the context.

    The system releases the lock of a killed process. On Windows nothing is locked.

    Args:
        path: of a file for the lock, which stays and is empty.
    """
    with open(path, "a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_text(path, text):
    with replaced(path) as new:
        new.write_text(text, encoding="utf-8")


def write_json(path, value):
    write_text(path, json.dumps(value, indent=1) + "\n")


def read_results(path, default=None):
    """Return the JSON object that a file holds, or `default` if there is no file.

    Raises:
        ValueError: if it holds anything else. A new file in its place would lose the runs.
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


# Entries that only describe a run, or say where its data lies. A run resumes if they change.
DESCRIPTIONS = (
    "source", "chance_means", "deviations from the paper", "updates in the paper", "data_dir",
)  # fmt: skip


def differences(stored, given):
    """Return lines that name the differences between two dicts of settings, if any."""
    stored, given = without_descriptions(stored), without_descriptions(given)
    return [
        f"\n  {name}: {stored.get(name)!r} there, {given.get(name)!r} now"
        for name in {**stored, **given}
        if stored.get(name) != given.get(name)
    ]


def without_descriptions(settings):
    """Return a dict of settings, and those in it, without `DESCRIPTIONS`."""
    return {
        name: without_descriptions(value) if isinstance(value, dict) else value
        for name, value in settings.items()
        if name not in DESCRIPTIONS
    }
