"""The search space: what each branch chooses, on which scale, and what is refused."""

import contextlib
import importlib
import re
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tuning_cases  # noqa: F401

pytest.importorskip("keras_tuner", reason="a search needs it")

import keras_tuner

from keras_momentum_rnn import rules, tuning
from keras_momentum_rnn.hyperparameters import LEARNED_MOMENTUM
from keras_momentum_rnn.layers.registry import layers_with
from keras_momentum_rnn.tuning import MomentumHyperModel, paper_trials, suggest_layer
from keras_momentum_rnn.tuning.first_trials import completed
from keras_momentum_rnn.tuning.space import LOGIT, ask, layer_value

GUIDE = Path(__file__).parent.parent / "docs" / "guides" / "tune.md"
# What each rule's layers choose, by the prefix of their names.
CHOSEN = {
    "Momentum": {"momentum", "step_size"},
    "NAG": {"step_size"},
    "SR": {"restart_period", "step_size"},
    "Adam": {"momentum", "step_size", "beta_logit"},
    "RMSProp": {"step_size", "beta_logit"},
}
FAMILIES = [prefix + cell for cell in ("LSTM", "RNN", "GRU") for prefix in CHOSEN]
PLAIN = ["SimpleRNN", "LSTM", "GRU", "MCRM", "NestedLSTM"]


def expected(layer):
    for prefix, names in CHOSEN.items():
        if layer.startswith(prefix) and layer not in PLAIN:
            return names
    return set()


def parameters(**values):
    hp = keras_tuner.HyperParameters()
    hp.values = values
    return hp


def readable(values):
    return {name.removesuffix(LOGIT): layer_value(name, v) for name, v in values.items()}


def sampled(hp, name):
    (parameter,) = [p for p in hp.space if p.name == name]
    return np.array([parameter.random_sample(seed) for seed in range(400)])


# Branches


@pytest.mark.parametrize("name", FAMILIES + PLAIN)
def test_each_branch_chooses_the_numbers_of_its_layer_and_no_others(name):
    hp = parameters(layer=name)
    layer = suggest_layer(hp, [*FAMILIES, *PLAIN], units=[3, 5])
    assert type(layer).__name__ == name and layer.units == 3
    assert type(layer).__module__.startswith("keras_momentum_rnn.")  # fast, plain ones too
    assert set(hp.values) == {"layer", "units"} | expected(name)
    for argument, value in readable(hp.values).items():
        if argument not in ("layer", "units"):
            assert getattr(layer, argument) == value
    # The search has to know the branches that it is not in.
    assert {p.name for p in hp.space} == {"layer", "units"}.union(*CHOSEN.values())


TRAINED = [
    *[("LSTM", {}), ("NAGRNN", {}), ("AdamRNN", {"clipnorm": None})],
    *[("SRRNN", {"sequence": True}), ("RMSPropRNN", {"task": "regression"})],
    *[("MomentumRNN", {"depth": 2, "dropout": 0.25}), ("SimpleRNN", {"bidirectional": True})],
]


@pytest.mark.parametrize(("name", "options"), TRAINED, ids=[name for name, _ in TRAINED])
def test_each_branch_trains(name, options):
    layers = [name for name, _ in TRAINED]
    hypermodel = MomentumHyperModel((3, 2), head=2, layers=layers, units=2, **options)
    model = hypermodel.build(parameters(layer=name))
    assert sum(
        isinstance(n, keras.layers.RNN | keras.layers.Bidirectional) for n in model.layers
    ) == (options.get("depth", 1))
    rates = [n.rate for n in model.layers if isinstance(n, keras.layers.Dropout)]
    assert rates == [0.25, 0.25] * ("dropout" in options)
    both = [n for n in model.layers if isinstance(n, keras.layers.Bidirectional)]
    assert len(both) == ("bidirectional" in options)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 3, 2)).astype("float32")
    outputs = (4, 3) if options.get("sequence") else (4,)
    if options.get("task") == "regression":
        y = rng.normal(size=(*outputs, 2)).astype("float32")
    else:
        y = rng.integers(0, 2, outputs)
    assert model.output_shape[1:] == (*outputs[1:], 2)
    before = [np.array(w) for w in model.get_weights()]
    model.fit(x, y, verbose=0)
    moved = [not np.array_equal(a, b) for a, b in zip(before, model.get_weights())]
    assert any(moved) and all(np.isfinite(w).all() for w in model.get_weights())


