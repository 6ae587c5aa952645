"""Each file of examples/ runs, with small numbers, and says what it promises."""

import json
import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import keras
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
if not EXAMPLES.exists():
    pytest.skip("an installed package has no examples", allow_module_level=True)

BACKEND = keras.config.backend()

# Example, its options, what it needs beside the extra `examples`, and what it prints.
RUNS = [
    ("own_data", ["--epochs=1"], (), "1440 rows of ['hour', 'temperature', 'load']; 1 epochs"),
    (
        "which_layer",
        ["data.csv", "--layers", "LSTM", "MomentumRNN", "--seeds=1", "--epochs=1"],
        ("keras_tuner",),
        "a linear model: 100% of 6 test sequences right",
    ),
    ("streaming", ["--epochs=1", "--sounds=40"], (), "Step by step, the last answer is that"),
    ("characters", ["--updates=2", "--units=8", "--write=3"], (), "bits a character"),
]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs an example in an empty folder and returns what it printed."""
    monkeypatch.chdir(tmp_path)

    def ran(name, *options):
        monkeypatch.setattr(sys, "argv", [name, *options])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return ran


@pytest.fixture
def fits():
    """Return a list of all calls of `fit`."""
    real = keras.Model.fit
    with mock.patch.object(keras.Model, "fit", autospec=True, side_effect=real) as fit:
        yield fit.call_args_list


def table():
    """Return sequences of two classes that differ by their level, one row a step."""
    rng = np.random.default_rng(0)
    sequence = np.repeat(np.arange(24), 5)
    level = sequence % 2
    return pd.DataFrame(
        {
            "sequence": sequence,
            "label": np.where(level, "high", "low"),
            "a": 3.0 * level + rng.normal(size=len(sequence)) / 10,
            "b": rng.normal(size=len(sequence)),
        }
    )


@pytest.mark.parametrize(
    ("name", "options", "needed", "said"), RUNS, ids=[f"{n}-{len(o)}" for n, o, *_ in RUNS]
)
def test_it_runs(name, options, needed, said, run, tmp_path):
    if lacking := [module for module in needed if not find_spec(module)]:
        pytest.skip(f"{name}.py needs {', '.join(lacking)}")
    table().to_csv(tmp_path / "data.csv", index=False)
    assert said in run(name, *options)


def test_filled_values_tell_no_target(run, tmp_path):
    """Of noise of which a part is missing nothing can be told."""
    rng = np.random.default_rng(0)
    noise = pd.Series(rng.normal(size=2000), name="a").where(rng.random(2000) < 0.5)
    noise.to_csv(tmp_path / "data.csv", index=False, na_rep="nan")
    said = run("own_data", "data.csv", "--target=a", "--steps=4", "--epochs=1")
    assert float(said.split("a linear model")[1].split()[0]) > 0.9


@pytest.mark.parametrize("level", [0, 1e9])
def test_a_forecast_has_the_scale_of_the_training_part(level, run, fits, monkeypatch):
    """Of a ramp, beside a constant, an index and words; the forecast is the last value."""
    data = pd.DataFrame({"a": level + np.arange(40.0), "b": 1013.3, "words": "x"})
    data.to_csv("data.csv")
    monkeypatch.setattr(keras.Sequential, "predict", lambda self, x, **_: x[:, -1, 0])
    said = run("own_data", "data.csv", "--target=a", "--steps=3", "--epochs=1")
    deviation = np.arange(24).std()
    assert "Column 'words' has no" in said and "40 rows of ['a', 'b']" in said
    assert f"the value before   {deviation**-2:.4f}" in said
    assert f"Next a: {level + 39:.4g}" in said
    x, y = fits[0].kwargs["validation_data"]
    np.testing.assert_allclose(y[:, 0] * deviation + 11.5, np.arange(27, 32), atol=1e-5)
    assert abs(x[..., 1]).max() < 1e-9  # the constant
    (stop,) = fits[0].kwargs["callbacks"]
    assert stop.monitor == "val_loss" and stop.restore_best_weights
    said = run("own_data", "data.csv", "--target=b", "--steps=3", "--epochs=1")
    assert f"Next b: {1013.3 + 27.5 / deviation:.4g}" in said  # its own unit is left


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n1,inf\n", "column 'b' needs numbers below 1e30. Received: inf in line 3"),
        ("a,b\n1,2\nx,3\n", "column 'a' needs numbers .* Received: 'x' in line 3"),
        ("a,b\nx,2\ny,3\n", r"--target must be one of \['b'\]. Received: 'a', which"),
    ],
)
def test_own_data_refuses_in_one_sentence(content, message, run, tmp_path):
    (tmp_path / "sensor.csv").write_text(content)  # of yours: the example writes no other
    with pytest.raises(SystemExit, match=f"^sensor.csv: {message}"):
        run("own_data", "--target=a")


def test_a_text_may_lack_any_character(run, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("abc" * 220)
    said = run("characters", "text.txt", "--updates=1", "--units=2", "--write=3")
    assert f"all alike {np.log2(3):.2f}" in said
    path.write_text("ab" * 315 + "cd" * 35)
    said = run("characters", "text.txt", "--updates=30", "--units=8", "--write=3")
    # "c" and "d" are only in the part that is held out.
    bits, frequency = map(float, re.findall(r"\d+\.\d+", said.split("Held out")[1])[:2])
    assert bits > 2.5 and frequency == pytest.approx(np.log2(634), abs=0.01)
    path.write_text("abc" * 213)
    with pytest.raises(SystemExit, match="needs more than 640 characters; it has 639"):
        run("characters", "text.txt")


def test_all_examples_run_here():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {name for name, *_ in RUNS} | {"several_devices", "quick_look", "tune"}
    for name in names:
        assert "papers import" not in (EXAMPLES / f"{name}.py").read_text()


TRAINED = """
import runpy, sys, keras
compile = keras.Model.compile
def told(model, *options, **more):
    print(len(getattr(model.weights[0].value, "global_shards", "")), "shards")
    compile(model, *options, **more)
