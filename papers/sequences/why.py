"""Why does momentum help a layer without gates? Memory given to it otherwise.

    python -m papers.sequences.why

The explanation to be tested: SimpleRNN forgets its input within few steps, and the rule's slots
remember it. On three sets of the first study where MomentumRNN leads, both layers train as they
are, with the running mean of the inputs beside the inputs, and as leaky units,
h = leak h + (1 - leak) tanh(...), with the leak searched. If memory is the reason, the lead of
MomentumRNN shrinks to less than half with either kind of memory; where it does not, on two sets
of three, the explanation is refuted. Sizes, searches and budget are those of run.py.

After each run, a linear map is fitted from the layer's states h[t] to the input x[t - k], on
the training part, and its R^2 on the test part is kept: what a layer remembers, lag by lag. The
output directory receives a folder for each set with results.json, then report.md and
memory.png. Repeat the command to resume.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import keras
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.linear_model import RidgeCV

from keras_momentum_rnn import rules
from keras_momentum_rnn.cells import RuleRNNCell
from keras_momentum_rnn.recurrent import RuleLayer
from papers.command_line import documented_parser, publish, run_example
from papers.presentation import BLUE, VERMILION, markdown_table, tidy
from papers.sequences.layers import Contestant
from papers.sequences.new_sets import FIRST_SETS, load
from papers.sequences.report import score, value
from papers.sequences.run import add_budget, compare_on
from papers.tasks.archive import MASK_VALUE

LAGS = (0, 1, 2, 4, 8, 16, 32)
# Steps from which a linear map is fitted and tested, drawn from all of a part.
STEPS = 4000
MEMORIES = ("none", "mean", "leak")


@keras.saving.register_keras_serializable(package="papers")
class RunningMean(keras.layers.Layer):
    """The inputs, and beside them the mean of all inputs so far."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        count = keras.ops.arange(1, inputs.shape[1] + 1, dtype=inputs.dtype)[:, None]
        # Masked steps come last, so they are in no mean that is read.
        return keras.ops.concatenate([inputs, keras.ops.cumsum(inputs, axis=1) / count], -1)


@keras.saving.register_keras_serializable(package="papers")
class LeakyRNNCell(RuleRNNCell):
    """h = leak h + (1 - leak) tanh(drive + U h)."""

    def __init__(self, *args, leak=0.5, **kwargs):
        super().__init__(*args, **kwargs)
        self.leak = leak

    def recurrence(self, training=False, weights=None):
        plain = super().recurrence(training, weights)

        def step(drive, states):
            (h,) = states
            (new,) = plain(drive, states)
            return [self.leak * h + (1 - self.leak) * new]

        return step

    def get_config(self):
        return {**super().get_config(), "leak": self.leak}


@keras.saving.register_keras_serializable(package="papers")
class LeakyRNN(RuleLayer):
    """The layer of `LeakyRNNCell`."""

    keras_layer = keras.layers.SimpleRNN
    cell_class = LeakyRNNCell
    needs_rule = True


@dataclass(frozen=True)
class WithMemory(Contestant):
    """SimpleRNN or MomentumRNN with a memory of the input."""

    memory: str = "none"

    @property
    def name(self):
        return self.layer if self.memory == "none" else f"{self.layer}, {self.memory}"

    def new_layer(self, units, leak=0.5, **numbers):
        if self.memory != "leak":
            return super().new_layer(units, **numbers)
        momentum = self.layer == "MomentumRNN"
        rule = rules.HeavyBall(**numbers) if momentum else rules.Identity()
        return LeakyRNN(units, rule=rule, leak=leak)

    def suggested(self, hp, units):
        if self.memory != "leak":
            return super().suggested(hp, units)
        leak = hp.Float("leak", 0.0, 0.99, default=0.5)
        # The numbers of the rule have the same names and ranges as without a leak.
        layer = super().suggested(hp, units)
        numbers = {} if self.layer == "SimpleRNN" else layer.cell.rule.get_config()
        return self.new_layer(units, leak, **numbers)

    def first_trial(self):
        return super().first_trial() | ({"leak": 0.5} if self.memory == "leak" else {})

    def model(self, task, layer, learning_rate):
        front = [RunningMean()] if self.memory == "mean" else []
        return self.compiled(task, task.model(*front, layer), learning_rate)


CONTESTANTS = [
    WithMemory(layer, memory=memory)
    for memory in MEMORIES
    for layer in ("SimpleRNN", "MomentumRNN")
]


def main(argv=None):
    return run_example(__file__, argv, parse, study)


def parse(argv):
    parser = documented_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=[*FIRST_SETS], default=[*FIRST_SETS])
    add_budget(parser, output=Path("runs/why"))
    return parser.parse_args(argv)


