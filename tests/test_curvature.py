"""Products with the curvature are those of the explicit J'HJ, J by complex steps in NumPy."""

import keras
import numpy as np
import pytest
import reference
from harness import array, named_weights, normal, randomise
from keras import ops

from keras_momentum_rnn import DTRIV, AdamLSTM, MomentumRNN
from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel

SAMPLES, TIME, FEATURES, UNITS, CLASSES = 5, 6, 3, 3, 4
LOGITS = keras.losses.CategoricalCrossentropy(from_logits=True)


def dense_net(inputs):
    h = keras.layers.Dense(UNITS, "tanh")(inputs)
    return keras.layers.Dense(UNITS, "sigmoid")(h)


NETS = {
    "dense": (dense_net, None),
    "SimpleRNN": (keras.layers.SimpleRNN, (reference.Elman(), "Identity")),
    "MomentumRNN": (MomentumRNN, (reference.Elman(), "HeavyBall")),
    "AdamLSTM": (AdamLSTM, (reference.LSTM(), "Adam")),
}


class Case:
    """A net with random weights, and its equations in NumPy."""

    def __init__(self, name, mask=None, **arguments):
        layer, self.equations = NETS[name]
        self.mask = mask
        shape = (FEATURES,) if self.equations is None else (TIME, FEATURES)
        inputs = keras.Input(shape)
        if self.equations is None:
            self.layer, hidden = None, dense_net(inputs)
        else:
            numbers = reference.NUMBERS[self.equations[1]]
            self.layer = layer(UNITS, return_sequences=mask is not None, **numbers)
            masked = inputs if mask is None else keras.layers.Masking()(inputs)
            hidden = self.layer(masked)
        outputs = keras.layers.Dense(CLASSES, **arguments)(hidden)
        self.model = HessianFreeModel(inputs, outputs)
        rng = np.random.default_rng(5)
        randomise(self.model, rng, scale=0.7)
        self.model.compile(HessianFree(), LOGITS)
        self.x = normal(rng, SAMPLES, *shape)
        if mask is not None:
            self.x = np.where(mask[..., None], self.x, 0).astype("float32")
        places = (SAMPLES,) if mask is None else (SAMPLES, TIME)
        self.y = np.eye(CLASSES, dtype="float32")[rng.integers(0, CLASSES, places)]

    def logits(self, vector):
        """Return the outputs in NumPy, for a flat vector of weights."""
        shapes = [tuple(w.shape) for w in self.model.trainable_variables]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(vector, ends[:-1])
        *inner, kernel, bias = (part.reshape(s) for part, s in zip(parts, shapes))
        if self.equations is None:
            h = np.tanh(self.x @ inner[0] + inner[1])
            return reference.sigmoid(h @ inner[2] + inner[3]) @ kernel + bias
        cell, rule = self.equations
        weights = dict(zip(named_weights(self.layer), inner))
        numbers = reference.NUMBERS[rule]
        h, _ = reference.run(cell, rule, numbers, weights, self.x, mask=self.mask)
        return (h if self.mask is not None else h[:, -1]) @ kernel + bias

    def curvature(self, weights=None, samples=SAMPLES):
        """Return J'HJ of the mean cross-entropy, J by complex steps."""
        w = np.concatenate([array(v).ravel() for v in self.model.trainable_variables])
        w = w.astype("float64")
        z = self.logits(w)[:samples].reshape(-1, CLASSES)
        jacobian = np.stack(
            [
                self.logits(w + 1e-30j * direction)[:samples].imag.ravel() / 1e-30
                for direction in np.eye(w.size)
            ],
            axis=1,
        )
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        share = np.full(len(z), 1 / len(z)) if weights is None else weights.ravel()
        blocks = share[:, None, None] * (
            np.eye(CLASSES) * p[:, None] - p[:, :, None] * p[:, None]
        )
        hessian = np.zeros((z.size, z.size))
        for i, block in enumerate(blocks):
            part = slice(i * CLASSES, (i + 1) * CLASSES)
            hessian[part, part] = block
        return jacobian.T @ hessian @ jacobian


def check_product(case, expected, sample_weight=None):
    quadratic = case.model.quadratic(case.x, case.y, sample_weight)
    v = normal(np.random.default_rng(6), len(expected))
    actual = array(ops.stop_gradient(quadratic.product(ops.convert_to_tensor(v))))
    np.testing.assert_allclose(
        actual, expected @ v, rtol=0, atol=5e-6 * np.abs(expected @ v).max()
    )


