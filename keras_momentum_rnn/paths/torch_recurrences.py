"""Recurrences over a chunk of steps on PyTorch, with gradients written by hand.

`forward(drive, kernel, bias, *states)` returns the states at all steps, the first before any,
and what else is kept. `backward(kernel, bias, kept, d_outputs, d_finals, ends)` returns the
gradients of drive, kernel and bias and of the states that the chunk began with. A step has as
few operations as can be, in place on what the processor's cache holds; what does not depend on
the step after is computed for all steps at once, and the gradient of a weight is one product.
Everything is `(time, batch, size)`, with one step more where it begins before the first.
"""

import torch


class LSTM:
    """c' = sigmoid(f) c + sigmoid(i) tanh(a); h' = sigmoid(o) tanh(c')."""

    states = 2

    @staticmethod
    def forward(drive, kernel, bias, h, c):
        h_all, c_all = started(h, len(drive)), started(c, len(drive))
        hs, cs, zs = h_all.unbind(), c_all.unbind(), drive.unbind()
        ifs = drive[..., : 2 * h.shape[1]].unbind()
        i, f, a, o = (gate.unbind() for gate in drive.chunk(4, -1))
        if bias is not None:
            drive.add_(bias)
        for t, z in enumerate(zs):
            z.addmm_(hs[t], kernel)
            ifs[t].sigmoid_(), a[t].tanh_(), o[t].sigmoid_()
            torch.mul(f[t], cs[t], out=cs[t + 1]).addcmul_(i[t], a[t])
            torch.tanh(cs[t + 1], out=hs[t + 1]).mul_(o[t])
        return [h_all, c_all], [drive]

    @staticmethod
    def backward(kernel, bias, kept, d_outputs, d_finals, ends):
        h_all, c_all, gates = kept
        i, f, a, o = gates.chunk(4, -1)
        tanh_c = torch.tanh(c_all[1:])
        # The derivatives of sigmoid and tanh, times what each gate multiplies.
        dz = torch.addcmul(gates, gates, gates, value=-1)
        di, df, da, do = dz.chunk(4, -1)
        torch.addcmul(one(a), a, a, value=-1, out=da).mul_(i)
        di.mul_(a), df.mul_(c_all[:-1]), do.mul_(tanh_c)
        slope = torch.addcmul(o, h_all[1:], tanh_c, value=-1).unbind()
        dh_all, dc_all = with_finals(d_outputs, d_finals[0], ends), None
        dc = d_finals[1].clone()
        if ends.steps is not None:
            dc_all = torch.zeros_like(c_all)
            ends.add(dc_all, d_finals[1])
            dc.zero_()
        dhs, transposed, fs, dos = (
            dh_all.unbind(),
            kernel.T.contiguous(),
            f.unbind(),
            do.unbind(),
        )
        # The three gates that c sees, as (batch, 3, units).
        difas, zs = dz.unflatten(-1, (4, -1))[..., :3, :].unbind(), dz.unbind()
        for t in range(len(dz) - 1, -1, -1):
            if dc_all is not None:
                dc.add_(dc_all[t + 1])
            dc.addcmul_(dhs[t + 1], slope[t])
            difas[t].mul_(dc.unsqueeze(1))
            dos[t].mul_(dhs[t + 1])
            dc.mul_(fs[t])
            dhs[t].addmm_(zs[t], transposed)
        if dc_all is not None:
            dc.add_(dc_all[0])
        return dz, *weight_gradients(h_all, dz, bias), [dhs[0], dc]


