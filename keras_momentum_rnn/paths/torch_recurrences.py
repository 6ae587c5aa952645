"""Recurrences over a chunk of steps on PyTorch, with gradients written by hand.

`begin(drive, weights, *states)` returns a function of t that takes step t, the states at all
steps, the first before any, and what else is kept.

`begin_back(weights, kept, dh_all, d_finals, ends)`, given the gradient of h at all steps and
those of the other final states, returns the gradient of the drive, a function of t that goes
back over step t and completes it, and a function that at last returns the gradients of the
weights and of the states that the chunk began with.

A step has as few operations as can be, in place on what the CPU cache holds; what does
not depend on the step after is computed for all steps at once, and the gradient of a weight is
one product. Everything is `(time, batch, size)`, with one step more where it begins before the
first.
"""

from dataclasses import dataclass

import torch


def take_steps(recurrence, drive, weights, *states):
    """Take all steps. Return the states at all steps and what else is kept."""
    step, states_all, kept = recurrence.begin(drive, weights, *states)
    for t in range(len(drive)):
        step(t)
    return states_all, kept


def go_back(recurrence, weights, kept, d_outputs, d_finals, ends):
    """Return the gradients of the drive, of the weights and of the first states."""
    dh_all = torch.cat([torch.zeros_like(d_outputs[:1]), d_outputs])
    ends.add(dh_all, d_finals[0])
    d_drive, step, finish = recurrence.begin_back(weights, kept, dh_all, d_finals[1:], ends)
    for t in reversed(range(len(d_drive))):
        step(t)
    return d_drive, *finish()


class LSTM:
    """c' = sigmoid(f) c + sigmoid(i) tanh(a); h' = sigmoid(o) tanh(c')."""

    states, weights = 2, 2

    @staticmethod
    def begin(drive, weights, h, c):
        kernel, bias = weights
        h_all, c_all = started(h, len(drive)), started(c, len(drive))
        hs, zs = h_all.unbind(), drive.unbind()
        gate = gating(drive, hs, c_all.unbind())
        if bias is not None:
            drive.add_(bias)

        def step(t):
            zs[t].addmm_(hs[t], kernel)
            gate(t)

        return step, [h_all, c_all], [drive]

    @staticmethod
    def begin_back(weights, kept, dh_all, d_finals, ends):
        kernel, bias = weights
        h_all, c_all, gates = kept
        dz, gate_back, d_first = gating_back(gates, h_all, c_all, dh_all, *d_finals, ends)
        dhs, zs, transposed = dh_all.unbind(), dz.unbind(), kernel.T.contiguous()

        def step(t):
            gate_back(t)
            dhs[t].addmm_(zs[t], transposed)

        def finish():
            return weight_gradients(h_all[:-1], dz, bias), [dhs[0], d_first()]

        return dz, step, finish


@dataclass(frozen=True)
class ReleasedLSTM:
    """y' = h U - s x; z = y' + mu (y' - y); the gates of an LSTM from z.

    Two lists: mu and s of each step.
    """

    mu: list
    s: list

    states, weights = 3, 2

    def begin(self, drive, weights, h, c, y):
        kernel, bias = weights
        h_all, c_all, y_all = (started(x, len(drive)) for x in (h, c, y))
        hs, ys, gates = h_all.unbind(), y_all.unbind(), torch.empty_like(drive)
        zs, gate = gates.unbind(), gating(gates, hs, c_all.unbind())
        drive.mul_(-torch.stack(self.s))
        if bias is not None:
            drive.add_(bias)
        xs, beyond = drive.unbind(), [1 + mu for mu in self.mu]

        def step(t):
            torch.addmm(xs[t], hs[t], kernel, out=ys[t + 1])
            torch.lerp(ys[t], ys[t + 1], beyond[t], out=zs[t])
            gate(t)

        return step, [h_all, c_all, y_all], [gates]

    def begin_back(self, weights, kept, dh_all, d_finals, ends):
        kernel, bias = weights
        h_all, c_all, y_all, gates = kept
        dz, gate_back, d_first = gating_back(gates, h_all, c_all, dh_all, d_finals[0], ends)
        dy_all = torch.zeros_like(y_all)
        ends.add(dy_all, d_finals[1])
        dhs, dys, zs = dh_all.unbind(), dy_all.unbind(), dz.unbind()
        transposed, beyond = kernel.T.contiguous(), [1 + mu for mu in self.mu]

        def step(t):
            gate_back(t)
            dys[t + 1].addcmul_(zs[t], beyond[t])
            dys[t].addcmul_(zs[t], self.mu[t], value=-1)
            torch.mul(dys[t + 1], self.s[t], out=zs[t]).neg_()
            dhs[t].addmm_(dys[t + 1], transposed)

        def finish():
            d_weights = weight_gradients(h_all[:-1], dy_all[1:], bias)
            return d_weights, [dhs[0], d_first(), dys[0]]

        return dz, step, finish


