"""The native kernel as an operation of PyTorch."""

import dataclasses
from collections.abc import Sequence
from typing import Optional

import numpy as np
import torch
from torch import Tensor

from keras_momentum_rnn.paths.native import kernel
from keras_momentum_rnn.paths.transforms import is_wrapped

KEPT = len(kernel.Kept._fields)


def run_cell(problem, x, weights, states):
    """Return h, at all times or the last one, and the final states, for `run.run_native`."""
    if torch.compiler.is_compiling():
        # A missing bias is as wide as the matrix before it.
        weights = [
            weights[i - 1].new_zeros(weights[i - 1].shape[-1]) if w is None else w
            for i, w in enumerate(weights)
        ]
        inputs = x, *weights, *states
        mu, keeps = torch.as_tensor(problem.mu), torch.is_grad_enabled()
        numbers, dropout = problem.equation.as_numbers(), problem.dropout
        outputs, *results = native(numbers, mu, dropout, problem.mask, keeps, inputs)
        return outputs, results[KEPT - 1 :]
    return run_eagerly(problem, x, weights, states)


# After a process has compiled many models, PyTorch runs further ones uncompiled. But it would
# compile each function that they call, Numba's compiler among them.
@torch.compiler.disable
def run_eagerly(problem, x, weights, states):
    """Return h and the final states, as `run_cell`."""
    inputs = x, *weights, *states
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in inputs):
        # What `torch.inference_mode` made cannot be saved for the way back.
        inputs = (t.clone() if t is not None and t.is_inference() else t for t in inputs)
        if problem.mask is not None:
            # The way back must see what it was, whatever the caller does to it.
            problem = dataclasses.replace(problem, mask=problem.mask.clone())
        outputs, *finals = NativeCell.apply(problem, *inputs)
        return outputs, finals
    shape = problem.equation.outputs_shape(x, states, problem.all_outputs)
    outputs = np.empty(shape, np.float32)
    finals = kernel.infer(*on_arrays(problem, inputs), outputs)
    return torch.from_numpy(outputs), list(map(torch.from_numpy, finals))


def array(tensor):
    if not torch.is_tensor(tensor):
        return tensor
    # `module.double()` and the like give weights another dtype than the layer computes in.
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy(force=True)


def on_arrays(problem, inputs):
    """Return what `kernel.forward` takes: the `Equation`, x, weights, states and the mask."""
    equation = problem.equation.with_arrays(array(problem.mu), array(problem.dropout))
    return equation, *equation.divided(list(map(array, inputs))), array(problem.mask)


class NativeCell(torch.autograd.Function):
    """(x, weights, initial states) -> (h at all times, final states)."""

    @staticmethod
    def forward(ctx, problem, *inputs):
        ctx.equation, *_, ctx.mask = arrays = on_arrays(problem, inputs)
        results = finals, kept = kernel.forward(*arrays)
        ctx.problem = problem
        finals, kept = ([torch.from_numpy(a) for a in arrays] for arrays in results)
        ctx.save_for_backward(*kept, *inputs)
        ctx.set_materialize_grads(False)
        return kept[0], *finals

    @staticmethod
    @torch.compiler.disable
    def backward(ctx, *d_results):
        # Read once: a checkpoint would compute them again for a second reading, and refuses.
        saved = ctx.saved_tensors
        kept, inputs = saved[:KEPT], saved[KEPT:]
        if by_autograd(d_results):

            def run(*inputs):
                outputs, finals = ctx.problem.run_steps(*inputs)
                return [outputs, *finals]

            return None, *gradients_by_autograd(run, inputs, d_results)
        d_outputs, *d_finals = map(array, d_results)
        arrays = ctx.equation.divided(list(map(array, inputs)))
        dx, d_weights, d_states = kernel.backward(
            ctx.equation, *arrays, ctx.mask, kernel.Kept(*map(array, kept)),
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
        results, wanted, d_results, create_graph=torch.is_grad_enabled(), allow_unused=True
    )
    found = dict(zip(map(id, wanted), gradients))
    return [found.get(id(a)) for a in aliases]


# For `torch.compile`: operators that it knows by their results' shapes. They have no second
# derivative, and neither has what it compiles.


@torch.library.custom_op("keras_momentum_rnn::native", mutates_args=())
def native(
    numbers: Sequence[float],
    mu: Tensor,
    dropout: Optional[Tensor],  # noqa: UP045
    mask: Optional[Tensor],  # noqa: UP045
    keeps: bool,
    inputs: Sequence[Tensor],
) -> list[Tensor]:
    """Return `Kept` and the final states. `numbers`: of `Equation.as_numbers`."""
    equation = kernel.Equation.of_numbers(numbers).with_arrays(array(mu), array(dropout))
    arrays = equation.divided(list(map(array, inputs)))
    finals, kept = kernel.forward(equation, *arrays, array(mask), keeps=keeps)
    return [torch.from_numpy(a) for a in (*kept, *finals)]


@native.register_fake
def shapes_of_native(numbers, mu, dropout, mask, keeps, inputs):
    equation = kernel.Equation.of_numbers(numbers)
    x, _, states = equation.divided(inputs)
    shapes = equation.kept_shapes(*x.shape[:2], states[0].shape[1], keeps)
    return [x.new_empty(shape) for shape in (*shapes, *(s.shape for s in states))]


@torch.library.custom_op("keras_momentum_rnn::native_back", mutates_args=())
def native_back(
    numbers: Sequence[float],
    mu: Tensor,
    dropout: Optional[Tensor],  # noqa: UP045
    mask: Optional[Tensor],  # noqa: UP045
    inputs: Sequence[Tensor],
    kept: Sequence[Tensor],
    d_results: Sequence[Tensor],
) -> list[Tensor]:
    """Return the gradients of the inputs."""
    equation = kernel.Equation.of_numbers(numbers).with_arrays(array(mu), array(dropout))
    arrays = equation.divided(list(map(array, inputs)))
    d_outputs, *d_finals = map(array, d_results)
    dx, d_weights, d_states = kernel.backward(
        equation, *arrays, array(mask), kernel.Kept(*map(array, kept)), d_outputs, d_finals
    )
    return [torch.from_numpy(d) for d in (dx, *d_weights, *d_states)]


@native_back.register_fake
def shapes_of_native_back(numbers, mu, dropout, mask, inputs, kept, d_results):
    # In rows, however the input lies in memory.
    return [given.new_empty(given.shape) for given in inputs]


def keep_for_native_back(ctx, inputs, output):
    ctx.numbers, mu, dropout, mask, _, tensors = inputs
    ctx.save_for_backward(mu, dropout, mask, *output[:KEPT], *tensors)


def gradient_of_native(ctx, d_results):
    *arrays, saved = *ctx.saved_tensors[:3], ctx.saved_tensors[3:]
    kept, inputs = saved[:KEPT], saved[KEPT:]
    d_results = [d_results[0], *d_results[KEPT:]]
    gradients = native_back(ctx.numbers, *arrays, inputs, kept, d_results)
    return None, None, None, None, None, gradients


native.register_autograd(gradient_of_native, setup_context=keep_for_native_back)
