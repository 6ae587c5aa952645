"""Distributed search: chief and workers are killed, started again, late or wrongly set up."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent import futures
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from harness import free_port
from tuning_cases import Scripted, fail, search

pytest.importorskip("keras_tuner", reason="a search needs it")

import grpc
import keras_tuner
from keras_tuner.engine.trial import Trial

from keras_momentum_rnn import tuning
from keras_momentum_rnn.atomic_files import write_json
from keras_momentum_rnn.tuning import load_results, oracles, roles, state
from keras_momentum_rnn.tuning.executions import Executions, Tuner, read_record

LIMIT = 300

# In its second training worker0 is killed, the first time. In its first, worker1 waits until
# worker0 was started again: the chief that gave it its trial was killed meanwhile.
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
killed = {{1: lambda: os.kill(os.getpid(), signal.SIGKILL)}} if count() == 1 else {{}}
results = search({directory!r}, {{"worker0": killed, "worker1": {{0: wait}}}}.get(name),
                 max_trials=6, verbose=1)
assert name == "chief" and len(results.rows) == 6
print("the chief goes on", results.best.score == max(row.score for row in results.rows))
"""


@pytest.fixture
def start(tmp_path):
    """Start a process of the search by its name; whatever happens, all end."""
    lives, script = tmp_path / "lives", tmp_path / "script.py"
    lives.mkdir()
    names = {"tests": str(Path(__file__).parent), "directory": str(tmp_path / "search")}
    script.write_text(SCRIPT.format(lives=str(lives), **names))
    variables = {"KERASTUNER_ORACLE_IP": "127.0.0.1", "KERASTUNER_ORACLE_PORT": free_port()}
    variables["PYTHONPATH"] = os.pathsep.join(sys.path)
    started = []

    def one(name):
        environment = {**os.environ, **variables, "KERASTUNER_TUNER_ID": name}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, str(script)], env=environment, **pipes)
        started.append(process)
        return process

    yield one
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.two_writers
@pytest.mark.slow
def test_every_trial_ends_once_though_a_worker_and_the_chief_are_killed(start, tmp_path):
    worker, chief, killed = start("worker1"), start("chief"), start("worker0")
    assert killed.wait(LIMIT) == -signal.SIGKILL
    begun = time.monotonic()
    folder = tmp_path / "search"
    while len(state.load(folder)["trials"]) < 3 and time.monotonic() < begun + LIMIT:
        time.sleep(0.2)  # worker1 has its trial, too
    chief.kill()
    chief.wait()
    chief, again = start("chief"), start("worker0")
    output, _ = chief.communicate(timeout=LIMIT)
    assert chief.returncode == 0 and "the chief goes on True" in output
    assert "Resuming: 1 of 6 trials done" in output and "6/6 " in output
    assert worker.wait(LIMIT) == again.wait(LIMIT) == 0
    rows = load_results(folder).rows
    assert [(row.trial, row.status) for row in rows] == [(n, "COMPLETED") for n in "012345"]
    assert len({json.dumps(row.values) for row in rows}) == 6
    records = [read_record(f) for f in folder.glob("trials/trial_*")]
    assert Counter(record["attempts"] for record in records) == {1: 5, 2: 1}
    assert sorted(state.load(folder)["oracle"]["end_order"]) == list("012345")


# In this process


@pytest.fixture
def chief(tmp_path):
    """Return a function that makes the oracle of a chief, started or started again."""
    with state.claimed(tmp_path, {}, overwrite=False):
        pass

    def make():
        oracle = oracles.make("random", 3, 1, 0, Scripted.objective)
        stored = state.load(tmp_path)
        watched = Executions(Scripted(), Scripted.objective, 0)
        Tuner(oracle, watched, tmp_path, executions=1)
        state.restore(oracle, stored)
        oracle.on_change = lambda trial: state.save(tmp_path, stored, oracle)
        return oracle

    return make


def report(oracle, trial, score=0.5):
    """Report a trial as a worker does."""
    oracle.update_trial(trial.trial_id, {"score": score})
    sent = keras_tuner.HyperParameters.from_proto(trial.hyperparameters.to_proto())
    oracle.end_trial(Trial(sent, trial.trial_id, "COMPLETED"))


def test_hyperparameters_of_a_worker_have_the_order_of_the_space(chief):
    oracle = chief()
    trial = oracle.create_trial("worker0")
    report(oracle, trial)
    names = [hp.name for hp in oracle.trials[trial.trial_id].hyperparameters.space]
    assert names == [hp.name for hp in oracle.get_space().space]
    assert names[:2] == ["layer", "momentum"]


