"""Search over layers and their hyperparameters, on handwritten digits.

    python examples/tune.py
    python examples/tune.py --strategy bayesian --trials 40 --output runs/bayesian

The data are the 8x8 digits of scikit-learn, read row by row. The first trials give every layer
its defaults, so that none is left out; the others vary layer, width, learning rate and the
layer's own hyperparameters together. Validation data choose the winner, and only the winner
sees the test data. If you stop it, repeat the command to resume.
"""

import argparse

import keras
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from keras_momentum_rnn.tuning import MomentumHyperModel, tune

LAYERS = ["LSTM", "GRU", "MomentumLSTM", "NAGLSTM", "AdamLSTM", "RMSPropLSTM", "MomentumRNN"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=LAYERS)
    parser.add_argument("--strategy", choices=["random", "bayesian"], default="random")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=8, help="the most for a trial")
    parser.add_argument("--output", default="runs/tune")
    options = parser.parse_args()

    x, y = load_digits(return_X_y=True)
    x = x.reshape(-1, 8, 8).astype("float32") / 16
    x, x_test, y, y_test = train_test_split(x, y, test_size=0.2, stratify=y, random_state=0)
    # Whole batches: JAX and TensorFlow would compile again for a part of one.
    train, validation = (x[:1152], y[:1152]), (x[-256:], y[-256:])

    hypermodel = MomentumHyperModel(
        x.shape[1:], head=10, layers=options.layers, units=[16, 32], learning_rate=(1e-3, 2e-2)
    )
    results = tune(
        hypermodel,
        *train,
        validation_data=validation,
        directory=options.output,
        strategy=options.strategy,
        max_trials=max(options.trials, len(options.layers)),
        epochs=options.epochs,
        callbacks=[keras.callbacks.EarlyStopping("val_accuracy", patience=2)],
        batch_size=64,
        first=[{"layer": name, "units": 32, "learning_rate": 5e-3} for name in options.layers],
    )
    print(results.table().to_string())
    found = results.best_model().predict(x_test, verbose=0).argmax(axis=-1)
    print(results.best.line())
    print(f"Correct on {len(y_test)} test images: {(found == y_test).mean():.1%}")
    print(f"All trials and best.keras are in {options.output}")


if __name__ == "__main__":
    main()
