"""Time each layer beside its baselines, and take their memory.

    KERAS_BACKEND=torch python benchmarks/measure.py

runs every case; `--cases main` one of them, `--batch`, `--time`, `--features` and `--units` one
of your own, named by `--name`. Written to benchmarks/results/<device>-<backend>.json, where the
other cases stay as they are, by the name of the case:

    command, versions, device, case (its sizes), rounds
    layers    one row a layer: layer, path, training, inference (median milliseconds),
              first_call (seconds of the first training step, compilation included),
              peak (megabytes a sample that training takes, null with `--no-memory`) and
              baselines: the same numbers of each, and `ratio`, the layer's numbers to its:
              for training and inference the median of the rounds and its quartiles

All run in turn, in one process, so that what else the machine does meets all; memory is that
of a fresh process for each (on a GPU the framework's own count). The baseline is the Keras
layer that a layer replaces; `--baselines` names others, of keras.layers. On PyTorch
`torch.nn.LSTM` and the like, in a plain training loop, stand in their place, and the cell as
its authors released it, in a plain loop, joins the momentum LSTM: Keras's layers step there in
Python and go through a sequence backwards in time quadratic in its length. They are in the case
`keras-256` alone.
"""

import argparse
import functools
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
from rich.progress import track

import keras_momentum_rnn as kmr
from keras_momentum_rnn.atomic_files import read_results, write_json
from keras_momentum_rnn.layers.registry import layers_with, our_layers
from keras_momentum_rnn.paths.devices import current_device

BACKEND = keras.config.backend()
# Keras's own layers on PyTorch take 83 s for a step at 784, and join this case alone.
KERAS_ON_TORCH = "keras-256"
LAYERS = [name for name, layer in our_layers().items() if not layer.needs_rule]
FAMILY = list(layers_with("step_size", family="LSTM"))
GATED = [*FAMILY, *layers_with("step_size", family="GRU")]
TWO = ["MomentumLSTM", "AdamLSTM"]
ORTHOGONAL = ["DTRIV", "MomentumDTRIV", "AdamDTRIV"]
# Batch, time, features, units; rounds; layers. `pmnist` is the MomentumRNN paper's permuted
# MNIST, `ptb` its Penn Treebank; time and memory are drawn over the cases that differ in time
# and in units alone.
CASES = {
    "main": ((64, 128, 32, 128), 15, [*GATED, "MomentumRNN", "AdamRNN", "MCRM", "NestedLSTM"]),
    KERAS_ON_TORCH: ((64, 256, 32, 128), 2, TWO),
    "pmnist-128": ((128, 784, 1, 128), 5, FAMILY),
    "pmnist-256": ((128, 784, 1, 256), 3, TWO),
    "ptb": ((20, 70, 400, 1150), 3, TWO),
    "orthogonal": ((32, 784, 1, 170), 5, ORTHOGONAL),
    "time-256": ((8, 256, 8, 64), 5, TWO),
    "time-2048": ((8, 2048, 8, 64), 3, TWO),
    "time-16384": ((8, 16384, 8, 64), 3, TWO),
    "units-64": ((64, 128, 32, 64), 5, TWO),
    "units-256": ((64, 128, 32, 256), 5, TWO),
}
# What a layer stands beside, in addition to what it replaces.
ALSO_BESIDE = {name: ["LSTM"] for name in ORTHOGONAL}
SIZES = ("batch", "time", "features", "units")
# At equal parameters where a cell has more of them: what stands beside MCRM and NestedLSTM.
EQUAL_PARAMETERS = {"MCRM": 13, "NestedLSTM": 16}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--cases", nargs="+", choices=list(CASES), default=list(CASES), metavar="CASE")
    add("--name", help="of a case of your own")
    for name, size in zip(SIZES, CASES["main"][0]):
        add(f"--{name}", type=int, default=size, help="of a case of your own")
    add("--layers", nargs="+", choices=LAYERS, metavar="LAYER")
    add("--rounds", type=int)
    add("--baselines", nargs="+", metavar="KERAS_LAYER")
    add("--no-memory", action="store_true", help="leave the memory out")
    add("--output", type=Path, default=Path(__file__).parent / "results")
    add("--peak", help=argparse.SUPPRESS)
    return parser.parse_args()


class Keras:
    """A model of one layer, of ours or of Keras, trained and asked by Keras."""

    def __init__(self, layer, x, y):
        self.model = keras.Sequential([keras.Input(x.shape[1:]), layer, keras.layers.Dense(1)])
        self.model.compile("sgd", "mse")
        self.x, self.y = x, y

    def train(self):
        self.model.train_on_batch(self.x, self.y)

    def ask(self):
        self.model.predict_on_batch(self.x)


