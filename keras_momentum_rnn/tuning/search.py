"""The search: keras-tuner's tuners with what a long search needs around them."""

import contextlib
import copy
import functools
import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import keras
import keras_tuner

from keras_momentum_rnn.atomic_files import replaced
from keras_momentum_rnn.checks import checked_choice, checked_count
from keras_momentum_rnn.tuning import oracles, state
from keras_momentum_rnn.tuning.data_digests import digests
from keras_momentum_rnn.tuning.executions import Executions
from keras_momentum_rnn.tuning.results import Results, load_results, row_of
from keras_momentum_rnn.tuning.roles import check_address, quiet, role, tuner_id

MAX_TRIALS = 20
# Arguments of `fit` of these types, such as `batch_size`, are the same in all trials.
PLAIN = (bool, int, float, str)


class Tuner:
    """Mixin of a tuner of keras-tuner: records each trial."""

    def on_trial_begin(self, trial):
        super().on_trial_begin(trial)
        self.hypermodel.begin(self.get_trial_dir(trial.trial_id))

    def on_trial_end(self, trial):
        # The wire to the chief leaves the message out.
        self.hypermodel.end(trial.message)
        super().on_trial_end(trial)


class PlainTuner(Tuner, keras_tuner.Tuner):
    """RandomSearch, BayesianOptimization and GridSearch, which differ only in the oracle."""


class HyperbandTuner(Tuner, keras_tuner.Hyperband):
    """Hyperband, which also continues training from an earlier trial's weights."""

    def __init__(self, oracle, **kwargs):
        # Hyperband's own constructor makes an oracle, and nothing else.
        keras_tuner.Tuner.__init__(self, oracle=oracle, **kwargs)

    def run_trial(self, trial, *args, **kwargs):
        earlier = trial.hyperparameters.values.get("tuner/trial_id")
        if earlier and (why := self.unreadable(earlier)):
            warnings.warn(f"{why} So trial {trial.trial_id} starts again.", stacklevel=2)
            trial = from_its_beginning(trial)
        return super().run_trial(trial, *args, **kwargs)

    def load_model(self, trial):
        # Not by the weights that the trial began with: they may be lost, its own stay.
        return super().load_model(from_its_beginning(trial))

    def unreadable(self, trial_id):
        """Return why no trial can continue from a trial's weights, or an empty text."""
        folder = Path(self.get_trial_dir(trial_id))
        try:
            json.loads((folder / "build_config.json").read_text(encoding="utf-8"))
            self.load_model(self.oracle.get_trial(trial_id))
        except Exception as error:  # a damaged file raises what it likes
            return f"{folder} has no complete weights: {one_line(error)}."
        return ""


def from_its_beginning(trial):
    """Return a copy of a trial that continues no other trial."""
    trial = copy.deepcopy(trial)
    if trial.hyperparameters.values.pop("tuner/trial_id", None) is not None:
        trial.hyperparameters.values["tuner/initial_epoch"] = 0
    return trial