def gating(z, hs, cs):
    """Return a function of t that turns z into the gates of an LSTM, and takes its step."""
    units = hs[0].shape[-1]
    ifs = z[..., : 2 * units].unbind()
    i, f, a, o = (gate.unbind() for gate in z.chunk(4, -1))

    def gate(t):
        ifs[t].sigmoid_(), a[t].tanh_(), o[t].sigmoid_()
        torch.mul(f[t], cs[t], out=cs[t + 1]).addcmul_(i[t], a[t])
        torch.tanh(cs[t + 1], out=hs[t + 1]).mul_(o[t])

    return gate


def gating_back(gates, h_all, c_all, dh_all, d_final, ends):
    """Return the gradient of z, a function of t that completes it, and one that gives dc."""
    i, f, a, _ = gates.chunk(4, -1)
    dz, slope = gate_slopes(gates, h_all, torch.tanh(c_all[1:]))
    di, df, da, do = dz.chunk(4, -1)
    di.mul_(a), df.mul_(c_all[:-1]), da.mul_(i)
    dc, dc_all = d_final.clone(), None
    if ends.steps is not None:
        dc_all = torch.zeros_like(c_all)
        ends.add(dc_all, d_final)
        dc.zero_()
    dhs, slopes, fs, dos = (x.unbind() for x in (dh_all, slope, f, do))
    # The three gates that c sees, as (batch, 3, units).
    difas = dz.unflatten(-1, (4, -1))[..., :3, :].unbind()

    def gate_back(t):
        if dc_all is not None:
            dc.add_(dc_all[t + 1])
        dc.addcmul_(dhs[t + 1], slopes[t])
        difas[t].mul_(dc.unsqueeze(1))
        dos[t].mul_(dhs[t + 1])
        dc.mul_(fs[t])

    return dz, gate_back, lambda: dc if dc_all is None else dc.add_(dc_all[0])


def gate_slopes(gates, h_all, tanh_c):
    """Return the slopes of the gates i, f, a by z, of h by the z of o, and of h by c."""
    dz = torch.addcmul(gates, gates, gates, value=-1)
    _, _, a, o = gates.chunk(4, -1)
    _, _, da, do = dz.chunk(4, -1)
    torch.addcmul(one(a), a, a, value=-1, out=da)
    do.mul_(tanh_c)
    return dz, torch.addcmul(o, h_all[1:], tanh_c, value=-1)


