"""Two virtual devices give what one gives."""

import json
import os
import subprocess
import sys

import keras
import pytest

pytest.importorskip("matplotlib", reason="keras_momentum_rnn.experiments needs it")
pytest.importorskip("rich", reason="keras_momentum_rnn.experiments needs it")

from keras_momentum_rnn import tasks
from keras_momentum_rnn.experiments import Comparison, compare, devices

BACKEND = keras.config.backend()
# Two devices are set up before the backend starts.
TWO = """
import sys
if sys.argv[1] == "tensorflow":
    import tensorflow as tf
    cpu = tf.config.list_physical_devices("CPU")[0]
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
from test_devices import compared
compared(sys.argv[2], 2)
"""


def setups(clipnorm):
    recipe = tasks.Recipe("adding", "AdamRNN", 3, {}, "Adam", 0.01, clipnorm, 24, 2)
    return {"AdamRNN": recipe}


def compared(output, count):
    """Train on so many devices; on JAX with clipping."""
    return compare(
        Comparison(
            task=tasks.load("adding", steps=10, samples=48, held_out=24),
            setups=setups(0.1 if BACKEND == "jax" else None),
            seeds=1,
            output=output,
            budget={"name": "tiny"},
            title="adding",
            command="python test.py",
            devices=count,
        )
    )


@pytest.mark.slow
@pytest.mark.skipif(BACKEND == "torch", reason="Keras documents no `fit` over devices there")
def test_two_devices_give_what_one_gives(tmp_path):
    one = compared(tmp_path / "one", 1)
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    environment = {**os.environ, **flags, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-c", TWO, BACKEND, tmp_path / "two"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "two" / "results.json").read_text())
    assert results["settings"]["devices"] == 2
    (run,), (expected,) = results["runs"], one["runs"]
    for epoch, same in zip(run["curve"], expected["curve"], strict=True):
        assert epoch == pytest.approx({**same, "seconds": epoch["seconds"]}, rel=1e-4)


def test_more_devices_than_there_are_is_refused():
    error = NotImplementedError if BACKEND == "torch" else ValueError
    with pytest.raises(error, match="devices=64"), devices.distributed(64):
        pass


def test_what_would_differ_from_one_device_is_refused():
    task = tasks.load("adding", steps=10, samples=48, held_out=23)
    with pytest.raises(ValueError, match="last batch of validation"):
        devices.check(task, setups(None), 2)
    devices.check(task, setups(1.0), 1)
    if BACKEND == "tensorflow":
        with pytest.raises(NotImplementedError, match=r"global_clipnorm=1\.0 for AdamRNN"):
            devices.check(task, setups(1.0), 2)
