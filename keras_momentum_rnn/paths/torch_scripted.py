"""The loop over steps as TorchScript, for files of any length.

A trace writes down what ran. A loop in Python leaves as many steps in the file as the example
has; a scripted loop stays a loop, in ONNX and OpenVINO too. So one step is traced, and a
scripted loop runs it.
"""

from concurrent.futures import ThreadPoolExecutor

import keras
import torch
from keras import ops


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
    loop = _scripted(cell, [s.dtype for s in states], x.dtype, mask is not None)
    outputs, packed = loop(columns, packed)
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


def _scripted(cell, dtypes, x_dtype, masked):
    """Return the scripted loop of a cell.

    The step is traced in another thread: there no outer trace runs, so what is computed from
    weights alone, such as an orthogonal matrix, is a constant of the file.
    """
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(_traced_step, cell, dtypes, x_dtype, masked).result()
    return loop_over(step)


def _traced_step(cell, dtypes, x_dtype, masked):
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
