"""The benchmark's two commands, on a tiny case."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import BACKEND

ROOT = Path(__file__).parent.parent
README = "# A page\n<!-- benchmarks: here -->\nold\n<!-- benchmarks end -->\nafter\n"
SPEED = "<!-- aims: here -->\n<!-- aims end -->\n<!-- paper: here -->\n<!-- paper end -->\n"
TINY = ["--batch", "2", "--time", "3", "--features", "2", "--units", "2", "--rounds", "2"]


def run(script, *arguments):
    command = [sys.executable, ROOT / "benchmarks" / script, *map(str, arguments)]
    return subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": BACKEND, "PYTHONPATH": str(ROOT)},
    )


def test_results_are_kept_by_case_and_shown_in_tables_pictures_and_readme(tmp_path):
    readme, results = tmp_path / "README.md", tmp_path / "results"
    readme.write_text(README)
    speed = tmp_path / "speed.md"
    speed.write_text(SPEED)
    results.mkdir()
    file = results / f"cpu-{BACKEND}.json"
    file.write_text(json.dumps({"ptb": {"layers": [], "case": {"time": 70}}}))
    layers = ["--layers", "MomentumLSTM", "--no-memory"]
    run("measure.py", "--name", "main", *TINY, *layers, "--output", results)
    found = json.loads(file.read_text())
    assert list(found) == ["ptb", "main"]
    del found["ptb"]
    file.write_text(json.dumps(found))
    (row,) = found["main"]["layers"]
    own = "torch.nn.LSTM" if BACKEND == "torch" else "keras.layers.LSTM"
    (beside,) = (b for b in row["baselines"] if b["layer"] == own)
    low, high = beside["ratio"]["training"]["quartiles"]
    assert row["layer"] == "MomentumLSTM"
    assert row["training"] > 0
    assert row["inference"] > 0
    assert row["first_call"] > 0
    assert row["peak"] is None
    assert 0 < low <= beside["ratio"]["training"]["median"] <= high
    assert found["main"]["case"] == {"batch": 2, "time": 3, "features": 2, "units": 2}
    assert found["main"]["command"].startswith("python benchmarks/measure.py --name main")

    run("report.py", "--results", results, "--pages", readme, speed)
    text = readme.read_text()
    assert f"{low:.2f} to {high:.2f}" in text
    assert "old" not in text
    assert "GPU" not in text
    assert text.startswith("# A page\n<!-- benchmarks: here -->\n")
    assert text.endswith("<!-- benchmarks end -->\nafter\n")
    median = f"{beside['ratio']['training']['median']:.2f}"
    aims, paper = speed.read_text().split("<!-- aims end -->")
    assert f"| training step: momentum, NAG, SR | 1.0; PyTorch 1.1 | {median} |" in aims
    assert "| MomentumLSTM | 1.20 |" in paper
    assert "MomentumLSTM" in (results / "tables.md").read_text()
    assert (results / "ratios.png").stat().st_size > 1000
    assert (results / "scaling.png").stat().st_size > 1000

    # Two devices of one backend have a heading each.
    found["main"]["device"] = "gpu, x86_64, 2 cores"
    (results / f"gpu-{BACKEND}.json").write_text(json.dumps(found))
    run("report.py", "--results", results, "--pages", readme)
    (head,) = (line for line in readme.read_text().splitlines() if "| layer |" in line)
    _, _, first, second, _ = head.split("|")
    assert second.strip() == first.strip().replace(", main", " GPU, main")
    assert "GPU" in second


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="only a checkout has pages")
def test_pages_show_the_committed_results(monkeypatch):
    pytest.importorskip("matplotlib", reason="the report draws with it")
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    report = importlib.import_module("report")
    tables = report.all_tables(report.RESULTS, report.load(report.RESULTS))
    old = [
        page.name
        for page in report.PAGES
        if report.with_tables(page.read_text(), tables, page) != page.read_text()
    ]
    assert old == [], "run python benchmarks/report.py"


def test_results_that_cannot_be_read_are_kept(tmp_path):
    file = tmp_path / f"cpu-{BACKEND}.json"
    file.write_text("<<<<<<< ours")
    layers = ["--layers", "MomentumLSTM", "--no-memory"]
    with pytest.raises(subprocess.CalledProcessError) as error:
        run("measure.py", "--name", "main", *TINY, *layers, "--output", tmp_path)
    assert "is not valid JSON; repair or remove it" in error.value.stderr
    assert file.read_text() == "<<<<<<< ours"


@pytest.mark.skipif(BACKEND != "torch", reason="PyTorch's layers stand beside ours there alone")
def test_pytorchs_layers_compute_where_keras_does(monkeypatch):
    import torch

    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    measure = importlib.import_module("measure")
    moved = []
    monkeypatch.setattr(measure, "current_device", lambda: "gpu")
    for kind in (torch.nn.Module, torch.Tensor):
        monkeypatch.setattr(kind, "to", lambda self, place: moved.append(place) or self)
    measure.contestant("torch.nn.LSTM", (2, 3, 2, 2))
    assert moved == ["cuda"] * 4  # layer, head, inputs, targets
