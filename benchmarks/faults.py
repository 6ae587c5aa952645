"""Do comparisons and searches end as they would have, if they are killed?

    KERAS_BACKEND=torch python benchmarks/faults.py
    KERAS_BACKEND=torch python benchmarks/faults.py --kills 5 --output faults.json

Each of four commands runs once to its end: a comparison of two layers, and a search of each
strategy, with real models of a few weights. Then it runs again and again, is killed (SIGKILL)
at another file event each time, and is repeated until it ends. What it leaves must then be
what the first run left: every score, every trial, the weights of the best model and the names
of the files. Times may differ.

A file event is a file that is opened for writing, renamed or removed in the output directory,
or a directory that is made or removed. A kill comes before the event, or, where a file is
written, in the midst of it: the file is then cut in half.

The output receives the counts, and any difference that was found. After an interruption the
same command goes on. It needs PyTorch, whose processes can fork: so Keras is imported once.
Pictures are not drawn but written as a few bytes.
"""

import argparse
import gc
import io
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
# It would be loaded anew in every process, which takes longer than the run.
os.environ["KERAS_MOMENTUM_RNN_NATIVE"] = "0"

import keras
import numpy as np
from matplotlib.figure import Figure

from keras_momentum_rnn.atomic_files import read_results, write_json
from keras_momentum_rnn.tuning import MomentumHyperModel, tune
from papers import tasks
from papers.experiments import Comparison, compare
from papers.experiments.results_file import surroundings

RESULTS = Path(__file__).parent / "results" / "faults.json"
EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
BEFORE, MIDST = "before", "in the midst"
LIMIT = 3600  # seconds for one run, on a machine that is busy with other work, too


def comparison(folder):
    task = tasks.load("adding", variant="mcrm", steps=5, samples=24, held_out=12)
    setups = {
        name: tasks.Recipe(
            task="adding",
            layer_name=name,
            units=2,
            arguments={"dropout": 0.3},
            optimizer_name="Adam",
            learning_rate=0.01,
            clipnorm=1.0,
            batch_size=12,
            epochs=3,
        )
        for name in ("GRU", "AdamLSTM")
    }
    compare(
        Comparison(
            task=task,
            setups=setups,
            seeds=1,
            output=folder,
            budget={"name": "tiny"},
            title="adding",
            command="python faults.py",
        )
    )


def search(strategy):
    """Return a function of a directory that searches there."""

    def command(folder):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(24, 3, 2)).astype("float32")
        y = (x.sum(axis=(1, 2)) > 0).astype("int32")
        tune(
            MomentumHyperModel(
                (3, 2), 2, layers=["GRU", "MomentumLSTM"], units=[2, 3], dropout=[0.0, 0.2]
            ),
            x[:16],
            y[:16],
            validation_data=(x[16:], y[16:]),
            directory=folder,
            strategy=strategy,
            max_trials=None if strategy == "hyperband" else 5,
            epochs=3 if strategy == "hyperband" else 2,
            objective="val_loss",
        )

    return command


COMMANDS = {
    "compare": comparison,
    "tune, random": search("random"),
    "tune, bayesian": search("bayesian"),
    "tune, hyperband": search("hyperband"),
}


