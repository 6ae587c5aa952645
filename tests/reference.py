"""The equations in NumPy, float64: what every layer is compared with.

Written from the papers alone, with none of the package's code. Everything is analytic, so it
takes complex numbers, and a complex step gives gradients exact to rounding.
"""

import numpy as np
import pytest


def expm(s):
    return pytest.importorskip("scipy.linalg", reason="the oracle needs it").expm(s)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {"tanh": np.tanh, "sigmoid": sigmoid, "linear": lambda x: x}


# The numbers that each rule has in the tests.
NUMBERS = {
    "Identity": {},
    "HeavyBall": {"momentum": 0.7, "step_size": 0.8},
    "NAG": {"step_size": 0.8},
    "ScheduledRestart": {"restart_period": 4, "step_size": 0.8},
    "Adam": {"momentum": 0.7, "step_size": 0.8, "beta": 0.9, "epsilon": 1e-8},
    "RMSProp": {"step_size": 0.8, "beta": 0.8, "epsilon": 1e-8},
}

LINEAR, SCALED = ("HeavyBall", "NAG", "ScheduledRestart"), ("Adam", "RMSProp")


def momentum_of_step(rule, numbers, t):
    """mu_t of the linear rules."""
    if rule == "HeavyBall":
        return numbers["momentum"] + 0 * t
    if rule == "ScheduledRestart":
        t = t % numbers["restart_period"]
    return t / (t + 3)


def rule_step(rule, numbers, u, slots):
    """One step of a rule: drive and new slots."""
    if rule == "Identity":
        return u, []
    step_size = numbers["step_size"]
    if rule in LINEAR:
        v, *t = slots
        v = momentum_of_step(rule, numbers, t[0] if t else 0) * v + step_size * u
        period = numbers.get("restart_period", np.inf)
        return v, [v, *[np.mod((k + 1).real, period) for k in t]]
    *v, m = slots
    m = numbers["beta"] * m + (1 - numbers["beta"]) * u * u
    mu = numbers.get("momentum")
    if numbers.get("relaxed", True):
        v = [mu * old + step_size * u for old in v]
        numerator = v[0] if v else step_size * u
    else:
        v = [mu * old + (1 - mu) * u for old in v]
        numerator = step_size * v[0]
    return numerator / np.sqrt(m + numbers["epsilon"]), [*v, m]


def slot_sizes(rule, width):
    sizes = {"Identity": [], "HeavyBall": [width], "Adam": [width, width], "RMSProp": [width]}
    return sizes.get(rule, [width, 1])


def gated_product(x, kernel, masks, gates):
    """x @ kernel, with x under no dropout mask, one, or one for each gate."""
    if masks is None:
        return x @ kernel
    if not isinstance(masks, list):
        return (x * masks) @ kernel
    kernels = np.split(kernel, gates, axis=1)
    return np.concatenate([(x * m) @ k for m, k in zip(masks, kernels)], axis=1)


class LSTM:
    """z = g + h U (+ b_r); c = sig(f) c + sig(i) tanh(c~); h = sig(o) tanh(c)."""

    gates, states = 4, 2

    def __init__(self, activation="tanh", recurrent_activation="sigmoid"):
        self.activation = ACTIVATIONS[activation]
        self.recurrent_activation = ACTIVATIONS[recurrent_activation]

    def preactivation(self, weights, h, recurrent_masks):
        y = gated_product(h, weights["recurrent_kernel"], recurrent_masks, 4)
        return y + weights.get("recurrent_bias", 0)

    def gated(self, z, c):
        i, f, c_tilde, o = np.split(z, 4, axis=1)
        s, a = self.recurrent_activation, self.activation
        c = s(f) * c + s(i) * a(c_tilde)
        return [s(o) * a(c), c]

    def step(self, weights, drive, states, recurrent_masks):
        h, c = states
        return self.gated(drive + self.preactivation(weights, h, recurrent_masks), c)


class Elman:
    """h = act(g + h U)."""

    gates, states = 1, 1

    def __init__(self, activation="tanh"):
        self.activation = ACTIVATIONS[activation]

    def step(self, weights, drive, states, recurrent_masks):
        product = gated_product(states[0], weights["recurrent_kernel"], recurrent_masks, 1)
        return [self.activation(drive + product)]


class HiddenElman(Elman):
    """v in hidden space: h = act((h + v) U), or act(h U + (v U) / sqrt(m + epsilon))."""

    def drive(self, weights, numbers, g, slots):
        if "beta" not in numbers:
            return g @ weights["recurrent_kernel"]
        root = np.sqrt(slots[-1] + numbers["epsilon"])
        return (g * root) @ weights["recurrent_kernel"] / root


class GRU:
    """Keras's GRU; reset_after says whether r acts on the product or on h."""

    gates, states = 3, 1

    def __init__(self, activation="tanh", recurrent_activation="sigmoid", reset_after=True):
        self.activation = ACTIVATIONS[activation]
        self.recurrent_activation = ACTIVATIONS[recurrent_activation]
        self.reset_after = reset_after

    def step(self, weights, drive, states, recurrent_masks):
        (h,) = states
        masks = recurrent_masks if isinstance(recurrent_masks, list) else [recurrent_masks] * 3
        inputs = [h if m is None else h * m for m in masks]
        kernels = np.split(weights["recurrent_kernel"], 3, axis=1)
        bias = weights.get("bias", np.zeros(2))
        b_z, b_r, b_h = np.split(bias[1], 3) if self.reset_after and bias.ndim == 2 else [0] * 3
        x_z, x_r, x_h = np.split(drive, 3, axis=1)
        z = self.recurrent_activation(x_z + inputs[0] @ kernels[0] + b_z)
        r = self.recurrent_activation(x_r + inputs[1] @ kernels[1] + b_r)
        if self.reset_after:
            candidate = r * (inputs[2] @ kernels[2] + b_h)
        else:
            candidate = (r * inputs[2]) @ kernels[2]
        return [z * h + (1 - z) * self.activation(x_h + candidate)]


