"""The report of a comparison, in Markdown, with its pictures."""

import math
from pathlib import Path

from keras_momentum_rnn.atomic_files import replaced
from papers.experiments import plots
from papers.experiments.claims import verdicts
from papers.experiments.summary import (
    BASELINE,
    diverged_text,
    going_on,
    has_baseline,
    mean_and_spread,
    number,
    of_layer,
    progress_text,
)
from papers.presentation import markdown_table, save_figures
from papers.tasks.paper_results import published

IDENTICAL = {"RuleRNN": "SimpleRNN", "RuleGRU": "GRU", "RuleLSTM": "LSTM"}
# Words of older results files, and those of today's reports.
WORDS = {"numbers of the layers": "hyperparameters"}


def write(results, output, title, sections=(), claims=()):
    """Write report.md and the pictures to a directory, and return the text.

    Args:
        results: what results.json holds.
        output: `Path`.
        title: str.
        sections: functions (results) -> (Markdown, dict from file names to figures).
        claims: `Claim`s.
    """
    figures = {"losses.png": plots.losses_figure(results, title)}
    if results["settings"]["metric"] != "loss":
        figures["score.png"] = plots.score_figure(results, title)
    parts = [head(results, title), scores(results), seen(results, claims)]
    for section in sections:
        text, drawn = section(results)
        parts.append(text)
        figures |= drawn
    parts.append(notes(output))
    parts += [pictures(figures), training(results)]
    save_figures(output, figures)
    text = "\n\n".join(part for part in parts if part) + "\n"
    with replaced(Path(output) / "report.md") as path:
        path.write_text(text, encoding="utf-8")
    return text


def notes(output):
    """Return notes.md as a section; an empty text if there is none."""
    path = Path(output) / "notes.md"
    if not path.exists():
        return ""
    return "## Notes\n\n" + path.read_text(encoding="utf-8", errors="replace").strip()


def head(results, title):
    settings = results["settings"]
    sizes = ", ".join(f"{split} {count:,}" for split, count in settings["samples"].items())
    budget = "; ".join(
        f"{WORDS.get(name, name)}: {value}" for name, value in settings["budget"].items()
    )
    versions = ", ".join(f"{name} {settings[name]}" for name in ("keras", settings["backend"]))
    devices = f"{settings['devices']} x {settings['device']}"
    commands = "\n\n".join(f"`{command}`" for command in results["commands"])
    parts = [f"# {title}", share_of_paper(results), commands]
    parts.append(f"Samples: {sizes}. Budget: {budget}. {versions}, {devices}.")
    return "\n\n".join(part for part in parts if part)


def share_of_paper(results):
    """Return what share of a paper's updates was run, or nothing if no table is repeated.

    A budget that repeats a table names its rows, its seeds and the updates of each run.
    """
    budget = results["settings"]["budget"]
    if "rows in the paper" not in budget:
        return ""
    rows, seeds = budget["rows in the paper"], budget["seeds in the paper"]
    updates = budget["updates in the paper"]
    done, further, whole = 0, 0, 0
    for run in results["runs"]:
        epoch = math.ceil(results["settings"]["samples"]["train"] / run["setup"]["batch_size"])
        trained = min(len(run["curve"]) * epoch, updates)
        if run["layer"] in rows and run["seed"] < seeds:
            done += trained
            whole += run["diverged"] or trained == updates
        else:
            further += trained
    total = len(rows) * seeds * updates
    text = (
        f"Share of the paper's budget that was run: {done / total:.1%}, {done:,} of {total:,} "
        f"updates ({len(rows)} rows, seeds: {seeds}, {updates:,} updates each); {whole} of "
        f"{len(rows) * seeds} runs to their end."
    )
    return text + (f" In further runs, {further:,} updates." if further else "")


def scores(results):
    """Return the table of scores, the papers' beside ours."""
    settings = results["settings"]
    metric, variant = settings["metric"], settings["options"].get("variant")
    theirs = {
        row["layer"]: of_column(
            published(settings["task"], layer_class(results, row["layer"]), variant),
            row["layer"],
        )
        for row in results["summary"]
    }
    raced = has_baseline(results)
    head = ["layer", "units", "parameters", f"test {metric}", "range"]
    head += [f"epochs to {BASELINE}'s best"] if raced else []
    cells = [
        [
            row["layer"],
            f"{row['units']}",
            f"{row['parameters']:,}",
            mean_and_spread(row),
            range_text(row),
            *([progress_text(row)] if raced else []),
            ", ".join(map(cell, theirs[row["layer"]])) or "-",
        ]
        for row in results["summary"]
    ]
    fewest, seeds = (choose(row["runs"] for row in results["summary"]) for choose in (min, max))
    several = seeds if seeds == fewest else f"{fewest} to {seeds}"
    told = (
        f"mean ± standard deviation and range of {several} seeds" if seeds > 1 else "one seed"
    )
    text = f"Test {metric} of the epoch that is best on validation, {told}."
    if raced:
        text += " In brackets: seconds of training until then."
    if diverged := diverged_text(results["summary"]):
        text += f" {diverged}"
    text += baseline_text(results)
    sources = dict.fromkeys(p.source for found in theirs.values() for p in found)
    if sources:
        text += f" Papers: {'; '.join(sources)}; their sizes and budgets differ."
    return markdown_table([*head, "papers"], cells) + "\n\n" + text