class Events:
    """Counts the file events in a folder, and kills the process at one of them.

    Args:
        folder: `Path`.
        at: pair of the number of an event, from 0, and `BEFORE` or `MIDST`; None for no kill.
    """

    def __init__(self, folder, at=None):
        self.folder, self.at = str(folder), at
        self.writes = []  # for each event, whether a file is written
        self.active = True
        sys.addaudithook(self.hook)
        save = keras.Model.save_weights

        def save_weights(model, filepath, *args, **kwargs):
            # HDF5 opens files by itself, and no hook sees it.
            self.event(str(filepath), True)
            return save(model, filepath, *args, **kwargs)

        keras.Model.save_weights = save_weights

    def hook(self, name, arguments):
        if not self.active or (name != "open" and name not in EVENTS):
            return
        path = arguments[0]
        if not isinstance(path, (str, Path)) or not str(path).startswith(self.folder):
            return
        flags = arguments[2] if name == "open" else 0
        if name != "open" or flags & (os.O_WRONLY | os.O_RDWR):
            self.event(str(path), bool(flags & os.O_TRUNC))

    def event(self, path, write):
        number = len(self.writes)
        self.writes.append(write)
        if self.at is None or number != self.at[0]:
            return
        self.active = False
        if self.at[1] == MIDST:
            content = Path(path).read_bytes() if Path(path).exists() else b'{"hal'
            Path(path).write_bytes(content[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)


def in_a_process(command, folder, at=None):
    """Run a command in a process of its own.

    Returns:
        A pair: the number of the signal that ended it, 0 for none, and the list `writes` of its
        events if it ended by itself.

    Raises:
        RuntimeError: if it raised an error, which the message shows, or took too long.
    """
    events, log = folder.with_suffix(".events"), folder.with_suffix(".log")
    process = os.fork()
    if not process:
        signal.alarm(LIMIT)
        status = 1
        try:
            with open(log, "w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            Figure.savefig = lambda figure, path, **named: Path(path).write_bytes(b"drawn")
            watched = Events(folder, at)
            command(folder)
            watched.active = False
            events.write_text(json.dumps(watched.writes))
            status = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    _, status = os.waitpid(process, 0)
    ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if ended_by == signal.SIGKILL and at is not None:
        return ended_by, None
    if status:
        raise RuntimeError(f"{folder.name}: {log.read_text()[-3000:]}")
    return 0, json.loads(events.read_text())


def without_times(value):
    """Return what a JSON file holds, without the seconds that things took."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "seconds" not in k}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def left(folder):
    """Return all of what a command left that must not depend on kills."""
    with np.load(io.BytesIO(weights_of(folder / "best.keras"))) as stored:
        weights = [stored[name].tolist() for name in stored.files]
    names = [str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()]
    return {
        "results": without_times(json.loads((folder / "results.json").read_text())),
        "weights": weights,
        # What a process was writing when it was killed is removed after an hour. keras-tuner's
        # file of the tuner is not read, and not written by a search that has nothing to train.
        "files": sorted(
            name for name in names if "unfinished-" not in name and "tuner0.json" not in name
        ),
    }


def weights_of(path):
    """Return the weights of a model's file as an archive: read in a process that may end."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        os.close(reader)
        try:
            model = keras.saving.load_model(path)
            with os.fdopen(writer, "wb") as file:
                archive = io.BytesIO()
                np.savez(archive, *model.get_weights())
                file.write(archive.getvalue())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        content = file.read()
    os.waitpid(process, 0)
    return content


def chosen(writes, count):
    """Return so many kills, evenly spread over all that are possible."""
    possible = [(i, kind) for i, write in enumerate(writes) for kind in kinds(write)]
    places = np.linspace(0, len(possible) - 1, min(count, len(possible)))
    return [possible[int(place)] for place in np.unique(places.round())]


def kinds(write):
    return [BEFORE, MIDST] if write else [BEFORE]


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--kills", type=int, default=55, help="of each command")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the JSON file")
    options = parser.parse_args(argv)
    if keras.config.backend() != "torch":
        sys.exit("Set KERAS_BACKEND=torch: the processes of the other backends cannot fork.")
    gc.freeze()  # else every process collects what all share
    about = {**surroundings(), "kills of each command": options.kills}
    results = read_results(options.output, {"settings": about, "commands": {}})
    if results["settings"] != about:
        sys.exit(f"{options.output} is of other settings or versions; remove it to begin anew.")
    for name, command in COMMANDS.items():
        finish(name, command, options, results)
    failed = sum(len(found["differences"]) for found in results["commands"].values())
    sys.exit(f"{failed} runs ended otherwise, see {options.output}" if failed else 0)


def finish(name, command, options, results):
    """Make the kills of a command that are not in the results."""
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        _, writes = in_a_process(command, whole)
        expected = left(whole)
        kills = chosen(writes, options.kills)
        new = {"events": len(writes), "kills": {BEFORE: 0, MIDST: 0}, "equal": 0}
        found = results["commands"].setdefault(name, {**new, "differences": []})
        if found["events"] != len(writes):
            sys.exit(f"{name}: {len(writes)} file events, and {found['events']} before")
        done = sum(found["kills"].values())
        for number, kind in kills[done:]:
            folder = Path(place) / f"killed-{number}-{kind.replace(' ', '-')}"
            start = time.monotonic()
            different = killed(command, folder, (number, kind), expected)
            found["kills"][kind] += 1
            found["equal"] += different is None
            if different is not None:
                found["differences"].append([number, kind, different])
            write_json(options.output, results)
            told = different or f"equal after {time.monotonic() - start:.1f} s"
            print(f"{name}: event {number} of {len(writes)}, {kind}: {told}", flush=True)


def killed(command, folder, at, expected):
    """Kill a command, repeat it, and return how what it left differs from what it should be."""
    if in_a_process(command, folder, at)[0] != signal.SIGKILL:
        return "the event did not come"
    try:
        in_a_process(command, folder)
        got = left(folder)
    except (RuntimeError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    other = [name for name, value in expected.items() if got[name] != value]
    files = sorted({*got["files"]} ^ {*expected["files"]})
    return f"other {', '.join([*other, *files])}" if other else None


if __name__ == "__main__":
    main()
