"""What goes on in a recurrent layer: gradients by h over time, and every state over time."""

from keras_momentum_rnn.diagnostics.gradients import gradient_norms
from keras_momentum_rnn.diagnostics.plots import plot_gradient_norms, plot_memory_map
from keras_momentum_rnn.diagnostics.states import memories, memory_map, pace, state_names

__all__ = [
    "gradient_norms",
    "memories",
    "memory_map",
    "pace",
    "plot_gradient_norms",
    "plot_memory_map",
    "state_names",
]
