"""A cell that Keras does not have joins in one class and one layer: an sLSTM."""

import keras
import numpy as np
import pytest
from harness import array, assert_close, normal, randomise, run
from keras import ops
from masks import MASKS
from reference import NUMBERS, rule_step

import keras_momentum_rnn as kmr
from keras_momentum_rnn import convert, rules
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.recurrent import RuleLayer

register = keras.saving.register_keras_serializable(package="tests")
TIME, FEATURES, UNITS = 9, 2, 3


@register
class SLSTMCell(RuleCell, keras.layers.Layer):
    """The sLSTM of Beck et al. (2024), "xLSTM", whose input and forget gates are exponential.

    i, f, z, o = split(drive + h U);  m' = max(f + m, i)
    c' = exp(f + m - m') c + exp(i - m') tanh(z);  n' = exp(f + m - m') n + exp(i - m')
    h' = sigmoid(o) c' / n'
    """

    gates = 4
    extends_keras_cell = False

    def own_states(self):
        return [self.units] * 4  # h, c, n, m

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
            h, c, n, m = states
            i, f, z, o = ops.split(drive + product(h), 4, axis=-1)
            new_m = ops.maximum(f + m, i)
            kept, new = ops.exp(f + m - new_m), ops.exp(i - new_m)
            c, n = kept * c + new * ops.tanh(z), kept * n + new
            return [ops.sigmoid(o) * c / n, c, n, new_m]

        return step


@register
class SLSTM(RuleLayer):
    """The layer of `SLSTMCell`."""

    cell_class = SLSTMCell
    needs_rule = True


def layer_of(rule, **options):
    layer = SLSTM(UNITS, rule=getattr(rules, rule)(**NUMBERS[rule]), **options)
    layer.build((2, TIME, FEATURES))
    randomise(layer, np.random.default_rng(0))
    return layer


def by_numpy(layer, rule, x, mask=None):
    """h at all times, from the equations, in float64."""
    kernel, bias, recurrent = (
        array(w).astype("float64")
        for w in (layer.cell.kernel, layer.cell.bias, layer.cell.recurrent_kernel)
    )
    h, c, n, m = np.zeros((4, len(x), UNITS))
    slots = [np.zeros((len(x), s)) for s in layer.state_size[4:]]
    outputs = []
    for t in range(TIME):
        drive, new_slots = rule_step(rule, NUMBERS[rule], x[:, t] @ kernel + bias, slots)
        i, f, z, o = np.split(drive + h @ recurrent, 4, axis=1)
        new_m = np.maximum(f + m, i)
        kept, new = np.exp(f + m - new_m), np.exp(i - new_m)
        new_c, new_n = kept * c + new * np.tanh(z), kept * n + new
        states = [new_c / new_n / (1 + np.exp(-o)), new_c, new_n, new_m, *new_slots]
        held = np.ones((len(x), 1), "bool") if mask is None else mask[:, t, None]
        states = [np.where(held, a, b) for a, b in zip(states, [h, c, n, m, *slots])]
        h, c, n, m, *slots = states
        outputs.append(h)
    return np.stack(outputs, axis=1)


@pytest.mark.parametrize("mask", [None, "right", "dead_row"])
@pytest.mark.parametrize("rule", ["HeavyBall", "NAG", "Adam"])
def test_it_equals_its_equations(rule, mask):
    layer = layer_of(rule, return_sequences=True, zero_output_for_mask=True)
    x = normal(np.random.default_rng(1), 3, TIME, FEATURES)
    mask = None if mask is None else MASKS[mask](3, TIME)
    expected = by_numpy(layer, rule, x, mask)
    if mask is not None:
        expected = np.where(mask[..., None], expected, 0)
    assert layer.plan().path == ("step" if rule == "Adam" else "filter")
    assert_close(run(layer, x, mask=mask)[0], expected, 1e-5)


