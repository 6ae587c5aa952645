"""Compiled code that another version of the kernel left on the disk.

Numba takes compiled code from the disk as long as the file of the compiled function is as it
was. What the function calls stands in other files, so after an update of the package the kernel
would go on with some of the old equations.
"""

import functools
import hashlib
from pathlib import Path

from keras_momentum_rnn.atomic_files import replaced

STAMP = "sources.sha256"


def remove_stale(folder):
    """Remove compiled code that is not of these sources.

    Args:
        folder: where Numba keeps the code, or None if it does not keep it.
    """
    if folder is None:
        return
    folder = Path(folder)
    stamp, sources = folder / STAMP, fingerprint()
    if stamp.is_file() and stamp.read_text() == sources:
        return
    # Numba writes an index before the code: old code must not stand behind a new index.
    for suffix in ("nbi", "nbc"):
        for file in folder.glob(f"*.{suffix}"):
            file.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    with replaced(stamp) as new:
        new.write_text(sources)


@functools.cache
def fingerprint():
    """Return a digest of all files of the kernel, a str.

    It is made once, before they are imported: later they may differ from what this process
    compiles.
    """
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
