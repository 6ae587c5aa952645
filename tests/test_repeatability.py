"""The same seed gives the same numbers, to the last bit."""

import hashlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_momentum_rnn as kmr
from conftest import start_afresh
from keras_momentum_rnn.paths.native import runtime

ROOT = Path(__file__).parent.parent
LAYERS = ("MomentumLSTM", "AdamGRU", "MomentumDTRIV", "MCRM")
needs_kernel = pytest.mark.skipif(not find_spec("numba"), reason="the kernel needs it")


def trained(name):
    """Return a digest of the weights and predictions of a model after a few updates."""
    start_afresh()
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=s).astype("float32") for s in ((34, 9, 3), (34, 1)))
    layer = getattr(kmr, name)(20, dropout=0.2)
    model = keras.Sequential([keras.Input((9, 3)), layer, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=17, epochs=2, shuffle=False, verbose=0)
    arrays = [*model.get_weights(), model.predict(x, verbose=0)]
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", LAYERS)
@needs_kernel
def test_the_native_kernel_repeats_itself_with_as_many_threads(name, threads, monkeypatch):
    """Whichever thread takes which samples, their gradients are added in one order."""
    monkeypatch.setattr(runtime, "thread_count", lambda: threads)
    assert len({trained(name) for _ in range(2)}) == 1


@pytest.mark.parametrize("name", LAYERS)
def test_the_other_paths_repeat_themselves(name, monkeypatch):
    monkeypatch.setenv(runtime.SWITCH, "0")
    assert trained(name) == trained(name)


@pytest.mark.parametrize("native", ["0", pytest.param("1", marks=needs_kernel)])
def test_another_process_gives_the_same(native, monkeypatch):
    monkeypatch.setenv(runtime.SWITCH, native)
    code = f"from test_repeatability import trained; print(trained({LAYERS[0]!r}))"
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    output = subprocess.check_output(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, text=True
    )
    assert output.split()[-1] == trained(LAYERS[0])
