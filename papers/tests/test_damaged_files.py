"""Whatever stands in a file that the project reads back, one of three things happens.

What the file held is made again from what is whole; or the run that it belongs to, and no
other, starts again; or the command ends and says which file it is and what to do. Hypothesis
chooses the damage. Files of two commands that write at once are in `test_resuming.py`.
"""

import contextlib
import io
import json
import os
import shutil
import tempfile
import time
import warnings
from pathlib import Path

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from speed import COMPILES, SLOW_ON_TENSORFLOW, slow_unless
from test_experiments import COMMAND, quick, read

pytest.importorskip("matplotlib", reason="papers.experiments needs it")

from matplotlib.figure import Figure

from keras_momentum_rnn import atomic_files
from papers.experiments import runner, training
from papers.reproduce import main

pytestmark = [*SLOW_ON_TENSORFLOW, pytest.mark.damaged_files, pytest.mark.any_backend]

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=5,
)
RANDOM = st.binary(max_size=300)
CUT = st.floats(0, 1, exclude_max=True)
OTHERS = st.sampled_from(["{}", "[]", "null", "3", "[[", '{"schema": 9}', "[" * 100_000])


def few_and_many(few, many):
    """Return a mark: the quick test of a property has few examples, the slow one many.

    No backend changes what a damaged file does, so many are tried where nothing is compiled.
    """
    return pytest.mark.parametrize(
        "count", [few] if COMPILES else [few, slow_unless(False, many)]
    )


def with_examples(count, check):
    """Run a check of hypothesis's `data` with so many examples."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    chosen = settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=checks,
        phases=[Phase.generate],  # to shrink a damaged search takes minutes
    )
    chosen(given(data=st.data())(check))()


@st.composite
def changed(draw, document):
    """A JSON document, of which one entry somewhere is another one or is missing."""
    document = json.loads(json.dumps(document))
    inner = document
    while True:
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        key = draw(st.sampled_from(keys))
        if isinstance(inner[key], (dict, list)) and inner[key] and draw(st.booleans()):
            inner = inner[key]
            continue
        if draw(st.booleans()):
            inner[key] = draw(VALUES)
        else:
            del inner[key]
        return json.dumps(document)


def damage(data, path):
    """Damage a file; return whether it holds no more what it held, whatever its schema is."""
    content = path.read_bytes()
    kinds = ["random", "cut", "other"] + ["changed"] * (
        path.suffix == ".json" and len(content) > 3
    )
    kind = data.draw(st.sampled_from(kinds), label=path.name)
    if kind == "random":
        path.write_bytes(data.draw(RANDOM))
    elif kind == "cut":
        path.write_bytes(content[: int(data.draw(CUT) * len(content.rstrip()))])
    elif kind == "other":
        path.write_text(data.draw(OTHERS))
    else:
        path.write_text(data.draw(changed(json.loads(content))))
    return kind != "changed"


class Told(list):
    """What was said: printed, warned of, or as the command ended."""

    refused = False

    def text(self):
        return "".join(self).replace("\n", "")


@contextlib.contextmanager
def told(path):
    """Note all that is said; where it ends in an error, check that it says what to do.

    Every other error than a refusal goes through: a test with a traceback fails.
    """
    found, out = Told(), io.StringIO()
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            yield found
        except (ValueError, SystemExit) as error:
            found.refused = True
            found.append(str(error))
    found += [out.getvalue(), *(str(warning.message) for warning in warned)]
    if found.refused:
        text = found.text()
        assert path.name in text, text
        assert any(advice in text for advice in ("remove", "choose another", "repeat")), text
    assert "pickle" not in found.text()


# A comparison


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The folder of a comparison that ended, with notes and models."""
    folder = tmp_path_factory.mktemp("compared")
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "train", quick)
        main([*COMMAND, f"--output={folder}"])
        (folder / "notes.md").write_text("What was seen.\n")
        for name in ("SimpleRNN-0", "MomentumRNN-0"):
            (folder / "runs" / name).mkdir(parents=True)
            model.save(folder / "runs" / name / "best.keras")
        main([*COMMAND, f"--output={folder}"])
    return folder


