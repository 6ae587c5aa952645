"""The loop over steps in a graph of `torch.export` whose length is open."""

import torch
from keras import ops


def run_steps_in_graph(cell, sequence, plan):
    """Run a sequence step by step in a loop of the graph.

    Args and returns: as of `steps.run_steps`.
    """
    x, first, mask = sequence.x, sequence.states, sequence.mask
    step = cell.step_from_input(sequence.training)
    outputs = x.new_zeros((*x.shape[:2], first[0].shape[1]), dtype=first[0].dtype)

    def body(time, outputs, *states):
        index = time.reshape(1)
        new = step(x.index_select(1, index)[:, 0], list(states))
        if mask is not None:
            held = mask.index_select(1, index)
            new = [ops.where(held, n, o) for n, o in zip(new, states)]
        outputs = outputs.index_copy(1, index, new[0].unsqueeze(1))
        return time + 1, outputs, *new

    # A tensor: behind another loop the size itself is lost in the condition.
    length = torch.full((), x.shape[1], dtype=torch.int64, device=x.device)

    def unfinished(time, *_):
        return time < length

    start = torch.zeros((), dtype=torch.int64, device=x.device)
    _, filled, *states = torch.while_loop(unfinished, body, (start, outputs, *first))
    # A sum has known sizes; the next loop cannot use those of what a loop returns.
    return outputs + filled, states
