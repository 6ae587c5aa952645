"""Without a rule, or at momentum 0 and step size 1, a layer is that of Keras."""

import importlib
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from harness import BACKEND, assert_close, normal, randomise, run
from hypothesis import given, settings
from hypothesis import strategies as st
from masks import MASKS

import keras_momentum_rnn as kmr
from keras_momentum_rnn.layers.plain import PlainLayer

PAIRS = [
    (keras.layers.LSTM, kmr.MomentumLSTM),
    (keras.layers.SimpleRNN, kmr.MomentumRNN),
    (keras.layers.GRU, kmr.MomentumGRU),
    (keras.layers.LSTM, kmr.LSTM),
    (keras.layers.SimpleRNN, kmr.SimpleRNN),
    (keras.layers.GRU, kmr.GRU),
]
BATCH, TIME, FEATURES, UNITS = 3, 6, 3, 4
# JAX and TensorFlow compile or trace a program for each.
EXAMPLES = 12 if BACKEND == "torch" else 6


def name_of(cls):
    return ("" if cls.__module__.startswith("keras.") else "our_") + cls.__name__


OPTIONS = {
    "activation": ["tanh", "softsign"],
    "use_bias": [True, False],
    "return_sequences": [True, False],
    "return_state": [True, False],
    "go_backwards": [True, False],
    "stateful": [True, False],
    "unroll": [False, True],
    "zero_output_for_mask": [False, True],
    "implementation": [1, 2],
    "dropout": [0.0, 0.4],
    "recurrent_dropout": [0.0, 0.3],
}


def without_effect(keras_class, ours):
    """Return the numbers at which the rule of our class, if it has one, changes nothing."""
    return {} if issubclass(ours, keras_class) else {"momentum": 0.0, "step_size": 1.0}


def differs_in_keras(options, mask, initial):
    """Combinations in which the unrolled loop of Keras fails, or contradicts its rolled one."""
    if mask is None or not options["unroll"]:
        return False
    if BACKEND == "torch":
        return options["go_backwards"]  # raises
    if BACKEND == "tensorflow":  # zeroes by the mask before it is reversed
        return options["go_backwards"] and options["zero_output_for_mask"]
    # Ignores zero_output_for_mask, and shows 0 before the first step.
    return options["zero_output_for_mask"] or initial


@pytest.mark.parametrize("keras_class, ours", PAIRS, ids=name_of)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(
    options=st.fixed_dictionaries({n: st.sampled_from(v) for n, v in OPTIONS.items()}),
    mask=st.sampled_from([None, *MASKS]),
    initial=st.booleans(),
    training=st.booleans(),
)
def test_plain_layer(keras_class, ours, options, mask, initial, training):
    if differs_in_keras(options, mask, initial or options["stateful"]):
        return
    by_gate = options["implementation"] == 1 and options["dropout"] and training
    if ours is kmr.LSTM or ours is kmr.GRU:
        # There Keras's own layers fail without `use_cudnn=False`.
        options = {**options, "use_cudnn": False if by_gate else "auto"}
    rng = np.random.default_rng(0)
    if keras_class is keras.layers.SimpleRNN:
        del options["implementation"]
        theirs = keras_class(UNITS, seed=7, **options)
    else:
        theirs = keras_class(UNITS, seed=7, **{**options, "use_cudnn": False})
    layer = ours(UNITS, seed=7, **without_effect(keras_class, ours), **options)
    theirs.build((BATCH, TIME, FEATURES))
    layer.build((BATCH, TIME, FEATURES))
    randomise(theirs, rng)
    for target, source in zip(layer.trainable_weights, theirs.trainable_weights):
        assert target.name == source.name
        target.assign(source)
    call = {"training": training}
    if mask is not None:
        call["mask"] = MASKS[mask](BATCH, TIME)
    count = len(theirs.state_size)
    if initial:
        call["initial_state"] = [normal(rng, BATCH, UNITS) for _ in range(count)]
    for _ in range(2):  # the second call continues a stateful layer
        x = normal(rng, BATCH, TIME, FEATURES)
        expected, actual = run(theirs, x, **call), run(layer, x, **call)
        assert len(actual) >= len(expected)  # ours may have slots behind
        for e, a in zip(expected, actual):
            assert_close(a, e, tolerance=2e-6)


CELLS = {
    "LSTMCell": kmr.MomentumLSTMCell,
    "GRUCell": kmr.MomentumGRUCell,
    "SimpleRNNCell": kmr.MomentumRNNCell,
}
# Keras's own test files: the class of each, and what of ours takes whose place.
ITS_OWN = [
    ("lstm_test", "LSTMTest", {"LSTM": kmr.MomentumLSTM}),
    ("lstm_test", "LSTMTest", {"LSTM": kmr.LSTM}),
    ("gru_test", "GRUTest", {"GRU": kmr.MomentumGRU}),
    ("gru_test", "GRUTest", {"GRU": kmr.GRU}),
    ("simple_rnn_test", "SimpleRNNTest", {"SimpleRNN": kmr.MomentumRNN}),
    ("simple_rnn_test", "SimpleRNNTest", {"SimpleRNN": kmr.SimpleRNN}),
    ("stacked_rnn_cells_test", "StackedRNNTest", CELLS),
]
# One unpacks exactly one state, the other looks into Keras's own dispatch to a GPU.
LEFT_OUT = {"test_pass_return_state", "test_torch_cudnn_dispatch_fires"}


def its_own_tests():
    """The tests of Keras's own files, where its wheel ships them."""
    for file, test_class, replaced in ITS_OWN:
        try:
            module = importlib.import_module(f"keras.src.layers.rnn.{file}")
        except ImportError:
            continue
        for test, function in sorted(vars(getattr(module, test_class)).items()):
            if test.startswith("test") and test not in LEFT_OUT:
                yield pytest.param(
                    module,
                    test_class,
                    replaced,
                    test,
                    id=f"{next(iter(replaced.values())).__name__}-{test}",
                    marks=getattr(function, "pytestmark", ()),
                )


def plain(ours):
    """Return our class with its numbers defaulting to those of the plain layer."""
    if issubclass(ours, PlainLayer):
        return ours

    @keras.saving.register_keras_serializable(package="tests", name=f"Plain{ours.__name__}")
    class Plain(ours):
        def __init__(self, *args, momentum=0.0, step_size=1.0, **kwargs):
            super().__init__(*args, momentum=momentum, step_size=step_size, **kwargs)

    return Plain


@pytest.mark.parametrize("module, test_class, replaced, test", its_own_tests())
def test_keras_own_tests_pass(module, test_class, replaced, test, monkeypatch):
    ours = {name: plain(cls) for name, cls in replaced.items()}
    monkeypatch.setattr(module, "layers", SimpleNamespace(**{**vars(module.layers), **ours}))
    case = getattr(module, test_class)(test)
    case.setUp()
    case.debug()
    case.doCleanups()
