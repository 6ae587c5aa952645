"""The results of a comparison, by layer."""

import numpy as np

BASELINE = "LSTM"


def rows(results):
    """Return one row for each layer, a list of dicts.

    layer, units, parameters (of the model), runs (how many), diverged (how many of them);
    test, test_sd and test_range: the score at each run's best validation epoch, its mean,
    standard deviation (of a sample; null for one run) and range;
    epochs_to_lstm_best, seconds_to_lstm_best: until the mean curve reaches the LSTM's best, in
    seconds of training (null: it does not, or no LSTM ran);
    seconds_per_epoch: median.
    """
    settings, runs = results["settings"], results["runs"]
    metric, sign = settings["metric"], 1 if settings["larger_is_better"] else -1
    curves = {layer: sign * mean_curve(runs, layer, metric) for layer in layers(runs)}
    target = max(curves.get(BASELINE, ()), default=np.inf)
    found = []
    for layer, curve in curves.items():
        mine = of_layer(runs, layer)
        test = [run["test"][metric] for run in mine if run["test"]]
        seconds = metric_curves(runs, layer, "seconds")
        reached = np.flatnonzero(curve >= target)
        epochs = int(reached[0]) + 1 if len(reached) else None
        found.append(
            {
                "layer": layer,
                "units": mine[0]["setup"]["units"],
                "parameters": mine[0]["parameters"],
                "runs": len(mine),
                "diverged": sum(run["diverged"] for run in mine),
                "test": float(np.mean(test)) if test else None,
                "test_sd": float(np.std(test, ddof=1)) if len(test) > 1 else None,
                "test_range": [min(test), max(test)] if test else None,
                "epochs_to_lstm_best": epochs,
                "seconds_to_lstm_best": epochs and float(seconds[:, :epochs].sum(1).mean()),
                "seconds_per_epoch": float(np.median(seconds)) if test else None,
            }
        )
    return found


def layers(runs):
    """Return the names of layers in the order in which they first ran."""
    return list(dict.fromkeys(run["layer"] for run in runs))


def of_layer(runs, layer):
    """Return the runs of a layer that can be compared.

    Those that go on and are more than an epoch behind another are left out.
    """
    mine = [run for run in runs if run["layer"] == layer]
    farthest = max((len(run["curve"]) for run in mine), default=0)
    return [run for run in mine if not going_on(run) or len(run["curve"]) >= farthest - 1]


def going_on(run):
    return not run["diverged"] and len(run["curve"]) < run["setup"]["epochs"]


def metric_curves(runs, layer, name):
    """Return the array (seeds, epochs) of one metric, as far as all seeds have come.

    Seeds that diverged have no place beside others, whose curves they would cut short.
    """
    mine = of_layer(runs, layer)
    mine = [run for run in mine if not run["diverged"]] or mine
    curves = [[epoch[name] for epoch in run["curve"]] for run in mine]
    curves = [curve for curve in curves if curve] or curves
    shortest = min(map(len, curves))
    return np.array([curve[:shortest] for curve in curves]).reshape(len(curves), shortest)


def mean_curve(runs, layer, metric):
    """Return the validation scores averaged over seeds, rounded so that ties are equal."""
    return np.round(metric_curves(runs, layer, f"validation_{metric}").mean(axis=0), 6)


def sentence(run, metric):
    """Return how a run ended, in words."""
    if run["test"] is None:
        return "diverged in its first epoch"
    text = f"test {metric} {number(run['test'][metric])} at epoch {run['best_epoch']}"
    return f"{text}, then diverged" if run["diverged"] else text


def number(value):
    """Return a number with four significant digits, or three decimals of a share."""
    return f"{value:.3f}" if 0.1 <= abs(value) < 1 else f"{value:.4g}"


def mean_and_spread(row):
    """Return the test score of a row as text."""
    if row["test"] is None:
        return "diverged"
    if row["test_sd"] == 0:
        return f"{number(row['test'])}, each seed"
    spread = "" if row["test_sd"] is None else f" ± {row['test_sd']:.2g}"
    return number(row["test"]) + spread
