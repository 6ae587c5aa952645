"""Who picked up the remote? NAGLSTM beside plain layers on real sequences, in two minutes.

    python examples/quick_look.py

Ten people each picked up a Wii remote ten times. From the acceleration along one axis, 29 to
361 steps, a layer must recognise the person: PickupGestureWiimoteZ of the UCR archive, which
the package aeon brings. 40 recordings are for training, 10 choose the epoch, 50 are for test.

It repeats a part of papers/real_sequences.py with fewer seeds, and less patience until a run
ends. All layers have as many parameters. There a search chose each layer's learning rate and
hyperparameters by validation loss. Validation also chose NAGLSTM among our layers, and LSTM on
standardised sequences among the plain ones. LSTM and GRU run as RuleLSTM and RuleGRU with the
rule Identity: the same equations, in less time. The set was chosen because it shows a
difference.

The output directory receives results.json, report.md and quick_look.png. After an interruption
the same command goes on from the last finished run.
"""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure
from rich import print

from keras_momentum_rnn.atomic_files import differences
from papers import tasks
from papers.command_line import documented_parser, new_folder, positive, publish, run_example
from papers.contestants import CONTESTANTS, REFERENCES, titled
from papers.experiments import runner
from papers.presentation import BLUE, VERMILION, markdown_table, tidy
from papers.real_sequences_scores import best, scores, signed
from papers.real_training import new_run, results_file, sentence, train
from papers.reference_lines import reference_run

