"""The layers equal the numbers of the cells released with the papers."""

from pathlib import Path

import numpy as np
import pytest
from harness import array, assert_close, gradients, named_weights, run

import keras_momentum_rnn as kmr

GOLDEN = Path(__file__).parent / "golden"


def released_restart(d):
    period = int(d["F"]) or 1000
    return kmr.SRLSTM, {"restart_period": period, "formulation": "released"}, "v"


# name: (file -> layer, its numbers, the slots in the file)
LSTM_FILES = {
    "lstm": lambda d: (kmr.MomentumLSTM, {"momentum": 0.0, "step_size": 1.0}, ""),
    "momentum_lstm": lambda d: (kmr.MomentumLSTM, {"momentum": float(d["mu"])}, "v"),
    "adam_lstm": lambda d: (
        kmr.AdamLSTM,
        {"momentum": float(d["mu"]), "beta": float(d["beta"]), "epsilon": 1e-16},
        "vm",
    ),
    "rmsprop_lstm": lambda d: (
        kmr.RMSPropLSTM,
        {"beta": float(d["beta"]), "epsilon": 1e-16},
        "m",
    ),
    "nesterov_lstm": released_restart,
    "nesterov_lstm_restart": released_restart,
}
PARAMETERS = {
    "kernel": "x2h.weight",
    "bias": "x2h.bias",
    "recurrent_kernel": "h2h.weight",
    "recurrent_bias": "h2h.bias",
}


def assert_gradients(layer, golden, results, of_weights):
    """Compare the gradients of a weighted sum of the outputs with those in the file."""
    cotangents = [golden["R"], *(np.zeros_like(r) for r in results[1:])]
    x, cotangents = golden["x"].astype("float32"), [c.astype("float32") for c in cotangents]
    actual = gradients(layer, x, cotangents)
    expected = {"x": golden["grad_x"], **of_weights}
    assert actual.keys() == expected.keys()
    for name, gradient in expected.items():
        assert_close(actual[name], gradient, tolerance=5e-5)


@pytest.mark.parametrize("name", LSTM_FILES)
def test_lstm_equals_released_code(name):
    golden = dict(np.load(GOLDEN / f"{name}.npz"))
    layer_class, numbers, slots = LSTM_FILES[name](golden)
    numbers = {"step_size": float(golden["s"]), **numbers}
    x = golden["x"].astype("float32")
    layer = layer_class(
        golden["outputs"].shape[2],
        return_sequences=True,
        return_state=True,
        use_recurrent_bias=True,
        **numbers,
    )
    layer.build(x.shape)
    for weight in layer.trainable_weights:
        weight.assign(golden[f"param.{PARAMETERS[weight.name]}"].T)

    results = run(layer, x)
    expected = [golden["outputs"], *(golden[f"final.{s}"] for s in f"hc{slots}")]
    assert len(results) >= len(expected)  # the released LSTM has no v
    for actual, e in zip(results, expected):
        assert_close(actual, e)

    of_weights = {name: golden[f"grad.{p}"].T for name, p in PARAMETERS.items()}
    assert_gradients(layer, golden, results, of_weights)


DTRIV_FILES = {
    "dtriv_expm": (kmr.DTRIV, (), ""),
    "dtriv_cayley": (kmr.DTRIV, (), ""),
    "momentum_dtriv": (kmr.MomentumDTRIV, ("momentum", "step_size"), "v"),
    "sr_dtriv": (kmr.SRDTRIV, ("restart_period", "step_size"), "v"),
    "adam_dtriv": (kmr.AdamDTRIV, ("momentum", "step_size", "beta", "epsilon"), "vm"),
    "rmsprop_dtriv": (kmr.RMSPropDTRIV, ("step_size", "beta", "epsilon"), "m"),
}


