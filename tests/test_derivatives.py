"""Second derivatives and function transforms: as those of the step form, on every path."""

import keras
import numpy as np
import pytest
from cases import CASES, Case
from cases import GRU as GRU_OF_KERAS
from harness import BACKEND, array, assert_close, normal, randomise, stepping_pair
from keras import ops
from masks import MASKS

from keras_momentum_rnn import GRU, LSTM, AdamLSTM, RuleGRU, SimpleRNN, rules

TIME, FEATURES, UNITS = 7, 2, 3
# One of each recurrence, and of each kind of rule.
NAMES = (
    "AdamLSTM",
    "RMSPropGRU",
    "NAGLSTM",
    "MomentumRNN",
    "SRDTRIV",
    "AdamDTRIV-cayley",
    "SRLSTM-released",
    "MCRM-momentum",
    "NestedLSTM",
)
ROWS = [case for case in CASES if case.id in NAMES]
LEARNED = Case(
    RuleGRU,
    "LearnedMomentum",
    {},
    *GRU_OF_KERAS,
    options={"rule": rules.LearnedMomentum(per="unit")},
    label="RuleGRU-learned",
)


def pair(case, **options):
    """A layer on its fast path, which is in float32, and one that steps."""
    options = {"dtype": "float64" if BACKEND == "tensorflow" else "float32", **options}
    return stepping_pair(lambda: case.layer(UNITS, **options), (3, TIME, FEATURES))


def function_of(layer, mask=None, **call):
    """The loss as a function of x and the trainable weights."""
    rest = [v.value for v in layer.non_trainable_variables]

    def loss(x, *weights):
        results, _ = layer.stateless_call(list(weights), rest, x, mask=mask, **call)
        return sum(map(ops.sum, keras.tree.flatten(results)))

    return loss


def arguments(layer):
    dtype = layer.compute_dtype
    x = normal(np.random.default_rng(1), 3, TIME, FEATURES)
    return [
        ops.convert_to_tensor(x, dtype=dtype),
        *(ops.convert_to_tensor(w) for w in layer.trainable_variables),
    ]


def gradient_penalty(layer, mask, **call):
    """The gradients of |d loss / d x|^2 by x and all weights; the loss is linear in states."""
    loss, values = function_of(layer, mask, **call), arguments(layer)
    if BACKEND == "torch":
        import torch

        values = [v.detach().clone().requires_grad_() for v in values]
        (by_x,) = torch.autograd.grad(loss(*values), values[0], create_graph=True)
        return torch.autograd.grad(by_x.square().sum(), values, materialize_grads=True)
    if BACKEND == "jax":
        import jax

        def penalty(*values):
            return (jax.grad(loss)(*values) ** 2).sum()

        return jax.jit(jax.grad(penalty, argnums=tuple(range(len(values)))))(*values)
    import tensorflow as tf

    @tf.function
    def compiled(*values):
        with tf.GradientTape() as outer:
            outer.watch(values)
            with tf.GradientTape() as tape:
                tape.watch(values)
                value = loss(*values)
            by_x = tape.gradient(value, values[0])
            penalty = tf.reduce_sum(by_x**2)
        return outer.gradient(penalty, values, unconnected_gradients="zero")

    return compiled(*values)


@pytest.mark.second_derivatives
@pytest.mark.parametrize("mask", [None, "holes"])
@pytest.mark.parametrize("case", [*ROWS, LEARNED])
def test_second_derivatives_are_those_of_the_steps(case, mask):
    # With a mask the final states are those of the samples' ends, not of the last step.
    fast, step = pair(case, return_state=True)
    if mask is not None:
        mask = ops.convert_to_tensor(MASKS[mask](3, TIME))
    actual, expected = gradient_penalty(fast, mask), gradient_penalty(step, mask)
    for one, other in zip(actual, expected):
        assert_close(array(one), array(other), 1e-9 if BACKEND == "tensorflow" else 1e-4)
    # The recurrent weights have a part in it: None or zero is what a missing term gives.
    assert max(abs(array(g)).max() for g in expected[1:]) > 1e-3


TRANSFORMED = [case for case in ROWS if case.id not in ("SRDTRIV", "AdamDTRIV-cayley")]


