"""Tables of what the layers score, from the results files of the comparisons."""

import json
from pathlib import Path
from statistics import mean, median, stdev

from papers.presentation import markdown_table
from papers.tasks import mohamed2018, sutskever2013

RESULTS = Path(__file__).parents[2] / "papers" / "results"
PLAIN = ("SimpleRNN", "GRU")
# Kind of sequence, its results, and the layer to try, None for none.
ADVICE = (
    ("pixels of an image in order, 64 steps", "digits", "RMSPropLSTM"),
    ("pixels in a fixed random order, 64 steps", "orthogonal_digits", "MomentumDTRIV"),
    ("pixels, 784 steps, after only 100 updates", "mnist_subset", "MomentumLSTM"),
    ("two marked numbers to add, 200 steps", "adding", "AdamLSTM"),
    ("symbols to repeat after 100 blanks", "copying", None),
    ("the next frame of speech", "speech", "MomentumLSTM"),
    ("the next character of a text", "characters", "RMSPropLSTM"),
)
# Scored after the last epoch: validation, by a speaker unlike the others, stops some layers
# far too early.
LAST_EPOCH = ("speech",)
# Plain layers stand in another comparison of the same images in the same order.
PLAIN_IN = {"orthogonal_digits": "digits_permuted"}
COLUMNS = {
    "digits": "digits, accuracy",
    "digits_permuted": "permuted, accuracy",
    "mnist_subset": "MNIST subset, accuracy",
    "adding": "adding, loss",
    "copying": "copying, loss",
    "speech": "speech, mse",
    "characters": "characters, bits",
}
# The epoch that is best on validation is also the luckiest of many; these show the rest.
LAST = 10
METRICS = {"loss": "error", "mse": "error", "bits_per_character": "bits"}


def results(name):
    return json.loads((RESULTS / name / "results.json").read_text())


def rounded(value):
    """Return a number with three digits that count."""
    return f"{value:.3g}" if abs(value) >= 1 else f"{value:.3f}"


def scores(name, last=False):
    """Return (mean, standard deviation or None) of the test score by layer."""
    found = results(name)
    if not last:
        return {row["layer"]: (row["test"], row["test_sd"]) for row in found["summary"]}
    metric, runs = f"test_{found['settings']['metric']}", {}
    for run in found["runs"]:
        runs.setdefault(run["layer"], []).append(run["curve"][-1][metric])
    return {layer: (mean(v), stdev(v) if len(v) > 1 else None) for layer, v in runs.items()}


def advice():
    """Return what to try for a kind of sequence, its score and what stands beside it."""
    rows = []
    for kind, name, layer in ADVICE:
        found, settings = results(name), results(name)["settings"]
        last = name in LAST_EPOCH
        by_layer = scores(name, last)
        plain = {k: v for k, v in scores(PLAIN_IN.get(name, name), last).items() if k in PLAIN}
        best = (max if settings["larger_is_better"] else min)(plain, key=plain.get)
        metric = METRICS.get(settings["metric"], settings["metric"])
        rows.append(
            [
                f"{kind}: {metric}",
                f"`{layer}`" if layer else "none of ours",
                with_spread(by_layer[layer]) if layer else "-",
                with_spread(by_layer["LSTM"]),
                f"{with_spread(plain[best])} (`{best}`)",
                rounded(constant(found)),
            ]
        )
    head = ["your sequences: score", "try", "it scores", "`LSTM`", "best of `GRU`, `SimpleRNN`"]
    return markdown_table([*head, "constant output"], rows)


def constant(found):
    """Return what a constant output scores."""
    return found["constant"][found["settings"]["metric"]]


def with_spread(score):
    value, spread = score
    if spread == 0:
        return f"{rounded(value)}, each seed"
    return rounded(value) + ("" if spread is None else f" ± {spread:.1g}")


