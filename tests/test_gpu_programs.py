"""The programs that a GPU would run, as far as a machine without one can make them."""

import re
from types import SimpleNamespace
from unittest import mock

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, lstm_of_jax, normal, stepping_pair
from pairs import compare, pair_of

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths.native.runtime import SWITCH

SHAPE = (3, 7, 2)
# The path of each on a GPU, and whether its recurrence is an operation of cuDNN there.
PATHS = {
    "MomentumLSTM": "fused",
    "AdamLSTM": "drive",
    "NAGGRU": "fused",
    "RMSPropGRU": "drive",
    "MomentumRNN": "filter",
    "AdamRNN": "step",
    "MomentumDTRIV": "filter",
    "MCRM": "step",
    "NestedLSTM": "step",
}
MASK = np.arange(7) < np.array([[7], [4], [0]])


@pytest.fixture
def gpu(monkeypatch):
    """What asks for a GPU finds one."""
    if BACKEND == "jax":
        import jax
        import jax.experimental.rnn

        monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
        lstm = mock.Mock(side_effect=lstm_of_jax)
        monkeypatch.setattr(jax.experimental.rnn, "lstm", lstm)
        return lstm
    import tensorflow as tf

    found = [SimpleNamespace(device_type="GPU")]
    for listed in ("list_physical_devices", "list_logical_devices"):
        monkeypatch.setattr(tf.config, listed, lambda kind=None: found)
    return None


def built(name):
    layer = getattr(kmr, name)(4, return_sequences=True, return_state=True)
    layer.build(SHAPE)
    return layer


@pytest.mark.skipif(BACKEND != "jax", reason="JAX lowers for devices that are not there")
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("name", [*PATHS, "LSTM"])
def test_a_training_step_of_jax_lowers_for_cuda(name, masked, gpu):
    import jax

    layer = built(name)
    path = layer.plan(mask=masked, training=True).path
    assert path == PATHS.get(name, "fused")
    rest = [v.value for v in layer.non_trainable_variables]

    def loss(weights, x, mask):
        results, _ = layer.stateless_call(weights, rest, x, mask=mask, training=True)
        return sum((r**2).sum() for r in results)

    weights = [v.value for v in layer.trainable_variables]
    arguments = weights, np.zeros(SHAPE, "float32"), MASK if masked else None
    traced = jax.jit(jax.grad(loss, argnums=(0, 1))).trace(*arguments)
    program = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo" in program
    # JAX has cuDNN's kernel for the LSTM alone.
    assert gpu.called == ("LSTM" in name and path in ("fused", "drive"))
    # XLA must know in which order it reads x, h and c, and writes the outputs, h and c, and so
    # back, but for the initial states; h at the end is not read where there is a mask.
    told = 8 if masked else 10
    assert program.count("@LayoutConstraint") == (told if gpu.called else 0)


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamLSTM", "LSTM"])
def test_what_cudnn_is_given_by_jax_are_the_weights_of_the_steps(name, gpu):
    options = {"use_recurrent_bias": True} if name == "AdamLSTM" else {}
    compare(pair_of(name, SHAPE, **options), SHAPE, MASK, slots=False)
    assert gpu.called


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamLSTM", "LSTM"])
def test_gradients_outside_a_jit_are_cudnns(name, gpu):
    """There, states of zeros are constants, whose order of memory JAX refuses to fix."""
    import jax

    layers = pair_of(name, SHAPE)
    x = normal(np.random.default_rng(0), *SHAPE)
    for around in (lambda call: call, jax.checkpoint):
        calls = [around(lambda x, layer=layer: layer(x)[0].sum()) for layer in layers]
        one, other = (array(jax.grad(call)(x)) for call in calls)
        assert_close(one, other, 1e-5)
        assert gpu.call_count
        gpu.reset_mock()


