"""The search: its trials, its files, and that no broken trial loses any of them."""

import csv
import gc
import math
import weakref

import keras
import numpy as np
import pytest
from tuning_cases import STRATEGIES, Scripted, fail, images, numbers, score_of, scores, search

pytest.importorskip("keras_tuner", reason="a search needs it")

import keras_tuner

from keras_momentum_rnn import MomentumRNN
from keras_momentum_rnn.tuning import (
    MomentumHyperModel,
    Results,
    Row,
    load_results,
    tune,
)

# Trials


def test_the_same_seed_gives_the_same_trials(tmp_path):
    options = {"strategy": "random", **STRATEGIES["random"]}
    first, again, other = (
        search(tmp_path / str(i), seed=seed, **options) for i, seed in enumerate((0, 0, 1))
    )
    assert len(first.rows) == options["max_trials"]
    assert numbers(first) == numbers(again) != numbers(other)
    assert scores(first) == pytest.approx([score_of(r.values) for r in first.rows], abs=1e-3)
    assert first.best.score == max(scores(first))


def test_a_bayesian_search_stays_in_its_interval(tmp_path):
    """Though its model proposes the very end, of which keras-tuner makes 9."""

    class Rising(Scripted):
        def build(self, hp):
            hp.Int("units", 4, 8, sampling="log")
            return super().build(hp)

        def fit(self, hp, model, *args, **kwargs):
            return {"score": hp.get("units")}

    results = search(tmp_path, hypermodel=Rising(), strategy="bayesian", max_trials=8)
    assert max(row.values["units"] for row in results.rows) == 8


@pytest.mark.parametrize("strategy", ["random", "bayesian", "hyperband"])
def test_first_trials_come_first(strategy, tmp_path):
    first = [{"layer": "MomentumLSTM", "momentum": 0.3}, {"layer": "LSTM", "step_size": 1.5}]
    results = search(tmp_path, strategy=strategy, first=first, **STRATEGIES[strategy])
    assert [row.values for row in results.rows[:2]] == [
        {"layer": "MomentumLSTM", "momentum": 0.3, "step_size": 0.6},
        {"layer": "LSTM", "step_size": 1.5},
    ]


def test_a_first_trial_may_set_what_its_branch_alone_declares(tmp_path):
    class Branching(Scripted):
        def build(self, hp):
            kind = hp.Choice("kind", ["plain", "momentum"])
            with hp.conditional_scope("kind", ["momentum"]):
                if kind == "momentum":
                    fast = hp.Boolean("fast")
                    with hp.conditional_scope("fast", [True]):
                        if fast:
                            hp.Float("rate", 0.0, 1.0)
            return super().build(hp)

    first = [{"kind": "momentum", "fast": True, "rate": 0.25}]
    results = search(tmp_path, hypermodel=Branching(), first=first, max_trials=1)
    assert results.rows[0].values["rate"] == 0.25
    with pytest.raises(ValueError, match="Received: rate"):
        search(tmp_path / "other", hypermodel=Branching(), first=[{"rate": 0.25}])

    class Unscoped(Scripted):  # whose `rate` keras-tuner does not find in time
        def build(self, hp):
            if hp.Boolean("fast"):
                hp.Float("rate", 0.0, 1.0)
            return super().build(hp)

    with pytest.raises(ValueError, match="Received: rate"):
        search(tmp_path / "a", hypermodel=Unscoped(), first=[{"fast": True, "rate": 0.25}])
    assert not (tmp_path / "a").exists()


def test_a_grid_is_tried_as_a_whole(tmp_path):
    points = [0.1 * n for n in range(12)]

    class Grid(Scripted):
        def build(self, hp):
            hp.Choice("step_size", points)
            return super().build(keras_tuner.HyperParameters())

    first = [{"step_size": point} for point in points]
    with pytest.warns(UserWarning, match="Of the 12 trials in `first` the search tries 2"):
        search(tmp_path, hypermodel=Grid(), first=first, max_trials=2)
    results = search(tmp_path, hypermodel=Grid(), first=first, max_trials=len(first))
    assert [row.values for row in results.rows] == first


def test_hyperband_says_which_first_trials_it_has_no_place_for(tmp_path):
    first = [{"layer": "LSTM", "step_size": 0.1 * n} for n in range(1, 6)]
    with pytest.warns(UserWarning, match="Of the 5 trials in `first` Hyperband tried 2"):
        options = {"strategy": "hyperband", "max_trials": None, "epochs": 2}
        results = search(tmp_path, first=first, **options)
    assert [row.values["step_size"] for row in results.rows] == [0.1, 0.2]


