"""Schedules of momentum: the published formulas at the steps where they change."""

import inspect
import json

import keras
import numpy as np
import pytest

from keras_momentum_rnn.optimizers.schedules import (
    LowMomentumFinish,
    NesterovMomentum,
    SteppedMomentum,
    WarmConstant,
)

SCHEDULES = [
    SteppedMomentum(0.99, period=7),
    NesterovMomentum(),
    WarmConstant(0.98, warm_momentum=0.6, warm_steps=3),
    LowMomentumFinish(0.95, 20, finish_momentum=0.5, finish_steps=4),
    LowMomentumFinish(SteppedMomentum(0.9, period=2), 9, finish_momentum=0.8, finish_steps=4),
]
NAMES = [type(schedule).__name__ for schedule in SCHEDULES]
STEPS = [0, 1, 249, 250, 999, 1000, 124_499, 124_500, 124_749, 124_750, 749_999]


def values(schedule, steps):
    counts = (keras.ops.convert_to_tensor(step, dtype="int32") for step in steps)
    return np.array([float(schedule(count)) for count in counts])


@pytest.mark.parametrize("largest", [0, 0.9, 0.999])
def test_equation_5(largest):
    t = np.array(STEPS, "float64")
    printed = np.minimum(1 - 2.0 ** (-1 - np.log2(np.floor(t / 250) + 1)), largest)
    np.testing.assert_allclose(values(SteppedMomentum(largest), STEPS), printed, atol=2e-7)


def test_nesterov():
    expected = [1 - 3 / (t + 5) for t in STEPS]
    np.testing.assert_allclose(values(NesterovMomentum(), STEPS), expected, atol=2e-7)


@pytest.mark.parametrize("momentum", [0, 0.5, 0.995])
def test_warm_constant(momentum):
    expected = [0.9] * 5 + [momentum] * 6
    np.testing.assert_allclose(values(WarmConstant(momentum), STEPS), expected, atol=1e-7)
    own = WarmConstant(momentum, warm_momentum=0.6, warm_steps=3)
    np.testing.assert_allclose(values(own, range(5)), [0.6] * 3 + [momentum] * 2, atol=1e-7)


@pytest.mark.parametrize("momentum", [0, 0.5, 0.999])
def test_the_last_thousand_updates_have_low_momentum(momentum):
    schedule = LowMomentumFinish(momentum, 5000)
    steps = [0, 3999, 4000, 4999, 6000]
    expected = [momentum] * 2 + [min(momentum, 0.9)] * 3
    np.testing.assert_allclose(values(schedule, steps), expected, atol=1e-7)


def test_the_finish_of_a_schedule():
    got = values(SCHEDULES[-1], range(9))
    expected = [1 / 2, 1 / 2, 3 / 4, 3 / 4, 5 / 6, 0.8, 0.8, 0.8, 0.8]
    np.testing.assert_allclose(got, expected, atol=1e-7)


def test_a_training_shorter_than_the_finish_has_low_momentum_throughout():
    np.testing.assert_allclose(values(LowMomentumFinish(0.99, 10), [0, 9]), 0.9, atol=1e-7)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=NAMES)
def test_round_trip(schedule):
    config = keras.optimizers.schedules.serialize(schedule)
    again = keras.optimizers.schedules.deserialize(json.loads(json.dumps(config)))
    assert type(again) is type(schedule)
    np.testing.assert_array_equal(values(again, range(12)), values(schedule, range(12)))
    arguments = set(inspect.signature(type(schedule).__init__).parameters) - {"self"}
    arguments -= {"args", "kwargs"}  # those of `object`
    assert arguments == set(schedule.get_config())


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: SteppedMomentum(1), r"`max_momentum` must be a number in \[0, 1\)"),
        (lambda: SteppedMomentum(0.9, period=0), "`period` must be a positive integer"),
        (lambda: WarmConstant(-0.1), r"`momentum` must be a number in \[0, 1\)"),
        (lambda: WarmConstant(0.9, warm_momentum=2), "`warm_momentum` must be"),
        (lambda: WarmConstant(0.9, warm_steps=1.5), "`warm_steps` must be"),
        (lambda: LowMomentumFinish("high", 10), "`momentum` must be a number"),
        (lambda: LowMomentumFinish(0.9, 0), "`total_steps` must be a positive integer"),
        (lambda: LowMomentumFinish(0.9, 10, finish_momentum=1), "`finish_momentum` must be"),
        (lambda: LowMomentumFinish(0.9, 10, finish_steps=-1), "`finish_steps` must be"),
    ],
)
def test_bad_arguments_are_refused(create, message):
    with pytest.raises(ValueError, match=message + ".*Received: "):
        create()
