"""The recurrences that the kernel knows, by their names in `paths.registry`.

A new one is loops over time, as those of `loops` and `nested`, and an entry here.
"""

from dataclasses import dataclass

from keras_momentum_rnn.paths.native import loops, nested
from keras_momentum_rnn.paths.native.cells import ELMAN, GRU, LSTM, MODRELU
from keras_momentum_rnn.paths.native.drive import Weights
from keras_momentum_rnn.paths.native.nested import GRU_INSIDE, LSTM_INSIDE, NestedWeights


@dataclass(frozen=True)
class Recurrence:
    """What is kept of a recurrence, and its weights. Widths are multiples of that of h.

    Attributes:
        code: number by which the loops know it.
        gates: the width of the drive.
        kept: the width of what is kept of a step.
        memories: how many states there are beside h, each as wide.
        inner: the width of the drive of a nested memory, or 0.
        weights: class of the named weights, matrices and biases in turn, as loops take them.
        loops: module with the functions `forward` and `backward`.
    """

    code: int
    gates: int
    kept: int
    memories: int = 0
    inner: int = 0
    weights: type = Weights
    loops: object = loops

    @property
    def own_states(self):
        """The number of its states, h first."""
        return 1 + self.memories


RECURRENCES = {
    "lstm": Recurrence(LSTM, gates=4, kept=4, memories=1),
    "gru": Recurrence(GRU, gates=3, kept=4),
    "elman": Recurrence(ELMAN, gates=1, kept=1),
    "modrelu": Recurrence(MODRELU, gates=1, kept=1),
    "nested_gru": Recurrence(GRU_INSIDE, 4, 8, 1, 3, NestedWeights, nested),
    "nested_lstm": Recurrence(LSTM_INSIDE, 4, 8, 2, 4, NestedWeights, nested),
}
