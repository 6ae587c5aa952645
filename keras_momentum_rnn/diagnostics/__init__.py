"""What happens in a recurrent layer: gradients by h, states over time, learned time scales."""

from keras_momentum_rnn.diagnostics.gradients import gradient_norms
from keras_momentum_rnn.diagnostics.plots import (
    plot_gradient_norms,
    plot_memory_map,
    plot_time_scales,
)
from keras_momentum_rnn.diagnostics.states import memories, memory_map, pace, state_names
from keras_momentum_rnn.diagnostics.time_scales import TimeScales, time_scales

__all__ = [
    "TimeScales",
    "gradient_norms",
    "memories",
    "memory_map",
    "pace",
    "plot_gradient_norms",
    "plot_memory_map",
    "plot_time_scales",
    "state_names",
    "time_scales",
]
