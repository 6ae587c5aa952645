"""Time one training step of each layer beside that of its baselines.

    KERAS_BACKEND=torch python benchmarks/training_step.py

All run in turn, in one process, so that what else the machine does meets all. Written to
benchmarks/results/<device>-<backend>.json: for each layer the median milliseconds of its step
and of each baseline's, the median of their ratio, round by round, and its quartiles; the path
that the layer takes; command, versions, device. The baseline is the Keras layer that the
layer replaces; `--baselines` names others, of keras.layers. On PyTorch `torch.nn.LSTM` and
`GRU`, in a plain training loop, join the Keras layers of these names, which step in Python
and go through a sequence backwards in time quadratic in its length: above 256 steps Keras's
are left out there.
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
# Keras's own layers on PyTorch take 83 s for a step at 784.
LONGEST_IN_PYTHON = 256
LAYERS = [name for name in kmr.layers.__all__ if not name.startswith("Rule")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", nargs="+", default=LAYERS, choices=LAYERS, metavar="LAYER")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--time", type=int, default=128)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--baselines", nargs="+", metavar="KERAS_LAYER")
    parser.add_argument("--device", default="cpu", help="its name in the file's name")
    parser.add_argument("--case", default="", help="a name that goes behind the file's")
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
    steps = {name: keras_step(layer, x, y)}
    for kind in options.baselines or [layer.keras_layer.__name__]:
        if BACKEND != "torch" or options.time <= LONGEST_IN_PYTHON:
            steps[f"keras.layers.{kind}"] = keras_step(
                getattr(keras.layers, kind)(options.units), x, y
            )
        if BACKEND == "torch":
            native = {"SimpleRNN": "RNN"}.get(kind, kind)
            steps[f"torch.nn.{native}"] = torch_step(native, options.units, x, y)
    seconds = dict(zip(steps, timed(list(steps.values()), options.rounds).T))
    own = seconds.pop(name)
    return {
        "layer": name,
        "path": layer.plan(training=True).path,
        "milliseconds": milliseconds(own),
        "baselines": [
            {"layer": n, "milliseconds": milliseconds(s), "ratio": ratio(own, s)}
            for n, s in seconds.items()
        ],
    }


def milliseconds(seconds):
    return round(1e3 * float(np.median(seconds)), 2)


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
    case = f"-{options.case}" if options.case else ""
    path = options.output / f"{options.device}-{BACKEND}{case}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    for row in rows:
        ratios = [f"{b['ratio']['median']} of {b['layer']}" for b in row["baselines"]]
        print(f"{row['layer']:14} {row['path']:6} {row['milliseconds']:9} ms,", *ratios)
    print(path)


if __name__ == "__main__":
    main()
