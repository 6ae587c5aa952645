"""Memory of a search: the resident memory of the process after each of 50 trials.

    python benchmarks/search_memory.py
    python benchmarks/search_memory.py --trials 20 --output runs/memory.json

The trials draw their layer from LSTM and our LSTM family, so that nothing of a trial can be
used by the next. The first trials load code; what counts is the growth over the second half,
in MB for each trial, a line through its points. The result is added to the output file under
the name of the backend.
"""

import argparse
import resource
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_momentum_rnn.atomic_files import read_results, write_json
from keras_momentum_rnn.tuning import MomentumHyperModel, tune

STEPS, FEATURES, CLASSES = 16, 4, 3
FOUND = []


class Memory(keras.callbacks.Callback):
    """Notes the memory of the process at the end of each training."""

    def on_train_end(self, logs=None):
        FOUND.append(resident())


def resident():
    """Return the resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--output", type=Path, default="runs/search_memory.json")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(128, STEPS, FEATURES)).astype("float32")
    y = rng.integers(0, CLASSES, 128)
    hypermodel = MomentumHyperModel((STEPS, FEATURES), head=CLASSES, units=[16, 32])
    with tempfile.TemporaryDirectory() as directory:
        tune(
            hypermodel,
            x,
            y,
            validation_split=0.5,
            epochs=2,
            max_trials=options.trials,
            directory=directory,
            callbacks=[Memory()],
        )
    half = FOUND[options.trials // 2 :]
    growth = float(np.polyfit(range(len(half)), half, 1)[0])
    backend = keras.config.backend()
    print(f"{backend}: {half[0]:.0f} MB to {half[-1]:.0f} MB, {growth:.2f} MB for each trial")
    results = read_results(options.output, {})
    results[backend] = {
        "command": f"KERAS_BACKEND={backend} python benchmarks/search_memory.py",
        "keras": keras.__version__,
        "growth_per_trial_mb": round(growth, 3),
        "resident_mb": [round(value, 1) for value in FOUND],
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.output, results)


if __name__ == "__main__":
    main()
