"""Rule and recurrence in one loop on PyTorch, with a gradient written by hand.

Autograd would record some thirty operations a step. Here a step is a few of them, in place on
what the processor's cache holds, and the gradient of a weight is one product after the loop.
Everything is time-major: `(time, batch, size)`.

A recurrence and a rule each give two functions. `forward` returns what is kept for the
backward pass, a function that takes step t, and one that returns the states after t steps.
`backward` returns the function that takes step t back.
"""

from dataclasses import astuple, dataclass

import torch
from torch.autograd.function import once_differentiable

from keras_momentum_rnn.paths.filter import unmasked
from keras_momentum_rnn.paths.masks import spread_out

# So many steps at a time: more memory than the cache holds slows every one of them.
CHUNK = 32


def run(cell, x, states, mask=None, training=False):
    """Run a sequence; the slots may start anywhere.

    Args:
        cell: a cell with `fused_kernel`, whose rule is linear or scaled and learns nothing.
        x: tensor `(batch, time, features)`.
        states: list of the initial states, slots included.
        mask: bool tensor `(batch, time)` or None.
        training: bool, whether dropout acts.

    Returns:
        h at all times, `(batch, time, units)`, and the final states.
    """
    x, steps = unmasked(x, mask)
    steps = None if mask is None else steps
    project = cell.projection(training)
    outputs, finals = run_time_major(cell, project, x.transpose(0, 1), states, steps)
    outputs = outputs.transpose(0, 1)
    if mask is not None:
        outputs = spread_out(outputs, states[0], mask)
    return outputs, finals


def run_time_major(cell, project, x, states, steps):
    """Run the rule and the recurrence of an LSTM or a GRU.

    Args:
        cell: as of `run`.
        project: function x -> u.
        x: tensor `(time, batch, features)`.
        states: list of the initial states, slots included.
        steps: int tensor `(batch, 1)`, after how many steps a sample ends, or None where all
            run to the end.

    Returns:
        h at all times, `(time, batch, units)`, where past a sample's end it says nothing, and
        the states at the samples' ends.
    """
    recurrence = {"lstm": LSTM, "gru": GRU}[cell.fused_kernel]
    kernel, bias = cell.wide(cell.recurrent_kernel), cell.recurrent_side_bias
    bias = None if bias is None else cell.wide(bias)
    counters = []
    if not cell.rule.scaled:
        # The loop does not count: what a linear rule's counter will be is known before.
        slot = len(cell.cell_state_size) + 1
        states, counters = states[:slot], states[slot:]
    outputs = []
    for start in range(0, len(x), CHUNK):
        part = x[start : start + CHUNK]
        u = project(part).contiguous()
        if cell.rule.scaled:
            rule = Scaled(*cell.rule.velocity, cell.rule.beta, cell.rule.epsilon)
        else:
            rule = Momentum(*per_step(cell.rule, u, *(t + start for t in counters)))
        ends = {len(u): slice(None)}
        if steps is not None:
            ends = rows_by_end((steps - start).clamp(0, len(u)))
        h, *states = Loop.apply(recurrence, rule, ends, u, kernel, bias, *states)
        outputs.append(h)
    ends = len(x) if steps is None else steps
    counters = [cell.rule.count(t, ends) for t in counters]
    return torch.cat(outputs), [*states, *counters]


def per_step(rule, u, t=None):
    """Return mu and s of a linear rule at each step, two lists of tensors `(batch or 1, 1)`."""
    if t is not None:
        t = t + torch.arange(len(u), dtype=t.dtype, device=t.device)[:, None, None]
    numbers = (torch.as_tensor(n, dtype=u.dtype, device=u.device) for n in rule.coefficients(t))
    return [(n if n.ndim else n.expand(len(u), 1, 1)).unbind() for n in numbers]


def rows_by_end(steps):
    """Return which rows of the batch end after which number of steps."""
    rows = {}
    for row, end in enumerate(steps[:, 0].tolist()):
        rows.setdefault(end, []).append(row)
    return rows


