"""Write the report on the comparison on real sequences, as far as it has come.

    python examples/real_sequences_report.py runs/real_sequences --output runs/report

Reads the folder of results of real_sequences.py: a folder for each set with results.json. The
output directory receives report.md, mean_ranks.png, gain.png and progress.png. A layer counts
on a set when all its seeds are through; a set counts in the ranks when all layers are.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from command_line import documented_parser, folder, new_folder, positive, publish, run_example
from contestants import CONTESTANTS, REFERENCES, excluded
from perturbations import MEANINGS, PERTURBATIONS
from ranks import LEVEL, against, critical_difference, mean_ranks, smallest_p
from real_sequences_pictures import gain_picture, progress_picture, rank_picture
from real_sets import SETS

from keras_momentum_rnn.presentation import markdown_table

BASELINES = ("LSTM", "GRU")


def main(argv=None):
    return run_example(__file__, argv, parse, report)


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("results", type=folder, help="the output of real_sequences.py")
    add("--seeds", type=several, default=5, help="of which a layer's runs are complete")
    add("--output", type=new_folder, help="for the report; default: beside the results")
    return parser.parse_args(argv)


def several(text):
    if (count := positive(int)(text)) < 2:
        raise argparse.ArgumentTypeError(f"must be 2 or more, for a spread. Received: {text}")
    return count


def report(options, command):
    found = read(options.results, options.seeds)
    if not any(found.values()):
        raise ValueError(f"No layer has {options.seeds} runs on a set in {options.results}")
    output = options.output or options.results
    output.mkdir(parents=True, exist_ok=True)
    figures, complete = {}, whole_sets(found)
    if len(complete) > 1:
        ranks = ranked(found, complete)
        spread = critical_difference(len(ranks), len(complete))
        figures["mean_ranks.png"] = rank_picture(ranks, spread, len(complete))
    if told := {n: content for n, content in found.items() if of_classes(content)}:
        figures["gain.png"] = gain_picture(told)
    figures["progress.png"] = progress_picture(found)
    publish(output, text(found, complete, command, figures), figures)


def read(directory, seeds):
    """Return the results of the sets, the runs of layers that are through by layer."""
    found = {}
    paths = {path.parent.name: path for path in Path(directory).glob("*/results.json")}
    for name in sorted(paths, key=lambda n: (SETS.index(n) if n in SETS else len(SETS), n)):
        content = json.loads(paths[name].read_text(encoding="utf-8"))
        layers = {}
        for run in content["runs"]:
            layers.setdefault(run["layer"], []).append(run)
        known = [layer for layer in (*CONTESTANTS, *REFERENCES) if layer in layers]
        content["layers"] = {n: layers[n] for n in known if len(layers[n]) >= seeds}
        if content["layers"]:
            found[name] = content
    return found


def whole_sets(found):
    """Return the sets on which every layer is through that can be."""
    return [
        name
        for name, content in found.items()
        if all(
            layer in content["layers"] or excluded(layer, *shape(content))
            for layer in CONTESTANTS
        )
    ]


def shape(content):
    told = content["settings"]["task"]
    return told["steps"], told["channels"]


def of_classes(content):
    return content["settings"]["task"]["larger_is_better"]


def scores(content, layer, change=None):
    """Return the test scores of a layer's runs as an array, chance for those that diverged.

    Args:
        content: the results of a set.
        layer: a name.
        change: name of a change of the inputs, or None.
    """
    told = content["settings"]["task"]
    metric = told["metric"]
    chance = {metric: told["chance"][metric]}
    tested = [
        (run["perturbed"] or {}).get(change) if change else run["test"]
        for run in content["layers"][layer]
    ]
    return np.array([(found or chance)[metric] for found in tested])


def signed(content, layer, change=None):
    """Return a layer's mean score on a set, larger is better."""
    sign = 1 if of_classes(content) else -1
    return sign * scores(content, layer, change).mean()


def by_layer(found, sets):
    """Return the scores of the layers that have a part in all sets, a list each."""
    layers = [name for name in CONTESTANTS if all(name in found[one]["layers"] for one in sets)]
    return {layer: [signed(found[one], layer) for one in sets] for layer in layers}


def ranked(found, sets):
    return mean_ranks(by_layer(found, sets))


