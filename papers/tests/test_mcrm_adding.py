"""Table 1 of Mohamed and Claudel (2018) on adding, as a comparison in turns."""

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from test_experiments import assert_same_learning, told_epoch

from keras_momentum_rnn import rules
from papers import mcrm_adding
from papers.experiments import comparison, training


def test_layers_train_as_the_paper_says(capsys):
    options = mcrm_adding.parse([])
    found = mcrm_adding.comparison(options, "")
    units = {"SimpleRNN": 308, "GRU": 177, "LSTM": 153, "NestedLSTM": 77, "MCRM": 85}
    assert {name: setup.units for name, setup in found.setups.items()} == units
    for name, setup in found.setups.items():
        rate, clipnorm = (0.01, 0.1) if name == "NestedLSTM" else (1e-3, 0.5)
        assert (setup.batch_size, setup.epochs) == (32, 60)
        optimizer = setup.optimizer
        assert float(optimizer.learning_rate) == pytest.approx(rate)
        assert optimizer.global_clipnorm == clipnorm
        (layer,) = setup.new_layers()
        assert type(layer).__name__ == mcrm_adding.RULE_LAYERS.get(name, name)
        assert layer.units == setup.units
        if name in mcrm_adding.RULE_LAYERS:
            assert isinstance(layer.cell.rule, rules.Identity)
    assert -(-len(found.task.train) // 32) == 1563
    with pytest.raises(SystemExit):
        mcrm_adding.parse(["--updates=1564"])
    assert "must be at most 1563" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        mcrm_adding.parse(["--set", "variant=momentumrnn"])
    assert "Received: variant=momentumrnn" in capsys.readouterr().err
    # The report says whether the paper's best is.
    assert ("MCRM",) in [claim.better for claim in found.claims]


@pytest.mark.slow
def test_layers_take_turns_and_go_on_after_a_kill(tmp_path, monkeypatch):
    command = ["--layers", "SimpleRNN", "LSTM", "--updates=1", "--epochs=5", "--seeds=2"]
    command += ["--set", "steps=6", "held_out=20"]
    order = []

    def noted(run, *rest):
        order.append((run["seed"], run["layer"], len(run["curve"])))
        if len(order) == 5 and kill:
            raise KeyboardInterrupt
        return told_epoch(run, *rest)

    monkeypatch.setattr(training, "train_epoch", noted)
    monkeypatch.setattr(comparison, "REPORT_EVERY", -1)
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **named: Path(path).touch())
    kill, parts = True, tmp_path / "parts"
    with pytest.raises(SystemExit, match="Interrupted"):
        mcrm_adding.main([*command, "--at-once=2", f"--output={parts}"])
    simple, lstm = json.loads((parts / "results.json").read_text())["runs"]
    assert (len(simple["curve"]), len(lstm["curve"])) == (2, 2)
    text = (parts / "report.md").read_text()
    assert text.startswith("# Adding, 6 steps: ") and "scored on 20 sequences" in text
    assert "was run: 0.0%, 4 of 468,900 updates" in text.splitlines()[2]
    assert "0 of 5 runs to their end." in text.splitlines()[2]
    # They run as layers of this package, and are the paper's RNN and LSTM.
    assert "0.165 (308 units)" in text and "0.001 (153 units)" in text
    kill = False
    found = mcrm_adding.main([*command, "--at-once=2", f"--output={parts}"])
    assert order[:4] == [(0, name, n) for name in ("SimpleRNN", "LSTM") for n in (0, 1)]
    assert [turn for turn in order[5:9]] == [
        (0, name, n) for name in ("SimpleRNN", "LSTM") for n in (2, 3)
    ]
    # The last turn of a seed is what is left of its epochs; then the next seed begins.
    assert order[9:12] == [(0, "SimpleRNN", 4), (0, "LSTM", 4), (1, "SimpleRNN", 0)]
    assert not list(parts.glob("runs/*/state.npz"))
    whole = mcrm_adding.main([*command, "--at-once=5", f"--output={tmp_path / 'whole'}"])
    by_name = {(run["layer"], run["seed"]): run for run in found["runs"]}
    same = [by_name[run["layer"], run["seed"]] for run in whole["runs"]]
    assert_same_learning(same, whole["runs"])
    assert {len(run["curve"]) for run in same} == {5}
