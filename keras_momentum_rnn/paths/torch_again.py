"""Gradients by hand that are differentiated again, on PyTorch."""

import torch


def differentiable_gradients(function, inputs, d_results):
    """Return the gradients of the inputs, with a graph of their own, or None each.

    Args:
        function: from the inputs to results, a list, by operations that autograd records.
        inputs: list of tensors and None.
        d_results: the gradients of the results, or None each.
    """
    # An input may depend on another one: a state on the weights of the steps before. Aliases
    # keep the gradient of the one from flowing on to the other, where it would count twice.
    aliases = [None if t is None else t.view_as(t) for t in inputs]
    results = function(*aliases)
    # Where the rest is frozen, a result may depend on nothing that has a gradient.
    pairs = [(r, d) for r, d in zip(results, d_results) if d is not None and r.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    results, d_results = zip(*pairs)
    wanted = [a for a in aliases if a is not None and a.requires_grad]
    gradients = torch.autograd.grad(
        results, wanted, d_results, create_graph=True, allow_unused=True
    )
    found = dict(zip(map(id, wanted), gradients))
    return [found.get(id(a)) for a in aliases]
