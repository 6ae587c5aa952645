"""The benchmarks' models train, and the committed results are of what they measure."""

import argparse
import importlib
import json
from pathlib import Path

import keras
import numpy as np
import pytest
from harness import BACKEND

from keras_momentum_rnn.paths.native.runtime import SWITCH

ROOT = Path(__file__).parent.parent
if not (ROOT / "benchmarks").exists():
    pytest.skip("an installed package has no benchmarks", allow_module_level=True)


@pytest.fixture
def module_of(monkeypatch):
    """Return a function that imports a module of the benchmarks."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setenv(SWITCH, "1")  # which they change, and which is restored
    return importlib.import_module


def test_results_name_the_mean_length_that_sequences_have(module_of):
    from docs.tools.speed_tables import results

    lengths, committed = module_of("lengths"), results("lengths")
    assert [*committed["torch"].popitem()[1]["one"]] == [*map(lengths.mean_length, (0.5, 0.1))]
    assert lengths.lengths_of(0.1).mean() == pytest.approx(0.11 * lengths.STEPS, rel=0.05)


@pytest.mark.parametrize("label", ["keras.layers.LSTM", "MCRM"])
def test_models_train(label, module_of):
    measure = module_of("measure")
    one = measure.contestant(label, (2, 3, 2, 5))
    before = one.model.get_weights()
    assert measure.timed([one.train], 2).min() > 0
    assert any(np.any(a != b) for a, b in zip(before, one.model.get_weights()))


@pytest.mark.parametrize("name", ["MCRM", "NestedLSTM"])
def test_nested_layers_have_as_many_parameters_as_the_lstm(name, module_of):
    nested, plain = (
        module_of("measure").contestant(label, (64, 128, 32, 128)).model.count_params()
        for label in (name, "keras.layers.LSTM")
    )
    assert abs(nested / plain - 1) < 0.02


def test_a_layer_is_measured_with_the_kernel_and_without(module_of, monkeypatch):
    pytest.importorskip("numba", reason="the native kernel needs it")
    native, seen = module_of("native"), []

    def train(one):
        layer = one.model.layers[0]
        seen.append((type(layer).__name__, layer.plan(training=True).path == "native"))

    def timed(calls, rounds):
        seen.clear()
        for call in calls:
            call()
        return np.array([[0.1, 0.2, 0.3]] * rounds)

    monkeypatch.setattr(module_of("measure").Keras, "train", train)
    monkeypatch.setattr(native, "timed", timed)
    monkeypatch.setattr(native, "baseline_of", lambda layer, task: "LSTM")
    row = native.measured("AdamLSTM", (2, 3, 2, 4), rounds=2)
    assert seen == [("LSTM", False), ("AdamLSTM", False), ("AdamLSTM", True)]
    assert [row[name] for name in ("baseline", "without", "native")] == [100, 200, 300]
    assert row["ratio"]["median"] == 3 and row["ratio_without"]["median"] == 2


@pytest.mark.parametrize(
    "layer, plain",
    [("AdamLSTM", "LSTM"), ("MCRM", "LSTM"), ("NAGGRU", "GRU"), ("MomentumDTRIV", "SimpleRNN")],
)
def test_a_layer_stands_beside_its_plain_one(layer, plain, module_of):
    baseline = module_of("native").baseline_of(layer, "train")
    assert baseline == plain if BACKEND == "torch" else f"keras.layers.{plain}"


def test_a_layer_is_measured_beside_keras_as_on_a_gpu(module_of, monkeypatch):
    gpu = module_of("gpu")
    seconds = iter([np.array([[0.1, 0.2]]), np.array([[0.4, 0.2]])])
    monkeypatch.setattr(gpu, "timed", lambda calls, rounds: next(seconds))
    row = gpu.measured("AdamLSTM", (2, 3, 2, 4), rounds=1)
    assert (row["keras"], row["ours"]) == (100, 200) and row["rounding"] < 1e-5
    assert row["ratio"]["median"] == 2 and row["predict"]["median"] == 0.5


def test_a_ratio_is_of_each_round(module_of):
    found = module_of("measure").ratio(np.array([1.0, 2, 6]), np.array([2.0, 2, 3]))
    assert found == {"median": 1.0, "quartiles": [0.75, 1.5]}


def test_each_call_is_warm_when_it_is_timed(module_of):
    seen = []
    calls = [lambda name=name: seen.append(name) for name in "ab"]
    assert module_of("measure").timed(calls, 2).shape == (2, 2)
    assert "".join(seen) == "aabbaabb"


def test_a_busy_machine_is_not_measured(module_of, monkeypatch):
    parsed = module_of("measure").parsed
    monkeypatch.setattr("sys.argv", ["native.py"])
    with pytest.raises(SystemExit, match=r"load average is 0\.60"):
        parsed(argparse.ArgumentParser(), [0.6])
    parsed(argparse.ArgumentParser(), [0.4])
    monkeypatch.setattr("sys.argv", ["native.py", "--busy"])
    parsed(argparse.ArgumentParser(), [0.6])


def test_a_row_joins_those_of_other_cases(module_of, monkeypatch, tmp_path):
    measure = module_of("measure")
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    for row, case in ((1, "main"), (2, "wide"), (3, "main")):
        measure.record("native.json", row, "torch", case)
    found = json.loads((tmp_path / "native.json").read_text())
    assert found == {"torch": {"main": 3, "wide": 2}}


def test_a_model_is_measured_as_it_is_and_accelerated(module_of, monkeypatch):
    models = module_of("models")

    def small(rng):
        model = keras.Sequential([keras.Input((3, 2)), keras.layers.LSTM(4)])
        model.compile("sgd", "mse")
        return model, rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 4))

    monkeypatch.setattr(models, "UPDATES", 1)
    row = models.measured(small, 1)
    assert row["ratio"]["median"] == pytest.approx(row["accelerated"] / row["keras"], rel=0.05)


@pytest.mark.parametrize("name", ["streaming", "quantised"])
def test_other_benchmarks_can_be_loaded(name, module_of):
    module_of(name)
