"""The example `tune_layer.py`, small: what it writes, and that it goes on."""

import importlib.util
import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tuning_cases  # noqa: F401

SCRIPT = Path(__file__).parents[1] / "examples" / "tune_layer.py"
TINY = ["--layers", "NAGRNN", "RMSPropRNN", "--trials=2", "--epochs=1"]


def load_script():
    spec = importlib.util.spec_from_file_location("tune_layer", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load_script()


def test_it_searches_and_the_winner_predicts(tmp_path, capsys):
    example.main([*TINY, f"--output={tmp_path}"])
    trials = json.loads((tmp_path / "results.json").read_text())["trials"]
    assert [trial["layer"] for trial in trials] == ["NAGRNN", "RMSPropRNN"]
    assert trials[1]["values"]["beta"] == 0.9 and trials[1]["values"]["step_size"] == 0.6
    defaults = {"parametrization": "expm", "rebase_every": None, "step_size": 0.9}
    assert example.defaults("NAGDTRIV").items() > defaults.items()
    assert "RMSPropRNN" in (tmp_path / "table.txt").read_text()
    images, labels = example.load(8)[2]
    model = keras.saving.load_model(tmp_path / "best.keras")
    accuracy = (model.predict(images, verbose=0).argmax(-1) == labels).mean()
    assert f"Correct on 360 test images: {accuracy:.1%}" in capsys.readouterr().out


def test_every_layer_that_needs_no_rule_competes():
    layers = example.searched_layers()
    assert layers[0] == "LSTM" and {"AdamLSTM", "SRGRU", "NAGRNN", "MCRM"} < set(layers)
    assert not [name for name in layers if name.startswith("Rule")]
    assert {"GRU", "SimpleRNN"}.isdisjoint(layers)


def test_no_image_is_in_two_sets():
    sets = [images.reshape(len(images), -1) for images, _ in example.load(4)]
    assert [len(images) for images in sets] == [1152, 256, 360]
    assert len(np.unique(np.concatenate(sets), axis=0)) == 1152 + 256 + 360


@pytest.mark.parametrize("arguments", [["--trials=0"], ["--layers=RuleGRU"], ["--pixels=3"]])
def test_bad_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        example.main(arguments)
    assert arguments[0].partition("=")[0] in capsys.readouterr().err