SET = "PickupGestureWiimoteZ"
STUDY = Path(__file__).parent / "results" / "real_sequences" / SET / "results.json"
# Epochs without a better validation loss; the comparison has 15.
PATIENCE = 8
LAYERS = ("NAGLSTM", "Standardised-LSTM", "LSTM", "GRU", *reversed(REFERENCES))
COLORS = {"ours": BLUE, "plain": VERMILION, "not recurrent": "0.5"}


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
    results = results_file(
        options.output,
        task,
        budget,
        command,
        check=lambda runs: [
            line
            for run in runs
            if run["layer"] in CONTESTANTS
            for line in differences(run["setup"], setups[run["layer"]])
        ],
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
            reference_run(run, task, changed=False)
            return after()
        contestant = replace(CONTESTANTS[run["layer"]], sooner=True)
        given = loaded[contestant.standardise]
        return train(run, until, folder, after, contestant, given, budget)

    runner.finish(
        [(run, 1) for run in runs],
        results,
        one,
        whole=lambda run: 1,
        label=lambda run: f"{name_of(run['layer'])}, seed {run['seed']}",
        sentence=partial(sentence, metric=task.metric),
        unit="run",
    )
    found = grouped(results.content)
    publish(options.output, text(found), {"quick_look.png": picture(found)})
    return results.content


def standards():
    """Return how the layers' inputs are standardised, each way once."""
    return {CONTESTANTS[layer].standardise for layer in LAYERS if layer in CONTESTANTS}


def grouped(content):
    """Return results with their runs by layer, as real_sequences_scores.py reads them."""
    runs = content["runs"]
    by_layer = {layer: [run for run in runs if run["layer"] == layer] for layer in LAYERS}
    return {**content, "layers": {layer: found for layer, found in by_layer.items() if found}}


def source(layer):
    return CONTESTANTS[layer].source if layer in CONTESTANTS else "not recurrent"


def name_of(layer):
    return titled(layer) if layer in CONTESTANTS else f"{layer} (not recurrent)"


def leaders(content):
    """Return the layer with the best mean score of ours, and of the plain ones."""
    return [
        best(content, [layer for layer in content["layers"] if source(layer) == whose])
        for whose in ("ours", "plain")
    ]


def ahead(content):
    """Return whether ours has a higher mean score than every plain layer."""
    ours, plain = leaders(content)
    return signed(content, ours) > signed(content, plain)


def finding(content):
    """Return how often the best of ours is right, and the best plain layer, one sentence."""
    ours, plain = leaders(content)
    shares = [f"{100 * scores(content, layer).mean():.0f} %" for layer in (ours, plain)]
    return (
        f"{titled(ours)} recognises the person in {shares[0]} of the recordings, the best "
        f"plain layer in {shares[1]}"
    )


def table(content):
    """Return the layers' scores, a row each."""
    rows = []
    for layer, runs in content["layers"].items():
        found = scores(content, layer)
        each = [
            f"{score:.2f}{', diverged' * run['diverged']}" for score, run in zip(found, runs)
        ]
        rows.append(
            [
                name_of(layer),
                f"{runs[0]['parameters']:,}" if runs[0]["parameters"] else "",
                f"{found.mean():.2f}",
                "; ".join(each),
            ]
        )
    head = ["layer", "parameters", "test accuracy", "each seed"]
    return markdown_table(head, rows)


def text(content):
    settings = content["settings"]
    task, budget = settings["task"], settings["budget"]
    train_size, validation, test = task["samples"]
    names = ("device", "keras_momentum_rnn", "keras", settings["backend"])
    chance = f"Chance is {100 * task['chance'][task['metric']]:.0f} %."
    if any(run["diverged"] for run in content["runs"]):
        chance += " A run that diverged counts as chance."
    parts = [
        "# Who picked up the remote?",
        f"{finding(content)}. {chance}",
        "This set was chosen because it shows a difference: on most of the sets in "
        "`docs/choose/which_layer.md` ours and the plain layers are even. Rows marked `not "
        "recurrent` are other kinds of models, which may be better still.",
        "![Test accuracy by layer](quick_look.png)",
        table(content),
        "## How it was done",
        f"The set is {task['name']}: {train_size} recordings for training, {validation} to "
        f"choose the epoch, {test} for test, so one recording is {1 / test:.2f}. They have at "
        f"most {task['steps']} steps of {task['channels']} channel, and each person is in all "
        "three parts. Inputs are standardised by the training set; in the row `each sequence "
        "standardised` each by itself, to mean 0 and deviation 1. Adam in batches of "
        f"{budget['batch_size']}, gradients clipped to a norm of {budget['clipnorm']:g}, until "
        f"the validation loss has not improved for {budget['patience']} epochs of "
        f"{budget['updates of an epoch']} updates, or for {budget['epochs at most']} epochs; "
        "the best epoch is tested. Learning rates and hyperparameters come from the search in "
        f"`papers/results/real_sequences`, {budget['trials']} trials for each layer. LSTM "
        "and GRU run as RuleLSTM and RuleGRU with the rule Identity, which have the same "
        "equations. The models that are not recurrent also train on the validation "
        "recordings. " + ", ".join(f"{n} {settings[n]}" for n in names) + ".",
        "```sh\n" + "\n".join(content["commands"]) + "\n```",
    ]
    return "\n\n".join(parts) + "\n"


def picture(content):
    """Return a figure of the accuracies of all seeds and their means, a row for each layer."""
    names = [*content["layers"]][::-1]
    figure = Figure(figsize=(8.5, 0.45 * len(names) + 1.6), layout="constrained")
    axes = figure.subplots()
    for place, layer in enumerate(names):
        color, found = COLORS[source(layer)], scores(content, layer)
        axes.plot(found, [place] * len(found), "o", color=color, alpha=0.4, markersize=4)
        axes.plot(found.mean(), place, "D", color=color, markersize=8)
    for whose, color in COLORS.items():
        axes.plot([], [], "D", color=color, label=whose)
    task = content["settings"]["task"]
    axes.axvline(task["chance"][task["metric"]], color="0.7", label="chance")
    axes.set_yticks(range(len(names)), map(name_of, names))
    axes.set_xlim(0, 1)
    axes.set_xlabel("test accuracy; large: mean over seeds, small: each seed")
    axes.set_title(finding(content), loc="left", x=-0.35, fontsize=10)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    tidy(axes)
    return figure


if __name__ == "__main__":
    main()
