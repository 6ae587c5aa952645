"""Who picked up the remote? NAGLSTM beside LSTM on real sequences, in about a minute.

    python examples/quick_look.py

Ten people each picked up a Wii remote ten times. From the acceleration along one axis, at most
361 steps, a layer must recognise the person: PickupGestureWiimoteZ of the UCR archive, inside
the package aeon. 40 recordings train, 10 choose the epoch, 50 test. The set was chosen since it
shows a difference; papers/sequences has many. If you stop this, repeat it to resume.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

START = time.perf_counter()
# TensorFlow logs as it starts, and no variable turns all of it off.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
shown = os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
try:
    import keras
    from aeon.datasets import load_pickup_gesture_wiimoteZ
    from matplotlib.figure import Figure
    from sklearn.model_selection import train_test_split

    from keras_momentum_rnn import LSTM, NAGLSTM

    keras.utils.set_random_seed(0)  # imports TensorFlow on each backend, if it is there
finally:
    os.dup2(shown, 2)

# Layers, their options and learning rates. LSTM is Keras's, run on our kernel.
LAYERS = {"LSTM": (LSTM, {}, 0.004), "NAGLSTM": (NAGLSTM, {"step_size": 1.6}, 0.02)}
STEPS, MASKED, UPDATES = 361, -1e3, 10  # of an epoch, each with all recordings for training


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=12, help="at most")
    parser.add_argument("--output", type=Path, default=Path("runs/quick_look"))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    file, new = options.output / "results.json", options.output / "results.new"
    runs = json.loads(file.read_text()) if file.exists() else []
    shared = {"epochs": options.epochs, "backend": keras.config.backend()}
    wanted = [(name, seed) for seed in range(options.seeds) for name in LAYERS]
    say(f"Keras {keras.__version__} on {shared['backend']}: {len(wanted)} networks to train")
    data = recordings()
    for name, seed in wanted:
        run = {"layer": name, "seed": seed, **shared}
        if any(run.items() <= one.items() for one in runs):
            continue
        start = time.perf_counter()
        run["accuracy"] = trained(run, *data)
        run["seconds"] = round(time.perf_counter() - start, 1)
        runs.append(run)
        new.write_text(json.dumps(runs, indent=1))
        new.replace(file)  # whole or not at all
        say("{layer}, seed {seed}: {accuracy:.0%} of the test recordings".format(**run))
    report(options.output, [one for one in runs if shared.items() <= one.items()])


def say(text):
    print(f"{time.perf_counter() - START:4.0f} s  {text}", flush=True)


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
    layer, options, rate = LAYERS[run["layer"]]
    front = [keras.Input((STEPS, 1)), keras.layers.Masking(MASKED)]
    model = keras.Sequential([*front, layer(32, **options), keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(rate, global_clipnorm=1.0)
    model.compile(optimizer, loss, metrics=["accuracy"])
    best = keras.callbacks.EarlyStopping(patience=6, restore_best_weights=True)
    x, y = (np.concatenate([part] * UPDATES) for part in train)
    fit = {"validation_data": validation, "epochs": run["epochs"], "callbacks": [best]}
    model.fit(x, y, batch_size=len(train[0]), shuffle=False, verbose=0, **fit)
    return model.evaluate(*test, batch_size=len(test[0]), verbose=0)[1]


def report(folder, runs):
    """Write a report and a picture, and print what one saw."""
    figure, means = Figure(figsize=(8, 2.5), layout="constrained"), {}
    axes, lines = figure.subplots(), ["# Who picked up the remote?"]
    for name in LAYERS:
        scores = [run["accuracy"] for run in runs if run["layer"] == name]
        means[name] = f"{np.mean(scores):.0%}"
        lines.append(f"- {name}: {means[name]}; each seed {np.round(scores, 2).tolist()}")
        axes.barh(name, np.mean(scores), color="0.7")
        axes.plot(scores, [name] * len(scores), "o", color="0.2")
    found = "NAGLSTM recognises the person in {NAGLSTM} of the recordings, LSTM in {LSTM}"
    found = found.format(**means)
    axes.set(xlim=(0, 1), title=found, xlabel="test accuracy: mean, and each seed")
    figure.savefig(folder / "quick_look.png")
    lines += ["![Accuracy](quick_look.png)", f"{found}; chance is 10%.", ""]
    (folder / "report.md").write_text("\n\n".join(lines))
    say(f"Report and picture: {folder}/report.md\n\n{lines[-2]}")


if __name__ == "__main__":
    main()