def text(found, complete, command, figures):
    """Return the report as Markdown."""
    parts = ["# Which layer, when? Layers on real sequences", share(found, complete)]
    parts += [finding(found), best_table(found)]
    if "mean_ranks.png" in figures:
        parts += ["![Mean ranks](mean_ranks.png)", tests(found, complete)]
    parts += [
        "## What if the sensor changes after training?",
        "Each trained model was tested again with its test inputs changed, the unit being the "
        "standard deviation of the channel in training: "
        + "; ".join(f"{name}: {meaning}" for name, meaning in MEANINGS.items())
        + ".",
        "![Accuracy when the inputs are divided by 4](gain.png)" * ("gain.png" in figures),
        *(robustness(name, content) for name, content in found.items()),
        "## Each set",
        *(set_table(name, content) for name, content in found.items()),
        "## Did training converge?",
        convergence(found),
        "![Share of runs past their best epoch](progress.png)",
        "## How it was done",
        how(found, command),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def share(found, complete):
    """Return how much of the study is done, a paragraph; nothing of sets that are yours."""
    if not set(SETS) & set(found):
        return ""
    done = sum(len(content["layers"]) for content in found.values())
    planned = len(SETS) * (len(CONTESTANTS) + len(REFERENCES))
    names = [name for name in SETS if name not in found]
    told = f"**State: {done} of {planned} pairs of a layer and a set** are through; "
    told += f"{len(complete)} of {len(SETS)} sets are complete"
    told += f" ({', '.join(complete)})." if complete else "."
    return told + (f" Not begun or without a finished layer: {', '.join(names)}." * bool(names))


def best(found, layers):
    """Return the layer with the best mean score among some, or None."""
    known = [layer for layer in layers if layer in found["layers"]]
    return max(known, key=lambda layer: signed(found, layer), default=None)


def of_source(source):
    return [name for name, contestant in CONTESTANTS.items() if contestant.source == source]


def verdict(content):
    """Return the best plain layer, the best of ours, and "ours", "plain" or "even"."""
    plain, ours = best(content, of_source("plain")), best(content, of_source("ours"))
    if plain is None or ours is None:
        return plain, ours, None
    return plain, ours, {1: "ours", 0: "even", -1: "plain"}[compared(content, ours, plain)]


def compared(content, layer, other):
    """Return 1, 0 or -1: better, even or worse; even is within both deviations together."""
    difference = signed(content, layer) - signed(content, other)
    spread = sum(scores(content, name).std(ddof=1) for name in (layer, other))
    return 0 if abs(difference) <= spread else int(np.sign(difference))


def finding(found):
    """Return what the sets show, a paragraph."""
    verdicts = [word for content in found.values() if (word := verdict(content)[2])]
    counts = {word: verdicts.count(word) for word in ("ours", "even", "plain")}
    return (
        "The best of our layers beats the best plain one (SimpleRNN, GRU, LSTM, and LSTM on "
        f"normalised inputs) on {counts['ours']} of {len(verdicts)} sets, by more than "
        f"both standard deviations together. The plain one wins on {counts['plain']}; on "
        f"{counts['even']} they are even. The best of twelve layers is luckier than "
        "the best of five, so read this with the ranks."
    )


def best_table(found):
    """Return one row for each set: the best plain layer, the best of ours, the references."""
    head = ["set", "steps x channels", "training", "best plain", "best of ours", "verdict"]
    rows = []
    for name, content in found.items():
        told, (plain, ours, word) = content["settings"]["task"], verdict(content)
        cells = [name, f"{told['steps']} x {told['channels']}", f"{told['samples'][0]}"]
        cells += [shown(content, plain), shown(content, ours), word or ""]
        rows.append(cells + [shown(content, name, named=False) for name in REFERENCES])
    return markdown_table([*head, *REFERENCES], rows)


def shown(content, layer, change=None, named=True):
    """Return mean and standard deviation of a layer's scores as text."""
    if layer is None or layer not in content["layers"]:
        return ""
    if change and not any(change in (r["perturbed"] or {}) for r in content["layers"][layer]):
        return ""
    found = scores(content, layer, change)
    told = f"{found.mean():.3f} ± {found.std(ddof=1):.3f}"
    return f"{layer} {told}" if named else told


def tests(found, complete):
    """Return the tests of each layer against LSTM and GRU, a paragraph and a table."""
    table, ranks = by_layer(found, complete), ranked(found, complete)
    least = smallest_p(len(complete))
    rows = []
    for layer, rank in ranks.items():
        row = [layer, f"{rank:.1f}"]
        for baseline in BASELINES:
            if layer == baseline:
                row += ["", ""]
                continue
            signs = [compared(found[one], layer, baseline) for one in complete]
            row.append(" / ".join(str(signs.count(sign)) for sign in (1, 0, -1)))
            row.append(f"{against(table, baseline)[layer]:.2g}")
        rows.append(row)
    head = ["layer", "mean rank"]
    for baseline in BASELINES:
        head += [f"won / even / lost against {baseline}", f"p against {baseline}"]
    note = (
        f"Over {len(complete)} sets. p: Wilcoxon's signed-rank test over the sets, with Holm's "
        "correction for the number of layers."
    )
    if missing := [layer for layer in CONTESTANTS if layer not in table]:
        note += f" Not ranked, since some sets lack it: {', '.join(missing)}."
    if least * (len(ranks) - 1) > LEVEL:
        note += (
            f" So few sets cannot show a difference at {LEVEL:.0%}: the smallest p of one test "
            f"is {least:.2g}, before the correction."
        )
    return f"{note}\n\n{markdown_table(head, rows)}"


def robustness(name, content):
    """Return the scores of all layers with changed inputs, a table."""
    rows = [
        [layer, shown(content, layer, named=False)]
        + [shown(content, layer, change, named=False) for change in PERTURBATIONS]
        for layer in content["layers"]
    ]
    metric = content["settings"]["task"]["metric"]
    head = ["layer", "unchanged", *PERTURBATIONS]
    return f"**{name}**, test {metric}:\n\n{markdown_table(head, rows)}"


def set_table(name, content):
    """Return the results on a set, a table with what precedes it."""
    told, updates = content["settings"]["task"], updates_of(content)
    rows = []
    for layer, runs in content["layers"].items():
        setup, epochs = runs[0]["setup"] or {}, [r["best_epoch"] for r in runs]
        given = {**setup.get("numbers", {}), "rate": setup.get("learning_rate", "")}
        numbers = ", ".join(f"{n} {number(v)}" for n, v in given.items() if v != "")
        rows.append(
            [
                layer,
                str(setup.get("units", "")),
                f"{runs[0]['parameters']:,}" if runs[0]["parameters"] else "",
                shown(content, layer, named=False),
                f"{np.median([e for e in epochs if e]) * updates:.0f}" if any(epochs) else "",
                f"{np.median([run['seconds'] for run in runs]):.1f}",
                numbers,
            ]
        )
    train, validation, test = told["samples"]
    chance = told["chance"][told["metric"]]
    head = ["layer", "units", "parameters", f"test {told['metric']}"]
    head += ["updates to the best", "seconds", "numbers of the best trial"]
    return (
        f"**{name}**: {train} sequences for training, {validation} for validation, {test} for "
        f"test; {told['steps']} steps of {told['channels']} channels"
        f"{', of unequal lengths' if told['masked'] else ''}; without the inputs one scores "
        f"{chance:.3f}.\n\n{markdown_table(head, rows)}"
    )


def number(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def updates_of(content):
    return content["settings"]["budget"]["updates of an epoch"]


def recurrent(found):
    """Yield the runs of recurrent layers, with the updates of their epochs."""
    for content in found.values():
        for layer, runs in content["layers"].items():
            for run in runs:
                if layer in CONTESTANTS:
                    yield layer, run, updates_of(content)


def convergence(found):
    runs = [run for _, run, _ in recurrent(found)]
    stopped = sum(bool(run["stopped"]) for run in runs)
    lost = sum(run["diverged"] for run in runs)
    return (
        f"{stopped} of {len(runs)} runs ended because the validation loss had not improved for "
        f"the whole patience; the others had reached the last epoch. {lost} diverged, and "
        "count as chance."
    )


def how(found, command):
    content = next(iter(found.values()))
    told, settings = content["settings"]["budget"], content["settings"]
    versions = {n: v for n, v in settings.items() if n not in ("task", "budget")}
    return (
        f"Each layer has about as many parameters as an LSTM of {told['units of the LSTM']} "
        f"units. {told['trials']} trials of each layer on each set, the first with the "
        "defaults, chose learning rate and the layer's numbers by the validation loss. Then "
        "fresh seeds "
        f"trained with Adam (clipnorm {told['clipnorm']:g}, {told['batch_size']} sequences per "
        f"update) for at most {told['epochs at most'] * updates_of(content):,} updates; the "
        "model of the best validation loss was tested once. Inputs are standardised by the "
        "training samples; Standardised-LSTM gets each sequence standardised on its own. In "
        "AdamLSTM and RMSPropLSTM the bias stands outside the rule (`use_bias=False`, "
        "`use_recurrent_bias=True`). LayerNorm-LSTM has no part in sets of one channel, where "
        "LayerNormalization gives 0. linear and MiniRocket train on training and validation "
        "samples. Seconds are of one processor core, compilation included.\n\n"
        + ", ".join(f"{name} {value}" for name, value in versions.items())
        + ".\n\n```sh\n"
        + "\n".join(
            dict.fromkeys([*(c for one in found.values() for c in one["commands"]), command])
        )
        + "\n```"
    )


if __name__ == "__main__":
    main()
