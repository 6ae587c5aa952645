"""The native kernel as an operation of PyTorch."""

import torch

from keras_momentum_rnn.paths.native import kernel


def run_lstm(problem, x, weights, states):
    """Return h at all times and the final states, for `run.run_native`."""
    outputs, *finals = NativeLSTM.apply(problem, x, *weights, *states)
    return outputs, finals


def array(tensor):
    return None if tensor is None else tensor.detach().numpy()


class NativeLSTM(torch.autograd.Function):
    """(x, W, b, U, side bias, initial states) -> (h at all times, final states)."""

    @staticmethod
    def forward(ctx, problem, *inputs):
        x, W, b, U, side, *states = map(array, inputs)
        rule, lengths = problem.rule.with_mu(array(problem.mu)), array(problem.lengths)
        outputs, finals, kept = kernel.forward(x, W, b, U, side, states, rule, lengths)
        outputs, *finals = map(torch.from_numpy, (outputs, *finals))
        ctx.problem, ctx.kept = problem, (rule, lengths, kept)
        ctx.save_for_backward(outputs, *inputs)
        ctx.set_materialize_grads(False)
        return outputs, *finals

    @staticmethod
    def backward(ctx, *d_results):
        outputs, *inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, *differentiable_gradients(ctx.problem, inputs, d_results)
        x, W, b, U, side, *states = map(array, inputs)
        rule, lengths, kept = ctx.kept
        d_outputs, *d_finals = map(array, d_results)
        wants_dx = ctx.needs_input_grad[1]
        dx, dW, db, dU, d_side, d_states = kernel.backward(
            x, W, b, U, side, states, rule, lengths, array(outputs), kept, d_outputs, d_finals,
            wants_dx,
        )  # fmt: skip
        gradients = [dx, dW, db, dU, d_side, *d_states]
        return None, *(
            None if g is None or i is None else torch.from_numpy(g)
            for g, i in zip(gradients, inputs)
        )


def differentiable_gradients(problem, inputs, d_results):
    """Return the gradients of the inputs, with a graph of their own, or None each."""
    outputs, finals = problem.run_steps(*inputs)
    pairs = [(r, d) for r, d in zip([outputs, *finals], d_results) if d is not None]
    wanted = [t for t in inputs if t is not None and t.requires_grad]
    gradients = torch.autograd.grad(
        *zip(*pairs), create_graph=True, allow_unused=True, inputs=wanted
    )
    found = dict(zip(map(id, wanted), gradients))
    return [found.get(id(t)) for t in inputs]
