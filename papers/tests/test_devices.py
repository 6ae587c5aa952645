"""Two devices give what one gives: virtual ones, or on PyTorch two processes."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="papers.experiments needs it")
pytest.importorskip("rich", reason="papers.experiments needs it")

from papers import tasks
from papers.experiments import Comparison, compare, devices
from papers.experiments.processes import Process

BACKEND = keras.config.backend()
# Two devices are set up before the backend starts; on PyTorch two processes are started.
TWO = """
import pathlib
import sys
if sys.argv[1] == "tensorflow":
    import tensorflow as tf
    cpu = tf.config.list_physical_devices("CPU")[0]
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
from papers.experiments import devices
devices.start(2, __file__, sys.argv[1:])
from test_devices import compared
found = compared(sys.argv[2], sys.argv[3], 2)
assert (found is None) == (not devices.this_process(2).first)
# One that outlives Python may abort the process.
threads = [file.read_text() for file in pathlib.Path("/proc/self/task").glob("*/comm")]
assert not any("gloo" in name for name in threads), threads
assert threads or sys.platform != "linux"
"""
TEXT = "the more the merrier the less the greater\n"


def setups(clipnorm, task="adding"):
    recipe = tasks.Recipe(task, "AdamRNN", 3, {}, "Adam", 0.01, clipnorm, 24, 2)
    return {"AdamRNN": recipe}


def compared(task, output, count):
    """Train on so many devices, an epoch at a time; with clipping but on TensorFlow."""
    if task == "characters":
        loaded = tasks.load(task, folder=str(Path(output).parent), steps=4)
    else:
        loaded = tasks.load(task, steps=10, samples=48, held_out=24)
    return compare(
        Comparison(
            task=loaded,
            setups=setups(None if BACKEND == "tensorflow" else 0.1, task),
            seeds=1,
            output=output,
            budget={"name": "tiny"},
            title=task,
            command="python test.py",
            devices=count,
            epochs_at_once=1,
        )
    )


def why_one_alone():
    """Return why several devices cannot train here, or None."""
    try:
        devices.one_each(2)
    except NotImplementedError as error:
        return str(error)


needs_several = pytest.mark.skipif(bool(why_one_alone()), reason=why_one_alone() or "")


# On JAX and TensorFlow the task makes no difference.
@pytest.mark.slow
@needs_several
@pytest.mark.parametrize("task", ["adding"] + ["characters"] * (BACKEND == "torch"))
def test_two_devices_give_what_one_gives(task, tmp_path):
    # Once and here: of two processes, one would read what the other has begun to write.
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt").write_text(TEXT * 5)
    one = compared(task, tmp_path / "one", 1)
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    environment = {**os.environ, **flags, "PYTHONPATH": os.pathsep.join(sys.path)}
    script = tmp_path / "two.py"
    script.write_text(TWO)
    arguments = [sys.executable, script, BACKEND, task, tmp_path / "two"]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "two" / "results.json").read_text())
    assert results["settings"]["devices"] == 2
    (run,), (expected,) = results["runs"], one["runs"]
    for epoch, same in zip(run["curve"], expected["curve"], strict=True):
        assert epoch == pytest.approx({**same, "seconds": epoch["seconds"]}, rel=1e-4)
    models = [
        keras.models.load_model(tmp_path / folder / "best.keras") for folder in ("one", "two")
    ]
    # States that a model carries are those of the rows of one process.
    trained = [map(keras.ops.convert_to_numpy, model.trainable_weights) for model in models]
    # Two sum gradients in another order, and Adam divides by their size: 1e-5 has been seen.
    for weight, same in zip(*trained, strict=True):
        np.testing.assert_allclose(weight, same, atol=1e-4)


def test_more_devices_than_there_are_is_refused():
    error, why = ValueError, "devices=64"
    if BACKEND == "torch":
        error = NotImplementedError if why_one_alone() else ValueError
    with pytest.raises(error, match=why), devices.distributed(64):
        pass


def test_what_would_differ_from_one_device_is_refused():
    task = tasks.load("adding", steps=10, samples=48, held_out=23)
    with pytest.raises(ValueError, match="last batch of validation"):
        devices.check(task, setups(None), 2)
    devices.check(task, setups(1.0), 1)
    if BACKEND == "tensorflow":
        with pytest.raises(NotImplementedError, match=r"global_clipnorm=1\.0 for AdamRNN"):
            devices.check(task, setups(1.0), 2)


@pytest.mark.parametrize("reduction", ["mean_with_sample_weight", "sum_over_batch_size"])
def test_a_mean_by_weight_is_refused_where_each_device_takes_its_own(reduction):
    task = tasks.load("adding", steps=10, samples=48, held_out=24)
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    task = dataclasses.replace(task, loss=loss)
    refused = reduction == "mean_with_sample_weight" and BACKEND != "jax"
    error = pytest.raises(NotImplementedError, match="a mean by weight")
    with error if refused else contextlib.nullcontext():
        devices.check(task, setups(None), 2)


@pytest.mark.skipif(BACKEND != "torch", reason="one process has all devices")
def test_the_command_starts_a_process_for_each_device(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from papers import reproduce

    started = []
    monkeypatch.setattr(os, "execv", lambda *command: started.append(command) or sys.exit(3))
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    sizes = ["steps=10", "samples=40", "held_out=20"]
    argv = ["adding", "--set", *sizes, "--batch-size", "20", "--output", str(tmp_path)]
    with pytest.raises(SystemExit) as ended:
        reproduce.main([*argv, "--devices", "2"])
    if why := why_one_alone():
        assert "since version 3.16" in str(ended.value) and why in str(ended.value)
        return
    ((program, command),) = started
    assert command[:3] == [program, "-m", "torch.distributed.run"] and program == sys.executable
    assert "--nproc-per-node=2" in command
    assert command[command.index(reproduce.__file__) + 1 :] == [*argv, "--devices", "2"]
    # Started otherwise, as many processes as devices are asked for.
    with pytest.raises(ValueError, match=r"torchrun --nproc-per-node=2.*and 1 process$"):
        devices.this_process(2)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    devices.start(2, "script.py", [])
    assert len(started) == 1 and not devices.this_process(2).first


def test_two_processes_share_each_batch():
    task = tasks.load("adding", steps=10, samples=48, held_out=24)
    parts = [Process(number, 2).own(task) for number in range(2)]
    assert Process().own(task) is task
    for split, batch_size in (("train", 16), ("validation", 12)):
        whole, *shared = (getattr(t, split).batches(batch_size) for t in (task, *parts))
        assert [len(part) for part in shared] == [len(whole)] * 2
        for own in zip(whole[1], *(part[1] for part in shared), strict=True):
            np.testing.assert_array_equal(np.concatenate(own[1:]), own[0])
