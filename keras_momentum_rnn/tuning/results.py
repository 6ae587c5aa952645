"""What a search found: its trials, a table, a file."""

import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path

import keras
import keras_tuner
import pandas as pd
from keras_tuner.engine.hyperparameters import Fixed

from keras_momentum_rnn.atomic_files import replaced
from keras_momentum_rnn.tuning import state
from keras_momentum_rnn.tuning.executions import read_record
from keras_momentum_rnn.tuning.space import layer_value, plain, shown


@dataclass
class Row:
    """One trial that has ended.

    Attributes:
        trial: its name, which counts the trials.
        status: `"COMPLETED"` or `"FAILED"`.
        layer: name of the layer, of several joined by `" + "`.
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

    def chosen_values(self) -> str:
        """Return what the search chose beside the layer, as text."""
        values = {name: self.values[name] for name in self.chosen if plain(name) != "layer"}
        return " ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in values.items()
        )

    def line(self) -> str:
        """Return the row as one line of text."""
        result = self.error
        if self.completed:
            spread = f" ± {self.spread:.2g}" if len(self.scores) > 1 else ""
            result = f"{self.score:.4g}{spread}"
        return f"{self.layer} {self.chosen_values()}: {result} ({self.seconds:.1f} s)"


def row_of(trial, folder):
    """Return the row of a trial of keras-tuner, whose record is in `folder`."""
    record = read_record(folder)
    executions = record["executions"]
    in_search = trial.hyperparameters.values
    # In the order of the space: a worker sends values in any order.
    active = [
        hp
        for hp in trial.hyperparameters.space
        if hp.name in in_search and not hp.name.startswith("tuner/")
    ]
    values = {shown(hp.name): layer_value(hp.name, in_search[hp.name]) for hp in active}
    fixed = {shown(hp.name) for hp in active if isinstance(hp, Fixed)}
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

    Example: see `tune`.
    """
    directory = Path(directory)
    stored = state.load(directory)
    trials = {trial.trial_id: trial for trial in state.trials_of(stored)}
    ended = sorted(stored["oracle"]["end_order"] if trials else [], key=int)
    rows = [row_of(trials[n], directory / "trials" / f"trial_{n}") for n in ended]
    objective = [stored["settings"][f"objective/{part}"] for part in ("name", "direction")]
    return Results(directory, rows, keras_tuner.Objective(*objective))


class Results:
    """All trials of a search that have ended, and its best model.

    Args:
        directory: where the search wrote its files.
        rows: list of `Row`, in the order of the trials.
        objective: `keras_tuner.Objective`.

    Attributes:
        best: the best completed `Row`, or `None`.

    Example: see `tune`.
    """

    def __init__(
        self, directory: Path | str, rows: list[Row], objective: keras_tuner.Objective
    ) -> None:
        self.directory = Path(directory)
        self.rows = rows
        self.objective = objective
        self.best = next(iter(self.ranked()), None)

    def ranked(self) -> list[Row]:
        """Return the completed rows, the best first."""
        completed = [row for row in self.rows if row.completed]
        best_is_largest = self.objective.direction == "max"
        return sorted(completed, key=lambda row: row.score, reverse=best_is_largest)

    def best_model(self) -> keras.Model:
        """Return the best model of the search, with its weights of the best epoch.

        Raises:
            ValueError: if the search is not done, so that best.keras is of another trial.
        """
        if self.best is None or state.load(self.directory).get("best") != self.best.trial:
            raise ValueError(
                "best.keras is not of the best trial; repeat the call of `tune`, which writes "
                "it or says why it cannot. "
                f"Received: directory={str(self.directory)!r}"
            )
        return keras.saving.load_model(self.directory / "best.keras")

    def table(self) -> pd.DataFrame:
        """Return the best trial of each layer, the best layer first."""
        layers = [row.layer for row in self.rows]
        completed = [row.layer for row in self.ranked()]
        lines = {}
        for row in self.ranked():
            numbers = {
                "trials": layers.count(row.layer),
                "failed": layers.count(row.layer) - completed.count(row.layer),
                self.objective.name: row.score,
                "spread": row.spread,
                "parameters": row.parameters,
                "seconds": row.seconds,
                "hyperparameters": row.chosen_values(),
            }
            lines.setdefault(row.layer, numbers)
        return pd.DataFrame.from_dict(lines, orient="index")

    def write(self) -> None:
        """Write results.csv, a line for each trial."""
        # A hyperparameter with the name of another column, `epochs`, is `hp/epochs`.
        taken = Row.__annotations__.keys() - {"layer"}
        table = pd.DataFrame(
            asdict(row) | {f"hp/{n}" if n in taken else n: v for n, v in row.values.items()}
            for row in self.rows
        )
        with replaced(self.directory / "results.csv") as new:
            table.drop(columns=["values", "chosen"], errors="ignore").to_csv(new, index=False)
