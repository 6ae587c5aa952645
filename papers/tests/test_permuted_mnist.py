"""The rows of Table 1 on permuted MNIST, and what their report says."""

import json
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import test_experiment_reports as made_up

from keras_momentum_rnn.atomic_files import locked
from papers import permuted_mnist, reports, tasks
from papers.experiments import comparison, report, results_file, training
from papers.experiments.comparison import completed
from papers.paper_claims import claims_on

PERMUTED = {
    "task": "pmnist",
    "budget": {
        "name": "Nguyen et al. (2020), Tables 1, 4 and 11",
        "updates in the paper": 70_350,
        "rows in the paper": ["LSTM", "AdamLSTM"],
        "seeds in the paper": 5,
    },
    "samples": {"train": 50_000, "validation": 10_000, "test": 10_000},
}


def run(layer, seed, validation, test, units=128):
    """A run as an older file has it: seconds alone, without processor and load."""
    found = made_up.run(layer, seed, validation, test)
    own = {"class": layer.partition("-")[0], "units": units, "batch_size": 128, "epochs": 150}
    return {**found, "setup": {**found["setup"], **own}}


@pytest.fixture
def results():
    """Two seeds of two rows and one of two more, the second seed an epoch behind."""
    runs = [
        run("LSTM", 0, [0.5, 0.82, 0.81, 0.8], [0.5, 0.79, 0.85, 0.7]),
        run("LSTM", 1, [0.5, 0.84, 0.83], [0.5, 0.83, 0.81]),
        run("AdamLSTM", 0, [0.8, 0.93, 0.92], [0.82, 0.93, 0.94]),
        run("AdamLSTM", 1, [0.8, 0.91, 0.92], [0.82, 0.89, 0.94]),
        run("LSTM-x2.5", 0, [0.2], [0.2]),
        run("MomentumDTRIV", 0, [0.3], [0.3], units=170),
    ]
    found = made_up.results(runs)
    return completed({**found, "settings": {**found["settings"], **PERMUTED}})


def rows_of(text):
    lines = text.partition("## How good, and how soon?")[2].splitlines()
    return {line.split(" | ")[0][2:]: line for line in lines if line.startswith("| ")}


def test_the_report_has_both_accuracies_and_how_soon(results):
    text, figures = permuted_mnist.how_good_how_soon(results)
    rows = rows_of(text)
    # An epoch has 391 updates. The seeds of LSTM are compared as far as both have come.
    assert rows["LSTM"] == (
        "| LSTM | 2, 3 | 0.810 ± 0.028 | 0.840 ± 0.014 | 0.9200 (128 units) "
        "| 2 (782) | not yet | not yet |"
    )
    assert rows["AdamLSTM"] == (
        "| AdamLSTM | 2, 3 | 0.935 ± 0.0071 | 0.940, each seed | 0.9375 ± 0.0025 (128 units) "
        "| 1 (391) | 2 (782) | 3 (1,173) |"
    )
    assert rows["LSTM-x2.5"].startswith("| LSTM-x2.5 | 1, 1 | 0.200 | 0.200 | - | not yet")
    (axes,) = figures["curves.png"].axes
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(drawn["AdamLSTM"], [0.82, 0.91, 0.94])
    names = {text.get_text() for text in axes.texts}
    assert names == {"LSTM", "AdamLSTM", "LSTM-x2.5", "MomentumDTRIV"}
    assert axes.get_title() == "AdamLSTM ends at a test accuracy of 0.940, LSTM at 0.830"


def test_a_title_says_where_its_two_rows_are_epochs_apart(results):
    runs = [
        run("LSTM", 0, [0.5, 0.6], [0.5, 0.6]),
        run("AdamLSTM", 0, [0.5, 0.5, 0.55], [0.5, 0.5, 0.55]),
    ]
    axes = permuted_mnist.curves_picture({**results, "runs": runs}).axes[0]
    assert axes.get_title() == (
        "LSTM ends at a test accuracy of 0.600 after 2 epochs, the next, AdamLSTM, at 0.550 "
        "after 3 epochs"
    )


