"""Run a sequence on the path that the plan chose."""

from keras import ops

from keras_momentum_rnn.paths import filter, fused, loop
from keras_momentum_rnn.paths.kernels import kernel_of
from keras_momentum_rnn.paths.plan import device


def run(plan, cell, kernels, x, states, training, mask, unroll, all_outputs):
    """Run a sequence.

    Args:
        plan: a `Plan`.
        cell: a cell with a rule.
        kernels: the stock layers built for it, of `kernels_for`.
        x: tensor `(batch, time, features)`.
        states: list of the initial states, slots included.
        training: bool, whether dropout acts.
        mask, unroll, all_outputs: as of `loop.run`.

    Returns:
        The first state at all times, `(batch, time, size)`, and the final states.
    """
    options = {
        "mask": mask,
        "unroll": unroll,
        "all_outputs": all_outputs,
        "recompute": cell.recomputes and device() == "cpu",
    }
    if plan.path == "step" and loop.hoists(cell):
        u = cell.projection(training)(ops.swapaxes(x, 0, 1))
        return loop.run(cell.driven_stepper(training), ops.swapaxes(u, 0, 1), states, **options)
    if plan.path == "step":
        return loop.run(cell.stepper(training), x, states, **options)
    if plan.path == "filter":
        return filter.run(cell, x, states, training, **options)
    if plan.path == "loop":
        from keras_momentum_rnn.paths import torch_loop

        return torch_loop.run(cell, x, states, mask, training)
    run_fused = {"fused": fused.run, "drive": fused.run_drive}[plan.path]
    return run_fused(cell, kernel_of(cell, kernels), x, states, mask, training)
