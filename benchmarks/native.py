"""Time layers with and without the native kernel, beside the LSTM of the backend.

    KERAS_BACKEND=jax python benchmarks/native.py

All run in turn in one process: the baseline (the layer of Keras; on PyTorch `torch.nn.LSTM`,
`GRU` or `RNN` in a Keras layer, as our plain layers take them without the kernel), the layer on
the path that it takes without the kernel, and on the kernel. Results join
benchmarks/results/native.json, by backend (and what differs from the usual: a processor without
AVX-512, or how idle threads of OpenMP wait, if OMP_WAIT_POLICY says so), case and layer:

    baseline, without, native    median milliseconds of a training step
    ratio, ratio_without         to the baseline: the median of the rounds, and its quartiles
    kernel                       milliseconds of a step that pass inside the kernel
    floor                        milliseconds of the step's products alone, at the peak below
    peak                         GFLOP/s of a product of large matrices, by NumPy
    case, rounds, threads, versions, load (the load average before and after)

Beside other work a heavier layer looks better than it is: above a load average of 0.5 nothing
begins, unless --busy says that it may.
"""

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path
from unittest import mock

LOAD = os.getloadavg()  # before a backend begins, which is work too

import keras  # noqa: E402
import numpy as np  # noqa: E402
from measure import (  # noqa: E402
    EQUAL_PARAMETERS,
    SIZES,
    contestant,
    ratio,
    timed,
    units_of,
)

from keras_momentum_rnn.atomic_files import read_results, write_json  # noqa: E402
from keras_momentum_rnn.paths.native import kernel, simd  # noqa: E402
from keras_momentum_rnn.paths.native.runtime import (  # noqa: E402
    SWITCH,
    thread_count,
)

RESULTS = Path(__file__).parent / "results" / "native.json"
LSTMS = ("MomentumLSTM", "NAGLSTM", "SRLSTM", "AdamLSTM", "RMSPropLSTM")
OTHERS = ("MomentumGRU", "AdamGRU", "MomentumRNN", "AdamRNN", "MomentumDTRIV", "AdamDTRIV")
# They have fewer units, so that they have as many parameters as the plain LSTM.
NESTED = ("MCRM", "NestedLSTM")
# The plain layers by the ends of names, and how many times as wide as h their drive is.
KINDS = {
    "MCRM": ("LSTM", 4),
    "LSTM": ("LSTM", 4),
    "GRU": ("GRU", 3),
    "RNN": ("SimpleRNN", 1),
    "DTRIV": ("SimpleRNN", 1),
}
THREE = ("LSTM", "MomentumLSTM", "AdamLSTM")
CASES = {
    "main": ((64, 128, 32, 128), 15, ("LSTM", *LSTMS, *OTHERS, *NESTED)),
    "pmnist-128": ((128, 784, 1, 128), 5, THREE),
    "small": ((8, 256, 8, 64), 25, THREE),
    "wide": ((32, 64, 64, 512), 7, THREE),
    "predict": ((64, 128, 32, 128), 15, THREE),
    "predict one": ((1, 128, 32, 128), 50, THREE),
    "predict wide": ((32, 64, 64, 512), 7, THREE),
    # One step of a stream, called as it is, which on TensorFlow takes a second.
    "call one step": ((1, 1, 8, 16), 50, THREE),
}
MOST_LOAD = 0.5


class Switched:
    """A contestant that trains or predicts with the kernel, or without."""

    def __init__(self, label, case, native, task="train"):
        self.native, self.task = native, task
        with_switch(native, lambda: None)
        self.one = contestant(label, case)

    def run(self):
        with_switch(self.native, getattr(self.one, self.task))


def with_switch(native, function):
    os.environ[SWITCH] = "1" if native else "0"
    function()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--busy", action="store_true", help="measure beside other work")
    options = parser.parse_args()
    if LOAD[0] > MOST_LOAD and not options.busy:
        sys.exit(f"The load average is {LOAD[0]:.2f}, above {MOST_LOAD}: wait, or pass --busy")
    backend, name = keras.config.backend(), conditions()
    peak = peak_of_products()
    results = read_results(RESULTS, {})
    for case_name in options.cases:
        case, rounds, layers = CASES[case_name]
        task = case_name.partition(" ")[0]
        task = task if task in ("predict", "call") else "train"
        rows = {layer: measured(layer, case, rounds, peak, task) for layer in layers}
        results.setdefault(name, {})[case_name] = {
            "case": dict(zip(SIZES, case)),
            "rounds": rounds,
            "threads": thread_count(),
            "versions": {"keras": keras.__version__, backend: sys.modules[backend].__version__},
            "peak": round(peak / 1e9),
            "load": [LOAD, os.getloadavg()],
            "layers": rows,
        }
        write_json(RESULTS, results)


def conditions():
    """Return the name of the results: the backend, and what differs from the usual."""
    policy = os.environ.get("OMP_WAIT_POLICY")
    others = {
        "without AVX-512": simd.VECTORS == 1,
        f"OMP_WAIT_POLICY={policy}": policy,
    }
    return ", ".join([keras.config.backend(), *(name for name, met in others.items() if met)])


def baseline_of(layer, task):
    """Return the label of the plain layer, and how many times as wide as h its drive is."""
    plain, gates = next(kind for end, kind in KINDS.items() if layer.endswith(end))
    own = keras.config.backend() == "torch" and task != "call"
    return plain if own else f"keras.layers.{plain}", gates


def measured(layer, case, rounds, peak, task="train"):
    baseline, gates = baseline_of(layer, task)
    contestants = [
        Switched(baseline, case, False, task),
        Switched(layer, case, False, task),
        Switched(layer, case, True, task),
    ]
    for one in contestants:
        for _ in range(2):
            one.run()
    seconds = timed([one.run for one in contestants], rounds)
    baseline, without, native = (round(1e3 * float(s), 2) for s in np.median(seconds, axis=0))
    row = {
        "baseline": baseline,
        "without": without,
        "native": native,
        "kernel": inside_the_kernel(contestants[2], rounds),
        "ratio": ratio(seconds[:, 2], seconds[:, 0]),
        "ratio_without": ratio(seconds[:, 1], seconds[:, 0]),
    }
    if task == "train":
        row["floor"] = round(1e3 * operations(layer, gates, case) / peak, 2)
    print(f"{layer:14}", row, flush=True)
    return row


def inside_the_kernel(contestant, rounds):
    """Return the median milliseconds of a step between the kernel's calls and their returns."""
    spent = []

    def watched(function):
        def call(*arguments, **options):
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                spent[-1] += time.perf_counter() - start

        return call

    # What infers calls `forward`.
    names = "forward", "backward"
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(kernel, name, watched(getattr(kernel, name))))
        for _ in range(rounds):
            spent.append(0.0)
            contestant.run()
    return round(1e3 * float(np.median(spent)), 2)


def operations(layer, gates, case):
    """Return the floating-point operations of a training step's products.

    Forward x W and h U, and back the gradients of W, U and h; that of x is not wanted. A
    nested memory's products go back to what it takes in and to its h.
    """
    batch, length, features, _ = case
    units = units_of(layer, case)
    recurrent = EQUAL_PARAMETERS.get(layer, gates) * units
    return 2 * batch * length * units * (2 * gates * features + 3 * recurrent)


def peak_of_products(size=1024, repeats=20):
    """Return the operations a second of a product of large matrices."""
    a = np.ones((size, size), np.float32)
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


if __name__ == "__main__":
    main()
