"""The way back of AdamLSTM in plain NumPy: what the native kernel computes, without its memory.

u = x W + b;  v = mu v + gain u;  m = beta m + share u^2;  g = factor v / sqrt(m + epsilon)
z = g + side + h U;  i, f, a, o = sigmoid, sigmoid, tanh, sigmoid of the parts of z
c = f c + i a;  h = o tanh(c)
"""

from types import SimpleNamespace

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def forward(numbers, x, weights, states):
    """Return h at all times, the final states, and what each step computed."""
    W, b, U, side = weights
    h, c, v, m = states
    steps, outputs = [], []
    for x_t in x.swapaxes(0, 1):
        step = SimpleNamespace(x=x_t, h_old=h, c_old=c, u=x_t @ W + b)
        v = numbers.mu * v + numbers.gain * step.u
        m = numbers.beta * m + numbers.share * step.u**2
        step.v, step.root = v, (m + numbers.epsilon) ** -0.5
        i, f, a, o = np.split(numbers.factor * v * step.root + side + h @ U, 4, axis=1)
        step.i, step.f, step.a, step.o = sigmoid(i), sigmoid(f), np.tanh(a), sigmoid(o)
        c = step.f * c + step.i * step.a
        h = step.o * np.tanh(c)
        step.c = c
        steps.append(step)
        outputs.append(h)
    return np.stack(outputs, 1), [h, c, v, m], steps


def backward(numbers, weights, steps, d_outputs, d_finals):
    """Return the gradients of x, of the weights and of the first states."""
    W, _b, U, _side = weights
    dh, dc, dv, dm = d_finals
    dW, db, dU, d_side = (np.zeros_like(w) for w in weights)
    dx = []
    for step, d_output in reversed(list(zip(steps, d_outputs.swapaxes(0, 1)))):
        # The cell: from the gradients of the new h and c to that of z, here dy, and the old c.
        dh = dh + d_output
        squashed = np.tanh(step.c)
        dc = dc + dh * step.o * (1 - squashed**2)
        dy = np.concatenate(
            [
                dc * step.a * step.i * (1 - step.i),
                dc * step.c_old * step.f * (1 - step.f),
                dc * step.i * (1 - step.a**2),
                dh * squashed * step.o * (1 - step.o),
            ],
            axis=1,
        )
        dc = dc * step.f
        # The rule: from the gradient of the drive, which is dy, to that of u and the old slots.
        dv = dv + numbers.factor * dy * step.root
        dm = dm - 0.5 * numbers.factor * dy * step.v * step.root**3
        du = numbers.gain * dv + 2 * numbers.share * step.u * dm
        dv, dm = numbers.mu * dv, numbers.beta * dm
        # The products.
        dh = dy @ U.T
        dx.append(du @ W.T)
        dW, db = dW + step.x.T @ du, db + du.sum(0)
        dU, d_side = dU + step.h_old.T @ dy, d_side + dy.sum(0)
    return np.stack(dx[::-1], 1), [dW, db, dU, d_side], [dh, dc, dv, dm]
