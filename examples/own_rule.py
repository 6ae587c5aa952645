"""Your own rule: what happens to the input term of a layer before its gates see it.

    python examples/own_rule.py

A rule turns u_t = W x_t + b into the drive of the gates. It runs in every layer that takes
`rule=`: RuleLSTM, RuleGRU, RuleRNN, RuleDTRIV.
"""

import argparse

import keras
import numpy as np

from keras_momentum_rnn import RuleLSTM, rules


@keras.saving.register_keras_serializable(package="my_project")
class Averaging(rules.Rule):
    """g_t = decay g_{t-1} + (1 - decay) u_t."""

    def __init__(self, decay=0.9):
        self.decay = decay  # saved with the model: it has the name of its argument

    def slots(self, width):
        """What the rule remembers: here one value for each of u_t's."""
        return {"g": width}

    def update(self, u, slots):
        """One time step: return the drive, and the slots for the next step."""
        (g,) = slots
        g = self.decay * g + (1 - self.decay) * u
        return g, [g]


@keras.saving.register_keras_serializable(package="my_project")
class Warming(rules.LinearRule):
    """v_t = mu_t v_{t-1} + u_t with mu_t = largest t / (t + 10): fast kernels run it, too."""

    counts = True  # t is the number of the step, 0 at first

    def __init__(self, largest=0.9):
        self.largest = largest

    def coefficients(self, t):
        return self.largest * t / (t + 10.0), 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    epochs = parser.parse_args().epochs

    # Check the equation: the drive of a constant input of 1.
    rule, slots, drive = Averaging(0.8), [np.zeros((1, 1))], []
    for _ in range(3):
        g, slots = rule.update(np.ones((1, 1)), slots)
        drive.append(g.item())
    np.testing.assert_allclose(drive, 1 - 0.8 ** np.arange(1, 4))
    print(f"Drive of a constant input of 1: {np.round(drive, 3)}")

    # Is the mean of a noisy sequence above 0?
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 40, 2)).astype("float32")
    y = (x[..., 0].mean(axis=1) > 0).astype("float32")
    models = {}
    for name, rule in {
        "Identity": rules.Identity(),  # a plain LSTM
        "Averaging": Averaging(0.8),
        "Warming": Warming(),
    }.items():
        keras.utils.set_random_seed(0)
        models[name] = model = keras.Sequential(
            [
                keras.Input((None, 2)),
                RuleLSTM(16, rule=rule),
                keras.layers.Dense(1, activation="sigmoid"),
            ]
        )
        optimizer = keras.optimizers.Adam(5e-3, clipnorm=1.0)
        model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"])
        model.fit(x[:800], y[:800], epochs=epochs, verbose=0)
        accuracy = model.evaluate(x[800:], y[800:], verbose=0)[1]
        path = model.layers[0].plan().path
        print(f"{name:9} test accuracy {accuracy:.2f}; runs on the path `{path}`")

    models["Averaging"].save("averaging.keras")
    loaded = keras.models.load_model("averaging.keras")
    expected = models["Averaging"].predict(x[800:], verbose=0)
    np.testing.assert_allclose(loaded.predict(x[800:], verbose=0), expected, atol=1e-5)
    print(f"averaging.keras, loaded again, has decay={loaded.layers[0].rule.decay}")


if __name__ == "__main__":
    main()
