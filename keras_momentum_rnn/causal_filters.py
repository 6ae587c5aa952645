"""A linear rule as stock layers of Keras, in front of the layer that it drives.

A linear rule commutes with W x + b: filtering [x, 1] and projecting the result by [W; b] gives
the drive. The filter itself is a recurrence that Keras has.
"""

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn import rules
from keras_momentum_rnn.rebuilding import run_graph, runs_as

# A filter of restarts has a ring of one unit for each step of the period.
LONGEST_PERIOD = 512


def causal_filter(layer):
    """Return a model of Keras layers that turns x into the filtered [x, 1].

    Args:
        layer: a built `RuleLayer` whose rule is linear.
    """
    cell, rule = layer.cell, layer.cell.rule
    x = keras.Input((None, cell.kernel.shape[0]), dtype=cell.slot_dtype)
    filtered = counting_filter if rule.counts else constant_filter

    def options(part):
        name = f"{layer.name}_{part}"
        return {"name": name, "dtype": cell.slot_dtype, "trainable": False}

    return keras.Model(x, filtered(x, rule, options))


def behind_filter(x, model, mask=None):
    """Return what a `causal_filter` makes of x, its layers in the graph of x.

    A model inside the graph would do, too, but Keras warns wrongly that it loses the mask.
    """

    def call(layer, args, kwargs):
        takes_mask = isinstance(layer, keras.layers.RNN) and mask is not None
        return layer(*args, mask=mask) if takes_mask else layer(*args, **kwargs)

    (y,) = run_graph(model, [x], call)
    return y


def constant_filter(x, rule, options):
    """Return v_t = mu v_{t-1} + s [x_t, 1], by a linear `SimpleRNN`."""
    mu, step_size = rule.coefficients(None)
    width = x.shape[-1] + 1
    kernel, bias = input_and_one(width, step_size)
    return recurrence(x, kernel, mu * np.eye(width), bias, options("velocity"))


def counting_filter(x, rule, options):
    """Return v_t = mu_t v_{t-1} + s [x_t, 1], by a linear `LSTM` whose forget gate is mu_t.

    All of it is layers and no operations, which would drop the mask.
    """
    count = recurrence(x, 0, 1, 1, options("count"))
    of_mu = options("momentum")
    if isinstance(rule, rules.NAG):
        # t / (t + 3) is the softsign of t / 3.
        mu = dense(count, [[1 / 3]], [-1 / 3], "softsign", of_mu)
    else:
        # 1 at the first step, which goes round a ring of as many places as the period has.
        first = dense(count, [[-1]], [2], "relu", options("first_step"))
        period = rule.restart_period
        start, shift = np.eye(1, period), np.roll(np.eye(period), 1, axis=1)
        place = recurrence(first, start, shift, 0, options("ring"))
        t = np.arange(period)
        mu = dense(place, (t / (t + 3))[:, None], [0], "linear", of_mu)
    width = x.shape[-1] + 1
    layer = keras.layers.LSTM(
        width,
        activation="linear",
        recurrent_activation="linear",
        return_sequences=True,
        **options("velocity"),
    )
    y = layer(keras.layers.Concatenate(**options("with_momentum"))([x, mu]))
    kernel, bias = input_and_one(width, rule.step_size)
    none, one = np.zeros_like(kernel), np.ones(width)
    # Gates i, f, c, o. Under the rows of x stands that of mu.
    from_x = np.concatenate([none, none, kernel, none], axis=1)
    from_mu = np.concatenate([0 * one, one, 0 * one, 0 * one])
    kernel = np.concatenate([from_x, from_mu[None]])
    bias = np.concatenate([one, 0 * one, bias, one])
    layer.set_weights([kernel, np.zeros((width, 4 * width)), bias])
    return y


def recurrence(x, kernel, recurrent_kernel, bias, options):
    """Return h_t = x_t K + h_{t-1} R + b; numbers stand for matrices of one column."""
    recurrent_kernel = np.atleast_2d(recurrent_kernel)
    units = len(recurrent_kernel)
    layer = keras.layers.SimpleRNN(units, "linear", return_sequences=True, **options)
    y = layer(x)
    kernel = np.broadcast_to(kernel, (x.shape[-1], units))
    layer.set_weights([kernel, recurrent_kernel, np.broadcast_to(bias, units)])
    return y


def dense(x, kernel, bias, activation, options):
    layer = keras.layers.Dense(len(bias), activation, **options)
    y = layer(x)
    layer.set_weights([np.array(kernel), np.array(bias)])
    return y


def known(rule):
    """Return whether a rule has a filter of Keras layers."""
    if not rule.linear or rule.learns or not rule.shared:
        return False
    # A subclass may have a momentum of its own, or count in its own way.
    methods = "coefficients", "advance_counter"
    if runs_as(rule, rules.ScheduledRestart, *methods):
        return rule.restart_period <= LONGEST_PERIOD
    return not rule.counts or runs_as(rule, rules.NAG, *methods)


def input_and_one(width, step_size):
    """Return kernel and bias that turn x into s [x, 1]."""
    identity = step_size * np.eye(width)
    return identity[:-1], identity[-1]


def copy_behind_filter(ours, plain):
    """Copy weights into a cell of Keras that takes the filtered [x, 1]."""
    plain.kernel.assign(ours.input_rows())
    # A copy: on JAX, `predict` of one of two models deletes the arrays that they share.
    plain.recurrent_kernel.assign(ops.copy(ours.recurrent_kernel))
    if plain.bias is None:
        return
    bias = np.zeros(plain.bias.shape)
    if (side := ours.recurrent_side_bias) is not None:
        bias[..., :] = ops.convert_to_numpy(side)
        # A GRU has two: the first rode with the input.
        bias[: bias.ndim - 1] = 0
    plain.bias.assign(bias)


def check_exact(layer, refused):
    """Raise a `ValueError` if one of the reasons to refuse a layer holds."""
    for reason, holds in refused.items():
        if holds:
            raise ValueError(
                f"{type(layer).__name__} {layer.name!r} {reason}, so `exact=True` cannot put "
                "its rule into a filter of Keras layers. Export the model as it is; the "
                "page Deploy of the documentation says how"
            )
