"""Two virtual devices give what one gives."""

import json
import os
import subprocess
import sys

import keras
import pytest

from keras_momentum_rnn import tasks
from keras_momentum_rnn.experiments import devices
from keras_momentum_rnn.experiments.budgets import Budget, setup_of
from keras_momentum_rnn.experiments.command import main
from keras_momentum_rnn.experiments.setups import Optimizer
from keras_momentum_rnn.layers.names import ready_layers

BACKEND = keras.config.backend()
COMMAND = ["adding", "--layers", "SimpleRNN", "--seeds=1", "--units=3", "--epochs=2"]
COMMAND += ["--batch-size=24", "--set", "steps=10", "samples=48", "held_out=24"]
# Two devices are set up before the backend starts.
TWO = """
import sys
if sys.argv[1] == "tensorflow":
    import tensorflow as tf
    cpu = tf.config.list_physical_devices("CPU")[0]
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
from keras_momentum_rnn.experiments.command import main
main(sys.argv[2:])
"""


@pytest.mark.skipif(BACKEND == "torch", reason="Keras documents no `fit` over devices there")
def test_two_devices_give_what_one_gives(tmp_path):
    one = main([*COMMAND, f"--output={tmp_path / 'one'}"])
    two = tmp_path / "two"
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    environment = {**os.environ, **flags, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [BACKEND, *COMMAND, "--devices=2", f"--output={two}"]
    done = subprocess.run(
        [sys.executable, "-c", TWO, *arguments], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((two / "results.json").read_text())
    assert results["settings"]["devices"] == 2
    (run,), (expected,) = results["runs"], one["runs"]
    for epoch, same in zip(run["curve"], expected["curve"], strict=True):
        assert epoch == pytest.approx({**same, "seconds": epoch["seconds"]}, rel=1e-4)


def test_more_devices_than_there_are_is_refused():
    error = NotImplementedError if BACKEND == "torch" else ValueError
    with pytest.raises(error, match="devices=64"), devices.distributed(64):
        pass


def test_batches_that_cannot_be_divided_are_refused():
    task = tasks.load("adding", steps=10, samples=48, held_out=23)
    budget = Budget(Optimizer("Adam", 0.01), 3, 24, 1)
    setups = {"AdamRNN": setup_of(ready_layers()["AdamRNN"], 3, {}, budget)}
    with pytest.raises(ValueError, match="last batch of validation for AdamRNN has 23 samples"):
        devices.check_divisible(task, setups, 2)
    devices.check_divisible(task, setups, 1)