keras.Model.compile = told
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.skipif(BACKEND == "torch", reason="the example says that PyTorch has none")
def test_several_devices(tmp_path):
    """In a process of its own: devices are counted when a backend starts."""
    flags = "--xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-c", TRAINED, EXAMPLES / "several_devices.py", "--epochs=1"],
        env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    count = 2 if BACKEND == "jax" else 1
    assert f"{count} devices: loss 0." in done.stdout, done.stderr
    assert f"{2 if BACKEND == 'jax' else 0} shards" in done.stdout


def test_tune_tells_the_score_of_its_file(run):
    pytest.importorskip("keras_tuner", reason="the example searches")
    said = run("tune", "--layers", "LSTM", "MomentumRNN", "--trials=3", "--epochs=1")
    x, y = load_digits(return_X_y=True)
    x, y = train_test_split(x / 16, y, test_size=0.2, stratify=y, random_state=0)[1::2]
    scores = keras.models.load_model("runs/tune/best.keras").predict(x.reshape(-1, 8, 8))
    assert f"Correct on 360 test images: {np.mean(scores.argmax(-1) == y):.1%}" in said


def test_quick_look_resumes(run, fits, tmp_path):
    options = ["--epochs=2"]
    assert "The accelerated LSTM trains in " in run("quick_look", *options)
    results = tmp_path / "runs" / "quick_look" / "results.json"
    whole = json.loads(results.read_text())
    names = ["LSTM", "LSTM, accelerated", "RMSPropLSTM, scale-free"]
    assert [r["layer"] for r in whole] == names
    training = load_digits().data[:1200, :, None] / 16
    assert all(np.array_equal(fit.args[1], training) for fit in fits)
    if BACKEND == "torch":
        assert whole[0]["path"] == "keras" and whole[1]["path"] in ("native", "fused")
    assert whole[0]["darker"] < whole[0]["accuracy"] - 0.1
    assert whole[-1]["darker"] == pytest.approx(whole[-1]["accuracy"], abs=0.005)
    older = {**whole[2], "keras": "3.10.0"}
    results.write_text(json.dumps([*whole[:2], older]))
    printed = run("quick_look", *options)
    assert " LSTM: " not in printed and f" {names[2]}: " in printed
    found = json.loads(results.read_text())
    assert found[:3] == [*whole[:2], older]
    assert found[3]["accuracy"] == whole[2]["accuracy"]
    report = results.with_name("report.md").read_text()
    assert all(f"- {one['layer']}: " in report for one in whole)
    results.write_text("")
    with pytest.raises(SystemExit, match=r"results.json is damaged"):
        run("quick_look", *options)


