"""The example `deep_autoencoders.py`: batches, resuming, choosing, and its report."""

import json
import os
import shutil

import needs
import numpy as np
import pytest
from speed import SLOW_ON_TENSORFLOW, slow_if_compiled

pytest.importorskip("matplotlib", reason="the examples need it")
pytest.importorskip("scipy", reason="the examples need it")

from keras_momentum_rnn import requirements
from papers import deep_autoencoders
from papers.autoencoder_report import (
    errors_table,
    figures_of,
    finish_table,
    order_of,
    report_of,
)
from papers.experiments import runner

pytestmark = [*SLOW_ON_TENSORFLOW, pytest.mark.any_backend]

TINY = [
    "--images=50",
    "--batch-size=20",
    "--updates=6",
    "--every=3",
    "--finish=2",
    "--period=1",
]
TINY += ["--momenta", "0.9", "--learning-rates", "0.01"]


@pytest.fixture
def example(monkeypatch):
    monkeypatch.setitem(deep_autoencoders.WIDTHS, "curves", (784, 6, 2))
    monkeypatch.setitem(deep_autoencoders.WIDTHS, "faces", (625, 6, 2))
    return deep_autoencoders


def run(example, output, *arguments):
    example.main([*TINY, *arguments, f"--output={output}"])
    return json.loads((output / "results.json").read_text())


@slow_if_compiled
@pytest.mark.each_backend
def test_results_and_an_interruption(example, tmp_path, monkeypatch):
    whole = run(example, tmp_path / "whole", "--methods", "NAG")
    assert set(whole) == {"commands", "settings", "runs"}
    (nag,) = whole["runs"]
    assert [point[0] for point in nag["curve"]] == [0, 3, 4, 6]  # 4: where the finish begins
    assert nag["curve"][2][1] == pytest.approx(nag["before"])  # 50 images: all of them
    assert nag["curve"][3][1] == pytest.approx(nag["error"])
    assert nag["error"] < nag["before"] < nag["curve"][0][1]
    assert (tmp_path / "whole" / "curves.png").read_bytes().startswith(b"\x89PNG")

    original = runner.write_state

    def interrupted(path, model, run, *rest):
        original(path, model, run, *rest)
        if run["updates"] == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(runner, "write_state", interrupted)
        run(example, tmp_path / "killed", "--methods", "NAG")
    again = run(example, tmp_path / "killed", "--methods", "NAG")
    assert not list(tmp_path.rglob("state.npz"))  # of runs that ended
    np.testing.assert_allclose(again["runs"][0]["curve"], nag["curve"], rtol=1e-5)
    assert again["runs"][0]["error"] == pytest.approx(nag["error"], rel=1e-5)


@pytest.mark.slow
def test_runs_of_several_calls_stand_in_one_report(example, tmp_path):
    first = run(example, tmp_path, "--methods", "SGD")
    both = run(example, tmp_path, "--methods", "NAG", "--scales", "1", "2")
    assert both["runs"][:1] == first["runs"]
    names = [(r["method"], r["scale"], r["updates"]) for r in both["runs"]]
    assert names == [("SGD", 1, 6), ("NAG", 1, 6), ("NAG", 2, 6)]
    assert len(both["commands"]) == 2
    assert (tmp_path / "scales.png").exists()
    with pytest.raises(ValueError, match=r"other settings.*\n  period: 1 there, 2 now"):
        run(example, tmp_path, "--period=2")


@slow_if_compiled
def test_runs_of_a_report_stay_where_its_folder_of_states_is_gone(example, tmp_path):
    first = run(example, tmp_path, "--methods", "SGD")
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    with pytest.raises(ValueError, match=r"other settings.*\n  period: 1 there, 2 now"):
        run(example, tmp_path, "--methods", "NAG", "--period=2")
    both = run(example, tmp_path, "--methods", "SGD", "NAG")
    assert both["runs"][0] == first["runs"][0]  # not trained again: its seconds are the same
    assert [r["method"] for r in both["runs"]] == ["SGD", "NAG"]


def test_commands_show_the_last_part_of_paths_alone(example, tmp_path):
    argv = ["--data-dir", str(tmp_path), f"--data-dir={tmp_path}", "--dataset=mnist"]
    shown = example.command(argv, example.parse(argv))
    name = tmp_path.name
    assert shown.endswith(f".py --data-dir {name} --data-dir={name} --dataset=mnist")


def test_results_that_cannot_be_read_are_kept(example, tmp_path):
    path = tmp_path / "results.json"
    path.write_text("<<<<<<< ours")
    with pytest.raises(ValueError, match="is not valid JSON; repair or remove it"):
        run(example, tmp_path)
    assert path.read_text() == "<<<<<<< ours"


