"""Do searches end as they would have, if they are killed?

    KERAS_BACKEND=torch python tests/faults.py
    KERAS_BACKEND=torch python tests/faults.py --kills 5 --only random

A search of each strategy, and one of a chief and two workers, runs once to its end, over models
of a few weights. Then it runs again and again: one of its processes is killed (SIGKILL) at a
file event that is drawn anew each time, and started again at once. What it leaves must be what
the first run left: every trial and its scores, the weights of the best model, the names of the
files. Times may differ.

A file event is a file in the search's directory that is opened for writing, renamed or removed,
or a directory that is made or removed. A kill comes before the event or, where a file is
written, in its midst: the file is then cut in half.

The numbers go to faults.json. After an interruption the same command goes on. It needs PyTorch,
whose processes can fork, so that Keras is imported once.
"""

import argparse
import contextlib
import gc
import io
import os
import platform
import signal
import socket
import sys
import tempfile
import time
import traceback
import zipfile
from dataclasses import asdict
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
# The kernel would be loaded anew in every process, which takes longer than the search.
os.environ["KERAS_MOMENTUM_RNN_NATIVE"] = "0"

import grpc  # noqa: F401, as scikit-learn, once for all processes
import h5py
import keras
import keras_tuner
import numpy as np
import sklearn.gaussian_process  # noqa: F401

from keras_momentum_rnn.atomic_files import read_results, write_json
from keras_momentum_rnn.tuning import MomentumHyperModel, load_results, tune

# The processes of each search.
ALONE, SHARED = ["tuner0"], ["chief", "worker0", "worker1"]
SEARCHES = {
    "random": ALONE,
    "bayesian": ALONE,
    "hyperband": ALONE,
    "random, chief and workers": SHARED,
}
EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
LIMIT = 600  # seconds for one process, on a machine that is busy with other work, too


def search(name, folder):
    strategy = name.partition(",")[0]
    x = np.random.default_rng(0).normal(size=(24, 3, 2)).astype("float32")
    y = (x.sum(axis=(1, 2)) > 0).astype("int32")
    tune(
        MomentumHyperModel((3, 2), 2, layers=["GRU", "MomentumLSTM"], units=[2, 3]),
        x[:16],
        y[:16],
        validation_data=(x[16:], y[16:]),
        directory=folder,
        strategy=strategy,
        max_trials=None if strategy == "hyperband" else 5,
        epochs=3 if strategy == "hyperband" else 2,
        objective="val_loss",
    )


class Events:
    """Count the file events in a folder, and kill the process at one of them.

    Args:
        folder: `Path`.
        at: number of the event, from 0, or None for no kill.
    """

    def __init__(self, folder, at):
        self.folder, self.at, self.count = str(folder), at, 0
        sys.addaudithook(self.hook)
        save = keras.Model.save_weights

        def save_weights(model, filepath, *args, **kwargs):
            self.event(str(filepath), True)  # HDF5 opens files by itself, and no hook sees it
            return save(model, filepath, *args, **kwargs)

        keras.Model.save_weights = save_weights

    def hook(self, name, arguments):
        if name != "open" and name not in EVENTS:
            return
        path, flags = str(arguments[0]), arguments[2] if name == "open" else 0
        reads = name == "open" and not flags & (os.O_WRONLY | os.O_RDWR)
        if path.startswith(self.folder) and not reads:
            self.event(path, flags & os.O_TRUNC)

    def event(self, path, writes):
        number, self.count = self.count, self.count + 1
        if number != self.at:
            return
        self.at = None
        if writes and number % 2:
            content = Path(path).read_bytes() if Path(path).exists() else b'{"hal'
            Path(path).write_bytes(content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)