@pytest.mark.skipif(BACKEND != "jax", reason="JAX before 0.7 cannot fix the order of memory")
@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamLSTM", "LSTM"])
def test_an_old_jax_does_not_call_cudnn(name, gpu, monkeypatch):
    import jax

    monkeypatch.setattr(jax, "__version_info__", (0, 6, 2))
    layer = built(name)
    layer(normal(np.random.default_rng(0), *SHAPE), training=True)
    assert not gpu.called


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("dtype, time", [("mixed_float16", 7), ("float32", 1)])
def test_what_cudnn_of_jax_cannot_do_is_looped(dtype, time, gpu):
    """It has no half precision, and one step is no loop, which Keras leaves to it, too."""
    x = np.ones((3, time, 2), "float32")
    kmr.LSTM(4, dtype=dtype)(x)
    kmr.AdamLSTM(4, dtype=dtype)(x)
    assert not gpu.called
    if time > 1:
        with pytest.raises(ValueError, match="use_cudnn=True"):
            kmr.LSTM(4, dtype=dtype, use_cudnn=True)(x)


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("name", ["LSTM", "AdamLSTM"])
def test_what_cudnn_of_jax_refuses_is_looped(name, monkeypatch):
    """JAX's own function, which traces here, but for the sizes that it asks cuDNN for."""
    import jax
    from jax.experimental import rnn

    sizes = {"compute_rnn_workspace_reserve_space_sizes": lambda *_: (0, 8)}
    monkeypatch.setattr(rnn, "gpu_rnn", SimpleNamespace(**sizes))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    layers = stepping_pair(lambda: getattr(kmr, name)(4), SHAPE)
    x = normal(np.random.default_rng(0), *SHAPE)
    programs = [str(jax.make_jaxpr(layer.call)(x)) for layer in layers]
    assert ["rnn_fwd" in program for program in programs] == [True, False]

    def norm(layer):
        return lambda x: (layer(x) ** 2).sum()

    def second(layer):
        return jax.grad(lambda x: (jax.grad(norm(layer))(x) ** 2).sum())(x)

    def in_bfloat16(layer):
        with jax.default_matmul_precision("bfloat16"):
            program = jax.make_jaxpr(layer.call)(x)
            assert "rnn_fwd" not in str(program)
            return layer(x)

    def in_shards(layer):
        mesh, axis = (
            jax.sharding.Mesh(np.array(jax.devices()), "d"),
            jax.sharding.PartitionSpec("d"),
        )
        mapped = jax.shard_map(layer, mesh=mesh, in_specs=axis, out_specs=axis)
        # Of what cuDNN computed, a gradient would lack its sums over devices.
        assert "rnn_fwd" not in str(jax.make_jaxpr(mapped)(x))
        return mapped(x)

    for results in (second, lambda layer: jax.vmap(layer)(x[None]), in_bfloat16, in_shards):
        one, other = map(results, layers)
        assert_close(array(one), array(other), 1e-4)


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", ["LSTM", "MomentumLSTM", "AdamLSTM", "NAGGRU", "AdamRNN"])
def test_calls_of_torch_are_as_a_gpu_needs_them(name, grad, monkeypatch):
    """cuDNN gets whole arrays, keeps nothing for no gradient, and nothing waits for it."""
    import torch

    run, given = torch.func.functional_call, []

    def functional_call(module, weights, inputs):
        given.append((module.training, [*weights.values(), *keras.tree.flatten(inputs[1])]))
        return run(module, weights, inputs)

    monkeypatch.setenv(SWITCH, "0")
    monkeypatch.setattr("keras_momentum_rnn.recurrent.current_device", lambda: "gpu")
    monkeypatch.setattr("keras_momentum_rnn.layers.plain.current_device", lambda: "gpu")
    monkeypatch.setattr(torch.func, "functional_call", functional_call)
    x = torch.from_numpy(normal(np.random.default_rng(0), *SHAPE))
    layer = built(name)
    # Views, as a model that transposes has them.
    states = [torch.ones(s, 3).T for s in layer.state_size] if "RNN" in name else None
    with torch.set_grad_enabled(grad), torch.profiler.profile() as profile:
        layer(x, training=grad, initial_state=states)
    ((training, arrays),) = given
    assert training == grad
    assert all(a.is_contiguous() for a in arrays)
    # Numbers that move from the CPU, and back.
    assert not {"aten::lift_fresh", "aten::item"} & {e.key for e in profile.key_averages()}


@pytest.mark.skipif(BACKEND != "tensorflow", reason="a graph of TensorFlow")
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("name", PATHS)
def test_a_training_step_of_tensorflow_has_the_operations_of_cudnn(name, masked, gpu):
    import tensorflow as tf

    layer = built(name)
    assert layer.plan(mask=masked, training=True).path == PATHS[name]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            outputs, *_ = layer(x, mask=MASK if masked else None, training=True)
            loss = tf.reduce_sum(outputs**2)
        return tape.gradient(loss, [v.value for v in layer.trainable_variables])

    graph = step.get_concrete_function(tf.TensorSpec(SHAPE)).graph
    of_cudnn = {op.type for op in graph.get_operations() if re.match("Cudnn", op.type)}
    fused = PATHS[name] in ("fused", "drive")
    assert of_cudnn == ({"CudnnRNNV3", "CudnnRNNBackpropV3"} if fused else set())
    # XLA has none of them.
    assert layer.supports_jit != fused
