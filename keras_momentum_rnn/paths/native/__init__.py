"""Rule and recurrence in one loop on the CPU, compiled by Numba, with a gradient by hand.

    run.py          a `Sequence` to arrays, and back; the equations for second derivatives
    on_torch.py     ... the call on each backend
    on_jax.py
    on_tensorflow.py
    kernel.py       forward and back on NumPy arrays: layouts, threads
    lstm.py         the loops over time
    rules.py, functions.py   one step of a rule; sigmoid and tanh
    products.py, vectors.py  products in tiles; vectors of 16 numbers

Nothing here is imported before a plan takes the path "native" for the first time, except
`ready.py`, which says whether it can.
"""
