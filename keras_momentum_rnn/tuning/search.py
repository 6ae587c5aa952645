"""The search: keras-tuner's tuner with what a long search needs around it."""

import functools
import io
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import keras
import keras_tuner

from keras_momentum_rnn.atomic_files import replaced
from keras_momentum_rnn.checks import checked_choice, checked_count
from keras_momentum_rnn.tuning import oracles, roles, state
from keras_momentum_rnn.tuning.executions import Executions, Tuner, one_line
from keras_momentum_rnn.tuning.first_trials import completed
from keras_momentum_rnn.tuning.results import Results, load_results, row_of
from keras_momentum_rnn.tuning.space import shown

MAX_TRIALS = 20


def tune(
    hypermodel: keras_tuner.HyperModel | Callable[[keras_tuner.HyperParameters], keras.Model],
    x: Any = None,
    y: Any = None,
    *,
    directory: Path | str,
    strategy: Literal["random", "hyperband", "bayesian"] = "random",
    max_trials: int | None = None,
    epochs: int = 20,
    executions: int = 1,
    objective: str | keras_tuner.Objective | None = None,
    first: Sequence[Mapping[str, Any]] = (),
    seed: int = 0,
    overwrite: bool = False,
    verbose: int = 1,
    **fit: Any,
) -> Results:
    """Run a hyperparameter search and save its results.

    Prints a line for each trial that ends, with the best score so far. If a search is
    interrupted, repeat the call: it keeps the finished trials and runs the interrupted one
    again. A failed trial (NaN loss, out of memory, or killed three times) is recorded as
    failed, and the search continues. An error of the machine (an `OSError` of the system, such
    as a full disk) stops the search and leaves the trial unrecorded.

    `directory` receives results.csv (all trials), best.keras (the best epoch of the best trial,
    or its last execution where a `fit` of yours gives a score that no epoch has), search.json,
    from which a search resumes, and keras-tuner's own files in the folder `trials`.

    Where keras-tuner's variables KERASTUNER_TUNER_ID, KERASTUNER_ORACLE_IP and
    KERASTUNER_ORACLE_PORT are set, this process is the chief or a worker of a distributed
    search. A worker's process ends in this call; the chief returns when all trials have ended.

    Args:
        hypermodel: `MomentumHyperModel`, any `keras_tuner.HyperModel`, or a function of `hp`
            that returns a compiled model. A `fit` of its own is given `epochs`, too.
        x: training data, as for `model.fit`. All trials take from one generator, which must
            not end.
        y: the targets, as for `model.fit`.
        directory: path of the search. It must be new, empty, or hold the same search. Compared
            are the arguments, data in arrays, the search space, the numbers of callbacks, the
            config of the model at the default hyperparameters and, if it has `get_config`, of
            the hypermodel. Datasets, generators and the code of functions are not.
        strategy: `"random"`, `"hyperband"` or `"bayesian"`. Defaults to `"random"`. For a grid,
            put its points into `first`, and their number into `max_trials`.
        max_trials: positive integer. Raise it to continue a finished search. Defaults to 20;
            Hyperband derives it from `epochs`.
        epochs: positive integer, the epochs of a trial, the most in Hyperband. Defaults to 20.
        executions: positive integer, how often each trial is trained, with seeds `seed`,
            `seed + 1`, ... Its score is the mean. Defaults to 1.
        objective: name of a metric whose direction Keras knows, or `keras_tuner.Objective`.
            Defaults to that of the hypermodel, or `"val_loss"`.
        first: list of dicts, trials to start with, such as those of `paper_trials`: values by
            name, as layers take them. What a dict leaves out has the layer's default if the
            search has it; otherwise, and for your own classes of layers, the low end of its
            range or the first of its choices. Hyperband tries no more of them than it begins
            trials, and warns.
        seed: integer from 0 to 2^32 - executions: the same seed gives the same trials.
            Defaults to 0.
        overwrite: bool, whether to remove an earlier search there. Defaults to `False`.
        verbose: 1 to show progress, or 0. Defaults to 1.
        **fit: further arguments of `model.fit`: `validation_data`, `batch_size`,
            `callbacks`, which each execution gets copies of, ...

    Returns:
        `Results`, with `rows`, `best`, `table()` and `best_model()`.

    Raises:
        ValueError: if an argument is out of its range, `directory` holds another search or
            one that another process runs, or `fit` does not give the objective.
        TypeError: if the `fit` of a hypermodel returns nothing.
        OSError: if the machine fails in a trial. Repeat the call to resume.
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
    Optimization".
    """
    check(strategy, max_trials, epochs, executions, seed)
    if strategy != "hyperband":
        max_trials = max_trials or MAX_TRIALS
        if len(first) > max_trials:
            warnings.warn(
                f"Of the {len(first)} trials in `first` the search tries {max_trials}. For "
                f"all, pass `max_trials={len(first)}`",
                stacklevel=2,
            )
    if objective is None:
        objective = getattr(hypermodel, "objective", "val_loss")
    oracle = oracles.make(strategy, max_trials, epochs, seed, objective)
    watched = Executions(hypermodel, oracle.objective, seed, x)
    hp = keras_tuner.HyperParameters()
    check_objective(watched, fit)
    watched.declare_hyperparameters(hp)
    model = watched.build(hp)
    if not all(isinstance(trial, Mapping) for trial in first):
        raise ValueError(f"`first` must be a list of dicts. Received: first={first!r}")
    oracle.first = [dict(trial) for trial in first]
    directory, part = Path(directory), roles.role()
    for trial in oracle.first:
        completed(trial, space_of(trial, watched, hp.space, part))
    # Keras takes one callback for a list.
    fit["callbacks"] = keras.tree.flatten(fit.get("callbacks") or [])
    fit = {"x": x, "y": y, "epochs": epochs, **fit}
    settings = state.settings_of(
        hypermodel,
        model,
        **fit,
        strategy=strategy,
        seed=seed,
        executions=executions,
        objective=oracle.objective,
        first=oracle.first,
        space=hp.get_config()["space"],
    )
    make_tuner = functools.partial(Tuner, oracle, watched, directory, executions)
    fit["verbose"] = 0
    if part == "worker":
        roles.work(make_tuner, directory, settings, fit, oracle.max_trials, overwrite)
    with state.claimed(directory, settings, overwrite) as stored:
        tuner = make_tuner()
        state.restore(oracle, stored)
        oracle.on_change = reports(tuner, stored, sys.stdout if verbose else io.StringIO())
        try:
            # A chief trains nothing; it takes no data.
            roles.serve(tuner) if part == "chief" else tuner.search(**fit)
        except KeyboardInterrupt:
            done = f"{len(oracle.end_order)} of {oracle.max_trials or '?'} trials done"
            again = "repeat the call without `overwrite`" if overwrite else "repeat the call"
            raise shown_alone(KeyboardInterrupt(f"{done}; {again} to resume")) from None
        stored["ended"] = oracle.max_trials  # read by workers that come late
        state.save(directory, stored, oracle)
        return finish(tuner, stored)