def test_a_verdict_on_table_4_needs_both_of_its_rows(results):
    claims, rows = claims_on("pmnist"), {"DTRIV": 0.9, "MomentumDTRIV": 0.93}
    runs = [run(row, seed, [a], [a], 170) for row, a in rows.items() for seed in range(2)]
    text = report.seen(completed({**results, "runs": runs}), claims)
    assert "MomentumDTRIV classifies better than DTRIV. **It holds so far**" in text
    assert "Table 4" not in report.seen(results, claims)  # MomentumDTRIV alone


def test_all_rows_that_can_be_trained_are_told_apart(results):
    runs = [run(row, 0, [0.5], [0.5]) for row in permuted_mnist.ROWS]
    lines = permuted_mnist.curves_picture({**results, "runs": runs}).axes[0].lines
    looks = {(line.get_color(), line.get_linestyle()) for line in lines[: len(runs)]}
    assert len(looks) == len(runs)


@pytest.mark.parametrize("script", ["-m papers.learned_momentum", "examples/how_soon.py"])
def test_a_folder_of_another_command_is_refused(results, script, tmp_path):
    results["commands"] = [f"python {script} --output runs/reproduce"]
    (tmp_path / "results.json").write_text(json.dumps(results))
    with pytest.raises(SystemExit, match=f"holds results of another command: python {script}"):
        reports.main([str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"results.json"}


def test_a_report_is_written_again_from_its_results(results, tmp_path):
    results["commands"] = ["python -m papers.permuted_mnist"]
    older = {**results, "best": None}  # an entry that results had
    (tmp_path / "results.json").write_text(json.dumps(older))
    (tmp_path / "report.md").write_text("# The title\n\nAn older text.\n")
    reports.main([str(tmp_path)])
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# The title\n\nShare of the paper's budget that was run: 0.7%, ")
    assert len(rows_of(text)) >= 4 and "An older text" not in text
    # The paper's number of this size alone, and the verdict by the rule of all reports.
    assert "| 0.9375 ± 0.0025 (128 units) |" in text and "0.9505" not in text
    (control,) = [line for line in text.splitlines() if line.startswith("| LSTM-x2.5 | 128")]
    assert "units)" not in control  # the papers have no such row
    assert "**It holds so far**: yes for AdamLSTM; not run: MomentumLSTM" in text
    pictures = {"losses.png", "score.png", "curves.png"}
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"results.json", "report.md", "runs"} | pictures
    assert json.loads((tmp_path / "results.json").read_text()) == results


def test_a_report_waits_for_the_training_that_writes_a_run(results, tmp_path, monkeypatch):
    results["commands"] = ["python -m papers.permuted_mnist"]
    (tmp_path / "results.json").write_text(json.dumps(results))
    (tmp_path / "report.md").write_text("# The title\n")
    completed = reports.comparison.completed

    def meanwhile(content):
        lock = locked(tmp_path / "runs" / "lock", wait=False)
        with pytest.raises(ValueError, match="Another process"), lock:
            pass
        return completed(content)

    monkeypatch.setattr(reports.comparison, "completed", meanwhile)
    reports.main([str(tmp_path)])


def test_a_run_of_all_epochs_is_whole_with_fewer_updates_than_the_papers(results):
    """An epoch has 391 updates, the paper's 469."""
    whole = run("LSTM", 0, [0.5] * 150, [0.5] * 150)
    short = run("AdamLSTM", 0, [0.5] * 149, [0.5] * 149)
    text = report.share_of_paper({**results, "runs": [whole, short]})
    assert f"{391 * 299:,} of {70_350 * 10:,} updates" in text and "1 of 10 runs" in text


def test_only_a_row_that_trains_on_has_not_yet_reached_a_level(results):
    runs = [run("LSTM", 0, [0.91] * 150, [0.91] * 150), run("AdamLSTM", 0, [0.91], [0.91])]
    text, figures = permuted_mnist.how_good_how_soon({**results, "runs": runs})
    assert rows_of(text)["LSTM"].endswith("| 1 (391) | 1 (391) | not reached |")
    assert rows_of(text)["AdamLSTM"].endswith("| 1 (391) | 1 (391) | not yet |")
    # Where every row ends above 0.9, the picture shows what is near.
    assert figures["curves.png"].axes[0].get_ylim() == pytest.approx((0.8, 0.93))


