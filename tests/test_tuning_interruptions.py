"""Searches that are killed, damaged or continued: no trial is lost, none is mixed in."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from tuning_cases import Scripted, fail, images, numbers, score_of, scores, search

pytest.importorskip("keras_tuner", reason="a search needs it")


from keras_momentum_rnn.atomic_files import read_json, write_json
from keras_momentum_rnn.tuning import (
    load_results,
    state,
)
from keras_momentum_rnn.tuning.data_digests import digest
from keras_momentum_rnn.tuning.executions import ATTEMPTS

KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from tuning_cases import search

search({directory!r}, {{2: lambda: os.kill(os.getpid(), signal.SIGKILL)}}, max_trials=5)
"""


def test_a_killed_process_loses_no_trial(tmp_path):
    directory, whole = tmp_path / "killed", tmp_path / "whole"
    code = KILLED.format(tests=str(Path(__file__).parent), directory=str(directory))
    killed = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=900,
    )
    assert killed.returncode == -signal.SIGKILL
    before = load_results(directory).rows
    assert len(before) == 2
    results = search(directory, max_trials=5)
    assert results.rows[:2] == before
    assert [row.trial for row in results.rows] == list("01234")
    assert {row.status for row in results.rows} == {"COMPLETED"}
    assert numbers(results) == numbers(search(whole, max_trials=5))


@pytest.mark.parametrize("strategy", ["random", "hyperband"])
def test_an_interrupted_search_tries_what_a_whole_one_tries(strategy, tmp_path):
    size = {"max_trials": 6} if strategy == "random" else {"max_trials": None, "epochs": 3}
    options = {"strategy": strategy, **size}
    for event in (3, 4):
        with pytest.raises(KeyboardInterrupt):
            search(tmp_path / str(event), {event: fail(KeyboardInterrupt())}, **options)
    whole = numbers(search(tmp_path / "whole", **options))
    assert all(numbers(search(tmp_path / str(event), **options)) == whole for event in (3, 4))


def damaged(text):
    return {"torn": text[: len(text) // 2], "random": b"\xff\x00\x81" * 9, "empty": b"{}"}


@pytest.mark.damaged_files
@pytest.mark.parametrize("damage", ["torn", "random", "empty"])
def test_a_damaged_file_of_keras_tuner_loses_nothing(damage, tmp_path):
    search(tmp_path, max_trials=2)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, {0: fail(KeyboardInterrupt())}, max_trials=4)
    for file in tmp_path.glob("trials/**/*.json"):
        file.write_bytes(damaged(file.read_bytes())[damage])
    results = search(tmp_path, max_trials=4)
    assert numbers(results) == numbers(search(tmp_path / "whole", max_trials=4))
    assert {row.status for row in results.rows} == {"COMPLETED"}
    # The first two have lost their records, and keep keras-tuner's score.
    assert [len(row.scores) for row in results.rows] == [0, 0, 1, 1]
    assert scores(results) == pytest.approx(
        [score_of(row.values) for row in results.rows], rel=1e-5
    )


@pytest.mark.damaged_files
@pytest.mark.parametrize("damage", ["torn", "random", "empty", "missing"])
def test_a_search_whose_state_is_damaged_is_refused_by_name(damage, tmp_path):
    search(tmp_path, max_trials=1)
    file = tmp_path / "search.json"
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(damaged(file.read_bytes())[damage])
    with pytest.raises(ValueError, match=r"search\.json"):
        search(tmp_path, max_trials=2)
    if damage != "missing":
        with pytest.raises(ValueError, match=r"search\.json"):
            load_results(tmp_path)
    assert (tmp_path / "trials" / "trial_0").exists()
    assert len(search(tmp_path, max_trials=2, overwrite=True).rows) == 2


@pytest.mark.damaged_files
def test_what_killed_processes_left_half_written_is_removed(tmp_path):
    search(tmp_path, max_trials=1)
    old, new = (tmp_path / "trials" / f"unfinished-{i}-record.json" for i in range(2))
    for file in (old, new):
        file.write_text("{")
    os.utime(old, (0, 0))
    search(tmp_path, max_trials=1)
    assert new.exists() and not old.exists()


def test_trials_that_workers_had_begun_run_again(tmp_path):
    results = search(tmp_path, max_trials=2)
    stored = state.load(tmp_path)
    oracle = stored["oracle"]
    oracle["ongoing_trials"] = {"worker1": oracle["end_order"].pop()}
    stored["trials"][1]["status"] = "RUNNING"
    write_json(tmp_path / "search.json", stored)
    assert len(load_results(tmp_path).rows) == 1
    assert numbers(search(tmp_path, max_trials=2)) == numbers(results)
    stored["oracle"] |= {"ongoing_trials": {}, "end_order": ["1", "0"]}  # the first took longer
    write_json(tmp_path / "search.json", stored)
    assert [row.trial for row in load_results(tmp_path).rows] == ["0", "1"]


def test_what_ends_the_process_every_time_is_given_up(tmp_path):
    class Ended(BaseException):
        """As if the process had been killed."""

    for _ in range(ATTEMPTS):
        with pytest.raises(Ended):
            search(tmp_path, {0: fail(Ended())}, max_trials=2)
    results = search(tmp_path, max_trials=2)
    assert [row.status for row in results.rows] == ["FAILED", "COMPLETED"]
    assert "killed 3 times" in results.rows[0].error


def test_the_users_interruptions_are_not_counted(tmp_path):
    for _ in range(ATTEMPTS + 1):
        with pytest.raises(KeyboardInterrupt):
            search(tmp_path, {0: fail(KeyboardInterrupt())}, max_trials=2)
    assert {row.status for row in search(tmp_path, max_trials=2).rows} == {"COMPLETED"}


def test_a_finished_search_may_go_on_and_may_not_change(tmp_path):
    before = search(tmp_path, max_trials=2)
    after = search(tmp_path, {0: fail(AssertionError("no trial was left"))}, max_trials=2)
    assert after.rows == before.rows
    longer = search(tmp_path, max_trials=11)
    assert longer.rows[:2] == before.rows and len(longer.rows) == 11
    for options, name in (
        ({"seed": 3}, "seed: 0 there, 3 now"),
        ({"hypermodel": Scripted(high=0.5)}, "space: "),
        ({"strategy": "bayesian"}, "strategy: 'random' there, 'bayesian' now"),
    ):
        with pytest.raises(ValueError) as error:
            search(tmp_path, **options)
        assert name in str(error.value) and "epochs" not in str(error.value)
    assert len(load_results(tmp_path).rows) == 11
    assert len(search(tmp_path, seed=3, max_trials=1, overwrite=True).rows) == 1


@pytest.mark.parametrize("patience", [None, 1])
def test_callbacks_may_be_none_or_one_as_in_keras(patience, tmp_path):
    epochs = []
    one = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: epochs.append(epoch))
    for given in (None, one):
        directory = tmp_path / type(given).__name__
        results = search(directory, max_trials=1, callbacks=given, patience=patience)
        assert [row.status for row in results.rows] == ["COMPLETED"]
    assert epochs == [0]