def shown_alone(error):
    """Return an error, which Python prints without a traceback if nobody catches it."""
    former = sys.excepthook

    def hook(kind, value, traceback):
        if value is error:
            print(value, file=sys.stderr)
        else:
            former(kind, value, traceback)

    sys.excepthook = hook
    return error


def reports(tuner, stored, file):
    """Return a function that saves the search when a trial begins or ends, and says so."""
    oracle, directory = tuner.oracle, Path(tuner.directory)
    total = oracle.max_trials or "?"  # Hyperband decides
    if oracle.end_order:
        print(f"Resuming: {len(oracle.end_order)} of {total} trials done", file=file)

    def on_change(trial):
        state.save(directory, stored, oracle)
        if trial.trial_id in oracle.end_order:
            row = row_of(trial, Path(tuner.get_trial_dir(trial.trial_id)))
            best = oracle.get_best_trials()[0].score
            text = f"{len(oracle.end_order)}/{total} {row.line()}"
            best = "" if best is None else f"; best {oracle.objective.name} {best:.4g}"
            print(f"{text}{best}", file=file, flush=True)

    return on_change


def finish(tuner, stored):
    """Write what was found, and return it."""
    results = load_results(tuner.directory)
    results.write()
    oracle = tuner.oracle
    values = [trial.hyperparameters.values for trial in oracle.trials.values()]
    begun, given = sum(map(oracles.is_new, values)), len(oracle.first)
    if isinstance(oracle, oracles.Hyperband) and begun < given:
        warnings.warn(
            f"Of the {given} trials in `first` Hyperband tried {begun}, as many as it begins. "
            "Raise `epochs`, or search with `strategy='random'`",
            stacklevel=3,
        )
    rounds = isinstance(oracle, oracles.Hyperband) and oracle.max_epochs >= oracle.factor
    if rounds and begun == len(values):
        warnings.warn(
            f"Hyperband ended in its first round, after {len(values)} trials: the search "
            "space has no more points. Search it with `strategy='random'`",
            stacklevel=3,
        )
    if results.best is None:
        errors = [row.error for row in results.rows if row.error] or ["no trial ran"]
        raise RuntimeError(
            f"No trial of {len(results.rows)} completed. If you mended the hypermodel, pass "
            f"`overwrite=True`: failed trials do not run again. The last error: {errors[-1]}"
        )
    try:
        model = tuner.load_model(tuner.oracle.get_trial(results.best.trial))
    except Exception as error:  # a damaged file raises what it likes
        folder = tuner.get_trial_dir(results.best.trial)
        text = f"The weights in {folder} could not be loaded, so best.keras was not updated"
        warnings.warn(f"{text}: {one_line(error)}", stacklevel=3)
        return results
    with replaced(results.directory / "best.keras") as new:
        model.save(new)
    state.save(results.directory, {**stored, "best": results.best.trial}, tuner.oracle)
    return results


