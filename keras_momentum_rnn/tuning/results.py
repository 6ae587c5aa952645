"""What a search found: rows, files, a table."""

import csv
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import keras
import keras_tuner
from keras_tuner.engine.hyperparameters import Fixed, Float
from rich.table import Table

from keras_momentum_rnn.atomic_files import check_model_file, replaced, write_json
from keras_momentum_rnn.tuning import state
from keras_momentum_rnn.tuning.executions import read_record
from keras_momentum_rnn.tuning.values import LOGIT, plain, readable


@dataclass
class Row:
    """One trial that has ended.

    Attributes:
        trial: its name, which counts the trials.
        status: `"COMPLETED"` or `"FAILED"`.
        layer: name of the layer, of all in a stack joined by `" + "`.
        values: dict of the hyperparameters, as layers take them.
        chosen: list of the names that the search chose; the others were fixed.
        score: the objective, mean over executions, or `None`.
        spread: its standard deviation over executions (0 for one), or `None`.
        scores: list of the objective for each execution.
        parameters: number of the model's weights, or `None`.
        epochs: list, the epochs of each execution.
        seconds: the time of all executions.
        error: type and message of the error of a failed trial, or `None`.
    """

    trial: str
    status: str
    layer: str
    values: dict
    chosen: list
    score: float | None = None
    spread: float | None = None
    scores: list = field(default_factory=list)
    parameters: int | None = None
    epochs: list = field(default_factory=list)
    seconds: float = 0.0
    error: str | None = None

    @property
    def completed(self) -> bool:
        return self.status == "COMPLETED"

    def result(self) -> str:
        """Return the score and its spread, or the error, as text."""
        if not self.completed:
            return self.error
        spread = f" ± {self.spread:.2g}" if len(self.scores) > 1 else ""
        return f"{self.score:.4g}{spread}"

    def chosen_values(self) -> str:
        """Return what the search chose beside the layer, as text."""
        names = [name for name in self.chosen if plain(name) != "layer"]
        values = [self.values[name] for name in names]
        texts = [f"{v:.3g}" if isinstance(v, float) else str(v) for v in values]
        return " ".join(f"{name}={text}" for name, text in zip(names, texts))

    def line(self) -> str:
        """Return the row as one line of text."""
        return f"{self.layer} {self.chosen_values()}: {self.result()} ({self.seconds:.1f} s)"


def row_of(trial, folder):
    """Return the row of a trial of keras-tuner, whose record is in `folder`."""
    record = read_record(folder)
    executions = record["executions"]
    space, values = trial.hyperparameters.space, trial.hyperparameters.values
    # In the order of the space, which the wire does not keep for the values.
    names = [hp.name for hp in space if hp.name in values and not hp.name.startswith("tuner/")]
    given = [hp.name for hp in space if not isinstance(hp, Float)]
    values = readable({name: values[name] for name in names}, given)
    fixed = {hp.name.removesuffix(LOGIT) for hp in space if isinstance(hp, Fixed)}
    row = Row(
        trial=trial.trial_id,
        status=trial.status,
        layer=" + ".join(str(v) for k, v in values.items() if plain(k) == "layer"),
        values=values,
        chosen=[name for name in values if name not in fixed],
        scores=[execution["score"] for execution in executions],
        parameters=executions[0]["parameters"] if executions else None,
        epochs=[execution["epochs"] for execution in executions],
        seconds=round(sum(execution["seconds"] for execution in executions), 3),
    )
    if row.completed:
        # Without its record, a trial still has keras-tuner's score.
        row.score = statistics.fmean(row.scores or [trial.score])
        row.spread = statistics.stdev(row.scores) if len(row.scores) > 1 else 0.0
    else:
        row.error = record["error"] or (trial.message or "no message").splitlines()[-1]
    return row


