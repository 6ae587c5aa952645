"""The native kernel as an operation of a backend: transforms, graphs, memory, files."""

import sys
from unittest import mock

import keras
import numpy as np
import pytest
from harness import BACKEND, array, assert_close, normal
from masks import MASKS
from pairs import compare, pair, pair_of

import keras_momentum_rnn as kmr
from keras_momentum_rnn.paths.native import runtime

numba = pytest.importorskip("numba", reason="the native kernel needs it")
if BACKEND == "torch":
    import torch


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch's tensors can be changed")
def test_a_state_that_is_changed_does_not_reach_the_gradient():
    gradients = []
    for changes in (False, True):
        layer = pair(kmr.MomentumLSTM, (3, 9, 5), units=16)[0]
        x = torch.tensor(normal(np.random.default_rng(0), 3, 9, 5), requires_grad=True)
        outputs, h, c, v = layer(x, training=True)
        if changes:
            for state in (h, c, v):
                state.detach().zero_()
        outputs.sum().backward()
        gradients.append(array(x.grad))
    assert np.array_equal(*gradients)


@pytest.mark.skipif(BACKEND != "torch", reason="a checkpoint of PyTorch")
def test_a_checkpoint_computes_the_same_gradients():
    from torch.utils.checkpoint import checkpoint

    layer = pair(kmr.AdamLSTM, (3, 9, 5), units=16)[0]
    x = torch.tensor(normal(np.random.default_rng(0), 3, 9, 5), requires_grad=True)
    kept, again = layer(x)[0], checkpoint(layer, x, use_reentrant=False)[0]
    gradients = [torch.autograd.grad(outputs.sum(), x)[0] for outputs in (kept, again)]
    assert np.array_equal(*map(array, gradients))


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch's tensors can be changed")
@pytest.mark.parametrize("units", [4, 16])
@pytest.mark.parametrize("name", ["MomentumLSTM", "AdamGRU", "NestedLSTM"])
def test_outputs_and_states_share_no_memory(name, units):
    for options in ({}, {"return_sequences": False}):
        layer = pair_of(name, (3, 9, 5), units, **options)[0]
        with torch.no_grad():
            results = layer(normal(np.random.default_rng(0), 3, 9, 5), training=True)
            for i, changed in enumerate(results):
                others = [array(r).copy() for r in results]
                changed.view(-1).add_(1)
                for j, (result, before) in enumerate(zip(results, others)):
                    assert np.array_equal(array(result), before) == (i != j)


@pytest.mark.skipif(BACKEND != "torch", reason="modules are PyTorch's")
@pytest.mark.parametrize("name", ["LSTM", "AdamLSTM", "MomentumGRU"])
@pytest.mark.parametrize(
    "dtype, tolerance", [("bfloat16", 2e-2), ("half", 2e-3), ("double", 1e-7)]
)
def test_modules_of_another_dtype_and_tensors_without_values(name, dtype, tolerance):
    x = torch.tensor(normal(np.random.default_rng(0), 3, 9, 5))
    # Of 16 units no weight is copied to be padded.
    model = keras.Sequential([keras.Input((9, 5)), getattr(kmr, name)(16)])
    expected = array(model(x))
    assert model(x.to("meta")).shape == (3, 16)
    getattr(model, dtype)()
    assert_close(array(model(x)), expected, tolerance)
    model(x, training=True).sum().backward()
    given = {p.grad.dtype for p in model.parameters() if p.requires_grad}
    assert given == {getattr(torch, dtype)}


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch's tensors can be changed")
def test_a_mask_that_is_changed_does_not_reach_the_gradient():
    gradients = []
    for changes in (False, True):
        layer = pair(kmr.LSTM, (3, 9, 5), units=16)[0]
        mask = torch.from_numpy(MASKS["window"](3, 9))
        outputs = layer(normal(np.random.default_rng(0), 3, 9, 5), mask=mask)[0]
        if changes:
            mask.logical_not_()
        kernel = layer.cell.kernel.value
        for create in (True, False):  # by the steps, by the kernel
            (gradient,) = torch.autograd.grad(outputs.sum(), kernel, None, True, create)
            gradients.append(array(gradient))
    by_steps, expected, *changed = gradients
    assert_close(by_steps, expected, 1e-5)
    for gradient, unchanged in zip(changed, gradients):
        assert np.array_equal(gradient, unchanged)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="only TensorFlow has gradients in slices")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("traced", [False, True])