def study(options, command):
    tables = []
    for name in options.sets:
        task = load(name)
        content = compare_on(task, CONTESTANTS, options, command, measure=memory_of)
        tables.append(table_of(name, content))
    runs = pd.concat(tables)
    publish(options.output, text(runs, command), {"memory.png": picture(runs)})


def memory_of(model, task):
    """Return how much of the input some steps ago the states hold, as R^2 for each lag."""
    *before, layer, _ = model.layers
    every = type(layer).from_config({**layer.get_config(), "return_sequences": True})
    features = layer.get_weights()[0].shape[0]
    every.build((None, task.input_shape[0], features))
    every.set_weights(layer.get_weights())
    found = []
    for part in (task.train, task.test):
        states = keras.Sequential([*before, every]).predict(part.x, verbose=0)
        found.append((part.x, states))
    return {"memory": [round(recalled(lag, *found), 4) for lag in LAGS]}


def recalled(lag, train, test):
    """Return R^2 on the test part of a linear map from h[t] to x[t - lag].

    Args:
        lag: int.
        train, test: pairs of inputs and states, each (samples, steps, ...).
    """
    rows = []
    for x, states in (train, test):
        past, now = x[:, : x.shape[1] - lag], states[:, lag:]
        kept = (x[:, lag:] != MASK_VALUE).all(axis=-1)  # masked steps come last
        past, now = past[kept], now[kept]
        chosen = np.random.default_rng(0).permutation(len(past))[:STEPS]
        rows.append((now[chosen], past[chosen]))
    (states, x), (test_states, test_x) = rows
    return RidgeCV(np.logspace(-4, 2, 7)).fit(states, x).score(test_states, test_x)


def table_of(name, content):
    """Return the runs of a set as a table: set, layer, score, memory."""
    task = content["settings"]["task"]
    values = pd.Series([value(run, task) for run in content["runs"]])
    return pd.DataFrame(
        {
            "set": name,
            "layer": [run["layer"] for run in content["runs"]],
            "score": score(values, task),
            "memory": [run.get("memory") for run in content["runs"]],
        }
    )


def text(runs, command):
    """Return the report as Markdown: scores, leads, and whether the explanation holds."""
    means = runs.groupby(["set", "layer"], sort=False)["score"].mean().unstack()
    leads = pd.DataFrame(
        {
            memory: means[replace(CONTESTANTS[1], memory=memory).name]
            - means[replace(CONTESTANTS[0], memory=memory).name]
            for memory in MEMORIES
        }
    )
    shrinks = leads[["mean", "leak"]].lt(leads["none"] / 2, axis=0)
    against = int((~shrinks.any(axis=1)).sum())
    rows = [[name, *(f"{x:.3f}" for x in row)] for name, row in zip(means.index, means.values)]
    of_leads = [
        [name, *(f"{x:+.3f}" for x in row)] for name, row in zip(leads.index, leads.values)
    ]
    return "\n\n".join(
        [
            "# Why does momentum help a layer without gates?",
            f"On {against} of {len(leads)} sets the lead of MomentumRNN stays above half with "
            f"either kind of memory: memory as the reason is "
            f"{'refuted' if against >= 2 else 'not refuted'}.",
            "The share of chance's error that is removed, mean over seeds:",
            markdown_table(["set", *means.columns], rows),
            "The lead of MomentumRNN over SimpleRNN, without and with a memory for both:",
            markdown_table(["set", *MEMORIES], of_leads),
            "![What the states remember](memory.png)",
            f"```sh\n{command}\n```\n",
        ]
    )


def picture(runs):
    """Return a figure of what the states of both layers remember, lag by lag, on each set."""
    names = [*dict.fromkeys(runs["set"])]
    figure = Figure(figsize=(3.2 * len(names), 3.2), layout="constrained")
    panels, more = figure.subplots(1, len(names), sharey=True, squeeze=False)[0], 0
    for axes, name in zip(panels, names):
        recalls = []
        for contestant, color in zip(CONTESTANTS[:2], (VERMILION, BLUE)):
            of = runs[(runs["set"] == name) & (runs["layer"] == contestant.name)]
            curve = np.mean([memory for memory in of["memory"] if memory], axis=0)
            curve = np.maximum(curve, 0)
            recalls.append(curve.mean())
            axes.plot(range(len(LAGS)), curve, "o-", color=color, label=contestant.name)
        axes.set_xticks(range(len(LAGS)), LAGS)
        more += recalls[1] > recalls[0]
        axes.set_title(name, fontsize=9, loc="left")
        axes.set_xlabel("steps ago")
        tidy(axes)
    figure.suptitle(
        f"On {more} of {len(names)} sets the state of MomentumRNN holds more of past inputs"
    )
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    panels[0].set_ylabel("share of the input's variance\nthat a linear map finds in h")
    return figure


if __name__ == "__main__":
    main()
