"""The fused kernels of the backends, each the recurrence of an LSTM, a GRU or an Elman cell.

All are called as `kernel(cell, x, input_kernel, states)` and return h at all times,
`(batch, time, units)`, and the final states. The bias that rides with the input is a row of
`input_kernel`; that of the recurrent product is the cell's.
"""

import keras
from keras import ops

from keras_momentum_rnn.paths.plan import is_half


def torch_lstm(cell, x, kernel, states):
    import torch

    module = torch.nn.LSTM(x.shape[-1], cell.units, batch_first=True, device="meta")
    h, c = (s.unsqueeze(0).contiguous() for s in states[:2])
    weights = torch_weights(cell, kernel, lambda w: w)
    outputs, (h, c) = torch.func.functional_call(module, weights, (x, (h, c)))
    return outputs, h[0], c[0]


def torch_gru(cell, x, kernel, states):
    import torch

    def reset_first(weight):
        """PyTorch's gates are r, z, h, Keras's z, r, h."""
        z, r, h = ops.split(weight, 3, axis=-1)
        return ops.concatenate([r, z, h], axis=-1)

    module = torch.nn.GRU(x.shape[-1], cell.units, batch_first=True, device="meta")
    h = states[0].unsqueeze(0).contiguous()
    weights = torch_weights(cell, kernel, reset_first)
    outputs, h = torch.func.functional_call(module, weights, (x, h))
    return outputs, h[0]


def torch_rnn(cell, x, kernel, states):
    import torch

    module = torch.nn.RNN(x.shape[-1], cell.units, batch_first=True, device="meta")
    weights = torch_weights(cell, kernel, lambda w: w)
    h = states[0].unsqueeze(0).contiguous()
    outputs, h = torch.func.functional_call(module, weights, (x, h))
    return outputs, h[0]


def torch_weights(cell, kernel, ordered):
    """Return PyTorch's parameters; the input bias is a row of the kernel already."""
    none = ops.zeros((cell.gates * cell.units,), dtype=cell.compute_dtype)
    side = cell.recurrent_side_bias
    return {
        "weight_ih_l0": ordered(kernel).T,
        "weight_hh_l0": ordered(computed(cell, cell.recurrent_kernel)).T,
        "bias_ih_l0": none,
        "bias_hh_l0": none if side is None else ordered(computed(cell, side)),
    }


def computed(cell, weight):
    """Return a weight in the dtype that the cell computes in."""
    return ops.cast(weight, cell.compute_dtype)


def kernels_for(cell, stateful):
    """Return the stock layers that a cell needs on a GPU, a dict from their input's width.

    They are Keras's own, which take cuDNN, and must be built before they are called.
    """
    rule = cell.rule
    if keras.config.backend() == "torch" or cell.fused_kernel not in ("lstm", "gru"):
        return {}
    # The filtered input is as wide as x, and one for the bias; the drive as wide as u.
    widths = [cell.kernel.shape[0] + 1] if rule.linear else []
    if stateful or rule.scaled or is_half(cell):
        widths.append(cell.gates * cell.units)
    if cell.fused_kernel == "lstm":
        # One more column holds c where a sample has ended.
        widths = [width + 1 for width in widths]
    return {width: stock_layer(cell, width) for width in widths}


def stock_layer(cell, features):
    """Return Keras's own layer for inputs of so many features."""
    layer_class = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[cell.fused_kernel]
    layer = layer_class(
        cell.units,
        return_sequences=True,
        return_state=True,
        dtype=cell.compute_dtype,
        kernel_initializer="zeros",  # each call brings weights of its own
        recurrent_initializer="zeros",
    )
    layer.build((None, None, features))
    return layer


def stock_kernel(layers):
    """Return the kernel that runs one of these layers."""

    def kernel(cell, x, kernel, states):
        layer, side = layers[x.shape[-1]], cell.recurrent_side_bias
        none = ops.zeros(cell.gates * cell.units, dtype=cell.compute_dtype)
        bias = none if side is None else computed(cell, side)
        if cell.fused_kernel == "gru":
            bias = ops.stack([none, bias])
        (outputs, *final), _ = layer.stateless_call(
            [kernel, computed(cell, cell.recurrent_kernel), bias],
            [v.value for v in layer.non_trainable_variables],
            x,
            initial_state=list(states[: len(cell.cell_state_size)]),
        )
        return outputs, *final

    return kernel


def kernel_of(cell, layers):
    """Return the kernel of the active backend for a cell."""
    if keras.config.backend() == "torch":
        return {"lstm": torch_lstm, "gru": torch_gru, "rnn": torch_rnn}[cell.fused_kernel]
    return stock_kernel(layers)