@pytest.mark.parametrize(
    "name, values",
    [("AdamLSTM", [0.9375]), ("AdamLSTM 0.6 1", []), ("LSTM-x2.5", []), ("mine", [])],
)
def test_only_the_papers_rows_have_its_numbers(results, name, values):
    results = {**results, "runs": [run(name, 0, [0.5], [0.5])]}
    assert [p.value for p in report.of_the_papers(results, name)] == values


def test_a_run_that_diverged_at_once_is_told(results):
    broken = {**run("SRLSTM", 0, [0.1], [0.1]), "curve": [], "test": None, "diverged": True}
    results = completed({**results, "runs": [*results["runs"], broken]})
    text, _ = permuted_mnist.how_good_how_soon(results)
    assert rows_of(text)["SRLSTM"] == (
        "| SRLSTM | 1, 0 | diverged | diverged | 0.9365 ± 0.0056 (128 units) | not reached "
        "| not reached | not reached |"
    )
    assert "SRLSTM (1 of 1 runs)" in report.scores(results)


def test_rows_train_as_the_paper_says():
    for name, units in permuted_mnist.ROWS.items():
        setup = permuted_mnist.setup("pmnist", name, 150)
        assert (setup.units, setup.batch_size, setup.epochs) == (units, 128, 150)
        (layer,) = setup.new_layers()
        # What a constant input comes to, in the second at the momentum of the paper's row.
        gain = {"LSTM": 1.0, "LSTM-x2.5": pytest.approx(1 / (1 - 0.6))}.get(name)
        if gain is not None:
            assert type(layer).__name__ == "MomentumLSTM"
            assert (layer.momentum, layer.step_size) == (0.0, gain)


def test_a_report_names_the_deviations_of_its_own_task():
    images = SimpleNamespace(train=range(50_000), validation=range(10_000))
    ours = permuted_mnist.deviations(images, "pmnist")
    published = Path(permuted_mnist.__file__).with_name("results") / "permuted_mnist"
    settings = json.loads((published / "results.json").read_text())["settings"]
    assert ours == settings["budget"]["deviations from the paper"]
    in_order = permuted_mnist.deviations(images, "mnist")
    assert in_order == ours.removeprefix("one fixed order of the pixels, of this package; ")
    few = SimpleNamespace(train=range(250), validation=range(50))
    assert "last 50 training" in (text := permuted_mnist.deviations(few, "mnist"))
    assert "has 2 updates" in text


def test_a_run_goes_on_on_another_machine_where_that_is_said(tmp_path, monkeypatch):
    digits = tasks.load("digits", subset=60)
    monkeypatch.setattr(permuted_mnist.tasks, "load", lambda *_, **__: digits)
    command = ["--layers", "LSTM", "--epochs", "2", "--output", str(tmp_path)]
    whole, trained = training.train_epoch, []

    def first_epoch(*given):
        if trained:
            raise KeyboardInterrupt
        trained.append(whole(*given))
        return trained[0]

    with monkeypatch.context() as first:
        first.setattr(training, "train_epoch", first_epoch)
        with pytest.raises(SystemExit, match="Interrupted"):
            permuted_mnist.main(command)
    backend = keras.config.backend()
    elsewhere = {**results_file.surroundings(), "device": "cuda:0", backend: "9"}
    for module in (comparison, training):
        monkeypatch.setattr(module, "surroundings", lambda: elsewhere)
    with pytest.raises(SystemExit, match="cuda:0"):
        permuted_mnist.main(command)
    permuted_mnist.main([*command, "--moved"])
    found = json.loads((tmp_path / "results.json").read_text())
    ((_, one), (last, other)) = found["runs"][0]["processors"].items()
    assert one == other == 1 and last.endswith(f", {backend} 9")
    assert found["settings"]["device"] != "cuda:0"
