"""Who picked up the remote? NAGLSTM beside plain layers on real sequences, in two minutes.

    python examples/quick_look.py

Ten people each picked up a Wii remote ten times. From the acceleration along one axis, up to
361 steps, a layer is to tell who it was: PickupGestureWiimoteZ of the UCR archive, which the
package aeon brings. Half of the 100 recordings are for training, and of these a quarter for
validation.

It repeats a part of examples/real_sequences.py with fewer seeds, and less patience until a run
ends. All layers have as many parameters. Learning rate and hyperparameters of each are those
that its search in examples/results/real_sequences chose by validation. So are two of the
layers: NAGLSTM had the lowest validation loss of ours, LSTM on standardised sequences that of
the plain ones. LSTM and GRU train as RuleLSTM and RuleGRU with the rule Identity: the same
equations, in less time.

The output directory receives results.json, report.md and quick_look.png. After an interruption
the same command goes on from the last finished run.
"""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from command_line import documented_parser, new_folder, positive, publish, run_example
from contestants import CONTESTANTS, REFERENCES
from matplotlib.figure import Figure
from real_training import RUN, new_run, sentence, told, train
from reference_lines import reference_run
from rich import print

from keras_momentum_rnn import tasks
from keras_momentum_rnn.experiments import runner, surroundings
from keras_momentum_rnn.experiments.results_file import ResultsFile
from keras_momentum_rnn.presentation import BLUE, VERMILION, markdown_table, tidy

SET = "PickupGestureWiimoteZ"
STUDY = Path(__file__).parent / "results" / "real_sequences" / SET / "results.json"
# Epochs without a better validation loss; the comparison has 15.
PATIENCE = 8
# In words, where the name alone does not say it.
LAYERS = {
    "NAGLSTM": "NAGLSTM",
    "Standardised-LSTM": "LSTM, each sequence standardised",
    "LSTM": "LSTM",
    "GRU": "GRU",
    "MiniRocket": "MiniRocket, no recurrence",
    "linear": "linear model, no recurrence",
}

SCHEMA = {
    "commands": "the command lines of all calls",
    "settings": {
        "task": "its options, samples, steps, channels, metric, larger_is_better, chance",
        "budget": "as in real_sequences.py; the trials are those of its search",
        "backend": "with device and versions",
    },
    "runs": RUN,
}


def main(argv=None):
    return run_example(__file__, argv, parse, look)


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--seeds", type=positive(int), default=3, help="how many runs of each layer")
    add("--epochs", type=positive(int), default=80, help="at most")
    add("--output", type=new_folder, default=Path("runs/quick_look"), help="for the results")
    return parser.parse_args(argv)


def look(options, command):
    """Compare the layers, write the report, and return the results."""
    study = json.loads(STUDY.read_text(encoding="utf-8"))
    setups = {run["layer"]: run["setup"] for run in study["runs"]}
    budget = study["settings"]["budget"]
    budget |= {"epochs at most": options.epochs, "patience": PATIENCE}
    loaded = {how: tasks.load("archive", name=SET, standardise=how) for how in standards()}
    task = loaded["training"]
    results = ResultsFile(
        folder=options.output,
        settings={"task": told(task), "budget": budget, **surroundings()},
        command=command,
        key=("layer", "seed"),
        done=lambda run: int(run["test"] is not None),
        complete=lambda content: {entry: content[entry] for entry in SCHEMA},
    )
    results.write()
    runs = [
        {**new_run(layer, seed), "setup": setups[layer]}
        for layer in LAYERS
        for seed in range(options.seeds)
    ]
    print(f"{len(runs)} runs. If you stop it, repeat the command to resume.")

    def one(run, until, folder, after):
        if run["layer"] in REFERENCES:
            run |= reference_run(run, task)
            return after()
        contestant = replace(CONTESTANTS[run["layer"]], sooner=True)
        given = loaded[contestant.standardise]
        return train(run, until, folder, after, contestant, given, budget)

    runner.finish(
        [(run, 1) for run in runs],
        results,
        one,
        whole=lambda run: 1,
        label=lambda run: f"{LAYERS[run['layer']]}, seed {run['seed']}",
        sentence=partial(sentence, metric=task.metric),
        unit="run",
    )
    publish(options.output, text(results.content), {"quick_look.png": picture(results.content)})
    return results.content


