"""Time layers on a GPU beside Keras's own, and say how far they are from their plain steps.

    KERAS_BACKEND=torch python benchmarks/gpu.py

Both take turns in one process. Results join benchmarks/results/gpu.json, by backend, GPU, case
and layer:

    keras, ours     median milliseconds of a training step
    ratio           of the two, round by round: the median and the quartiles
    predict         the same ratio for a prediction of one batch
    path            what the layer runs
    rounding        the largest difference of its outputs from those of plain steps
    case, rounds, versions, processor, load (the load average before and after)

The backends round products to TF32 where they do so by themselves; NVIDIA_TF32_OVERRIDE=0 and
JAX_DEFAULT_MATMUL_PRECISION=highest in the environment keep float32, and rows of their own.
Above a load average of 0.5 nothing begins, unless --busy says that it may.
"""

import argparse
import os
import sys

LOAD = os.getloadavg()  # before a backend begins, which is work too

import keras  # noqa: E402
import numpy as np  # noqa: E402
from measure import SIZES, contestant, parsed, plain_layer_of, ratio, record, timed  # noqa: E402

import keras_momentum_rnn as kmr  # noqa: E402
from keras_momentum_rnn.paths.devices import current_device  # noqa: E402
from papers.experiments.results_file import gpu_name, processor  # noqa: E402

THREE = ("LSTM", "MomentumLSTM", "AdamLSTM")
ALL = (
    *(*THREE, "RMSPropLSTM", "GRU", "MomentumGRU", "AdamGRU", "SimpleRNN", "MomentumRNN"),
    *("AdamRNN", "MomentumDTRIV", "MCRM", "NestedLSTM"),
)
CASES = {
    "main": ((64, 128, 32, 128), 9, ALL),
    "pmnist-128": ((128, 784, 1, 128), 5, THREE),
    "wide": ((256, 128, 128, 1024), 5, THREE),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--layers", nargs="+", choices=ALL, default=ALL)
    options = parsed(parser, LOAD)
    if current_device() != "gpu":
        sys.exit(f"{keras.config.backend()} sees no GPU here; benchmarks/native.py is for CPUs")
    backend = keras.config.backend()
    for case_name in options.cases:
        case, rounds, layers = CASES[case_name]
        for layer in (layer for layer in layers if layer in options.layers):
            row = measured(layer, case, rounds) | {"load": [LOAD, os.getloadavg()]}
            record("gpu.json", row, conditions(), case_name, "layers", layer)
        about = {
            "case": dict(zip(SIZES, case)),
            "rounds": rounds,
            "versions": {"keras": keras.__version__, backend: sys.modules[backend].__version__},
            "processor": processor(),
        }
        for name, value in about.items():
            record("gpu.json", value, conditions(), case_name, name)


def conditions():
    """Return the name of the results: backend and GPU, and whether TF32 is switched off."""
    backend, told = keras.config.backend(), os.environ.get
    whole = told("NVIDIA_TF32_OVERRIDE") == "0"
    whole &= backend != "jax" or told("JAX_DEFAULT_MATMUL_PRECISION") == "highest"
    return ", ".join([backend, gpu_name(), *(["float32"] if whole else [])])


def measured(layer, case, rounds):
    """Return a row of the results."""
    kind = plain_layer_of(layer)
    both = [contestant(f"keras.layers.{kind}", case), contestant(layer, case)]
    calls = [[getattr(one, task) for one in both] for task in ("train", "predict")]
    train, predict = (timed(functions, rounds) for functions in calls)
    keras_, ours = (round(1e3 * float(s), 2) for s in np.median(train, axis=0))
    row = {
        "keras": keras_,
        "ours": ours,
        "ratio": ratio(train[:, 1], train[:, 0]),
        "predict": ratio(predict[:, 1], predict[:, 0]),
        "path": both[1].model.layers[0].plan(training=True).path,
        "rounding": rounding(layer, both[1].x, case[-1]),
    }
    print(f"{layer:14}", row, flush=True)
    return row


def rounding(name, x, units):
    """Return the largest difference between the outputs of a layer and of its plain steps."""
    fast, exact = (getattr(kmr, name)(units, return_sequences=True) for _ in range(2))
    x = keras.ops.convert_to_tensor(x[:16])
    for layer in (fast, exact):
        layer.build(x.shape)
    exact.set_weights(fast.get_weights())
    exact.use_cudnn = False
    one, other = (keras.ops.convert_to_numpy(layer(x)) for layer in (fast, exact))
    return float(f"{np.max(np.abs(one - other)):.1e}")


if __name__ == "__main__":
    main()
