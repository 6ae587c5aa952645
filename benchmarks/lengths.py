"""Time sequences of unequal length, and recurrent dropout, on the native kernel and without.

    KERAS_BACKEND=jax python benchmarks/lengths.py

64 sequences of at most 128 steps train an LSTM of 128 units, a bidirectional one, and two
stacked ones. Lengths are spread evenly, and one is the longest; their mean is 0.5 or 0.11 of
it. All take turns in one process:

    padded     without a mask: Keras's LSTM, on PyTorch `torch.nn.LSTM`
    masked     Keras's LSTM behind `Masking`
    packed     `torch.nn.LSTM` on a packed sequence, on PyTorch
    ours       `keras_momentum_rnn.LSTM` behind `Masking`

The model "dropout" has no mask, but `recurrent_dropout=0.2`: there "masked" is Keras's LSTM.
Results join benchmarks/results/lengths.json, by backend, processor, model and mean length: the
median milliseconds of a training step, ratios of `ours` to each other one with quartiles,
rounds, and the load average before and after. Above one of 0.5 nothing begins, unless --busy
says that it may.
"""

import argparse
import os

LOAD = os.getloadavg()  # before a backend begins, which is work too

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import layers  # noqa: E402
from measure import parsed, ratio, record, timed  # noqa: E402

import keras_momentum_rnn as kmr  # noqa: E402
from papers.experiments.results_file import processor  # noqa: E402

BATCH, STEPS, FEATURES, UNITS = 64, 128, 32, 128
# Each with the mean lengths, as parts of the longest, around which the others are spread.
MODELS = {
    "one": (0.5, 0.1),
    "bidirectional": (0.5, 0.1),
    "stacked": (0.5, 0.1),
    "dropout": (1,),
}


def network(layer, model, masked):
    """Return a compiled model of a class of layers."""
    parts = [keras.Input((STEPS, FEATURES)), *([layers.Masking()] if masked else [])]
    if model == "bidirectional":
        parts.append(layers.Bidirectional(layer(UNITS)))
    elif model == "stacked":
        parts += [layer(UNITS, return_sequences=True), layer(UNITS)]
    else:
        parts.append(layer(UNITS, recurrent_dropout=0.2 if model == "dropout" else 0))
    network = keras.Sequential([*parts, layers.Dense(1)])
    network.compile("sgd", "mse")
    return network


def torch_step(model, x, y, lengths, packed):
    """Return a function that takes a training step of `torch.nn.LSTM`."""
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence

    both, count = model == "bidirectional", 2 if model == "stacked" else 1
    lstm = torch.nn.LSTM(FEATURES, UNITS, count, batch_first=True, bidirectional=both)
    head = torch.nn.Linear((1 + both) * UNITS, 1)
    optimizer = torch.optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.01)
    x, y, lengths = torch.tensor(x), torch.tensor(y), torch.tensor(lengths)

    def step():
        optimizer.zero_grad()
        given = pack_padded_sequence(x, lengths, True, False) if packed else x
        _, (h, _) = lstm(given)
        h = torch.cat([h[-2], h[-1]], 1) if both else h[-1]
        loss = ((head(h) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def lengths_of(mean):
    """Return the lengths of a batch, spread around a mean, but for the last, the longest."""
    if mean == 1:
        return np.full(BATCH, STEPS)
    lengths = np.linspace(1, 2 * mean * STEPS - 1, BATCH).round().astype(int)
    lengths[-1] = STEPS
    return lengths


def mean_length(mean):
    """Return the mean of `lengths_of`, as a part of the longest, as results name it."""
    return f"{lengths_of(mean).mean() / STEPS:.2g}"


def contestants(model, mean):
    """Return the training steps to time, by name."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((BATCH, STEPS, FEATURES)).astype("float32")
    y = rng.standard_normal((BATCH, 1)).astype("float32")
    x[np.arange(STEPS) >= rng.permuted(lengths_of(mean))[:, None]] = 0
    masked, steps = mean < 1, {}

    def step(layer, masked):
        trained = network(layer, model, masked)
        return lambda: trained.train_on_batch(x, y)

    if keras.config.backend() == "torch" and model != "dropout":
        lengths = (x != 0).any(-1).sum(1)
        steps["padded"] = torch_step(model, x, y, lengths, packed=False)
        steps["packed"] = torch_step(model, x, y, lengths, packed=True)
    elif model != "dropout":
        steps["padded"] = step(layers.LSTM, False)
    return {**steps, "masked": step(layers.LSTM, masked), "ours": step(kmr.LSTM, masked)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=9)
    options = parsed(parser, LOAD)
    for model in options.models:
        for mean in MODELS[model]:
            steps = contestants(model, mean)
            timed(steps.values(), 1)
            seconds = dict(zip(steps, timed(steps.values(), options.rounds).T))
            row = {name: round(1e3 * float(np.median(s)), 2) for name, s in seconds.items()}
            others = [name for name in steps if name != "ours"]
            row["ratio"] = {name: ratio(seconds["ours"], seconds[name]) for name in others}
            row |= {"rounds": options.rounds, "load": [LOAD, os.getloadavg()]}
            print(f"{model:14} {mean}", row, flush=True)
            backend = keras.config.backend()
            record("lengths.json", row, backend, processor(), model, mean_length(mean))


if __name__ == "__main__":
    main()
