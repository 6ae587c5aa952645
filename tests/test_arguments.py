"""Arguments: bad ones are refused with their value, good ones reach the config."""

import inspect
import re

import keras
import numpy as np
import pytest
from cases import CASES

import keras_momentum_rnn as kmr
from keras_momentum_rnn.layers.registry import our_layers

STACK = keras.layers.StackedRNNCells([keras.layers.GRUCell(4), keras.layers.GRUCell(4)])
BAD = {
    "momentum": [-0.1, float("nan"), float("inf"), "0.5", None, True],
    "step_size": [0, -1.0, float("inf"), float("nan")],
    "beta": [-0.1, 1, 1.0, float("nan")],
    "epsilon": [0, -1e-8],
    "restart_period": [0, -3, 2.0, "4", True],
    "units": [0, -1, 2.5, "8", None],
    "dropout": [-0.1, 1.0, 1.5],
    "recurrent_dropout": [-0.1, 1.0],
    "formulation": ["text", None],
    "parameterization": ["output", None],
    "parametrization": ["exp", None],
    "initial_rotation": ["identity", None],
    "rebase_every": [0, -1, 2.5, "4", True],
    "recurrent_lr_multiplier": [0, -1.0, float("inf"), float("nan"), "2"],
    "memory": [3, "gru", keras.layers.GRU(4), STACK],
    "relaxed": ["no", 1],
    "use_recurrent_bias": ["yes", 1],
    "scale_free": ["yes", None, 1],
    "use_cudnn": ["yes", None, 1],
}

REFUSALS = [
    pytest.param(case, name, id=f"{case.id}-{name}")
    for case in CASES
    for name in BAD
    if name in inspect.signature(case.layer_class).parameters
]


@pytest.mark.parametrize("case, name", REFUSALS)
def test_bad_values_are_refused_with_the_value(case, name):
    def refused(value):
        try:
            case.layer(**{"units": 4, name: value})
        except ValueError as error:
            return re.search(f"`{name}`.*Received: {name}=", str(error))

    assert [value for value in BAD[name] if not refused(value)] == []


@pytest.mark.parametrize("case", CASES)
def test_unknown_argument_is_refused(case):
    with pytest.raises((TypeError, ValueError), match="momentun"):
        case.layer(momentun=0.9)
    with pytest.raises((TypeError, ValueError), match="momentun"):
        case.layer().cell.__class__(4, momentun=0.9)


def test_foreign_numbers_and_rules_are_refused():
    with pytest.raises(ValueError, match="beta"):
        kmr.MomentumLSTM(4, beta=0.9)
    with pytest.raises(ValueError, match="rule of its own"):
        kmr.MomentumLSTMCell(4, rule=kmr.rules.NAG())
    with pytest.raises(ValueError, match="rule"):
        kmr.MomentumLSTM(4, rule=kmr.rules.NAG())


@pytest.mark.parametrize(
    "layer, wrong, right",
    [
        (kmr.MomentumLSTM, "mu", "momentum"),
        (kmr.MomentumLSTM, "momentun", "momentum"),
        (kmr.AdamLSTM, "betta", "beta"),
        (kmr.SRGRU, "stepsize", "step_size"),
        (kmr.DTRIV, "rebase_evry", "rebase_every"),
        (kmr.RMSPropRNNCell, "eps", "epsilon"),
    ],
)
def test_a_misspelt_argument_names_the_nearest(layer, wrong, right):
    message = f"{layer.__name__} has no argument `{wrong}`. Did you mean `{right}`"
    with pytest.raises(ValueError, match=message):
        layer(4, **{wrong: 0.9})


@pytest.mark.parametrize("case", CASES)
def test_messages_name_the_layer_and_the_shapes_of_its_user(case):
    name = case.layer_class.__name__
    with pytest.raises(TypeError, match=f"^{name}: missing a required argument: 'units'"):
        case.layer_class()
    if "activation" in inspect.signature(case.layer_class).parameters:
        with pytest.raises(ValueError, match=rf"of {name}.*by keyword.*activation=0.6"):
            case.layer_class(4, 0.6)
    layer = case.layer()
    layer.build((2, 5, 3))
    with pytest.raises(ValueError, match=r"axis -1 .* value 3, .* shape \(2, 5, 7\)"):
        layer(np.zeros((2, 5, 7), "float32"))


