"""The command line of `papers.reproduce`: budgets, recipes, what it refuses."""

import pytest

from papers import budgets, tasks
from papers.command_line import assignment
from papers.reproduce import changed, comparison, main, parse

SMALL = ["--set", "samples=64", "held_out=8", "steps=20"]


def asked(*arguments):
    return comparison(parse(["adding", *arguments]), "command")


def test_small_budget_gives_every_layer_the_same_but_its_own_hyperparameters():
    found = asked(*SMALL, "--units=5", "--epochs=3")
    assert list(found.setups)[:2] == ["LSTM", "MomentumLSTM"] and len(found.setups) == 10
    trained = {(s.units, s.batch_size, s.epochs) for s in found.setups.values()}
    assert trained == {(5, 32, 3)}
    assert {str(setup.described()["optimizer"]) for setup in found.setups.values()} == {
        "{'class': 'Adam', 'learning_rate': 0.002, 'global_clipnorm': 1.0}"
    }
    (adam,) = found.setups["AdamLSTM"].new_layers()
    assert (adam.momentum, adam.step_size, adam.beta) == (0.6, 2.0, 0.999)
    (restarted,) = found.setups["SRLSTM"].new_layers()
    assert (restarted.restart_period, restarted.formulation) == (100, "released")
    (nesterov,) = found.setups["NAGLSTM"].new_layers()
    assert nesterov.step_size == 0.9  # no paper has one
    (adam,) = asked(*SMALL, "--hyperparameters=default").setups["AdamLSTM"].new_layers()
    assert adam.beta == 0.99


def test_an_ablation_is_one_layer_over_momentum_and_step_size():
    setups = asked("--ablation", "--layers", "AdamLSTM", *SMALL).setups
    assert len(setups) == 16
    (layer,) = setups["AdamLSTM 0.9 0.3"].new_layers()
    assert (layer.momentum, layer.step_size, layer.beta) == (0.9, 0.3, 0.999)


def test_every_task_has_a_small_budget():
    assert set(budgets.SMALL) == set(tasks.TASKS)
    numbers = budgets.paper_hyperparameters
    assert numbers("adding", {}, "LSTM") == {}
    assert numbers("digits", {"permute": True}, "AdamLSTM")["beta"] == 0.01
    restarted = numbers("speech", {}, "SRLSTM")
    assert restarted["step_size"] == 0.1
    # Without it the released form would start the forget gate at -step_size.
    assert restarted["formulation"] == "released" and restarted["use_recurrent_bias"] is True


def test_paper_budget_is_the_recipes():
    found = asked("--budget=paper", "--set", "variant=mcrm", "steps=200", "samples=64")
    assert list(found.setups) == ["SimpleRNN", "GRU", "LSTM", "NestedLSTM", "MCRM"]
    assert found.setups["MCRM"].epochs == 60
    assert found.setups["NestedLSTM"].optimizer.global_clipnorm == 0.1
    plain = comparison(
        parse(["memory5", "--budget=paper", "--learning-rate=1e-4", "--set", "held_out=8"]), ""
    ).setups["SimpleRNN"]
    assert plain.epochs == 500  # of 100 updates
    assert plain.optimizer.nesterov is True
    setups, _ = budgets.paper_setups("pmnist", {}, ["DTRIV"], 170)
    faster = changed(setups["DTRIV"], parse(["pmnist", "--learning-rate=0.007"]))
    rate = faster.learning_rate * faster.arguments["recurrent_lr_multiplier"]
    assert rate == pytest.approx(faster.recurrent_learning_rate)  # S keeps the paper's
    _, options = budgets.paper_setups("adding", {}, ["AdamLSTM"])
    assert options == {"variant": "momentumrnn", "steps": 750, "samples": 5000}
    with pytest.raises(ValueError, match="recipes for the same data"):
        budgets.paper_setups("adding", {}, ["AdamLSTM", "MCRM"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["adding", "--set", "steps"], "must be name=value. Received: steps"),
        (["adding", "--ablation", "--layers", "GRU"], "--ablation: takes one layer of"),
        (["adding", "--budget=paper", "--ablation"], "are for the small budget alone"),
    ],
)
def test_bad_arguments_are_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["adding", "--set", "speed=3"], "options of adding are .*Received: speed=3"),
        (["speech", "--set", "folder=no/such"], "`folder` must be an existing directory"),
        (["adding", "--budget=paper", "--layers", "NAGLSTM"], "must name one recipe"),
        (["digits", "--budget=paper"], "No paper has settings for digits"),
    ],
)
def test_what_a_task_refuses_ends_the_command_and_writes_nothing(arguments, message, tmp_path):
    with pytest.raises(SystemExit, match=message):
        main([*arguments, f"--output={tmp_path / 'new'}"])
    assert not (tmp_path / "new").exists()


def test_an_option_of_a_task_is_a_literal_or_text():
    assert assignment("data_dir=a/b") == ("data_dir", "a/b")
    assert assignment("permute=True") == ("permute", True)
