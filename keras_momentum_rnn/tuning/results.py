"""What a search found: rows, files, a table."""

import csv
import io
import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

import keras
import keras_tuner
from keras_tuner.engine.hyperparameters import Fixed
from rich.table import Table

from keras_momentum_rnn.tuning import plots
from keras_momentum_rnn.tuning.values import LOGIT, plain, readable
from keras_momentum_rnn.writing import read_json, replaced, write_json

COMPLETED = "COMPLETED"


@dataclass
class Row:
    """One trial.

    Attributes:
        trial: its name, the number of the trial.
        status: `"COMPLETED"`, `"FAILED"`, or `"RUNNING"` where it was interrupted.
        layer: name of the layer, of all in a stack joined by `" + "`.
        values: dict of the hyperparameters, as layers take them.
        score: the objective, mean over executions, or `None`.
        spread: its standard deviation over executions (0 for one), or `None`.
        chosen: list of the names that the search chose; the others were fixed.
        scores: list of the objective for each execution.
        parameters: number of the model's weights, or `None`.
        epochs: list, the epochs of each execution.
        seconds: the time of all executions.
        error: the last line of the error of a broken trial, or `None`.
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
    def completed(self):
        return self.status == COMPLETED

    def numbers(self):
        """Return the numbers that the search chose as text."""
        names = [name for name in self.chosen if plain(name) != "layer"]
        return " ".join(f"{name}={number(self.values[name])}" for name in names)

    def line(self):
        """Return the row as one line of text."""
        end = f"{self.score:.4g} ± {self.spread:.2g}" if self.completed else self.error
        return f"{self.layer} {self.numbers()}: {end} ({self.seconds:.1f} s)"


def number(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def row_of(trial, folder):
    """Return the row of a trial of keras-tuner, whose record is in `folder`."""
    record = read_json(Path(folder) / "record.json", {})
    executions = record.get("executions", [])
    space, values = trial.hyperparameters.space, trial.hyperparameters.values
    # In the order of the space, which the wire does not keep for the values.
    names = [name for name in dict.fromkeys(hp.name for hp in space) if name in values]
    values = readable({n: values[n] for n in names if not n.startswith("tuner/")})
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
        row.score = statistics.fmean(row.scores)
        row.spread = statistics.stdev(row.scores) if len(row.scores) > 1 else 0.0
    elif trial.status == "FAILED":
        message = record.get("error") or trial.message or "no message"
        row.error = message.strip().splitlines()[-1]
    return row


class Results:
    """All trials of a search, and its best model.

    Args:
        directory: where the search wrote its files.
        rows: list of `Row`, in the order of the trials.
        objective: `keras_tuner.Objective`.
        settings: dict, what all trials shared.

    Attributes:
        best: the best completed `Row`, or `None`.

    Example: see `tune`.
    """

    def __init__(self, directory, rows, objective, settings):
        self.directory = Path(directory)
        self.rows = rows
        self.objective = objective
        self.settings = settings
        self.best = next(iter(self.ranked()), None)

    def ranked(self):
        """Return the completed rows, the best first."""
        sign = -1 if self.objective.direction == "max" else 1
        return sorted(
            (row for row in self.rows if row.completed), key=lambda row: sign * row.score
        )

    def best_by_layer(self):
        """Return the best completed row of each layer, the best layer first."""
        best = {}
        for row in self.ranked():
            best.setdefault(row.layer, row)
        return list(best.values())

    def best_model(self):
        """Return the best model of the search, with its weights of the best epoch."""
        return keras.saving.load_model(self.directory / "best.keras")

    def table(self):
        """Return a `rich` table, best by layer."""
        table = Table(title=f"Best by layer: {self.objective.name}")
        for name in ("Layer", "Trials", "Broken", self.objective.name, "Parameters", "Seconds"):
            left = name == "Layer"
            table.add_column(name, justify="left" if left else "right", no_wrap=left)
        table.add_column("Numbers", min_width=22)
        for row in self.best_by_layer():
            mine = [other for other in self.rows if other.layer == row.layer]
            spread = f" ± {row.spread:.2g}" if len(row.scores) > 1 else ""
            table.add_row(
                row.layer,
                str(len(mine)),
                str(sum(other.status == "FAILED" for other in mine)),
                f"{row.score:.4g}{spread}",
                f"{row.parameters:,}",
                f"{row.seconds:.1f}",
                row.numbers(),
            )
        return table

    def searched(self):
        """Return the names that the search chose, in any trial."""
        return list(dict.fromkeys(name for row in self.rows for name in row.chosen))

    def write(self):
        """Write results.csv, results.json and the pictures that the trials allow."""
        names = list(dict.fromkeys(name for row in self.rows for name in row.values))
        own = ("trial", "status", "layer", "score", "spread", "parameters", "seconds", "error")
        # A stack has a layer under each prefix; one layer's name is that of the column.
        names = [name for name in names if name != "layer"]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*own, *names])
        for row in self.rows:
            writer.writerow(
                [getattr(row, n) for n in own] + [row.values.get(n, "") for n in names]
            )
        with replaced(self.directory / "results.csv") as new:
            new.write_text(text.getvalue())
        found = {
            "objective": {"name": self.objective.name, "direction": self.objective.direction},
            "versions": {
                "backend": keras.config.backend(),
                "keras": keras.__version__,
                "keras_tuner": keras_tuner.__version__,
            },
            "settings": {k: v for k, v in self.settings.items() if k != "space"},
            "best": self.best and self.best.trial,
            "trials": [asdict(row) for row in self.rows],
        }
        write_json(self.directory / "results.json", json.loads(json.dumps(found)))
        for name, figure in (
            ("heat_map.png", plots.plot_heat_map(self)),
            ("parallel_coordinates.png", plots.plot_parallel_coordinates(self)),
        ):
            if figure is not None:
                with replaced(self.directory / name) as new:
                    figure.savefig(new, dpi=120)