@pytest.mark.parametrize(
    "layer, numbers",
    [
        (kmr.AdamLSTM, {"epsilon": 1e-46}),
        (kmr.AdamLSTM, {"epsilon": 1e-39}),
        (kmr.MomentumLSTM, {"step_size": 1e-200}),
        (kmr.MomentumLSTM, {"step_size": 1e200}),
        (kmr.RMSPropGRU, {"step_size": 10**400}),
        (kmr.MomentumRNN, {"momentum": 1e-60}),
        (kmr.SRLSTM, {"restart_period": 2**23 + 1}),
    ],
    ids=str,
)
def test_numbers_that_a_float32_cannot_hold_are_refused(layer, numbers):
    ((name, value),) = numbers.items()
    received = re.escape(f"Received: {name}={value}")
    with pytest.raises(ValueError, match=f"`{name}` must be.*{received}"):
        layer(4, **numbers)


def test_the_momentum_of_equation_14_is_below_1():
    """The share of the input, 1 - momentum, would be 0 or negative."""
    with pytest.raises(ValueError, match=r"`momentum` must be.*Received: momentum=1"):
        kmr.AdamLSTM(4, momentum=1, relaxed=False)


@pytest.mark.parametrize(
    "layer, numbers",
    [(kmr.AdamLSTM, {}), (kmr.RMSPropRNN, {}), (kmr.AdamGRU, {"relaxed": False})],
    ids=["AdamLSTM", "RMSPropRNN", "AdamGRU-equation14"],
)
@pytest.mark.parametrize("step_size", [1e-30, 1e30])
def test_extreme_step_sizes_are_computed_as_they_are(layer, numbers, step_size):
    """The squares in the gradient of the native kernel would leave float32."""
    layer = layer(4, step_size=step_size, return_state=True, **numbers)
    x = np.ones((1, 3, 2), "float32")
    _, *states = layer(x)
    assert all(np.isfinite(keras.ops.convert_to_numpy(s)).all() for s in states)
    plan = layer.plan()
    assert plan.path == "step"


@pytest.mark.parametrize(
    "rule, hint",
    [
        ("Adam", "Adam"),
        ("adam", "Adam"),
        (kmr.rules.NAG, "NAG"),
        (keras.optimizers.RMSprop(), "RMSProp"),
        (None, "Adam"),
    ],
)
def test_what_is_no_rule_gets_a_hint(rule, hint):
    with pytest.raises(ValueError, match=rf"`rule` must be .*, such as rules\.{hint}\(\)"):
        kmr.RuleLSTM(4, rule=rule)


def test_scale_free_is_an_argument_of_two_layers():
    with pytest.raises(ValueError, match=r"^AdamGRU has no argument `scale_free`"):
        kmr.AdamGRU(4, scale_free=True)
    with_it = [
        name
        for name, cls in our_layers().items()
        if "scale_free" in inspect.signature(cls).parameters
    ]
    assert with_it == ["AdamLSTM", "RMSPropLSTM"]
    with pytest.raises(TypeError, match="two values for units"):
        kmr.AdamLSTM(4, units=5, scale_free=True)


@pytest.mark.parametrize("name", ["activation", "recurrent_constraint"])
@pytest.mark.parametrize("part", [kmr.DTRIV, kmr.DTRIVCell], ids=lambda c: c.__name__)
def test_arguments_without_a_meaning_are_refused(part, name):
    with pytest.raises(
        ValueError, match=f"{part.__name__} takes no `{name}`.*Received: {name}='relu'"
    ):
        part(4, **{name: "relu"})


def test_memory_of_another_width_is_refused():
    with pytest.raises(ValueError, match="memory of 3 units in a shell of 4"):
        kmr.MCRM(4, memory=keras.layers.GRUCell(3))


def test_momentum_of_one_warns():
    with pytest.warns(UserWarning, match="momentum=1.0"):
        kmr.MomentumLSTM(4, momentum=1.0)


