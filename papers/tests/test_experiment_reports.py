"""What a comparison comes to: summary, claims, report, pictures, and the papers' numbers."""

import dataclasses

import numpy as np
import pytest

from papers import ablation, budgets, reports
from papers.experiments import claims, plots, report, summary
from papers.paper_claims import claims_on
from papers.tasks.paper_results import published


def run(layer, seed, validation, test, seconds=2.0, diverged=False):
    """A run of which the score is the accuracy."""
    curve = [
        {
            "loss": 1.0 / n,
            "accuracy": v,
            "validation_loss": 1.0,
            "validation_accuracy": v,
            "test_loss": 2.0 / n,
            "test_accuracy": t,
            "seconds": seconds,
        }
        for n, (v, t) in enumerate(zip(validation, test), 1)
    ]
    best = int(np.argmax(validation)) if curve else None
    return {
        "layer": layer,
        "seed": seed,
        "parameters": 1234,
        "setup": {
            "class": layer,
            "units": 8,
            "arguments": {},
            "optimizer": {"class": "Adam"},
            "batch_size": 4,
            "epochs": 3,
        },
        "best_epoch": None if best is None else best + 1,
        "test": None if best is None else {"loss": 2.0 / (best + 1), "accuracy": test[best]},
        "diverged": diverged,
        "curve": curve,
    }


def results(runs, task="mnist", larger_is_better=True, constant=None):
    found = {
        "constant": {"accuracy": 0.05, "loss": 2.3} if constant is None else constant,
        "commands": ["python x.py", "python x.py --layers GRU"],
        "settings": {
            "task": task,
            "options": {},
            "budget": {"name": "tiny"},
            "samples": {"train": 10, "validation": 5, "test": 5},
            "metric": "accuracy",
            "larger_is_better": larger_is_better,
            "chance": {"accuracy": 0.1, "loss": 2.3},
            "chance_means": "one class in ten",
            "backend": "jax",
            "device": "cpu",
            "devices": 1,
            "keras": "3.15",
            "jax": "0.10",
        },
        "runs": runs,
    }
    return {**found, "summary": summary.rows(found)}


LSTM = [run("LSTM", 0, [0.2, 0.5, 0.3], [0.1, 0.30, 0.9]),
        run("LSTM", 1, [0.2, 0.3, 0.3], [0.1, 0.34, 0.9])]  # fmt: skip
FAST = [run("MomentumLSTM", 0, [0.5, 0.5, 0.6], [0.5, 0.5, 0.7], seconds=3.0),
        run("MomentumLSTM", 1, [0.3, 0.5, 0.9], [0.5, 0.5, 0.8], seconds=5.0)]  # fmt: skip
SLOW = [run("SRLSTM", 0, [0.1, 0.1, 0.2], [0.2, 0.2, 0.2]),
        run("SRLSTM", 1, [0.1, 0.1, 0.2], [0.2, 0.2, 0.21])]  # fmt: skip
ALIKE = [run("AdamLSTM", 0, [0.2, 0.3, 0.2], [0.1, 0.33, 0.2]),
         run("AdamLSTM", 1, [0.2, 0.3, 0.2], [0.1, 0.32, 0.2])]  # fmt: skip
BROKEN = [run("NAGLSTM", 0, [], [], diverged=True)]
ALL = [*LSTM, *FAST, *SLOW, *ALIKE, *BROKEN]


def test_summary_is_of_the_epoch_that_is_best_on_validation():
    lstm, fast, slow, alike, broken = results(ALL)["summary"]
    assert lstm["test"] == pytest.approx(0.32)  # of epoch 2 in both, not the last one's 0.9
    assert lstm["test_sd"] == pytest.approx(0.04 / np.sqrt(2))
    assert lstm["test_range"] == [0.30, 0.34]
    # The mean curve of LSTM is at its best, 0.4, in epoch 2; that of MomentumLSTM in epoch 1.
    reached = [row["epochs_to_lstm_best"] for row in (lstm, fast, slow, alike)]
    assert reached == [2, 1, None, None]
    assert (lstm["seconds_to_lstm_best"], fast["seconds_to_lstm_best"]) == (4.0, 4.0)
    assert (broken["test"], broken["diverged"]) == (None, 1)