@pytest.mark.transforms
@pytest.mark.parametrize("case", TRANSFORMED)
def test_vectorized_map_equals_a_loop(case):
    layer = pair(case)[0]
    rest = [v.value for v in layer.non_trainable_variables]
    weights = [ops.convert_to_tensor(w) for w in layer.trainable_variables]
    x = normal(np.random.default_rng(2), 4, 3, TIME, FEATURES)
    x = ops.convert_to_tensor(x, dtype=layer.compute_dtype)

    # Only TensorFlow traces another path in training.
    for training in (False, True) if BACKEND == "tensorflow" else (False,):

        def outputs_of(x, training=training):
            return layer.stateless_call(weights, rest, x, training=training)[0]

        actual = ops.vectorized_map(outputs_of, x)
        assert_close(array(actual), np.stack([array(outputs_of(part)) for part in x]), 1e-6)


@pytest.mark.transforms
@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow has no function transforms")
@pytest.mark.parametrize("case", TRANSFORMED)
def test_gradients_of_each_sample_and_forward_mode(case):
    """grad, jacfwd and vmap of grad over all weights, beside the plain gradient."""
    layer = pair(case)[0]
    values = arguments(layer)
    loss = function_of(layer)
    if BACKEND == "torch":
        import torch

        plain = torch.autograd.grad(
            loss(*(values := [v.detach().clone().requires_grad_() for v in values])), values
        )
        values = [v.detach() for v in values]
        grad, vmap, jvp = torch.func.grad, torch.func.vmap, torch.func.jvp
    else:
        import jax

        grad, vmap, jvp = jax.grad, jax.vmap, jax.jvp
        plain = jax.grad(loss, argnums=tuple(range(len(values))))(*values)
    every = tuple(range(len(values)))
    for one, other in zip(grad(loss, argnums=every)(*values), plain):
        assert_close(array(one), array(other), 1e-5)
    in_dims = (0, *[None] * (len(values) - 1))
    each = vmap(grad(loss, argnums=every), in_dims)(values[0][:, None], *values[1:])
    for one, other in zip(each[1:], plain[1:]):
        assert_close(array(one).sum(0), array(other), 1e-5)
    tangents = tuple(ops.ones_like(v) for v in values)
    _, slope = jvp(loss, tuple(values), tangents)
    expected = sum(float(ops.sum(g)) for g in plain)
    assert_close(array(slope), expected, 1e-4)


@pytest.mark.transforms
@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
@pytest.mark.parametrize("cls", [AdamLSTM, LSTM, GRU], ids=lambda c: c.__name__)
def test_transforms_inside_what_is_compiled(cls):
    import torch

    layer = cls(UNITS)
    x, tangent = torch.randn((3, TIME, FEATURES)), torch.ones((3, TIME, FEATURES))
    plain, compiled = layer(x), torch.compile(layer, backend="eager")
    for function in (
        lambda x: torch.func.jvp(layer, (x,), (tangent,))[1],
        torch.func.grad(lambda x: layer(x).sum()),
        lambda x: torch.func.vmap(layer)(torch.stack([x, -x])),
    ):
        inside = torch.compile(function, backend="eager")(x)
        assert_close(array(inside), array(function(x)), 1e-5)
        assert_close(array(compiled(x)), array(plain), 1e-5)


@pytest.mark.transforms
@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
def test_forward_mode_by_the_weights_alone():
    import torch
    from torch.autograd import forward_ad

    layer = pair(next(case for case in ROWS if case.id == "AdamLSTM"))[0]
    x, *weights = arguments(layer)
    loss, weights = function_of(layer), [w.detach().requires_grad_() for w in weights]
    expected = sum(g.sum() for g in torch.autograd.grad(loss(x, *weights), weights))
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(w.detach(), torch.ones_like(w)) for w in weights]
        slope = forward_ad.unpack_dual(loss(x, *duals)).tangent
    assert_close(array(slope), array(expected), 1e-4)


