"""Time layers with and without the native kernel, beside the LSTM of the backend.

    KERAS_BACKEND=jax python benchmarks/native.py

All run in turn in one process: the baseline (the layer of Keras; on PyTorch `torch.nn.LSTM`,
`GRU` or `RNN` in a Keras layer, as our plain layers take them without the kernel), the layer on
the path that it takes without the kernel, and on the kernel. Results join
benchmarks/results/native.json, by backend (and what differs from the usual: a processor without
AVX-512, or how idle threads of OpenMP wait, if OMP_WAIT_POLICY says so), case and layer:

    baseline, without, native    median milliseconds of a training step
    ratio, ratio_without         to the baseline: the median of the rounds, and its quartiles
    case, rounds, processor, threads, versions, load (the load average before and after)

Beside other work a heavier layer looks better than it is: above a load average of 0.5 nothing
begins, unless --busy says that it may.
"""

import argparse
import os
import sys

LOAD = os.getloadavg()  # before a backend begins, which is work too

import keras  # noqa: E402
import numpy as np  # noqa: E402
from measure import (  # noqa: E402
    SIZES,
    contestant,
    parsed,
    plain_layer_of,
    ratio,
    record,
    timed,
    with_switch,
)

from keras_momentum_rnn.paths.native import simd  # noqa: E402
from keras_momentum_rnn.paths.native.runtime import thread_count  # noqa: E402
from papers.experiments.results_file import processor  # noqa: E402

LSTMS = ("MomentumLSTM", "NAGLSTM", "SRLSTM", "AdamLSTM", "RMSPropLSTM")
OTHERS = ("MomentumGRU", "AdamGRU", "MomentumRNN", "AdamRNN", "MomentumDTRIV", "AdamDTRIV")
# They have fewer units, so that they have as many parameters as the plain LSTM.
NESTED = ("MCRM", "NestedLSTM")
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


class Switched:
    """A contestant that trains or predicts with the kernel, or without."""

    def __init__(self, label, case, native, task="train"):
        self.native, self.task = native, task
        with_switch(native, lambda: None)
        self.one = contestant(label, case)

    def run(self):
        with_switch(self.native, getattr(self.one, self.task))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    options = parsed(parser, LOAD)
    backend, name = keras.config.backend(), conditions()
    for case_name in options.cases:
        case, rounds, layers = CASES[case_name]
        task = case_name.partition(" ")[0]
        task = task if task in ("predict", "call") else "train"
        rows = {layer: measured(layer, case, rounds, task) for layer in layers}
        row = {
            "case": dict(zip(SIZES, case)),
            "rounds": rounds,
            "processor": processor(),
            "threads": thread_count(),
            "versions": {"keras": keras.__version__, backend: sys.modules[backend].__version__},
            "load": [LOAD, os.getloadavg()],
            "layers": rows,
        }
        record("native.json", row, name, case_name)


def conditions():
    """Return the name of the results: the backend, and what differs from the usual."""
    policy = os.environ.get("OMP_WAIT_POLICY")
    others = {"without AVX-512": simd.VECTORS == 1, f"OMP_WAIT_POLICY={policy}": policy}
    return ", ".join([keras.config.backend(), *(name for name, met in others.items() if met)])


def baseline_of(layer, task):
    """Return the label of the plain layer."""
    plain = plain_layer_of(layer)
    own = keras.config.backend() == "torch" and task != "call"
    return plain if own else f"keras.layers.{plain}"


def measured(layer, case, rounds, task="train"):
    baseline = baseline_of(layer, task)
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
        "ratio": ratio(seconds[:, 2], seconds[:, 0]),
        "ratio_without": ratio(seconds[:, 1], seconds[:, 0]),
    }
    print(f"{layer:14}", row, flush=True)
    return row


if __name__ == "__main__":
    main()