def tune(
    hypermodel: keras_tuner.HyperModel | Callable[[keras_tuner.HyperParameters], keras.Model],
    x: Any = None,
    y: Any = None,
    *,
    directory: Path | str,
    strategy: Literal["random", "hyperband", "bayesian", "grid"] = "random",
    max_trials: int | None = None,
    epochs: int = 20,
    executions: int = 1,
    objective: str | keras_tuner.Objective | None = None,
    patience: int | None = None,
    first: Sequence[Mapping[str, Any]] = (),
    seed: int = 0,
    overwrite: bool = False,
    verbose: int = 1,
    **fit: Any,
) -> Results:
    """Run a hyperparameter search and save its results.

    Prints a line for each trial that ends, with the best score so far. If a search is
    interrupted, repeat the call: it keeps the finished trials and runs the interrupted one
    again. A failed trial (NaN loss, out of memory) is recorded as failed, and the search
    continues. So is a trial whose process was killed three times.

    `directory` receives results.csv and results.json (all trials), best.keras (the best epoch
    of the best trial), search.json, from which a search resumes, and keras-tuner's own files in
    the folder `trials`.

    Where keras-tuner's variables KERASTUNER_TUNER_ID, KERASTUNER_ORACLE_IP and
    KERASTUNER_ORACLE_PORT are set, this process is the chief or a worker of a distributed
    search. A worker's process ends in this call; the chief returns when all trials have ended.

    Args:
        hypermodel: `MomentumHyperModel`, any `keras_tuner.HyperModel`, or a function of `hp`
            that returns a compiled model.
        x: training data, as for `model.fit`.
        y: the targets, as for `model.fit`.
        directory: path of the search. It must be new, empty, or hold the same search, of the
            same data, with the same numbers for `fit`. Data in arrays are compared; datasets
            and generators are not.
        strategy: `"random"`, `"hyperband"`, `"bayesian"` or `"grid"`. Defaults to `"random"`.
            A grid has the choices of every list, and ten values of every interval.
        max_trials: positive integer. Raise it to continue a finished search. Defaults to 20;
            for a grid, to all its points; Hyperband derives it from `epochs`.
        epochs: positive integer, the epochs of a trial, the most in Hyperband. Defaults to 20.
        executions: positive integer, how often each trial is trained, with seeds `seed`,
            `seed + 1`, ... Its score is the mean. Defaults to 1.
        objective: name of a metric whose direction Keras knows, or `keras_tuner.Objective`.
            Defaults to that of the hypermodel, or `"val_loss"`.
        patience: positive integer, the epochs without a better objective after which an
            execution ends, or `None`. Defaults to `None`.
        first: list of dicts, trials to start with, such as those of `paper_trials`: values by
            name, as layers take them. What a dict leaves out has its default. Not for a grid.
        seed: non-negative integer: the same seed gives the same trials. Defaults to 0.
        overwrite: bool, whether to remove an earlier search there. Defaults to `False`.
        verbose: 1 to show progress, or 0. Defaults to 1.
        **fit: further arguments of `model.fit`: `validation_data`, `batch_size`,
            `callbacks`, ...

    Returns:
        `Results`: its `rows`, `best`, `table()` and `best_model()`.

    Raises:
        ValueError: if an argument is out of its range, or `directory` holds another search or
            one of other data.
        RuntimeError: if every trial failed. The files are still written.

    Example:

    >>> import tempfile
    >>> import numpy as np
    >>> from keras_momentum_rnn.tuning import MomentumHyperModel, tune
    >>> x = np.random.default_rng(0).normal(size=(32, 5, 2)).astype("float32")
    >>> y = (x.sum(axis=(1, 2)) > 0).astype("int32")
    >>> hypermodel = MomentumHyperModel((5, 2), head=2, layers=["MomentumLSTM"], units=2)
    >>> results = tune(
    ...     hypermodel, x, y, validation_split=0.5, max_trials=2, epochs=1,
    ...     directory=tempfile.mkdtemp(), verbose=0,
    ... )
    >>> [row.status for row in results.rows], type(results.best_model().layers[0]).__name__
    (['COMPLETED', 'COMPLETED'], 'MomentumLSTM')

    Reference: Li et al. (2018), "Hyperband: A Novel Bandit-Based Approach to Hyperparameter
    Optimization"; Nguyen et al. (2020), who searched a grid.
    """
    objective = checked_objective(objective, hypermodel)
    watched = Executions(hypermodel, objective, seed)
    check(strategy, max_trials, epochs, executions, patience, seed, first, objective, fit)
    if strategy in ("random", "bayesian"):
        max_trials = max_trials or MAX_TRIALS
    callbacks = fit.get("callbacks") or []  # Keras takes None, and one for a list
    one = isinstance(callbacks, keras.callbacks.Callback)
    fit["callbacks"] = [callbacks] if one else [*callbacks]
    if patience is not None:
        stop = keras.callbacks.EarlyStopping(
            monitor=objective.name, mode=objective.direction, patience=patience
        )
        fit["callbacks"].append(stop)
    hp = keras_tuner.HyperParameters()
    watched.build(hp)
    settings = {
        **{name: value for name, value in fit.items() if isinstance(value, PLAIN)},
        "strategy": strategy,
        "seed": seed,
        "epochs": epochs,
        "executions": executions,
        "patience": patience,
        "objective": [objective.name, objective.direction],
        "first": [dict(trial) for trial in first],
        "space": hp.get_config()["space"],
    }
    settings = json.loads(json.dumps(settings))
    oracle = oracles.make(
        strategy,
        objective=objective,
        # keras-tuner takes 0 for no seed.
        seed=seed + 1,
        max_trials=max_trials,
        max_epochs=epochs,
        first=settings["first"],
        space=hp.space,
    )
    tuner_class = HyperbandTuner if strategy == "hyperband" else PlainTuner
    make_tuner = functools.partial(
        tuner_class,
        oracle=oracle,
        hypermodel=watched,
        executions_per_trial=executions,
        directory=directory,
        project_name=state.PROJECT,
    )
    directory, part = Path(directory), role()
    fit = {"x": x, "y": y, "epochs": epochs, "verbose": 0, **fit}
    # keras-tuner would go on from its own state if it found this file.
    (directory / state.PROJECT / f"{tuner_id()}.json").unlink(missing_ok=True)
    if part == "worker":
        with quiet():
            tuner = make_tuner()
            check_chief(tuner.oracle, directory)
            tuner.search(**fit)
        sys.exit(0)
    if part == "chief":
        check_address()
    stored = state.claim(directory, settings, digests(fit), overwrite)
    out = sys.stdout if verbose else None
    with quiet() if part == "chief" else contextlib.nullcontext():
        tuner = make_tuner()
        state.restore(oracle, stored, directory)
        oracle.on_end = ended(tuner, stored, oracles.count(strategy, oracle), out)
        try:
            # A chief trains nothing; it takes no data.
            tuner.search(**({"verbose": 0} if part == "chief" else fit))
        except KeyboardInterrupt:
            watched.forgive()
            raise
    return finish(tuner)