class Loop(torch.autograd.Function):
    """(u, kernel, bias, initial states) -> (h at all times, final states)."""

    @staticmethod
    def forward(ctx, recurrence, rule, ends, u, kernel, bias, *initial):
        own, slots = initial[: recurrence.states], initial[recurrence.states :]
        kept, step, states_at = recurrence.forward(u, kernel, bias, *own)
        rule_kept, rule_step, slots_at = rule.forward(u, *slots)
        finals = [s.clone() for s in initial]
        for t, u_t in enumerate(u.unbind()):
            step(t, rule_step(t, u_t))
            if (rows := ends.get(t + 1)) is not None:
                for final, state in zip(finals, [*states_at(t + 1), *slots_at(t + 1)]):
                    final[rows] = state[rows]
        ctx.recurrence, ctx.rule, ctx.ends = recurrence, rule, ends
        ctx.has_bias, ctx.count = bias is not None, len(kept)
        ctx.save_for_backward(u, kernel, *kept, *rule_kept)
        return kept[0][1:], *finals

    @staticmethod
    @once_differentiable
    def backward(ctx, d_outputs, *d_finals):
        u, kernel, *kept = ctx.saved_tensors
        kept, rule_kept = kept[: ctx.count], kept[ctx.count :]
        grads = [torch.zeros_like(d) for d in d_finals]
        own, slots = grads[: ctx.recurrence.states], grads[ctx.recurrence.states :]
        d_drive, du = torch.empty_like(u), torch.empty_like(u)
        back = ctx.recurrence.backward(kernel, kept, d_drive, *own)
        rule_back = ctx.rule.backward(u, rule_kept, d_drive, du, *slots)

        def add_finals(end):
            if (rows := ctx.ends.get(end)) is not None:
                for grad, d_final in zip(grads, d_finals):
                    grad[rows] += d_final[rows]

        for t in range(len(u) - 1, -1, -1):
            add_finals(t + 1)
            own[0].add_(d_outputs[t])
            back(t)
            rule_back(t)
        add_finals(0)
        d_product = ctx.recurrence.product_gradient(kept, d_drive).flatten(0, 1)
        d_kernel = kept[0][:-1].flatten(0, 1).T @ d_product
        d_bias = d_product.sum(0) if ctx.has_bias else None
        return None, None, None, du, d_kernel, d_bias, *grads


class LSTM:
    """c' = sigmoid(f) c + sigmoid(i) tanh(a); h' = sigmoid(o) tanh(c'). Keeps h, c, gates."""

    states = 2

    @staticmethod
    def forward(u, kernel, bias, h, c):
        time, batch, units = len(u), *h.shape
        h_all, c_all = h.new_empty(time + 1, batch, units), h.new_empty(time + 1, batch, units)
        gates, tanh_c = torch.empty_like(u), h.new_empty(time, batch, units)
        h_all[0], c_all[0] = h, c
        hs, cs, zs, tanhs = (x.unbind() for x in (h_all, c_all, gates, tanh_c))
        ifs = gates[..., : 2 * units].unbind()
        i, f, a, o = (gate.unbind() for gate in gates.chunk(4, -1))

        def step(t, drive):
            z = torch.addmm(drive, hs[t], kernel, out=zs[t])
            if bias is not None:
                z.add_(bias)
            ifs[t].sigmoid_(), a[t].tanh_(), o[t].sigmoid_()
            torch.mul(f[t], cs[t], out=cs[t + 1]).addcmul_(i[t], a[t])
            torch.tanh(cs[t + 1], out=tanhs[t])
            torch.mul(o[t], tanhs[t], out=hs[t + 1])

        return [h_all, c_all, gates, tanh_c], step, lambda t: (hs[t], cs[t])

    @staticmethod
    def backward(kernel, kept, d_drive, dh, dc):
        hs, cs, gates, tanhs = (x.unbind() for x in kept)
        i, f, a, o = (gate.unbind() for gate in kept[2].chunk(4, -1))
        dz = d_drive.unbind()
        di, df, da, do = (gate.unbind() for gate in d_drive.chunk(4, -1))
        # The three gates that c sees, as (batch, 3, units).
        difa = d_drive.unflatten(-1, (4, -1))[..., :3, :].unbind()
        transposed, one = kernel.T.contiguous(), kernel.new_ones(())

        def back(t):
            # The derivatives of sigmoid and tanh first, then what the gates multiply.
            torch.addcmul(gates[t], gates[t], gates[t], value=-1, out=dz[t])
            torch.addcmul(one, a[t], a[t], value=-1, out=da[t])
            dc.addcmul_(dh, torch.addcmul(o[t], hs[t + 1], tanhs[t], value=-1))
            di[t].mul_(a[t]), df[t].mul_(cs[t]), da[t].mul_(i[t])
            difa[t].mul_(dc.unsqueeze(1))
            do[t].mul_(tanhs[t]).mul_(dh)
            dc.mul_(f[t])
            torch.mm(dz[t], transposed, out=dh)

        return back

    @staticmethod
    def product_gradient(kept, d_drive):
        """Return the gradient of the recurrent product, which is added to the drive."""
        return d_drive