def test_a_gradient_that_comes_in_slices(traced, training):
    import tensorflow as tf

    layers = pair(kmr.LSTM, (4, 9, 5), units=16)
    x = tf.constant(normal(np.random.default_rng(0), 4, 9, 5))

    def gradient(layer):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = layer(x, training=training)[0]
            loss = tf.reduce_sum(tf.gather(outputs, [0, 2, 2, 1]) ** 2)
        return tape.gradient(loss, x)

    native, steps = (tf.function(lambda one=one: gradient(one)) for one in layers)
    if not traced:
        native, steps = (lambda one=one: gradient(one) for one in layers)
    assert_close(array(native()), array(steps()), 1e-5)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="graphs of TensorFlow")
@pytest.mark.parametrize("name", ["LSTM", "AdamLSTM", "RuleGRU"])
def test_a_graph_of_tensorflow_without_sizes(name):
    import tensorflow as tf

    x = normal(np.random.default_rng(0), 3, 9, 5)
    rule = {"rule": kmr.rules.LearnedMomentum()} if name == "RuleGRU" else {}
    layer = getattr(kmr, name)(4, **rule)
    expected = array(layer(x))
    spec = [tf.TensorSpec((None, None, None))]
    for training in (False, True):
        graph = tf.function(lambda x, t=training: layer(x, training=t), input_signature=spec)
        assert_close(array(graph(tf.constant(x))), expected, 1e-5)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="XLA is a choice on TensorFlow alone")