def emptied(column):
    return lambda data: data.assign(**{column: np.nan})


def in_turns(data):
    """Two sensors that report in turns leave no step with both."""
    even = np.arange(len(data)) % 2 == 0
    return data.assign(a=data.a.where(even), b=data.b.where(~even))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (emptied("b"), "column 'b' is empty"),
        (in_turns, "a value is missing in 100% of the steps"),
        (lambda data: data.assign(a=1e200 * data.a), "column 'a' .* too large"),
        (
            lambda data: data.assign(a=data.a.map("{:.1f}".format).str.replace(".", ",")),
            "'a' must",
        ),
        (lambda data: data.assign(b="2024-01-01"), "column 'b' .* Received: '2024-01-01'"),
        (lambda data: data.drop(columns="label"), "it needs `sequence`, `label`"),
        (lambda data: data[:0], "is empty"),
        (lambda data: data.assign(label="low"), r"two classes or more. Received: \['low'\]"),
        (lambda data: data.assign(label=data.index % 2), "one label in all its rows"),
        (lambda data: data.assign(label=data.sequence), "4 sequences .*: 1"),
        (lambda data: data.assign(source=data.index % 2), "one source in all its rows"),
        (
            lambda data: data.assign(source=data.sequence.where(data.sequence > 0)),
            "one source in all its rows",
        ),
        (lambda data: data.assign(sequence=data.sequence.where(data.index > 0)), "needs a seq"),
    ],
)
def test_which_layer_refuses_data_in_one_sentence(change, message, run, tmp_path):
    pytest.importorskip("keras_tuner", reason="the example searches")
    change(table()).to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(SystemExit, match=f"^data.csv: .*{message}"):
        run("which_layer", "data.csv", "--layers", "LSTM", "--seeds=1", "--epochs=1")


@pytest.mark.parametrize("name", ["which_layer", "own_data", "characters"])
def test_a_file_that_cannot_be_read_is_named(name, run, tmp_path):
    if name == "which_layer":
        pytest.importorskip("keras_tuner", reason="the example searches")
    with pytest.raises(SystemExit, match=r"^data.csv: .*No such file"):
        run(name, "data.csv")
    for content, message in [
        ("ä\n".encode("latin-1"), r"^data.csv: .*codec"),
        (b"", "^data.csv: No columns|A text n"),
    ]:
        (tmp_path / "data.csv").write_bytes(content)
        with pytest.raises(SystemExit, match=message):
            run(name, "data.csv")


def test_which_layer_masks_steps_that_lack_a_value(run, tmp_path):
    pytest.importorskip("keras_tuner", reason="the example searches")
    data = table().assign(c=1013.3)
    data["label"] = data.label.map({"high": "NA", "low": "null"})  # words, not missing
    data.loc[data.index % 5 == 4, "b"] = np.nan
    data.to_csv(tmp_path / "data.csv")  # its index is no channel
    example = runpy.run_path(str(EXAMPLES / "which_layer.py"))
    ((x, y), *others), scale = example["read"](tmp_path / "data.csv")
    assert (x[:, 4] == example["MASKED"]).all() and abs(x[:, :4].mean(axis=(0, 1))).max() < 1e-5
    assert [len(x), *(len(part) for part, _ in others)] == [12, 6, 6]
    assert np.corrcoef(x[:, 0, 0], y)[0, 1] ** 2 > 0.9
    assert x.shape[2] == 3 and not x[:, :4, 2].round(6).any()  # the constant
    first = x[0, 0] * scale["deviation"].to_numpy() + scale["mean"].to_numpy()
    assert (abs(data[["a", "b", "c"]] - first).sum(axis=1) < 1e-5).any()
    assert [*scale["classes"]] == sorted({*data.label.astype(str)})


