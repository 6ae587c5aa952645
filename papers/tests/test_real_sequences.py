"""The comparison on real sequences: equal sizes, searched, resumed, ranked, reported."""

import json
import math

import keras
import numpy as np
import pytest

pytest.importorskip("keras_tuner", reason="the comparison needs it")
pytest.importorskip("matplotlib", reason="the comparison needs it")
pytest.importorskip("rich", reason="the comparison needs it")
pytest.importorskip("scipy", reason="the comparison needs it")
pytest.importorskip("sklearn", reason="the comparison needs it")
pytest.importorskip("tensorboard", reason="the comparison needs it")

from ts_files import needs_aeon, write

from papers import (
    contestants,
    perturbations,
    ranks,
    real_sequences,
    real_sequences_report,
    real_sequences_scores,
    real_sequences_tables,
    real_sets,
    real_training,
    tasks,
)
from papers.tasks import archive

# Ranks


def test_mean_ranks_share_ties_and_put_the_best_first():
    found = ranks.mean_ranks({"a": [0.5, 0.9], "b": [0.7, 0.9], "c": [0.1, 0.2]})
    assert found == {"b": 1.25, "a": 1.75, "c": 3.0} and list(found) == ["b", "a", "c"]


def test_holm_is_that_of_a_worked_example():
    # 4 * 0.01, 3 * 0.015, the same again since it may not fall, 1 * 0.6.
    values = {"a": 0.02, "b": 0.01, "c": 0.6, "d": 0.015}
    expected = {"a": 0.045, "b": 0.04, "c": 0.6, "d": 0.045}
    assert ranks.holm(values) == pytest.approx(expected)
    assert ranks.holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_critical_difference_is_that_of_demsar():
    # Demsar (2006), Table 5: q is 2.569 for four classifiers at 5 %.
    assert ranks.critical_difference(4, 14) == pytest.approx(2.569 * (20 / 84) ** 0.5, abs=1e-3)


def test_signed_ranks_of_five_wins_is_the_smallest_p():
    scores = [0.9, 0.8, 0.7, 0.6, 0.5]
    other = [0.85, 0.7, 0.55, 0.4, 0.25]
    assert ranks.signed_ranks(scores, other) == pytest.approx(ranks.smallest_p(5))
    assert ranks.signed_ranks(scores, scores) == 1.0


# Changed inputs


def test_inputs_change_as_they_are_said_to():
    x = np.random.default_rng(0).normal(size=(40, 12, 2))
    x[0, 5:] = np.nan
    found = dict(perturbations.perturbed(x))
    assert list(found) == list(perturbations.MEANINGS)
    np.testing.assert_array_equal(found["gain 1/4"], x / 4)
    np.testing.assert_array_equal(found["gain 4"], 4 * x)
    np.testing.assert_array_equal(found["offset"], x + 1)
    assert np.nanstd(found["noise"] - x) == pytest.approx(0.5, abs=0.03)
    lost = found["lost steps"]
    same = np.isclose(lost, x) | np.isnan(x)
    np.testing.assert_array_equal(same[:, 0], True)
    np.testing.assert_array_equal(np.isnan(lost), np.isnan(x))
    assert 1 - same[1:, 1:].mean() == pytest.approx(0.3, abs=0.05)
    for sample, step in zip(*np.where(~same.all(axis=2))):
        np.testing.assert_array_equal(lost[sample, step], lost[sample, step - 1])
    doubled = found["twice as long"]
    assert doubled.shape == (40, 24, 2) and not np.isnan(doubled[0, :10]).any()
    assert np.isnan(doubled[0, 10:]).all()
    np.testing.assert_allclose(doubled[:, 0], x[:, 0])
    np.testing.assert_allclose(doubled[1:, -1], x[1:, -1])
    again = dict(perturbations.perturbed(x))
    np.testing.assert_array_equal(again["noise"], found["noise"])


def test_a_sequence_without_a_whole_step_stays_missing():
    x = np.random.default_rng(0).normal(size=(2, 4, 2))
    x[0, :, 1] = np.nan  # a channel that was not recorded
    doubled = dict(perturbations.perturbed(x))["twice as long"]
    assert np.isnan(doubled[0]).all() and not np.isnan(doubled[1]).any()


# Sizes


@pytest.mark.parametrize("name", contestants.CONTESTANTS)
def test_layers_have_the_parameters_of_an_lstm(name):
    task = tasks.load("adding", steps=4, samples=4, held_out=2)
    lstm, contestant = contestants.CONTESTANTS["LSTM"], contestants.CONTESTANTS[name]
    budget = contestants.parameters_of(task, lstm, 16)
    units = contestants.solved_units(task, contestant, budget)
    counts = [contestants.parameters_of(task, contestant, units + i) for i in (-1, 0, 1)]
    assert abs(counts[1] - budget) == min(abs(count - budget) for count in counts)