class Torch:
    """A PyTorch module that returns h at all times, in a plain training loop.

    It computes where Keras's layers do: on the GPU where there is one.
    """

    def __init__(self, layer, units, x, y):
        import torch

        place = "cuda" if current_device() == "gpu" else "cpu"
        self.torch, self.layer = torch, layer.to(place)
        self.head = torch.nn.Linear(units, 1).to(place)
        self.x, self.y = torch.tensor(x).to(place), torch.tensor(y).to(place)
        weights = [*layer.parameters(), *self.head.parameters()]
        self.optimizer = torch.optim.SGD(weights, lr=0.01)

    def output(self):
        h = self.layer(self.x)
        return self.head((h[0] if isinstance(h, tuple) else h)[:, -1])

    def train(self):
        self.optimizer.zero_grad()
        loss = self.torch.mean((self.output() - self.y) ** 2)
        loss.backward()
        self.optimizer.step()
        loss.item()

    def ask(self):
        with self.torch.no_grad():
            self.output().cpu().numpy()


def released_momentum_lstm(features, units):
    """The momentum LSTM cell in a plain loop over steps, from the paper's equations."""
    import torch

    class Released(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x_to_gates = torch.nn.Linear(features, 4 * units)
            self.h_to_gates = torch.nn.Linear(units, 4 * units)

        def forward(self, x):
            h = c = x.new_zeros(len(x), units)
            v, outputs = x.new_zeros(len(x), 4 * units), []
            for x_t in x.unbind(1):
                v = 0.6 * v + 0.6 * self.x_to_gates(x_t)
                i, f, a, o = (v + self.h_to_gates(h)).chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(a)
                h = torch.sigmoid(o) * torch.tanh(c)
                outputs.append(h)
            return torch.stack(outputs, 1)

    return Released()


def labels(name, case_name, kinds=None):
    """Return the names of a layer and of its baselines."""
    found = [name]
    replaced = getattr(kmr, name).keras_layer.__name__
    for kind in kinds or [replaced, *ALSO_BESIDE.get(name, [])]:
        if BACKEND != "torch" or case_name == KERAS_ON_TORCH:
            found.append(f"keras.layers.{kind}")
        if BACKEND == "torch":
            found.append("torch.nn." + {"SimpleRNN": "RNN"}.get(kind, kind))
    if name in EQUAL_PARAMETERS:
        found.append("keras.layers.RNN(LSTMCell)")
    if name == "MomentumLSTM" and BACKEND == "torch":
        found.append("released loop")
    return found


def contestant(label, case):
    """Return what bears this name, ready to train."""
    batch, steps, features, units = case
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, steps, features)).astype("float32")
    y = rng.standard_normal((batch, 1)).astype("float32")
    kind = label.rpartition(".")[2]
    if label == "released loop":
        return Torch(released_momentum_lstm(features, units), units, x, y)
    if label.startswith("torch.nn."):
        import torch

        return Torch(getattr(torch.nn, kind)(features, units, batch_first=True), units, x, y)
    if label == "keras.layers.RNN(LSTMCell)":
        return Keras(keras.layers.RNN(keras.layers.LSTMCell(units)), x, y)
    if label.startswith("keras.layers."):
        return Keras(getattr(keras.layers, kind)(units), x, y)
    return Keras(getattr(kmr, label)(units_of(label, case)), x, y)


def units_of(name, case):
    """Return a layer's units: fewer where that makes its parameters those of the LSTM."""
    features, units = case[2:]
    if name not in EQUAL_PARAMETERS:
        return units
    # An LSTM has 4 u (u + d) weights, a nested cell a u^2 + 4 u d.
    a, b, total = EQUAL_PARAMETERS[name], 4 * features, 4 * units * (units + features)
    return round((-b + (b * b + 4 * a * total) ** 0.5) / (2 * a))


