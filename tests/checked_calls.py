# pyright: standard
"""Calls that type checkers must accept, and after `# mistake` such as they must refuse.

`test_types.py` has mypy and pyright read this file. Nothing runs it.
"""

from typing import assert_type

import keras
import numpy as np

import keras_momentum_rnn
from keras_momentum_rnn import (
    DTRIV,
    LSTM,
    MCRM,
    SRLSTM,
    AdamGRU,
    AdamLSTM,
    MomentumLSTM,
    MomentumLSTMCell,
    RuleLSTM,
    RuleLSTMCell,
    convert,
    diagnostics,
    initializers,
    optimizers,
    rules,
    streaming,
    tuning,
)

x = np.zeros((2, 3, 4))

# Arguments of layers and cells.
MomentumLSTM(32, momentun=0.6)  # mistake
AdamLSTM(32, betta=3)  # mistake
MomentumLSTM("x")  # mistake
MomentumLSTM()  # mistake
MomentumLSTM(32, momentum="0.6")  # mistake
MomentumLSTM(32, use_cudnn="never")  # mistake
AdamGRU(32, beta=None)  # mistake
SRLSTM(32, formulation="realeased")  # mistake
SRLSTM(32, momentum=0.6)  # mistake
DTRIV(32, activation="tanh")  # mistake
RuleLSTM(32)  # mistake
RuleLSTM(32, rule="adam")  # mistake
MomentumLSTMCell(32, step_size="fast")  # mistake
MomentumLSTMCell(32, return_sequences=True)  # mistake
MomentumLSTM(32, "relu", return_sequences=True, momentum=0, name="rnn", dtype="float16")
MomentumLSTM(32, kernel_initializer=keras.initializers.GlorotUniform(seed=1), implementation=1)
AdamLSTM(units=32, recurrent_regularizer="l2", activation=keras.ops.tanh, input_shape=(None, 3))
SRLSTM(4, formulation="released", restart_period=10, use_cudnn=False, seed=3)
DTRIV(16, recurrent_initializer=initializers.CayleySkew, rebase_every=None)
MCRM(16, memory=keras.layers.GRUCell(16), rule=rules.Adam())
RuleLSTM(16, rule=rules.HeavyBall(momentum=0), recurrent_regularizer=keras.regularizers.L2(1))
keras_momentum_rnn.layers.NestedLSTM(4, zero_output_for_mask=True, trainable=False)
keras.layers.RNN(keras_momentum_rnn.cells.RuleGRUCell(4, rule=rules.NAG()))

# Attributes.
layer = MomentumLSTM(8)
layer.momentum.upper()  # mistake
layer.momentum = 0.3  # mistake
SRLSTM(8).restart_period.real.upper()  # mistake
assert_type(layer.momentum, float)
assert_type(layer.units, int)
assert_type(layer.use_bias, bool)
assert_type(layer.rule, rules.HeavyBall)
assert_type(layer.rule.step_size, float)
assert_type(layer.cell, MomentumLSTMCell)
assert_type(layer.cell.momentum, float)
assert_type(RuleLSTM(8, rule=rules.NAG()).cell, RuleLSTMCell)
assert_type(layer.plan(training=True).path, str)
assert_type(LSTM(8, return_sequences=True).plan(training=True).path, str)
convert.accelerate(LSTM(8), report=True)
convert.accelerate(LSTM(8), reports=True)  # mistake
y = layer(x)
z = layer(y, initial_state=[y, y], training=True)
keras.layers.Bidirectional(layer)
DTRIV(8).cell.recurrent_matrix()


# Rules, optimizers and functions.
class Fading(rules.LinearRule):
    counts = True

    def coefficients(self, t):
        return 1 / (t + 2), 1.0


RuleLSTM(3, rule=Fading())
rules.Adam(betas=0.9)  # mistake
rules.HeavyBall(momentum="large")  # mistake
optimizers.MomentumSGD(0.1, nesterov="yes")  # mistake
optimizers.HessianFree(cg_steps="many")  # mistake
optimizers.HessianFree(optimizers.schedules.SteppedMomentum(0.9), decay=0.9)
model = keras.Sequential([keras.Input((None, 4)), MomentumLSTM(4), keras.layers.Dense(1)])
schedule = optimizers.schedules.SteppedMomentum(0.99)
model.compile(optimizers.MomentumSGD(0.1, momentum=schedule), "mse")
convert.from_keras(model)  # mistake
convert.from_keras(model, MomentumLSTM, momentum=0.2).compile("adam")
convert.to_keras(model, exact=True).summary()
states = streaming.initial_states(streaming.step_model(model), batch_size=2)
streaming.initial_states(model, batchsize=2)  # mistake
print(diagnostics.memory_map(layer, x)["h"].shape)
diagnostics.gradient_norms(model, x)  # mistake
hypermodel = tuning.MomentumHyperModel((None, 3), head=2, layers=["LSTM", MomentumLSTM])
tuning.tune(hypermodel, x, x, strategy="quick", directory="search")  # mistake
tuning.tune(hypermodel, x, x, directory="search").best_model().summary()