def test_of_errors_the_smallest_is_the_best():
    def of_error(layer, seed, validation):
        best = int(np.argmin(validation))
        told = {"best_epoch": best + 1, "test": {"loss": 1.0, "accuracy": validation[best]}}
        return {**run(layer, seed, validation, validation), **told}

    runs = [of_error("LSTM", seed, [0.5, 0.4 + seed / 50, 0.45]) for seed in (0, 1)]
    runs += [of_error("MomentumLSTM", seed, [0.6, 0.3, 0.2 + seed / 50]) for seed in (0, 1)]
    constant = {"loss": 2.3, "accuracy": 0.9}
    found = results(runs, larger_is_better=False, constant=constant)
    lstm, fast = found["summary"]
    assert (lstm["epochs_to_lstm_best"], fast["epochs_to_lstm_best"]) == (2, 2)
    claim = claims.Claim("One is better", ("MomentumLSTM",), ("LSTM",))
    assert claims.verdicts(found, [claim]) == ["- One is better. **It holds**, in all cases."]


def verdicts(found):
    return claims.verdicts(found, claims_on(found["settings"]["task"]))


def test_claims_are_seen_only_beyond_the_spread():
    first, *rest = verdicts(results([*LSTM, *FAST, *SLOW, *ALIKE]))
    assert first.startswith("- Nguyen et al. (2020), Tables 1 and 11")
    assert "**It holds in part**: yes for MomentumLSTM" in first
    assert "within the spread of seeds: AdamLSTM" in first
    assert "the other way round: SRLSTM" in first
    assert not rest
    (seen, *_) = verdicts(results([*LSTM, *FAST]))
    end = "**It holds so far**: yes for MomentumLSTM; not run: AdamLSTM, RMSPropLSTM, SRLSTM."
    assert seen.endswith(end)
    claim = claims.Claim("One is better", ("MomentumLSTM",), ("LSTM",))
    (seen, *_) = claims.verdicts(results([*LSTM, *FAST]), [claim])
    assert seen == "- One is better. **It holds**, in all cases."
    lost = {**FAST[0], "seed": 2, "test": None, "diverged": True, "curve": []}
    (seen, *_) = claims.verdicts(results([*LSTM, *FAST, lost]), [claim])
    assert "**Open**: a seed diverged before it had a score: MomentumLSTM." in seen
    (against, *_) = verdicts(results([*LSTM, *SLOW]))
    assert "**It does not hold here**: the other way round: SRLSTM." in against


def test_layers_at_chance_are_told():
    # Test losses at the best epoch: 1 and 2/3; accuracies 0.32 and 0.75.
    chance = {"loss": 1.04, "accuracy": 0.32}
    lines = verdicts(results([*LSTM, *FAST], constant=chance))
    assert lines[-1].startswith("- No better than a constant output (by more than 5%;")
    assert lines[-1].endswith("its test loss 1.04, accuracy 0.320): LSTM.")
    chance = {"loss": 0.6, "accuracy": 0.5}
    (first, *_) = verdicts(results([*LSTM, *SLOW], constant=chance))
    # Where neither learns, nothing is compared: that decides no claim.
    assert "**Open**: both no better than a constant output: SRLSTM." in first
    *_, both = verdicts(results([*LSTM, *SLOW], constant=chance))
    assert both.endswith("LSTM, SRLSTM. Do not rank these layers.")
    assert not any("constant" in line for line in verdicts(results([*LSTM, *FAST])))