def all_scores(page_to_results):
    """Return the scores of all layers in all comparisons.

    Args:
        page_to_results: str, the way from the page to the folder of results.
    """
    found = {name: scores(name) for name in COLUMNS}
    layers = dict.fromkeys(layer for column in found.values() for layer in column)
    heads = [
        f"[{title}]({page_to_results}/{name}/report.md)" for name, title in COLUMNS.items()
    ]
    rows = [
        [layer, *(with_spread(column[layer]) for column in found.values())] for layer in layers
    ]
    constant = [
        results(name)["constant"][results(name)["settings"]["metric"]] for name in COLUMNS
    ]
    rows.append(["constant output", *map(rounded, constant)])
    return markdown_table(["layer", *heads], rows)


def orthogonal():
    """Return the scores of the orthogonal layers, with parameters and ranges."""
    found = results("orthogonal_digits")
    rows = [
        [
            f"{row['layer']}, {row['units']} units",
            f"{row['parameters']:,}",
            f"{rounded(row['test'])} ({' to '.join(map(rounded, row['test_range']))})",
        ]
        for row in found["summary"]
    ]
    return markdown_table(["", "parameters", "test accuracy"], rows)


def table5(task):
    """Return the errors of Sutskever et al. (2013), Table 5, beside ours.

    Each is of a run to its end, a seed after the other.
    """
    found = results(f"sutskever_table5/{task}")
    metric = found["settings"]["metric"]
    errors, rates, layers = {}, {}, {}
    for run in found["runs"]:
        if len(run["curve"]) < run["setup"]["epochs"]:
            continue
        layer, column = run["layer"].split()
        layers.setdefault(layer, None)
        errors.setdefault((layer, column), []).append(run["test"][metric])
        rates[layer, column] = run["setup"]["optimizer"]["learning_rate"]
    paper = dict(zip(sutskever2013.COLUMNS, sutskever2013.ERRORS[task]))
    columns = [c for c in sutskever2013.COLUMNS if ("SimpleRNN", c) in errors]
    rows = [
        [layer, *(", ".join(f"{e:.3f}" for e in errors.get((layer, c), ())) for c in columns)]
        for layer in layers
    ]
    rows.append(
        ["learning rate", *(f"{rates['SimpleRNN', column]:g}" for column in columns)],
    )
    rows.append(["paper, mean of four seeds", *(f"{paper[column]:g}" for column in columns)])
    return markdown_table(["", *columns], rows)


def mcrm_adding():
    """Return Table 1 of Mohamed and Claudel (2018) on adding, beside the paper's."""
    found = results("mcrm_table1")
    paper = dict(zip(mohamed2018.LAYERS, mohamed2018.RESULTS["adding"]))
    epochs = mohamed2018.TRAINING["adding"][-2]
    order = [*reversed(mohamed2018.LAYERS), "AdamLSTM", "RMSPropLSTM"]
    runs = sorted(found["runs"], key=lambda run: (run["seed"], order.index(run["layer"])))
    rows = [
        [
            run["layer"],
            f"{run['seed']}",
            f"{len(run['curve'])} of {epochs}",
            f"{run['test']['loss']:.1e}",
            f"{median(losses[-LAST:]):.1e}",
            below(losses, paper.get(run["layer"])),
            f"{paper[run['layer']]:.1e}" if run["layer"] in paper else "",
        ]
        for run in runs
        for losses in [[epoch["test_loss"] for epoch in run["curve"]]]
    ]
    constant = f"{found['constant']['loss']:.1e}"
    rows.append(["constant output", "", "", constant, constant, "", ""])
    head = [
        "layer",
        "seed",
        "epochs",
        "test loss, best epoch",
        f"median of the last {LAST}",
        "below the paper's from epoch",
        "paper",
    ]
    return markdown_table(head, rows)


def below(losses, bound):
    """Return the first epoch whose loss is below a bound, as text, if there is one."""
    found = (f"{i}" for i, loss in enumerate(losses, start=1) if bound and loss < bound)
    return next(found, "")