def measured(name, case_name, case, options, rounds):
    """Measure one layer beside its baselines."""
    names = labels(name, case_name, options.baselines)
    built = {n: contestant(n, case) for n in names}
    first = {}
    for n, one in built.items():
        start = time.perf_counter()
        one.train()
        first[n] = time.perf_counter() - start
        one.train()
        one.ask()
    seconds = {
        what: timed([getattr(c, verb) for c in built.values()], rounds)
        for what, verb in (("training", "train"), ("inference", "ask"))
    }
    peaks = {n: None if options.no_memory else peak_apart(n, case) for n in built}
    rows = []
    for j, n in enumerate(built):
        row = {"layer": n}
        row |= {w: round(1e3 * float(np.median(s[:, j])), 2) for w, s in seconds.items()}
        row |= {"first_call": round(first[n], 2), "peak": peaks[n]}
        if j:
            row["ratio"] = {w: ratio(s[:, 0], s[:, j]) for w, s in seconds.items()}
            row["ratio"]["first_call"] = round(first[name] / first[n], 2)
            if peaks[n]:
                row["ratio"]["peak"] = round(peaks[name] / peaks[n], 2)
        rows.append(row)
    own, *baselines = rows
    layer = getattr(kmr, name)(units_of(name, case))
    layer.build((None, None, case[2]))
    path = layer.plan(training=True).path
    return {**own, "units": units_of(name, case), "path": path, "baselines": baselines}


def timed(calls, rounds):
    """Return the seconds of each call in each round, `(rounds, calls)`."""
    seconds = np.zeros((rounds, len(calls)))
    for i in range(rounds):
        for j, call in enumerate(calls):
            start = time.perf_counter()
            call()
            seconds[i, j] = time.perf_counter() - start
    return seconds


def ratio(seconds, baseline):
    """Median and quartiles of a ratio, round by round."""
    low, middle, high = np.percentile(seconds / baseline, [25, 50, 75])
    return {"median": round(middle, 3), "quartiles": [round(low, 3), round(high, 3)]}


@functools.cache
def peak_apart(label, case):
    """Return the megabytes a sample that training takes, in a process of its own."""
    sizes = [f"--{n}={size}" for n, size in zip(SIZES, case)]
    command = [sys.executable, __file__, "--peak", label, *sizes]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(run.stdout.split()[-1])


def peak(label, case):
    """Return the megabytes a sample that training takes, in this process."""
    if current_device() == "gpu":
        contestant(label, case).train()
        return peak_of_gpu() / case[0] / 1e6
    # What the framework takes whatever it computes is taken before.
    contestant(label, (case[0], 2, *case[2:])).train()
    before = resident("VmRSS")
    trained = contestant(label, case)
    trained.train()
    # Of the second step: what compilation takes is over. This resets VmHWM.
    Path("/proc/self/clear_refs").write_text("5")
    trained.train()
    return (resident("VmHWM") - before) / case[0] / 1e6


def peak_of_gpu():
    if BACKEND == "torch":
        import torch

        return torch.cuda.max_memory_allocated()
    if BACKEND == "jax":
        import jax

        return jax.devices()[0].memory_stats()["peak_bytes_in_use"]
    import tensorflow as tf

    return tf.config.experimental.get_memory_info("GPU:0")["peak"]


def resident(field):
    """Return bytes of this process's memory, as Linux tells: now, VmRSS, or most, VmHWM."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {field}")


def main():
    options = arguments()
    own = tuple(getattr(options, name) for name in SIZES)
    if options.peak:
        print(round(peak(options.peak, own), 3))
        return
    cases = {name: CASES[name] for name in options.cases}
    if options.name:
        cases = {options.name: (own, 15, LAYERS)}
    options.output.mkdir(parents=True, exist_ok=True)
    # What the framework does once, whatever comes first, is no layer's first call.
    contestant("keras.layers.LSTM", (2, 2, 2, 2)).train()
    for name, (case, rounds, layers) in cases.items():
        rounds = options.rounds or rounds
        rows = [
            measured(layer, name, case, options, rounds)
            for layer in track(options.layers or layers, name)
        ]
        results = {
            "command": " ".join(["python", "benchmarks/measure.py", *sys.argv[1:]]),
            "backend": BACKEND,
            "device": f"{current_device()}, {platform.processor() or platform.machine()}, "
            f"{os.cpu_count()} cores",
            "python": platform.python_version(),
            "keras": keras.__version__,
            BACKEND: __import__(BACKEND).__version__,
            "keras_momentum_rnn": kmr.__version__,
            "case": dict(zip(SIZES, case)),
            "rounds": rounds,
            "layers": rows,
        }
        path = options.output / f"{current_device()}-{BACKEND}.json"
        write_json(path, {**read_results(path, {}), name: results})
        for row in rows:
            ratios = [
                f"{b['ratio']['training']['median']} of {b['layer']}" for b in row["baselines"]
            ]
            print(f"{row['layer']:14} {row['path']:6} {row['training']:9} ms,", *ratios)
        print(path)


if __name__ == "__main__":
    main()