@pytest.mark.parametrize(
    ("constant", "expected"),
    [
        ({"loss": 1.04, "accuracy": 0.32}, True),
        ({"loss": 1.06, "accuracy": 0.32}, False),  # the loss is 6 % below
        ({"loss": 1.04, "accuracy": 0.30}, False),  # the accuracy is 7 % above
    ],
)
def test_at_chance_is_what_neither_loss_nor_score_has_left(constant, expected):
    assert claims.at_chance(results(LSTM, constant=constant)) == ["LSTM"] * expected


def test_of_one_seed_nothing_is_said_to_be_seen():
    (first, *_) = verdicts(results([LSTM[0], FAST[0]]))
    assert "**Open**: one seed only, so the spread is unknown: MomentumLSTM." in first
    (first, *_) = verdicts(results([*LSTM, *FAST, SLOW[0]]))
    assert "**It holds in part**: yes for MomentumLSTM; one seed" in first
    (first, *_) = verdicts(results([*LSTM, *ALIKE, SLOW[0]]))
    assert "**It does not hold here**: within the spread of seeds: AdamLSTM; one seed" in first


def test_runs_that_go_on_are_told_so():
    short = [{**one, "curve": one["curve"][:1], "best_epoch": 1} for one in SLOW]
    begun = results([*LSTM, *short, *ALIKE[:1]])
    (lstm, slow, alike) = report.training(begun).splitlines()[-3:]
    assert ("| 4 | 3 |" in lstm, "| 4 | 1 of 3 |" in slow, "| 4 | 3 |" in alike) == (True,) * 3
    slow = report.training(results([*LSTM, SLOW[0], short[1]])).splitlines()[-1]
    assert "| 4 | 1 to 3 of 3 |" in slow
    # Till its second seed has come as far, a layer is compared by the first.
    text = report.scores(results([*LSTM, SLOW[0], short[1]]))
    assert "| 0.200 | - |" in text and "others of their layer: 1." in text
    assert claims.at_chance(results([*LSTM, SLOW[0], short[1]])) == []
    (told, *_) = verdicts(results([*LSTM, *short]))
    assert "**It does not hold here so far**: the other way" in told
    assert told.endswith("not trained to their end: SRLSTM.")
    assert "| not yet |" in report.scores(results([*LSTM, *short]))
    # A run that diverged is at its end.
    assert "| 4 | 3 |" in report.training(results([*LSTM, *BROKEN])).splitlines()[-1]


def test_report_sets_the_papers_numbers_beside_ours(tmp_path):
    (tmp_path / "notes.md").write_text("A note by hand.")
    text = report.write(results(ALL), tmp_path, "MNIST in small", claims=claims_on("mnist"))
    scores = text.partition("## Which claims hold?")[0].splitlines()
    rows = {line.split(" | ")[0]: line for line in scores if line.startswith("| ")}
    assert "0.9904 ± 0.0004 (128 units)" in rows["| MomentumLSTM"]
    assert "0.320 ± 0.028 | 0.300 to 0.340 | 2 (4 s)" in rows["| LSTM"]
    assert "0.8516 (192 units)" in rows["| LSTM"]
    assert "not reached" in rows["| SRLSTM"]
    assert "diverged" in rows["| NAGLSTM"] and rows["| NAGLSTM"].count("| - |") > 0
    assert "The best constant output scores 0.05 on test." in text and "A note by hand." in text
    assert (tmp_path / "report.md").read_text() == text
    for name in ("losses.png", "score.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG") and f"({name})" in text


def test_curves_are_means_over_seeds():
    figure = plots.score_figure(results([*LSTM, *FAST]), "title")
    validation, test = figure.axes
    drawn = {line.get_label(): line.get_ydata() for line in validation.lines}
    np.testing.assert_allclose(drawn["LSTM"], [0.2, 0.4, 0.3])
    tests = {line.get_label(): line.get_ydata() for line in test.lines}
    np.testing.assert_allclose(tests["MomentumLSTM"], [0.5, 0.5, 0.75])
    losses, tested = plots.losses_figure(results([*LSTM, *FAST]), "title").axes
    np.testing.assert_allclose(losses.lines[0].get_ydata(), [1, 1 / 2, 1 / 3])
    losses.set_ylim(0, 7)
    assert tested.get_ylim() == (0, 7)  # one scale for both


