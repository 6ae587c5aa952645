"""The study of learned momenta: its arms, its rules, its report."""

import dataclasses
import json

import keras
import numpy as np
import pytest
from harness import array, normal

import keras_momentum_rnn as kmr
from keras_momentum_rnn import rules
from papers import learned_momentum, tasks

BOTH = {*rules.LearnedMomentum.weight_names}
NEITHER = ("LSTM", "fixed", "fixed_louder", "spread_fixed", "rmsprop", "scaled_spread_fixed")
# What the arms train that do not train both.
TRAINED = {
    **{arm: set() for arm in NEITHER},
    "unit_momentum": {"momentum_logit"},
    "unit_step_size": {"step_size_raw"},
    "scaled_spread_beta": {*BOTH, "beta_logit"},
}


def test_the_arms_differ_in_the_rule_alone():
    found = learned_momentum.comparison(learned_momentum.parse(["adding"]), "").setups
    assert list(found) == list(learned_momentum.ARMS)
    told = [setup.described() for setup in found.values()]
    for described in told:
        del described["class"], described["arguments"]
    assert all(described == told[0] for described in told)


@pytest.mark.parametrize("arm", [*learned_momentum.ARMS, *learned_momentum.SCALED_ARMS])
def test_what_an_arm_trains_is_saved(arm, tmp_path):
    rule = {**learned_momentum.ARMS, **learned_momentum.SCALED_ARMS}[arm]
    model = keras.Sequential([keras.Input((4, 2)), kmr.RuleLSTM(3, rule=rule)])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    x = normal(np.random.default_rng(0), 2, 4, 2)
    np.testing.assert_array_equal(array(again(x)), array(model(x)))
    names = {w.name for w in again.trainable_weights} & {*BOTH, "beta_logit"}
    assert names == TRAINED.get(arm, BOTH)


def test_a_scaled_velocity_is_that_of_adam():
    """A learned rule that has not learned yet, on its scaling, is Adam."""
    x = normal(np.random.default_rng(1), 3, 5, 2)
    found = []
    for rule in (
        learned_momentum.SCALED_ARMS["scaled_unit"],
        learned_momentum.Scaled(rules.LearnedMomentum(per="unit"), learned=True),
        rules.Adam(0.6, 0.6, beta=0.999),
    ):
        layer = kmr.RuleLSTM(4, rule=rule, kernel_initializer="ones")
        layer.build((None, 5, 2))
        layer.cell.recurrent_kernel.assign(0.1 * np.ones((4, 16)))
        found.append(array(layer(x)))
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)
    np.testing.assert_allclose(found[1], found[2], atol=1e-6)


def test_an_epoch_of_a_small_set_has_each_sample_several_times():
    pytest.importorskip("aeon", reason="the sets are inside it")
    options = learned_momentum.parse(["GunPoint", "--arms", "fixed"])
    task = learned_momentum.comparison(options, "").task
    plain = tasks.load("archive", name="GunPoint")
    assert len(task.train) == 400 and len(task.test) == len(plain.test) == 150
    counts = np.unique(task.train.x, axis=0, return_counts=True)[1]
    assert len(counts) == len(plain.train) and counts.min() >= counts.max() - 1


def test_the_report_says_how_soon_and_what_was_learned(tmp_path, monkeypatch):
    monkeypatch.setattr(learned_momentum, "LEARNED", 1e9)
    small = {"epochs": 1, "options": {"steps": 4, "samples": 64}}
    budget = dataclasses.replace(learned_momentum.TASKS["adding"], **small)
    monkeypatch.setitem(learned_momentum.TASKS, "adding", budget)
    command = ["adding", "--arms", "LSTM", "unit", "--seeds=2", f"--output={tmp_path}"]
    learned_momentum.main(command)
    report = (tmp_path / "report.md").read_text()
    assert "| seeds better than `fixed` |" in report
    assert "| LSTM | 2, 2 |" in report and "| unit | 2, 2 |" in report
    assert "| unit | 0.6" in report and (tmp_path / "time_scales.png").exists()
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert [(run["seed"], run["layer"]) for run in runs] == [
        (seed, layer) for seed in (0, 1) for layer in ("LSTM", "unit")
    ]


def test_a_run_has_learned_in_the_first_epoch_with_a_small_validation_error():
    def run(layer, *validation):
        curve = [{"loss": 0.0, "validation_loss": loss} for loss in validation]
        return {"layer": layer, "setup": {"batch_size": 32}, "curve": curve}

    runs = [run("A", 0.5, 0.01, 0.02, 0.005), run("A", 0.5, 0.4)]
    settings = {"metric": "loss", "samples": {"train": 100}}
    text, _ = learned_momentum.updates_to_learn({"settings": settings, "runs": runs})
    assert "| A | 8, > 8 |" in text


@pytest.mark.parametrize("larger", [True, False])
def test_seeds_are_compared_one_by_one_after_the_last_epoch(larger):
    curves = {
        "fixed": [0.5, 0.7, 0.6],
        "gate": [0.6, 0.6, 0.65],
        "unit": [0.2, 0.9, 7],
        "scalar": [7],
    }
    runs = [
        {
            "layer": name,
            "seed": seed,
            "curve": [{"test_mse": 0.99}, {"test_mse": value}],
            "diverged": name == "scalar" or value == 7,
        }
        for name, values in curves.items()
        for seed, value in enumerate(values)
    ]
    settings = {"metric": "mse", "larger_is_better": larger}
    text, _ = learned_momentum.at_the_end({"settings": settings, "runs": runs})
    assert "| fixed | 0.600 ± 0.1 | - |" in text
    assert f"| gate | 0.617 ± 0.029 | {2 if larger else 1} of 3 |" in text
    assert "| unit | 0.550 ± 0.49 | 1 of 2 |" in text
    assert "| scalar | diverged | - |" in text
