"""The studies of gradients over time and of memories over a text, small."""

import numpy as np
import pytest

from papers import gradient_flow, memory_map


def test_gradients_are_measured_at_the_start_and_in_training(tmp_path):
    tiny = ["--units=4", "--updates=2", "--measurements=2", f"--output={tmp_path}"]
    results = gradient_flow.main(tiny)
    assert results["iterations"] == [0, 2]
    for name in ("SimpleRNN", "MomentumRNN"):
        start, end = np.array(results["norms"][name])
        assert start.shape == (64,) and start[0] < 1e-10 * start[-1]  # at most 0.5 a step
        assert not np.array_equal(start, end)
    report = (tmp_path / "report.md").read_text()
    assert "| SimpleRNN | 0 |" in report and (tmp_path / "norms.png").exists()


def test_gradients_vanish_if_the_first_step_receives_little():
    norms = [[1e-4, 1e-3, 1e-2, 1e-1], [5.0, 4.0, 4.0, 5.0]]
    results = {"norms": {"A": norms}, "iterations": [0, 9], "accuracy": {"A": 0.5}}
    report = gradient_flow.text_of(results)
    assert "| A | 0 | 1.00e-01 | 1.00e-04 | 1.0e-03 | 0.100 | yes |" in report
    assert "| A | 9 | 5.00e+00 | 5.00e+00 | 1.0e+00 | 1.000 | no |" in report


def test_windows_are_followed_by_the_next_character():
    text = "abcdefgh" * 20
    x, y = memory_map.windows(memory_map.encoded(text, sorted(set(text))))
    codes = x.argmax(axis=-1).ravel()
    np.testing.assert_array_equal(codes[1:], y.ravel()[:-1])
    assert y.shape == (4, memory_map.STEPS)


def test_memories_are_drawn_over_held_out_text(tmp_path):
    tiny = ["--layers", "LSTM", "--units=4", "--epochs=1", "--characters=2000", "--shown=20"]
    results = memory_map.main([*tiny, f"--output={tmp_path}"])
    assert len(results["text"]) == 20 and {*results["bits"]} == {"LSTM"}
    assert 4 < results["bits"]["LSTM"] < 5  # little training: near the frequencies
    assert all(low <= high for low, _, high in results["pace"]["LSTM"].values())
    assert (tmp_path / "memory_map.png").exists()
    with pytest.raises(SystemExit, match=r"must leave a sentence .* Received: characters=500"):
        memory_map.main([*tiny, "--characters=500", f"--output={tmp_path}"])
