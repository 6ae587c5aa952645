"""Processes that train one model together: PyTorch has one for each device."""

import dataclasses

from papers.tasks.task import Batches


@dataclasses.dataclass(frozen=True)
class Process:
    """One of the processes that train a model together, alone by default.

    All hold the same weights, and each computes the gradients of its part of every batch. Only
    the first process reads and writes files, and decides what is done next.

    Attributes:
        number: int, counted from 0.
        count: int, how many there are.
    """

    number: int = 0
    count: int = 1

    @property
    def first(self):
        return self.number == 0

    def from_first(self, value):
        """Return the value of the first process. All processes must call this together."""
        if self.count == 1:
            return value
        import torch.distributed

        values = [value]
        torch.distributed.broadcast_object_list(values)
        return values[0]

    def own(self, task):
        """Return a task whose batches are this process's parts of those of `task`."""
        if self.count == 1:
            return task
        splits = ("train", "validation", "test")
        return dataclasses.replace(
            task, **{name: OwnPart(getattr(task, name), self) for name in splits}
        )


ALONE = Process()


@dataclasses.dataclass(frozen=True)
class OwnPart:
    """One process's part of the batches of a split of a task."""

    whole: object
    process: Process

    def __len__(self):
        return len(self.whole)

    def batches(self, batch_size, **order):
        """Return this process's part of the `Batches` that all processes share.

        Args:
            batch_size: int, of the whole batch.
            **order: seed and epoch, as of the whole split.
        """
        shared = self.whole.batches(batch_size, **order)
        number, count = self.process.number, self.process.count

        def batch(epoch, i):
            arrays = shared.batch(epoch, i)
            size = len(arrays[0]) // count
            return tuple(array[number * size : (number + 1) * size] for array in arrays)

        return Batches(shared.count, batch, shared.first_epoch, shared.rate)
