"""The fused kernels of the backends, each the recurrence of an LSTM, a GRU or an Elman cell.

All are called as `kernel(cell, x, input_kernel, states, bias)` and return h at all times,
`(batch, time, units)`, and the final states. The bias that rides with the input is `bias`, or
None where it is a row of `input_kernel`; that of the recurrent product is the cell's.
"""

from functools import cache

import keras
from keras import ops

from keras_momentum_rnn.paths.steps import scan_steps
from keras_momentum_rnn.paths.transforms import varying_alike, varying_axes

STOCK = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


def fused_kernel(cell, layers):
    """Return the kernel of the active backend for the recurrence of a cell.

    Args:
        cell: a `RuleCell` whose recurrence has one.
        layers: dict of `stock_layers`; empty where the backend itself has the kernel.
    """
    if needs_stock_layer(cell):
        return stock_kernel(layers)
    return torch_kernel if keras.config.backend() == "torch" else jax_lstm


def needs_stock_layer(cell):
    """Return whether a layer of Keras calls the kernel: not on PyTorch, nor an LSTM on JAX."""
    backend, name = keras.config.backend(), cell.recurrence_name
    return name in STOCK and backend != "torch" and (backend, name) != ("jax", "lstm")


def torch_kernel(cell, x, kernel, states, bias):
    import torch

    def as_it_is(weight):
        return weight

    def reset_first(weight):
        """PyTorch's gates are r, z, h, Keras's z, r, h."""
        z, r, h = ops.split(weight, 3, axis=-1)
        return ops.concatenate([r, z, h], axis=-1)

    module_class, ordered, count = {
        "lstm": (torch.nn.LSTM, as_it_is, 2),
        "gru": (torch.nn.GRU, reset_first, 1),
        "elman": (torch.nn.RNN, as_it_is, 1),
    }[cell.recurrence_name]
    module = module_class(x.shape[-1], cell.units, batch_first=True, device="meta")
    # Without a gradient to come, cuDNN keeps nothing for it.
    module.train(torch.is_grad_enabled())
    first = [s.unsqueeze(0).contiguous() for s in states[:count]]
    weights = torch_weights(cell, kernel, bias, ordered)
    first = tuple(first) if count > 1 else first[0]
    # In half precision, PyTorch's LSTM fails on CPUs that have none.
    with torch.autocast("cpu", enabled=False):
        outputs, final = torch.func.functional_call(module, weights, (x, first))
    final = final if count > 1 else [final]
    return outputs, *(s[0] for s in final)


def torch_weights(cell, kernel, bias, ordered):
    """Return PyTorch's parameters."""
    # cuDNN takes no transposed view.
    return {
        "weight_ih_l0": ordered(kernel).T.contiguous(),
        "weight_hh_l0": ordered(computed(cell, cell.recurrent_kernel)).T.contiguous(),
        "bias_ih_l0": ordered(computed_bias(cell, bias)),
        "bias_hh_l0": ordered(computed_bias(cell, cell.recurrent_side_bias)),
    }


def computed(cell, weight):
    """Return a weight in the dtype that the cell computes in."""
    return ops.cast(weight, cell.compute_dtype)


def computed_bias(cell, bias):
    """Return a bias in the dtype that the cell computes in; zeros for None."""
    if bias is None:
        return ops.zeros((cell.drive_width,), dtype=cell.compute_dtype)
    return computed(cell, bias)


def jax_lstm(cell, x, kernel, states, bias):
    """Call cuDNN, or loop where it refuses: it has no `vmap` and no second derivatives.

    In a `jax.shard_map` it loops: JAX would take cuDNN's results for alike on all devices.
    """
    try:
        return cudnn_of_jax(cell, x, kernel, states, bias)
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        recur, bias = cell.recurrence(False), computed_bias(cell, bias)
        own, _ = cell.split(states)
        outputs, final = scan_steps(lambda x, states: recur(x @ kernel + bias, states), x, own)
        return outputs, *final


def cudnn_of_jax(cell, x, kernel, states, bias):
    import jax
    from jax.experimental import rnn

    arrays = x, kernel, cell.recurrent_kernel.value, *states
    if hasattr(jax, "typeof") and any(varying_axes(jax.typeof(a)) for a in arrays):
        raise NotImplementedError("a gradient would lack its sums over devices")
    products = [kernel, computed(cell, cell.recurrent_kernel)]
    biases = [computed_bias(cell, b) for b in (bias, cell.recurrent_side_bias)]
    own, _ = cell.split(states)
    x, h, c = in_order(x, *(ops.expand_dims(state, 0) for state in own))
    results = rnn.lstm(
        x,
        h,
        c,
        ops.concatenate([*(ops.ravel(ops.transpose(w)) for w in products), *biases]),
        ops.full((x.shape[0],), x.shape[1], dtype="int32"),
        input_size=x.shape[-1],
        hidden_size=cell.units,
        num_layers=1,
        dropout=0.0,
        bidirectional=False,
    )
    outputs, h, c = in_order(*results)
    return outputs, h[0], c[0]


def in_order(*tensors):
    """Return tensors that lie in memory in the order of their axes, gradients too.

    JAX's call of cuDNN reads and writes this order, and does not tell XLA, which may choose
    another: https://github.com/jax-ml/jax/issues/19177.
    """
    return ordering()(tensors)


@cache
def ordering():
    """Return a compiled function that orders tensors; uncompiled, JAX refuses constants."""
    import jax
    from jax.experimental.layout import Layout, with_layout_constraint

    def ordered(tensors):
        return [with_layout_constraint(t, Layout(tuple(range(t.ndim)))) for t in tensors]

    return jax.jit(ordered)


def stock_layers(layer):
    """Return the stock layers that a built layer needs, a dict from their input's width.

    They are Keras's own, which take cuDNN, and must be built before they are called.
    """
    cell = layer.cell
    if not needs_stock_layer(cell):
        return {}
    paths = {layer.plan(training=t).path for t in (False, True)}
    # The filtered input is as wide as x, and one for the bias; the drive as wide as u.
    of_paths = {"fused": cell.kernel.shape[0] + 1, "drive": cell.drive_width}
    widths = [width for path, width in of_paths.items() if path in paths]
    if cell.recurrence_name == "lstm":
        # One more column holds c where a sample has ended.
        widths = [width + 1 for width in widths]
    return {width: stock_layer(cell, width) for width in widths}


def stock_layer(cell, features):
    """Return Keras's own layer for inputs of so many features."""
    layer = STOCK[cell.recurrence_name](
        cell.units,
        return_sequences=True,
        return_state=True,
        dtype=cell.compute_dtype,
        kernel_initializer="zeros",  # each call passes its own weights
        recurrent_initializer="zeros",
    )
    layer.build((None, None, features))
    return layer


def stock_kernel(layers):
    """Return the kernel that runs one of these layers."""

    def kernel(cell, x, kernel, states, bias):
        layer, side = layers[x.shape[-1]], computed_bias(cell, cell.recurrent_side_bias)
        if cell.recurrence_name == "gru":
            side = ops.stack([computed_bias(cell, bias), side])
        own, _ = cell.split(states)
        if keras.config.backend() == "jax":
            own = varying_alike(own, like=(x, kernel))
        (outputs, *final), _ = layer.stateless_call(
            [kernel, computed(cell, cell.recurrent_kernel), side],
            [v.value for v in layer.non_trainable_variables],
            x,
            initial_state=own,
        )
        return outputs, *final

    return kernel