class GRU:
    """z, r, y = h U; z, r = sigmoid(x + .); n = tanh(x + r y); h' = z h + (1 - z) n."""

    states, weights = 1, 2

    @staticmethod
    def begin(drive, weights, h):
        kernel, bias = weights
        units = h.shape[1]
        h_all, candidates = started(h, len(drive)), drive.new_empty(len(drive), *h.shape)
        hs, ys, zrs = h_all.unbind(), candidates.unbind(), drive[..., : 2 * units].unbind()
        z, r, n = (gate.unbind() for gate in drive.chunk(3, -1))
        for_zr, for_y = kernel.split([2 * units, units], -1)
        if bias is not None:
            drive[..., : 2 * units] += bias[: 2 * units]
            bias = bias[2 * units :]

        def step(t):
            zrs[t].addmm_(hs[t], for_zr).sigmoid_()
            torch.mm(hs[t], for_y, out=ys[t])
            if bias is not None:
                ys[t].add_(bias)
            n[t].addcmul_(r[t], ys[t]).tanh_()
            torch.lerp(n[t], hs[t], z[t], out=hs[t + 1])

        return step, [h_all], [drive, candidates]

    @staticmethod
    def begin_back(weights, kept, dh_all, d_finals, ends):
        kernel, bias = weights
        h_all, gates, y = kept
        units = h_all.shape[-1]
        z, r, n = gates.chunk(3, -1)
        # The derivatives of sigmoid and tanh, times what each gate multiplies.
        d = torch.addcmul(gates, gates, gates, value=-1)
        dz, dr, dn = d.chunk(3, -1)
        torch.addcmul(one(n), n, n, value=-1, out=dn).mul_(1 - z)
        dz.mul_(h_all[:-1] - n), dr.mul_(y)
        # The recurrent product adds to z and r, and is reset on its way to n.
        d_product = torch.empty_like(d)
        parts = [d.unbind(), *(x.unbind() for x in (z, r, dz, dr, dn))]
        for_n, dhs = d_product[..., 2 * units :].unbind(), dh_all.unbind()
        products, transposed = d_product.unbind(), kernel.T.contiguous()

        def step(t):
            d_t, z_t, r_t, dz_t, dr_t, dn_t = (part[t] for part in parts)
            dn_t.mul_(dhs[t + 1]), dz_t.mul_(dhs[t + 1]), dr_t.mul_(dn_t)
            products[t].copy_(d_t)
            for_n[t].mul_(r_t)
            dhs[t].addcmul_(dhs[t + 1], z_t).addmm_(products[t], transposed)

        def finish():
            return weight_gradients(h_all[:-1], d_product, bias), [dhs[0]]

        return d, step, finish


class Elman:
    """h' = tanh(x + h U)."""

    states, weights = 1, 2

    @staticmethod
    def begin(drive, weights, h):
        kernel, _ = weights
        h_all = started(h, len(drive))
        hs, zs = h_all.unbind(), drive.unbind()

        def step(t):
            torch.tanh(zs[t].addmm_(hs[t], kernel), out=hs[t + 1])

        return step, [h_all], []

    @staticmethod
    def begin_back(weights, kept, dh_all, d_finals, ends):
        kernel, bias = weights
        (h_all,) = kept
        dz = torch.addcmul(one(h_all), h_all[1:], h_all[1:], value=-1)

        def finish():
            return weight_gradients(h_all[:-1], dz, bias), [dh_all[0]]

        return dz, through_one_gate(dz, dh_all, kernel), finish


class ModReLU:
    """z = x + h Q; h' = sign(z) max(|z| + b, 0)."""

    states, weights = 1, 2

    @staticmethod
    def begin(drive, weights, h):
        kernel, bias = weights
        h_all = started(h, len(drive))
        hs, zs = h_all.unbind(), drive.unbind()

        def step(t):
            z = zs[t].addmm_(hs[t], kernel)
            torch.abs(z, out=hs[t + 1]).add_(bias).relu_().mul_(z.sign_())

        return step, [h_all], []

    @staticmethod
    def begin_back(weights, kept, dh_all, d_finals, ends):
        kernel, _ = weights
        (h_all,) = kept
        # The sign of z where h' is not 0, and 0 elsewhere.
        sign = torch.sign(h_all[1:])
        dz = sign * sign

        def finish():
            d_kernel, _ = weight_gradients(h_all[:-1], dz, None)
            return [d_kernel, sign.mul_(dz).sum((0, 1))], [dh_all[0]]

        return dz, through_one_gate(dz, dh_all, kernel), finish


def started(first, time):
    """Return room for a state at all steps, with the first one in it."""
    x_all = first.new_empty(time + 1, *first.shape)
    x_all[0] = first
    return x_all


def one(x):
    return x.new_ones(())


def through_one_gate(dz, dh_all, kernel):
    """Return a function of t that turns dh'/dz into dz and adds to the gradient of h."""
    dhs, zs, transposed = dh_all.unbind(), dz.unbind(), kernel.T.contiguous()

    def step(t):
        dhs[t].addmm_(zs[t].mul_(dhs[t + 1]), transposed)

    return step


def weight_gradients(x, d_product, bias):
    """Return the gradients of a matrix, by which x is multiplied, and of a bias or None."""
    d_product = d_product.flatten(0, 1)
    d_kernel = x.flatten(0, 1).T @ d_product
    return [d_kernel, None if bias is None else d_product.sum(0)]
