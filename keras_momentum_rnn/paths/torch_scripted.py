"""The loop over steps as TorchScript, for files of any length.

A trace writes down what ran. A loop in Python leaves as many steps in the file as the example
has; a scripted loop stays a loop, in ONNX and OpenVINO too. So one step is traced, and a
scripted loop runs it.
"""

import math

import keras
import torch
from keras import ops

from keras_momentum_rnn.exports import outside_of_the_trace, trace_may_train


def run_scripted_steps(cell, sequence, plan):
    """Run a sequence step by step in a loop that a trace keeps.

    Args and returns: as of `steps.run_steps`.
    """
    x, states, mask = sequence.x, sequence.states, sequence.mask
    # One tensor of all states: TorchScript's lists do not survive every converter.
    wide = cell.slot_dtype
    packed = torch.cat([ops.cast(state, wide) for state in states], dim=1)
    columns = ops.cast(x, wide)
    if mask is not None:
        columns = torch.cat([columns, ops.cast(mask, wide).unsqueeze(-1)], dim=-1)
    dtypes = [s.dtype for s in states]
    weights = trained_weights(cell)
    flat = torch.cat([packed.new_zeros(0), *(w.reshape(-1) for w in weights)])
    # Outside, since traces do not nest.
    step = outside_of_the_trace(
        lambda: traced_step(cell, dtypes, x.dtype, mask is not None, weights)
    )
    outputs, packed = loop_over(step)(columns, packed, flat)
    final = torch.split(packed, cell.state_size, dim=1)
    final = [state.to(first.dtype) for state, first in zip(final, states)]
    return outputs.to(states[0].dtype), final


def loop_over(step):
    """Return a scripted loop of a traced step: (columns, states, flat) -> (h, states)."""

    def loop(columns: torch.Tensor, states: torch.Tensor, weights: torch.Tensor):
        outputs = []
        for t in range(columns.size(1)):
            h, states = step(columns[:, t], states, weights)
            outputs.append(h)
        return torch.stack(outputs, 1), states

    return torch.jit.script(loop)


def trained_weights(cell):
    """Return the weights of a cell that a trace may train, and its `recurrent_weights`."""
    if not trace_may_train():
        return []
    made = [ops.convert_to_tensor(w) for w in cell.recurrent_weights() if w is not None]
    return [*(v.value for v in cell.weights), *made]


def traced_step(cell, dtypes, x_dtype, masked, weights):
    """Return a traced step of a cell, a function (columns, states, flat) -> (h, states).

    Args:
        cell: a `RuleCell`.
        dtypes: list of the dtypes of its states.
        x_dtype: dtype of the input.
        masked: bool, whether the last column is the mask.
        weights: list of `trained_weights`, which `flat` holds one after the other. If it is
            empty the weights are constants.
    """
    constants = [(v, v.value.detach()) for v in cell.variables]
    with torch.no_grad(), keras.StatelessScope(state_mapping=constants):
        constant_step = cell.step_from_input(training=False)
        present = [w is not None for w in cell.recurrent_weights()]
    # Read here, since a trace would make tensors of them.
    sizes = [math.prod(w.shape) for w in weights]
    shapes = [(tuple(w.shape), w.dtype) for w in weights]

    def step_of(flat):
        parts = zip(torch.split(flat, sizes), shapes)
        parts = iter([part.reshape(shape).to(dtype) for part, (shape, dtype) in parts])
        variables = [(v, next(parts)) for v in cell.weights]
        made = [next(parts) if there else None for there in present]

        def step(x, states):
            with keras.StatelessScope(state_mapping=[*constants, *variables]):
                u = cell.projection()(x)
                return cell.step_from_projection(weights=made)(u, states)

        return step

    def packed_step(columns, packed, flat):
        step = step_of(flat) if weights else constant_step
        x = columns[:, :-1] if masked else columns
        states = torch.split(packed, cell.state_size, dim=1)
        states = [state.to(dtype) for state, dtype in zip(states, dtypes)]
        new = torch.cat([s.to(packed.dtype) for s in step(x.to(x_dtype), states)], dim=1)
        new = torch.where(columns[:, -1:] > 0, new, packed) if masked else new
        return new[:, : cell.state_size[0]], new

    widths = cell.kernel.shape[0] + masked, sum(cell.state_size)
    options = {"dtype": getattr(torch, cell.slot_dtype), "device": constants[0][1].device}
    example = [torch.zeros(2, width, **options) for width in widths]
    flat = torch.zeros(sum(sizes), **options)
    with torch.no_grad(), keras.StatelessScope(state_mapping=constants):
        return torch.jit.trace(packed_step, (*example, flat), check_trace=False)
