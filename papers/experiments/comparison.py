"""Layers on a task, trained one after another, and what they leave in a directory.

results.json   settings, summary and all runs, see `SCHEMA`
report.md      scores beside the papers', and which claims hold
losses.png     training and test loss over epochs
score.png      the papers' score on validation over epochs, where it is not the loss
heat_map.png   of an ablation: the score over momentum and step size
best.keras     the best model of all, by validation
runs/          the best model of each run, and the state of a run that is not finished
"""

import os
import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import keras
from rich import print
from rich.markup import escape

from keras_momentum_rnn.atomic_files import check_model_file, differences, replaced
from papers.experiments import devices, report, runner, summary, training
from papers.experiments.constant import constant_scores
from papers.experiments.results_file import ResultsFile, surroundings
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
    "best": "layer, seed and test scores of best.keras",
    "runs": {
        "layer": "the name in the comparison",
        "seed": "of weights, dropout and the order of samples",
        "parameters": "of the model, the trained ones",
        "setup": "class, units, arguments, optimizer, batch_size, epochs, model, source; "
        "recurrent_optimizer, that of S, where an orthogonal layer has one; "
        "averaging_patience and rate_cut, where the recipe has them",
        "best_epoch": "that of the best validation score, counted from 1",
        "test": "loss and scores at that epoch",
        "diverged": "whether a NaN or infinite loss ended it",
        "curve": "shorter than the epochs of its setup if the run is not finished; "
        "for each epoch loss and scores of training, validation_... and test_..., "
        "and seconds, of training only",
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
        devices: int, over how many the batches are divided. On PyTorch the program must run as
            one process for each, see `devices.start`; the best model of a stateful task then
            takes as many rows as one of them.
        sections: functions (results) -> (text for the report, dict of pictures by name), in
            addition to the common ones.
        claims: `Claim`s, on which the report gives a verdict.
        epochs_at_once: int, after how many epochs a run makes way for the others of its seed,
            so that all stand side by side early; None for all epochs.
    """

    task: Task
    setups: dict
    seeds: int
    output: Path | str
    budget: dict
    title: str
    command: str
    devices: int = 1
    sections: tuple = ()
    claims: tuple = ()
    epochs_at_once: int | None = None

    def settings(self) -> dict[str, Any]:
        """Return what must be equal for runs to be compared."""
        task = self.task
        return {
            "task": task.name,
            "options": {name: without_folders(value) for name, value in task.options.items()},
            "budget": self.budget,
            "samples": {
                split: len(getattr(task, split)) for split in ("train", "validation", "test")
            },
            "metric": task.metric,
            "larger_is_better": task.larger_is_better,
            "chance": task.chance,
            "chance_means": task.chance_means,
            "devices": self.devices,
            **surroundings(),
        }


def without_folders(value):
    """Return an option of a task for a results file: only the last part of a path."""
    is_path = isinstance(value, str) and os.sep in value
    return Path(value).name if is_path else value


def compare(comparison: Comparison) -> dict[str, Any]:
    """Train what is not trained yet, and write results, pictures and report.

    Where several processes train, as on several devices on PyTorch, each of them must call
    this. The first one also writes the results, and tells the others what to train.

    Args:
        comparison: `Comparison`.

    Returns:
        What results.json holds, see `SCHEMA`; None in all processes but the first.

    Raises:
        ValueError: if the directory holds runs with other settings, or a results.json that
            is not a results file.
        OSError: if a file cannot be written.
    """
    task, setups, output = comparison.task, comparison.setups, Path(comparison.output)
    process = devices.this_process(comparison.devices)
    devices.check(task, setups, comparison.devices)

    def train(run, until, folder, settings, after=lambda: None):
        with devices.distributed(comparison.devices) as process:
            setup = setups[run["layer"]]
            training.train(run, setup, task, folder, settings, after, until, process)

    if not process.first:
        with devices.joined(process):
            while order := process.from_first(None):
                keras.utils.clear_session()
                train(*order)
        return None
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
    written = time.monotonic()

    def train_together(run, until, folder, after):
        order = run, until, folder, results.settings
        process.from_first(order)
        train(*order, after)

    def write_report():
        report.write(
            results.content, output, comparison.title, comparison.sections, comparison.claims
        )

    def between():
        nonlocal written
        if time.monotonic() - written > REPORT_EVERY:
            write_report()
            written = time.monotonic()

    # Not before: what Keras evaluates while processes are joined, all must evaluate.
    with devices.joined(process):
        runner.finish(
            turns(comparison),
            results,
            train_together,
            whole=lambda run: setups[run["layer"]].epochs,
            label=lambda run: f"{run['layer']}, seed {run['seed']}",
            sentence=lambda run: summary.sentence(run, task.metric),
            between=between,
        )
        process.from_first(None)
    keep_best(results)
    write_report()
    print(summary.table(results.content, comparison.title))
    print(report.seen(results.content, comparison.claims))
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
    found = {"constant": results["settings"]["chance"], **results}
    found |= {"summary": summary.rows(results), "best": summary.best(results)}
    return {name: found[name] for name in SCHEMA}


def keep_best(results):
    """Copy the best model of all, if its file is here.

    A damaged file is reported and not copied, so an earlier whole copy stays.
    """
    best = results.content["best"]
    model = best and results.run_folder(best) / "best.keras"
    if not model or not model.exists():
        return
    try:
        check_model_file(model)
    except ValueError as error:
        print(
            escape(
                f"{error}\nSo {results.folder / 'best.keras'} was not updated. To train "
                f"this model again, remove its run ({best['layer']}, seed {best['seed']}) from "
                "results.json and repeat the command."
            )
        )
        return
    with replaced(results.folder / "best.keras") as path:
        shutil.copyfile(model, path)
