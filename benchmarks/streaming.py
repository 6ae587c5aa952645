"""Measure a step of a stream, and the size of its file, beside keras.layers.LSTM.

    KERAS_BACKEND=torch python benchmarks/streaming.py

Each layer stands in the same model, layer(units) -> Dense(10) on 40 features. The step model of
`keras_momentum_rnn.streaming` is exported to ONNX and run in onnxruntime on one thread, one
stream, and so is the whole model, on 100 steps. Layers take turns, so that a busy machine
slows all alike. The figures go to benchmarks/results/streaming.json: for each layer the median
time and the quartiles, the ratio to the LSTM's turn beside it, and the sizes of the files. It
needs the extra `export`.
"""

import argparse
import os
import sys
import tempfile
import time
import warnings
from importlib import metadata
from pathlib import Path

import keras
import numpy as np

import keras_momentum_rnn as kmr
from keras_momentum_rnn.atomic_files import write_json
from keras_momentum_rnn.streaming import step_model

RESULT = Path(__file__).parent / "results" / "streaming.json"
FEATURES, CLASSES, LENGTH = 40, 10, 100
LAYERS = {
    "LSTM": keras.layers.LSTM,
    "MomentumLSTM": kmr.MomentumLSTM,
    "SRLSTM": kmr.SRLSTM,
    "AdamLSTM": kmr.AdamLSTM,
    "RMSPropLSTM": kmr.RMSPropLSTM,
    "GRU": keras.layers.GRU,
    "MomentumGRU": kmr.MomentumGRU,
    "MCRM": kmr.MCRM,
    "MomentumDTRIV": kmr.MomentumDTRIV,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        files = {
            (name, kind): written(model, Path(folder) / f"{name}-{kind}.onnx")
            for name, layer in LAYERS.items()
            for kind, model in both(layer, options.units)
        }
        times = {key: [] for key in files}
        calls = {key: caller(path) for key, path in files.items()}
        for _ in range(options.rounds):
            for key, call in calls.items():
                times[key].append(turn(call, 200 if key[1] == "step" else 3))
        found = {
            name: {
                kind: figures(times[name, kind], times["LSTM", kind], files[name, kind])
                for kind in ("step", "sequence")
            }
            for name in LAYERS
        }
    record = {
        "command": " ".join(["python benchmarks/streaming.py", *sys.argv[1:]]),
        "case": {"units": options.units, "features": FEATURES, "steps of a sequence": LENGTH},
        "backend that wrote the files": keras.config.backend(),
        "onnxruntime": metadata.version("onnxruntime"),
        "load average before": [round(x, 1) for x in load],
        "load average": [round(x, 1) for x in os.getloadavg()],
        "layers": found,
    }
    write_json(options.output, record)
    for name, row in found.items():
        print(name, row["step"]["microseconds"], row["step"]["to the LSTM"])


def both(layer, units):
    model = keras.Sequential(
        [keras.Input((LENGTH, FEATURES)), layer(units), keras.layers.Dense(CLASSES)]
    )
    return ("step", step_model(model)), ("sequence", model)


def written(model, path):
    """Export a model for one stream."""
    shapes = [(1, *x.shape[1:]) for x in model.inputs]
    specs = [
        keras.InputSpec(shape=shape, dtype=x.dtype, name=x.name)
        for shape, x in zip(shapes, model.inputs)
    ]
    single = len(specs) == 1
    arrays = [np.zeros(shape, "float32") for shape in shapes]
    model(arrays[0] if single else arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.export(
            str(path), "onnx", verbose=False, input_signature=specs if single else [specs]
        )
    return path


def caller(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    rng = np.random.default_rng(0)
    inputs = {
        x.name: rng.standard_normal(x.shape).astype("float32") for x in session.get_inputs()
    }
    return lambda: session.run(None, inputs)


def turn(call, times):
    call()
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times * 1e6


def figures(times, beside, path):
    low, median, high = np.percentile(times, [25, 50, 75])
    ratio = np.median(np.array(times) / np.array(beside))
    return {
        "microseconds": round(median, 1),
        "quartiles": [round(low, 1), round(high, 1)],
        "to the LSTM": round(ratio, 2),
        "bytes": path.stat().st_size,
    }


if __name__ == "__main__":
    main()
