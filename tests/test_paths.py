"""Paths: which one is taken and why, and that none of them changes a result."""

import keras
import numpy as np
import pytest
from cases import CASES, REPRESENTATIVES
from harness import BACKEND, array, assert_close, gradients, normal, randomise, run
from keras import ops
from masks import MASKS
from reference import rule_step

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths.filter import CHUNK, filtered

FUSED = [case for case in CASES if case.layer().plan().path == "fused"]


def test_pytorch_has_a_fused_path_for_every_linear_lstm_and_gru():
    expected = {"MomentumLSTM", "NAGLSTM", "SRLSTM", "MomentumGRU", "NAGGRU", "SRGRU"}
    assert {case.id for case in FUSED} == (expected if BACKEND == "torch" else set())


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch has a fused path")
@pytest.mark.parametrize(
    "options, call, reason",
    [
        ({"use_cudnn": False}, {}, "use_cudnn=False"),
        ({"unroll": True}, {}, "unroll=True"),
        ({"stateful": True}, {}, "the slots do not start at zero"),
        ({}, {"slots": True}, "the slots do not start at zero"),
        ({"activation": "relu"}, {}, "a kernel has tanh and sigmoid alone"),
        ({"recurrent_dropout": 0.1}, {"training": True}, "recurrent dropout acts on h"),
        (
            {"dropout": 0.1, "implementation": 1},
            {"training": True},
            "each gate has a dropout mask of its own",
        ),
        ({"dtype": "mixed_float16"}, {}, "the kernel does not compute in float16"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_plan_gives_its_reason(options, call, reason):
    assert kmr.MomentumLSTM(4, **options).plan(**call) == kmr.paths.Plan("step", reason)


def test_plans_of_layers_without_a_kernel():
    for layer in (
        kmr.AdamLSTM(4),
        kmr.SRLSTM(4, formulation="released"),
        kmr.MomentumGRU(4, reset_after=False),
        kmr.MCRM(4),
        kmr.MomentumRNN(4),
    ):
        plan = layer.plan()
        assert plan.path == "step"
        assert plan.reason


def test_use_cudnn_true_raises_with_the_reason_where_no_kernel_serves():
    x = np.zeros((1, 2, 3), "float32")
    with pytest.raises(ValueError, match=r"No fused kernel serves.*unroll=True"):
        kmr.MomentumLSTM(4, use_cudnn=True, unroll=True)(x)


@pytest.mark.parametrize("case", FUSED, ids=lambda c: c.id)
@pytest.mark.parametrize("mask", [None, *MASKS])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fused_equals_step_over_many_chunks(case, mask, dtype):
    time = 2 * CHUNK + 7
    rng = np.random.default_rng(0)
    x = normal(rng, 3, time, 2)
    call = {} if mask is None else {"mask": MASKS[mask](3, time)}
    layers = [
        case.layer(5, return_sequences=True, return_state=True, dtype=dtype, use_cudnn=u)
        for u in ("auto", False)
    ]
    for layer in layers:
        layer.build(x.shape)
    randomise(layers[0], rng)
    layers[1].set_weights(layers[0].get_weights())
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    fused, stepped = (layer(x, **call) for layer in layers)
    for a, e in zip(fused, stepped):
        assert_close(array(a), array(e), tolerance=tolerance)
    cotangents = [normal(rng, *r.shape) for r in stepped]
    fused, stepped = (gradients(layer, x, cotangents, **call) for layer in layers)
    assert set(fused) == set(stepped)
    for name, expected in stepped.items():
        assert_close(fused[name], expected, tolerance=1e-4)


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch filters a sequence at once")
@pytest.mark.parametrize(
    "rule, numbers",
    [
        ("HeavyBall", {"momentum": 0.95, "step_size": 0.7}),
        ("HeavyBall", {"momentum": 0.0, "step_size": 0.7}),
        ("NAG", {"step_size": 0.7}),
        ("ScheduledRestart", {"restart_period": 40, "step_size": 0.7}),
        ("ScheduledRestart", {"restart_period": 1, "step_size": 0.7}),
    ],
)
@pytest.mark.parametrize("time", [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 1000])
def test_filter_equals_the_steps_of_the_rule(rule, numbers, time):
    x = normal(np.random.default_rng(0), 2, time, 3)
    slots = [np.zeros((2, 3)), np.zeros((2, 1))][: 1 if rule == "HeavyBall" else 2]
    expected = []
    for t in range(time):
        drive, slots = rule_step(rule, numbers, x[:, t].astype("float64"), slots)
        expected.append(drive)
    actual = filtered(getattr(kmr.rules, rule)(**numbers), ops.convert_to_tensor(x))
    assert_close(array(actual), np.stack(expected, axis=1), tolerance=2e-6)


class Squashed(kmr.rules.HeavyBall):
    """A rule that takes another step than the linear one whose coefficients it inherits."""

    def update(self, u, slots):
        drive, slots = super().update(u, slots)
        return ops.tanh(drive), slots


class Fading(kmr.rules.NAG):
    """A linear rule of its own: the momentum falls."""

    def coefficients(self, t):
        return 1 / (t + 2), self.step_size


def test_a_rule_is_linear_as_long_as_it_takes_the_step_of_its_coefficients():
    assert not Squashed().linear
    assert not kmr.rules.Adam().linear
    assert Fading().linear
    layer = kmr.RuleLSTM(4, rule=Squashed())
    assert layer.plan().path == "step"


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch has a fused path")
def test_own_linear_rule_takes_the_fused_path():
    x = normal(np.random.default_rng(0), 2, 9, 3)
    fused, step = (kmr.RuleLSTM(4, rule=Fading(), use_cudnn=u) for u in ("auto", False))
    fused.build(x.shape)
    step.build(x.shape)
    step.set_weights(fused.get_weights())
    assert fused.plan().path == "fused"
    assert_close(run(fused, x)[0], run(step, x)[0], tolerance=1e-6)


@pytest.mark.parametrize("case", REPRESENTATIVES, ids=lambda c: c.id)
def test_what_is_masked_may_be_nan(case):
    x = normal(np.random.default_rng(0), 3, 6, 3)
    mask = MASKS["holes"](3, 6)
    layer = case.layer(4, return_sequences=True)
    expected = run(layer, x, mask=mask)[0]
    x[~mask] = np.nan
    assert_close(run(layer, x, mask=mask)[0], expected, tolerance=1e-6)


@pytest.mark.parametrize("case", FUSED, ids=lambda c: c.id)
def test_bidirectional_and_models_take_the_fused_path(case, monkeypatch):
    def refused(*args, **kwargs):
        raise AssertionError("stepped")

    x = normal(np.random.default_rng(0), 4, 6, 3)
    model = keras.Sequential(
        [
            keras.layers.Masking(),
            keras.layers.Bidirectional(case.layer(3, return_sequences=True, dropout=0.1)),
            case.layer(2),
        ]
    )
    model.compile("sgd", "mse")
    monkeypatch.setattr("keras_momentum_rnn.recurrent.loop.run", refused)
    model.fit(x, np.zeros((4, 2)), verbose=0)
    assert run(model, x)[0].shape == (4, 2)
