"""Searches that are killed, damaged or continued: no trial is lost, none is mixed in."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from tuning_cases import STRATEGIES, Scripted, fail, images, numbers, scores, search

pytest.importorskip("keras_tuner", reason="a search needs it")

import keras_tuner
from keras_tuner.engine.trial import Trial

from keras_momentum_rnn.atomic_files import write_json
from keras_momentum_rnn.tuning import MomentumHyperModel, executions, load_results, state
from keras_momentum_rnn.tuning.executions import ATTEMPTS
from keras_momentum_rnn.tuning.state import differences, flat, settings_of

# Interruptions

KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from tuning_cases import search

search({directory!r}, {{2: lambda: os.kill(os.getpid(), signal.SIGKILL)}}, max_trials=5)
"""


@pytest.mark.slow
def test_a_killed_process_loses_no_trial_and_keeps_no_lock(tmp_path):
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
    assert numbers(results) == numbers(search(whole, max_trials=5))


def test_what_a_killed_process_was_writing_goes(tmp_path):
    left = tmp_path / "unfinished-0123456789abcdef-best.keras"
    left.touch()
    own = tmp_path / "unfinished-thesis.md"
    own.touch()
    search(tmp_path, max_trials=1)
    assert own.exists() and not left.exists()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_interrupted_search_tries_what_a_whole_one_tries(strategy, tmp_path):
    options = {"strategy": strategy, **STRATEGIES[strategy]}
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "broken", {3: fail(KeyboardInterrupt())}, **options)
    whole = search(tmp_path / "whole", **options)
    assert numbers(search(tmp_path / "broken", **options)) == numbers(whole)
    assert len(whole.rows) >= 5


def test_an_interrupted_search_says_how_far_it_came(tmp_path, capsys):
    with pytest.raises(KeyboardInterrupt, match="2 of 4 trials done; repeat the call to res"):
        search(tmp_path, {2: fail(KeyboardInterrupt())}, verbose=1)
    with pytest.raises(KeyboardInterrupt, match=r"2 of 4 .* without `overwrite` to resume"):
        search(tmp_path, {2: fail(KeyboardInterrupt())}, overwrite=True)
    capsys.readouterr()
    search(tmp_path, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Resuming: 2 of 4 trials done"
    assert [line[:4] for line in lines[1:]] == ["3/4 ", "4/4 "]
    best = max(row.score for row in load_results(tmp_path).rows)
    assert f"best score {best:.4g}" in lines[-1] and " step_size=" in lines[-1]


def test_an_interrupt_that_nobody_catches_ends_in_one_line(tmp_path, capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: shown.append(error))
    with pytest.raises(KeyboardInterrupt) as stopped:
        search(tmp_path, {2: fail(KeyboardInterrupt())})
    capsys.readouterr()
    sys.excepthook(stopped.type, stopped.value, stopped.tb)
    assert capsys.readouterr().err == "2 of 4 trials done; repeat the call to resume\n"
    assert not shown
    another = (KeyboardInterrupt, KeyboardInterrupt(), None)
    sys.excepthook(*another)
    assert shown == [another]


def caused(error, cause):
    error.__cause__ = cause
    return error


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "error",
    [FULL, caused(ValueError("no weights"), FULL), RuntimeError(f"{FULL}; in an operation")],
    ids=["itself", "the cause", "told by a library"],
)
def test_an_error_of_the_machine_stops_the_search_and_costs_no_trial(error, tmp_path):
    for _ in range(ATTEMPTS + 1):
        with pytest.raises(OSError, match=r"No space left .* not recorded.* repeat the call"):
            search(tmp_path / "broken", {0: fail(error)})
    whole = search(tmp_path / "whole")
    assert numbers(search(tmp_path / "broken")) == numbers(whole)


