"""The native kernel as an operation of PyTorch."""

import torch

from keras_momentum_rnn.paths.native import kernel
from keras_momentum_rnn.paths.transforms import is_wrapped


@torch.compiler.disable
def run_cell(problem, x, weights, states):
    """Return h at all times and the final states, for `run.run_native`."""
    inputs = x, *weights, *states
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in inputs):
        outputs, *finals = NativeCell.apply(problem, *inputs)
        return outputs, finals
    _, _, outputs, finals = forward(problem, inputs, keeps=False)
    return outputs, finals


def array(tensor):
    return tensor.detach().numpy() if torch.is_tensor(tensor) else tensor


def forward(problem, inputs, keeps):
    """Return the `Equation`, `Kept`, h at all times and the final states, all of tensors."""
    equation = problem.equation.with_mu(array(problem.mu))
    arrays = equation.divided(list(map(array, inputs)))
    finals, kept = kernel.forward(equation, *arrays, array(problem.lengths), keeps=keeps)
    kept, finals = ([torch.from_numpy(a) for a in arrays] for arrays in (kept, finals))
    return equation, kept, kept[0], finals


class NativeCell(torch.autograd.Function):
    """(x, weights, initial states) -> (h at all times, final states)."""

    @staticmethod
    def forward(ctx, problem, *inputs):
        ctx.equation, kept, outputs, finals = forward(problem, inputs, keeps=True)
        ctx.problem, ctx.lengths = problem, array(problem.lengths)
        ctx.save_for_backward(*kept, *inputs)
        ctx.set_materialize_grads(False)
        return outputs, *finals

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

            return None, *gradients_by_autograd(run, inputs, d_results)
        d_outputs, *d_finals = map(array, d_results)
        arrays = ctx.equation.divided(list(map(array, inputs)))
        dx, d_weights, d_states = kernel.backward(
            ctx.equation, *arrays, ctx.lengths, kernel.Kept(*map(array, kept)),
            d_outputs, d_finals, wants_dx=ctx.needs_input_grad[1],
        )  # fmt: skip
        gradients = zip([dx, *d_weights, *d_states], ctx.needs_input_grad[1:])
        return None, *(torch.from_numpy(d) if needed else None for d, needed in gradients)


def by_autograd(d_results):
    """Return whether a gradient by hand cannot be taken.

    It is to be differentiated again, or `vmap` acts on the gradients of the results, as in
    `torch.autograd.functional.jacobian(vectorize=True)`.
    """
    return torch.is_grad_enabled() or any(is_wrapped(d) for d in d_results if d is not None)


def gradients_by_autograd(function, inputs, d_results):
    """Return the gradients of the inputs, or None each; with a graph where one is recorded.

    Args:
        function: from the inputs to results, a list, by operations that autograd records.
        inputs: list of tensors and None.
        d_results: the gradients of the results, or None each.
    """
    # An input may depend on another one: a state on the weights of the steps before. Aliases
    # keep the gradient of the one from flowing on to the other, where it would count twice.
    with torch.enable_grad():
        aliases = [None if t is None else t.view_as(t) for t in inputs]
        results = function(*aliases)
    # Where the rest is frozen, a result may depend on nothing that has a gradient.
    pairs = [(r, d) for r, d in zip(results, d_results) if d is not None and r.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    results, d_results = zip(*pairs)
    wanted = [a for a in aliases if a is not None and a.requires_grad]
    gradients = torch.autograd.grad(
        results,
        wanted,
        d_results,
        create_graph=torch.is_grad_enabled(),
        allow_unused=True,
    )
    found = dict(zip(map(id, wanted), gradients))
    return [found.get(id(a)) for a in aliases]
