"""Files that are written whole or not at all, by one process at a time."""

import errno
import os
import secrets
import signal
import threading
import time

import pytest

from keras_momentum_rnn import atomic_files
from keras_momentum_rnn.atomic_files import locked, read_results, replaced, write_json


@pytest.mark.two_writers
def test_two_writers_of_one_file_never_share_a_name(tmp_path):
    """Not even two of one process number, as the first processes of two containers are."""
    path = tmp_path / "file"
    with replaced(path) as one, replaced(path) as two:
        assert one != two and one.exists() and two.exists()
        one.write_text("one")
        two.write_text("two")
    assert path.read_text() == "one"  # the one that was complete last
    assert [*tmp_path.iterdir()] == [path]


def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(secrets, "token_hex", lambda size: "guessed")
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "unfinished-guessed-file").symlink_to(target)
    with pytest.raises(FileExistsError), replaced(tmp_path / "file") as new:
        new.write_text("other")
    assert target.read_text() == "mine" and not (tmp_path / "file").exists()


@pytest.mark.parametrize("error", [(errno.ENOSPC, "No space"), ("No space",)])
def test_a_full_disk_leaves_the_file_as_it_was(error, tmp_path):
    """Also where a library gives its error no number."""
    path = tmp_path / "file"
    path.write_text("before")
    with pytest.raises(OSError, match=r"not written .* as it was .*: No space"), replaced(path):
        raise OSError(*error)
    assert path.read_text() == "before" and len([*tmp_path.iterdir()]) == 1


@pytest.mark.two_writers
def test_a_lock_keeps_others_out_until_it_is_released(tmp_path):
    path, order = tmp_path / "lock", []
    another = locked(path, wait=False)

    def other():
        with locked(path):
            order.append("other")

    with locked(path):
        with pytest.raises(ValueError, match="Another process works in"), another:
            pass
        waiting = threading.Thread(target=other)
        waiting.start()
        order.append("first")
    waiting.join()
    with locked(path, wait=False):
        assert order == ["first", "other"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_child_of_a_fork_does_not_keep_the_lock(tmp_path):
    with locked(tmp_path / "lock"):
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
    with locked(tmp_path / "lock", wait=False):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other modes")
def test_a_file_keeps_its_mode(tmp_path):
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o600)
    write_json(path, {})
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.two_writers
def test_without_the_module_of_locks_nothing_is_locked(tmp_path, monkeypatch):
    """As on Windows."""
    monkeypatch.setattr(atomic_files, "fcntl", None)
    with locked(tmp_path / "lock"), locked(tmp_path / "lock", wait=False):
        pass


def test_damaged_results_are_refused_and_missing_ones_begin(tmp_path):
    path, value = tmp_path / "file.json", {"score": 0.25, "seeds": [1, 2]}
    assert read_results(path, {}) == {}
    write_json(path, value)
    assert read_results(path, {}) == value
    whole = path.read_bytes()
    for damage in (whole[:-9], b"", b"3", b"\xff"):
        path.write_bytes(damage)
        with pytest.raises(ValueError, match=r"file\.json .* remove it"):
            read_results(path, {})