def started(name, process, folder, port, at=None):
    """Start a process of a search in `folder`; return its number."""
    number = os.fork()
    if number:
        return number
    signal.alarm(LIMIT)
    try:
        with open(folder.with_suffix(f".{process}.log"), "a") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        if process in SHARED:
            os.environ["KERASTUNER_TUNER_ID"] = process
            os.environ["KERASTUNER_ORACLE_IP"] = "127.0.0.1"
            os.environ["KERASTUNER_ORACLE_PORT"] = str(port)
            sleep = time.sleep
            time.sleep = lambda seconds: sleep(min(seconds, 0.1))  # a chief ends 20 s later
        events = Events(folder, at)
        gc.collect = lambda *generation: 0  # before each model; takes longer than the search
        with contextlib.suppress(SystemExit):  # the end of a worker
            search(name, folder)
        folder.with_suffix(f".{process}.events").write_text(str(events.count))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def run(name, folder, victim=None, at=None):
    """Run a search to its end; kill one of its processes at an event, and start it again.

    Returns:
        Whether the process was killed: in a shared search another may have done its work.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = {}
    for process in SEARCHES[name]:
        kill = at if process == victim else None
        running[started(name, process, folder, port, kill)] = process
    killed = False
    while running:
        number, status = os.wait()
        process = running.pop(number)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and not killed:
            killed = True
            running[started(name, process, folder, port)] = process
        elif status:
            for other in running:
                os.kill(other, signal.SIGKILL)
                os.waitpid(other, 0)
            log = folder.with_suffix(f".{process}.log").read_text()
            raise RuntimeError(f"{process} ended with {status}: {log[-3000:]}")
    return killed


def left(folder):
    """Return all of what a search left that must not depend on kills."""
    places = []
    with zipfile.ZipFile(folder / "best.keras") as model:
        content = io.BytesIO(model.read("model.weights.h5"))
    with h5py.File(content) as file:
        file.visit(places.append)
        weights = {p: file[p][()].tolist() for p in places if hasattr(file[p], "dtype")}
    names = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    # What a killed process was writing stays, and keras-tuner's own files in trials/ are those
    # of its processes; nothing reads them.
    files = [n for n in names if "unfinished-" not in n and not Path(n).match("trials/*.json")]
    results = [{**asdict(row), "seconds": None} for row in load_results(folder).rows]
    return {"results": results, "weights": weights, "files": sorted(files)}


def surroundings():
    return {
        "python": platform.python_version(),
        "keras": keras.__version__,
        "torch": sys.modules["torch"].__version__,
        "keras_tuner": keras_tuner.__version__,
    }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=51, help="of each search, in all")
    parser.add_argument("--only", choices=SEARCHES, help="one search")
    parser.add_argument(
        "--output", type=Path, default=Path("faults.json"), help="the JSON file"
    )
    options = parser.parse_args(argv)
    if keras.config.backend() != "torch":
        sys.exit("Set KERAS_BACKEND=torch: the processes of the other backends cannot fork.")
    keras.utils.set_random_seed(0)  # imports all that it finds, once for all processes
    gc.freeze()  # or every process collects what all share
    command = "KERAS_BACKEND=torch python tests/faults.py"
    new = {"command": command, **surroundings(), "searches": {}}
    results = read_results(options.output, new)
    if results | {"searches": {}} != results | new:
        sys.exit(f"{options.output} has kills of other versions; choose another --output")
    for name in [options.only] if options.only else SEARCHES:
        found = results["searches"].setdefault(name, {"kills": 0, "equal": 0, "different": []})
        with tempfile.TemporaryDirectory() as place:
            whole = Path(place) / "whole"
            run(name, whole)
            expected = left(whole)
            for kill in range(found["kills"], options.kills):
                place_of = np.random.default_rng(kill)
                victim = SEARCHES[name][kill % len(SEARCHES[name])]
                events = int(whole.with_suffix(f".{victim}.events").read_text())
                at, killed = 0, False
                while not killed:
                    at = int(place_of.integers(events))
                    folder = Path(place) / f"{kill}-{at}"
                    killed = run(name, folder, victim, at)
                got = left(folder)
                other = [part for part, value in expected.items() if got[part] != value]
                found["kills"] += 1
                found["equal"] += not other
                if other:
                    found["different"].append([victim, at, other])
                write_json(options.output, results)
                print(
                    f"{name}, kill {kill}: {victim}, event {at}: {other or 'equal'}", flush=True
                )
    for name, found in results["searches"].items():
        print(f"{name}: {found['equal']} of {found['kills']} killed searches ended equal")
    failed = sum(len(found["different"]) for found in results["searches"].values())
    sys.exit(f"{failed} searches ended otherwise, see {options.output}" if failed else 0)


if __name__ == "__main__":
    main()
