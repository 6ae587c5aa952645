"""Files of every format, run in their own runtimes."""

import warnings

import exports
import keras
import numpy as np
import pytest
from exports import BACKEND, Cell
from harness import assert_close

from keras_momentum_rnn import recurrent
from keras_momentum_rnn.streaming import initial_states, name_outputs, step_model

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
    ("MomentumLSTM", "stateful"),
)


def representatives():
    for kind in exports.FORMATS:
        why = exports.missing(kind)
        for layer, form in REPRESENTATIVES:
            for sizes in chosen_sizes(kind, form):
                cell = Cell(layer, form, kind, sizes)
                skip = pytest.mark.skipif(bool(why), reason=why or "")
                yield pytest.param(cell, id=cell.id, marks=skip)


def chosen_sizes(kind, form):
    if form == "stateful":
        return ("static",) if kind in ("tf_saved_model", "onnx") else ()
    # From PyTorch, LiteRT has no open sizes.
    return ("static",) if (kind, BACKEND) == ("litert", "torch") else ("batch and time",)


@pytest.mark.parametrize("cell", representatives())
def test_a_file_predicts_the_same(cell, tmp_path):
    exports.assert_predicts_the_same(cell, tmp_path)


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
    model, x = exports.model_of(cell), exports.inputs_of(cell)
    model.compile(loss="mse", jit_compile=jit_compile)

    def taken(call):
        paths.clear()
        call()
        return set(paths)

    (path,) = {layer.plan().path for layer in model.layers if hasattr(layer, "plan")}
    assert path != "graph_loop"
    assert taken(lambda: model.predict(x, verbose=0)) == {path}
    assert taken(lambda: model.evaluate(x, x[..., :2], verbose=0)) == {path}
    assert taken(lambda: exports.export(model, cell, tmp_path / "model")) == {"graph_loop"}
    assert taken(lambda: tf.function(model)(x)) == {"graph_loop"}


@pytest.mark.skipif(bool(exports.missing("onnx")), reason=str(exports.missing("onnx")))
def test_the_matrix_of_an_orthogonal_layer_is_computed_when_the_file_is_loaded(tmp_path):
    """Nothing that depends on weights alone is left in the graph that runs."""
    import onnx
    import onnxruntime

    cell = Cell("MomentumDTRIV cayley", "last", "onnx", "batch")
    model, path = exports.model_of(cell), str(tmp_path / "model.onnx")
    model(np.zeros((2, exports.LENGTH, exports.FEATURES), "float32"))
    exports.export(model, cell, path)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    onnxruntime.InferenceSession(path, options)
    graph = onnx.load(options.optimized_model_filepath).graph
    products = [node for node in graph.node if node.op_type in ("MatMul", "Gemm")]
    # The read-out, and at most two products in the loop or before it for each step written out.
    assert len(products) <= 1 + 2 * exports.LENGTH


def names_in(path):
    """Return the names of the inputs and of the outputs of an ONNX file."""
    import onnx

    graph = onnx.load(path).graph
    return [i.name for i in graph.input], [o.name for o in graph.output]


def run_step(run, path, names, inputs):
    """Run a file of a step model once."""
    if run is exports.run_saved_model:
        import tensorflow as tf

        loaded = tf.saved_model.load(path)
        return [np.asarray(r) for r in loaded.serve(list(inputs))]
    if run is exports.run_torch:
        import torch

        module = torch.export.load(path).module()
        return [r.detach().numpy() for r in module([torch.from_numpy(x) for x in inputs])]
    if run is exports.run_litert:
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
    if why := exports.missing(kind):
        pytest.skip(why)
    model = exports.model_of(Cell(layer, "sequences", kind, "batch and time"))
    step = step_model(model)
    x = exports.inputs_of(Cell(layer, "sequences", kind, "static"))
    states = initial_states(step, len(x))
    step([x[:, 0], *states])
    path = str(tmp_path / f"step{exports.SUFFIX[kind]}")
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
    for run in exports.RUNTIMES[kind]:
        given = states
        for t in range(x.shape[1]):
            y, *given = run_step(run, path, names, [x[:, t], *given])
            assert_close(y, expected[:, t], tolerance=exports.TOLERANCE)
