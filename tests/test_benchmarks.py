"""The benchmarks' models train, and the committed results are of what they measure."""

import importlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
if not (ROOT / "benchmarks").exists():
    pytest.skip("an installed package has no benchmarks", allow_module_level=True)


@pytest.fixture
def module_of(monkeypatch):
    """Return a function that imports a module of the benchmarks."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
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


def test_a_layer_is_measured_with_the_kernel_and_without(module_of):
    pytest.importorskip("numba", reason="the native kernel needs it")
    row = module_of("native").measured("AdamLSTM", (2, 3, 2, 4), rounds=2)
    assert all(row[name] > 0 for name in ("baseline", "without", "native"))
    low, high = row["ratio"]["quartiles"]
    assert low <= row["ratio"]["median"] <= high


def test_a_layer_is_measured_beside_keras_as_on_a_gpu(module_of):
    row = module_of("gpu").measured("AdamLSTM", (2, 3, 2, 4), rounds=2)
    assert row["keras"] > 0 and row["ours"] > 0 and row["rounding"] < 1e-5
    assert all(len(row[name]["quartiles"]) == 2 for name in ("ratio", "predict"))
