"""Two processes, or two replicas, train one model as one does."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from harness import BACKEND, free_port

pytestmark = pytest.mark.keras_nightly

# Batches of 8, of which each process has its own part: `auto_shard_dataset` would divide these
# once more.
TRAINS = """
import json, sys
import keras, numpy as np
import keras_momentum_rnn as kmr
process, count, port, output = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
if count > 1:
    keras.distribution.initialize(f"127.0.0.1:{port}", count, process)
    parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
    keras.distribution.set_distribution(parallel)
keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
data = [rng.normal(size=shape).astype("float32") for shape in ((16, 6, 3), (16, 1))]
parts = [a.reshape(2, count, -1, *a.shape[1:])[:, process] for a in data]
mine = [np.concatenate(part) for part in parts]
model = keras.Sequential([keras.Input((6, 3)), kmr.AdamLSTM(4), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.01), "mse")
history = model.fit(*mine, batch_size=8 // count, epochs=3, shuffle=False, verbose=0)
weights = [np.asarray(keras.ops.convert_to_numpy(w)).ravel() for w in model.trainable_weights]
if process == 0:
    found = {"loss": history.history["loss"], "weights": np.concatenate(weights).tolist()}
    json.dump(found, open(output, "w"))
"""


def why_no_processes():
    """Return why two processes cannot train one model here, or None."""
    version = tuple(int(number) for number in keras.__version__.split(".")[:2])
    if BACKEND == "tensorflow":
        return "keras.distribution has no TensorFlow"
    if BACKEND == "torch" and version < (3, 16):
        return "keras.distribution has PyTorch since Keras 3.16"
    return None


def trained(count, output):
    """Train in so many processes, and return losses and weights."""
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TRAINS, str(process), str(count), port, output],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(count)
    ]
    errors = [process.communicate(timeout=900)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * count, errors
    return json.loads(output.read_text())


@pytest.mark.skipif(bool(why_no_processes()), reason=why_no_processes() or "")
def test_two_processes_learn_what_one_learns(tmp_path):
    one, two = (trained(count, tmp_path / f"{count}.json") for count in (1, 2))
    np.testing.assert_allclose(two["loss"], one["loss"], rtol=1e-5)
    np.testing.assert_allclose(two["weights"], one["weights"], atol=1e-5)


IN_REPLICAS = """
import contextlib, json, sys
import tensorflow as tf
(cpu,), replica = tf.config.list_physical_devices("CPU"), tf.config.LogicalDeviceConfiguration()
tf.config.set_logical_device_configuration(cpu, [replica, replica])
import keras, numpy as np
from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel, MomentumSGD
x = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
losses = []
for scope in (contextlib.nullcontext, tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope):
    with scope():
        inputs = keras.Input((3,))
        outputs = keras.layers.Dense(1, kernel_initializer="ones")(inputs)
        model = keras.Model(inputs, outputs)
        model.compile(MomentumSGD(0.05, 0.9, nesterov=True), "mse")
    for _ in range(2):
        history = model.fit(x, x[:, :1], epochs=3, verbose=0, shuffle=False).history
        losses.append(history["loss"])
with scope():
    try:
        HessianFreeModel(inputs, outputs).compile(HessianFree(), "mse")
    except ValueError as error:
        losses.append(str(error))
print(json.dumps(losses))
"""


@pytest.mark.skipif(BACKEND != "tensorflow", reason="TensorFlow alone has such replicas")
def test_replicas_of_tensorflow_train_as_one_device_or_not_at_all():
    command = [sys.executable, "-c", IN_REPLICAS]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    *losses, refused = json.loads(printed.splitlines()[-1])
    np.testing.assert_allclose(losses[2:], losses[:2], rtol=1e-5)
    assert "Received: 2 replicas of a MirroredStrategy" in refused