@pytest.mark.parametrize("case", CASES)
def test_wrong_number_of_initial_states_is_refused(case):
    x = np.zeros((2, 3, 3), "float32")
    layer = case.layer()
    states = [np.zeros((2, 4), "float32")] * (layer.cell.own_state_count + 1)
    if len(states) == len(layer.state_size):
        states += states
    with pytest.raises(ValueError, match=f"{len(states)} tensors"):
        layer(x, initial_state=states)


@pytest.mark.parametrize("case", CASES)
def test_initial_states_of_a_wrong_shape_are_refused(case):
    layer = case.layer()
    good = [np.zeros((2, size), "float32") for size in layer.state_size]
    for i, size in enumerate(layer.state_size):
        for shape in ((2, size + 1), (1, size), (size,)):
            states = [*good[:i], np.zeros(shape, "float32"), *good[i + 1 :]]
            with pytest.raises(ValueError, match=rf"`initial_state\[{i}\]`"):
                layer(np.zeros((2, 3, 3), "float32"), initial_state=states)


def test_a_stateful_layer_takes_no_other_batch():
    layer = kmr.MomentumLSTM(4, stateful=True)
    layer(np.zeros((2, 3, 3), "float32"))
    with pytest.raises(ValueError, match="built for a batch of 2"):
        layer(np.zeros((1, 3, 3), "float32"))


@pytest.mark.parametrize("case", CASES)
def test_positional_order_of_keras(case):
    taken = inspect.signature(case.layer_class).parameters
    names = [n for n in inspect.signature(case.keras_layer).parameters if n in taken]
    use_bias = not taken["use_bias"].default
    values = {"units": 5, "activation": "relu", "recurrent_activation": "tanh"}
    last = names.index("use_bias")
    layer = case.layer_class(*(values[n] for n in names[:last]), use_bias)
    assert layer.units == 5
    assert layer.use_bias is use_bias
    if "activation" in names:
        assert layer.activation is keras.activations.relu
    if "recurrent_activation" in names:
        assert layer.recurrent_activation is keras.activations.tanh


OTHER_VALUES = {
    "activation": "relu",
    "recurrent_activation": "tanh",
    "seed": 3,
    "dtype": "float16",
    "use_cudnn": False,
    "formulation": "released",
    "parameterization": "hidden",
    "parametrization": "cayley",
    "initial_rotation": "skew",
    "rebase_every": 7,
    "rule": kmr.rules.NAG(),
    "memory": keras.layers.SimpleRNNCell(4),
    "restart_period": 7,
    "units": 5,
}


def other_value(name, default):
    """A value of an argument that is not its default."""
    if name in OTHER_VALUES:
        return OTHER_VALUES[name]
    if isinstance(default, bool):
        return not default
    if isinstance(default, float):
        return 0.25
    if name.endswith("initializer"):
        return "ones"
    if name.endswith("regularizer"):
        return "l2"
    if name.endswith("constraint"):
        return "non_neg"
    raise AssertionError(f"give {name} a value in OTHER_VALUES")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("part", ["layer", "cell"])
def test_every_argument_is_in_the_config(case, part):
    cls = case.layer_class if part == "layer" else type(case.layer().cell)
    parameters = inspect.signature(cls).parameters
    names = [n for n, p in parameters.items() if p.kind is not p.VAR_KEYWORD]
    if case.keras_layer is not keras.layers.SimpleRNN:
        names.append("implementation")
    plain = cls(units=4).get_config()
    for name in names:
        default = parameters[name].default if name in parameters else 2
        value = 1 if name == "implementation" else other_value(name, default)
        made = cls(**{"units": 4, name: value})
        config = made.get_config()
        assert name in config
        assert config == cls.from_config(config).get_config()
        assert config[name] != plain[name]


@pytest.mark.parametrize("case", CASES)
def test_numbers_can_be_read(case):
    layer = case.layer()
    for name, value in case.numbers.items() if "rule" not in case.options else ():
        assert getattr(layer, name) == getattr(layer.cell, name) == value