def test_orthogonal_layers_choose_parametrization_and_period():
    hp = parameters(layer="DTRIV", parametrization="cayley", rebase_every=0)
    layer = suggest_layer(hp, ["LSTM", "DTRIV"], units=4)
    assert (layer.parametrization, layer.rebase_every) == ("cayley", None)
    layer = suggest_layer(parameters(layer="DTRIV"), ["LSTM", "DTRIV"], 4, rebase_every=7)
    assert (layer.parametrization, layer.rebase_every) == ("expm", 7)


def test_a_scope_gives_names_of_their_own():
    hp = parameters()
    with hp.name_scope("a"):
        first = suggest_layer(hp, ["MomentumLSTM"], 2, momentum=0.1)
    with hp.name_scope("b"):
        second = suggest_layer(hp, ["MomentumLSTM"], 3, momentum=[0.7, 0.8])
    assert (first.momentum, second.momentum, first.units, second.units) == (0.1, 0.7, 2, 3)
    assert {"a/momentum", "b/momentum", "a/step_size", "b/step_size"} < set(hp.values)


def test_the_layers_of_a_stack_share_their_numbers():
    hypermodel = MomentumHyperModel((3, 2), 2, layers=["NAGLSTM"], units=2, depth=[1, 2])
    for depth in (1, 2):
        model = hypermodel.build(parameters(depth=depth, step_size=0.25))
        layers = [layer for layer in model.layers if isinstance(layer, keras.layers.RNN)]
        assert [layer.return_sequences for layer in layers] == [True] * (depth - 1) + [False]
        assert {layer.step_size for layer in layers} == {0.25}


def test_the_first_choice_is_the_default_of_a_bool():
    assert ask(parameters(), "bidirectional", [True, False]) is True


def test_clipping_may_be_none_in_a_list():
    options = {"layers": ["LSTM"], "units": 2, "clipnorm": [None, 1.0]}
    hypermodel = MomentumHyperModel((3, 2), 2, **options)
    hp = parameters()
    assert hypermodel.build(hp).optimizer.clipnorm is None and hp.values["clipnorm"] == 0
    assert readable(hp.values)["clipnorm"] is None
    assert hypermodel.build(parameters(clipnorm=1.0)).optimizer.clipnorm == 1


def test_a_model_has_the_rate_of_the_search_and_the_loss_of_its_task():
    options = {"layers": ["LSTM"], "units": 2, "learning_rate": [0.01, 0.25]}
    model = MomentumHyperModel((3, 2), 2, **options).build(parameters(learning_rate=0.25))
    assert float(model.optimizer.learning_rate) == 0.25
    model.layers[-1].set_weights([np.zeros((2, 2)), np.array([1.0, 0.0])])
    loss, _ = model.evaluate(np.zeros((1, 3, 2)), np.array([0]), verbose=0)
    assert loss == pytest.approx(np.log(1 + np.exp(-1)), rel=1e-5)  # the head gives logits
    numbers = MomentumHyperModel((3, 2), 2, task="regression", **options)
    assert numbers.objective == keras_tuner.Objective("val_loss", "min")


def test_head_may_be_a_layer_and_every_model_has_its_own():
    def softmax(x):  # none that Keras could look up
        return keras.ops.softmax(2 * x)

    head = keras.layers.Dense(5, activation=softmax)
    hypermodel = MomentumHyperModel((3, 2), head, layers=["LSTM"], units=2)
    models = [hypermodel.build(parameters()) for _ in range(2)]
    assert [model.output_shape for model in models] == [(None, 5)] * 2
    assert models[0].layers[-1] is not models[1].layers[-1]
    assert models[0].layers[-1].activation is softmax


def test_arguments_go_to_the_layers_that_take_them():
    options = {"formulation": "released", "return_sequences": True, "name": "rnn"}
    for name in ("SRLSTM", "LSTM"):
        layer = suggest_layer(parameters(layer=name), ["SRLSTM", "LSTM"], 2, **options)
        assert layer.return_sequences and layer.name == "rnn"
        assert getattr(layer, "formulation", "released") == "released"
    rule = rules.HeavyBall(0.3, 0.4)
    assert suggest_layer(parameters(), ["RuleGRU"], 2, rule=rule).rule.momentum == 0.3