@slow_if_compiled
def test_a_run_that_diverges_ends_there_and_is_not_chosen(example, tmp_path):
    data = tmp_path / "faces.npy"
    np.save(data, np.random.default_rng(0).normal(size=(50, 625)))
    arguments = ["--dataset=faces", f"--data={data}", "--learning-rates", "1e30", "0.0001"]
    runs = run(example, tmp_path / "out", *arguments, "--methods", "SGD")["runs"]
    assert [(r["diverged"], r["updates"], r["momentum"]) for r in runs] == [
        (True, 3, 0),
        (False, 6, 0),
    ]
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| SGD | 0 | 0.0001 | 1e+30 |" in report


def test_a_file_with_fewer_faces_than_asked_for_is_refused(example, tmp_path):
    data, output = tmp_path / "faces.npy", tmp_path / "out"
    np.save(data, np.zeros((30, 625)))
    message = r"faces.npy must hold as many images as --images names, 50. Received: 30 images"
    with pytest.raises(ValueError, match=message):
        run(example, output, "--dataset=faces", f"--data={data}")
    assert not output.exists()  # so that the next call may name other settings


def test_batches_of_an_epoch_have_each_image_once(example):
    images = np.arange(10.0)[:, None]
    passes = example.Updates(images, 3, seed=5, first=0, last=9)
    batches = [passes[i][0][:, 0] for i in range(len(passes))]
    for epoch in range(3):
        seen = np.concatenate(batches[3 * epoch : 3 * epoch + 3])
        assert len(np.unique(seen)) == 9
    assert not np.array_equal(batches[:3], batches[3:6])
    later = example.Updates(images, 3, seed=5, first=4, last=6)
    np.testing.assert_array_equal([later[i][0][:, 0] for i in range(2)], batches[4:6])


def test_momentum_of_each_method(example):
    options = example.parse(["--updates=3000", "--period=10", "--finish=500"])
    runs = {r["method"]: r for r in example.combinations(options) if r["momentum"] in (0, 0.99)}
    for method, steps in {"SGD": [0, 0], "CM": [0.99, 0.9], "NAG": [0.99, 0.9]}.items():
        optimizer = example.new_model(options, runs[method]).optimizer
        assert optimizer.nesterov == (method == "NAG")
        for step, momentum in zip([2499, 2500], steps):
            optimizer.iterations.assign(step)
            assert float(optimizer.momentum) == pytest.approx(momentum)


@pytest.mark.each_backend
@needs.prepared_data
def test_mnist_is_read_from_data_dir(example):
    data_dir = os.environ["KERAS_MOMENTUM_RNN_TFDS"]
    images = example.load(
        example.parse(["--dataset=mnist", f"--data-dir={data_dir}", "--images=250"])
    )
    assert images.shape == (250, 784) and images.dtype == "float32"
    assert images.min() == 0 and images.max() == 1


def test_mnist_says_what_is_missing_to_read_it(example, monkeypatch):
    monkeypatch.setattr(requirements, "found", lambda module: module != "tensorflow_datasets")
    with pytest.raises(ImportError, match=r"the data set mnist needs tensorflow-datasets."):
        example.load(example.parse(["--dataset=mnist"]))


def test_faces_are_read_from_the_published_file(example, tmp_path):
    faces = np.random.default_rng(1).normal(size=(7, 625)).astype("float32")
    savemat = pytest.importorskip("scipy.io", reason="it writes the file").savemat
    savemat(tmp_path / "faces.mat", {"newfaces_single": faces.T, "count": 7})
    np.testing.assert_array_equal(example.read_faces(tmp_path / "faces.mat"), faces)
    np.save(tmp_path / "other.npy", faces[:, :600])
    with pytest.raises(SystemExit, match="one array of images with 625 pixels each"):
        example.read_faces(tmp_path / "other.npy")


def record(method, momentum, rate, error, scale=1.0, before=None):
    return {
        "method": method,
        "momentum": momentum,
        "learning_rate": rate,
        "scale": scale,
        "error": error,
        "diverged": error is None,
        "before": before,
        "curve": [[0, 50.0], [10, 1.0]],
    }