def test_hyperband_says_where_a_space_is_too_small_for_it(tmp_path):
    class Small(Scripted):
        def build(self, hp):
            hp.Choice("step_size", [0.1, 0.2])
            return super().build(keras_tuner.HyperParameters())

    options = {"strategy": "hyperband", "max_trials": None, "epochs": 9}
    with pytest.warns(UserWarning, match="ended in its first round, after 2 trials"):
        search(tmp_path, hypermodel=Small(), **options)


def test_trials_have_the_dtype_policy_of_the_caller_who_keeps_it(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    results = search(tmp_path, max_trials=1)
    assert results.best_model().layers[0].compute_dtype == "bfloat16"
    assert keras.config.dtype_policy().name == "mixed_bfloat16"


def test_hyperparameters_may_be_declared_and_have_any_name(tmp_path):
    class Declared(Scripted):
        def declare_hyperparameters(self, hp):
            hp.Float("x_logit", -2000.0, -1000.0)
            hp.Fixed("epochs", 3)

        def build(self, hp):
            hp.get("x_logit")
            return super().build(hp)

    first = [{"x_logit": -1500.0}]
    results = search(tmp_path, hypermodel=Declared(), first=first, max_trials=1)
    assert results.best.values["x_logit"] == -1500
    (line,) = csv.DictReader((tmp_path / "results.csv").open())
    assert (line["epochs"], line["hp/epochs"]) == ("[None]", "3")


def test_executions_have_seeds_of_their_own_and_give_mean_and_spread(tmp_path):
    drawn = []

    class Drawing(Scripted):
        def fit(self, hp, model, *args, **kwargs):
            super().fit(hp, model, *args, **kwargs)
            drawn.append(float(keras.ops.convert_to_numpy(model.layers[0].kernel)[0, 0]))
            return drawn[-1]

    results = search(tmp_path, hypermodel=Drawing(), executions=3, max_trials=2, seed=5)
    assert len(set(drawn)) == 3 and drawn[:3] == drawn[3:]  # trials share their seeds
    for row in results.rows:
        assert row.scores == pytest.approx(drawn[:3])
        assert row.score == pytest.approx(np.mean(drawn[:3]))
        assert row.spread == pytest.approx(np.std(drawn[:3], ddof=1))


def history(**values):
    made = keras.callbacks.History()
    made.history = values
    return made


class Returning(Scripted):
    """Its `fit` returns a given value."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def fit(self, *args, **kwargs):
        super().fit(*args, **kwargs)
        return self.value


def test_fit_may_return_several_scores_and_validate_by_itself(tmp_path):
    value = [0.25, {"val_loss": 0.5}, history(val_loss=[0.75, 1.0], loss=[1.0, 1.0])]
    results = search(tmp_path, hypermodel=Returning(value), objective="val_loss", max_trials=1)
    assert results.best.scores == [0.5] and results.best.epochs == [None]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, TypeError, "Did you forget to return"),
        ({"accuracy": 0.5}, ValueError, "the specified objective, score"),
        (history(loss=[1.0], accuracy=[1.0]), ValueError, "Received: ['accuracy', 'loss']"),
        (history(loss=[1.0, 1.0], score=[1.0]), ValueError, "score must be a result of every"),
    ],
    ids=["none", "dict", "history", "some epochs"],
)
def test_a_fit_without_the_objective_stops_the_search(value, error, message, tmp_path):
    hypermodel = Returning(value)
    with pytest.raises(error) as stopped:
        search(tmp_path, hypermodel=hypermodel)
    assert message in str(stopped.value) and hypermodel.trained == 1


# Broken trials


def test_broken_trials_are_recorded_and_the_search_goes_on(tmp_path):
    events = {1: fail(MemoryError("no 64 GB")), 2: fail(ValueError("bad shape"))}
    events |= {n: fail(MemoryError()) for n in (3, 4, 5)}
    results = search(tmp_path, events, max_trials=8)
    status = [row.status for row in results.rows]
    assert status == ["COMPLETED"] + ["FAILED"] * 5 + ["COMPLETED"] * 2
    assert results.rows[1].error == "MemoryError: no 64 GB"
    assert results.rows[2].error == "ValueError: bad shape"
    assert len(load_results(tmp_path).rows) == 8


def test_a_loss_that_is_no_number_breaks_a_trial_though_its_accuracy_is_one(tmp_path):
    x, y = images()
    epochs = []
    noted = keras.callbacks.LambdaCallback(on_epoch_end=lambda n, logs: epochs.append(n))

    def build(hp):
        scale = hp.Choice("scale", [1.0, float("inf")])
        model = keras.Sequential(
            [keras.Input((3, 2)), keras.layers.Flatten(), keras.layers.Rescaling(scale)]
        )
        model.add(keras.layers.Dense(2))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, metrics=["accuracy"])
        return model

    results = tune(
        build,
        x,
        y,
        validation_data=(x, y),
        first=[{"scale": 1.0}, {"scale": float("inf")}],
        max_trials=2,
        objective="val_accuracy",
        callbacks=noted,
        epochs=2,
        directory=tmp_path,
        verbose=0,
    )
    good, broken = results.rows
    assert good.completed and 0 <= good.score <= 1 and good.epochs == [2]
    assert broken.status == "FAILED" and "`loss` became nan in epoch 1" in broken.error
    assert epochs == [0, 1, 0]  # it is not trained on


@pytest.mark.parametrize(
    "value",
    [{"score": math.nan}, history(score=[0.5], val_loss=[math.inf])],
    ids=["score", "val_loss"],
)
def test_a_score_or_loss_that_is_no_number_breaks_a_trial(value, tmp_path):
    class Broken(Scripted):
        def fit(self, *args, **kwargs):
            score = super().fit(*args, **kwargs)
            return value if self.trained == 1 else score

    results = search(tmp_path, hypermodel=Broken(), max_trials=2)
    assert [row.status for row in results.rows] == ["FAILED", "COMPLETED"]


def test_if_every_trial_breaks_the_error_says_what_to_do(tmp_path):
    message = "You must call `compile()` first.\n\nArguments received by Model.fit():\n * x=1"
    broken = {n: fail(ValueError(message)) for n in range(2)}
    for events in (broken, {}):  # mended meanwhile
        with pytest.raises(
            RuntimeError, match=r"No trial of 2 .* `overwrite=True`: .*"
        ) as error:
            search(tmp_path, events, max_trials=2)
        assert str(error.value).endswith("ValueError: You must call `compile()` first.")
    assert len(list(csv.DictReader((tmp_path / "results.csv").open()))) == 2


# Results


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A real search, small: its results, and the data."""
    directory = tmp_path_factory.mktemp("search")
    x, y = images()
    hypermodel = MomentumHyperModel(
        (3, 2), 2, layers=["SimpleRNN", "MomentumRNN"], units=2, learning_rate=0.05
    )
    first = [{"layer": "MomentumRNN", "momentum": m, "step_size": s} for m, s in [(0.5, 1.0)]]
    results = tune(
        hypermodel,
        x[:16],
        y[:16],
        validation_data=(x[16:], y[16:]),
        directory=directory,
        max_trials=3,
        epochs=4,
        callbacks=[keras.callbacks.EarlyStopping("val_accuracy", patience=1)],
        first=first,
        verbose=0,
    )
    return results, x[16:], y[16:]


def test_files_hold_every_trial(trained):
    results = trained[0]
    rows = list(csv.DictReader((results.directory / "results.csv").open()))
    assert [row["trial"] for row in rows] == ["0", "1", "2"]
    assert rows[0]["layer"] == "MomentumRNN" and float(rows[0]["momentum"]) == 0.5
    for row, given in zip(rows, results.rows, strict=True):
        assert float(row["score"]) == given.score and row["epochs"] == str(given.epochs)
    again = load_results(results.directory)
    assert again.rows == results.rows and again.objective == results.objective


@keras.saving.register_keras_serializable()
class OfItsOwn(keras.Model):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.layer = MomentumRNN(units)

    def call(self, x):
        return self.layer(x)

    def get_config(self):
        return {**super().get_config(), "units": self.layer.units}


@pytest.mark.parametrize(
    "make", [OfItsOwn, lambda units: keras.Sequential([MomentumRNN(units)])]
)
def test_a_model_that_is_built_by_its_data(make, tmp_path, recwarn):
    """Its weights can be loaded: a trial goes on from them, and the best model is kept."""

    def hypermodel(hp):
        model = make(hp.Int("units", 2, 4))
        model.compile("adam", "mse")
        return model

    data = {"x": images()[0], "y": np.ones((24, 1)), "validation_split": 0.5}
    options = {"strategy": "hyperband", "epochs": 3, "max_trials": None}
    results = search(tmp_path, hypermodel=hypermodel, **data, **options)
    assert {row.status for row in results.rows} == {"COMPLETED"}
    model = results.best_model()
    assert int(model.optimizer.iterations) > 0 and len(model.optimizer.variables) > 2
    assert not [w for w in recwarn if "ariable" in str(w.message)]


def test_a_generator_is_data(tmp_path):
    x, y = images()
    data = {"x": ((x, y) for _ in range(9)), "steps_per_epoch": 1}
    assert len(search(tmp_path, **data).rows) == 4


def test_the_best_model_loads_and_has_its_score(trained):
    results, x, y = trained
    model = results.best_model()
    accuracy = (model.predict(x, verbose=0).argmax(-1) == y).mean()
    assert accuracy == pytest.approx(results.best.score, abs=1e-6)
    assert type(model.layers[0]).__name__ == results.best.layer
    assert results.best.parameters == model.count_params()
    assert int(model.optimizer.iterations) > 0  # with its moments, to train on


def test_training_stops_early(trained):
    # A score that is reached again is no better: with patience 1 the next epoch is the last.
    assert all(1 < row.epochs[0] <= 4 for row in trained[0].rows)
    assert any(row.epochs[0] < 4 for row in trained[0].rows)


def test_the_table_is_best_by_layer():
    def row(layer, score):
        return Row("0", "COMPLETED", layer, {}, [], score, 0.0, [score], 10, [1], 0.1)

    rows = [row("LSTM", 0.5), row("GRU", 0.7), row("LSTM", 0.6), row("GRU", 0.4)]
    rows.append(Row("0", "FAILED", "GRU", {}, []))
    table = Results("no/folder", rows, keras_tuner.Objective("score", "max")).table()
    assert list(table.index) == ["GRU", "LSTM"] and list(table["score"]) == [0.7, 0.6]
    assert list(table["trials"]) == [3, 2] and list(table["failed"]) == [1, 0]
    least = Results("no/folder", rows, keras_tuner.Objective("val_loss", "min"))
    assert least.best.score == 0.4 and list(least.table()["val_loss"]) == [0.4, 0.5]


# Memory


def count(kind):
    gc.collect()
    return sum(type(value).__name__ == kind for value in gc.get_objects())


def test_models_and_graphs_of_earlier_trials_are_freed(tmp_path):
    x, y = images()
    # Not ours: TensorFlow keeps the graph of each function with a custom gradient for ever.
    models, graphs, layers = [], count("FuncGraph"), [keras.layers.SimpleRNN]

    class Watched(MomentumHyperModel):
        def fit(self, hp, model, *args, **kwargs):
            models.append(weakref.ref(model))
            return super().fit(hp, model, *args, **kwargs)

    tune(
        Watched((3, 2), 2, layers=layers, units=[1, 2], learning_rate=0.1),
        x,
        y,
        validation_split=0.5,
        directory=tmp_path,
        max_trials=2,
        epochs=1,
        verbose=0,
    )
    # TensorFlow's: Keras's optimizers alone would leave two for each model.
    assert count("FuncGraph") <= graphs
    assert len(models) == 2 and [ref() for ref in models] == [None] * 2


# Refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "best"}, "`strategy` must be one of ['random', 'hyperband', 'bayesian'"),
        ({"max_trials": 0}, "`max_trials` must be a positive integer"),
        ({"epochs": 0}, "`epochs` must be a positive integer"),
        ({"executions": 1.5}, "`executions` must be a positive integer"),
        ({"seed": -1}, "`seed` must be an integer of at least 0, at most 4294967295. Received"),
        ({"seed": 2**32 - 1, "executions": 2}, "at most 4294967294. Received: seed=4294967295"),
        ({"strategy": "hyperband"}, "`max_trials` must be None for Hyperband"),
        (
            {"hypermodel": lambda hp: None, "objective": "val_loss"},
            "needs `validation_data` or `validation_split`",
        ),
        (
            {"hypermodel": lambda hp: None, "validation_split": 0.5, "validation_freq": 2},
            "Received: validation_freq=2",
        ),
        ({"objective": ["val_loss"]}, "`objective` must be the name of a metric"),
        ({"objective": "glory"}, 'for unknown metric "glory"'),
        ({"first": [{"beta": 0.5}]}, "Received: beta in"),
        ({"first": {"beta": 0.5}}, "`first` must be a list of dicts"),
        (
            {"hypermodel": 42, "objective": "accuracy"},
            "`hypermodel` must be a keras_tuner.HyperModel, or a function",
        ),
        ({"hypermodel": lambda hp: None, "objective": "accuracy"}, "that builds: None"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_bad_arguments_are_refused(options, message, tmp_path):
    with pytest.raises(ValueError) as error:
        search(tmp_path / "search", **options)
    assert message in str(error.value)
    assert not (tmp_path / "search").exists()