def test_the_best_loss_is_the_smallest_whatever_the_score():
    told = results([run("LSTM", 0, [0.1], [0.2]), run("GRU", 0, [0.1, 0.1], [0.1, 0.1])])
    assert list(plots.last_values(told, "loss")) == ["GRU", "LSTM"]
    assert list(plots.last_values(told, "accuracy")) == ["LSTM", "GRU"]


def test_few_layers_stand_out_and_the_title_is_the_finding():
    names = [f"arm{n}" for n in range(7)]
    runs = [run(name, 0, [0.1], [0.1 * n]) for n, name in enumerate(names)]
    found = results([*runs, run("LSTM", 0, [0.1], [0.05])])
    ends = plots.last_values(found, "accuracy")
    assert plots.shown(list(ends)) == ["arm6", "arm5", "arm4", "arm3", "LSTM"]
    assert plots.finding(found, "accuracy", ends) == (
        "arm6 ends at a test accuracy of 0.600, LSTM at 0.05"
    )
    assert "the last, arm0, at 0" in plots.finding(
        results(runs), "accuracy", plots.last_values(results(runs), "accuracy")
    )
    figure = plots.score_figure(found, "title")
    _, test = figure.axes
    colors = {line.get_label(): line.get_color() for line in test.lines}
    assert colors["arm0"] == colors["arm2"] == "0.8" and colors["LSTM"] == "black"
    assert len({colors[name] for name in ("arm6", "arm5", "arm4", "arm3")}) == 4
    told = {text.get_text() for text in test.texts}
    assert told == {"arm6", "arm5", "arm4", "arm3", "LSTM", "3 others", "constant output"}
    heights = sorted(text.get_position()[1] for text in test.texts)
    assert min(np.diff(heights)) > 0.07  # no name covers another


def test_a_picture_of_what_did_not_learn_says_so():
    """Neither loss nor score is better than a constant output's."""
    lost = results([run("GRU", 0, [0.1], [0.1])], constant={"accuracy": 0.1, "loss": 2.0})
    title = plots.score_figure(lost, "title").get_suptitle()
    assert title.startswith("No layer is better than a constant output\n")
    assert "one seed" in title
    more = plots.described(results([*LSTM, run("GRU", 0, [0.1], [0.1])]), "title")
    assert more == "title: mean and range of 1 to 2 seeds"
    hidden = [*LSTM, run("LSTM", 2, [0.1], [0.1], diverged=True)]
    told = "title: mean and range of 2 seeds, without 1 that diverged"
    assert plots.described(results(hidden), "title") == told


