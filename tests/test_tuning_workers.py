"""Distributed search: a chief and workers, one of which is killed and started again."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from tuning_cases import search

pytest.importorskip("keras_tuner", reason="a search needs it")

import keras_tuner
from keras_tuner.engine.trial import Trial

from keras_momentum_rnn import tuning
from keras_momentum_rnn.tuning import load_results, roles, state

LIMIT = 900

# In its third training worker0 is killed, the first time. In its first, worker1 waits until
# worker0 was started again, so that there is something left to do.
SCRIPT = """
import os, signal, sys, time
sys.path.insert(0, {tests!r})
from tuning_cases import search
name, lives = os.environ["KERASTUNER_TUNER_ID"], {lives!r}
open(os.path.join(lives, f"{{name}} {{os.getpid()}}"), "w").close()
def count():
    return sum(life.startswith("worker0") for life in os.listdir(lives))
def wait():
    end = time.monotonic() + 90
    while count() < 2 and time.monotonic() < end:
        time.sleep(0.1)
killed = {{2: lambda: os.kill(os.getpid(), signal.SIGKILL)}} if count() == 1 else {{}}
results = search({directory!r}, {{"worker0": killed, "worker1": {{0: wait}}}}.get(name),
                 max_trials=8, verbose=1)
assert name == "chief" and len(results.rows) == 8
print("the chief goes on", results.best.score == max(row.score for row in results.rows))
"""


@pytest.fixture
def start(tmp_path):
    """Start a process of the search by its name; whatever happens, all end."""
    lives, script = tmp_path / "lives", tmp_path / "script.py"
    lives.mkdir()
    names = {"tests": str(Path(__file__).parent), "directory": str(tmp_path / "search")}
    script.write_text(SCRIPT.format(lives=str(lives), **names))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {"KERASTUNER_ORACLE_IP": "127.0.0.1", "KERASTUNER_ORACLE_PORT": str(port)}
    variables["PYTHONPATH"] = os.pathsep.join(sys.path)
    started = []

    def one(name):
        environment = {**os.environ, **variables, "KERASTUNER_TUNER_ID": name}
        process = subprocess.Popen(
            [sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield one
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.two_writers
def test_every_trial_is_counted_once_though_a_worker_is_killed(start, tmp_path):
    chief, killed, worker = start("chief"), start("worker0"), start("worker1")
    assert killed.wait(LIMIT) == -signal.SIGKILL
    again = start("worker0")
    output, _ = chief.communicate(timeout=LIMIT)
    assert chief.returncode == 0 and "the chief goes on True" in output
    assert "8/8 " in output and "; best " in output
    assert worker.wait(LIMIT) == again.wait(LIMIT) == 0
    rows = load_results(tmp_path / "search").rows
    assert [row.trial for row in rows] == list("01234567")
    assert {row.status for row in rows} == {"COMPLETED"}
    assert len({json.dumps(row.values) for row in rows}) == 8
    records = [state.read_record(f) for f in tmp_path.glob("search/trials/trial_*")]
    assert sorted(record["attempts"] for record in records) == [1] * 7 + [2]
    table = list(csv.DictReader((tmp_path / "search" / "results.csv").open()))
    assert len(table) == 8 and (tmp_path / "search" / "best.keras").exists()
    assert sorted(state.load(tmp_path / "search")["oracle"]["end_order"]) == list("01234567")


# In this process


@pytest.fixture
def as_chief(monkeypatch):
    """Make this process a chief at a port where another process listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        monkeypatch.setenv("KERASTUNER_TUNER_ID", "chief")
        monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
        monkeypatch.setenv("KERASTUNER_ORACLE_PORT", str(port))
        roles.check_address()
        other.listen()
        yield port


@pytest.mark.two_writers
def test_a_port_where_another_chief_listens_is_refused(as_chief, tmp_path):
    with pytest.raises(ValueError, match=f"Received: 127.0.0.1:{as_chief}"):
        search(tmp_path / "search")
    assert not (tmp_path / "search").exists()


@pytest.mark.two_writers
def test_a_worker_takes_no_trial_of_another_search(tmp_path, monkeypatch):
    oracles = [keras_tuner.oracles.RandomSearchOracle() for _ in range(3)]
    for oracle, name in zip(oracles, ("mine", "other")):
        search(tmp_path / name, max_trials=1)
        state.restore(oracle, state.load(tmp_path / name), tmp_path / name)
    for name, value in (("TUNER_ID", "worker0"), ("ORACLE_IP", "127.0.0.1")):
        monkeypatch.setenv(f"KERASTUNER_{name}", value)
    for oracle in oracles:  # of the chief that answers
        tuner = mock.Mock(oracle=oracle)
        monkeypatch.setattr(tuning.search, "PlainTuner", lambda tuner=tuner, **options: tuner)
        expected = SystemExit if oracle is oracles[0] else ValueError
        with pytest.raises(expected, match=r"^0$|The chief at this one serves"):
            search(tmp_path / "mine")
        assert tuner.search.called == (oracle is oracles[0])


def test_trials_arrive_at_a_worker_with_their_values():
    hp = keras_tuner.HyperParameters()
    hp.Fixed("step_size", 0.6)
    hp.Fixed("beta_logit", 6.906754778648554)
    received = Trial.from_proto(Trial(hp).to_proto()).hyperparameters
    assert received.values == hp.values  # in single precision, 0.6 were no choice any more


def test_roles_follow_the_variables_of_keras_tuner(monkeypatch):
    assert roles.role() == "single"
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    for name, role in (("chief", "chief"), ("worker3", "worker")):
        monkeypatch.setenv("KERASTUNER_TUNER_ID", name)
        assert roles.role() == role
