"""From a trained `keras.layers.LSTM` to ours, and to a file that runs without this package.

    pip install -e ".[export]"
    python examples/deploy.py                  # digits.onnx, on JAX also: pip install jax2onnx
    python examples/deploy.py --plain-only     # a .keras file of Keras layers alone

Converts a trained LSTM without a change of its predictions, trains on with momentum, and
writes the result in two ways: as a model of Keras's layers alone, and as an ONNX file.
docs/deploy.md lists the other formats.
"""

import argparse

import keras
import numpy as np
from sklearn.datasets import load_digits

from keras_momentum_rnn import MomentumLSTM
from keras_momentum_rnn.convert import from_keras, to_keras


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4, help="of each training")
    parser.add_argument("--plain-only", action="store_true", help="write no ONNX file")
    options = parser.parse_args()
    x, y = load_digits(return_X_y=True)
    x = x.reshape(-1, 8, 8).astype("float32") / 16
    x_test = x[1400:]

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((None, 8)), keras.layers.LSTM(32), keras.layers.Dense(10)]
    )
    fit(model, 5e-3, x, y, options.epochs)
    print(f"LSTM {accuracy(model, x, y):.2f}")

    # With momentum=0 and step_size=1 our layer is the LSTM.
    same = from_keras(model, MomentumLSTM, momentum=0.0, step_size=1.0)
    print(f"Converted, predictions differ by {difference(same, model, x_test):.0e} at most.")

    # A constant input is multiplied by step_size / (1 - momentum), here by 1, so that the
    # trained weights still fit.
    ours = from_keras(model, MomentumLSTM, momentum=0.3, step_size=0.7)
    fit(ours, 1e-3, x, y, options.epochs)
    print(f"MomentumLSTM, trained on from there {accuracy(ours, x, y):.2f}")

    # The rule becomes a filter of Keras layers before a plain LSTM.
    plain = to_keras(ours, exact=True)
    print(f"Keras layers alone differ by {difference(plain, ours, x_test):.0e} at most.")
    plain.save("digits.keras")
    print("digits.keras needs Keras alone.")

    if not options.plain_only:
        ours.export("digits.onnx", format="onnx", verbose=False)
        print(
            f"digits.onnx differs by {np.abs(in_onnx(x_test) - logits(ours, x_test)).max():.0e}"
        )


def fit(model, learning_rate, x, y, epochs):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(learning_rate), loss, metrics=["accuracy"])
    model.fit(x[:1400], y[:1400], batch_size=64, epochs=epochs, verbose=0)


def accuracy(model, x, y):
    return model.evaluate(x[1400:], y[1400:], verbose=0)[1]


def logits(model, x):
    return model.predict(x, verbose=0)


def difference(model, other, x):
    return np.abs(logits(model, x) - logits(other, x)).max()


def in_onnx(x):
    """Return what the file gives, run without Keras."""
    import onnxruntime

    session = onnxruntime.InferenceSession("digits.onnx", providers=["CPUExecutionProvider"])
    (name,) = (given.name for given in session.get_inputs())
    return session.run(None, {name: x})[0]


if __name__ == "__main__":
    main()