class GRU:
    """z, r, y = h U; z, r = sigmoid(x + .); n = tanh(x + r y); h' = z h + (1 - z) n."""

    states = 1

    @staticmethod
    def forward(drive, kernel, bias, h):
        units = h.shape[1]
        h_all, candidates = started(h, len(drive)), drive.new_empty(len(drive), *h.shape)
        hs, ys, zrs = h_all.unbind(), candidates.unbind(), drive[..., : 2 * units].unbind()
        z, r, n = (gate.unbind() for gate in drive.chunk(3, -1))
        for_zr, for_y = kernel.split([2 * units, units], -1)
        if bias is not None:
            drive[..., : 2 * units] += bias[: 2 * units]
            bias = bias[2 * units :]
        for t, y in enumerate(ys):
            zrs[t].addmm_(hs[t], for_zr).sigmoid_()
            torch.mm(hs[t], for_y, out=y)
            if bias is not None:
                y.add_(bias)
            n[t].addcmul_(r[t], y).tanh_()
            torch.lerp(n[t], hs[t], z[t], out=hs[t + 1])
        return [h_all], [drive, candidates]

    @staticmethod
    def backward(kernel, bias, kept, d_outputs, d_finals, ends):
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
        for_n = d_product[..., 2 * units :].unbind()
        dhs = with_finals(d_outputs, d_finals[0], ends).unbind()
        products, transposed = d_product.unbind(), kernel.T.contiguous()
        for t in range(len(d) - 1, -1, -1):
            d_t, z_t, r_t, dz_t, dr_t, dn_t = (part[t] for part in parts)
            dn_t.mul_(dhs[t + 1]), dz_t.mul_(dhs[t + 1]), dr_t.mul_(dn_t)
            products[t].copy_(d_t)
            for_n[t].mul_(r_t)
            dhs[t].addcmul_(dhs[t + 1], z_t).addmm_(products[t], transposed)
        return d, *weight_gradients(h_all, d_product, bias), [dhs[0]]


class Elman:
    """h' = tanh(x + h U)."""

    states = 1

    @staticmethod
    def forward(drive, kernel, bias, h):
        h_all = started(h, len(drive))
        hs = h_all.unbind()
        for t, z in enumerate(drive.unbind()):
            torch.tanh(z.addmm_(hs[t], kernel), out=hs[t + 1])
        return [h_all], []

    @staticmethod
    def backward(kernel, bias, kept, d_outputs, d_finals, ends):
        (h_all,) = kept
        dz = torch.addcmul(one(h_all), h_all[1:], h_all[1:], value=-1)
        dh_all = with_finals(d_outputs, d_finals[0], ends)
        through_time(dz, dh_all, kernel)
        return dz, *weight_gradients(h_all, dz, bias), [dh_all[0]]


class ModReLU:
    """z = x + h Q; h' = sign(z) max(|z| + b, 0)."""

    states = 1

    @staticmethod
    def forward(drive, kernel, bias, h):
        h_all = started(h, len(drive))
        hs = h_all.unbind()
        for t, z in enumerate(drive.unbind()):
            z.addmm_(hs[t], kernel)
            torch.abs(z, out=hs[t + 1]).add_(bias).relu_().mul_(z.sign_())
        return [h_all], []

    @staticmethod
    def backward(kernel, bias, kept, d_outputs, d_finals, ends):
        (h_all,) = kept
        # The sign of z where h' is not 0, and 0 elsewhere.
        sign = torch.sign(h_all[1:])
        dz = sign * sign
        dh_all = with_finals(d_outputs, d_finals[0], ends)
        through_time(dz, dh_all, kernel)
        d_kernel, _ = weight_gradients(h_all, dz, None)
        return dz, d_kernel, sign.mul_(dz).sum((0, 1)), [dh_all[0]]


def started(first, time):
    """Return room for a state at all steps, with the first one in it."""
    x_all = first.new_empty(time + 1, *first.shape)
    x_all[0] = first
    return x_all


def one(x):
    return x.new_ones(())


def with_finals(d_outputs, d_final, ends):
    """Return the gradient of h at all steps, from those of the outputs and of the final h."""
    dh_all = torch.cat([torch.zeros_like(d_outputs[:1]), d_outputs])
    ends.add(dh_all, d_final)
    return dh_all


def through_time(dz, dh_all, kernel):
    """Turn dh'/dz into dz, in place, and add to the gradient of h what each step passes on."""
    dhs, transposed = dh_all.unbind(), kernel.T.contiguous()
    for t, dz_t in reversed(list(enumerate(dz.unbind()))):
        dhs[t].addmm_(dz_t.mul_(dhs[t + 1]), transposed)


def weight_gradients(h_all, d_product, bias):
    """Return the gradients of kernel and bias from that of the recurrent product."""
    d_product = d_product.flatten(0, 1)
    d_kernel = h_all[:-1].flatten(0, 1).T @ d_product
    return d_kernel, None if bias is None else d_product.sum(0)
