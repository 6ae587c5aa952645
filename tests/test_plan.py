"""Plans: which path a call takes, why, and that every call has one."""

import dataclasses

import hypothesis
import hypothesis.strategies as st
import keras
import numpy as np
import pytest
from harness import BACKEND

import keras_momentum_rnn as kmr
from keras_momentum_rnn import recurrent
from keras_momentum_rnn.layers import plain
from keras_momentum_rnn.paths import plan as planning
from keras_momentum_rnn.paths import registry, run
from keras_momentum_rnn.paths.native.runtime import SWITCH

# With the kernel, see `SERVED`.
pytestmark = pytest.mark.usefixtures("no_native_kernel")

FILTERS = "the rule filters the input in a loop over steps"
OFF = f"no native kernel: {SWITCH}=0"
STEPS = planning.Plan("step", "a test")
NOT_ZERO = "the slots do not start at zero"
ONLY_TANH = "fused and native kernels have tanh and sigmoid alone"


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch has a fused path on the CPU")
@pytest.mark.parametrize(
    "options, call, path, reason",
    [
        ({"use_cudnn": False}, {}, "step", "use_cudnn=False"),
        ({"unroll": True}, {}, "step", "unroll=True"),
        ({"stateful": True}, {}, "step", f"{OFF}; {NOT_ZERO}"),
        ({}, {"slots": True}, "step", f"{OFF}; {NOT_ZERO}"),
        ({"activation": "relu"}, {}, "filter", f"{ONLY_TANH}; {FILTERS}"),
        ({"recurrent_activation": "relu"}, {}, "filter", f"{ONLY_TANH}; {FILTERS}"),
        (
            {"recurrent_dropout": 0.1},
            {"training": True},
            "filter",
            f"{OFF}; recurrent dropout acts on h; {FILTERS}",
        ),
        (
            {"dropout": 0.1, "implementation": 1},
            {"training": True},
            "step",
            f"{OFF}; each gate has a dropout mask of its own",
        ),
        (
            {"dtype": "mixed_float16"},
            {},
            "filter",
            "no native kernel computes in float16; "
            f"no fused kernel computes in float16; {FILTERS}",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_plan_gives_its_reason(options, call, path, reason):
    plan = kmr.MomentumLSTM(4, **options).plan(features=3, **call)
    assert (plan.path, plan.reason) == (path, reason)


@pytest.mark.parametrize("device", ["cpu"], indirect=True)
def test_a_cell_of_one_implementation_has_one_dropout_mask(device):
    plan = kmr.MomentumRNN(4, dropout=0.5).plan(training=True, features=3)
    assert plan.path in ("fused", "filter")


@pytest.mark.parametrize("device", ["native"], indirect=True)
def test_a_recurrent_dropout_that_is_set_later_is_planned_anew(device):
    layer = kmr.MCRM(4)
    assert layer.plan(training=True, features=3).path == "native"
    layer.cell.recurrent_dropout = 0.5
    plan = layer.plan(training=True, features=3)
    assert plan.path == "step" and "recurrent dropout acts on h" in plan.reason


@pytest.mark.parametrize("device", ["cpu"], indirect=True)
def test_a_dropout_that_is_set_later_is_planned_anew(device):
    layer = kmr.MomentumLSTM(4, implementation=1)
    assert layer.plan(training=True, features=3).path in ("fused", "filter")
    layer.cell.dropout = 0.5
    plan = layer.plan(training=True, features=3)
    assert plan.path == "step" and "each gate has a dropout mask" in plan.reason


def test_a_plan_that_depends_on_the_width_asks_for_it():
    layer = kmr.MomentumRNN(2)
    paths = ("fused" if BACKEND == "torch" else "filter", "step")
    with pytest.raises(ValueError, match=r"depends on the width of its input.*features=None"):
        layer.plan()
    assert (layer.plan(features=1).path, layer.plan(features=4).path) == paths
    layer.build((None, None, 4))
    assert layer.plan().path == paths[1]


CALL = {
    "backend": ("tensorflow", "jax", "torch"),
    "device": ("cpu", "gpu"),
    "dtype": registry.ALL_DTYPES,
    "cell": ("SomeCell",),
    "recurrence": (*registry.RECURRENCES, None),
    "features": (1, 4, 2**19, 2**21),
    "units": (1, 4, 2**10),
    "drive_width": (1, 4, 2**10),
    "rule": ("SomeRule",),
    "rule_kind": ("none", "linear", "elementwise", "scaled", "other"),
    "dropout": (None, "input", "gates"),
    "exported": (None, None, "graph", "open graph", "served graph", "torchscript"),
    "use_cudnn": ("auto", True, False),
    "native_absence": (None, "numba is not installed"),
}
ANY_CALL = st.builds(
    planning.Call,
    **{
        field.name: st.sampled_from(CALL.get(field.name, (False, True)))
        for field in dataclasses.fields(planning.Call)
    },
)


PLAIN_CALL = {
    **{field.name: False for field in dataclasses.fields(planning.Call)},
    "dtype": "float32",
    "cell": "SomeCell",
    "recurrence": "lstm",
    "standard_activations": True,
    "drive_from_input": True,
    "features": 2,
    "units": 4,
    "drive_width": 16,
    "rule": "SomeRule",
    "dropout": None,
    "exported": None,
    "use_cudnn": "auto",
    "native_absence": "numba is not installed",
}
HERE = {"device": "cpu", "rule_kind": "scaled", "native_absence": None}
# What each kernel serves beside the plain call.
SERVED = {
    "native-torch": ("native", {"backend": "torch", **HERE}),
    "native-jax": ("native", {"backend": "jax", "training": True, **HERE}),
    "native-tensorflow": ("native", {"backend": "tensorflow", "training": True, **HERE}),
    "fused-torch": ("fused", {"backend": "torch", "device": "cpu", "rule_kind": "linear"}),
    "fused-plain": ("fused", {"backend": "torch", "device": "cpu", "rule_kind": "none"}),
    "fused-jax": ("fused", {"backend": "jax", "device": "gpu", "rule_kind": "linear"}),
    "fused-jax-none": ("fused", {"backend": "jax", "device": "gpu", "rule_kind": "none"}),
    "fused-stock": ("fused", {"backend": "tensorflow", "device": "gpu", "rule_kind": "linear"}),
    "drive-torch": ("drive", {"backend": "torch", "device": "gpu", "rule_kind": "scaled"}),
    "drive-jax": ("drive", {"backend": "jax", "device": "gpu", "rule_kind": "scaled"}),
    "drive-stock": ("drive", {"backend": "tensorflow", "device": "gpu", "rule_kind": "scaled"}),
    "drive-wide": (
        "drive",
        {"backend": "tensorflow", "device": "gpu", "rule_kind": "linear", "features": 16},
    ),
    "filter": ("filter", {"backend": "jax", "device": "cpu", "rule_kind": "linear"}),
}
NATIVES = ("native-torch", "native-jax", "native-tensorflow")
DRIVEN = ("drive-torch", "drive-jax", "drive-stock")
OWN = (*NATIVES, "fused-torch", "fused-plain", "fused-jax", "fused-stock", *DRIVEN)
FILTERING = ("fused-torch", "fused-jax", "fused-stock", "filter")
PLAIN = ("fused-plain", "fused-jax-none")
# What alone keeps a kernel from a call that it would serve.
KEPT_AWAY = [
    *((name, "use_cudnn", False) for name in SERVED),
    *((name, "unroll", True) for name in SERVED),
    *((name, "exported", "graph") for name in SERVED),
    *((name, "rule_kind", "other") for name in SERVED),
    *((name, "rule_kind", "elementwise") for name in FILTERING),
    *((name, "recurrence", None) for name in OWN),
    *((name, "standard_activations", False) for name in OWN),
    *((name, "recurrent_dropout", True) for name in OWN if name not in NATIVES),
    *((name, "rule_learns", True) for name in DRIVEN),
    *((name, "transformed", True) for name in ("fused-torch", "drive-torch")),
    *((name, "drive_from_input", False) for name in (*FILTERING, *PLAIN)),
    *((name, "slots_given", True) for name in (*FILTERING, "drive-wide")),
    *((name, "stateful", True) for name in FILTERING),
    *((name, "dropout", "gates") for name in (*FILTERING, *PLAIN)),
    *((name, "features", 16) for name in FILTERING),
    *((name, "features", 0) for name in (*FILTERING, *PLAIN)),
    *((name, "rule_overflows", True) for name in (*FILTERING, *DRIVEN)),
    *((name, "dtype", "bfloat16") for name in FILTERING[:3]),
    ("drive-jax", "dtype", "bfloat16"),
    *(
        (name, "dtype", "float64")
        for name in ("fused-jax", "fused-stock", "drive-jax", "drive-stock")
    ),
    *((name, "rule_extreme", True) for name in NATIVES),
    *((name, "rule_learns", True) for name in NATIVES),
    *((name, "transformed", True) for name in NATIVES),
    *((name, "native_absence", "numba is not installed") for name in NATIVES),
    *((name, "use_cudnn", True) for name in NATIVES),
    *(
        (name, "recurrence", recurrence)
        for name in OWN
        if name not in NATIVES
        for recurrence in ("released", "modrelu")
    ),
    *((name, "device", "cpu") for name in ("fused-jax", "fused-stock", *DRIVEN)),
    ("fused-jax-none", "recurrence", "gru"),
    *((name, "features", size) for name in NATIVES for size in (0, 2**21)),
    *((name, "dtype", dtype) for name in NATIVES for dtype in ("float64", "bfloat16")),
    *((name, "device", "gpu") for name in NATIVES),
]


@pytest.mark.parametrize(
    ("name", "field", "value"), KEPT_AWAY, ids=[f"{n}-{f}-{v}" for n, f, v in KEPT_AWAY]
)
def test_each_condition_alone_keeps_a_kernel_away(name, field, value):
    path, served = SERVED[name]
    call = planning.Call(**PLAIN_CALL | served)
    assert planning.choose(call).path == path
    assert planning.choose(dataclasses.replace(call, **{field: value})).path != path


@pytest.mark.parametrize("name", NATIVES)
@pytest.mark.parametrize("recurrence", ["lstm", "gru", "elman", "modrelu", "nested_gru"])
def test_the_native_kernel_drops_h_but_around_a_memory(name, recurrence):
    path, served = SERVED[name]
    call = planning.Call(**PLAIN_CALL | served | {"recurrence": recurrence})
    assert planning.choose(call).path == path
    dropped = dataclasses.replace(call, recurrent_dropout=True, dropout="gates")
    assert (planning.choose(dropped).path == path) == (recurrence != "nested_gru")


@pytest.mark.parametrize(("field", "value"), [("stateful", True), ("features", 16)])
def test_without_a_rule_nothing_needs_to_be_filtered(field, value):
    path, served = SERVED["fused-plain"]
    call = planning.Call(**PLAIN_CALL | served | {field: value})
    assert planning.choose(call).path == path


@pytest.mark.parametrize("name", NATIVES)
@pytest.mark.parametrize(
    ("recurrence", "units"), [("lstm", 350), ("nested_gru", 195), ("nested_lstm", 175)]
)
def test_a_native_kernel_refuses_more_weights_than_it_is_fast_for(name, recurrence, units):
    """A few more than so many times 4 units are too many; a memory's weights count."""
    _, served = SERVED[name]
    paths = []
    for size in (units, units + 15):
        size *= 4
        sizes = {"recurrence": recurrence, "units": size, "drive_width": 4 * size}
        paths.append(planning.choose(planning.Call(**PLAIN_CALL | served | sizes)).path)
    assert paths[0] == "native" != paths[1]


@hypothesis.settings(max_examples=200, deadline=None)
@hypothesis.given(call=ANY_CALL)
def test_every_call_has_one_plan_that_serves_it(call):
    plan = planning.choose(call)
    assert plan.reason
    takers = [
        kernel
        for kernel in registry.KERNELS
        if kernel.path == plan.path and kernel.serves_device(call)
    ]
    if call.exported == "torchscript" and call.drops:
        assert plan.path == "step"  # a traced step drops nothing
    elif call.exported and not call.unroll:
        loops = {
            "torchscript": "scripted",
            "open graph": "graph_loop",
            "served graph": "graph_loop",
        }
        assert plan.path == loops.get(call.exported, "step")
    elif call.use_cudnn is False or call.unroll:
        assert plan.path == "step"
    elif plan.path != "step":
        assert [kernel.refusal(call) for kernel in takers].count(None) == 1
    in_steps = plan.path in ("filter", "step") or (
        plan.path == "graph_loop" and call.exported == "served graph"
    )
    large = call.features * call.drive_width >= 2**19
    assert plan.projects_before_loop == (in_steps and large)
    on_jax = (call.backend, call.device) == ("jax", "cpu")
    assert plan.rematerialises == (in_steps and on_jax and call.cheap_steps)


def test_plans_of_layers_without_a_kernel():
    for layer, path in (
        (kmr.AdamRNN(4, activation="relu"), "step"),
        (kmr.SRLSTM(4, formulation="released"), "step"),
        (kmr.MomentumRNN(4, parameterization="hidden"), "step"),
        (kmr.MomentumGRU(4, reset_after=False), "filter"),
        (kmr.MomentumRNN(4, activation="relu"), "filter"),
        (kmr.MomentumDTRIV(4), "filter"),
        (kmr.MCRM(4), "step"),
        (kmr.NestedLSTM(4), "step"),
        (kmr.MCRM(4, memory=keras.layers.GRUCell(4, use_bias=False)), "step"),
    ):
        plan = layer.plan(features=3)
        assert plan.path == path
        assert plan.reason


@pytest.mark.parametrize("device", ["cpu"], indirect=True)
def test_memories_that_no_kernel_knows(device):
    gru, lstm = keras.layers.GRUCell, keras.layers.LSTMCell
    for memory in (
        gru(4, reset_after=False),
        gru(4, activation="relu"),
        lstm(4, recurrent_activation="hard_sigmoid"),
        lstm(4, dropout=0.1),
        gru(4, recurrent_dropout=0.1),
        gru(4, activity_regularizer="l2"),
        gru(4, dtype="float64"),
        kmr.cells.MomentumLSTMCell(4),
        keras.layers.SimpleRNNCell(4),
    ):
        plan = kmr.MCRM(4, memory=memory).plan(features=3)
        assert plan.path == "step" and "MCRMCell has no native kernel" in plan.reason


@pytest.mark.parametrize("device", ["cpu"], indirect=True)
def test_use_cudnn_true_raises_with_the_reason_where_no_kernel_serves(device):
    x = np.zeros((1, 2, 3), "float32")
    with pytest.raises(ValueError, match=r"No fused kernel serves.*unroll=True"):
        kmr.MomentumLSTM(4, use_cudnn=True, unroll=True)(x)
    why = "tanh and sigmoid alone" if BACKEND == "torch" else "no fused kernel for the CPU"
    with pytest.raises(ValueError, match=rf"No fused kernel serves.*{why}"):
        kmr.MomentumLSTM(4, use_cudnn=True, activation="relu")(x)
    # Its recurrence has one, the scaled drive in front of it on a CPU has not.
    with pytest.raises(ValueError, match=r"AdamLSTM.*use_cudnn=True"):
        kmr.AdamLSTM(4, use_cudnn=True)(x)


@pytest.mark.parametrize("module, layer_class", [(recurrent, kmr.AdamLSTM), (plain, kmr.LSTM)])
def test_one_step_is_not_planned(module, layer_class, monkeypatch):
    layer, planned = layer_class(4), []
    layer.build((1, None, 3))
    monkeypatch.setattr(module, "plan_once", lambda *_, **call: planned.append(call) or STEPS)
    for steps, count in ((1, 0), (2, 1)):
        layer.call(keras.ops.zeros((1, steps, 3)))
        assert len(planned) == count
    assert planned[0]["features"] == 3
    if layer_class is kmr.AdamLSTM:
        with pytest.raises(ValueError, match="No fused kernel"):
            layer_class(4, use_cudnn=True)(np.zeros((1, 1, 3), "float32"))


def test_a_refused_call_leaves_no_dropout_masks_behind():
    layer = kmr.MomentumLSTM(4, use_cudnn=True, dropout=0.5, unroll=True)
    for batch in (2, 3):
        with pytest.raises(ValueError, match="No fused kernel"):
            layer(np.zeros((batch, 2, 3), "float32"), training=True)
    layer.use_cudnn = "auto"
    assert layer(np.zeros((4, 2, 3), "float32"), training=True).shape == (4, 4)


def test_a_path_has_one_function_on_each_backend():
    kernels = (*registry.KERNELS, *registry.EXPORTED.values(), registry.UNIVERSAL)
    for backend in ("tensorflow", "jax", "torch"):
        named = {(k.path, k.function) for k in kernels if backend in k.backends}
        assert len({path for path, _ in named}) == len(named)
    for kernel in kernels:
        if BACKEND in kernel.backends:
            assert run.KERNEL_OF[kernel.path].function == kernel.function


@pytest.mark.parametrize(
    "layer_class, name", [(kmr.MCRM, "nested_gru"), (kmr.NestedLSTM, "nested_lstm")]
)
def test_a_memory_has_the_weights_that_plans_count(layer_class, name):
    layer = layer_class(5)
    layer.build((None, None, 2))
    count = sum(
        w.shape[0] * w.shape[1]
        for w in layer.cell.memory.weights
        if len(w.shape) == 2 and w.shape[0] > 2
    )
    assert count == registry.MEMORY_WEIGHTS[name] * 5**2
