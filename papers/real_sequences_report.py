"""Write the report on the comparison on real sequences, as far as it has come.

    python -m papers.real_sequences_report runs/real_sequences --output runs/report

Reads the folder of results of real_sequences.py: a folder for each set with results.json. The
output directory receives report.md, mean_ranks.png, all_ranks.png, gain.png and progress.png. A
layer counts on a set when all its seeds are through. A set counts in ranks and means when the
plain layers, AdamLSTM and RMSPropLSTM are through on it, and a layer when it is on all those
sets. Then all layers are ranked over the sets on which every one is through.
"""

import argparse

from papers.command_line import (
    documented_parser,
    folder,
    new_folder,
    positive,
    publish,
    run_example,
)
from papers.contestants import CONTESTANTS, REFERENCES
from papers.perturbations import MEANINGS
from papers.ranks import critical_difference
from papers.real_sequences_pictures import gain_picture, progress_picture, rank_picture
from papers.real_sequences_scores import (
    FIRST,
    best,
    by_layer,
    counted,
    lacking,
    of_classes,
    ranked,
    read,
    recurrent,
    signed,
    updates_of,
    verdict,
    whole,
)
from papers.real_sequences_tables import (
    best_table,
    cost_table,
    mean_robustness,
    robustness,
    set_table,
    soon_table,
    tests,
)
from papers.real_sets import SETS


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
    if not found:
        raise ValueError(f"No layer has {options.seeds} runs on a set in {options.results}")
    output = options.output or options.results
    output.mkdir(parents=True, exist_ok=True)
    sets = counted(found)
    publish(output, text(found, sets, command), pictures(found, sets))


def pictures(found, sets):
    """Return the figures by the names of their files."""
    figures = {}
    for name, over in rankings(found, sets).items():
        ranks = ranked(found, over)
        spread = critical_difference(len(ranks), len(over))
        figures[name] = rank_picture(ranks, spread, len(over))
    if told := {n: found[n] for n in sets or found if of_classes(found[n])}:
        figures["gain.png"] = gain_picture(told)
    figures["progress.png"] = progress_picture(found)
    return figures


def rankings(found, sets):
    """Return the sets over which layers are ranked, by the name of the picture."""
    every = whole(found)
    over = {"mean_ranks.png": sets, "all_ranks.png": every if every != sets else ()}
    return {name: names for name, names in over.items() if len(names) > 1}


def text(found, sets, command):
    """Return the report as Markdown."""
    told = {name: found[name] for name in sets} or found
    parts = ["# Which layer, when? Layers on real sequences", share(found, sets)]
    parts += [finding(told), best_table(told)]
    for name, over in rankings(found, sets).items():
        parts += [
            f"## Ranks over {len(over)} sets",
            f"![Mean ranks]({name})",
            tests(found, over),
        ]
    if sets:
        parts += ["## What does a layer cost?", cost_table(found, sets)]
    present = [n for n in FIRST if any(n in content["layers"] for content in told.values())]
    if "LSTM" in present:
        parts += ["## How soon?", soon_table(told, present)]
    parts += [
        "## What if the sensor changes after training?",
        "Each trained model was tested again with its test inputs changed, the unit being the "
        "standard deviation of the channel in training: "
        + "; ".join(f"{name}: {meaning}" for name, meaning in MEANINGS.items())
        + ".",
    ]
    if any(of_classes(content) for content in told.values()):
        parts.append("![Accuracy when the inputs are divided by 4](gain.png)")
    if sets:
        everywhere = [n for n in REFERENCES if all(n in found[one]["layers"] for one in sets)]
        parts.append(mean_robustness(found, sets, [*by_layer(found, sets), *everywhere]))
    parts += [
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


def share(found, sets):
    """Return how much of the study is done, a paragraph; nothing of sets that are yours."""
    if not set(SETS) & set(found):
        return ""
    done = sum(len(content["layers"]) for content in found.values())
    pairs = done + sum(len(lacking(content)) for content in found.values())
    told = (
        f"**State: {len(sets)} of {len(SETS)} sets count** in ranks and means; {done} of "
        f"{pairs} pairs of a layer and a set that was begun are through."
    )
    if begun := [name for name in found if name not in sets]:
        told += f" Begun, and not counted: {', '.join(begun)}."
    if names := [name for name in SETS if name not in found]:
        told += f" Not begun, or without a finished layer: {', '.join(names)}."
    return told


def finding(found):
    """Return what the sets show, a paragraph."""
    verdicts = [word for content in found.values() if (word := verdict(content)[2])]
    counts = {word: verdicts.count(word) for word in ("ours", "even", "plain")}
    told = (
        "On each set, validation chooses one of our layers and one of the plain (SimpleRNN, "
        f"GRU, LSTM, and LSTM on normalised inputs). Ours scores higher on {counts['ours']} of "
        f"{len(verdicts)} sets, by more than both standard deviations together; the plain one "
        f"on {counts['plain']}; on {counts['even']} they are even."
    )
    return told + references_ahead(found)


def references_ahead(found):
    """Return on how many sets no recurrent layer comes up to a reference, a sentence."""
    told = []
    for name in REFERENCES:
        there = [
            content
            for content in found.values()
            if name in content["layers"] and best(content, CONTESTANTS)
        ]
        ahead = [
            content
            for content in there
            if signed(content, name) > signed(content, best(content, CONTESTANTS))
        ]
        if there:
            told.append(f"{name} on {len(ahead)} of {len(there)}")
    if not told:
        return ""
    return f" Without a recurrence, a model scores above every layer: {', '.join(told)} sets."


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
        "the scale-free forms the bias stands outside the rule (`scale_free=True`); in results "
        "and commands these are AdamLSTM and RMSPropLSTM, and those with the default bias are "
        "Default-AdamLSTM and Default-RMSPropLSTM. LayerNorm-LSTM has no part in sets of one "
        "channel, where LayerNormalization gives 0. linear and MiniRocket train on training "
        "and validation samples. Seconds are of one processor core, compilation included.\n\n"
        + ", ".join(f"{name} {value}" for name, value in versions.items())
        + ".\n\n```sh\n"
        + "\n".join(
            dict.fromkeys([*(c for one in found.values() for c in one["commands"]), command])
        )
        + "\n```"
    )


if __name__ == "__main__":
    main()
