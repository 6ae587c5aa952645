"""Who picked up the remote? NAGLSTM beside LSTM and GRU on real sequences, in two minutes.

    python examples/quick_look.py

Ten people each picked up a Wii remote ten times. From the acceleration along one axis, at most
361 steps, a layer must recognise the person: PickupGestureWiimoteZ of the UCR archive, inside
the package aeon. 40 recordings train, 10 choose the epoch, 50 test. The set was chosen because
it shows a difference; papers/sequences compares on many sets, and searches as there gave the
settings here. If you stop this, repeat the command to resume.
"""

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from aeon.classification.convolution_based import MiniRocketClassifier
from aeon.datasets import load_pickup_gesture_wiimoteZ
from matplotlib.figure import Figure
from sklearn.model_selection import train_test_split

from keras_momentum_rnn import NAGLSTM, RuleGRU, RuleLSTM, rules

# Layers of about 4,600 weights, and learning rates. LSTM and GRU run on our kernels, too.
LAYERS = {
    "NAGLSTM": (lambda: NAGLSTM(32, step_size=1.6), 0.02),
    "LSTM": (lambda: RuleLSTM(32, rule=rules.Identity()), 0.004),
    "GRU": (lambda: RuleGRU(36, rule=rules.Identity()), 0.0025),
}
STEPS, MASKED, UPDATES = 361, -1e3, 10  # of an epoch, each with all recordings for training


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=40, help="at most")
    parser.add_argument("--output", type=Path, default=Path("runs/quick_look"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    file, new = options.output / "results.json", options.output / "results.new"
    runs = json.loads(file.read_text()) if file.exists() else []
    shared = {"epochs": options.epochs, "backend": keras.config.backend()}
    wanted = [(name, seed) for name in LAYERS for seed in range(options.seeds)]
    data = recordings()
    for name, seed in [*wanted, ("MiniRocket", 0)]:
        run = {"layer": name, "seed": seed, **shared}
        if any(run.items() <= one.items() for one in runs):
            continue
        start = time.perf_counter()
        run["accuracy"] = trained(run, *data) if name in LAYERS else rocket(*data)
        run["seconds"] = round(time.perf_counter() - start, 1)
        runs.append(run)
        new.write_text(json.dumps(runs, indent=1))
        new.replace(file)  # whole or not at all
        print("{layer}, seed {seed}: accuracy {accuracy:.2f} in {seconds:.0f} s".format(**run))
    report(options.output, [one for one in runs if shared.items() <= one.items()])


def recordings():
    """Return (x, y) for training, validation and test, x standardised, padded and masked."""
    (x, y), (x_test, y_test) = map(load_pickup_gesture_wiimoteZ, ("train", "test"))
    x, x_val, y, y_val = train_test_split(x, y, test_size=10, stratify=y, random_state=0)
    known, parts = np.concatenate(x, axis=1), []
    for series, labels in ((x, y), (x_val, y_val), (x_test, y_test)):
        scaled = [(one.T - known.mean()) / known.std() for one in series]
        padded = keras.utils.pad_sequences(scaled, STEPS, "float32", "post", value=MASKED)
        parts.append((padded, np.array(labels, int) - 1))
    return parts


def trained(run, train, validation, test):
    """Return the test accuracy of a layer at the epoch that validation chose."""
    keras.utils.set_random_seed(run["seed"])
    new_layer, rate = LAYERS[run["layer"]]
    front = [keras.Input((STEPS, 1)), keras.layers.Masking(MASKED)]
    model = keras.Sequential([*front, new_layer(), keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, loss, metrics=["accuracy"])
    stop = keras.callbacks.EarlyStopping(patience=6, restore_best_weights=True)
    x, y = (np.concatenate([part] * UPDATES) for part in train)
    fit = {"validation_data": validation, "epochs": run["epochs"], "callbacks": [stop]}
    model.fit(x, y, batch_size=len(train[0]), shuffle=False, verbose=0, **fit)
    return model.evaluate(*test, batch_size=len(test[0]), verbose=0)[1]


def rocket(train, validation, test):
    """Return the test accuracy of MiniRocket, which is no recurrent network."""
    x, y = (np.concatenate(parts) for parts in zip(train, validation))
    series = [np.where(part == MASKED, 0, part).swapaxes(1, 2) for part in (x, test[0])]
    return MiniRocketClassifier(random_state=0).fit(series[0], y).score(series[1], test[1])


def report(folder, runs):
    """Write a report and a picture, and print what one saw."""
    figure, means = Figure(figsize=(8, 3), layout="constrained"), {}
    axes, lines = figure.subplots(), ["# Who picked up the remote?"]
    for name in ("MiniRocket", *reversed(LAYERS)):
        scores = [run["accuracy"] for run in runs if run["layer"] == name]
        means[name] = f"{np.mean(scores):.0%}"
        lines.insert(1, f"- {name}: {means[name]}; each seed {np.round(scores, 2).tolist()}")
        axes.barh(name, np.mean(scores), color="0.7")
        axes.plot(scores, [name] * len(scores), "o", color="0.2")
    found = f"NAGLSTM recognises the person in {means['NAGLSTM']} of the recordings, LSTM in "
    found += f"{means['LSTM']}, GRU in {means['GRU']}"
    axes.set(xlim=(0, 1), title=found, xlabel="test accuracy: mean, and each seed")
    figure.savefig(folder / "quick_look.png")
    lines += ["MiniRocket is no recurrent network.", "![Accuracy](quick_look.png)", found, ""]
    (folder / "report.md").write_text("\n\n".join(lines))
    print(f"\n{found}; chance is 10%.\nReport and picture: {folder}/report.md")


if __name__ == "__main__":
    main()