@pytest.mark.parametrize("name", NETS)
def test_products_are_those_of_the_explicit_matrix(name):
    case = Case(name)
    expected = case.curvature()
    # It has a part of every weight, and none but small negative eigenvalues.
    assert np.abs(expected).max(axis=1).min() > 1e-7
    assert np.linalg.eigvalsh(expected).min() > -1e-9
    check_product(case, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_products_have_masks_and_sample_weights(weighted):
    lengths = np.array([TIME, 2, 4, TIME, 1])
    case = Case("SimpleRNN", mask=np.arange(TIME) < lengths[:, None])
    share, given = case.mask / case.mask.sum(), None
    if weighted:
        given = np.random.default_rng(7).uniform(0.1, 2, case.mask.shape).astype("float32")
        share = share * given
    check_product(case, case.curvature(share), given)
    if weighted:  # Keras multiplies weights by a mask in place on PyTorch
        tensor = ops.convert_to_tensor(given.copy())
        case.model.quadratic(case.x, case.y, tensor)
        np.testing.assert_array_equal(array(tensor), given)


def test_the_curvature_is_that_of_the_first_samples():
    case = Case("dense")
    case.model.compile(HessianFree(curvature_fraction=0.5), LOGITS)
    check_product(case, case.curvature(samples=2))
    case.model.compile(HessianFree(curvature_fraction=0.58), LOGITS)
    check_product(case, case.curvature(samples=3))  # 0.58 of 5 is nearer to 3
    case.model.compile(HessianFree(curvature_fraction=0.05), LOGITS)
    check_product(case, case.curvature(samples=1))  # of none, nothing could be trained
    case.model.compile(HessianFree(curvature_fraction=0.5), LOGITS)
    whole = Case("dense").model.quadratic(case.x, case.y)
    part = case.model.quadratic(case.x, case.y)
    np.testing.assert_allclose(array(part.gradient), array(whole.gradient), atol=1e-6)


def test_products_have_the_hessian_of_regularizers():
    case = Case("dense", kernel_regularizer=keras.regularizers.L1L2(0.3, 0.2))
    where = [w is case.model.layers[-1].kernel for w in case.model.trainable_variables]
    sizes = [int(np.prod(w.shape)) for w in case.model.trainable_variables]
    check_product(case, case.curvature() + np.diag(0.4 * np.repeat(where, sizes)))


def test_a_regularizer_that_reads_other_variables_has_its_hessian():
    products, x = [], normal(np.random.default_rng(11), SAMPLES, TIME, FEATURES)
    for regularizer in (None, keras.regularizers.L2(10.0)):
        keras.utils.set_random_seed(3)
        inputs = keras.Input((TIME, FEATURES))
        layer = DTRIV(UNITS, recurrent_regularizer=regularizer, recurrent_lr_multiplier=1.0)
        model = HessianFreeModel(inputs, layer(inputs))
        model.compile(HessianFree(), "mse")
        ones = {w.path: np.ones(w.shape, "float32") for w in model.trainable_variables}
        y = np.zeros((SAMPLES, UNITS), "float32")
        products.append(products_by_name(model, x, y, ones))
    without, with_it = ([*product.values()] for product in products)
    for a, b, weight in zip(without, with_it, layer.trainable_weights, strict=True):
        np.testing.assert_allclose(b - a, 20.0 * (weight is layer.cell.skew), atol=1e-4)


def test_products_of_several_outputs_add_up():
    inputs = keras.Input((FEATURES,))
    h = keras.layers.Dense(UNITS, "tanh")(inputs)
    heads = [keras.layers.Dense(n, name=f"head_{n}")(h) for n in (1, 2)]
    x, rng = normal(np.random.default_rng(8), 6, FEATURES), np.random.default_rng(9)
    y = [normal(rng, 6, n) for n in (1, 2)]
    models = [HessianFreeModel(inputs, heads)] + [HessianFreeModel(inputs, h) for h in heads]
    models[0].compile(HessianFree(), ["mse", "mse"], loss_weights=[0.5, 3.0])
    v = [normal(rng, *w.shape) for w in models[0].trainable_variables]
    named = dict(zip([w.path for w in models[0].trainable_variables], v))
    total = {}
    for model, target, weight in zip(models[1:], y, (0.5, 3.0)):
        model.compile(HessianFree(), "mse")
        for path, part in products_by_name(model, x, target, named).items():
            total[path] = total.get(path, 0) + weight * part
    for path, part in products_by_name(models[0], x, y, named).items():
        np.testing.assert_allclose(part, total[path], atol=1e-5)


def products_by_name(model, x, y, named):
    variables = model.trainable_variables
    flat = np.concatenate([named[w.path].ravel() for w in variables])
    product = array(
        ops.stop_gradient(model.quadratic(x, y).product(ops.convert_to_tensor(flat)))
    )
    ends = np.cumsum([int(np.prod(w.shape)) for w in variables])[:-1]
    return dict(zip([w.path for w in variables], np.split(product, ends)))


def test_a_loss_without_curvature_has_none():
    inputs = keras.Input((FEATURES,))
    model = HessianFreeModel(inputs, keras.layers.Dense(1)(inputs))
    model.compile(HessianFree(), "mae")
    x = normal(np.random.default_rng(10), 6, FEATURES)
    product = model.quadratic(x, x[:, :1]).product(ops.ones(FEATURES + 1))
    np.testing.assert_array_equal(array(product), np.zeros(FEATURES + 1))
