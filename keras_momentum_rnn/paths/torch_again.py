"""Gradients that autograd computes in place of those by hand, on PyTorch."""

import torch

from keras_momentum_rnn.paths.transforms import transform_is_active


def by_autograd(d_results):
    """Return whether a gradient by hand cannot be taken.

    It is to be differentiated again, or `vmap` acts on the gradients of the results, as in
    `torch.autograd.functional.jacobian(vectorize=True)`.
    """
    given = [d for d in d_results if d is not None]
    return torch.is_grad_enabled() or transform_is_active(given)


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
