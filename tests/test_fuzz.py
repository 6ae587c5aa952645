"""The fuzz finds no difference on drawn programs, and finds one that is made."""

import dataclasses

import fuzz
import pytest

from keras_momentum_rnn import recurrent

SEED = 1
# A few programs on each backend: on PyTorch nothing is compiled.
PROGRAMS = 20 if fuzz.BACKEND == "torch" else 3


def test_drawn_programs_equal_their_steps():
    found, paths = {}, set()
    for number, path, _, differences in fuzz.fuzz(SEED):
        found |= differences
        paths.add(path)
        if number + 1 == PROGRAMS:
            break
    assert not found, "\n\n".join(found)
    assert len(paths) > 1


PROGRAM = fuzz.Program("MomentumLSTM", 4, (3, 5, 2), device="cpu", masked=True, states="own")
CASE = fuzz.Case(seed=0, weights=0.5, inputs=1.0, mask="holes", cotangents="all")


@pytest.mark.parametrize(
    "wrong, name",
    [
        (lambda h: h * (1 + 1e-4), "result 0"),
        # Only its gradient is wrong.
        (lambda h: h + 1e-3 * (h - fuzz.ops.stop_gradient(h)), "gradient of kernel"),
    ],
    ids=["value", "gradient"],
)
def test_a_small_difference_is_found_and_its_code_runs(wrong, name, monkeypatch):
    assert fuzz.Pair(PROGRAM).differences(CASE) == {}
    run = recurrent.run

    def wrongly(plan, cell, sequence):
        outputs, states = run(plan, cell, sequence)
        return (outputs if plan.reason == "use_cudnn=False" else wrong(outputs)), states

    monkeypatch.setattr(recurrent, "run", wrongly)
    found = fuzz.Pair(PROGRAM).differences(CASE)
    assert name in found and ("result 0" in found) == (name == "result 0")
    scope = {"print": lambda differences: scope.update(shown=differences)}
    exec(fuzz.code_of(PROGRAM, CASE), scope)
    assert scope["shown"].keys() == found.keys()


def test_roundings_are_no_difference():
    """Saturated gates, and a drive whose gradient is the difference of equal numbers."""
    program = fuzz.Program("AdamGRU", 4, (3, 9, 2), numbers={"beta": 0.0, "epsilon": 1e-16})
    for weights in (0.5, 30.0):
        case = dataclasses.replace(CASE, weights=weights, inputs=1e3)
        assert fuzz.Pair(program).differences(case) == {}


def test_the_third_power_of_a_root_is_never_computed():
    """In float32 it is 0, and the gradient by x would lack a term."""
    numbers = {"step_size": 0.01, "beta": 0.9, "epsilon": 0.01}
    program = fuzz.Program("RMSPropLSTM", 4, (3, 1, 3), numbers=numbers, states="own")
    case = fuzz.Case(997432277, weights=0.5, inputs=1e14, mask="none", cotangents="outputs")
    assert fuzz.Pair(program).differences(case) == {}
