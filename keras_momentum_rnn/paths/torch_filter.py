"""Momentum with vectors for numbers, over a chunk of steps on PyTorch, its gradient by hand.

Everything is time-major: `(time, batch, width)`.
"""

from functools import partial

import torch

from keras_momentum_rnn.paths.torch_again import by_autograd, gradients_by_autograd


class ElementwiseFilter(torch.autograd.Function):
    """v_t = mu v_{t-1} + u_t: (u, mu, first v) -> (v at all steps, v at the samples' ends).

    mu is `(width,)`. A step size is the caller's to multiply u by.
    """

    @staticmethod
    def forward(ctx, ends, u, mu, v):
        v_all = u.new_empty(len(u) + 1, *v.shape)
        v_all[0] = v
        steps = v_all.unbind()
        for u_t, before, after in zip(u.unbind(), steps, steps[1:]):
            torch.addcmul(u_t, before, mu, out=after)
        ctx.ends = ends
        ctx.save_for_backward(u, mu, v, v_all)
        return v_all[1:], ends.of(v_all)

    @staticmethod
    def backward(ctx, dv_all, d_last):
        u, mu, v, v_all = ctx.saved_tensors
        if by_autograd([dv_all, d_last]):
            run = partial(filter_in_steps, ctx.ends)
            return None, *gradients_by_autograd(run, [u, mu, v], [dv_all, d_last])
        dv_all = torch.cat([torch.zeros_like(dv_all[:1]), dv_all])
        ctx.ends.add(dv_all, d_last)
        steps = dv_all.unbind()
        for before, after in zip(steps[-2::-1], steps[:0:-1]):
            before.addcmul_(after, mu)
        d_mu = (dv_all[1:] * v_all[:-1]).sum((0, 1))
        return None, dv_all[1:], d_mu, dv_all[0]


def filter_in_steps(ends, u, mu, v):
    """Compute what `ElementwiseFilter` does by operations that autograd records."""
    v_all = [v]
    for u_t in u.unbind():
        v_all.append(u_t + mu * v_all[-1])
    v_all = torch.stack(v_all)
    return v_all[1:], ends.of(v_all)
