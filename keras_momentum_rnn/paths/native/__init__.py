"""Rule and recurrence in one loop on the CPU, compiled by Numba, with a gradient by hand.

    runtime.py       whether it can run here; its compiled code, threads and memory
    run.py           a `Sequence`, and the equations for second derivatives
    torch_call.py, jax_call.py, tensorflow_call.py    the call on each backend
    kernel.py        forward and back on NumPy arrays; the recurrences, samples over threads
    drive.py         how memory is laid out, and what the loops share: the rule, x and h
    loops.py         the loops over time
    nested.py        the same of nested cells
    equations.py     one step of a rule and of a cell, and its way back
    simd.py          the vectors and products that they are made of
    subnormals.py    numbers below 1.2e-38, which would take ten times as long

Nothing but `runtime.py` is imported before a layer runs on the path "native".
"""