def test_which_layer_keeps_each_source_on_one_side(run, tmp_path):
    pytest.importorskip("keras_tuner", reason="the example searches")
    data = table()
    source = data.sequence // 3
    data = data.assign(source=source, a=source)
    data.to_csv(tmp_path / "data.csv", index=False)
    parts, _ = runpy.run_path(str(EXAMPLES / "which_layer.py"))["read"](tmp_path / "data.csv")
    # A source is a level of the channel `a` here.
    levels = [{round(float(v), 4) for v in x[:, 0, 0]} for x, _ in parts]
    assert sum(map(len, levels)) == len(set.union(*levels)) == 8
    with pytest.raises(SystemExit, match="4 sources or more"):
        data.assign(source=data.label).to_csv(tmp_path / "data.csv", index=False)
        run("which_layer", "data.csv")


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_which_layer_needs_each_class_and_channel_in_training(run, tmp_path):
    pytest.importorskip("keras_tuner", reason="the example searches")
    example = runpy.run_path(str(EXAMPLES / "which_layer.py"))
    split, classes = example["split"], ["high", "low"]
    # The first split has no "low" in one part.
    y, source = np.array([[0, 0, 0, 0, 1, 1, 1, 1], [2, 3, 1, 0, 0, 4, 2, 1]])
    assert [len({*y[part]}) for part in split(y, source, classes)] == [2, 2, 2]
    with pytest.raises(ValueError, match=r"class 'low' has too few .*: .* would have none"):
        split(np.array([0] * 7 + [1]), np.arange(8), classes)
    data = table()
    train, *_ = split(1 - np.arange(24) % 2, np.arange(24).astype(str), classes)
    data.loc[data.sequence.isin(train), "b"] = np.nan
    data.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(ValueError, match=r"each training step lacks a value, .* 'b'"):
        example["read"](tmp_path / "data.csv")


def test_which_layer_names_the_option_of_another_folder(run, tmp_path):
    pytest.importorskip("keras_tuner", reason="the example searches")
    table().to_csv(tmp_path / "data.csv", index=False)
    options = ["data.csv", "--layers", "LSTM", "--seeds=1"]
    said = run("which_layer", *options, "--epochs=1")
    folder = Path("runs", "which_layer")
    assert "best val_loss" in said and str(folder / "best.keras") in said
    (*_, (x, y)), _ = runpy.run_path(str(EXAMPLES / "which_layer.py"))["read"]("data.csv")
    answers = keras.models.load_model(folder / "best.keras").predict(x, verbose=0).argmax(-1)
    assert f"LSTM: {np.mean(answers == y):.0%} of 6 test" in said
    assert {*np.load(tmp_path / folder / "scale.npz")} == {"mean", "deviation", "classes"}
    with pytest.raises(SystemExit, match=r"(?s)other settings.*--output"):
        run("which_layer", *options, "--epochs=2")
    with pytest.raises(SystemExit) as refused:
        run("which_layer", *options[:-1], "--seeds=0")
    assert "executions" in str(refused.value) and "--output" not in str(refused.value)


def test_the_notebook_runs(tmp_path, monkeypatch, capsys):
    """Each cell in turn, by the interpreter alone; a picture needs no window."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the notebook draws")
    cells = json.loads((EXAMPLES / "first_model.ipynb").read_text())["cells"]
    scope = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []  # a reader makes them
            exec("".join(cell["source"]), scope)
    assert len(pyplot.get_fignums()) == 2
    pyplot.close("all")
    assert "test accuracy 0." in capsys.readouterr().out


def test_which_layer_tries_the_numbers_that_it_names(run, tmp_path):
    """Where it names none, a layer has its defaults."""
    pytest.importorskip("keras_tuner", reason="the example searches")
    table().to_csv(tmp_path / "data.csv", index=False)
    run(
        "which_layer",
        "data.csv",
        "--layers",
        "MomentumRNN",
        "NAGLSTM",
        "RMSPropLSTM",
        "--seeds=1",
        "--epochs=1",
    )
    found = pd.read_csv(tmp_path / "runs" / "which_layer" / "results.csv")
    of = {name: rows["step_size"].unique().tolist() for name, rows in found.groupby("layer")}
    assert of == {"MomentumRNN": [0.6], "NAGLSTM": [0.9], "RMSPropLSTM": [2.0]}
