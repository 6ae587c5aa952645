"""Files of every format, run in their own runtimes and compared with `predict`.

Under test are a layer, how the model uses it (its form), a format, and which sizes the file
leaves open. Keras's own LSTM is a layer like ours.
"""

import warnings
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import keras
import numpy as np
import pytest
from harness import BACKEND, assert_close, randomise

import keras_momentum_rnn as kmr
from keras_momentum_rnn import recurrent
from keras_momentum_rnn.streaming import initial_states, name_outputs, step_model

FEATURES, UNITS, LENGTH, BATCH = 3, 4, 6, 2
# Ten times as much where a rule divides by a root: there float32 itself is less sure.
TOLERANCE = 1e-5

DROPPING = {"dropout": 0.3, "recurrent_dropout": 0.3}
# One of each path, cell and kind of rule, and the layer of Keras that most of them stand for.
LAYERS = {
    "LSTM": keras.layers.LSTM,
    "our LSTM": kmr.LSTM,
    "our GRU": partial(kmr.GRU, **DROPPING),
    "MomentumLSTM": kmr.MomentumLSTM,
    "SRLSTM": partial(kmr.SRLSTM, restart_period=3),
    "SRLSTM released": partial(kmr.SRLSTM, restart_period=3, formulation="released"),
    "AdamLSTM": kmr.AdamLSTM,
    "MomentumGRU": partial(kmr.MomentumGRU, **DROPPING),
    "MomentumGRU reset before": partial(kmr.MomentumGRU, reset_after=False),
    "MomentumRNN": kmr.MomentumRNN,
    "AdamRNN hidden": partial(kmr.AdamRNN, parameterization="hidden"),
    "DTRIV": kmr.DTRIV,
    "MomentumDTRIV cayley": partial(kmr.MomentumDTRIV, parametrization="cayley"),
    "MCRM": kmr.MCRM,
    "MCRM of SimpleRNN": partial(kmr.MCRM, memory=keras.layers.SimpleRNNCell(UNITS)),
    "NestedLSTM": kmr.NestedLSTM,
}
FORMATS = ("tf_saved_model", "onnx", "openvino", "litert", "torch")


@dataclass(frozen=True)
class Cell:
    """A cell of the matrix."""

    layer: str
    form: str
    format: str
    sizes: str  # that the file leaves open

    @property
    def id(self):
        return "-".join((self.layer, self.form, self.format, self.sizes)).replace(" ", "_")


def model_of(cell):
    """Return a model, randomised."""
    make = LAYERS[cell.layer]
    _, length = opened(cell.sizes)
    if cell.form == "stateful":
        x = keras.Input(batch_shape=(BATCH, LENGTH, FEATURES))
    else:
        x = keras.Input((length, FEATURES))
    y = x
    if cell.form == "masked":
        y = keras.layers.Masking()(y)
    if cell.form in ("sequences", "masked"):
        y = make(UNITS, return_sequences=True)(y)
        y = keras.layers.Dense(2)(y)
    elif cell.form == "stacked":
        y = make(UNITS, return_sequences=True)(y)
        y = keras.layers.Dense(2)(make(UNITS)(y))
    elif cell.form == "bidirectional":
        y = keras.layers.Bidirectional(make(UNITS, return_sequences=True))(y)
        y = keras.layers.Dense(2)(y)
    else:
        y = keras.layers.Dense(2)(make(UNITS, stateful=cell.form == "stateful")(y))
    model = keras.Model(x, y)
    randomise(model, np.random.default_rng(0))
    return model


def opened(sizes):
    """Return batch and length as the file has them, None where they are open."""
    return {
        "static": (BATCH, LENGTH),
        "batch": (None, LENGTH),
        "batch of one step": (None, 1),
        "batch and time": (None, None),
    }[sizes]


def inputs_of(cell):
    """Return inputs of another batch and length than the model has seen, where it may."""
    batch, length = opened(cell.sizes)
    x = np.random.default_rng(1).standard_normal((batch or 3, length or 9, FEATURES))
    if cell.form == "masked":
        x[0, -2:] = 0
        x[1, 2] = 0
    return x.astype("float32")