def standards():
    """Return how the layers' inputs are standardised, each way once."""
    return {CONTESTANTS[layer].standardise for layer in LAYERS if layer in CONTESTANTS}


def scores(content):
    """Return the test accuracies by layer, chance where a run diverged."""
    settings, found = content["settings"]["task"], {}
    metric = settings["metric"]
    for run in content["runs"]:
        score = (run["test"] or settings["chance"])[metric]
        found.setdefault(run["layer"], []).append(score)
    return {layer: found[layer] for layer in LAYERS if layer in found}


def source(layer):
    """Return "ours", "plain" or, of what has no recurrence, "reference"."""
    return CONTESTANTS[layer].source if layer in CONTESTANTS else "reference"


def finding(content):
    """Return what the best of ours tells right, and the best plain layer, one sentence."""
    best = {}
    for layer, values in scores(content).items():
        best.setdefault(source(layer), []).append((float(np.mean(values)), layer))
    (ours, name), (plain, _) = max(best["ours"]), max(best["plain"])
    shares = [f"{100 * share:.0f} %" for share in (ours, plain)]
    return f"{name} tells {shares[0]} of the recordings right, the best plain layer {shares[1]}"


def table(content):
    """Return the layers' scores, a row each."""
    rows = []
    for layer, values in scores(content).items():
        runs = [run for run in content["runs"] if run["layer"] == layer]
        spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
        rows.append(
            [
                LAYERS[layer],
                f"{runs[0]['parameters']:,}" if runs[0]["parameters"] else "",
                f"{np.mean(values):.2f}{spread}",
                ", ".join(f"{value:.2f}" for value in values),
                f"{np.mean([run['seconds'] for run in runs]):.0f}",
            ]
        )
    head = ["layer", "parameters", "test accuracy", "each seed", "seconds a run"]
    return markdown_table(head, rows)


def text(content):
    settings = content["settings"]
    task, budget = settings["task"], settings["budget"]
    train_size, validation, test = task["samples"]
    names = ("backend", "device", "keras_momentum_rnn", "keras", settings["backend"])
    parts = [
        "# Who picked up the remote?",
        f"{finding(content)}. Chance is {100 * task['chance'][task['metric']]:.0f} %.",
        "![Test accuracy by layer](quick_look.png)",
        table(content),
        "## How it was done",
        f"The set is {task['name']}: {train_size} recordings for training, {validation} for "
        f"validation, {test} for test, at most {task['steps']} steps, {task['channels']} "
        "channel. Each person is in all three. Adam in batches of "
        f"{budget['batch_size']}, gradients clipped to a norm of {budget['clipnorm']:g}, until "
        f"the validation loss has not improved for {budget['patience']} epochs of "
        f"{budget['updates of an epoch']} updates, or for {budget['epochs at most']} epochs; "
        "the best epoch is tested. Learning rates and hyperparameters come from the search in "
        "`examples/results/real_sequences`. LSTM and GRU train as RuleLSTM and RuleGRU with "
        "the rule Identity. Seconds are of the processor, with compilation. "
        + ", ".join(f"{n} {settings[n]}" for n in names)
        + ".",
        "```sh\n" + "\n".join(content["commands"]) + "\n```",
    ]
    return "\n\n".join(parts) + "\n"


def picture(content):
    """Return a figure of the accuracies of all seeds and their means, a row for each layer."""
    found = scores(content)
    figure = Figure(figsize=(8, 0.45 * len(found) + 1.6), layout="constrained")
    axes = figure.subplots()
    colors = {"ours": BLUE, "plain": VERMILION, "reference": "0.5"}
    for place, (layer, values) in enumerate(reversed(found.items())):
        color = colors[source(layer)]
        axes.plot(values, [place] * len(values), "o", color=color, alpha=0.4, markersize=4)
        axes.plot(np.mean(values), place, "D", color=color, markersize=8)
    task = content["settings"]["task"]
    axes.axvline(task["chance"][task["metric"]], color="0.7")
    axes.set_yticks(range(len(found)), [LAYERS[layer] for layer in found][::-1])
    axes.set_xlim(0, 1)
    axes.set_xlabel(
        "test accuracy; large: mean over seeds, small: each seed, line: chance\n"
        "blue: ours, red: plain layers, grey: no recurrent layer"
    )
    axes.set_title(finding(content), loc="left", fontsize=10)
    tidy(axes)
    return figure


if __name__ == "__main__":
    main()