def test_a_worker_goes_on_with_its_trial_though_the_chief_was_started_again(chief):
    first = chief()
    mine, other = (first.create_trial(name) for name in ("worker0", "worker1"))
    report(first, other)
    first.update_trial(mine.trial_id, {"score": 0.5})
    again = chief()
    # Nobody else is given it meanwhile.
    assert again.create_trial("worker1").trial_id == "2"
    assert again.create_trial("worker0").trial_id == mine.trial_id
    again.end_trial(Trial(mine.hyperparameters, mine.trial_id, "COMPLETED"))
    assert again.end_order == [other.trial_id, mine.trial_id]


@pytest.mark.parametrize("late", [False, True])
def test_a_trial_whose_worker_does_not_come_back_is_given_to_another(late, chief):
    lost = chief().create_trial("worker0")
    again = chief()
    for _ in range(2):
        report(again, again.create_trial("worker1"))
    taken = again.create_trial("worker1")
    assert taken.trial_id == lost.trial_id
    for score, trial in zip((0.25, 0.75), [lost, taken] if late else [taken]):
        report(again, trial, score)
    assert sorted(again.end_order) == ["0", "1", "2"]
    assert again.trials["0"].score == 0.25
    assert again.create_trial("worker1").status == "STOPPED"
    assert not again.ongoing_trials and not again.tuner_ids


def test_trials_of_a_lost_worker_are_not_taken_from_one_that_is_there(chief):
    chief().create_trial("worker0")
    again = chief()
    again.create_trial("worker0")
    for _ in range(2):
        report(again, again.create_trial("worker1"))
    assert again.create_trial("worker1").status == "STOPPED"


def test_an_error_in_the_call_of_a_worker_ends_the_chief(chief):
    """Keras-tuner's lock would stay closed, and the chief would wait for ever."""
    oracle = chief()
    oracle.on_change = mock.Mock(side_effect=OSError("No space left on device"))

    def served(verbose):
        with futures.ThreadPoolExecutor() as server:
            server.submit(oracle.create_trial, "worker0").exception()
        time.sleep(5)

    with pytest.raises(OSError, match="No space left"):
        roles.serve(SimpleNamespace(oracle=oracle, search=served))


def test_a_chief_whose_search_has_ended_does_not_wait_for_workers(chief, monkeypatch):
    """It was killed while it wrote the results, or is started once more to return them."""
    monkeypatch.setattr(roles, "LATE", 0)
    oracle = chief()
    for _ in range(3):
        report(oracle, oracle.create_trial("worker0"))
    assert oracle.create_trial("worker0").status == "STOPPED"
    again = chief()

    def served(verbose):
        time.sleep(5)
        raise AssertionError("It still waits")

    roles.serve(SimpleNamespace(oracle=again, search=served))
    again.max_trials = 4
    assert not again.has_ended and again.create_trial("worker0").status == "RUNNING"


@pytest.fixture
def variables(monkeypatch):
    def put(**values):
        names = {"IP": "ORACLE_IP", "PORT": "ORACLE_PORT", "ID": "TUNER_ID"}
        given = {"IP": "127.0.0.1", "PORT": free_port(), "ID": "worker0", **values}
        for name, value in given.items():
            if value is not None:
                monkeypatch.setenv(f"KERASTUNER_{names[name]}", value)

    return put


def test_roles_follow_the_variables_of_keras_tuner(variables):
    assert roles.role() == "single"
    for name, role in (("chief", "chief"), ("worker3", "worker")):
        variables(ID=name)
        assert roles.role() == role


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"PORT": None}, "`KERASTUNER_ORACLE_PORT` must be an integer from 1 to 65535. Re"),
        ({"ID": None}, "`KERASTUNER_TUNER_ID` must be set, too"),
        ({"PORT": "abc"}, "`KERASTUNER_ORACLE_PORT` must be an integer from 1 to 65535. Re"),
        ({"PORT": "99999"}, "`KERASTUNER_ORACLE_PORT` must be an integer from 1 to 65535"),
        ({"IP": "no.such.host.invalid"}, "`KERASTUNER_ORACLE_IP` must be the chief's addr"),
        ({"IP": "192.0.2.1", "ID": "chief"}, "`KERASTUNER_ORACLE_IP` must be an address of"),
    ],
    ids=str,
)
def test_wrong_variables_are_named(values, told, variables, tmp_path):
    variables(**values)
    with pytest.raises(ValueError) as error:
        search(tmp_path / "search")
    assert told in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "search").exists()


