"""The recurrence of a nested cell, as those of `torch_recurrences`."""

from dataclasses import dataclass

import torch

from keras_momentum_rnn.paths.torch_recurrences import gate_slopes, started, weight_gradients


@dataclass(frozen=True)
class Nested:
    """The gates of an LSTM around a memory, a recurrence whose h is the shell's c.

    The memory's input is [sigmoid(f) c, sigmoid(i) tanh(a)]; h' = sigmoid(o) tanh(c').
    """

    memory: type

    # Two of the shell, the memory's matrix of its input and the bias with it, and its own two.
    weights = 6

    @property
    def states(self):
        return 1 + self.memory.states

    def begin(self, drive, weights, h, *inner):
        kernel, bias, input_kernel, input_bias, *own = weights
        units, h_all = h.shape[1], started(h, len(drive))
        if bias is not None:
            drive.add_(bias)
        # The memory's drive begins with its bias; each step adds the product.
        memory_drive = drive.new_zeros(*drive.shape[:2], input_kernel.shape[1])
        if input_bias is not None:
            memory_drive.add_(input_bias)
        memory_step, inner_all, memory_kept = self.memory.begin(memory_drive, own, *inner)
        joined = drive.new_empty(*drive.shape[:2], 2 * units)
        hs, cs, zs = h_all.unbind(), inner_all[0].unbind(), drive.unbind()
        memory_zs, inputs = memory_drive.unbind(), joined.unbind()
        held, new = (part.unbind() for part in joined.chunk(2, -1))
        ifs = drive[..., : 2 * units].unbind()
        i, f, a, o = (gate.unbind() for gate in drive.chunk(4, -1))

        def step(t):
            zs[t].addmm_(hs[t], kernel)
            ifs[t].sigmoid_(), a[t].tanh_(), o[t].sigmoid_()
            torch.mul(f[t], cs[t], out=held[t])
            torch.mul(i[t], a[t], out=new[t])
            memory_zs[t].addmm_(inputs[t], input_kernel)
            memory_step(t)
            torch.tanh(cs[t + 1], out=hs[t + 1]).mul_(o[t])

        return step, [h_all, *inner_all], [drive, joined, *memory_kept]

    def begin_back(self, weights, kept, dh_all, d_finals, ends):
        kernel, bias, input_kernel, input_bias, *own = weights
        h_all, *kept = kept
        inner_all, kept = kept[: self.memory.states], kept[self.memory.states :]
        gates, joined, *memory_kept = kept
        c_all, units = inner_all[0], h_all.shape[-1]
        dc_all = torch.zeros_like(c_all)
        ends.add(dc_all, d_finals[0])
        d_memory, memory_back, memory_finish = self.memory.begin_back(
            own, [*inner_all, *memory_kept], dc_all, d_finals[1:], ends
        )
        i, f, a, _ = gates.chunk(4, -1)
        dz, slope = gate_slopes(gates, h_all, torch.tanh(c_all[1:]))
        di, df, da, do = dz.chunk(4, -1)
        di.mul_(a), df.mul_(c_all[:-1]), da.mul_(i)
        dhs, dcs, zs, fs = (x.unbind() for x in (dh_all, dc_all, dz, f))
        # The gates i and a of the new, as (batch, 2, units).
        dias = dz.unflatten(-1, (4, -1))[..., 0:3:2, :].unbind()
        dfs, dos, slopes, memory_zs = (x.unbind() for x in (df, do, slope, d_memory))
        transposed, input_transposed = kernel.T.contiguous(), input_kernel.T.contiguous()
        d_input = torch.empty_like(joined[0])
        d_held, d_new = d_input[:, :units], d_input[:, units:].unsqueeze(1)

        def step(t):
            dcs[t + 1].addcmul_(dhs[t + 1], slopes[t])
            memory_back(t)
            torch.mm(memory_zs[t], input_transposed, out=d_input)
            dias[t].mul_(d_new), dfs[t].mul_(d_held), dos[t].mul_(dhs[t + 1])
            dcs[t].addcmul_(d_held, fs[t])
            dhs[t].addmm_(zs[t], transposed)

        def finish():
            own, d_inner = memory_finish()
            shell = weight_gradients(h_all[:-1], dz, bias)
            inputs = weight_gradients(joined, d_memory, input_bias)
            return [*shell, *inputs, *own], [dhs[0], *d_inner]

        return dz, step, finish