def ended(tuner, stored, total, file):
    """Return a function that saves the search when a trial ends, and prints it to `file`."""
    oracle = tuner.oracle

    def on_end(trial):
        state.save(Path(tuner.directory), stored, oracle)
        if file is not None:
            row = row_of(trial, tuner.get_trial_dir(trial.trial_id))
            best = oracle.get_best_trials()[0].score
            text = f"{len(oracle.end_order)}/{total or '?'} {row.line()}"
            print(text if best is None else f"{text}; best {best:.4g}", file=file, flush=True)

    return on_end


def check_chief(oracle, directory):
    """Refuse a chief that serves another search, before a trial is taken from it."""
    served = [hp.value for hp in oracle.get_space().space if hp.name == state.ID]
    if served != [state.load(directory)["id"]]:
        raise ValueError(
            "Give each search a port of its own in `KERASTUNER_ORACLE_PORT`. The chief at "
            f"this one serves another search than directory={str(directory)!r}"
        )


def finish(tuner):
    """Write what was found, and return it."""
    results = load_results(tuner.directory)
    results.write()
    if results.best is None:
        errors = [row.error for row in results.rows if row.error] or ["no trial ran"]
        raise RuntimeError(
            f"No trial of {len(results.rows)} completed. The last error: {errors[-1]}"
        )
    try:
        model = tuner.load_model(tuner.oracle.get_trial(results.best.trial))
    except Exception as error:  # a damaged file raises what it likes
        folder = tuner.get_trial_dir(results.best.trial)
        warnings.warn(
            f"{folder} has no complete weights, so best.keras was not updated; if there is "
            f"one, it is that of an earlier call. All other files are up to date. "
            f"{one_line(error)}",
            stacklevel=3,
        )
        return results
    with replaced(results.directory / "best.keras") as new:
        model.save(new)
    return results


def one_line(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def check(strategy, max_trials, epochs, executions, patience, seed, first, objective, fit):
    """Raise a `ValueError` if an argument of `tune` is out of its range."""
    checked_choice("strategy", strategy, list(oracles.ORACLES))
    for name, value in (("epochs", epochs), ("executions", executions)):
        checked_count(name, value)
    for name, value in (("patience", patience), ("max_trials", max_trials)):
        if value is not None:
            checked_count(name, value)
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"`seed` must be a non-negative integer. Received: seed={seed!r}")
    if strategy == "hyperband" and max_trials is not None:
        raise ValueError(
            "`max_trials` must be None for Hyperband, whose trials follow from `epochs`. "
            f"Received: max_trials={max_trials}"
        )
    if strategy == "grid" and first:
        raise ValueError(
            "`first` must be empty for a grid: put its values into the lists of choices. "
            f"Received: first={first!r}"
        )
    validates = "validation_data" in fit or "validation_split" in fit
    if objective.name.startswith("val_") and not validates:
        raise ValueError(
            f"The objective {objective.name} needs `validation_data` or `validation_split`. "
            f"Received: {sorted(fit)}"
        )


def checked_objective(objective, hypermodel):
    """Return a `keras_tuner.Objective`."""
    if objective is None:
        objective = getattr(hypermodel, "objective", "val_loss")
    if isinstance(objective, keras_tuner.Objective):
        return objective
    infer = keras_tuner.engine.metrics_tracking.infer_metric_direction
    direction = infer(objective) if isinstance(objective, str) else None
    if direction is None:
        raise ValueError(
            "`objective` must be the name of a metric of Keras, or a keras_tuner.Objective, "
            f"which says its direction. Received: objective={objective!r}"
        )
    return keras_tuner.Objective(objective, direction)