# Scales


def test_scales_resolve_both_ends():
    hp = parameters()
    suggest_layer(hp, FAMILIES, [1])
    beta = 1 / (1 + np.exp(-sampled(hp, "beta_logit")))
    assert 0.00999 < beta.min() < 0.02 and 0.998 < beta.max() <= 0.9990001
    for part in (beta < 0.1, (beta > 0.1) & (beta < 0.9), (beta > 0.9), (beta > 0.99)):
        assert part.mean() > 0.15
    step = sampled(hp, "step_size")
    assert step.min() >= 0.01 and step.max() <= 2 and (step < 0.1).mean() > 0.3
    period = sampled(hp, "restart_period")
    assert period.dtype.kind == "i" and period.min() == 2 and 120 < period.max() <= 128
    assert (period <= 16).mean() > 0.4
    momentum = sampled(hp, "momentum")
    assert 0 <= momentum.min() < 0.02 and 0.97 < momentum.max() <= 0.99


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no guide")
@pytest.mark.parametrize("name", ["momentum", "step_size", "beta", "restart_period"])
def test_the_guide_has_the_ranges_of_the_search(name):
    (hyperparameter,) = {
        layer.hyperparameters[name] for layer in layers_with(name).values()
    } - {LEARNED_MOMENTUM}
    (line,) = (x for x in GUIDE.read_text().split("\n") if x.startswith(f"| `{name}` |"))
    low, high = hyperparameter.search
    assert f"| [{low:g}, {high:g}]" in line
    assert ("logarithmic" in line) == (hyperparameter.scale == "log")


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no guide")
def test_the_guide_has_the_ranges_of_the_model():
    specs, text = MomentumHyperModel((None, 3), head=2).specs, GUIDE.read_text()
    assert f"`units` ({specs['units']})" in text
    (rate,) = re.findall(r"`learning_rate` \((\S+) to (\S+), logarithmic\)", text)
    assert tuple(map(float, rate)) == specs["learning_rate"]


@pytest.mark.parametrize(("name", "value"), [("epsilon", 1e-16), ("relaxed", False)])
def test_what_is_not_searched_may_be_given(name, value):
    hp = parameters(layer="AdamLSTM")
    suggest_layer(hp, ["LSTM", "AdamLSTM"], 2)
    assert name not in hp.values
    layer = suggest_layer(hp, ["LSTM", "AdamLSTM"], 2, **{name: value})
    assert getattr(layer, name) == hp.values[name] == value


def test_ranges_are_narrowed():
    hp = parameters()
    ranges = {"momentum": (0.2, 0.4), "beta": [0, 0.99], "step_size": 0.5}
    layer = suggest_layer(hp, ["AdamLSTM"], (4, 64), **ranges)
    assert (layer.step_size, layer.beta, layer.momentum) == (0.5, 0.0, 0.2)
    momentum = sampled(hp, "momentum")
    assert momentum.min() >= 0.2 and momentum.max() <= 0.4
    assert set(sampled(hp, "beta")) == {0, 0.99} and set(sampled(hp, "step_size")) == {0.5}
    assert sampled(hp, "units").min() >= 4 and sampled(hp, "units").max() <= 64


def test_other_layers_under_the_same_name_are_refused():
    hp = keras_tuner.HyperParameters()
    suggest_layer(hp, ["GRU"], 4)
    with pytest.raises(ValueError, match=r"name_scope.*layers=\['LSTM'\]; chosen: 'GRU'"):
        suggest_layer(hp, ["LSTM"], 4)
    with pytest.raises(ValueError, match=r"units.*name_scope.*units=8; chosen: 4"):
        suggest_layer(hp, ["GRU"], 8)


@pytest.mark.parametrize("beta", [0.01, 0.012345, 0.5, 0.999, 0.9999999])
def test_layers_do_not_see_what_the_logit_rounds(beta):
    hp = parameters(layer="AdamLSTM", beta_logit=float(np.log(beta / (1 - beta))))
    assert suggest_layer(hp, ["AdamLSTM"], 4, beta=(0.001, 0.99999999)).beta == beta


