# %% [markdown]
# # Your own rule, your own cell
#
# A [rule](../glossary.md#rule) replaces the input term `u_t = W x_t + b` of a layer by a
# [drive](../glossary.md#drive). A [cell](../glossary.md#cell) is one time step of a
# recurrence. Every rule works with every cell.
#
# To write a rule, implement `slots` (what it remembers) and `update` (one time step). Keep
# each argument of the constructor as an attribute of the same name; otherwise, implement
# `get_config` too.
#
# ## 1. A rule

# %%
import keras
import numpy as np
from keras_momentum_rnn import RuleLSTM, rules


@keras.saving.register_keras_serializable(package="my_project")
class Averaging(rules.Rule):
    """g_t = decay g_{t-1} + (1 - decay) u_t."""

    def __init__(self, decay=0.9):
        self.decay = decay

    def slots(self, width):
        return {"g": width}

    def update(self, u, slots):
        (g,) = slots
        g = self.decay * g + (1 - self.decay) * u
        return g, [g]


# %% [markdown]
# `width` is the width of the drive: 4 times the units for an LSTM, 3 times for a GRU. The
# layer carries the slot after its states h and c, keeps it unchanged at masked steps, and
# saves the rule with the model. `layer.plan()` says how the layer runs: here by plain steps.

# %%
layer = RuleLSTM(32, rule=Averaging(0.8))
x = np.random.default_rng(0).normal(size=(2, 10, 3)).astype("float32")
print(tuple(layer(x).shape))
print(layer.plan().path)

# %% [markdown]
# ## 2. Check it
#
# Write the equation once more in NumPy, and compare. Here we compare the drive for a
# constant input of 1:

# %%
rule, slots, drive = Averaging(0.8), [np.zeros((1, 1))], []
for _ in range(3):
    g, slots = rule.update(np.ones((1, 1)), slots)
    drive.append(g.item())
print(np.allclose(drive, 1 - 0.8 ** np.arange(1, 4)))

# %% [markdown]
# ## 3. Faster: a linear rule
#
# If the drive is `v_t = mu_t v_{t-1} + s u_t`, subclass `rules.LinearRule` and implement
# `coefficients`, which returns mu_t and s. Fast kernels then run your rule too.
# `rules.ScaledRule` is the same for rules like Adam and RMSProp, which divide by the root of
# a second moment. Both refuse an `update` of your own, which the kernels would not use.
# `HeavyBall` is a linear rule, and the average above is `HeavyBall(0.8, 0.2)`:

# %%
same = RuleLSTM(32, rule=rules.HeavyBall(momentum=0.8, step_size=0.2))
same.build(x.shape)
same.set_weights(layer.get_weights())
print(float(keras.ops.max(keras.ops.abs(same(x) - layer(x)))) < 1e-5)

# %% [markdown]
# ## 4. A rule that learns
#
# A rule may have weights: create them in a method `build(add_weight)`. This rule learns its
# momentum. The package has a more complete one, `rules.LearnedMomentum`
# ([does it help?](../learned_momentum.md)).


# %%
@keras.saving.register_keras_serializable(package="my_project")
class OwnMomentum(rules.HeavyBall):
    """Heavy ball whose momentum is a weight."""

    def build(self, add_weight):
        self.momentum = add_weight(shape=(), initializer="zeros", name="momentum")

    def get_config(self):
        return {"step_size": self.step_size}


model = keras.Sequential(
    [
        keras.Input((None, 3)),
        RuleLSTM(8, rule=OwnMomentum(step_size=0.6)),
        keras.layers.Dense(1),
    ]
)
model.compile("adam", "mse")
model.fit(x, x.mean(axis=(1, 2)), verbose=0)
print([weight.name for weight in model.layers[0].trainable_weights])

# %% [markdown]
# ## 5. A cell of your own
#
# Say how many gates the drive has, create the weights, and write one step. The example is
# the minimal gated unit of Zhou et al. (2016): an update gate f and a candidate state. As
# in Keras's GRU, f multiplies the recurrent product.

# %%
from keras import ops
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.recurrent import RuleLayer


@keras.saving.register_keras_serializable(package="my_project")
class MGUCell(RuleCell, keras.layers.Layer):
    """f = sigmoid(g_f + h U_f);  h' = (1 - f) h + f tanh(g_c + f (h U_c))."""

    gates = 2
    extends_keras_cell = False

    def own_states(self):
        return [self.units]  # h

    def build(self, input_shape):
        width = self.drive_width
        self.kernel = self.add_weight(shape=(input_shape[-1], width), name="kernel")
        self.bias = self.add_weight(shape=(width,), initializer="zeros", name="bias")
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, width), name="recurrent_kernel"
        )
        super().build(input_shape)

    def recurrence(self, training=False, weights=None):
        product = self.recurrent_product(training, weights)

        def step(drive, states):
            (h,) = states
            gate, candidate = ops.split(drive, 2, axis=-1)
            of_gate, of_candidate = ops.split(product(h), 2, axis=-1)
            f = ops.sigmoid(gate + of_gate)
            return [(1 - f) * h + f * ops.tanh(candidate + f * of_candidate)]

        return step


@keras.saving.register_keras_serializable(package="my_project")
class MGU(RuleLayer):
    """The layer of `MGUCell`."""

    cell_class = MGUCell
    needs_rule = True


# %% [markdown]
# It takes every rule, also your own, and works wherever a recurrent layer does:

# %%
model = keras.Sequential(
    [
        keras.Input((None, 3)),
        keras.layers.Bidirectional(MGU(8, rule=Averaging(0.5), return_sequences=True)),
        MGU(8, rule=rules.Adam()),
        keras.layers.Dense(1),
    ]
)
model.compile("adam", "mse")
model.fit(x, x.mean(axis=(1, 2)), verbose=0)
model.save("mgu.keras")
loaded = keras.models.load_model("mgu.keras")
print(np.allclose(loaded.predict(x, verbose=0), model.predict(x, verbose=0), atol=1e-5))

# %% [markdown]
# ## Where next?
#
# - [How it works](../explain/how_it_works.md) and [paths](../explain/paths.md)
# - To add a rule or a cell to the package itself: [What it costs to
#   add](../structure.md#what-it-costs-to-add)
