"""Whatever stands in a file that the project reads back, one of three things happens.

What the file held is made again from what is whole; or the run that it belongs to, and no
other, starts again; or the command ends and says which file it is and what to do. Hypothesis
chooses the damage.
"""

import contextlib
import io
import json
import math
import shutil
import tempfile
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from speed import COMPILES, SLOW_ON_TENSORFLOW, slow_unless

pytest.importorskip("keras_tuner", reason="a search needs it")

from tuning_cases import numbers, search

from keras_momentum_rnn.tuning import load_results

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


# A search


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """The folder of a Hyperband search that was interrupted while trials go on from others."""
    folder = tmp_path_factory.mktemp("search")

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(folder, {3: interrupt}, **OPTIONS)
    return folder, search(tmp_path_factory.mktemp("whole"), **OPTIONS)


OPTIONS = {"strategy": "hyperband", "max_trials": None, "epochs": 3}


def files_of_a_search(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@contextlib.contextmanager
def damaged_search(data, original):
    """Yield a copy of a search's folder, which of its files is damaged, and what that lost."""
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(original, Path(place) / "search")
        name = data.draw(st.sampled_from(files_of_a_search(folder)))
        yield folder, name, damage(data, folder / name)


@few_and_many(5, 60)
def test_files_of_a_search(interrupted, count):
    with_examples(count, lambda data: check_search(interrupted, data))


def check_search(interrupted, data):
    stopped, whole = interrupted
    with damaged_search(data, stopped) as (folder, name, lost):
        damaged = (folder / name).read_bytes()
        with told(folder / name) as said:
            results = search(folder, **OPTIONS)
        if said.refused:
            assert name == "search.json"
            assert (folder / name).read_bytes() == damaged
            return
        assert not (lost and name == "search.json")
        if name == "search.json":
            return  # a value that may stand there
        # Of a trial that began anew the weights are others, its hyperparameters are not.
        assert [row.status for row in results.rows] == ["COMPLETED"] * len(whole.rows)
        for row, expected in zip(results.rows, whole.rows, strict=True):
            assert plain(row.values) == plain(expected.values)
        assert math.isfinite(results.best.score)
        if (folder / "best.keras").exists():
            assert results.best_model()
        else:
            assert "has no complete weights, so best.keras was not updated" in said.text()


def plain(values):
    return {name: value for name, value in values.items() if not name.startswith("tuner/")}


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """The folder of a search that ended."""
    folder = tmp_path_factory.mktemp("searched")
    return folder, search(folder, max_trials=3)


@few_and_many(5, 60)
def test_files_of_a_search_that_ended(searched, count):
    """Read again by `load_results` and by the command, which has nothing more to train."""
    with_examples(count, lambda data: check_ended_search(searched, data))


def check_ended_search(searched, data):
    ended, whole = searched
    with damaged_search(data, ended) as (folder, name, lost):
        with told(folder / name) as said:
            results = load_results(folder)
        if said.refused:
            assert name == "search.json"
            return
        with told(folder / name) as said:
            repeated = search(folder, max_trials=3)
        if name == "search.json":
            assert not lost
            return
        assert not said.refused
        assert numbers(results) == numbers(repeated) == numbers(whole)
        assert repeated.best.score == pytest.approx(whole.best.score, rel=1e-5)
        assert repeated.best_model()


# One by one


def test_a_trial_that_would_go_on_from_damaged_weights_begins_anew(interrupted, tmp_path):
    folder = shutil.copytree(interrupted[0], tmp_path / "search")
    for weights in folder.rglob("checkpoint.weights.h5"):
        weights.write_bytes(b"no weights")
    with pytest.warns(
        UserWarning, match=r"trial_000. has no complete weights: .* starts again"
    ):
        results = search(folder, **OPTIONS)
    assert {row.status for row in results.rows} == {"COMPLETED"}
    assert [len(row.scores) for row in results.rows] == [1] * len(interrupted[1].rows)


@pytest.mark.each_backend
def test_a_damaged_checkpoint_of_the_best_trial_is_told(searched, tmp_path):
    folder = shutil.copytree(searched[0], tmp_path / "search")
    best = searched[1].best.trial
    (folder / f"trials/trial_{best}/checkpoint.weights.h5").write_bytes(b"")
    before = (folder / "best.keras").read_bytes()
    with pytest.warns(
        UserWarning, match=f"trial_{best} has no complete weights, so best.keras"
    ):
        results = search(folder, max_trials=3)
    assert results.best == searched[1].best
    assert (folder / "best.keras").read_bytes() == before


def cut(path):
    path.write_bytes(path.read_bytes()[:-50])


def flip(path):
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        place = file.getinfo("model.weights.h5").header_offset + 2000
    content[place] ^= 0xFF
    path.write_bytes(content)


def without_weights(path):
    with zipfile.ZipFile(path) as file:
        config = file.read("config.json")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", config)


@pytest.mark.parametrize("harm", [cut, flip, without_weights, Path.unlink])
def test_a_damaged_best_model_is_named(harm, searched, tmp_path):
    folder = shutil.copytree(searched[0], tmp_path / "search")
    harm(folder / "best.keras")
    with pytest.raises(ValueError, match=r"best\.keras is not a complete .* repeat the search"):
        load_results(folder).best_model()
    search(folder, max_trials=3).best_model()
