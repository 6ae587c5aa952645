"""The report of a comparison, in Markdown, with its pictures."""

import math
from pathlib import Path

from papers.experiments import plots
from papers.experiments.claims import RULE, verdicts
from papers.experiments.summary import BASELINE, going_on, mean_and_spread, number, of_layer
from papers.files import write_text
from papers.presentation import markdown_table, save_figures
from papers.tasks.paper_results import published

# What a budget that repeats a table names: its rows, its seeds, the updates of each run.
OF_THE_PAPER = ("rows in the paper", "seeds in the paper", "updates in the paper")


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
    parts = [f"# {title}", share_of_paper(results), head(results), scores(results)]
    parts.append(seen(results, claims))
    for section in sections:
        text, drawn = section(results)
        parts.append(text)
        figures |= drawn
    parts += [notes(output), pictures(figures), training(results)]
    save_figures(output, figures)
    text = "\n\n".join(part for part in parts if part) + "\n"
    write_text(Path(output) / "report.md", text)
    return text


def in_short(results, title, claims=()):
    """Return what a terminal shows of the report."""
    return f"# {title}\n\n{scores(results)}\n\n{seen(results, claims)}"


def head(results):
    """Return the commands, the sizes and the budget."""
    settings = results["settings"]
    commands = "\n\n".join(f"`{command}`" for command in results["commands"])
    sizes = ", ".join(f"{split} {count:,}" for split, count in settings["samples"].items())
    budget = dict(settings["budget"])
    told = [f"Samples: {sizes}.", f"Budget: {budget.pop('name')}."]
    if "rows in the paper" in budget:  # `share_of_paper` tells these
        budget = {name: budget[name] for name in budget if name not in OF_THE_PAPER}
    told += [f"{name.capitalize()}: {value}." for name, value in budget.items()]
    versions = ", ".join(f"{name} {settings[name]}" for name in ("keras", settings["backend"]))
    told.append(f"Run with {versions}, on {settings['device']}.")
    return f"{commands}\n\n{' '.join(told)}"


def share_of_paper(results):
    """Return what share of a paper's updates was run, or nothing if no table is repeated."""
    budget = results["settings"]["budget"]
    if "rows in the paper" not in budget:
        return ""
    rows, seeds, updates = (budget[name] for name in OF_THE_PAPER)
    done, further, whole = 0, 0, 0
    for run in results["runs"]:
        trained = min(len(run["curve"]) * updates_of_an_epoch(results, run), updates)
        if run["layer"] in rows and run["seed"] < seeds:
            done += trained
            whole += run["diverged"] or len(run["curve"]) >= run["setup"]["epochs"]
        else:
            further += trained
    total = len(rows) * seeds * updates
    text = (
        f"Share of the paper's budget that was run: {done / total:.1%}, {done:,} of {total:,} "
        f"updates ({len(rows)} rows, seeds: {seeds}, {updates:,} updates each); {whole} of "
        f"{len(rows) * seeds} runs to their end."
    )
    return text + (f" In further runs, {further:,} updates." if further else "")


def updates_of_an_epoch(results, run):
    return math.ceil(results["settings"]["samples"]["train"] / run["setup"]["batch_size"])


def scores(results):
    """Return the table of scores, the papers' beside ours."""
    summary, metric = results["summary"], results["settings"]["metric"]
    theirs = {row["layer"]: of_the_papers(results, row["layer"]) for row in summary}
    raced = BASELINE in theirs
    training = {run["layer"] for run in results["runs"] if going_on(run)}
    columns = ["layer", "units", "parameters", f"test {metric}", "range"]
    columns += [f"epochs to {BASELINE}'s best"] if raced else []
    cells = [
        [
            row["layer"],
            f"{row['units']}",
            f"{row['parameters']:,}",
            mean_and_spread(row),
            range_text(row),
            *([progress_text(row, training)] if raced else []),
            ", ".join(map(cell, theirs[row["layer"]])) or "-",
        ]
        for row in summary
    ]
    text = f"Test {metric} of the epoch that is best on validation, {seeds_text(summary)}."
    if raced:
        text += " In brackets: seconds of training until then, the first compilation included."
    diverged = [
        f"{row['layer']} ({row['diverged']} of {row['runs']} runs)"
        for row in summary
        if row["diverged"]
    ]
    if diverged:
        text += f" Diverged: {', '.join(diverged)}."
    behind = len(results["runs"]) - sum(row["runs"] for row in summary)
    if behind:
        text += f" Runs left out, more than an epoch behind others of their layer: {behind}."
    if metric in results["constant"]:
        constant = number(results["constant"][metric])
        text += f" The best constant output scores {constant} on test."
    sources = dict.fromkeys(p.source for found in theirs.values() for p in found)
    if sources:
        text += f" Papers: {'; '.join(sources)}; their sizes and budgets differ."
    return f"{markdown_table([*columns, 'papers'], cells)}\n\n{text}"


