"""The native kernel as an operation of PyTorch."""

import torch

from keras_momentum_rnn.paths.native import kernel


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
            return None, *differentiable_gradients(ctx.problem, inputs, d_results)
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


def differentiable_gradients(problem, inputs, d_results):
    """Return the gradients of the inputs, with a graph of their own, or None each."""
    outputs, finals = problem.run_steps(*inputs)
    results, d_results = zip(
        *((r, d) for r, d in zip([outputs, *finals], d_results) if d is not None)
    )
    wanted = [t for t in inputs if t is not None and t.requires_grad]
    gradients = torch.autograd.grad(
        results, wanted, d_results, create_graph=True, allow_unused=True
    )
    found = dict(zip(map(id, wanted), gradients))
    return [found.get(id(t)) for t in inputs]
