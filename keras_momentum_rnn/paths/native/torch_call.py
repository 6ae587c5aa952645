"""The native kernel as an operation of PyTorch."""

import torch

from keras_momentum_rnn.paths.native import kernel
from keras_momentum_rnn.paths.torch_again import differentiable_gradients


@torch.compiler.disable
def run_cell(problem, x, weights, states):
    """Return h at all times and the final states, for `run.run_native`."""
    outputs, *finals = NativeCell.apply(problem, x, *weights, *states)
    return outputs, finals


def array(tensor):
    return None if tensor is None else tensor.detach().numpy()


class NativeCell(torch.autograd.Function):
    """(x, W, b, U, side bias, initial states) -> (h at all times, final states)."""

    @staticmethod
    def forward(ctx, problem, *inputs):
        x, W, b, U, side, *states = map(array, inputs)
        equation = problem.equation.with_mu(array(problem.mu))
        lengths = array(problem.lengths)
        finals, kept = kernel.forward(
            equation, x, [W, b, U, side], states, lengths, keeps=any(ctx.needs_input_grad)
        )
        outputs, *finals = map(torch.from_numpy, (kept.h, *finals))
        ctx.problem, ctx.arrays = problem, (equation, lengths, kept[1:])
        ctx.save_for_backward(outputs, *inputs)
        ctx.set_materialize_grads(False)
        return outputs, *finals

    @staticmethod
    def backward(ctx, *d_results):
        outputs, *inputs = ctx.saved_tensors
        if torch.is_grad_enabled():

            def run(*inputs):
                outputs, finals = ctx.problem.run_steps(*inputs)
                return [outputs, *finals]

            return None, *differentiable_gradients(run, inputs, d_results)
        x, W, b, U, side, *states = map(array, inputs)
        equation, lengths, kept = ctx.arrays
        d_outputs, *d_finals = map(array, d_results)
        dx, d_weights, d_states = kernel.backward(
            equation, x, [W, b, U, side], states, lengths, kernel.Kept(array(outputs), *kept),
            d_outputs, d_finals, wants_dx=ctx.needs_input_grad[1],
        )  # fmt: skip
        return None, *(
            torch.from_numpy(d) if needed else None
            for d, needed in zip([dx, *d_weights, *d_states], ctx.needs_input_grad[1:])
        )
