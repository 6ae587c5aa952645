"""What happens in a recurrent layer: gradients by h, states over time, learned time scales."""

from keras_momentum_rnn.diagnostics.gradients import gradient_norms
from keras_momentum_rnn.diagnostics.states import memory_map, state_names
from keras_momentum_rnn.diagnostics.time_scales import time_scales

__all__ = ["gradient_norms", "memory_map", "state_names", "time_scales"]
