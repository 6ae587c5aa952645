"""Text: predict the next character of Python's own manual, and let the model write.

    python examples/characters.py
    python examples/characters.py mytext.txt --updates 5000

Without a file, the text is the reference of the language that comes with Python. The score is
bits for each character of a part that the model has not seen. No prediction at all, each
character as likely as any other, has log2 of their number.
"""

import argparse
from pathlib import Path
from pydoc_data.topics import topics

import keras
import numpy as np

from keras_momentum_rnn import RMSPropLSTM

STEPS, BATCH = 64, 32


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", type=Path, help="a file of text")
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--write", type=int, default=300, help="characters")
    options = parser.parse_args()
    text = "\n".join(map(topics.get, sorted(topics)))
    if options.text:
        try:
            text = options.text.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:  # ValueError: of another encoding
            raise SystemExit(f"{options.text}: {error}") from None
    if len(text) <= 10 * STEPS:  # the last tenth is held out
        raise SystemExit(f"A text needs more than {10 * STEPS} characters; it has {len(text)}")
    alphabet = sorted(set(text))
    code = {character: i for i, character in enumerate(alphabet)}
    numbers = np.array([code[character] for character in text], "int32")
    end = int(0.9 * len(numbers))
    print(f"{len(text):,} characters, {len(alphabet)} different ones")

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(len(alphabet), 32),
            RMSPropLSTM(options.units, step_size=0.6, beta=0.99, return_sequences=True),
            keras.layers.Dense(len(alphabet)),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(4e-3, clipnorm=1.0), loss)
    rng = np.random.default_rng(0)
    x, y = samples(numbers[:end], options.updates * BATCH, rng)
    model.fit(x, y, batch_size=BATCH, verbose=2)

    held_out = samples(numbers[end:], 256, rng)
    bits = model.evaluate(*held_out, verbose=0) / np.log(2)
    # How often each character is in the training part, plus one: it may be absent there.
    counts = np.bincount(numbers[:end], minlength=len(alphabet)) + 1
    frequency = -np.log2(counts / counts.sum())[numbers[end:]].mean()
    print(
        f"Held out: {bits:.2f} bits a character, by frequency alone {frequency:.2f}, "
        f"all alike {np.log2(len(alphabet)):.2f}"
    )
    print(written(model, numbers[end:][:STEPS], alphabet, options.write, rng))


def samples(numbers, count, rng):
    """Return pieces of the text, and the same one character later."""
    starts = rng.integers(len(numbers) - STEPS, size=count)
    pieces = numbers[starts[:, None] + np.arange(STEPS + 1)]
    return pieces[:, :-1], pieces[:, 1:]


def written(model, start, alphabet, count, rng):
    """Return a text of `STEPS` characters and how the model continues it, each one drawn."""
    text = list(start)
    for _ in range(count):
        # Always so many characters: another length would be compiled again.
        seen = np.array(text[-STEPS:], "int32")
        logits = model.predict_on_batch(seen[None])[0, -1].astype("float64") / 0.7
        share = np.exp(logits - logits.max())
        text.append(int(rng.choice(len(alphabet), p=share / share.sum())))
    return "".join(alphabet[i] for i in text)


if __name__ == "__main__":
    main()
