"""What does each neuron of a memory do over a text? After the MCRM paper's Figure 7.

    python -m papers.memory_map
    python -m papers.memory_map --layers LSTM GRU MCRM NestedLSTM --output runs/all

Trains one-hot characters -> layer(units) -> Dense, for each layer, to predict the next
character, on Python's own language reference (which comes with Python). Then draws the states
of the memory over the first characters of held-out text.

Writes report.md, memory_map.png and results.json, which has `text`, the characters that are
drawn, `bits`, for each layer the loss on held-out text in bits per character, and `pace`, for
each layer and state of the memory, 10 %, 50 % and 90 % quantiles of its neurons' mean absolute
change in a step over their standard deviation.
"""

import math
from pathlib import Path
from pydoc_data.topics import topics

import keras
import numpy as np

from keras_momentum_rnn.diagnostics import memory_map
from keras_momentum_rnn.layers.registry import ready_layers
from papers import single_study
from papers.command_line import documented_parser, positive
from papers.diagnostic_plots import memories, pace, plot_memory_map
from papers.experiments import progress_bar
from papers.presentation import markdown_table

# Characters of a window, and what share of the text is held out.
STEPS, HELD_OUT = 32, 0.05
BATCH_SIZE = 32
SEED = 0


def main(argv=None):
    parser, layers = documented_parser(__doc__), list(ready_layers())
    add, default = parser.add_argument, ["MCRM", "NestedLSTM"]
    add("--layers", nargs="+", choices=layers, default=default, help="what to draw")
    add("--units", type=positive(int), default=64, help="width of each layer")
    add("--characters", type=positive(int), default=100_000, help="of text to read")
    add("--epochs", type=positive(int), default=6, help="passes over the text")
    add("--shown", type=positive(int), default=64, help="characters to draw")
    add("--output", type=Path, default=Path("runs/memory_map"), help="for the results")
    return single_study.run(__file__, argv, parser, study)


def study(options):
    text = " ".join(" ".join(topics[name] for name in sorted(topics)).split())
    text = text[: options.characters]
    alphabet = sorted(set(text))
    stop = round(len(text) * (1 - HELD_OUT))
    _, _, sentences = text[stop:].partition(". ")
    shown = sentences[: options.shown]
    if not shown or len(text) - stop <= STEPS:
        raise ValueError(
            f"`characters` must leave a sentence to draw in the last {HELD_OUT:.0%}, which are "
            f"held out; pass more. Received: characters={options.characters}"
        )
    x, y = windows(encoded(text[:stop], alphabet))
    held_out = windows(encoded(text[stop:], alphabet))
    sequence, _ = encoded(shown, alphabet)
    states, bits = {}, {}
    with progress_bar() as progress:
        bar = progress.add_task("", total=options.epochs * len(options.layers))
        for name in options.layers:
            progress.update(bar, description=name)
            model = new_model(name, options.units, x.mean(axis=(0, 1)))
            for _ in range(options.epochs):
                model.fit(x, y, BATCH_SIZE, verbose=0)
                progress.advance(bar)
            bits[name] = model.evaluate(*held_out, BATCH_SIZE, verbose=0) / math.log(2)
            states[name] = memory_map(model.get_layer("recurrent"), sequence[None])
    paces = {
        layer: {
            name: np.quantile(pace(values[0]), (0.1, 0.5, 0.9)).round(3).tolist()
            for name, values in memories(maps).items()
        }
        for layer, maps in states.items()
    }
    title = "The slowest neurons come first"
    figures = {"memory_map.png": plot_memory_map(states, shown, title=title)}
    return {"text": shown, "bits": bits, "pace": paces}, text_of(bits, paces), figures


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


def new_model(name, units, frequencies):
    """Return the model; its bias starts at the frequencies, which no memory need then hold."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(SEED)
    layer = ready_layers()[name](units, return_sequences=True, name="recurrent")
    read_out = keras.layers.Dense(len(frequencies))
    model = keras.Sequential([keras.Input((STEPS, len(frequencies))), layer, read_out])
    read_out.bias.assign(np.log(frequencies + 1e-5))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3, clipnorm=1.0), loss)
    return model


def text_of(bits, paces):
    """Return the losses and how quickly neurons move, in Markdown."""
    cells = [
        [layer, name, f"{bits[layer]:.2f}", *(f"{quantile:.2f}" for quantile in quantiles)]
        for layer, states in paces.items()
        for name, quantiles in states.items()
    ]
    head = ["layer", "state", "bits per character", "10 %", "50 %", "90 %"]
    return (
        "The loss on held-out text, and how far neurons move in a step, in their standard "
        f"deviations: quantiles over the neurons.\n\n{markdown_table(head, cells)}"
    )


if __name__ == "__main__":
    main()
