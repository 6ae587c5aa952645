"""Gradient descent with momentum that may change at every update, and its schedules."""

from keras_momentum_rnn.optimizers import schedules
from keras_momentum_rnn.optimizers.momentum_sgd import MomentumSGD

__all__ = ["MomentumSGD", "schedules"]