def test_heat_map_has_step_size_across_and_momentum_up():
    """As the heat map of a search."""
    budget = dataclasses.replace(budgets.SMALL["digits"], layer_name="MomentumLSTM")
    setups = ablation.ablation_setups(budget, [0.0, 0.9], [0.1, 1.0, 2.0])
    runs = []
    for number, (name, setup) in enumerate(setups.items()):
        (layer,) = setup.new_layers()
        assert name == f"MomentumLSTM {layer.momentum:g} {layer.step_size:g}"
        runs.append(run(name, 0, [0.1 * number], [0.1 * number]))
    # A comparison in the same folder, and an ablation of another layer.
    others = [run(name, 0, [0.9], [0.9]) for name in ("AdamLSTM", "AdamLSTM 0.9 0.1")]
    found = results([*others, *runs])
    assert reports.sections(results(others)) == (ablation.heat_maps,)
    assert reports.sections(results([others[0], run("SimpleRNN 0.9N", 0, [1], [1])])) == ()
    text, figures = ablation.heat_maps(found)
    (axes, _), (other, _) = (
        figures[f"heat_map_{n}LSTM.png"].axes for n in ("Momentum", "Adam")
    )
    assert other.images[0].get_array().tolist() == [[0.9]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step size", "momentum")
    assert [t.get_text() for t in axes.get_xticklabels()] == ["0.1", "1", "2"]
    assert [t.get_text() for t in axes.get_yticklabels()] == ["0", "0.9"]
    cells = np.asarray(axes.images[0].get_array())
    np.testing.assert_allclose(cells, [[0, 0.2, 0.4], [0.1, 0.3, 0.5]])
    assert ": MomentumLSTM 0.9 2, accuracy 0.500." in text
    told = "MomentumLSTM on mnist:\nbest with momentum 0.9 and step size 2"
    assert axes.get_title() == told
    for one in runs:
        one |= {"curve": [], "test": None, "best_epoch": None, "diverged": True}
    text, figures = ablation.heat_maps(results(runs))
    assert "All diverged." in text
    axes = figures["heat_map_MomentumLSTM.png"].axes[0]
    assert {t.get_text() for t in axes.texts} == {"diverged"}
    assert "every pair diverged" in axes.get_title()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("pmnist", "RMSPropLSTM"), [(0.9538, 0.0019, 256), (0.9432, 0.0043, 128)]),
        (("mnist", "LSTM"), [(0.987, None, 128), (0.989, None, 256), (0.8516, None, 192)]),
        (("adding", "MCRM", "mcrm"), [(4.0e-6, None, 85)]),
        (("adding", "LSTM", "momentumrnn"), [(0.162, None, 128)]),
        (("words", "MomentumLSTM"), [(58.62, 0.22, (1150, 1150, 400))]),
        (("adding", "SimpleRNN", "momentumrnn"), []),
    ],
)
def test_published_numbers_are_the_printed_ones(arguments, expected):
    found = published(*arguments)
    assert [(p.value, p.spread, p.units) for p in found] == expected
    assert all("Table" in p.source or "Section" in p.source for p in found)


def test_a_row_of_one_momentum_stands_beside_the_papers():
    names = ["SimpleRNN 0.995N", "SimpleRNN 0.98M at 0.001", "SimpleRNN 0", "SimpleRNN"]
    told = results([run(name, 0, [0.1], [0.1]) for name in names], task="memory20")
    for one in told["runs"]:
        one["setup"]["class"] = "SimpleRNN"
    values = [[p.value for p in report.of_the_papers(told, name)] for name in names]
    assert values[:3] == [[0.00005], [0.0017], [5.37]] and len(values[3]) == 8


def test_the_report_says_where_seconds_were_measured():
    told = results(LSTM)
    assert "Seconds:" not in report.training(told)
    told["runs"][0] |= {"processors": {"Fast 9000, 2 cores": 3}}
    told["runs"][0]["curve"][0] = {**told["runs"][0]["curve"][0], "load": 0.25}
    line = report.training(told).splitlines()[-1]
    assert "Seconds: on Fast 9000, 2 cores (3 epochs), load average 0.2 to 0.2." in line


def test_arguments_of_a_layer_are_told_in_words():
    values = {
        "units": {"a": 1},
        "kernel_initializer": {"class_name": "a>Echo", "config": {"fan_in": 15}},
        "momentum": {"class": "Warm", "momentum": 0.9, "steps": 3},
        "rule": {
            "class": "Scaled",
            "velocity": {"module": "a", "class_name": "Learned", "config": {"per": "unit"}},
        },
        "class": "SGD",
    }
    assert report.listed(values) == (
        "units {'a': 1}, kernel_initializer Echo (fan_in 15), "
        "momentum Warm (momentum 0.9, steps 3), "
        "rule Scaled (velocity Learned (per unit)), SGD"
    )
    assert report.listed({}) == "defaults"