@pytest.mark.parametrize("place", [state, executions, Trial], ids=["state", "record", "trial"])
def test_a_disk_that_was_full_at_the_end_of_a_trial_costs_it_alone(
    place, tmp_path, monkeypatch
):
    name = "save" if place is Trial else "write_json"
    original, errors = getattr(place, name), [FULL]

    def full_once(*arguments):
        if errors:
            raise errors.pop()
        return original(*arguments)

    with pytest.raises(OSError, match="No space left"):
        search(tmp_path / "broken", {2: lambda: monkeypatch.setattr(place, name, full_once)})
    assert len(load_results(tmp_path / "broken").rows) == 2
    assert numbers(search(tmp_path / "broken")) == numbers(search(tmp_path / "whole"))


@pytest.mark.parametrize("kills", [ATTEMPTS - 1, ATTEMPTS])
def test_a_trial_that_kills_its_process_every_time_is_given_up(kills, tmp_path):
    for _ in range(ATTEMPTS + 1):  # interrupts are no kills
        with pytest.raises(KeyboardInterrupt):
            search(tmp_path, {0: fail(KeyboardInterrupt())}, max_trials=2)
    killed = {"attempts": kills, "executions": [], "error": None}
    write_json(tmp_path / "trials" / "trial_0" / "record.json", killed)
    first, second = search(tmp_path, max_trials=2).rows
    assert second.completed and first.completed == (kills < ATTEMPTS)
    assert first.completed or "killed 3 times" in first.error


@pytest.mark.two_writers
def test_two_searches_in_one_directory_are_refused(tmp_path):
    def another():
        for overwrite in (False, True):
            with pytest.raises(ValueError, match="Another process works in"):
                search(tmp_path, overwrite=overwrite)

    results = search(tmp_path, {1: another})
    assert [row.status for row in results.rows] == ["COMPLETED"] * 4


# Damage


def damaged(text):
    other = b'{"attempts": 1, "executions": [1], "settings": {}}'
    return {"torn": text[:-9], "random": b"\xff\x00", "empty": b"{}", "other": other}


@pytest.mark.damaged_files
@pytest.mark.parametrize("damage", damaged(b""))
def test_a_damaged_file_of_a_trial_loses_nothing(damage, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, {2: fail(KeyboardInterrupt())})
    for file in tmp_path.glob("trials/**/*.json"):
        file.write_bytes(damaged(file.read_bytes())[damage])
    results = search(tmp_path)
    whole = search(tmp_path / "whole")
    assert [row.values for row in results.rows] == [row.values for row in whole.rows]
    assert scores(results) == pytest.approx(scores(whole))
    # The first two have lost their records, and keep keras-tuner's score.
    assert [len(row.scores) for row in results.rows] == [0, 0, 1, 1]


@pytest.mark.damaged_files
@pytest.mark.parametrize("damage", damaged(b""))
def test_a_search_whose_state_is_damaged_is_refused_by_name(damage, tmp_path):
    search(tmp_path, max_trials=1)
    file = tmp_path / "search.json"
    file.write_bytes(damaged(file.read_bytes())[damage])
    with pytest.raises(ValueError, match=r"search\.json .*overwrite=True"):
        load_results(tmp_path)
    with pytest.raises(ValueError, match=r"search\.json .*overwrite=True"):
        search(tmp_path, max_trials=2)
    assert (tmp_path / "trials" / "trial_0").exists()
    assert len(search(tmp_path, max_trials=2, overwrite=True).rows) == 2


@pytest.mark.damaged_files
def test_a_trial_that_would_go_on_from_damaged_weights_fails_and_the_search_goes_on(tmp_path):
    options = {"strategy": "hyperband", **STRATEGIES["hyperband"]}
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, {3: fail(KeyboardInterrupt())}, **options)
    for weights in tmp_path.rglob("checkpoint.weights.h5"):
        weights.write_bytes(b"no weights")
    with pytest.warns(UserWarning, match=r"in .*trial_000. could not be loaded, so best"):
        results = search(tmp_path, **options)
    assert {row.status for row in results.rows} == {"COMPLETED", "FAILED"}


