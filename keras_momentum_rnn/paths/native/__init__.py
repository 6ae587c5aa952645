"""Rule and recurrence in one loop on the CPU, compiled by Numba, with a gradient by hand.

    ready.py                 whether it can run here
    stale_code.py            compiled code of other versions, on the disk
    run.py                   a `Sequence`, and the equations for second derivatives
    torch_call.py, jax_call.py, xla_ffi.py, tensorflow_call.py    the call on each backend
    kernel.py, threads.py    forward and back on NumPy arrays, samples over threads
    recurrences.py           the recurrences: their weights, states, and what is kept of them
    loops.py, nested.py      the loops over time, of plain and of nested cells
    drive.py                 what they share: the rule, and the sides of x and h
    cells.py, rules.py       one step of a cell and of a rule, and its way back
    products.py, functions.py, memory.py, vectors.py, padding.py    what they are made of

Nothing but `ready.py` is imported before a layer runs on the path "native".
"""
