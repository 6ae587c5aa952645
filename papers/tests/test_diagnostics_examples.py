"""The examples that draw gradients and states over time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness import BACKEND

EXAMPLES = Path(__file__).parents[2] / "papers"


def example(script, output, *options):
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "KERAS_BACKEND": BACKEND}
    command = [sys.executable, EXAMPLES / script, *options, f"--output={output}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def files(output):
    return {path.name for path in output.iterdir() if path.stat().st_size > 100}


@pytest.mark.slow
def test_gradient_flow_example(tmp_path):
    tiny = ["--units=4", "--updates=2", "--measurements=2", "--batch-size=8"]
    done = example("gradient_flow.py", tmp_path / "out", *tiny)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "out") == {
        "start_and_end.png",
        "training.png",
        "results.json",
        "report.md",
    }
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["iterations"] == [0, 2]
    names = {"SimpleRNN", "MomentumRNN", "DTRIV", "MomentumDTRIV"}
    assert {name: np.shape(n) for name, n in results["norms"].items()} == dict.fromkeys(
        names, (2, 64)
    )
    assert "SimpleRNN" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.slow
def test_memory_map_example(tmp_path):
    tiny = ["--units=4", "--epochs=1", "--characters=2000", "--shown=20"]
    done = example("memory_map.py", tmp_path / "out", *tiny)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "out") == {"memory_map.png", "results.json"}


@pytest.mark.any_backend
@pytest.mark.slow
@pytest.mark.parametrize("script", ["gradient_flow.py", "memory_map.py"])
def test_examples_refuse_bad_options(script, tmp_path):
    done = example(script, tmp_path, "--units=0")
    assert done.returncode == 2 and "Received: 0" in done.stderr