@pytest.mark.damaged_files
def test_a_damaged_best_model_is_written_again(tmp_path):
    search(tmp_path)
    (tmp_path / "best.keras").write_bytes((tmp_path / "best.keras").read_bytes()[:-50])
    with pytest.raises((ValueError, OSError)):
        load_results(tmp_path).best_model()
    assert search(tmp_path).best_model()


def test_the_best_model_is_of_the_best_trial_or_refused(tmp_path):
    class Marked(Scripted):
        def build(self, hp):
            model = super().build(hp)
            model.layers[0].bias.assign([hp.get("step_size")])
            return model

    options = {"max_trials": 3, "first": [{"step_size": 0.01}, {"step_size": 0.04}]}
    search(tmp_path, hypermodel=Marked(), **{**options, "max_trials": 1})
    for overwrite in (False, True):
        interrupted = Marked({1: fail(KeyboardInterrupt())})
        with pytest.raises(KeyboardInterrupt):
            search(tmp_path, hypermodel=interrupted, overwrite=overwrite, **options)
        assert (tmp_path / "best.keras").exists() is not overwrite
        assert (tmp_path / "results.csv").exists() is not overwrite
        with pytest.raises(ValueError, match=r"is not of the best trial; repeat the call"):
            load_results(tmp_path).best_model()
        results = search(tmp_path, hypermodel=Marked(), **options)
        (mark,) = keras.ops.convert_to_numpy(results.best_model().layers[0].bias)
        assert results.best is results.rows[1] and mark == np.float32(0.04)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_trials_of_no_search_is_kept(overwrite, tmp_path):
    (tmp_path / "trials").mkdir()
    with pytest.raises(ValueError, match=r"`trials` is of none: .* Received: directory="):
        search(tmp_path, overwrite=overwrite)
    assert {path.name for path in tmp_path.rglob("*")} == {"trials", "lock"}


# Continuation


def test_a_finished_search_may_go_on(tmp_path):
    before = search(tmp_path, max_trials=2)
    after = search(tmp_path, {0: fail(AssertionError("no trial was left"))}, max_trials=2)
    assert after.rows == before.rows
    longer = search(tmp_path, max_trials=11)
    assert longer.rows[:2] == before.rows and len(longer.rows) == 11
    assert len(search(tmp_path, max_trials=1, overwrite=True).rows) == 1


