"""What does each neuron of a memory do over a text? The MCRM paper's Figure 7.

    python -m papers.memory_map
    python -m papers.memory_map --layers LSTM GRU MCRM NestedLSTM --output runs/all
    python -m papers.memory_map --data-dir DIR --output runs/shakespeare

Trains one-hot characters -> layer(units) -> Dense, for each layer, to predict the next
character, on Python's own language reference (which comes with Python), or, with `--data-dir`,
on tensorflow-datasets' tiny_shakespeare (downloaded there if it is missing). Then draws the
states of the memory over the first characters of held-out text.

The output directory receives memory_map.png and results.json:

    command        the command line
    settings       options, backend, versions
    text           the characters that are drawn
    bits           for each layer, the loss on held-out text in bits per character
    pace           for each layer and state of the memory, 10 %, 50 % and 90 % quantiles of its
                   neurons' mean absolute change in a step over their standard deviation
"""

import math
import sys
from pathlib import Path

import keras
import numpy as np
from rich import print

from keras_momentum_rnn.atomic_files import write_json
from keras_momentum_rnn.diagnostics import memories, memory_map, pace, plot_memory_map
from keras_momentum_rnn.layers.registry import ready_layers
from papers.command_line import (
    command_of,
    documented_parser,
    ending,
    folder,
    new_folder,
    positive,
)
from papers.experiments import progress_bar, surroundings
from papers.presentation import save_figures

HELD_OUT = 20
STEPS = 32


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    text = read(options)
    alphabet = sorted(set(text))
    stop = len(text) - len(text) // HELD_OUT
    start = stop + text[stop:].find(". ") + 2
    shown = text[start : start + options.shown]
    x, y = windows(encoded(text[:stop], alphabet))
    held_out = windows(encoded(text[stop:], alphabet))
    sequence, _ = encoded(shown, alphabet)
    states, bits = {}, {}
    with progress_bar() as progress:
        task = progress.add_task("", total=options.epochs * len(options.layers))
        for name in options.layers:
            progress.update(task, description=name)
            model = compiled_model(options, name, x.mean(axis=(0, 1)))
            for _ in range(options.epochs):
                model.fit(x, y, options.batch_size, verbose=0)
                progress.advance(task)
            loss = model.evaluate(*held_out, options.batch_size, verbose=0)
            bits[name] = loss / math.log(2)
            states[name] = memory_map(model.get_layer("recurrent"), sequence[None])
            progress.console.print(f"{name}: {bits[name]:.2f} bits per held-out character")
    write(options, argv, shown, bits, states)
    print(f"memory_map.png and results.json are in {options.output}")


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    known = ready_layers()
    default = ["MCRM", "NestedLSTM"]
    add("--layers", nargs="+", choices=known, default=default, help="what to draw")
    add("--data-dir", type=folder, help="where tensorflow-datasets keeps tiny_shakespeare")
    add("--units", type=positive(int), default=64, help="width of each layer")
    add("--characters", type=positive(int), default=100_000, help="of text to read")
    add("--epochs", type=positive(int), default=6, help="passes over the text")
    add("--batch-size", type=positive(int), default=32, help="windows per update")
    add("--learning-rate", type=positive(float), default=3e-3, help="of Adam")
    add("--shown", type=positive(int), default=64, help="characters to draw")
    add("--seed", type=int, default=0, help="of weights and batches")
    add("--output", type=new_folder, default=Path("runs/memory_map"), help="for the results")
    options = parser.parse_args(argv)
    options.layers = list(dict.fromkeys(options.layers))
    least = HELD_OUT * (STEPS + options.shown)
    if options.characters < least:
        parser.error(
            f"argument --characters: must be at least {least}, {HELD_OUT} times what is shown "
            f"and {STEPS}. Received: {options.characters}"
        )
    return options


def read(options):
    """Return the text: runs of white space are one space each, other characters as they are."""
    if options.data_dir:
        import tensorflow_datasets as tfds

        train = tfds.load("tiny_shakespeare", split="train", data_dir=options.data_dir)
        (example,) = tfds.as_numpy(train)
        text = example["text"].decode()
    else:
        from pydoc_data.topics import topics

        text = " ".join(topics[name] for name in sorted(topics))
    text = "".join(c for c in " ".join(text.split()) if c.isascii())
    return text[: options.characters]


def encoded(text, alphabet):
    """Return the characters one-hot, `(time, characters)`, and as numbers."""
    codes = np.array([alphabet.index(character) for character in text])
    return np.eye(len(alphabet), dtype="float32")[codes], codes


def windows(encoded_text):
    """Return inputs and targets, windows of `STEPS` characters and their successors."""
    one_hot, codes = encoded_text
    count = (len(codes) - 1) // STEPS
    inputs, targets = one_hot[: count * STEPS], codes[1 : count * STEPS + 1]
    return inputs.reshape(count, STEPS, -1), targets.reshape(count, STEPS)


def compiled_model(options, name, frequencies):
    """Return the model; its bias starts at the frequencies, which no memory need then hold."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(options.seed)
    layer = ready_layers()[name](options.units, return_sequences=True, name="recurrent")
    readout = keras.layers.Dense(len(frequencies))
    model = keras.Sequential([keras.Input((STEPS, len(frequencies))), layer, readout])
    readout.bias.assign(np.log(frequencies + 1e-5))
    model.compile(
        keras.optimizers.Adam(options.learning_rate, clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def write(options, argv, shown, bits, states):
    hidden = ("output", "data_dir")
    results = {
        "command": command_of(__file__, argv),
        "settings": {
            **{name: value for name, value in vars(options).items() if name not in hidden},
            "text": "tiny_shakespeare" if options.data_dir else "pydoc_data.topics",
            "python": sys.version.split()[0],
            **surroundings(),
        },
        "text": shown,
        "bits": bits,
        "pace": {
            layer: {
                name: np.quantile(pace(values[0]), (0.1, 0.5, 0.9)).round(3).tolist()
                for name, values in memories(maps).items()
            }
            for layer, maps in states.items()
        },
    }
    options.output.mkdir(parents=True, exist_ok=True)
    told = ", ".join(
        f"{low:.2f} ({layer}, {name})"
        for layer, row in results["pace"].items()
        for name, (low, _, _) in row.items()
    )
    title = (
        "Per step, the slowest tenth of the neurons moves by at most\n"
        f"{told} standard deviations"
    )
    figure = plot_memory_map(states, shown, title=title)
    save_figures(options.output, {"memory_map.png": figure})
    write_json(options.output / "results.json", results)
    for layer, row in results["pace"].items():
        for name, quantiles in row.items():
            low, middle, high = quantiles
            print(
                f"{layer}, {name}: a neuron moves by {middle:.2f} of its standard deviation in "
                f"a step (slow tenth below {low:.2f}, quick tenth above {high:.2f})"
            )


if __name__ == "__main__":
    with ending("Interrupted. Nothing was written."):
        main()
