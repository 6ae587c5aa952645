"""Layers on a task, trained one after another, and what they leave in a directory.

results.json   settings, summary and all runs, see `SCHEMA`
report.md      scores beside the papers', and which claims hold
losses.png     training and test loss over epochs
score.png      the papers' score on validation and test over epochs, where it is not the loss
runs/          the best model of each run, and the state of a run that is not finished
"""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import keras
from rich import print
from rich.markdown import Markdown

from keras_momentum_rnn.atomic_files import read_results
from papers.experiments import report, runner, summary, training
from papers.experiments.constant import constant_scores
from papers.experiments.results_file import ResultsFile, surroundings
from papers.files import differences
from papers.tasks import Task

# Seconds after which report and pictures are written again during the runs.
REPORT_EVERY = 120

SCHEMA = {
    "commands": "the command lines of all calls",
    "settings": {
        "task": "its name",
        "options": "those of the task",
        "budget": "what was asked for, and what holds for all layers",
        "samples": "of training (of an epoch), validation and test",
        "metric": "the score that the papers compare; larger_is_better, or not",
        "chance": "what it and the loss are without the inputs; chance_means says how",
        "backend": "with device, devices and the versions",
    },
    "constant": "what the best output that does not depend on the inputs scores on test",
    "summary": "one row a layer, see `summary.rows`",
    "runs": {
        "layer": "the name in the comparison",
        "seed": "of weights, dropout and the order of samples",
        "parameters": "of the model, the trained ones",
        "setup": "class, units, arguments, optimizer, batch_size, epochs, model, source; "
        "recurrent_optimizer, that of S, where an orthogonal layer has one; rate_cut, where "
        "the recipe has one",
        "best_epoch": "that of the best validation score, counted from 1",
        "test": "loss and scores at that epoch",
        "diverged": "whether a NaN or infinite loss ended it",
        "processors": "how many epochs each trained, by its name; not in all files",
        "curve": "shorter than the epochs of its setup if the run is not finished; "
        "for each epoch loss and scores of training, validation_... and test_..., seconds "
        "of training, and the load average of the machine after it, not in all files",
    },
}


@dataclass(frozen=True)
class Comparison:
    """What is compared.

    Attributes:
        task: `Task`.
        setups: dict from the names of layers to a `tasks.Recipe` each.
        seeds: int, how many runs of each.
        output: directory of the results.
        budget: dict, what the results file says of the budget.
        title: str, of pictures and report, in words.
        command: str, the command line.
        sections: functions (results) -> (text for the report, dict of pictures by name), in
            addition to the common ones.
        claims: `Claim`s, on which the report gives a verdict.
        epochs_at_once: int, after how many epochs a run makes way for the others of its seed,
            so that all stand side by side early; None for all epochs.
        moved: bool, whether runs go on that began on another device, or with another version
            of the backend; `processors` of a run then names both.
    """

    task: Task
    setups: dict
    seeds: int
    output: Path | str
    budget: dict
    title: str
    command: str
    sections: tuple = ()
    claims: tuple = ()
    epochs_at_once: int | None = None
    moved: bool = False

    def settings(self) -> dict[str, Any]:
        """Return what must be equal for runs to be compared."""
        task = self.task
        return {
            "task": task.name,
            "options": without_places(task.options),
            "budget": self.budget,
            "samples": {
                split: len(getattr(task, split)) for split in ("train", "validation", "test")
            },
            "metric": task.metric,
            "larger_is_better": task.larger_is_better,
            "chance": task.chance,
            "chance_means": task.chance_means,
            "devices": 1,
            **surroundings(),
            **(began_with(self.output) if self.moved else {}),
        }


def began_with(output):
    """Return the device, and the version of the backend, of the runs in a folder."""
    settings = read_results(Path(output) / "results.json", {}).get("settings", {})
    names = "device", keras.config.backend()
    return {name: settings[name] for name in names if name in settings}


def without_places(options):
    """Return the options of a task for a results file: of folders only the names."""
    return {
        name: Path(value).name if name in ("folder", "data_dir") and value else value
        for name, value in options.items()
    }


def compare(comparison: Comparison) -> dict[str, Any]:
    """Train what is not trained yet, and write results, pictures and report.

    Args:
        comparison: `Comparison`.

    Returns:
        What results.json holds, see `SCHEMA`.

    Raises:
        ValueError: if the directory holds runs with other settings, or a results.json that
            is not a results file.
        OSError: if a file cannot be written.
    """
    task, setups, output = comparison.task, comparison.setups, Path(comparison.output)
    results = ResultsFile(
        folder=output,
        settings=comparison.settings(),
        command=comparison.command,
        key=("layer", "seed"),
        done=lambda run: len(run["curve"]),
        complete=completed,
        check=partial(other_setups, {n: setup.described() for n, setup in setups.items()}),
    )
    constant = results.content.get("constant")
    results.write(constant=constant_of(comparison) if constant is None else constant)

    def train(run, until, folder, after):
        setup = setups[run["layer"]]
        training.train(run, setup, task, folder, results.settings, after, until)

    def write_report():
        with results.locked():
            report.write(
                results.content,
                output,
                comparison.title,
                comparison.sections,
                comparison.claims,
            )

    def write_report_at_times():
        nonlocal written
        if time.monotonic() - written > REPORT_EVERY:
            write_report()
            written = time.monotonic()

    written = time.monotonic()
    runner.finish(
        turns(comparison),
        results,
        train,
        whole=lambda run: setups[run["layer"]].epochs,
        label=lambda run: f"{run['layer']}, seed {run['seed']}",
        sentence=lambda run: summary.sentence(run, task.metric),
        between=write_report_at_times,
    )
    write_report()
    print(Markdown(report.in_short(results.content, comparison.title, comparison.claims)))
    print(f"report.md, results.json and pictures are in {output}")
    return results.content


def turns(comparison):
    """Yield runs that have not begun and the epochs to which they are brought, in order."""
    setups, at_once = comparison.setups, comparison.epochs_at_once
    if at_once is None:
        for name, setup in setups.items():
            for seed in range(comparison.seeds):
                yield training.new_run(name, seed, setup), setup.epochs
        return
    longest = max(setup.epochs for setup in setups.values())
    for seed in range(comparison.seeds):
        for epoch in range(at_once, longest + at_once, at_once):
            for name, setup in setups.items():
                yield training.new_run(name, seed, setup), min(epoch, setup.epochs)


def other_setups(described, runs):
    """Return lines on what differs between runs and the described setups of their layers."""
    mine = [run for run in runs if run["layer"] in described]
    return [line for run in mine for line in differences(run["setup"], described[run["layer"]])]


def constant_of(comparison):
    """Return what the best constant output scores, evaluated as the runs are."""
    setup = next(iter(comparison.setups.values()))
    batch_size = training.evaluation_batch(comparison.task, setup)
    return constant_scores(comparison.task, batch_size)


def completed(results):
    """Return all that results.json holds, see `SCHEMA`."""
    found = {**results, "summary": summary.rows(results)}
    return {name: found[name] for name in SCHEMA}
