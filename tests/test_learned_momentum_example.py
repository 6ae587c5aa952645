"""The study of learned momenta: its arms, its resuming, its report."""

import json

import keras
import pytest
from speed import slow_if_compiled

pytest.importorskip("matplotlib", reason="keras_momentum_rnn.experiments needs it")

import learned_momentum

import keras_momentum_rnn as kmr
from keras_momentum_rnn import rules


def test_the_arms_differ_in_the_rule_alone():
    found = learned_momentum.comparison(learned_momentum.parse(["adding"]), "").setups
    assert list(found) == list(learned_momentum.ARMS)
    told = [setup.described() for setup in found.values()]
    for described in told:
        for name in ("class", "arguments"):
            del described[name]
    assert all(described == told[0] for described in told)
    for name, setup in found.items():
        (layer,) = setup.new_layers()
        layer.build((None, None, 2))
        both = {*rules.LearnedMomentum.weight_names}
        trained = {w.name for w in layer.trainable_weights} & both
        assert trained == {
            "LSTM": set(),
            "fixed": set(),
            "fixed_louder": set(),
            "spread_fixed": set(),
            "unit_momentum": {"momentum_logit"},
            "unit_step_size": {"step_size_raw"},
        }.get(name, both)


def test_what_is_fixed_is_saved(tmp_path):
    rule = learned_momentum.ARMS["unit_momentum"]
    model = keras.Sequential([keras.Input((4, 2)), kmr.RuleLSTM(3, rule=rule)])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras").layers[0]
    assert again.rule.get_config() == rule.get_config()
    names = [w.name for w in again.trainable_weights]
    assert "momentum_logit" in names and "step_size_raw" not in names


@slow_if_compiled
def test_the_report_says_how_soon_and_what_was_learned(tmp_path, monkeypatch):
    monkeypatch.setattr(learned_momentum, "LEARNED", 1e9)
    command = ["adding", "--arms", "LSTM", "unit", "--seeds=2", "--epochs=1", "--samples=64"]
    learned_momentum.main([*command, "--steps=4", f"--output={tmp_path}"])
    report = (tmp_path / "report.md").read_text()
    assert "| LSTM | 2, 2 |" in report and "| unit | 2, 2 |" in report
    assert "| unit | 0.6" in report and (tmp_path / "time_scales.png").exists()
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert [(run["seed"], run["layer"]) for run in runs] == [
        (seed, layer) for seed in (0, 1) for layer in ("LSTM", "unit")
    ]