X, Y = images()
GIVEN = {"x": [X], "y": Y, "batch_size": 4, "validation_data": (X, Y)}
OTHER = {
    "seed: 0 there, 3 now": {"seed": 3},
    "strategy: 'random' there, 'bayesian' now": {"strategy": "bayesian"},
    "batch_size: 4 there, 8 now": {"batch_size": 8},
    "executions: 1 there, 2 now": {"executions": 2},
    "first/0/step_size: nothing there, 0.5 now": {"first": [{"step_size": 0.5}]},
    "validation_split: nothing there, 0.2 now": {"validation_split": 0.2},
    "x/0: 'float32 (24, 3, 2) ": {"x": [-X]},
    "y: 'int32 (24,) ": {"y": 1 - Y},
    "validation_data/1: 'int32": {"validation_data": (X, 1 - Y)},
    "sample_weight: nothing there, 'float64": {"sample_weight": np.ones(24)},
    "class_weight/1: nothing there, 2.0 now": {"class_weight": {0: 1.0, 1: 2.0}},
    "callbacks/0/factor: nothing there, 0.5": {
        "callbacks": keras.callbacks.ReduceLROnPlateau(factor=0.5)
    },
    "space/1/config/max_value: 1.0 there, 0.5": {"hypermodel": Scripted(high=0.5)},
    "use_bias: True there, False": {"hypermodel": Scripted(use_bias=False)},
    "kernel_regularizer/": {"hypermodel": Scripted(kernel_regularizer="l2")},
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    folder = tmp_path_factory.mktemp("begun")
    search(folder, max_trials=1, **GIVEN)
    return folder


@pytest.mark.parametrize("told", OTHER)
def test_a_search_does_not_go_on_as_another_one(told, begun):
    with pytest.raises(ValueError, match="holds a search of other settings or data") as error:
        search(begun, max_trials=2, **{**GIVEN, **OTHER[told]})
    assert told in str(error.value) and "epochs" not in str(error.value)


def test_a_search_goes_on_with_copies_of_its_data(begun):
    same = keras.tree.map_structure(lambda a: np.copy(a) if np.ndim(a) else a, GIVEN)
    assert len(search(begun, max_trials=1, **same).rows) == 1


HEAD = keras.layers.Dense(2, activation="softmax", name="dense_7")
MODEL = {"input_shape": (3, 2), "head": 2, "layers": ["LSTM", "SRLSTM"], "units": 2}


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"head": 5}, "hypermodel/head: 2 there, 5 now"),
        ({"head": HEAD}, "hypermodel/head/"),
        ({"recurrent_regularizer": "l2"}, "hypermodel/recurrent_regularizer"),
        ({"formulation": "released"}, "hypermodel/formulation"),  # of no default model
        ({"task": "regression"}, "model/compile/loss"),
        ({}, None),
    ],
    ids=str,
)
def test_all_that_a_config_says_of_a_hypermodel_is_compared(other, told):
    def settings(**arguments):
        hypermodel = MomentumHyperModel(**arguments)
        keras.layers.Dense(1)  # Keras counts the layers of a process
        return settings_of(hypermodel, hypermodel.build(keras_tuner.HyperParameters()))

    text = "".join(differences(settings(**MODEL), settings(**{**MODEL, **other})))
    assert told in text if told else not text


def test_a_search_stays_on_its_backend_and_its_version_of_keras_tuner():
    hypermodel = MomentumHyperModel(**MODEL)
    model = hypermodel.build(keras_tuner.HyperParameters())
    found = settings_of(hypermodel, model)
    for name, own in (
        ("backend", keras.config.backend()),
        ("keras_tuner", keras_tuner.__version__),
    ):
        assert found[name] == own
        assert name in "".join(differences(found, {**found, name: "another"}))


def test_data_differ_in_values_type_shape_and_place():
    x = np.arange(6, dtype="float32")
    different = [x, x[::-1], x.view("int32"), x.reshape(2, 3), [x, x], [x], {"a": x}]
    assert len({str(flat(data)) for data in different}) == len(different)
    for same in (keras.ops.convert_to_tensor(x), np.repeat(x, 2)[::2]):
        assert flat(same) == flat(x)


def test_settings_differ_in_type_and_nan_is_itself():
    assert differences({"patience": float("nan")}, {"patience": float("nan")}) == []
    for one, other in ((True, 1), (1, 1.0)):
        assert len(differences({"shuffle": one}, {"shuffle": other})) == 1


def test_names_that_keras_counts_are_compared_without_the_count():
    head = {"name": "dense_7", "activation": "gate_7", "keras_history": ["lstm_7", 0]}
    model = {"layers": [head], "input_layers": ["input_layer_7", 0]}
    values = {"model": {"layers": model}, "hypermodel": {"head": head}, "objective": "auc_7"}
    assert {name for name, value in flat(values).items() if "_7" in str(value)} == {
        *("model/layers/layers/0/activation", "hypermodel/head/activation", "objective")
    }


def test_of_datasets_functions_and_objects_the_class_alone_is_compared():
    for values in ((iter([1]), iter([2])), (lambda: 1, lambda: 2), (object(), object())):
        assert flat(values[0]) == flat(values[1])
    texts = np.array(["a", None], object)
    assert flat(texts) == flat(texts[::-1])