def load_results(directory: Path | str) -> "Results":
    """Return the `Results` of a search, as far as it has come, from its files.

    Args:
        directory: that of `tune`.

    Raises:
        ValueError: if `directory` holds no search, or it cannot be read.

    Example:

    >>> from keras_momentum_rnn.tuning import load_results
    >>> load_results("no/such/folder")
    Traceback (most recent call last):
        ...
    ValueError: `directory` must be that of a search. Received: directory='no/such/folder'
    """
    directory = Path(directory)
    stored = state.load(directory)
    trials = {trial.trial_id: trial for trial in state.trials_of(stored)}
    ended = sorted(stored["oracle"]["end_order"] if trials else [], key=int)
    rows = [row_of(trials[n], directory / state.PROJECT / f"trial_{n}") for n in ended]
    settings = stored["settings"]
    return Results(directory, rows, keras_tuner.Objective(*settings["objective"]), settings)


class Results:
    """All trials of a search that have ended, and its best model.

    Args:
        directory: where the search wrote its files.
        rows: list of `Row`, in the order of the trials.
        objective: `keras_tuner.Objective`.
        settings: dict, what all trials shared.

    Attributes:
        best: the best completed `Row`, or `None`.

    Example: see `tune`.
    """

    def __init__(
        self,
        directory: Path | str,
        rows: list[Row],
        objective: keras_tuner.Objective,
        settings: dict[str, Any],
    ) -> None:
        self.directory = Path(directory)
        self.rows = rows
        self.objective = objective
        self.settings = settings
        self.best = next(iter(self.ranked()), None)

    def ranked(self) -> list[Row]:
        """Return the completed rows, the best first."""
        sign = -1 if self.objective.direction == "max" else 1
        completed = [row for row in self.rows if row.completed]
        return sorted(completed, key=lambda row: sign * row.score)

    def best_by_layer(self) -> list[Row]:
        """Return the best completed row of each layer, the best layer first."""
        best = {}
        for row in self.ranked():
            best.setdefault(row.layer, row)
        return list(best.values())

    def best_model(self) -> keras.Model:
        """Return the best model of the search, with its weights of the best epoch.

        Raises:
            ValueError: if best.keras is missing or damaged.
        """
        path = self.directory / "best.keras"
        try:
            check_model_file(path)
        except ValueError as error:
            raise ValueError(f"{error}. To write it again, repeat the search.") from error
        return keras.saving.load_model(path)

    def table(self) -> Table:
        """Return a `rich` table, best by layer."""
        table = Table(title=f"Best by layer: {self.objective.name}")
        table.add_column("Layer", no_wrap=True)
        for name in ("Trials", "Failed", self.objective.name, "Parameters", "Seconds"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("Hyperparameters", min_width=22)
        for row in self.best_by_layer():
            mine = [other for other in self.rows if other.layer == row.layer]
            table.add_row(
                row.layer,
                str(len(mine)),
                str(sum(not other.completed for other in mine)),
                row.result(),
                "-" if row.parameters is None else f"{row.parameters:,}",
                f"{row.seconds:.1f}",
                row.chosen_values(),
            )
        return table

    def write(self) -> None:
        """Write results.csv and results.json."""
        table = []
        for row in self.rows:
            cells = asdict(row)
            for name in ("values", "chosen", "scores", "epochs"):
                del cells[name]
            table.append({**cells, **row.values, **cells})  # the cells first, and as they are
        names = dict.fromkeys(name for cells in table for name in cells)
        with replaced(self.directory / "results.csv") as new, new.open("w") as file:
            writer = csv.DictWriter(file, list(names), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
        found = {
            "objective": {"name": self.objective.name, "direction": self.objective.direction},
            "versions": {
                "backend": keras.config.backend(),
                "keras": keras.__version__,
                "keras_tuner": keras_tuner.__version__,
            },
            "settings": {k: v for k, v in self.settings.items() if k not in ("space", "model")},
            "best": self.best and self.best.trial,
            "trials": [asdict(row) for row in self.rows],
        }
        write_json(self.directory / "results.json", found)