def test_report_chooses_the_best_rate_and_tells_the_order(example):
    runs = [
        record("SGD", 0, 0.01, 0.7),
        record("SGD", 0, 0.05, None),
        record("CM", 0.9, 0.01, 0.3),
        record("NAG", 0.9, 0.01, 0.25, before=0.5),
        record("NAG", 0.9, 0.001, 0.4, before=0.6),
        record("NAG", 0.99, 0.001, 0.2, before=0.9),
        record("NAG", 0.99, 0.001, 16.0, scale=0.5),
        record("NAG", 0.9, 0.001, 0.1, scale=0.5),
        record("NAG", 0.9, 0.001, None, scale=4.0),
    ]
    settings = example.shared_settings(example.parse([]))
    results = {"commands": ["python it.py"], "runs": runs, "settings": settings}
    report = report_of(results, "A note.")
    assert "| NAG | 0.9 | 0.01 | 0.001 | 0.25 | 0.16 |" in report
    assert "| NAG | 0.99 | 0.001 | - | 0.2 | 0.096 |" in report
    assert "| SGD | 0 | 0.01 | 0.05 | 0.7 | 0.48 |" in report
    assert "- NAG better than CM (0.074 against 0.1 in the paper): **yes**, 0.2 aga" in report
    assert (
        "- CM better than SGD (0.1 against 0.48 in the paper): **yes**, 0.3 against" in report
    )
    assert "python it.py" in report and "A note." in report
    assert "| NAG, 0.99 | here |" in report
    assert "| before | 0.9 | 0.096 |" in report and "| after | 0.2 | 0.074 |" in report
    # Those of one momentum and rate that has most scales, and not the best at each.
    assert "NAG 0.9, learning rate 0.001:" in report
    assert "| 0.5 | 0.1 | 16 |\n| 1 | 0.4 | 0.074 |\n| 4 | - | 0.35 |" in report
    # By equation 5 with a period of 10, at the last of 4,000 updates before the finish.
    assert "no more than 0.99875." in report
    figures = figures_of(results)
    assert len(figures["curves.png"].axes) == 2
    ours, paper = figures["scales.png"].axes[0].lines
    assert ours.get_xydata().tolist() == [[0.5, 0.1], [1, 0.4]]
    assert paper.get_xydata().tolist()[2] == [1, 0.074]


def test_no_finish_is_told_where_it_lowers_nothing(example):
    settings = example.shared_settings(example.parse([]))
    runs = [
        record("NAG", 0.9, 0.01, 0.2, before=0.5),
        record("NAG", 0.8, 0.01, 0.3, before=0.5),
    ]
    assert finish_table(runs, settings) == ""
    above = record("NAG", 0.99, 0.01, 0.4, before=0.6)  # not the best, but one it lowers
    assert "| before | 0.6 | 0.096 |\n| after | 0.4 | 0.074 |" in finish_table(
        [*runs, above], settings
    )


def test_default_schedules_differ_and_come_to_their_largest_momentum(example):
    """Each row of Table 1 is a run of its own, by the optimizer and not by its name."""
    for arguments, named in (([], 0.99875), (["--updates=200000"], 0.999)):
        options = example.parse(arguments)
        largest = {}
        for run in example.combinations(options):
            if run["learning_rate"] == 0.01 and run["method"] == "NAG":
                optimizer = example.new_model(options, run).optimizer
                optimizer.iterations.assign(options.updates - options.finish - 1)
                largest[run["momentum"]] = float(optimizer.momentum)
        assert largest == pytest.approx({0.9: 0.9, 0.99: 0.99, 0.995: 0.995, 0.999: named})
    assert options.period == 250  # as in the paper, where there is time for it


def test_table_1_tells_a_momentum_that_is_not_reached(example):
    settings = example.shared_settings(example.parse(["--period=250", "--momenta", "0.99"]))
    text = errors_table([record("NAG", m, 0.01, 0.2) for m in (0.9, 0.99)], settings)
    assert "| NAG | 0.9 | 0.01 |" in text
    assert "| NAG | 0.99, 0.96875 here | 0.01 |" in text


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ({"SGD": 0.7, "CM": 0.7}, "**no**, 0.7 against 0.7 differ by less than 5%"),
        ({"SGD": 0.7, "CM": 0.68}, "**no**, 0.68 against 0.7 differ by less than 5%"),
        ({"SGD": 0.7, "CM": 0.8}, "**the other way round**, 0.8 against 0.7"),
        ({"SGD": 0.7, "CM": None}, "**the other way round**, inf against 0.7"),
        ({"SGD": None, "CM": 0.8}, "**yes**, 0.8 against inf"),
    ],
)
def test_order_is_told_as_it_is(example, errors, words):
    rows = [record(name, 0.9, 0.01, error) for name, error in errors.items()]
    text = order_of(rows, example.shared_settings(example.parse([])))
    (line,) = [line for line in text.splitlines() if line.startswith("-")]
    assert line == f"- CM better than SGD (0.1 against 0.48 in the paper): {words}."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--momenta", "0.9", "1"], "--momenta: must lie in (0, 1)"),
        (["--updates=1000"], "--finish: must be less than --updates, 1000. Received: 1000"),
        (["--dataset=faces"], "--data: is for faces, which need it. Received: None"),
        (["--data=x.npy"], "--data: is for faces, which need it. Received: x.npy"),
        (["--dataset=faces", "--data=x.npy"], "--data: must be an existing file"),
        (
            ["--dataset=faces", f"--data={__file__}", "--loss=cross-entropy"],
            "--loss: must be squared",
        ),
        (
            ["--period=250"],
            "--period: must be so short that momentum comes to 0.995 before the",
        ),
        (["--period=250"], "it comes to 0.96875. Received: 250"),
        (["--images=100"], "--images: must lie in [200, 20000]"),
        (["--images=20001"], "--images: must lie in [200, 20000]"),
    ],
)
def test_bad_arguments_are_refused(example, arguments, message, capsys):
    with pytest.raises(SystemExit):
        example.parse(arguments)
    assert message in capsys.readouterr().err