def test_it_goes_where_recurrent_layers_go(tmp_path):
    x, y = normal(np.random.default_rng(1), 8, TIME, FEATURES), np.zeros((8, 2))
    model = keras.Sequential(
        [
            keras.Input((None, FEATURES)),
            keras.layers.Bidirectional(
                SLSTM(UNITS, rule=rules.NAG(), return_sequences=True, name="first")
            ),
            keras.layers.RNN(SLSTMCell(UNITS, rule=rules.Adam())),
            keras.layers.Dense(2),
        ]
    )
    model.compile("adam", "mse")
    model.fit(x, y, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_close(loaded.predict(x, verbose=0), model.predict(x, verbose=0), 1e-6)


def test_its_states_go_in_and_out():
    layer = layer_of("NAG", return_state=True)
    x = normal(np.random.default_rng(1), 2, TIME, FEATURES)
    whole = run(layer, x)
    _, *states = run(layer, x[:, :4])
    assert [s.shape[1] for s in states] == [3, 3, 3, 3, 12, 1]
    for one, other in zip(run(layer, x[:, 4:], initial_state=states), whole):
        assert_close(one, other, 1e-5)


class HalvedCell(kmr.cells.RuleRNNCell):
    """An Elman cell whose new h is half as long."""

    def recurrence(self, training=False, weights=None):
        step = super().recurrence(training, weights)
        return lambda drive, states: [0.5 * h for h in step(drive, states)]


class LimitedCell(kmr.cells.RuleRNNCell):
    """An Elman cell whose drive ends at 0.1."""

    def apply_rule(self, u, slots):
        drive, slots = super().apply_rule(u, slots)
        return ops.minimum(drive, 0.1), slots


class MaskedCell(kmr.cells.RuleRNNCell):
    """An Elman cell that reads half of h."""

    def recurrent_masks(self, training):
        return ops.full((1, self.units), 0.5)


@pytest.mark.parametrize("of_user", [HalvedCell, LimitedCell, MaskedCell])
def test_a_step_that_is_overridden_runs(of_user):
    class Layer(kmr.RuleRNN):
        cell_class = of_user

    rng = np.random.default_rng(0)
    x = normal(rng, 2, TIME, FEATURES)
    layer = Layer(UNITS, rule=rules.HeavyBall())
    layer.build(x.shape)
    randomise(layer, rng)
    cell = of_user(UNITS, rule=rules.HeavyBall())
    in_steps = keras.layers.RNN(cell)
    in_steps.build(x.shape)
    cell.set_weights(layer.cell.get_weights())
    for training in (False, True):
        assert_close(array(layer(x, training=training)), array(in_steps(x)))
    assert layer.plan(training=True).path in ("step", "filter")
    # Keras's layer would run the step that is overridden.
    with pytest.raises(ValueError, match="no Keras counterpart"):
        convert.to_keras(layer)


def test_a_cell_with_a_call_of_its_own_is_refused():
    class OfUser(kmr.cells.RuleRNNCell):
        def call(self, inputs, states, training=False):
            return super().call(2 * inputs, states, training)

    class Layer(kmr.RuleRNN):
        cell_class = OfUser

    with pytest.raises(TypeError, match=r"does not run the `call`.*OfUser"):
        Layer(UNITS, rule=rules.HeavyBall())
    looped = type("Looped", (kmr.MomentumLSTM,), {"inner_loop": lambda *_: None})
    with pytest.raises(TypeError, match="Looped does not run `inner_loop`"):
        looped(UNITS)


def test_a_subclass_may_write_its_arguments_as_it_likes():
    class OfUser(kmr.cells.MomentumLSTMCell):
        def __init__(self, units, extra=1, name=None, *, dropout=0.5, **kwargs):
            super().__init__(units, name=name, dropout=dropout, **kwargs)
            self.extra = extra

        def get_config(self):
            return {**super().get_config(), "extra": self.extra}

    class Layer(kmr.MomentumLSTM):
        cell_class = OfUser

    class Below(Layer):
        units = property(lambda self: "of the user")

    layer = Layer(UNITS, extra=3, name="mine")
    assert type("Last", (Below,), {})(UNITS).units == "of the user"
    for same in (layer, Layer.from_config(layer.get_config())):
        assert (same.extra, same.dropout, same.name) == (3, 0.5, "mine")


def test_masks_that_another_thread_took_are_missed():
    layer = kmr.MomentumLSTM(UNITS, dropout=0.5, recurrent_dropout=0.5, use_cudnn=False)
    layer.build((None, TIME, FEATURES))
    layer.cell.reset_dropout()
    for read in (layer.cell.projection, layer.cell.recurrent_product):
        with pytest.raises(RuntimeError, match="one thread at a time"):
            read(training=True)
