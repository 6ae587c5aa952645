"""The loop over steps as TorchScript, for files of any length.

A trace writes down what ran. A loop in Python leaves as many steps in the file as the example
has; a scripted loop stays a loop, in ONNX and OpenVINO too. So one step is traced, and a
scripted loop runs it.
"""

import keras
import torch
from keras import ops

from keras_momentum_rnn.exports import outside_of_the_trace


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
    # Outside, since traces do not nest.
    step = outside_of_the_trace(lambda: traced_step(cell, dtypes, x.dtype, mask is not None))
    outputs, packed = loop_over(step)(columns, packed)
    final = torch.split(packed, cell.state_size, dim=1)
    final = [state.to(first.dtype) for state, first in zip(final, states)]
    return outputs.to(states[0].dtype), final


def loop_over(step):
    """Return a scripted loop of a traced step, a function (columns, states) -> (h, states)."""

    def loop(columns: torch.Tensor, states: torch.Tensor):
        outputs = []
        for t in range(columns.size(1)):
            h, states = step(columns[:, t], states)
            outputs.append(h)
        return torch.stack(outputs, 1), states

    return torch.jit.script(loop)


def traced_step(cell, dtypes, x_dtype, masked):
    """Return a traced step of a cell, whose weights are constants.

    It is a function (columns, states) -> (h, states).

    Args:
        cell: a `RuleCell`.
        dtypes: list of the dtypes of its states.
        x_dtype: dtype of the input.
        masked: bool, whether the last column is the mask.
    """
    weights = [(v, v.value.detach()) for v in cell.variables]
    with torch.no_grad(), keras.StatelessScope(state_mapping=weights):
        step = cell.step_from_input(training=False)

        def packed_step(columns, packed):
            x = columns[:, :-1] if masked else columns
            states = torch.split(packed, cell.state_size, dim=1)
            states = [state.to(dtype) for state, dtype in zip(states, dtypes)]
            new = torch.cat([s.to(packed.dtype) for s in step(x.to(x_dtype), states)], dim=1)
            new = torch.where(columns[:, -1:] > 0, new, packed) if masked else new
            return new[:, : cell.state_size[0]], new

        width = cell.kernel.shape[0] + masked
        wide = getattr(torch, cell.slot_dtype)
        device = weights[0][1].device
        example = [
            torch.zeros(2, size, dtype=wide, device=device)
            for size in (width, sum(cell.state_size))
        ]
        return torch.jit.trace(packed_step, tuple(example), check_trace=False)