def test_a_search_does_not_go_on_with_other_numbers_for_fit(tmp_path):
    given = {"batch_size": 4, "validation_data": (np.zeros(1), np.zeros(1))}
    before = search(tmp_path, max_trials=2, **given)
    assert search(tmp_path, max_trials=3, **given).rows[:2] == before.rows
    with pytest.raises(ValueError, match="batch_size: 4 there, 8 now"):
        search(tmp_path, **{**given, "batch_size": 8})
    with pytest.raises(ValueError, match=r"validation_split: None there, 0\.2 now"):
        search(tmp_path, **given, validation_split=0.2)


@pytest.mark.parametrize("part", ["x", "y", "validation_data", "sample_weight"])
def test_a_search_does_not_go_on_with_other_data(part, tmp_path):
    x, y = images()
    given = {"x": [x], "y": y, "validation_data": (x, y), "sample_weight": np.ones(len(y))}
    before = search(tmp_path, max_trials=2, **given)
    same = keras.tree.map_structure(np.copy, given)
    assert search(tmp_path, max_trials=3, **same).rows[:2] == before.rows
    other = {**same, part: keras.tree.map_structure(np.negative, given[part])}
    with pytest.raises(ValueError, match=f"on other data; .* other values in {part}$"):
        search(tmp_path, max_trials=4, **other)
    assert len(load_results(tmp_path).rows) == 3
    assert len(search(tmp_path, max_trials=1, overwrite=True, **other).rows) == 1


def test_data_that_are_no_arrays_are_not_compared(tmp_path):
    """Nor are those of a search that an earlier version began."""
    x, y = images()
    search(tmp_path, max_trials=1, x=iter([x]))
    assert len(search(tmp_path, max_trials=2, x=iter([y])).rows) == 2
    texts = np.array(["a", None], object)
    assert len(search(tmp_path, max_trials=3, x=texts).rows) == 3
    stored = read_json(tmp_path / "search.json")
    del stored["data"]
    write_json(tmp_path / "search.json", stored)
    assert len(search(tmp_path, max_trials=4, x=x).rows) == 4
    with pytest.raises(ValueError, match="on other data"):
        search(tmp_path, max_trials=5, x=-x)


def test_data_differ_in_values_type_shape_and_place():
    x = np.arange(6, dtype="float32")
    different = [x, x[::-1], x.astype("float64"), x.reshape(2, 3), [x, x], [x], {"a": x}]
    assert len({digest(data) for data in different}) == len(different)
    assert digest(keras.ops.convert_to_tensor(x)) == digest(x) == digest(np.repeat(x, 2)[::2])
