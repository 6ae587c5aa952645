"""The study of learned momenta: its arms, its resuming, its report."""

import itertools
import json
from pathlib import Path

import keras
import numpy as np
import pytest
from harness import array, normal
from speed import slow_if_compiled

pytest.importorskip("matplotlib", reason="papers.experiments needs it")

import keras_momentum_rnn as kmr
from keras_momentum_rnn import rules
from papers import learned_momentum, tasks
from papers.tasks.recipe import as_json


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


@pytest.mark.parametrize("name", learned_momentum.SCALED_ARMS)
def test_scaled_arms_are_saved(tmp_path, name):
    rule = learned_momentum.SCALED_ARMS[name]
    model = keras.Sequential([keras.Input((4, 2)), kmr.RuleLSTM(3, rule=rule)])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert json.dumps(as_json(again.layers[0].rule)) == json.dumps(as_json(rule))
    x = normal(np.random.default_rng(0), 2, 4, 2)
    np.testing.assert_array_equal(array(again(x)), array(model(x)))
    trained = [w.name for w in again.trainable_weights]
    learns = name in ("scaled_unit", "scaled_spread", "scaled_spread_beta")
    assert ("momentum_logit" in trained) == ("step_size_raw" in trained) == learns
    assert ("beta_logit" in trained) == (name == "scaled_spread_beta")


def test_a_scaled_velocity_is_that_of_adam():
    """A learned rule that has not learned yet, on its scaling, is Adam."""
    x = normal(np.random.default_rng(1), 3, 5, 2)
    found = []
    for rule in (
        learned_momentum.SCALED_ARMS["scaled_unit"],
        learned_momentum.Scaled(rules.LearnedMomentum(per="unit"), learned=True),
        rules.Adam(0.6, 0.6, beta=0.999),
    ):
        layer = kmr.RuleLSTM(4, rule=rule, kernel_initializer=keras.initializers.Ones())
        layer.build((None, 5, 2))
        layer.cell.recurrent_kernel.assign(0.1 * np.ones((4, 16)))
        found.append(array(layer(x)))
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)
    np.testing.assert_allclose(found[1], found[2], atol=1e-6)


def test_speech_needs_a_folder(capsys):
    with pytest.raises(SystemExit):
        learned_momentum.parse(["speech"])
    assert "speech needs --folder" in capsys.readouterr().err


def test_an_epoch_of_a_small_set_has_each_sample_several_times():
    pytest.importorskip("aeon", reason="the sets are inside it")
    options = learned_momentum.parse(["GunPoint", "--arms", "fixed"])
    task = learned_momentum.comparison(options, "").task
    plain = tasks.load("archive", name="GunPoint")
    assert len(task.train) == 400 and len(task.test) == len(plain.test) == 150
    counts = np.unique(task.train.x, axis=0, return_counts=True)[1]
    assert len(counts) == len(plain.train) and counts.min() >= counts.max() - 1


def test_the_layer_of_a_set_with_gaps_is_found():
    layer = kmr.RuleLSTM(3, rule=rules.LearnedMomentum())
    parts = [keras.Input((4, 2)), keras.layers.Masking(), layer, keras.layers.Dense(1)]
    assert learned_momentum.recurrent_layer(keras.Sequential(parts)) is layer


@slow_if_compiled
def test_the_report_says_how_soon_and_what_was_learned(tmp_path, monkeypatch):
    monkeypatch.setattr(learned_momentum, "LEARNED", 1e9)
    command = ["adding", "--arms", "LSTM", "unit", "--seeds=2", "--epochs=1", "--samples=64"]
    learned_momentum.main([*command, "--steps=4", f"--output={tmp_path}"])
    report = (tmp_path / "report.md").read_text()
    assert "| seeds better than `fixed` |" in report.partition("## After the last epoch")[2]
    assert "| LSTM | 2, 2 |" in report and "| unit | 2, 2 |" in report
    assert "| unit | 0.6" in report and (tmp_path / "time_scales.png").exists()
    runs = json.loads((tmp_path / "results.json").read_text())["runs"]
    assert [(run["seed"], run["layer"]) for run in runs] == [
        (seed, layer) for seed in (0, 1) for layer in ("LSTM", "unit")
    ]


def test_seeds_are_compared_one_by_one_after_the_last_epoch():
    curves = {"fixed": [0.5, 0.7, 0.6], "gate": [0.6, 0.6, 0.65], "unit": [0.2, 0.9]}
    results = {
        "settings": {"metric": "accuracy", "larger_is_better": True},
        "summary": [{"layer": name} for name in curves],
        "runs": [
            {
                "layer": name,
                "seed": seed,
                "curve": [{"test_accuracy": 0.99}, {"test_accuracy": value}],
            }
            for name, values in curves.items()
            for seed, value in enumerate(values)
        ],
    }
    text, _ = learned_momentum.at_the_end(results)
    assert "| fixed | 0.600 ± 0.1 | - |" in text
    assert "| gate | 0.617 ± 0.029 | 2 of 3 |" in text
    assert "| unit | 0.550 ± 0.49 | 1 of 2 |" in text
    results["settings"]["larger_is_better"] = False
    assert "| 1 of 3 |" in learned_momentum.at_the_end(results)[0]