def export(model, cell, path):
    """Write the file."""
    batch, length = opened(cell.sizes)
    kwargs = {}
    if cell.sizes == "static":
        spec = keras.InputSpec(shape=(batch, length, FEATURES), dtype="float32")
        kwargs["input_signature"] = [spec]
    elif cell.format == "torch":
        import torch

        dim = torch.export.Dim
        kwargs["dynamic_shapes"] = {0: dim("batch", min=1, max=64)}
        if length is None:
            kwargs["dynamic_shapes"][1] = dim("time", min=1, max=64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.export(str(path), format=cell.format, verbose=False, **kwargs)


SUFFIX = {
    "tf_saved_model": "",
    "onnx": ".onnx",
    "openvino": ".xml",
    "litert": ".tflite",
    "torch": ".pt2",
}


def run_saved_model(path, *inputs):
    import tensorflow as tf

    loaded = tf.saved_model.load(path)
    results = loaded.serve(*inputs)
    return [
        np.asarray(r) for r in (results if isinstance(results, (list, tuple)) else [results])
    ]


def run_onnx(path, *inputs):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def run_openvino(path, *inputs):
    import openvino

    core = openvino.Core()
    # By its path, OpenVINO 2026.4 does not read the loops of TensorFlow's ONNX files.
    from_bytes = path.endswith(".onnx") and BACKEND == "tensorflow"
    model = core.read_model(Path(path).read_bytes() if from_bytes else path)
    # Left to itself, it computes in bfloat16 on processors that can.
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(list(inputs))
    return [results[i] for i in range(len(compiled.outputs))]


def run_litert(path, *inputs):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=path)
    details = interpreter.get_input_details()
    for detail, x in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != x.shape:
            interpreter.resize_tensor_input(detail["index"], x.shape)
    interpreter.allocate_tensors()
    for detail, x in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def run_torch(path, *inputs):
    import torch

    tensors = keras.tree.map_structure(torch.from_numpy, inputs)
    results = torch.export.load(path).module()(*tensors)
    results = results if isinstance(results, (list, tuple)) else [results]
    return [r.detach().numpy() for r in results]


# OpenVINO reads ONNX files, too.
RUNTIMES = {
    "tf_saved_model": [run_saved_model],
    "onnx": [run_onnx, run_openvino],
    "openvino": [run_openvino],
    "litert": [run_litert],
    "torch": [run_torch],
}

# The packages that a format needs, to write it on a backend and to run it. Keras cannot write
# the others, or not those of its own layers: OpenVINO has no rule for TensorFlow's lists.
NEEDS = {
    ("tf_saved_model", "tensorflow"): (),
    ("tf_saved_model", "jax"): ("tensorflow",),
    ("tf_saved_model", "torch"): ("tensorflow", "torch_xla"),
    ("onnx", "tensorflow"): ("tf2onnx", "onnxruntime", "openvino"),
    ("onnx", "jax"): ("jax2onnx", "onnxruntime", "openvino"),
    ("onnx", "torch"): ("onnxscript", "onnxruntime", "openvino"),
    ("openvino", "torch"): ("openvino",),
    ("litert", "tensorflow"): ("ai_edge_litert",),
    ("litert", "torch"): ("litert_torch", "ai_edge_litert"),
    ("torch", "torch"): (),
}


def missing(format):
    """Return why the active backend cannot try a format, or None."""
    needs = NEEDS.get((format, BACKEND))
    if needs is None:
        return f"no {format} is written from {BACKEND}"
    lacking = [name for name in needs if not find_spec(name)]
    return f"needs {', '.join(lacking)}" if lacking else None


def reset(model):
    for layer in model.layers:
        if getattr(layer, "stateful", False):
            layer.reset_state()


# Each kind of layer and each form once, with all sizes open where the form lets them.
REPRESENTATIVES = (
    ("our LSTM", "bidirectional"),
    ("our GRU", "masked"),
    ("MomentumLSTM", "masked"),
    ("AdamLSTM", "bidirectional"),
    ("SRLSTM", "last"),
    ("SRLSTM released", "last"),
    ("MomentumDTRIV cayley", "sequences"),
    ("MCRM", "stacked"),
    ("MomentumGRU", "last"),
    ("MomentumGRU reset before", "last"),
    ("MomentumRNN", "last"),
    ("AdamRNN hidden", "last"),
    ("NestedLSTM", "last"),
    ("MCRM of SimpleRNN", "last"),
    ("MomentumLSTM", "stateful"),
    ("our LSTM", "stateful"),
)


def representatives():
    for kind in FORMATS:
        why = missing(kind)
        for layer, form in REPRESENTATIVES:
            for sizes in chosen_sizes(kind, form):
                cell = Cell(layer, form, kind, sizes)
                skip = pytest.mark.skipif(bool(why), reason=why or "")
                yield pytest.param(cell, id=cell.id, marks=skip)


def chosen_sizes(kind, form):
    if form == "stateful":
        return ("static",) if kind in ("tf_saved_model", "onnx") else ()
    if kind == "litert" and BACKEND == "torch":
        return ("static",)  # it has no open sizes
    # LiteRT has another list of outputs where the length is known.
    known = {"sequences": "batch", "stacked": "batch", "bidirectional": "batch of one step"}
    is_known = kind == "litert" and form in known
    return ("batch and time", known[form]) if is_known else ("batch and time",)


@pytest.mark.parametrize("cell", representatives())
def test_a_file_predicts_the_same(cell, tmp_path):
    model = model_of(cell)
    x = inputs_of(cell)
    path = str(tmp_path / f"model{SUFFIX[cell.format]}")
    # PyTorch exports a model that was called.
    model(np.zeros([size or 2 for size in model.inputs[0].shape], "float32"))
    reset(model)
    config = model.get_config()
    export(model, cell, path)
    assert model.get_config() == config
    reset(model)
    expected = np.asarray(model.predict(x, verbose=0))
    scaled = cell.layer.startswith("Adam")
    for run in RUNTIMES[cell.format]:
        (actual,) = run(path, x)
        assert_close(actual, expected, 10 * TOLERANCE if scaled else TOLERANCE)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="others do not export what `predict` runs")
