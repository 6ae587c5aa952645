"""What the page on the choice of a layer says in words is what the study's results say."""

import importlib
from pathlib import Path

import pytest

for module in ("matplotlib", "rich", "scipy", "sklearn"):
    pytest.importorskip(module, reason="the study's results are read with it")

TOOLS = Path(__file__).parent.parent / "docs" / "tools"
RESULTS = TOOLS.parents[1] / "examples" / "results" / "real_sequences"

pytestmark = pytest.mark.skipif(
    not (TOOLS.exists() and RESULTS.exists()), reason="only a checkout has docs and results"
)


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    return importlib.import_module("study")


def test_sentences_on_the_study(study):
    """What the page on the choice of a layer says beside the tables of the study."""
    told = study.found()
    ranks = list(study.ranked(told, list(told)))
    # "Start with Keras's `GRU` and our `MomentumRNN`"
    assert next(name for name in ranks if name in study.of_source("plain")) == "GRU"
    assert next(name for name in ranks if name in study.of_source("ours")) == "MomentumRNN"
    # The page on the paper says how its layers rank beside LSTM.
    mean = study.ranked(told, list(told))
    assert mean["NAGLSTM"] < mean["LSTM"] - 1 and mean["MomentumLSTM"] > mean["LSTM"] + 1
    for layer in ("SRLSTM", "Default-RMSPropLSTM", "Default-AdamLSTM"):
        assert abs(mean[layer] - mean["LSTM"]) <= 0.5, layer
    assert not study.clear_pairs(told)[1]  # "No difference is statistically clear"
    contents = study.chosen_sets(told, None)
    plain, changed = (study.mean_accuracies(contents, c) for c in (None, "gain 1/4"))
    # The gain drops out of both, and of no layer that reads what comes.
    for layer in ("AdamLSTM", "RMSPropLSTM", "Standardised-LSTM"):
        assert changed[layer] == pytest.approx(plain[layer], abs=0.02)
    for layer in ("LSTM", "GRU", "SimpleRNN"):
        assert changed[layer] < plain[layer] - 0.1
    offset = study.mean_accuracies(contents, "offset")
    ours = max(offset[name] for name in offset if name in study.of_source("ours"))
    assert offset["Standardised-LSTM"] > ours + 0.1


def test_sentences_on_how_soon(study):
    """Louder inputs bring plain layers most of what the rule does."""
    path = study.RESULTS / "how_soon" / "results.json"
    if not path.exists():
        pytest.skip("it has not run")
    report = study.how_soon_report
    found = report.whole(study.json.loads(path.read_text())["runs"])
    best = {name: report.median(report.updates(runs)) for name, (_, runs) in
            report.ranked(found[100])}  # fmt: skip
    assert best["RMSPropLSTM"] < best["GRU"] < best["LSTM"]
    assert best["GRU, inputs x 10"] <= 1.25 * best["RMSPropLSTM"]
    assert 3 * best["LSTM, inputs x 10"] < best["LSTM"]


def test_sentences_on_levels(study):
    told = study.series()
    assert told
    for name, content in told.items():
        means = {n: study.scores(content, n).mean() for n in content["layers"]}
        assert means["GRU"] < min(means["AdamLSTM"], means["RMSPropLSTM"]), name
        assert means["MomentumGRU"] < means["GRU"], name
        layers = {n: mean for n, mean in means.items() if n in study.CONTESTANTS}
        ahead = {n for n, mean in layers.items() if mean < means["linear"]}
        assert ahead == ({"GRU", "MomentumGRU"} if name == "sunspots" else set()), name
        assert min(layers.values()) > (0.9 if name == "sunspots" else 1.5) * means["linear"]


def test_sentences_on_long_series(study):
    """NAGLSTM leads where examples are few, and MiniRocket is ahead of it everywhere."""
    told = study.long_series()
    samples = {
        name: content["settings"]["task"]["samples"][0] for name, content in told.items()
    }
    few = {name for name, count in samples.items() if 27 <= count <= 40}
    assert len(few) == 3 and len(told) == 4
    assert few == {name for name, content in told.items() if study.leads(content, "NAGLSTM")}
    better = {
        name
        for name in few
        if study.signed(told[name], study.CONTROL) > study.signed(told[name], "LSTM")
    }
    assert len(better) == 2
    assert min(count for name, count in samples.items() if name not in few) >= 4 * 27
    for name, content in told.items():
        if name in few:
            nag, rocket = (study.scores(content, n).mean() for n in ("NAGLSTM", "MiniRocket"))
            assert nag < rocket, name
            assert study.scores(content, study.CONTROL).mean() < nag, name
        else:
            means = {n: study.scores(content, n).mean() for n in ("LSTM", "GRU", "NAGLSTM")}
            assert means["NAGLSTM"] < min(means["LSTM"], means["GRU"])


def test_too_few_sets_are_refused(study, monkeypatch):
    monkeypatch.setattr(study, "ENOUGH", 99)
    with pytest.raises(ValueError, match=r"Fewer than 99 sets.*'OSULeaf'"):
        study.found()


def test_the_main_job_must_show_ours_ahead_on_every_backend(study, monkeypatch):
    job = importlib.import_module("main_job")
    text, read = job.main_command(), job.read
    told = study.found()
    assert f"Of {len(told)} real sets" in text and "MiniRocket" in text
    # The report says so of most of the sets.
    assert [job.verdict(one)[2] for one in told.values()].count("even") > len(told) / 2

    def behind(folder):
        content = read(folder)
        if folder.name == "torch":
            content["layers"]["NAGLSTM"] = content["layers"]["GRU"]
        return content

    monkeypatch.setattr(job, "read", behind)
    with pytest.raises(ValueError, match="No layer of ours is ahead"):
        job.main_command()
    monkeypatch.setattr(job, "read", read)
    even = {**told, "PickupGestureWiimoteZ": told["GunPoint"]}
    monkeypatch.setattr(study, "found", lambda: even)
    with pytest.raises(ValueError, match="PickupGestureWiimoteZ"):
        job.main_command()