def test_one_channel_is_not_normalised_and_a_few_steps_have_no_kernel():
    assert "one channel" in contestants.excluded("LayerNorm-LSTM", 20, 1)
    assert contestants.excluded("LayerNorm-LSTM", 20, 2) is None
    assert contestants.excluded("LSTM", 8, 1) is None
    assert "9 steps" in contestants.excluded("MiniRocket", 8, 8)
    assert contestants.excluded("MiniRocket", 9, 8) is None


def test_the_control_reads_running_sums_and_keeps_the_mask():
    contestant = contestants.EVERY["Summed-LSTM"]
    assert "Summed-LSTM" not in contestants.CONTESTANTS and contestant.source == "plain"
    x = np.random.default_rng(0).normal(size=(2, 4, 1)).astype("float32")
    x[1, 2:] = archive.MASK_VALUE
    task = tasks.load("adding", steps=4, samples=4, held_out=2)
    model = contestant.model(task, contestant.new_layer(3), 1e-3)
    assert any(isinstance(layer, contestants.RunningSum) for layer in model.layers)
    front, layer = contestants.RunningSum(), contestant.new_layer(3)
    read = keras.Sequential([keras.layers.Masking(archive.MASK_VALUE), front, layer])
    found = keras.ops.convert_to_numpy(read(x))
    for sample, steps in enumerate([4, 2]):
        # Over the root of all 4 steps.
        sums = np.cumsum(x[sample : sample + 1, :steps], axis=1) / 2
        expected = keras.ops.convert_to_numpy(layer(sums))[0]
        np.testing.assert_allclose(found[sample], expected, atol=1e-6)


def test_the_learned_rule_is_a_new_one_in_each_layer():
    contestant = contestants.CONTESTANTS["LearnedMomentum"]
    first, second = (contestant.new_layer(2).cell.rule for _ in range(2))
    assert first is not second and first.per == "gate" and contestant.defaults() == {}
    assert json.loads(json.dumps(contestant.arguments)) == contestant.arguments


# The sets


def test_digits_are_read_by_rows_and_by_pixels():
    options = real_sequences.parse(["--sets", "DigitRows", "DigitPixels"])
    rows, pixels = (real_sets.loader(name, options) for name in options.sets)
    raw = rows(standardise=None)
    assert raw.input_shape == (8, 8) and raw.options["name"] == "DigitRows"
    assert [len(raw.train), len(raw.validation), len(raw.test)] == [1078, 359, 360]
    np.testing.assert_array_equal(raw.test.x, tasks.load("digits").test.x.reshape(-1, 8, 8))
    np.testing.assert_array_equal(raw.test.y, tasks.load("digits").test.y)
    one = pixels(standardise="training")
    assert one.input_shape == (64, 1) and abs(one.train.x.mean()) < 1e-4
    np.testing.assert_array_equal(one.train.y, raw.train.y)
    np.testing.assert_allclose(pixels(standardise="sample").test.x.mean(axis=1), 0, atol=1e-5)


def test_spoken_digits_keep_the_last_speakers_for_test(tmp_path):
    soundfile = pytest.importorskip("soundfile", reason="it reads speech")
    time = np.arange(800) / 8000
    for speaker in ("ann", "bob", "eve", "ida"):
        for digit in range(2):
            for index in range(1 + (speaker > "b")):
                sine = 0.5 * np.sin(2 * np.pi * (500 + 2000 * digit) * time)
                soundfile.write(tmp_path / f"{digit}_{speaker}_{index}.wav", sine, 8000)
    given = ["--sets", "SpokenDigits", "--recordings", str(tmp_path)]
    task = real_sets.loader("SpokenDigits", real_sequences.parse(given))(standardise=None)
    assert task.input_shape == (5, real_sets.BANDS)
    assert [len(task.train), len(task.validation), len(task.test)] == [4, 2, 8]
    # The tone stands in its own band.
    for x, y in zip(task.test.x, task.test.y):
        mel = 2595 * np.log10(1 + (500 + 2000 * y) / 700)
        band = int(mel / (2595 * np.log10(1 + 4000 / 700)) * real_sets.BANDS)
        assert set(x.argmax(axis=1)) == {band}
    with pytest.raises(SystemExit):
        real_sequences.parse(["--sets", "SpokenDigits"])
    assert "SpokenDigits" not in real_sequences.parse([]).sets


# The comparison


