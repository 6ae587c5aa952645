"""The example `pixel_digits.py`: its data, its results, and that nothing is lost by a kill."""

import importlib.util
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "pixel_digits.py"
EPOCHS = 4
TINY = ["--subset=96", "--units=4", "--seeds=1", "--batch-size=32", f"--epochs={EPOCHS}"]
ONE_LAYER = [*TINY, "--layers", "MomentumLSTM"]
TWO_LAYERS = [*TINY, "--layers", "LSTM", "MomentumLSTM"]


def load_script():
    spec = importlib.util.spec_from_file_location("pixel_digits", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = load_script()


def run(output, arguments=TWO_LAYERS):
    example.main([*arguments, f"--output={output}"])
    return json.loads((output / "results.json").read_text())


def assert_same_learning(runs, expected):
    """Two lists of runs are equal but for their times."""
    for got, want in zip(runs, expected, strict=True):
        assert {**got, "curve": None} == pytest.approx({**want, "curve": None})
        for got_epoch, want_epoch in zip(got["curve"], want["curve"], strict=True):
            want_epoch = {**want_epoch, "seconds": got_epoch["seconds"]}
            assert got_epoch == pytest.approx(want_epoch, abs=1e-5)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The output of an uninterrupted run."""
    output = tmp_path_factory.mktemp("finished")
    run(output)
    return output


@pytest.fixture
def output(finished, tmp_path):
    """A copy of that output."""
    return shutil.copytree(finished, tmp_path / "output")


# Data


@pytest.mark.parametrize("steps", [64, 784])
def test_permutation_is_fixed_and_a_permutation(steps):
    order = example.permutation(steps)
    np.testing.assert_array_equal(order, example.permutation(steps))
    np.testing.assert_array_equal(np.sort(order), np.arange(steps))
    assert not np.array_equal(order, np.arange(steps))


def test_digits_are_split_scaled_and_permuted_alike():
    sets = example.load(example.parse(["--subset=600"]))
    permuted = example.load(example.parse(["--subset=600", "--permute"]))
    assert [len(labels) for _, labels in sets] == [500, 100, 360]
    for (images, labels), (permuted_images, permuted_labels) in zip(sets, permuted):
        assert images.shape == (len(labels), 64, 1) and images.dtype == "float32"
        assert images.min() == 0 and images.max() == 1
        np.testing.assert_array_equal(permuted_images, images[:, example.permutation(64)])
        np.testing.assert_array_equal(permuted_labels, labels)


def test_no_image_is_in_two_sets():
    sets = [images.reshape(len(images), -1) for images, _ in example.load(example.parse([]))]
    assert sum(map(len, sets)) == 1797
    assert len(np.unique(np.concatenate(sets), axis=0)) == 1797


@pytest.mark.skipif(
    "KERAS_MOMENTUM_RNN_TFDS" not in os.environ,
    reason="KERAS_MOMENTUM_RNN_TFDS names no directory with a prepared mnist",
)
def test_mnist_is_read_from_data_dir():
    data_dir = os.environ["KERAS_MOMENTUM_RNN_TFDS"]
    options = ["--dataset=mnist", f"--data-dir={data_dir}", "--subset=60"]
    train, validation, test = example.load(example.parse(options))
    assert [len(labels) for _, labels in (train, validation, test)] == [50, 10, 10000]
    images, labels = test
    assert images.shape == (10000, 784, 1) and images.min() == 0 and images.max() == 1
    assert set(labels) == set(range(10))


# Results


def test_results_hold_what_the_docstring_says(finished):
    results = json.loads((finished / "results.json").read_text())
    assert set(results) == {"command", "settings", "summary", "best", "runs"}
    assert results["command"].startswith("python examples/pixel_digits.py --subset=96")
    assert results["settings"]["backend"] == keras.config.backend()
    assert results["settings"]["units"] == 4 and not results["settings"]["permute"]
    assert [(r["layer"], r["seed"]) for r in results["runs"]] == [
        ("LSTM", 0),
        ("MomentumLSTM", 0),
    ]
    for record, row in zip(results["runs"], results["summary"], strict=True):
        assert set(record) == {"layer", "seed", "parameters", "test_accuracy", "curve"}
        names = {"loss", "accuracy", "validation_accuracy", "seconds"}
        assert [set(epoch) for epoch in record["curve"]] == [names] * EPOCHS
        best = max(epoch["validation_accuracy"] for epoch in record["curve"])
        assert row["layer"] == record["layer"]
        assert row["parameters"] == record["parameters"] == 4 * 4 * (1 + 4 + 1) + 50
        assert row["test_accuracy"] == pytest.approx(record["test_accuracy"])
        assert row["test_accuracy_range"] == [record["test_accuracy"]] * 2
        assert row["best_validation_accuracy"] == pytest.approx(best, abs=1e-6)
        assert row["seconds_per_epoch"] > 0
    assert results["best"]["layer"] in ("LSTM", "MomentumLSTM")
    assert (finished / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert not list(finished.rglob("unfinished-*"))


def test_summary_is_of_the_mean_over_seeds():
    def record(layer, seed, accuracies, test):
        curve = [{"validation_accuracy": a, "seconds": 2.0} for a in accuracies]
        return {
            "layer": layer,
            "seed": seed,
            "parameters": 7,
            "test_accuracy": test,
            "curve": curve,
        }

    lstm = [record("LSTM", 0, [0.2, 0.5, 0.3], 0.3), record("LSTM", 1, [0.2, 0.3, 0.3], 0.5)]
    fast = [record("GRU", 0, [0.5, 0.5, 0.5], 0.6), record("GRU", 1, [0.3, 0.5, 0.9], 0.8)]
    slow = [record("SRLSTM", 0, [0.1, 0.1, 0.2], 0.2)]
    rows = example.summarise([*lstm, *fast, *slow])
    assert [row["epochs_to_lstm_best"] for row in rows] == [2, 1, None]
    assert [row["best_validation_accuracy"] for row in rows] == [0.4, 0.7, 0.2]
    assert [row["test_accuracy"] for row in rows] == pytest.approx([0.4, 0.7, 0.2])
    assert [row["test_accuracy_range"] for row in rows] == [[0.3, 0.5], [0.6, 0.8], [0.2, 0.2]]
    assert [row["epochs_to_lstm_best"] for row in example.summarise(fast)] == [None]


def test_best_model_gives_its_accuracy_in_a_fresh_process(output):
    results = run(output, ONE_LAYER)
    images, labels = example.load(example.parse(TINY))[2]
    np.savez(output / "test.npz", images=images, labels=labels)
    code = (
        "import keras, keras_momentum_rnn, numpy as np\n"
        "data = np.load('test.npz')\n"
        "model = keras.saving.load_model('best.keras')\n"
        "print(model.layers[0].__class__.__name__)\n"
        "print((model.predict(data['images'], verbose=0).argmax(-1) == data['labels']).mean())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=output, check=True, capture_output=True, text=True
    ).stdout.split()
    assert results["best"]["layer"] == printed[0] == "MomentumLSTM"
    assert float(printed[1]) == pytest.approx(results["best"]["test_accuracy"], abs=1e-6)


# Going on


def test_finished_runs_are_kept_and_layers_may_be_added(output):
    before = json.loads((output / "results.json").read_text())
    after = run(output, [*TWO_LAYERS, "RMSPropLSTM"])
    assert after["runs"][:2] == before["runs"]
    assert after["runs"][2]["layer"] == "RMSPropLSTM"
    assert len(after["runs"]) == len(after["summary"]) == 3


@pytest.mark.parametrize(
    ("owner", "name", "call", "file"),
    [(keras.Model, "save", 3, 1), (os, "replace", 1 + 3, 0)],
    ids=["checkpoint", "record"],
)
def test_interruption_while_a_file_is_written(
    owner, name, call, file, finished, tmp_path, monkeypatch
):
    """What is written after the third epoch is left half written."""
    original, calls = getattr(owner, name), itertools.count(1)

    def interrupted(*args):
        if next(calls) == call:
            Path(args[file]).write_text("half writ")
            raise KeyboardInterrupt
        return original(*args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(owner, name, interrupted)
        run(tmp_path, ONE_LAYER)
    record = json.loads((tmp_path / "runs" / "MomentumLSTM-0.json").read_text())
    assert len(record["curve"]) == 2
    expected = json.loads((finished / "results.json").read_text())
    assert_same_learning(run(tmp_path, ONE_LAYER)["runs"], expected["runs"][1:])


def test_a_killed_process_goes_on_where_it_was(finished, tmp_path):
    state = tmp_path / "runs"
    process = subprocess.Popen(
        [sys.executable, SCRIPT, *TWO_LAYERS, f"--output={tmp_path}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (state / "MomentumLSTM-0.json").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    first = (state / "LSTM-0.json").read_bytes()
    results = run(tmp_path)
    assert (state / "LSTM-0.json").read_bytes() == first
    assert results["runs"][0] == json.loads(first)
    expected = json.loads((finished / "results.json").read_text())
    assert_same_learning(results["runs"], expected["runs"])


def test_other_settings_are_refused(output):
    before = (output / "results.json").read_bytes()
    with pytest.raises(SystemExit) as error:
        run(output, [*TWO_LAYERS, "--units=5", "--permute"])
    message = str(error.value)
    assert str(output) in message
    assert "units: 4 there, 5 now" in message and "permute: False there, True now" in message
    assert "epochs" not in message
    assert (output / "results.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layers", "LSTM", "FooLSTM"], "--layers: invalid choice: 'FooLSTM'"),
        (["--layers", "RuleLSTM"], "--layers: invalid choice: 'RuleLSTM'"),
        (["--dataset=cifar"], "--dataset: invalid choice: 'cifar'"),
        (["--epochs=-1"], "--epochs: must be a positive int. Received: -1"),
        (["--seeds=0"], "--seeds: must be a positive int. Received: 0"),
        (["--units=2.5"], "--units: must be a positive int. Received: 2.5"),
        (["--learning-rate=nan"], "--learning-rate: must be a positive float. Received: nan"),
        (["--subset=5"], "--subset: must lie in [6, 1437] for digits. Received: 5"),
        (["--subset=1438"], "--subset: must lie in [6, 1437] for digits. Received: 1438"),
        (["--dataset=mnist", "--data-dir=no/such"], "must be an existing directory. Received"),
        (["--data-dir=."], "--data-dir: is for mnist alone. Received: ."),
        ([f"--output={SCRIPT}"], f"--output: must be a directory. Received: {SCRIPT}"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_bad_arguments_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as error:
        example.main(arguments)
    assert error.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["SimpleRNN", "GRU", "RMSPropLSTM"])
def test_layers_are_found_by_name(name):
    assert example.available_layers()[name].__name__ == name