BEST = "runs/SimpleRNN-0/best.keras"
OF_COMPARISONS = ["results.json", "notes.md", "report.md", "best.keras", BEST, "runs/lock"]


@few_and_many(8, 200)
def test_files_of_a_comparison(compared, count):
    with_examples(count, lambda data: check_comparison(compared, data))


def check_comparison(compared, data):
    name = data.draw(st.sampled_from(OF_COMPARISONS))
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        folder = shutil.copytree(compared, Path(place) / "output")
        patch.setattr(training, "train", quick)
        patch.setattr(Figure, "savefig", lambda figure, path, **named: Path(path).touch())
        before = (folder / "best.keras").read_bytes()
        lost = damage(data, folder / name)
        damaged = (folder / name).read_bytes()
        with told(folder / name) as said:
            results = main([*COMMAND, f"--output={folder}"])
        if said.refused:
            assert name == "results.json"
            assert (folder / name).read_bytes() == damaged  # for the user to mend
            return
        if name == "results.json":
            assert not lost, "a file that lost its runs was taken for one that never had any"
            return
        assert results["runs"] == read(compared)["runs"]
        if name == BEST:
            assert "SimpleRNN-0/best.keras is not a complete model file" in said.text()
            assert (folder / "best.keras").read_bytes() == before
        else:
            atomic_files.check_model_file(folder / "best.keras")
            assert (folder / "best.keras").read_bytes() == before


def small_run():
    """A run of three parts, each of which adds a number; and its model."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    return {"layer": "it", "seed": 0, "setup": {"units": 1}, "curve": []}, model


def resume(folder, ends=3, **settings):
    run, model = small_run()

    def part():
        run["curve"].append(len(run["curve"]))
        model.layers[0].kernel.assign_add(keras.ops.ones((2, 1)))

    def ended():
        return len(run["curve"]) >= ends

    runner.resumed(run, model, part, ended, folder, {"backend": "it", **settings})
    return run, keras.ops.convert_to_numpy(model.layers[0].kernel)


@pytest.mark.each_backend
@few_and_many(10, 200)
def test_the_state_of_a_run(count):
    with_examples(count, check_state)


def check_state(data):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        resume(folder, ends=2)
        whole, kernel = resume(Path(place) / "whole")
        if data.draw(st.booleans(), label="another schema"):
            of_another_schema(folder / "state.npz", data)
        else:
            damage(data, folder / "state.npz")
        with told(folder / "state.npz") as said:
            run, found = resume(folder)
        assert not said.refused
        assert "state.npz cannot be used, so this run starts again." in said.text()
        assert run == whole
        np.testing.assert_array_equal(found, kernel)


def of_another_schema(path, data):
    """Write the arrays of a state again, but with something else for one of them."""
    with np.load(path) as stored:
        arrays = dict(stored)
    name = data.draw(st.sampled_from(sorted(arrays)))
    kind = data.draw(st.sampled_from(["missing", "other", "schema"]))
    if kind == "schema":
        told = {**json.loads(str(arrays["told"])), "schema": data.draw(VALUES.filter(odd))}
        arrays["told"] = json.dumps(told)
    elif kind == "other" and name == "told":
        arrays[name] = json.dumps(data.draw(VALUES))
    else:
        arrays[name] = np.zeros((5, 7))
    if kind == "missing":
        del arrays[name]
    np.savez(path, **arrays)


def odd(schema):
    return schema != runner.SCHEMA


# One by one


def test_a_link_to_results_stays_one(compared, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "train", quick)
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **named: Path(path).touch())
    folder, elsewhere = shutil.copytree(compared, tmp_path / "output"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "results.json").rename(elsewhere / "kept.json")
    (folder / "results.json").symlink_to(elsewhere / "kept.json")
    old, young = (elsewhere / f"unfinished-{i}-kept.json" for i in range(2))
    for path in (old, young):
        path.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    main([*COMMAND, "--seeds=2", f"--output={folder}"])
    assert (folder / "results.json").is_symlink()
    assert len(json.loads((elsewhere / "kept.json").read_text())["runs"]) == 4
    assert {path.name for path in elsewhere.iterdir()} == {"kept.json", young.name}