def test_whole_batches_go_through_all_samples_before_one_comes_again():
    task = tasks.load("adding", steps=4, samples=4, held_out=10)
    batches = real_training.repeated(task.validation, 4, 5, seed=0)
    seen = [x for i in range(5) for x in batches[i][0]]
    order = [int(np.flatnonzero((task.validation.x == x).all(axis=(1, 2)))[0]) for x in seen]
    assert len(batches) == 5 and sorted(order[:10]) == sorted(order[10:]) == list(range(10))
    assert order[:10] != order[10:]
    batches.epoch = 1
    after = real_training.repeated(task.validation, 4, 10, seed=0)
    np.testing.assert_array_equal(batches[0][0], after[5][0])


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for part, count in (("TRAIN", 16), ("TEST", 10)):
        rows = [(rng.normal(i % 2, 0.3, (1, 9)).round(3).tolist(), i % 2) for i in range(count)]
        write(tmp_path / "sets", part, rows, "@classLabel true 0 1")
    return tmp_path


def arguments(folder, *more):
    small = {"units": 3, "trials": 2, "seeds": 2, "updates": 2, "epochs": 3, "patience": 2}
    where = {"folder": folder / "sets", "output": folder / "out", "batch-size": 4}
    return [
        "--sets=Tiny",
        *(f"--{n}={value}" for n, value in {**small, **where}.items()),
        *more,
    ]


@needs_aeon
@pytest.mark.slow
def test_a_comparison_is_resumed_and_reported(folder, monkeypatch):
    layers = ["LSTM", "RMSPropLSTM", "Standardised-LSTM", "LayerNorm-LSTM", "linear"]
    given = arguments(folder, "--layers", *layers)
    results = real_sequences.main(given)["Tiny"]
    assert json.loads((folder / "out/Tiny/results.json").read_text()) == results
    done = [(run["layer"], run["seed"]) for run in results["runs"]]
    there = [name for name in layers if name != "LayerNorm-LSTM"]
    assert done == [(layer, seed) for layer in there for seed in (0, 1)]
    for run in results["runs"]:
        assert set(run) == set(real_training.SCHEMA["runs"])
        if run["layer"] != "linear":
            assert run["setup"]["trials"] == 2 and len(run["curve"]) <= 3
            assert run["curve"][run["best_epoch"] - 1][0] == min(e[0] for e in run["curve"])
            assert list(run["perturbed"]) == list(perturbations.PERTURBATIONS)
    # Each sequence standardised on its own: neither gain nor offset can be seen.
    standardised = results["runs"][4]
    for change in ("gain 1/4", "gain 4", "offset"):
        assert standardised["perturbed"][change]["loss"] == pytest.approx(
            standardised["test"]["loss"], abs=1e-4
        )
    # With the bias outside the rule the gain drops out, but for epsilon.
    ours = results["runs"][2]
    assert ours["perturbed"]["gain 4"]["loss"] == pytest.approx(ours["test"]["loss"], abs=1e-3)
    monkeypatch.setattr(real_training, "fit", None)
    assert real_sequences.main(given)["Tiny"]["runs"] == results["runs"]
    with pytest.raises(SystemExit, match="other settings"):
        real_sequences.main([*given, "--patience", "1"])

    real_sequences_report.main([str(folder / "out"), "--seeds", "2"])
    text = (folder / "out/report.md").read_text()
    assert "pairs of a layer" not in text  # it is no set of the study
    mean = np.mean([run["test"]["accuracy"] for run in results["runs"][:2]])
    assert f"| LSTM | 3 | {results['runs'][0]['parameters']} | {mean:.3f} ±" in text
    assert (folder / "out/gain.png").read_bytes().startswith(b"\x89PNG")


@needs_aeon
def test_reference_lines_learn_what_is_plain(folder):
    from papers.reference_lines import reference_run

    task = tasks.load("archive", name="Tiny", folder=folder / "sets")
    run = reference_run(real_training.new_run("linear", 0), task)
    assert run["test"]["accuracy"] == 1.0
    assert "twice as long" not in run["perturbed"]


def made(scores, losses=None):
    """Return results of a set, with the scores of layers, a list for each.

    Args:
        scores: dict from layers to test scores, None of a run that diverged.
        losses: dict from layers to the lowest validation loss of each run, or None for 1.
    """
    return {
        "settings": {
            "task": {
                "metric": "accuracy",
                "larger_is_better": True,
                "chance": {"accuracy": 0.25},
                "steps": 20,
                "channels": 1,
            }
        },
        "layers": {
            name: [
                {
                    "test": s and {"accuracy": s},
                    "perturbed": None,
                    "curve": [[2.0], [(losses or {}).get(name, [1.0] * 9)[i]], [3.0]],
                }
                for i, s in enumerate(found)
            ]
            for name, found in scores.items()
        },
    }


