"""Time training steps of this checkout beside those of another, such as an older commit.

    git worktree add ../before 1a2b3c4
    KERAS_BACKEND=jax python benchmarks/against.py ../before

Two processes, one for each checkout, take turns, and which goes first changes from round to
round. A program is laid out in memory anew in each process, which alone can move a ratio by a
tenth: the pair is started several times. Results join benchmarks/results/against.json, by
backend and layer:

    before, after   median milliseconds of a step
    starts          after / before of each pair of processes: the median of its rounds
    ratio           the median of the starts, and their quartiles
    case, rounds, commits, load (the load average before and after)
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAYERS = ("MomentumLSTM", "SRLSTM", "AdamLSTM", "AdamGRU", "MomentumRNN", "MCRM")
STEPS = 3  # timed together


def main():
    parser = argparse.ArgumentParser(description="Time this checkout beside another.")
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--layers", nargs="+", default=LAYERS)
    parser.add_argument("--case", nargs=4, type=int, default=(64, 128, 32, 128),
                        metavar="N", help="batch, time, features, units")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--starts", type=int, default=7, help="of each pair of processes")
    options = parser.parse_args()
    import keras
    from measure import record

    load = [os.getloadavg()]
    rows = summary([measured(options) for _ in range(options.starts)])
    load.append(os.getloadavg())
    about = {
        "case": dict(zip(("batch", "time", "features", "units"), options.case)),
        "rounds": options.rounds,
        "commits": {"before": commit(options.other), "after": commit(ROOT)},
        "load": load,
    }
    record("against.json", {**about, "layers": rows}, keras.config.backend())


def summary(starts):
    """Return a dict from layers to the times and ratios of all starts."""
    rows = {}
    for layer in starts[0]:
        times = {
            name: [statistics.median(start[layer][name]) for start in starts]
            for name in ("before", "after")
        }
        ratios = [
            statistics.median(
                new / old for new, old in zip(start[layer]["after"], start[layer]["before"])
            )
            for start in starts
        ]
        low, middle, high = statistics.quantiles(ratios, n=4)
        rows[layer] = {
            **{name: round(1e3 * statistics.median(t), 2) for name, t in times.items()},
            "starts": [round(r, 3) for r in ratios],
            "ratio": [round(r, 3) for r in (middle, low, high)],
        }
        print(layer, rows[layer], flush=True)
    return rows


def measured(options):
    """Start a pair of processes; return a dict from layers to the seconds of each round.

    Of each layer the result has "after" and "before", each a list.
    """
    command = [sys.executable, __file__, "--serve", *map(str, options.case), *options.layers]
    processes = {
        name: subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(folder.resolve())},
        )
        for name, folder in (("before", options.other), ("after", ROOT))
    }
    for name, process in processes.items():
        print(name, process.stdout.readline().strip())
    rows = {}
    for layer in options.layers:
        times = {"after": [], "before": []}
        for number in range(options.rounds):
            for name in sorted(processes, reverse=number % 2 == 0):
                processes[name].stdin.write(layer + "\n")
                processes[name].stdin.flush()
                times[name].append(float(processes[name].stdout.readline()))
        rows[layer] = times
    for process in processes.values():
        process.stdin.close()
        process.wait()
    return rows


def serve(batch, length, features, units, layers):
    """Take training steps of the layers that standard input names, and print their seconds."""
    import keras
    from measure import contestant

    import keras_momentum_rnn

    keras.utils.set_random_seed(0)
    models = {name: contestant(name, (batch, length, features, units)) for name in layers}
    for model in models.values():
        for _ in range(3):
            model.train()
    print(keras_momentum_rnn.__file__, flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(STEPS):
            models[line.strip()].train()
        print((time.perf_counter() - start) / STEPS, flush=True)


def commit(folder):
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*map(int, sys.argv[2:6]), sys.argv[6:])
    else:
        main()