@pytest.mark.parametrize("name", DTRIV_FILES)
def test_dtriv_equals_released_code(name):
    golden = dict(np.load(GOLDEN / f"{name}.npz"))
    layer_class, numbers, slots = DTRIV_FILES[name]
    written = {
        "momentum": float(golden["mu"]),
        "step_size": float(golden["s"]),
        "beta": float(golden["beta"]),
        "epsilon": 1e-16,
        "restart_period": int(golden["F"]),
    }
    x = golden["x"].astype("float32")
    units = golden["outputs"].shape[2]
    layer = layer_class(
        units,
        parametrization="cayley" if name == "dtriv_cayley" else "expm",
        initial_rotation="skew",
        return_sequences=True,
        return_state=True,
        **{number: written[number] for number in numbers},
    )
    layer.build(x.shape)
    above = np.triu_indices(units, 1)

    def as_ours(prefix):
        return {
            "kernel": golden[f"{prefix}.input_kernel.weight"].T,
            "skew": golden[f"{prefix}.recurrent_kernel.A"][above],
            "modrelu_bias": golden[f"{prefix}.nonlinearity.b"],
        }

    for weight in layer.trainable_weights:
        weight.assign(as_ours("param")[weight.name])
    assert_close(array(layer.cell.recurrent_matrix()), golden["orthogonal"], tolerance=2e-6)

    results = run(layer, x)
    if name == "sr_dtriv":  # the released cell counts outside of its state
        assert np.all(results.pop() == x.shape[1] % written["restart_period"])
    expected = [golden["outputs"], *(golden[f"final.{s}"] for s in f"h{slots}")]
    for actual, e in zip(results, expected, strict=True):
        assert_close(actual, e)

    counter = [np.zeros((len(x), 1))] * (name == "sr_dtriv")
    assert_gradients(layer, golden, [*results, *counter], as_ours("grad"))


def regated(array, order, wanted):
    """Reorder the gates, along the first axis, from one order to another."""
    parts = dict(zip(order, np.split(array, len(order))))
    return np.concatenate([parts[gate] for gate in wanted])


def shell_parameters(golden, prefix):
    """Kernel, recurrent kernel and bias of LSTM gates [x, h] -> i, f, o, c."""
    weight = regated(golden[f"{prefix}Gates.weight"], "ifoc", "ifco").T
    bias = regated(golden[f"{prefix}Gates.bias"], "ifoc", "ifco")
    units = weight.shape[1] // 4
    return {"kernel": weight[:-units], "recurrent_kernel": weight[-units:], "bias": bias}


def mcrm_memory(golden, prefix):
    gru = f"{prefix}cell_core.gru."
    biases = [regated(golden[f"{gru}bias_{side}"], "rzn", "zrn") for side in ("ih", "hh")]
    return {
        "memory.kernel": regated(golden[f"{gru}weight_ih"], "rzn", "zrn").T,
        "memory.recurrent_kernel": regated(golden[f"{gru}weight_hh"], "rzn", "zrn").T,
        "memory.bias": np.stack(biases),
    }


def nested_memory(golden, prefix):
    inner = shell_parameters(golden, f"{prefix}cell_core.")
    return {f"memory.{name}": value for name, value in inner.items()}


NESTED_FILES = {
    "mcrm": (kmr.MCRM, mcrm_memory, ["h", "c"]),
    "nested_lstm": (kmr.NestedLSTM, nested_memory, ["h", "c", "inner_c"]),
}


@pytest.mark.parametrize("name", NESTED_FILES)
def test_nested_equals_released_code(name):
    golden = dict(np.load(GOLDEN / f"{name}.npz"))
    layer_class, memory, states = NESTED_FILES[name]
    x = golden["x"].astype("float32")
    layer = layer_class(golden["outputs"].shape[2], return_sequences=True, return_state=True)
    layer.build(x.shape)
    values = {**shell_parameters(golden, "param."), **memory(golden, "param.")}
    for weight_name, weight in named_weights(layer).items():
        weight.assign(values[weight_name])
    results = run(layer, x)
    expected = [golden["outputs"], *(golden[f"final.{s}"] for s in states)]
    for actual, e in zip(results, expected, strict=True):
        assert_close(actual, e)

    of_weights = {**shell_parameters(golden, "grad."), **memory(golden, "grad.")}
    assert_gradients(layer, golden, results, of_weights)
