"""What do float16 and int8 files cost in accuracy, on handwritten digits read row by row?

    KERAS_BACKEND=tensorflow python benchmarks/quantised.py

Trains rows of 8 pixels -> layer(32) -> Dense(10) on 1,200 of scikit-learn's digits. Writes
LiteRT and ONNX files in float32, float16 and int8 (weights of 8 bits, chosen after training).
Runs all on the other 597 digits in their own runtimes.

The figures go to benchmarks/results/quantised.json: accuracy, how often the prediction differs
from the float32 file's, and bytes. It needs the extras `export` and `tasks`.
"""

import argparse
import sys
import tempfile
import warnings
from importlib import metadata
from pathlib import Path

import keras
import numpy as np

import keras_momentum_rnn as kmr
from keras_momentum_rnn.atomic_files import write_json

RESULT = Path(__file__).parent / "results" / "quantised.json"
LAYERS = {
    "LSTM": keras.layers.LSTM,
    "MomentumLSTM": kmr.MomentumLSTM,
    "RMSPropLSTM": kmr.RMSPropLSTM,
    "AdamLSTM": kmr.AdamLSTM,
    "MCRM": kmr.MCRM,
    "MomentumDTRIV": kmr.MomentumDTRIV,
}
STEPS, TRAINED = 8, 1200


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    x, y = digits()
    found = {}
    for name, layer in LAYERS.items():
        runs = [measured(layer, x, y, options.epochs, seed) for seed in range(options.seeds)]
        found[name] = {kind: mean([run[kind] for run in runs]) for kind in runs[0]}
        print(name, found[name], flush=True)
    record = {
        "command": " ".join(
            ["KERAS_BACKEND=tensorflow python benchmarks/quantised.py", *sys.argv[1:]]
        ),
        "seeds": options.seeds,
        "versions": {
            name: metadata.version(name)
            for name in ("keras", "tensorflow", "onnxruntime", "ai-edge-litert")
        },
        "layers": found,
    }
    write_json(options.output, record)


def digits():
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    return x[order].reshape(-1, STEPS, 8).astype("float32") / 16, y[order]


def measured(layer, x, y, epochs, seed):
    """Return what becomes of each kind of file for one seed."""
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [keras.Input((STEPS, 8)), layer(32), keras.layers.Dense(10, activation="softmax")]
    )
    model.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy")
    model.fit(x[:TRAINED], y[:TRAINED], batch_size=32, epochs=epochs, verbose=0)
    unseen, truth, results, before = x[TRAINED:], y[TRAINED:], {}, {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, (write, run) in FILES.items():
            path = Path(folder) / kind.replace(" ", ".")
            write(model, path, unseen)
            guess = run(str(path), unseen).argmax(-1)
            plain = before.setdefault(kind.split()[0], guess)
            results[kind] = {
                "accuracy": float(np.mean(guess == truth)),
                "changed": float(np.mean(guess != plain)),
                "bytes": path.stat().st_size,
            }
    return results


def mean(results):
    return {key: round(float(np.mean([r[key] for r in results])), 4) for key in results[0]}


def litert(kind):
    def write(model, path, x):
        import tensorflow as tf

        options = {} if kind == "float32" else {"optimizations": [tf.lite.Optimize.DEFAULT]}
        if kind == "float16":
            options["target_spec"] = {"supported_types": [tf.float16]}
        named = path.with_suffix(".tflite")
        # The states at the start are constants of the file: one sample keeps it small.
        spec = keras.InputSpec(shape=(1, *x.shape[1:]), dtype="float32")
        model.export(str(named), "litert", verbose=False, input_signature=[spec], **options)
        named.rename(path)

    return write


def onnx(change=None):
    def write(model, path, x):
        model.export(str(path), "onnx", verbose=False)
        if change is not None:
            change(path)

    return write


def onnx_half(path):
    import onnx as onnx_package
    from onnxruntime.transformers.float16 import convert_float_to_float16

    half = convert_float_to_float16(with_fixed_weights(path), keep_io_types=True)
    onnx_package.save(half, path)


def onnx_int8(path):
    import onnx as onnx_package
    from onnxruntime.quantization import QuantType, quantize_dynamic

    onnx_package.save(with_fixed_weights(path), path)
    quantize_dynamic(
        path, path, weight_type=QuantType.QInt8, extra_options={"EnableSubgraph": True}
    )
    model = onnx_package.load(path)
    # The weights of before are left in the file.
    read = read_in(model)
    kept = [weight for weight in model.graph.initializer if weight.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    onnx_package.save(model, path)


def with_fixed_weights(path):
    """Return the model of a file whose loops read their weights, and do not carry them.

    tf2onnx hands weights from step to step as states, and a state is not quantised.
    """
    import onnx as onnx_package

    model = onnx_package.load(path)
    for loop in [node for node in model.graph.node if node.op_type == "Loop"]:
        (body,) = (a.g for a in loop.attribute if a.name == "body")
        # The inputs of a loop are trips, condition, states; those of its body are alike. The
        # outputs of the body are the condition and the states, those of the loop the states.
        for place in reversed(range(2, len(body.input))):
            name, outside = body.input[place].name, loop.input[place]
            if body.output[place - 1].name != name or loop.output[place - 2] in read_in(model):
                continue
            for node in body.node:
                node.input[:] = [outside if x == name else x for x in node.input]
            for listed, index in (
                (loop.input, place),
                (body.input, place),
                (body.output, place - 1),
                (loop.output, place - 2),
            ):
                del listed[index]
    return model


def read_in(model):
    return {*(output.name for output in model.graph.output), *read_by(model.graph)}


def read_by(graph):
    """Yield the names of what the nodes of a graph read, those of its loops too."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from read_by(attribute.g)
                yield from (output.name for output in attribute.g.output)


def run_litert(path, x):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=path)
    interpreter.allocate_tensors()
    place = interpreter.get_input_details()[0]["index"]
    result = interpreter.get_output_details()[0]["index"]
    found = []
    for sample in x:
        interpreter.set_tensor(place, sample[None])
        interpreter.invoke()
        found.append(interpreter.get_tensor(result)[0])
    return np.array(found)


def run_onnx(path, x):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[0]


FILES = {
    "litert float32": (litert("float32"), run_litert),
    "litert float16": (litert("float16"), run_litert),
    "litert int8": (litert("int8"), run_litert),
    "onnx float32": (onnx(), run_onnx),
    "onnx float16": (onnx(onnx_half), run_onnx),
    "onnx int8": (onnx(onnx_int8), run_onnx),
}


if __name__ == "__main__":
    main()
