"""The example `orthogonal_pixels.py`: its results, and the recipes that it takes."""

import json
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    import orthogonal_pixels

    yield orthogonal_pixels
    for name in ("orthogonal_pixels", "pixel_digits"):
        sys.modules.pop(name, None)


def test_results_of_a_tiny_run(example, tmp_path):
    arguments = ["--subset=96", "--units=5", "--lstm-units=2", "--epochs=2", "--seeds=1"]
    arguments += ["--batch-size=40", "--rebase-every=2", "--layers", "LSTM", "MomentumDTRIV"]
    example.main([*arguments, f"--output={tmp_path}"])
    assert (tmp_path / "curves.png").stat().st_size > 10000
    results = json.loads((tmp_path / "results.json").read_text())
    assert set(results) == {"command", "settings", "summary", "runs"}
    assert results["settings"]["rebase_every"] == 2
    lstm, momentum = results["summary"]
    assert lstm["parameters"] == 4 * 2 * (1 + 2 + 1) + 30
    assert momentum["parameters"] == 5 * 4 // 2 + 2 * 5 + 60
    assert all(len(run["curve"]) == 2 for run in results["runs"])


def test_recipe_sets_layer_optimizer_and_length(example):
    options = example.parse(["--recipe=512", "--layers", "SRDTRIV"])
    assert (options.dataset, options.epochs, options.batch_size) == ("mnist", 150, 128)
    model = example.compiled_model(options, "SRDTRIV", (784, 1))
    assert (model.layers[0].units, model.layers[0].restart_period) == (512, 2)
    assert float(model.optimizer.learning_rate) == pytest.approx(3e-4)
    assert example.parse(["--recipe=170"]).layers == ["DTRIV", "MomentumDTRIV"]


def test_a_layer_without_a_recipe_is_refused(example, capsys):
    with pytest.raises(SystemExit):
        example.parse(["--recipe=170", "--layers", "AdamDTRIV"])
    assert "units=170" in capsys.readouterr().err


def test_pixels_are_permuted(example):
    options = example.parse([])
    assert options.permute
    assert "Permuted 8x8 digits" in example.title(options)