def test_a_model_for_xla_is_compiled_without_it():
    model = keras.Sequential([keras.Input((5, 3)), kmr.MomentumLSTM(4), keras.layers.Dense(1)])
    with pytest.warns(UserWarning, match="jit_compile"):
        model.compile("sgd", "mse", jit_compile=True)
    model.fit(np.zeros((4, 5, 3)), np.zeros((4, 1)), verbose=0)
    assert not model.jit_compile


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.transforms
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["LSTM", "AdamGRU"])
def test_results_vary_over_the_axes_of_a_shard_map(name, training):
    """By its types JAX knows where a gradient needs a sum over devices: one shows as much."""
    import jax

    layer = pair_of(name, (64, 9, 5), units=16)[0]
    weights = [w.value for w in layer.trainable_variables]

    def results(x, weights):
        numbers = [v.value for v in layer.non_trainable_variables]
        found = layer.stateless_call(weights, numbers, x, training=training)[0]
        return sum(map(jax.numpy.sum, found)), found

    def derivatives(x, weights):
        gradients, found = jax.grad(results, (0, 1), has_aux=True)(x, weights)
        kinds.extend(str(jax.typeof(r)).count("{V:d}") for r in [*found, gradients[0]])
        kinds.extend(str(jax.typeof(g)).count("{V:d}") for g in gradients[1])
        return gradients

    kinds, one, all_ = [], jax.sharding.PartitionSpec("d"), jax.sharding.PartitionSpec()
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",))
    mapped = jax.shard_map(derivatives, mesh=mesh, in_specs=(one, all_), out_specs=(one, all_))
    x = jax.numpy.asarray(normal(np.random.default_rng(0), 64, 9, 5))
    actual, expected = jax.jit(mapped)(x, weights), derivatives(x, weights)
    mapped = jax.shard_map(
        lambda x: results(x, weights)[1], mesh=mesh, in_specs=one, out_specs=one
    )
    actual, expected = (actual, mapped(x)), (expected, results(x, weights)[1])
    for one, other in zip(*map(jax.tree.leaves, (actual, expected)), strict=True):
        assert_close(array(one), array(other), 1e-6)
    varying = len(kinds) // 2 - len(weights)
    assert kinds[: len(kinds) // 2] == [1] * varying + [0] * len(weights)


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
def test_without_the_interface_of_xla_the_numbers_stay(monkeypatch):
    from keras_momentum_rnn.paths.native import jax_call

    assert jax_call.by_ffi()
    monkeypatch.setattr(jax_call, "by_ffi", lambda: False)
    compare(pair(kmr.AdamLSTM, (3, 9, 5)), (3, 9, 5), MASKS["holes"](3, 9), tolerance=1e-4)


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
def test_with_numbers_of_64_bits_on_jax():
    import jax

    with jax.enable_x64(True):
        compare(pair(kmr.NAGLSTM, (3, 9, 5)), (3, 9, 5), MASKS["holes"](3, 9))
        x = normal(np.random.default_rng(0), 3, 9, 5)
        fast, steps = pair_of("AdamRNN", x.shape, dtype="float64")
        outputs = array(fast(x)[0])
        assert outputs.dtype == "float64"
        assert_close(outputs, array(steps(x)[0]), 1e-7)


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
def test_an_interface_of_another_version_is_not_called(monkeypatch):
    from keras_momentum_rnn.paths import xla_ffi
    from keras_momentum_rnn.paths.native import jax_call

    monkeypatch.setattr(xla_ffi, "MINORS", ())
    monkeypatch.setattr(jax_call, "PREFIX", "keras_momentum_rnn.other_version")
    assert not jax_call.by_ffi.__wrapped__()


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
def test_a_transfer_guard_does_not_hide_the_interface_of_xla(monkeypatch):
    import jax

    from keras_momentum_rnn.paths.native import jax_call

    monkeypatch.setattr(jax_call, "PREFIX", "keras_momentum_rnn.guarded")
    with jax.transfer_guard("disallow"):
        assert jax_call.by_ffi.__wrapped__()


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("name", ["AdamGRU", "MCRM"])
def test_jax_transforms_in_training(name):
    import jax

    options = {"return_sequences": False, "return_state": False}
    fast, step = pair_of(name, (3, 9, 5), **options)
    x = normal(np.random.default_rng(0), 3, 9, 5)

    def functions(layer):
        rest = [v.value for v in layer.non_trainable_variables]
        weights = [v.value for v in layer.trainable_variables]

        def loss(weights, x):
            outputs, _ = layer.stateless_call(weights, rest, x, training=True)
            return (outputs**2).sum()

        def penalty(weights):
            return (jax.grad(loss, 1)(weights, x) ** 2).sum()

        def over_time(total, part):
            return total + loss(weights, part), None

        parts = np.stack([x, 2 * x])
        return (
            jax.vmap(jax.grad(loss), (None, 0))(weights, x[:, None]),
            jax.jit(jax.grad(penalty))(weights),
            jax.jit(jax.vmap(jax.grad(loss, 1), (None, 0)))(weights, parts),
            jax.lax.scan(over_time, 0.0, parts)[0],
            jax.grad(jax.checkpoint(loss))(weights, x),
        )

    for one, other in zip(jax.tree.leaves(functions(fast)), jax.tree.leaves(functions(step))):
        assert_close(array(one), array(other), 1e-4)
    with pytest.raises(TypeError, match="forward-mode"):
        weights = [v.value for v in fast.trainable_variables]
        rest = [v.value for v in fast.non_trainable_variables]
        jax.jvp(lambda x: fast.stateless_call(weights, rest, x, training=True)[0], (x,), (x,))


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
def test_jax_transforms_in_inference(monkeypatch):
    """Run or compiled it is the kernel; each transform and each export takes the steps."""
    small = runtime.SMALL
    monkeypatch.setattr(runtime, "SMALL", 0)
    import jax
    from jax import export

    options = {"return_sequences": False, "return_state": False}
    fast, step = pair_of("NAGLSTM", (3, 9, 5), **options)
    x, mask = normal(np.random.default_rng(0), 3, 9, 5), MASKS["holes"](3, 9)

    def outputs_of(layer):
        weights = [[v.value for v in vs] for vs in (layer.trainable_variables, [])]
        rest = [v.value for v in layer.non_trainable_variables]
        return lambda x: layer.stateless_call(weights[0], rest, x, mask=mask)[0]

    def results(outputs):
        both = np.stack([x, 2 * x])
        return (
            outputs(x),
            jax.jit(outputs)(x),
            jax.jit(jax.vmap(outputs))(both),
            jax.jvp(outputs, (x,), (x,)),
            jax.jacfwd(outputs)(x),
            jax.hessian(lambda s: (outputs(s * x) ** 2).sum())(1.0),
            jax.lax.map(outputs, both),
        )

    outputs = outputs_of(fast)
    for one, other in zip(
        jax.tree.leaves(results(outputs)), jax.tree.leaves(results(outputs_of(step)))
    ):
        assert_close(array(one), array(other), 1e-4)
    kernel_of_inference = "keras_momentum_rnn.native.inference"
    assert kernel_of_inference in jax.jit(outputs).lower(x).as_text()
    with mock.patch.dict(sys.modules, {"jax2onnx": sys}):  # which knows no kernel
        lowered = jax.jit(lambda x: outputs(x)).lower(x)
    assert kernel_of_inference not in lowered.as_text()
    monkeypatch.setattr(runtime, "SMALL", small)
    jax.clear_caches()
    assert kernel_of_inference not in jax.jit(outputs).lower(x).as_text()
    exported = export.export(jax.jit(outputs))(x)
    assert kernel_of_inference not in exported.mlir_module()
    assert_close(array(exported.call(x)), array(outputs(x)), 1e-5)


@pytest.mark.skipif(BACKEND != "jax", reason="of JAX")
@pytest.mark.parametrize("name, mask", [("MomentumLSTM", "holes"), ("NAGLSTM", None)])
def test_a_second_derivative_of_a_jax_trace_that_has_ended(name, mask):
    """With `jax.jit` or `jax.lax.scan` within the first derivative."""
    import jax

    options = {"return_sequences": False, "return_state": False}
    fast, step = pair_of(name, (3, 9, 5), **options)
    x = normal(np.random.default_rng(0), 3, 9, 5)
    mask = None if mask is None else MASKS[mask](3, 9)

    def penalties(layer):
        rest = [v.value for v in layer.non_trainable_variables]
        weights = [v.value for v in layer.trainable_variables]

        def loss(weights, x, mask):
            call = {"training": True, "mask": mask}
            outputs, _ = layer.stateless_call(weights, rest, x, **call)
            return (outputs**2).sum()

        def looped(weights, x, mask):
            def body(total, part):
                return total + loss(weights, part, mask), None

            return jax.lax.scan(body, 0.0, x[None])[0]

        def penalty(weights, loss):
            return (jax.grad(loss, 1)(weights, x, mask) ** 2).sum()

        return [jax.grad(penalty)(weights, inner) for inner in (jax.jit(loss), looped)]

    for one, other in zip(jax.tree.leaves(penalties(fast)), jax.tree.leaves(penalties(step))):
        assert_close(array(one), array(other), 1e-4)


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
@pytest.mark.parametrize(
    "name, mask, drops",
    [
        ("AdamLSTM", None, 0),
        ("NAGGRU", "holes", 0),
        ("MCRM", None, 0),
        ("MomentumLSTM", None, 0.3),
    ],
)
def test_torch_compiles_a_graph_without_breaks(name, mask, drops, monkeypatch):
    from keras_momentum_rnn.paths.native import kernel

    layer = pair_of(name, (3, 9, 5), dropout=drops, recurrent_dropout=drops)[0]
    x = normal(np.random.default_rng(0), 3, 9, 5)
    # What is compiled draws other masks: here all are the same.
    masks = {size: [torch.rand(3, size).round() for _ in range(4)] for size in (4, 5)}
    monkeypatch.setattr(layer.cell, "_create_dropout_mask", lambda x, _: masks[x.shape[-1]])
    mask = None if mask is None else torch.tensor(MASKS[mask](3, 9))
    layer(x)  # the first call of a process tries the kernel out
    calls, forward = [], kernel.forward
    monkeypatch.setattr(kernel, "forward", lambda *a, **k: calls.append(1) or forward(*a, **k))

    def results(call):
        inputs = torch.tensor(x, requires_grad=True)
        outputs, *states = call(inputs, mask=mask, training=True)
        loss = outputs.square().sum() + sum(state.sum() for state in states)
        weights = [v.value for v in layer.trainable_variables]
        with torch.no_grad():
            inferred = call(inputs.detach(), mask=mask)
        return [outputs, *states, *inferred, *torch.autograd.grad(loss, [inputs, *weights])]

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for one, other in zip(results(compiled), results(layer), strict=True):
        assert_close(array(one), array(other), 1e-6)
    assert len(calls) == 4


@pytest.mark.slow
@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
def test_a_process_that_has_compiled_too_much_runs_further_layers():
    """PyTorch then runs the step as it is, and would compile what the step calls."""
    x, weights, losses = normal(np.random.default_rng(0), 4, 9, 3), None, []
    with torch.compiler.config.patch(recompile_limit=1):
        for compiled in (True, False):
            layers = [keras.Input((9, 3)), kmr.MomentumLSTM(4), keras.layers.Dense(2)]
            model = keras.Sequential(layers)
            weights = weights or model.get_weights()
            model.set_weights(weights)
            model.compile("sgd", "mse", jit_compile=compiled)
            fitted = model.fit(x, np.ones((4, 2)), epochs=2, verbose=0)
            losses.append(fitted.history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow")
@pytest.mark.transforms
@pytest.mark.parametrize("wanted", ["x", "weight"])
@pytest.mark.parametrize("around", [False, True])
def test_forward_mode_in_a_graph_of_tensorflow_is_refused(around, wanted):
    """Not 0 in silence."""
    import tensorflow as tf

    layer = pair(kmr.AdamLSTM, (3, 4, 5), return_state=False)[0]
    x = tf.constant(normal(np.random.default_rng(0), 3, 4, 5))
    call = tf.function(lambda x: layer(x, training=True)) if around else layer

    def derivative():
        primal = x if wanted == "x" else layer.cell.kernel.value
        with tf.autodiff.ForwardAccumulator(primal, tf.ones_like(primal)) as forward:
            outputs = call(x, training=True) if call is layer else call(x)
        return forward.jvp(outputs)

    # TensorFlow may end in an error of its own before ours.
    with pytest.raises(Exception, match=r"unroll=True|InternalError"):
        (derivative if around else tf.function(derivative))()


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow")
def test_a_branch_of_a_graph_takes_a_mask_from_outside():
    import tensorflow as tf

    layers = pair(kmr.LSTM, (3, 4, 5), return_state=False)
    rng, mask = np.random.default_rng(0), tf.constant(MASKS["holes"](3, 4))
    x, h, c = (tf.constant(normal(rng, *shape)) for shape in ((3, 4, 5), (3, 4), (3, 4)))

    @tf.function
    def gradient(layer, x, taken):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = tf.cond(taken, lambda: layer(x, mask=mask, training=True), lambda: 0 * x)
            loss = tf.reduce_sum(outputs**2)
        return tape.gradient(loss, x)

    one, other = (gradient(layer, x, tf.constant(True)) for layer in layers)
    assert_close(array(one), array(other), 1e-5)

    def gradient_from_outside(layer):
        @tf.function
        def call(x, h, c, taken):
            run = lambda: layer(x, initial_state=[h, c], training=True)  # noqa: E731
            return tf.cond(taken, run, lambda: 0 * run())

        with tf.GradientTape() as tape:
            tape.watch([x, h, c])
            loss = tf.reduce_sum(call(x, h, c, tf.constant(True)) ** 2)
        return tape.gradient(loss, [x, h, c])

    for one, other in zip(*map(gradient_from_outside, layers)):
        assert_close(array(one), array(other), 1e-5)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow")
def test_a_graph_of_another_process_is_refused(monkeypatch):
    """There its functions' numbers may be those of other layers."""
    import tensorflow as tf

    from keras_momentum_rnn.paths.native import tensorflow_call

    layer, x = pair(kmr.LSTM, (3, 4, 5), return_state=False)[0], tf.ones((3, 4, 5))
    graph = tf.function(lambda x: layer(x, training=True)).get_concrete_function(x)
    assert graph(x).shape == (3, 4, 4)
    monkeypatch.setattr(tensorflow_call, "PROCESS", "another")
    with pytest.raises(tf.errors.UnknownError, match="use_cudnn=False"):
        graph(x)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow")
@pytest.mark.transforms
@pytest.mark.parametrize("name, training", [("AdamGRU", True), ("MomentumLSTM", False)])
def test_derivatives_of_tensorflow_where_tapes_do_not_record(name, training):
    """Forward mode, that of a gradient, and a gradient in `stop_recording`."""
    import tensorflow as tf

    layers, rng = pair_of(name, (3, 4, 5), return_state=False), np.random.default_rng(0)
    x, tangent = (tf.constant(normal(rng, 3, 4, 5)) for _ in range(2))

    def derivatives(layer):
        weight = layer.cell.recurrent_kernel.value
        both = [x, weight], [tangent, tf.ones_like(weight)]
        with tf.autodiff.ForwardAccumulator(*both) as forward:
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                loss = tf.reduce_sum(layer(x, training=training) ** 2)
                with tape.stop_recording():
                    again = tape.gradient(loss, x)
            gradient = tape.gradient(loss, x)
        return [forward.jvp(loss), forward.jvp(gradient), again]

    assert layers[0].plan(features=5, training=True).path == "native"
    for one, other in zip(*map(derivatives, layers)):
        assert_close(array(one), array(other), 1e-4)