# What is committed

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "papers" / "results" / "learned_momentum"
PAGE = ROOT / "docs" / "learned_momentum.md"
committed = pytest.mark.skipif(
    not (PAGE.exists() and RESULTS.exists()), reason="only a checkout has docs and results"
)


def results_of(name):
    return json.loads((RESULTS / name / "results.json").read_text())


def ends_of(name):
    """Return the test scores after the last epoch, arrays by arm."""
    results, found = results_of(name), {}
    for run in results["runs"]:
        score = run["curve"][-1][f"test_{results['settings']['metric']}"]
        found.setdefault(run["layer"], []).append(score)
    return {arm: np.array(scores) for arm, scores in found.items()}


def page_tables():
    """Return the rows of the page's two tables."""
    tasks_of = ["digits", "digits_permuted", *learned_momentum.SETS, "speech"]
    ends = [ends_of(name) for name in tasks_of]
    adding = ends_of("adding")
    scaled = ends_of("adding_scaled")
    rows = [
        [f"`{arm}`", *(f"{of[arm].mean():.3f}" if arm in of else "-" for of in ends)]
        for arm in learned_momentum.ARMS
    ]
    errors = [
        [f"`{arm}`", ", ".join(f"{error:.3f}" for error in of[arm])]
        for arms, of in (
            (learned_momentum.ARMS, adding),
            (learned_momentum.SCALED_ARMS, scaled),
        )
        for arm in arms
        if arm in of
    ]
    return [["| " + " | ".join(row) + " |" for row in table] for table in (rows, errors)]


@committed
def test_numbers_of_the_page():
    lines = PAGE.read_text().splitlines()
    for row in itertools.chain(*page_tables()):
        assert row in lines


@committed
def test_sentences_of_the_page():
    """What the page says of its tables in words."""
    ends = {path.name: ends_of(path.name) for path in RESULTS.glob("*/")}
    assert {len(scores) for of in ends.values() for scores in of.values()} == {5}
    sizes = [results_of(name)["settings"]["samples"] for name in learned_momentum.SETS]
    held_out = [size["validation"] for size in sizes]
    told = f"validation sets of {min(held_out)} to {max(held_out)} samples"
    assert told in PAGE.read_text()

    def ahead(name, arm, other):
        sign = -1 if name in ("speech", "adding") else 1
        return int((sign * (ends[name][arm] - ends[name][other]) > 0).sum())

    for name in ("digits", "digits_permuted", "GunPoint", "speech"):
        assert ahead(name, "gate", "fixed") >= 4 and ahead(name, "gate", "LSTM") >= 4
        assert ahead(name, "spread", "gate") <= 1
    for name in ("digits", "digits_permuted", "speech"):
        assert ahead(name, "gate", "LSTM") == 5
    worse = ends["ArrowHead"]["fixed"] - ends["ArrowHead"]["gate"]
    assert 0 < worse.mean() < ends["ArrowHead"]["fixed"].std(ddof=1)
    speech = {arm: scores.mean() for arm, scores in ends["speech"].items()}
    assert speech["fixed"] < speech["fixed_louder"]
    assert speech["unit_momentum"] < speech["unit_step_size"] < speech["fixed"]
    learned = {arm: int((errors < 0.07).sum()) for arm, errors in ends["adding"].items()}
    assert learned["unit"] == learned["unit_step_size"] == 4
    assert learned["LSTM"] == 1 and learned["fixed"] == learned["gate"] == 0
    assert ahead("adding", "unit", "gate") >= 4
    scaled = {arm: errors.mean() for arm, errors in ends["adding_scaled"].items()}
    assert min(scaled, key=scaled.get) == "rmsprop"


@committed
@pytest.mark.parametrize("name", sorted(path.name for path in RESULTS.glob("*/")))
def test_what_the_reports_say_is_in_the_results(name):
    results = results_of(name)
    report = (RESULTS / name / "report.md").read_text()
    assert learned_momentum.at_the_end(results)[0] in report
    if "adding" in name:
        assert learned_momentum.updates_to_learn(results)[0] in report
    counts = {}
    for run in results["runs"]:
        counts[run["layer"]] = counts.get(run["layer"], 0) + 1
        assert len(run["curve"]) == run["setup"]["epochs"]
    assert len({*counts.values()}) == 1 and f"{min(counts.values())} seeds" in report