@pytest.mark.two_writers
def test_a_port_where_another_chief_listens_is_refused(variables, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        variables(ID="chief", PORT=str(port))
        with pytest.raises(ValueError, match=f"Received: 127.0.0.1:{port}"):
            search(tmp_path / "search")
    assert not (tmp_path / "search").exists()


@pytest.mark.two_writers
def test_a_worker_takes_no_trial_of_another_search(tmp_path, variables, monkeypatch):
    made = [keras_tuner.oracles.RandomSearchOracle() for _ in range(3)]
    for oracle, name in zip(made, ("mine", "other")):
        search(tmp_path / name)
        state.restore(oracle, state.load(tmp_path / name))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        variables(PORT=str(listening.getsockname()[1]))
        for oracle in made:  # of the chief that answers
            tuner = mock.Mock(oracle=oracle)
            tuner.search.side_effect = lambda tuner=tuner, **fit: tuner.oracle.get_space()
            monkeypatch.setattr(tuning.search, "Tuner", lambda *args, tuner=tuner: tuner)
            expected = SystemExit if oracle is made[0] else ValueError
            with pytest.raises(expected, match=r"^0$|The chief at this one serves"):
                search(tmp_path / "mine")
        with pytest.raises(ValueError, match="`directory` must hold the search"):
            search(tmp_path / "empty")
        with pytest.raises(ValueError, match="batch_size: nothing there, 8 now"):
            search(tmp_path / "mine", batch_size=8)
    assert not (tmp_path / "empty").exists()


def test_a_chief_that_is_gone_is_told(tmp_path, variables, monkeypatch, capsys):
    search(tmp_path, max_trials=1)
    variables()
    monkeypatch.setattr(roles, "PATIENCE", 0)
    with pytest.raises(TimeoutError, match="No chief answered"):
        search(tmp_path)
    assert "worker0 waits for the chief at 127.0.0.1" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as listening:  # and never answers
        variables(PORT=str(listening.getsockname()[1]))
        monkeypatch.setattr(
            tuning.search, "Tuner", mock.Mock(side_effect=grpc.RpcError("UNKNOWN"))
        )
        with pytest.raises(RuntimeError, match="worker0 ends: the chief at"):
            search(tmp_path)


def test_a_worker_that_comes_after_the_last_trial_ends(
    tmp_path, variables, monkeypatch, capsys
):
    search(tmp_path)
    monkeypatch.setattr(roles, "PATIENCE", 0)
    variables()
    with pytest.raises(SystemExit, match=r"^0$"):
        search(tmp_path)
    assert "worker0 ends: all trials of its search have ended" in capsys.readouterr().err
    for begun_by_its_chief in ({"max_trials": 5}, {"overwrite": True}, {"batch_size": 8}):
        with pytest.raises(TimeoutError, match="No chief answered"):
            search(tmp_path, **begun_by_its_chief)
    stored = state.load(tmp_path)
    del stored["ended"]  # the chief was killed after the last trial, and will be started again
    write_json(tmp_path / "search.json", stored)
    with pytest.raises(TimeoutError, match="No chief answered"):
        search(tmp_path)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_worker_whose_chief_ends_before_it_answers_ends(overwrite, tmp_path, variables):
    search(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def leave():
            for _ in range(3):  # before it begins, before its first call, and this call
                listening.accept()[0].close()
            listening.close()

        threading.Thread(target=leave, daemon=True).start()
        variables(PORT=str(listening.getsockname()[1]))
        with pytest.raises(SystemExit, match=r"^0$"):
            search(tmp_path, overwrite=overwrite)


def test_a_worker_without_a_chief_ends_and_costs_no_trial(tmp_path):
    """Where another worker has ended its trial, it leaves the record."""
    for ended, attempts in ((roles.Ended, 1), (SystemExit, 0), (roles.NoChiefError, 0)):
        folder = tmp_path / ended.__name__
        with pytest.raises(ended):
            search(folder, {0: fail(ended(0))})
        assert read_record(folder / "trials" / "trial_0")["attempts"] == attempts
        assert not state.load(folder)["oracle"]["end_order"]


def test_a_call_that_the_end_of_the_chief_cut_off_is_made_again(chief, monkeypatch):
    cut_off = grpc.RpcError()
    cut_off.code = lambda: grpc.StatusCode.UNAVAILABLE
    oracle = chief()
    client = mock.Mock(get_space=oracle.get_space)
    client.get_trial.side_effect = [cut_off, cut_off, "trial"]
    monkeypatch.setattr(roles, "await_chief", lambda has_ended: None)
    name = oracle.get_space().get(state.ID)
    assert roles.Line(client, name, "folder", lambda: False).get_trial("0") == "trial"
    client.get_trial.side_effect = [cut_off]
    with pytest.raises(ValueError, match="serves another search than directory='folder'"):
        roles.Line(client, "another", "folder", lambda: False).get_trial("0")
