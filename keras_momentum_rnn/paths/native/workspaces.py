"""Memory of a call, used again by later ones.

The system hands out a large array page by page, which takes a fifth of a step of 784 time
steps. A workspace belongs to its call: its block goes back to the pool with the last array
that views it.
"""

import weakref

import numpy as np

# So many bytes lie in the pool at most.
MOST = 2**28
# Smaller blocks come from the allocator, which keeps them itself.
LEAST = 2**20

# Free blocks, flat float32 arrays by their ids. Each move is one operation of a dict, no lock:
# another thread could hold that at a fork.
_free = {}


class Workspace:
    """A block of the pool while it is used, as NumPy sees it."""

    def __init__(self, block, shape):
        self.__array_interface__ = {**block.__array_interface__, "shape": shape}
        weakref.finalize(self, give_back, block).atexit = False


def workspace(shape):
    """Return a float32 array, its numbers anything."""
    size = int(np.prod(shape))
    if 4 * size < LEAST:
        return np.empty(shape, np.float32)
    return np.asarray(Workspace(take(size), shape))


def take(size):
    """Return the smallest free block that holds so many numbers, or a new one."""
    for block in sorted(_free.copy().values(), key=len):
        fits = size <= len(block) <= 2 * size
        if fits and _free.pop(id(block), None) is not None:
            return block
    return np.empty(size, np.float32)


def give_back(block):
    """Keep a block; the oldest ones make room for it."""
    if block.nbytes > MOST:
        return
    others = list(_free.copy().items())
    held = block.nbytes + sum(other.nbytes for _, other in others)
    for key, other in others:
        if held <= MOST:
            break
        _free.pop(key, None)
        held -= other.nbytes
    _free[id(block)] = block
