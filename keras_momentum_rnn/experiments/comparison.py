"""Layers on a task, trained one after another, and what they leave in a directory.

results.json   settings, summary and all runs, see `SCHEMA`
report.md      what is seen, beside the papers' numbers
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

import keras
from rich import print
from rich import progress as bars

from keras_momentum_rnn.experiments import devices, report, summary, training
from keras_momentum_rnn.experiments.constant import constant_scores
from keras_momentum_rnn.experiments.settings import check_same, surroundings
from keras_momentum_rnn.tasks import Task
from keras_momentum_rnn.writing import differences, read_results, replaced, write_json

# Seconds after which report and pictures are written again, while runs go on.
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
        "setup": "class, units, arguments, optimizer, batch_size, epochs, model, source",
        "best_epoch": "that of the best validation score, counted from 1",
        "test": "loss and scores at that epoch",
        "diverged": "whether a loss that is no number ended it",
        "curve": "shorter than the epochs of its setup if the run goes on later; "
        "for each epoch loss and scores of training, validation_... and test_..., "
        "and seconds, those of training alone",
    },
}


@dataclass(frozen=True)
class Comparison:
    """What is compared.

    Attributes:
        task: `Task`.
        setups: dict from the names of layers to a `Setup` each.
        seeds: int, how many runs of each.
        output: directory of the results.
        budget: dict, what the results file says of the budget.
        title: str, of pictures and report.
        command: str, the command line.
        devices: int, over how many the batches are divided.
        sections: functions (results) -> (text for the report, dict of pictures by name), in
            addition to the common ones.
        epochs_at_once: int, after how many epochs a run makes way for the others of its seed,
            so that all stand side by side early; None for all epochs.
    """

    task: Task
    setups: dict
    seeds: int
    output: Path
    budget: dict
    title: str
    command: str
    devices: int = 1
    sections: tuple = ()
    epochs_at_once: int | None = None

    def settings(self):
        """Return what must be equal for runs to be compared."""
        task = self.task
        return {
            "task": task.name,
            "options": {name: shown(value) for name, value in task.options.items()},
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


def shown(value):
    """Return an option of a task as it stands in a results file: of a path its last part."""
    is_path = isinstance(value, str) and os.sep in value
    return Path(value).name if is_path else value


def compare(comparison):
    """Train what is not trained yet, and write results, pictures and report.

    Args:
        comparison: `Comparison`.

    Returns:
        What results.json holds, see `SCHEMA`.

    Raises:
        ValueError: if the directory holds runs with other settings, or a results.json that
            is no JSON.
        OSError: if a file cannot be written.
    """
    output, path = Path(comparison.output), Path(comparison.output) / "results.json"
    results = read_results(path, {"settings": comparison.settings(), "runs": []})
    check_settings(results, comparison)
    devices.check(comparison.task, comparison.setups, comparison.devices)
    output.mkdir(parents=True, exist_ok=True)
    if "constant" not in results:
        results["constant"] = constant_of(comparison)
    write_results(results, comparison)
    with progress_bar() as progress:
        train_all(results, comparison, progress)
    keep_best(results, output)
    text = report.write(results, output, comparison.title, comparison.sections)
    print(summary.table(results, comparison.title))
    print(text.partition("## What is seen")[2].partition("\n## ")[0].strip())
    print(f"report.md, results.json and pictures are in {output}")
    return results


def train_all(results, comparison, progress):
    """Bring every run to its end; keep results, and now and then the report, up to date."""
    setups, output, written = comparison.setups, Path(comparison.output), time.monotonic()
    records = {(run["layer"], run["seed"]): run for run in results["runs"]}
    total = comparison.seeds * sum(setup.epochs for setup in setups.values())
    bar = progress.add_task("", total=total)
    for name, seed, until in turns(comparison):
        setup, folder = setups[name], run_folder(output, name, seed)
        run = records.get((name, seed))
        if run is None or not training.ended(run, until):
            label = f"{name}, seed {seed}"
            progress.update(bar, description=label)
            run = training.new_run(name, seed, setup)
            # Outside of TensorFlow's scope, which belongs to the graph that this replaces.
            keras.utils.clear_session()
            with devices.distributed(comparison.devices):
                task, after_epoch = comparison.task, partial(progress.advance, bar)
                training.train(run, setup, task, folder, after_epoch, until)
            records[name, seed] = run
            results["runs"] = list(records.values())
            write_results(results, comparison)
            progress.console.print(f"{label}: {summary.sentence(run, comparison.task.metric)}")
            if time.monotonic() - written > REPORT_EVERY:
                report.write(results, output, comparison.title, comparison.sections)
                written = time.monotonic()
        if training.ended(run, setup.epochs):
            training.remove_state(folder)


def turns(comparison):
    """Yield layer, seed and the epoch to which its run is brought, in this order."""
    setups, at_once = comparison.setups, comparison.epochs_at_once
    if at_once is None:
        for name, setup in setups.items():
            for seed in range(comparison.seeds):
                yield name, seed, setup.epochs
        return
    longest = max(setup.epochs for setup in setups.values())
    for seed in range(comparison.seeds):
        for epoch in range(at_once, longest + at_once, at_once):
            for name, setup in setups.items():
                yield name, seed, min(epoch, setup.epochs)


def check_settings(results, comparison):
    """Raise a `ValueError` if there are runs with other settings."""
    different = differences(results["settings"], comparison.settings())
    for run in results["runs"]:
        setup = comparison.setups.get(run["layer"])
        if setup is not None:
            different += differences(run["setup"], setup.described())
    check_same(comparison.output, different)


def constant_of(comparison):
    """Return what the best constant output scores, evaluated as the runs are."""
    setup = next(iter(comparison.setups.values()))
    batch_size = training.evaluation_batch(comparison.task, setup)
    return constant_scores(comparison.task, batch_size)


def write_results(results, comparison):
    commands = [*results.get("commands", []), comparison.command]
    results["commands"] = list(dict.fromkeys(commands))
    results["summary"] = summary.rows(results)
    results["best"] = summary.best(results)
    ordered = {name: results[name] for name in SCHEMA}
    write_json(Path(comparison.output) / "results.json", ordered)


def run_folder(output, layer, seed):
    return Path(output) / "runs" / f"{layer}-{seed}"


def keep_best(results, output):
    """Copy the best model of all, if it was trained here and not only its record kept."""
    best = results["best"]
    model = best and run_folder(output, best["layer"], best["seed"]) / "best.keras"
    if model and model.exists():
        with replaced(output / "best.keras") as path:
            shutil.copyfile(model, path)


def progress_bar(unit="epoch"):
    """Return a bar that shows how much is done, the elapsed and the remaining time."""
    return bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=14),
        bars.TextColumn(unit),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
        speed_estimate_period=600,
    )