@pytest.mark.transforms
@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
@pytest.mark.parametrize("case", [case for case in ROWS if case.id != "SRLSTM-released"])
def test_gradients_of_many_results_at_once(case):
    """A vectorized Jacobian: the call is plain, and `vmap` acts on its gradient alone."""
    import torch

    layers = pair(case)
    x = arguments(layers[0])[0]
    assert layers[0].plan(training=True).path == "native"
    actual, expected = (
        torch.autograd.functional.jacobian(layer, x, vectorize=fast)
        for layer, fast in zip(layers, (True, False))
    )
    assert_close(array(actual), array(expected), 1e-5)


@pytest.mark.parametrize("cls", [AdamLSTM, LSTM, GRU, SimpleRNN], ids=lambda c: c.__name__)
def test_a_sequence_of_no_steps_is_refused(cls):
    with pytest.raises(ValueError, match=r"needs at least one time step.*\(3, 0, 2\)"):
        cls(UNITS)(np.zeros((3, 0, FEATURES), "float32"))


@pytest.mark.second_derivatives
@pytest.mark.parametrize("mask", [None, "holes"])
@pytest.mark.parametrize("case", [case for case in ROWS if case.id in ("NAGLSTM", "AdamLSTM")])
def test_second_derivatives_keep_all_that_the_call_was_given(case, mask):
    """The masks of dropout; the row with a mask of steps gives states and counters, too."""
    options = {"dropout": 0.2, "recurrent_dropout": 0.3, "seed": 3, "dtype": "float32"}
    layers, call = pair(case, **options), {"training": True}
    assert layers[0].plan(training=True, mask=mask is not None).path == "native"
    if mask is not None:
        mask, rng = ops.convert_to_tensor(MASKS[mask](3, TIME)), np.random.default_rng(2)
        states = [np.abs(normal(rng, 3, size)) for size in layers[0].state_size]
        if case.id == "NAGLSTM":
            states[-1] = np.float32([[0], [1], [5]])
        call["initial_state"] = list(map(ops.convert_to_tensor, states))
    fast, step = (gradient_penalty(layer, mask, **call) for layer in layers)
    for one, other in zip(fast, step):
        assert_close(array(one), array(other), 1e-3)
    x = arguments(layers[0])[0]
    one, other = (array(layer(x)) for layer in layers)
    assert_close(one, other, 1e-5)


@pytest.mark.second_derivatives
@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
@pytest.mark.parametrize("frozen", [["kernel", "bias"], ["kernel", "bias", "recurrent_kernel"]])
def test_second_derivatives_where_some_weights_are_frozen(frozen):
    import torch

    found = []
    for path in ("auto", False):
        layer = AdamLSTM(UNITS, epsilon=1e-2, return_state=True, use_cudnn=path)
        layer.build((3, TIME, FEATURES))
        randomise(layer, np.random.default_rng(0))
        for name in frozen:
            getattr(layer.cell, name).value.requires_grad_(False)
        x = torch.tensor(normal(np.random.default_rng(1), 3, TIME, FEATURES))
        x.requires_grad_("recurrent_kernel" in frozen)
        wanted = x if x.requires_grad else layer.cell.recurrent_kernel.value
        results = layer(x, training=True)
        (first,) = torch.autograd.grad(
            sum(r.square().sum() for r in results), wanted, create_graph=True
        )
        found.append(torch.autograd.grad(first.square().sum(), wanted)[0])
    assert_close(array(found[0]), array(found[1]), 1e-3)


@pytest.mark.second_derivatives
@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
def test_second_derivatives_where_first_states_depend_on_the_weights():
    import torch

    found = []
    for path in ("auto", False):
        layer = AdamLSTM(UNITS, epsilon=1e-2, return_state=True, use_cudnn=path)
        layer.build((3, TIME, FEATURES))
        randomise(layer, np.random.default_rng(0))
        x = torch.tensor(normal(np.random.default_rng(1), 3, TIME, FEATURES))
        x.requires_grad_()
        _, *states = layer(x, training=True)
        results = layer(x, initial_state=states, training=True)
        total = sum(r.square().sum() for r in results)
        (first,) = torch.autograd.grad(total, x, create_graph=True)
        weights = [w.value for w in layer.trainable_variables]
        found.append(torch.autograd.grad(first.square().sum(), weights))
    for one, other in zip(*found):
        assert_close(array(one), array(other), 1e-3)