def seeds_text(summary):
    """Return how many seeds the layers have, as text."""
    fewest, most = (choose(row["runs"] for row in summary) for choose in (min, max))
    if most == 1:
        return "one seed"
    several = most if most == fewest else f"{fewest} to {most}"
    return f"mean ± standard deviation and range of {several} seeds"


def range_text(row):
    """Return the range of a row's scores, of one run nothing."""
    if row["test_sd"] is None:
        return "-"
    return " to ".join(map(number, row["test_range"]))


def progress_text(row, training):
    """Return when a row reached the LSTM's best, as text; the layers in `training` go on."""
    if row["epochs_to_lstm_best"] is None:
        return "not yet" if {row["layer"], BASELINE} & training else "not reached"
    return f"{row['epochs_to_lstm_best']} ({row['seconds_to_lstm_best']:.0f} s)"


def of_the_papers(results, layer):
    """Return the papers' numbers for the layer that is the first word of a row's name.

    If the name has a momentum, too, those for this momentum; else those of its size, if any.
    """
    settings, setup = results["settings"], of_layer(results["runs"], layer)[0]["setup"]
    name, *momentum = layer.split()[:2]
    task, options = settings["task"], settings["options"]
    if task == "mnist" and options.get("permute"):
        task = "pmnist"
    found = published(task, name, options.get("variant"))
    if momentum:
        return [p for p in found if p.what.split()[-1:] == momentum]
    return [p for p in found if p.units == setup["units"]] or found


def cell(result):
    """Return a published number as text."""
    text = f"{result.value:.4f}" if 0.5 < result.value < 1 else number(result.value)
    if result.spread is not None:
        text += f" ± {result.spread:.2g}"
    about = [f"{result.units} units"] + ([result.what] if result.what else [])
    return f"{text} ({', '.join(about)})"


def seen(results, claims=()):
    """Return the claims with a verdict each, as a section; an empty text if there are none."""
    lines = verdicts(results, claims)
    if not lines:
        return ""
    return "\n".join(["## Which claims hold?", "", *lines, *(["", RULE] if claims else [])])


def notes(output):
    """Return notes.md as a section; an empty text if there is none."""
    path = Path(output) / "notes.md"
    if not path.exists():
        return ""
    return "## Notes\n\n" + path.read_text(encoding="utf-8", errors="replace").strip()


def pictures(figures):
    return "\n\n".join(f"![{name.removesuffix('.png')}]({name})" for name in figures)


def training(results):
    """Return how each layer was trained, as a table, and on which processors."""
    columns = ["layer", "hyperparameters", "optimizer", "batch", "epochs", "seconds per epoch"]
    cells = []
    for row in results["summary"]:
        runs = [run for run in results["runs"] if run["layer"] == row["layer"]]
        setup, seconds = runs[0]["setup"], row["seconds_per_epoch"]
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
    parts = ["## Training", markdown_table(columns, cells), machines(results["runs"])]
    return "\n\n".join(part for part in parts if part)


def machines(runs):
    """Return on which processors the seconds were measured, and under which load."""
    epochs, loads = {}, []
    for run in runs:
        for name, count in run.get("processors", {}).items():
            epochs[name] = epochs.get(name, 0) + count
        loads += [epoch["load"] for epoch in run["curve"] if "load" in epoch]
    if not epochs:
        return ""
    told = "; ".join(f"{name} ({count} epochs)" for name, count in epochs.items())
    under = f", load average {min(loads):.1f} to {max(loads):.1f}" if loads else ""
    known = sum(epochs.values()) >= sum(len(run["curve"]) for run in runs)
    return f"Seconds: on {told}{under}." + (
        "" if known else " Of other epochs the processor is not known."
    )


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