@pytest.mark.parametrize("jit_compile", [False, True])
def test_predict_does_not_pay_for_files(jit_compile, monkeypatch, tmp_path):
    """`predict` and `evaluate` keep their path, where only an export needs another."""
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        pytest.skip("on a GPU all graphs keep the fused kernels")
    paths, run = [], recurrent.run
    monkeypatch.setattr(
        recurrent, "run", lambda plan, *a: paths.append(plan.path) or run(plan, *a)
    )
    cell = Cell("MomentumLSTM", "sequences", "tf_saved_model", "batch and time")
    model, x = model_of(cell), inputs_of(cell)
    model.compile(loss="mse", jit_compile=jit_compile)

    def taken(call):
        paths.clear()
        call()
        return set(paths)

    (path,) = {layer.plan().path for layer in model.layers if hasattr(layer, "plan")}
    assert path != "graph_loop"
    assert taken(lambda: model.predict(x, verbose=0)) == {path}
    assert taken(lambda: model.evaluate(x, x[..., :2], verbose=0)) == {path}
    assert taken(lambda: export(model, cell, tmp_path / "model")) == {"graph_loop"}
    assert taken(lambda: tf.function(model)(x)) == {"graph_loop"}


@pytest.mark.skipif(bool(missing("onnx")), reason=str(missing("onnx")))
def test_the_matrix_of_an_orthogonal_layer_is_computed_when_the_file_is_loaded(tmp_path):
    """Nothing that depends on weights alone is left in the graph that runs."""
    import onnx
    import onnxruntime

    cell = Cell("MomentumDTRIV cayley", "last", "onnx", "batch")
    model, path = model_of(cell), str(tmp_path / "model.onnx")
    model(np.zeros((2, LENGTH, FEATURES), "float32"))
    export(model, cell, path)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    onnxruntime.InferenceSession(path, options)
    graph = onnx.load(options.optimized_model_filepath).graph
    products = [node for node in graph.node if node.op_type in ("MatMul", "Gemm")]
    # The read-out, and at most two products in the loop or before it for each step written out.
    assert len(products) <= 1 + 2 * LENGTH


def names_in(path):
    """Return the names of the inputs and of the outputs of an ONNX file."""
    import onnx

    graph = onnx.load(path).graph
    return [i.name for i in graph.input], [o.name for o in graph.output]


def run_step(run, path, names, inputs):
    """Run a file of a step model once."""
    if run in (run_saved_model, run_torch):
        return run(path, inputs)  # which are one argument, a list
    if run is run_litert:
        from ai_edge_litert.interpreter import Interpreter

        # LiteRT has an order of its own, and names.
        run = Interpreter(model_path=path).get_signature_runner()
        outputs = run(**dict(zip(names, inputs, strict=True)))
        return [outputs[name] for name in sorted(outputs, key=lambda n: int(n.split("_")[-1]))]
    return run(path, *inputs)


# Only from PyTorch does Keras write several inputs to OpenVINO.
STEP_FORMATS = {
    "tensorflow": ("tf_saved_model", "onnx", "litert"),
    "jax": ("tf_saved_model", "onnx"),
    "torch": ("onnx", "openvino", "torch"),
}


@pytest.mark.parametrize("kind", STEP_FORMATS[BACKEND])
@pytest.mark.parametrize("layer", ["LSTM", "MomentumLSTM", "AdamLSTM", "DTRIV", "MCRM"])
def test_a_file_of_one_step_predicts_step_by_step(layer, kind, tmp_path):
    if why := missing(kind):
        pytest.skip(why)
    model = model_of(Cell(layer, "sequences", kind, "batch and time"))
    step = step_model(model)
    x = inputs_of(Cell(layer, "sequences", kind, "static"))
    states = initial_states(step, len(x))
    step([x[:, 0], *states])
    path = str(tmp_path / f"step{SUFFIX[kind]}")
    specs = [
        keras.InputSpec(shape=(len(x), *i.shape[1:]), dtype=i.dtype, name=i.name)
        for i in step.inputs
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step.export(path, format=kind, verbose=False, input_signature=[specs])
    if kind == "onnx":
        name_outputs(path, step)
        assert names_in(path) == ([i.name for i in step.inputs], step.output_names)
        assert step.output_names[:2] == ["output_dense", "new_state_lstm_h"] or layer != "LSTM"
    expected = model.predict(x, verbose=0)
    names = [i.name for i in step.inputs]
    for run in RUNTIMES[kind]:
        given = states
        for t in range(x.shape[1]):
            y, *given = run_step(run, path, names, [x[:, t], *given])
            assert_close(y, expected[:, t], tolerance=TOLERANCE)
