"""Time one training step of each layer beside the Keras layer that it replaces.

    KERAS_BACKEND=torch python benchmarks/training_step.py

The two run in turn, in one process, so that what else the machine does meets both. Written
to benchmarks/results/<device>-<backend>.json: for each layer the median milliseconds of its
step and of its baseline's, the median of their ratio, round by round, and its quartiles; the
path that the layer takes; command, versions, device. On PyTorch `torch.nn.LSTM` and `GRU`,
in a plain training loop, are timed in the same rounds: Keras's own layers step in Python.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

import keras
import numpy as np
from rich.progress import track

import keras_momentum_rnn as kmr

BACKEND = keras.config.backend()
LAYERS = [name for name in kmr.layers.__all__ if not name.startswith("Rule")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", nargs="+", default=LAYERS, choices=LAYERS, metavar="LAYER")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--time", type=int, default=128)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu", help="its name in the file's name")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args()


def keras_step(layer, x, y):
    """Return a function that takes one training step of a model of one layer."""
    model = keras.Sequential([keras.Input(x.shape[1:]), layer, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return lambda: model.train_on_batch(x, y)


def torch_step(kind, units, x, y):
    """Return a function that takes one training step of PyTorch's own layer."""
    import torch

    x, y = torch.tensor(x), torch.tensor(y)
    layer = getattr(torch.nn, kind)(x.shape[2], units, batch_first=True)
    head = torch.nn.Linear(units, 1)
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.01)

    def step():
        optimizer.zero_grad()
        loss = torch.mean((head(layer(x)[0][:, -1]) - y) ** 2)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def timed(steps, rounds):
    """Return the seconds of each step in each round, `(rounds, steps)`; all run once before."""
    for step in steps:
        step()
        step()
    seconds = np.zeros((rounds, len(steps)))
    for i in range(rounds):
        for j, step in enumerate(steps):
            start = time.perf_counter()
            step()
            seconds[i, j] = time.perf_counter() - start
    return seconds


def ratio(seconds, baseline):
    """Median and quartiles of a ratio, round by round."""
    low, middle, high = np.percentile(seconds / baseline, [25, 50, 75])
    return {"median": round(middle, 3), "quartiles": [round(low, 3), round(high, 3)]}


def measured(name, options):
    """Time one layer beside its baselines."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((options.batch, options.time, options.features)).astype("float32")
    y = rng.standard_normal((options.batch, 1)).astype("float32")
    layer = getattr(kmr, name)(options.units)
    baseline = layer.keras_layer
    steps = [keras_step(layer, x, y), keras_step(baseline(options.units), x, y)]
    kind = baseline.__name__
    if BACKEND == "torch" and kind in ("LSTM", "GRU"):
        steps.append(torch_step(kind, options.units, x, y))
    seconds = timed(steps, options.rounds)
    plan = layer.plan(training=True)
    row = {
        "layer": name,
        "path": plan.path,
        "milliseconds": round(1e3 * float(np.median(seconds[:, 0])), 2),
        "baseline": f"keras.layers.{kind}",
        "baseline_milliseconds": round(1e3 * float(np.median(seconds[:, 1])), 2),
        "ratio": ratio(seconds[:, 0], seconds[:, 1]),
    }
    if len(steps) == 3:
        row["native"] = f"torch.nn.{kind}"
        row["native_milliseconds"] = round(1e3 * float(np.median(seconds[:, 2])), 2)
        row["native_ratio"] = ratio(seconds[:, 0], seconds[:, 2])
    return row


def main():
    options = arguments()
    rows = [measured(name, options) for name in track(options.layers, "layers")]
    results = {
        "command": " ".join(["python", "benchmarks/training_step.py", *sys.argv[1:]]),
        "backend": BACKEND,
        "device": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "keras": keras.__version__,
        BACKEND: __import__(BACKEND).__version__,
        "keras_momentum_rnn": kmr.__version__,
        "case": {n: getattr(options, n) for n in ("batch", "time", "features", "units")},
        "rounds": options.rounds,
        "layers": rows,
    }
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"{options.device}-{BACKEND}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    for row in rows:
        native = row.get("native_ratio", {}).get("median", "")
        print(
            f"{row['layer']:14} {row['path']:6} {row['milliseconds']:9} ms, "
            f"{row['ratio']['median']:6} of Keras, {native} of native"
        )
    print(path)


if __name__ == "__main__":
    main()
