"""Rules over a chunk of steps on PyTorch, with gradients written by hand.

`drive(u, *slots)` returns the drive at all steps, which is the caller's to change, and each
slot at all steps, the first before any. `backward(u, slots, d_drive, d_finals, ends)` returns
the gradients of u and of the slots that the chunk began with. Nothing is stored in between: the
slots are computed again, which takes less time than reading memory outside the CPU cache.
Everything is `(time, batch, width)`, with one step more where it begins before them.
"""

import itertools
from dataclasses import dataclass

import torch


class Given:
    """The drive is u."""

    def drive(self, u):
        return u.clone(), []

    def backward(self, u, slots, d_drive, d_finals, ends):
        return d_drive, []


@dataclass(frozen=True)
class Momentum:
    """v' = mu v + s u; the drive is v'. Two lists: mu and s of each step."""

    mu: list
    s: list

    def drive(self, u, v):
        v_all = u.new_empty(len(u) + 1, *v.shape)
        v_all[0] = v
        vs = v_all.unbind()
        for t, u_t in enumerate(u.unbind()):
            torch.mul(vs[t], self.mu[t], out=vs[t + 1]).addcmul_(self.s[t], u_t)
        return v_all[1:].clone(), [v_all]

    def backward(self, u, slots, d_drive, d_finals, ends):
        dv_all = torch.cat([torch.zeros_like(d_drive[:1]), d_drive])
        ends.add(dv_all, d_finals[0])
        dvs = dv_all.unbind()
        du = torch.empty_like(u)
        for t, du_t in reversed(list(enumerate(du.unbind()))):
            torch.mul(dvs[t + 1], self.s[t], out=du_t)
            dvs[t].addcmul_(dvs[t + 1], self.mu[t])
        return du, [dvs[0]]


@dataclass(frozen=True)
class Scaled:
    """v' = mu v + gain u; m' = beta m + (1 - beta) u^2; drive = factor v' / sqrt(m' + eps).

    Computed with w = v / gain and r = factor gain / sqrt(m' + eps), so that the drive is w' r.
    Where there is no slot v, w' is u.
    """

    mu: float
    gain: float
    factor: float
    beta: float
    epsilon: float

    def drive(self, u, *slots):
        *w_all, m_all, r = self.computed(u, *slots)
        if not w_all:
            return r.mul_(u), [m_all]
        return r.mul_(w_all[0][1:]), [w_all[0].mul_(self.gain), m_all]

    def computed(self, u, *slots):
        """Return w, where there is a slot v, m and r at all steps."""
        *v, m = slots
        m_all = u.new_empty(len(u) + 1, *m.shape)
        m_all[0] = m
        torch.mul(u, u, out=m_all[1:]).mul_(1 - self.beta)
        accumulate(m_all.unbind(), self.beta)
        w_all = [torch.empty_like(m_all) for _ in v]
        if v:
            torch.mul(v[0], 1 / self.gain, out=w_all[0][0])
            ws = w_all[0].unbind()
            for t, u_t in enumerate(u.unbind()):
                torch.add(u_t, ws[t], alpha=self.mu, out=ws[t + 1])
        squared = (self.factor * self.gain) ** 2
        epsilon = u.new_tensor(self.epsilon / squared)
        r = torch.add(epsilon, m_all[1:], alpha=1 / squared).rsqrt_()
        return *w_all, m_all, r

    def backward(self, u, slots, d_drive, d_finals, ends):
        *w_all, m_all, r = self.computed(u, *slots)
        # dr/dm = -r^3 / (2 squared); the constant factor is applied at the end.
        share = -0.5 / (self.factor * self.gain) ** 2
        dw_all = torch.empty_like(m_all)
        dw_all[0] = 0
        dw = torch.mul(d_drive, r, out=dw_all[1:])
        dm_all = m_all
        dm_all[0] = 0
        torch.mul(w_all[0][1:] if w_all else u, dw, out=dm_all[1:]).mul_(r).mul_(r)
        ends.add(dm_all, d_finals[-1] / share)
        accumulate(dm_all.unbind()[::-1], self.beta)
        d_slots = [dm_all[0] * share]
        if w_all:
            ends.add(dw_all, d_finals[0] * self.gain)
            accumulate(dw_all.unbind()[::-1], self.mu)
            d_slots.insert(0, dw_all[0] / self.gain)
        return dw.addcmul_(dm_all[1:], u, value=2 * (1 - self.beta) * share), d_slots


def accumulate(steps, factor):
    """Add to each step `factor` times the one before, in place."""
    for before, after in itertools.pairwise(steps):
        after.add_(before, alpha=factor)