def test_a_difference_within_both_deviations_is_even():
    content = made({"LSTM": [0.8, 0.9], "GRU": [0.84, 0.94], "AdamLSTM": [0.99, 1.0]})
    assert real_sequences_scores.compared(content, "GRU", "LSTM") == 0
    assert real_sequences_scores.compared(content, "AdamLSTM", "LSTM") == 1
    assert real_sequences_scores.compared(content, "LSTM", "AdamLSTM") == -1
    assert real_sequences_scores.verdict(content)[2] == "ours"


def test_validation_chooses_the_layers_of_a_verdict_and_not_the_test_set():
    scores = {"LSTM": [0.8, 0.8], "GRU": [0.9, 0.9], "MCRM": [0.5, 0.5], "SRLSTM": [0.7, 0.7]}
    losses = {"LSTM": [0.1, 0.3], "GRU": [0.5, 0.5], "SRLSTM": [math.nan, math.nan]}
    content = made(scores, losses)
    assert real_sequences_scores.verdict(content) == ("LSTM", "MCRM", "plain")
    content = made({"GRU": [0.9, 0.9]})
    assert real_sequences_scores.verdict(content) == ("GRU", None, None)


def test_the_share_of_the_study_is_told():
    found = {"GunPoint": made({"LSTM": [0.8, 0.9], "GRU": [0.8, 0.9]})}
    # LayerNorm-LSTM has no part, for one channel.
    every = len(contestants.CONTESTANTS) - 1 + len(contestants.REFERENCES)
    text = real_sequences_report.share(found, [])
    assert f"2 of {every} pairs" in text and f"0 of {len(real_sets.SETS)} sets" in text
    assert "not counted: GunPoint" in text and "ItalyPowerDemand" in text


def test_a_set_counts_when_the_first_layers_are_through_and_a_layer_when_on_all_of_them():
    both = {name: [0.8, 0.9] for name in real_sequences_scores.FIRST}
    found = {
        "one": made({**both, "NAGLSTM": [0.9, 0.9]}),
        "two": made(both),
        "three": made({**both, "GRU": [0.7, 0.7]}),
        "four": made({"LSTM": [0.8, 0.9]}),
    }
    sets = real_sequences_scores.counted(found)
    assert sets == ["one", "two", "three"]
    ranks = real_sequences_scores.ranked(found, sets)
    assert set(ranks) == set(both)
    text = real_sequences_tables.tests(found, sets)
    assert "NAGLSTM" in text.partition("|")[0] and "no pair differs" in text


def test_all_layers_are_ranked_where_every_one_is_through():
    first = {name: [0.8, 0.9] for name in real_sequences_scores.FIRST}
    names = [*contestants.CONTESTANTS, *contestants.REFERENCES]
    every = {name: [0.8, 0.9] for name in names if name != "LayerNorm-LSTM"}
    found = {"one": made(every), "two": made(first), "three": made(every)}
    sets = real_sequences_scores.counted(found)
    over = real_sequences_report.rankings(found, sets)
    assert over == {
        "mean_ranks.png": ["one", "two", "three"],
        "all_ranks.png": ["one", "three"],
    }
    assert len(real_sequences_scores.ranked(found, over["all_ranks.png"])) == len(every) - 2
    del found["two"]  # then both are the same, and one picture does
    assert list(real_sequences_report.rankings(found, ["one", "three"])) == ["mean_ranks.png"]


def test_all_pairs_are_corrected_together():
    rng = np.random.default_rng(0)
    base = rng.random(12)
    table = {"a": base + 1, "b": base, "c": base + rng.normal(scale=1e-3, size=12)}
    found = ranks.pairwise({n: v.tolist() for n, v in table.items()})
    single = ranks.signed_ranks(table["a"], table["b"])
    assert found[("a", "b")] == pytest.approx(3 * single) and len(found) == 3
    text = real_sequences_tables.all_pairs({n: v.tolist() for n, v in table.items()})
    assert "a over b" in text and "a over c" in text and "b over c" not in text


def curves(*found):
    return [{"curve": [[loss] for loss in one]} for one in found]


def test_updates_until_the_best_loss_of_the_lstm():
    content = {
        "settings": {"budget": {"updates of an epoch": 50}},
        "layers": {
            "LSTM": curves([3, 1, 2], [3, 2, 2.5], [3, 3, 0.5]),  # the median of the best: 1
            "GRU": curves([2, 1, 0], [2, 2, 2], [0.9, 3, 3]),
        },
    }
    found = real_sequences_scores.updates_to_reach(content, "GRU")
    assert found == [100, np.inf, 50]
    assert real_sequences_tables.soon(found) == "100 (2 of 3)"
    assert real_sequences_tables.soon([np.inf, np.inf, 50]) == "- (1 of 3)"


def test_a_run_that_diverged_counts_as_chance():
    content = made({"LSTM": [0.75, None]})
    np.testing.assert_allclose(real_sequences_scores.scores(content, "LSTM"), [0.75, 0.25])