def range_text(row):
    """Return the range of a row's scores, of one run nothing."""
    if row["test_sd"] is None:
        return "-"
    return " to ".join(map(number, row["test_range"]))


def baseline_text(results):
    """Return what a layer must beat: a constant output, or chance if that was not measured."""
    settings = results["settings"]
    metric = settings["metric"]
    constant = results.get("constant", {}).get(metric)
    if constant is not None:
        return f" The best constant output scores {number(constant)} on test."
    chance = settings["chance"].get(metric)
    if chance is None:
        return ""
    return f" Chance: {number(chance)} ({settings['chance_means']})."


def of_column(found, layer):
    """Return published numbers; of those by momentum the one that a layer's name ends with."""
    named = [result for result in found if result.what.split()[-1:] == layer.split()[1:2]]
    return named or found


def layer_class(results, layer):
    """Return the class of a layer, whose name in the comparison may say more.

    A layer with the rule Identity counts as that of Keras, whose equations it has.
    """
    setup = next(run["setup"] for run in results["runs"] if run["layer"] == layer)
    name = setup["class"]
    if setup["arguments"].get("rule") == {"class": "Identity"}:
        return IDENTICAL.get(name, name)
    return name


def cell(result):
    """Return a published number as text."""
    text = number(result.value)
    if 0.5 < result.value < 1:
        text = f"{result.value:.4f}"
    if result.spread is not None:
        text += f" ± {result.spread:.2g}"
    about = [f"{result.units} units"] + ([result.what] if result.what else [])
    return f"{text} ({', '.join(about)})"


def seen(results, claims=()):
    lines = verdicts(results, claims)
    if not lines:
        return ""
    rule = (
        "We call a layer better if the difference of the means exceeds the sum of the two "
        "standard deviations."
    )
    return "\n".join(["## Which claims hold?", "", *lines, *(["", rule] if claims else [])])


def pictures(figures):
    return "\n\n".join(f"![{name.removesuffix('.png')}]({name})" for name in figures)


def training(results):
    """Return how each layer was trained, as a table."""
    head = ["layer", "hyperparameters", "optimizer", "batch", "epochs", "seconds per epoch"]
    cells = []
    for row in results["summary"]:
        runs = of_layer(results["runs"], row["layer"])
        setup = runs[0]["setup"]
        seconds = row["seconds_per_epoch"]
        optimizer = listed(setup["optimizer"])
        if "recurrent_optimizer" in setup:
            optimizer += f"; of S: {listed(setup['recurrent_optimizer'])}"
        cells.append(
            [
                row["layer"],
                listed(setup["arguments"]),
                optimizer,
                f"{setup['batch_size']}",
                epochs_text(runs),
                "-" if seconds is None else f"{seconds:.2f}",
            ]
        )
    return f"## Training\n\n{markdown_table(head, cells)}"


def epochs_text(runs):
    """Return the epochs of a layer's runs; if some are not at their end, how many they have."""
    whole, done = runs[0]["setup"]["epochs"], [len(run["curve"]) for run in runs]
    if not any(map(going_on, runs)):
        return f"{whole}"
    span = f"{min(done)} to {max(done)}" if len({*done}) > 1 else f"{done[0]}"
    return f"{span} of {whole}"


def listed(values):
    """Return a dict as text, of a class its name alone."""
    told = [
        f"{value}" if name == "class" else f"{name} {as_text(value)}"
        for name, value in values.items()
    ]
    return ", ".join(told) or "defaults"


def as_text(value):
    """Return an argument as text: of an object, described as a dict, name and arguments."""
    if not isinstance(value, dict) or not {"class", "class_name"} & {*value}:
        return f"{value}"
    if "class_name" in value:  # as Keras serialises
        name, numbers = value["class_name"].rpartition(">")[2], value.get("config", {})
    else:
        name, numbers = value["class"], {k: v for k, v in value.items() if k != "class"}
    return f"{name} ({', '.join(f'{key} {as_text(n)}' for key, n in numbers.items())})"
