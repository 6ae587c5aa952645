"""The benchmarks' models train, and the pages show the committed results."""

import importlib
from pathlib import Path

import keras
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
if not (ROOT / "benchmarks").exists():
    pytest.skip("an installed package has no benchmarks", allow_module_level=True)


@pytest.fixture(params=["measure", "report", "native"])
def module(request, monkeypatch):
    """A module of the benchmarks."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    if request.param == "native":
        pytest.importorskip("numba", reason="the native kernel needs it")
    return importlib.import_module(request.param)


@pytest.mark.parametrize("module", ["report"], indirect=True)
def test_pages_show_the_committed_results(module):
    tables = module.tables()
    old = [
        page.name
        for page in module.PAGES
        if module.with_tables(page.read_text(), tables, page) != page.read_text()
    ]
    assert old == [], "run python benchmarks/report.py"


@pytest.mark.parametrize("module", ["measure"], indirect=True)
@pytest.mark.parametrize("label", ["keras.layers.LSTM", "keras.layers.RNN(LSTMCell)", "MCRM"])
def test_models_train(label, module):
    one = module.contestant(label, (2, 3, 2, 5))
    before = one.model.get_weights()
    assert module.timed([one.train], 2).min() > 0
    assert any(np.any(a != b) for a, b in zip(before, one.model.get_weights()))


@pytest.mark.parametrize("module", ["measure"], indirect=True)
@pytest.mark.parametrize("name", ["MCRM", "NestedLSTM"])
def test_nested_layers_have_as_many_parameters_as_the_lstm(name, module):
    case = 64, 128, 32, 128
    nested, plain = (
        module.contestant(label, case).model.count_params()
        for label in (name, "keras.layers.LSTM")
    )
    assert abs(nested / plain - 1) < 0.02


@pytest.mark.parametrize("module", ["native"], indirect=True)
def test_time_inside_the_kernel_is_part_of_a_step(module):
    if keras.config.backend() != "torch":
        pytest.skip("the plain loop is of PyTorch")
    row = module.measured("AdamLSTM", (2, 3, 2, 4), rounds=2, peak=1e9)
    assert 0 < row["kernel"] < row["native"]
    low, high = row["ratio"]["quartiles"]
    assert low <= row["ratio"]["median"] <= high