class DTRIV:
    """h = modrelu(g + h Q), Q = base exp(S) or base (I + S)^-1 (I - S)."""

    gates, states = 1, 1

    def __init__(self, parametrization="expm"):
        self.parametrization = parametrization

    def orthogonal(self, weights):
        units = len(weights["base"])
        s = np.zeros((units, units), weights["skew"].dtype)
        s[np.triu_indices(units, 1)] = weights["skew"]
        s, eye = s - s.T, np.eye(units)
        cayley = self.parametrization == "cayley"
        turn = np.linalg.solve(eye + s, eye - s) if cayley else expm(s)
        return weights["base"] @ turn

    def step(self, weights, drive, states, recurrent_masks):
        z = drive + gated_product(states[0], self.orthogonal(weights), recurrent_masks, 1)
        sign, b = np.sign(z.real), weights["modrelu_bias"]
        return [np.where(sign * z.real + b.real > 0, z + sign * b, 0)]


class Nested(LSTM):
    """LSTM gates around a memory: c = memory([f c, i tanh(c~)], c); h = o tanh(c)."""

    memory = None

    def step(self, weights, drive, states, recurrent_masks):
        h, *memory = states
        z = drive + self.preactivation(weights, h, recurrent_masks)
        i, f, c_tilde, o = np.split(z, 4, axis=1)
        s, a = self.recurrent_activation, self.activation
        x = np.concatenate([s(f) * memory[0], s(i) * a(c_tilde)], axis=1)
        inner = {
            name.removeprefix("memory."): w
            for name, w in weights.items()
            if name.startswith("memory.")
        }
        memory = self.memory.step(inner, project(self.memory, inner, x, None), memory, None)
        return [s(o) * a(memory[0]), *memory]


class MCRM(Nested):
    states, memory = 2, GRU()


class NestedLSTM(Nested):
    states, memory = 3, LSTM()


def project(cell, weights, x, masks):
    bias = weights.get("bias", np.zeros(1))
    return gated_product(x, weights["kernel"], masks, cell.gates) + (
        bias[0] if bias.ndim == 2 else bias
    )


def run(
    cell,
    rule,
    numbers,
    weights,
    x,
    states=None,
    mask=None,
    go_backwards=False,
    masks=(None, None),
    formulation="paper",
):
    """Run a sequence.

    Args:
        cell: one of the cells above.
        rule, numbers: the rule's name and its arguments.
        weights: dict of arrays, by Keras's names.
        x: (batch, time, d).
        states: list of arrays, the cell's states and the slots, or None for zeros.
        mask: bool (batch, time); where it is False, every state is held.
        masks: dropout masks of input and h, each None, an array or a list, one a gate.
        formulation: "released" for the restart as released: y = h U - s (W x + b),
            z = y + mu_t (y - y_prev).

    Returns:
        h at all times, in the order of processing, and the list of the final states.
    """
    units = weights["kernel"].shape[1] // cell.gates
    if states is None:
        sizes = [units] * cell.states + slot_sizes(rule, cell.gates * units)
        states = [np.zeros((len(x), size)) for size in sizes]
    if go_backwards:
        x, mask = x[:, ::-1], None if mask is None else mask[:, ::-1]
    outputs = []
    for t in range(x.shape[1]):
        u = project(cell, weights, x[:, t], masks[0])
        n = cell.states
        if formulation == "released":
            h, c, y_before, k = states
            y = cell.preactivation(weights, h, masks[1]) - numbers["step_size"] * u
            mu = momentum_of_step(rule, numbers, k)
            new = cell.gated(y + mu * (y - y_before), c)
            new += [y, np.mod(k + 1, numbers["restart_period"])]
        else:
            drive, slots = rule_step(rule, numbers, u, states[n:])
            if hasattr(cell, "drive"):
                drive = cell.drive(weights, numbers, drive, slots)
            new = [*cell.step(weights, drive, states[:n], masks[1]), *slots]
        if mask is not None:
            new = [np.where(mask[:, t, None], a, b) for a, b in zip(new, states)]
        states = new
        outputs.append(states[0])
    return np.stack(outputs, axis=1), states


def directional(function, arrays, directions):
    """Derivatives of a real-valued analytic function of a dict of arrays, by complex steps.

    Args:
        directions: dict of names to a list of arrays, the directions to go in.

    Returns:
        dict of names to a list of numbers, one for each direction.
    """

    def derivative(name, direction):
        moved = {**arrays, name: arrays[name] + 1e-30j * direction}
        return function(moved).imag / 1e-30

    return {n: [derivative(n, d) for d in some] for n, some in directions.items()}


def gradients(function, arrays):
    """Gradients of a real-valued analytic function of a dict of arrays, entry by entry."""
    entries = {n: np.eye(a.size).reshape(a.size, *a.shape) for n, a in arrays.items()}
    slopes = directional(function, arrays, entries)
    return {n: np.reshape(slopes[n], a.shape) for n, a in arrays.items()}