class GRU:
    """z, r, y = h U; z, r = sigmoid(x + .); n = tanh(x + r y); h' = z h + (1 - z) n."""

    states = 1

    @staticmethod
    def forward(u, kernel, bias, h):
        time, batch, units = len(u), *h.shape
        h_all, gates = h.new_empty(time + 1, batch, units), torch.empty_like(u)
        candidates = h.new_empty(time, batch, units)
        h_all[0] = h
        hs, ys = h_all.unbind(), candidates.unbind()
        zrs = gates[..., : 2 * units].unbind()
        z, r, n = (gate.unbind() for gate in gates.chunk(3, -1))

        def step(t, drive):
            product = hs[t] @ kernel
            if bias is not None:
                product.add_(bias)
            ys[t].copy_(product[:, 2 * units :])
            torch.add(drive[:, : 2 * units], product[:, : 2 * units], out=zrs[t]).sigmoid_()
            torch.addcmul(drive[:, 2 * units :], r[t], ys[t], out=n[t]).tanh_()
            torch.lerp(n[t], hs[t], z[t], out=hs[t + 1])

        return [h_all, gates, candidates], step, lambda t: (hs[t],)

    @staticmethod
    def backward(kernel, kept, d_drive, dh):
        hs, gates, ys = (x.unbind() for x in kept)
        z, r, n = (gate.unbind() for gate in kept[1].chunk(3, -1))
        d = d_drive.unbind()
        dz, dr, dn = (gate.unbind() for gate in d_drive.chunk(3, -1))
        transposed, one = kernel.T.contiguous(), kernel.new_ones(())
        units = dh.shape[1]
        # As product_gradient, for one step.
        d_product = torch.empty_like(d[0])

        def back(t):
            torch.addcmul(gates[t], gates[t], gates[t], value=-1, out=d[t])
            torch.addcmul(one, n[t], n[t], value=-1, out=dn[t])
            dn[t].mul_(dh).mul_(1 - z[t])
            dz[t].mul_(hs[t] - n[t]).mul_(dh)
            dr[t].mul_(ys[t]).mul_(dn[t])
            d_product.copy_(d[t])
            d_product[:, 2 * units :].mul_(r[t])
            dh.mul_(z[t]).addmm_(d_product, transposed)

        return back

    @staticmethod
    def product_gradient(kept, d_drive):
        """Return the gradient of the recurrent product: the reset gate scales a third of it."""
        zr, n = d_drive.tensor_split([2 * kept[2].shape[-1]], -1)
        r = kept[1].chunk(3, -1)[1]
        return torch.cat([zr, n * r], -1)


@dataclass(frozen=True)
class Momentum:
    """v' = mu v + s u; the drive is v'. Two lists: mu and s of each step."""

    mu: list
    s: list

    def forward(self, u, v):
        v = v.clone()

        def step(t, u_t):
            return v.mul_(self.mu[t]).addcmul_(self.s[t], u_t)

        return [], step, lambda t: (v,)

    def backward(self, u, kept, d_drive, du, dv):
        d_drive, du = d_drive.unbind(), du.unbind()

        def back(t):
            dv.add_(d_drive[t])
            torch.mul(dv, self.s[t], out=du[t])
            dv.mul_(self.mu[t])

        return back


@dataclass(frozen=True)
class Scaled:
    """v' = mu v + gain u; m' = beta m + (1 - beta) u^2; drive = factor v' / sqrt(m' + eps).

    Keeps r = factor / sqrt(m' + eps) and v'. At mu = 0 there is no slot v, and v' is gain u.
    """

    mu: float
    gain: float
    factor: float
    beta: float
    epsilon: float

    def numbers(self, u):
        """Return them as tensors, which PyTorch need not convert at every step."""
        return [torch.tensor(n, dtype=u.dtype, device=u.device) for n in astuple(self)]

    def forward(self, u, *slots):
        *v, m = slots
        mu, gain, factor, beta, epsilon = self.numbers(u)
        scales, m, drive = torch.empty_like(u), m.clone(), torch.empty_like(u[0])
        rs = scales.unbind()
        kept = [scales]
        if v:
            v_all = u.new_empty(len(u) + 1, *u.shape[1:])
            v_all[0] = v[0]
            vs = v_all.unbind()
            kept.append(v_all)

        def step(t, u_t):
            m.mul_(beta).addcmul_(u_t, u_t, value=1 - self.beta)
            torch.add(m, epsilon, out=rs[t]).rsqrt_()
            if self.factor != 1:
                rs[t].mul_(factor)
            if v:
                torch.mul(vs[t], mu, out=vs[t + 1]).add_(u_t, alpha=self.gain)
                return torch.mul(vs[t + 1], rs[t], out=drive)
            return torch.mul(u_t, rs[t], out=drive).mul_(gain)

        return kept, step, lambda t: (vs[t], m) if v else (m,)

    def backward(self, u, kept, d_drive, du, *grads):
        *dv, dm = grads
        mu, _, _, beta, _ = self.numbers(u)
        twice = 2 * (1 - beta)
        us, ds, dus = u.unbind(), d_drive.unbind(), du.unbind()
        rs, *vs = (x.unbind() for x in kept)
        a, b = torch.empty_like(dm), torch.empty_like(dm)
        # v' is u where there is no slot for it: the gain is left to do.
        share = (1 if dv else self.gain) / (2 * self.factor**2)

        def back(t):
            # a = dL/dv', and from r = factor / sqrt(m + eps): dr/dm = -r^3 / (2 factor^2).
            torch.mul(ds[t], rs[t], out=a)
            torch.mul(a, vs[0][t + 1] if dv else us[t], out=b).mul_(rs[t])
            dm.addcmul_(b, rs[t], value=-share)
            torch.mul(dm, us[t], out=dus[t]).mul_(twice)
            dm.mul_(beta)
            if dv:
                dus[t].add_(dv[0].add_(a), alpha=self.gain)
                dv[0].mul_(mu)
            else:
                dus[t].add_(a, alpha=self.gain)

        return back
