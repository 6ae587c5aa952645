"""The native kernel as an operation of PyTorch."""

import torch

from keras_momentum_rnn.paths.native import kernel
from keras_momentum_rnn.paths.torch_again import by_autograd, gradients_by_autograd


@torch.compiler.disable
def run_cell(problem, x, weights, states):
    """Return h at all times and the final states, for `run.run_native`."""
    inputs = x, *weights, *states
    keeps = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in inputs)
    outputs, *finals = NativeCell.apply(problem, keeps, *inputs)
    return outputs, finals


def array(tensor):
    return None if tensor is None else tensor.detach().numpy()


class NativeCell(torch.autograd.Function):
    """(x, weights, initial states) -> (h at all times, final states)."""

    @staticmethod
    def forward(ctx, problem, keeps, *inputs):
        equation = problem.equation.with_mu(array(problem.mu))
        lengths = array(problem.lengths)
        arrays = equation.divided(list(map(array, inputs)))
        finals, kept = kernel.forward(equation, *arrays, lengths, keeps=keeps)
        kept, finals = ([torch.from_numpy(a) for a in arrays] for arrays in (kept, finals))
        ctx.problem, ctx.equation, ctx.lengths = problem, equation, lengths
        if keeps:
            ctx.save_for_backward(*kept, *inputs)
        ctx.set_materialize_grads(False)
        return kept[0], *finals

    @staticmethod
    def backward(ctx, *d_results):
        count = len(kernel.Kept._fields)
        # Read once: a checkpoint would compute them again for a second reading, and refuses.
        saved = ctx.saved_tensors
        kept, inputs = saved[:count], saved[count:]
        if by_autograd(d_results):

            def run(*inputs):
                outputs, finals = ctx.problem.run_steps(*inputs)
                return [outputs, *finals]

            return None, None, *gradients_by_autograd(run, inputs, d_results)
        d_outputs, *d_finals = map(array, d_results)
        arrays = ctx.equation.divided(list(map(array, inputs)))
        dx, d_weights, d_states = kernel.backward(
            ctx.equation, *arrays, ctx.lengths, kernel.Kept(*map(array, kept)),
            d_outputs, d_finals, wants_dx=ctx.needs_input_grad[2],
        )  # fmt: skip
        return (
            None,
            None,
            *(
                torch.from_numpy(d) if needed else None
                for d, needed in zip([dx, *d_weights, *d_states], ctx.needs_input_grad[2:])
            ),
        )