def test_given_numbers_keep_all_their_digits():
    numbers = {"momentum": [0.12345678, 0.5], "step_size": 1 / 3, "beta": 1 - 1e-9}
    layer = suggest_layer(parameters(), ["AdamLSTM"], 2, **numbers)
    assert (layer.momentum, layer.step_size, layer.beta) == (0.12345678, 1 / 3, 1 - 1e-9)


# First trials


def test_the_papers_settings_lie_inside():
    layers = [name for name in FAMILIES if name.endswith("LSTM")]
    hp = parameters()
    suggest_layer(hp, layers, [128, 256])
    trials = paper_trials(layers)
    # Tables 7 to 10: what differs of their 28 settings of LSTMs.
    assert len(trials) == len({str(trial) for trial in trials}) == 21
    assert {"layer": "SRLSTM", "restart_period": 6, "step_size": 0.01} in trials
    assert {"layer": "AdamLSTM", "momentum": 0.6, "step_size": 2.0, "beta": 0.999} in trials
    for trial in trials:
        values = completed(trial, hp.space)
        layer = suggest_layer(parameters(**values), layers, [128, 256])
        for name, value in trial.items():
            assert name == "layer" or getattr(layer, name) == value
        assert type(layer).__name__ == trial["layer"] and layer.units == 128


@pytest.mark.parametrize(
    ("trial", "numbers"),
    [
        ({"layer": "NAGLSTM"}, {"step_size": 0.9}),
        ({"layer": "AdamLSTM", "momentum": 0.8}, {"step_size": 0.6, "beta_logit": 0.99}),
        ({"layer": "AdamLSTM"}, {"momentum": 0.7, "units": 2}),  # out of the range, no default
        ({"layer": "SRDTRIV"}, {"restart_period": 40, "rebase_every": None}),
        ({"layer": "RMSPropLSTM", "step_size": 1.0}, {"beta_logit": 0.9}),
    ],
    ids=str,
)
@pytest.mark.parametrize("scope", ["", "encoder/"])
def test_a_first_trial_leaves_a_layer_its_defaults(trial, numbers, scope):
    hp, layers = parameters(), ["LSTM", "NAGLSTM", "AdamLSTM", "SRDTRIV", "RMSPropLSTM"]
    with hp.name_scope("encoder") if scope else contextlib.nullcontext():
        suggest_layer(hp, layers, [2, 4], momentum=(0.7, 0.9))
    values = completed({scope + name: value for name, value in trial.items()}, hp.space)
    for name, value in numbers.items():
        assert layer_value(name, values[scope + name]) == value


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        ({"layer": "LSTM", "momentum": 0.5}, "Received: momentum in"),
        ({"layer": "MomentumLSTM", "momentum": 0.95}, "`momentum` must be in [0.0, 0.9]"),
        ({"layer": "MomentumLSTM", "momentum": "much"}, "`momentum` must be in [0.0, 0.9]"),
        ({"layer": "GRU"}, "`layer` must be in ['LSTM', 'MomentumLSTM', 'AdamLSTM']"),
        ({"layer": "AdamLSTM", "beta": 1.0}, "`beta_logit` must be in"),
        ({"layer": "AdamLSTM", "units": 3}, "`units` must be in [2, 4]"),
        ({"layer": "AdamLSTM", "units": 2.5}, "`units` must be in [2, 4]"),
    ],
    ids=str,
)
def test_first_trials_outside_the_space_are_refused(trial, message):
    hp = parameters()
    suggest_layer(hp, ["LSTM", "MomentumLSTM", "AdamLSTM"], [2, 4], momentum=(0.0, 0.9))
    with pytest.raises(ValueError) as error:
        completed(trial, hp.space)
    assert message in str(error.value)


# Refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"momentum": (0.9, 0.2)},
            "`momentum` must be an interval (low, high) with low < high",
        ),
        ({"momentum": (0.5, 0.5)}, "with low < high"),
        ({"momentum": []}, "`momentum` must be a list of one or more different choices"),
        ({"momentum": [0.5, 0.5]}, "different choices"),
        (
            {"momentum": (0.5, 1.0)},
            "`momentum` must be a number in [0, 1). Received: momentum=1",
        ),
        ({"momentum": [-0.1]}, "`momentum` must be a number in [0, 1)"),
        ({"momentum": 1.5}, "`momentum` must be a number in [0, 1)"),
        ({"momentum": (0.1, 0.2, 0.3)}, "with low < high"),
        ({"step_size": (0, 1)}, "`step_size` must be a number in (0, infinity)"),
        ({"step_size": (0.1, float("inf"))}, "`step_size` must be a number in (0, infinity)"),
        ({"step_size": float("nan")}, "`step_size` must be a number in (0, infinity)"),
        ({"beta": (0.0, 0.9)}, "`beta` is searched on a logit scale and must lie above 0"),
        ({"beta": [0.5, 1.0]}, "`beta` must be a number in [0, 1)"),
        ({"restart_period": (0, 8)}, "`restart_period` must be a positive integer"),
        ({"restart_period": (2.5, 8)}, "`restart_period` must be a positive integer"),
        ({"parametrization": "qr"}, "`parametrization` must be one of ['expm', 'cayley']"),
        ({"rebase_every": (1, 9)}, "it has no intervals"),
        ({"rebase_every": 0}, "`rebase_every` must be a positive integer"),
        ({"units": 0}, "`units` must be a positive integer"),
        ({"units": []}, "`units` must be a list of one or more"),
        ({"layers": []}, "`layers` must be a list of one or more layers"),
        ({"layers": "LSTM"}, "`layers` must be a list of one or more layers"),
        ({"layers": ["LTSM"]}, "Received: 'LTSM' among"),
        ({"layers": [keras.layers.Dense]}, "must hold classes of recurrent layers"),
        ({"layers": [keras.layers.RNN]}, "must hold classes of recurrent layers"),
        ({"layers": ["LSTM", keras.layers.LSTM]}, "LSTM twice"),
        ({"layers": ["RuleLSTM"]}, "RuleLSTM takes any rule"),
        ({"layers": ["LSTM"], "momentum": 0.5}, "`momentum` is an argument of none"),
        ({"speed": 3}, "`speed` is an argument of none of the layers"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(arguments, message):
    arguments = {"layers": ["AdamLSTM", "SRLSTM", "DTRIV"], "units": 4, **arguments}
    with pytest.raises(ValueError) as error:
        suggest_layer(parameters(), **arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"head": 1}, "`head` must be an integer of at least 2"),
        ({"head": 0, "task": "regression"}, "`head` must be a positive integer"),
        ({"task": "ranking"}, "`task` must be one of ['classification', 'regression']"),
        ({"sequence": 1}, "`sequence` must be one of [True, False]"),
        ({"depth": [0, 1]}, "`depth` must be a positive integer"),
        ({"depth": (1, 3)}, "it has no intervals"),
        ({"dropout": [0.5, 1.0]}, "`dropout` must be a number in [0, 1)"),
        ({"learning_rate": (0.0, 0.1)}, "`learning_rate` must be a number in (0, infinity)"),
        ({"clipnorm": -1.0}, "`clipnorm` must be a number in (0, infinity)"),
        ({"bidirectional": "yes"}, "`bidirectional` must be one of"),
        ({"momentum": (0.9, 0.1)}, "`momentum` must be an interval"),
        ({"return_sequences": True}, "`sequence` says whether there is an output for every"),
    ],
    ids=str,
)
def test_the_hypermodel_refuses_at_once(arguments, message):
    with pytest.raises(ValueError) as error:
        MomentumHyperModel(**{"input_shape": (3, 2), "head": 2, **arguments})
    assert message in str(error.value)


def test_unknown_tasks_are_refused():
    with pytest.raises(ValueError, match=r"Received: tasks=.*'imdb'"):
        paper_trials(["LSTM"], ["mnist", "imdb"])
    with pytest.raises(ValueError, match=r"`layers` must be a list .*'MomentumLSTM'"):
        paper_trials("MomentumLSTM")


# Imports


def test_what_is_missing_is_named(monkeypatch):
    importlib.reload(tuning)
    for module in ("keras_tuner", "sklearn"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError) as error:
        importlib.reload(tuning)
    # Words that work before a release, too.
    assert str(error.value).endswith("Install: pip install keras-tuner scikit-learn")