def check(strategy, max_trials, epochs, executions, seed):
    """Raise a `ValueError` if an argument of `tune` is out of its range."""
    checked_choice("strategy", strategy, list(oracles.ORACLES))
    for name, value in (("epochs", epochs), ("executions", executions)):
        checked_count(name, value)
    checked_count("seed", seed, at_least=0, at_most=2**32 - executions)
    if max_trials is None:
        return
    if strategy == "hyperband":
        raise ValueError(
            "`max_trials` must be None for Hyperband, whose trials follow from `epochs`. "
            f"Received: max_trials={max_trials}"
        )
    checked_count("max_trials", max_trials)


def space_of(trial, watched, space, part):
    """Return the hyperparameters that a search may set in a first trial.

    What a branch of the model alone declares, keras-tuner finds when it begins a search; here
    it begins one that is thrown away. The part of a distributed search knows the first branch.
    """
    if part != "single" or trial.keys() <= {shown(hp.name) for hp in space}:
        return space
    oracle = oracles.make("random", 1, 1, 0, watched.objective)
    with tempfile.TemporaryDirectory() as folder:
        Tuner(oracle, watched, folder, 1)
    return oracle.get_space().space


def check_objective(watched, fit):
    """Raise a `ValueError` if `fit`, unless it is the user's, does not give the objective."""
    objective = watched.objective
    if type(objective) is not keras_tuner.Objective:
        raise ValueError(
            "`objective` must be the name of a metric or a keras_tuner.Objective. "
            f"Received: objective={objective!r}"
        )
    is_own = getattr(watched.train, "__func__", None) is not keras_tuner.HyperModel.fit
    if is_own or not objective.name.startswith("val_"):
        return
    if fit.get("validation_data") is None and not fit.get("validation_split"):
        raise ValueError(
            f"The objective {objective.name} needs `validation_data` or `validation_split`. "
            f"Received: {sorted(fit)}"
        )
    if fit.get("validation_freq", 1) != 1:
        raise ValueError(
            f"The objective {objective.name} needs `validation_freq=1`, a value each epoch. "
            f"Received: validation_freq={fit['validation_freq']!r}"
        )
