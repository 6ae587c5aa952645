"""Momentum that may change at every update, its schedules, and Hessian-free optimisation."""

from keras_momentum_rnn.optimizers import schedules
from keras_momentum_rnn.optimizers.hessian_free import HessianFree
from keras_momentum_rnn.optimizers.hessian_free_model import HessianFreeModel
from keras_momentum_rnn.optimizers.momentum_sgd import MomentumSGD

__all__ = ["HessianFree", "HessianFreeModel", "MomentumSGD", "schedules"]
