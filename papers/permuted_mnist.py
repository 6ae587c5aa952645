"""Do momentum LSTMs read permuted MNIST better than an LSTM, at the paper's own length?

    python -m papers.permuted_mnist
    python -m papers.permuted_mnist --layers DTRIV MomentumDTRIV
    python -m papers.permuted_mnist --task mnist --output runs/mnist

Tables 1 and 11 of Nguyen et al. (2020): LSTMs of 128 units, 150 epochs over images of 784
pixels in one fixed random order, with the paper's settings; Table 4: DTRIV of 170 units. We
train on 50,000 images, since 10,000 choose the epoch; the paper trains on all 60,000. Beside
them LSTM-x2.5, which the paper does not have: MomentumLSTM without momentum, its term
W x + b multiplied by what a momentum of 0.6 multiplies a constant one by, 1 / (1 - 0.6). The
bias counts, too: forget gates start at 3.5. Those of MomentumLSTM rise to 3.5 within 20
steps, those of LSTM stay at 2.

LSTM runs as MomentumLSTM with momentum 0 and step size 1: the released LSTM has two biases,
too. With the extra `cpu` an epoch of an LSTM takes three to four minutes on one CPU core
with AVX-512, five to six with AVX2. On an NVIDIA H200, ten rows at once by its multi-process
service took 23 s an epoch, AdamLSTM and RMSPropLSTM 35 to 50 s; SRLSTM loops over steps there.
So the rows take turns, an epoch each, and can be compared whenever they are read.

If interrupted, repeat the command to resume; with `--moved` on another machine, and
`processors` in results.json says where each epoch ran. Layers and seeds may change later, and
processes with layers of their own may share an output. Score and report are those of
papers/reproduce.py; the report also has the test accuracy as the paper scores it, by the epoch
best on test, how soon each row reaches 80, 90 and 92 %, and the learning curves in one picture.
"""

import dataclasses

import numpy as np
from matplotlib.figure import Figure

from papers import tasks
from papers.command_line import add_task_options, comparison_parser, positive, run_example
from papers.experiments import Comparison, compare, plots
from papers.experiments.report import cell, of_the_papers, updates_of_an_epoch
from papers.experiments.summary import (
    going_on,
    layers,
    mean_and_spread,
    metric_curves,
    of_layer,
)
from papers.paper_claims import claims_on
from papers.presentation import markdown_table

LSTMS = ("LSTM", "MomentumLSTM", "AdamLSTM", "RMSPropLSTM", "SRLSTM")
# Rows that are MomentumLSTM without momentum, and their step sizes.
GAINS = {"LSTM": 1.0, "LSTM-x2.5": 2.5}
ROWS = {**dict.fromkeys([*LSTMS, *GAINS], 128), "DTRIV": 170, "MomentumDTRIV": 170}


def main(argv=None):
    return run_example(__file__, argv, parse, lambda *given: compare(comparison(*given)))


def parse(argv):
    output, default = "runs/permuted_mnist", [*LSTMS, "LSTM-x2.5"]
    parser = comparison_parser(__doc__, ROWS, output, default, epochs=150)
    add = parser.add_argument
    add("--task", choices=["pmnist", "mnist"], default="pmnist", help="the order of the pixels")
    add("--at-once", type=positive(int), default=1, help="epochs of a row before the next")
    moved = "go on with runs of another device, or of another version of the backend"
    add("--moved", action="store_true", help=moved)
    add_task_options(parser)
    return parser.parse_args(argv)


def comparison(options, command):
    """Return the `Comparison` of the rows."""
    task = tasks.load(options.task, **dict(options.set))
    setups = {n: setup(options.task, n, options.epochs) for n in dict.fromkeys(options.layers)}
    return Comparison(
        task=task,
        setups=setups,
        seeds=options.seeds,
        output=options.output,
        budget={
            "name": "Nguyen et al. (2020), Tables 1, 4 and 11",
            "updates in the paper": 150 * -(-60_000 // 128),
            "rows in the paper": [*LSTMS, "DTRIV", "MomentumDTRIV"],
            "seeds in the paper": 5,
            "deviations from the paper": deviations(task, options.task),
        },
        title=f"MNIST, pixel by pixel{', permuted' if options.task == 'pmnist' else ''}",
        command=command,
        epochs_at_once=options.at_once,
        moved=options.moved,
        sections=(how_good_how_soon,),
        claims=claims_on(options.task),
    )


def deviations(task, name):
    """Return where runs of a task differ from the paper's, as text."""
    order = "one fixed order of the pixels, of this package; " if name == "pmnist" else ""
    return (
        f"{order}the last {len(task.validation):,} training images validate, "
        f"so that an epoch has {-(-len(task.train) // 128)} updates in place of 469; "
        "LSTM runs as MomentumLSTM with momentum 0 and step size 1, which is the released LSTM "
        "with its two biases; pixels are grey values in [0, 1], where appendix A.1 speaks of "
        "binary images; the paper has five seeds and reports the best epoch on test"
    )


def setup(task, name, epochs):
    """Return the `Recipe` of a row."""
    recipe = tasks.recipe(task, "MomentumLSTM" if name in GAINS else name, ROWS[name])
    arguments = dict(recipe.arguments)
    if name in GAINS:
        arguments |= {"momentum": 0.0, "step_size": GAINS[name]}
    return dataclasses.replace(recipe, arguments=arguments, epochs=epochs)


# Test accuracies, and how soon a row reaches them.
LEVELS = (0.8, 0.9, 0.92)


def how_good_how_soon(results):
    """Return the section of the report on both of the paper's questions, and its picture."""
    runs = results["runs"]
    columns = ["layer", "seeds, epochs", "best on validation", "best on test", "papers"]
    columns += [f"until {level:.0%}" for level in LEVELS]
    cells = []
    for layer in layers(runs):
        mine = of_layer(runs, layer)
        curves = metric_curves(runs, layer, "test_accuracy")
        tested = [run for run in mine if run["test"]]
        chosen = [run["test"]["accuracy"] for run in tested]
        best = [max(epoch["test_accuracy"] for epoch in run["curve"]) for run in tested]
        updates = updates_of_an_epoch(results, mine[0])
        missed = "not yet" if any(map(going_on, mine)) else "not reached"
        cells.append(
            [
                layer,
                f"{len(curves)}, {curves.shape[1]}",
                spread_text(chosen),
                spread_text(best),
                ", ".join(map(cell, of_the_papers(results, layer))) or "-",
                *(soon_text(curves, level, updates) or missed for level in LEVELS),
            ]
        )
    text = (
        "## How good, and how soon?\n\n"
        f"{markdown_table(columns, cells)}\n\n"
        "Test accuracy of each seed's epoch that is best on validation, and of the one best on "
        "test, as the paper scores; mean ± standard deviation. Then epochs (and updates) until "
        "the mean test accuracy over seeds first reaches a level."
    )
    return text, {"curves.png": curves_picture(results)}


def spread_text(scores):
    """Return the mean and the standard deviation of scores as text."""
    if not len(scores):
        return "diverged"
    deviation = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return mean_and_spread({"test": float(np.mean(scores)), "test_sd": deviation})


def soon_text(curves, level, updates):
    """Return the first epoch at which the mean of curves reaches a level, as text, or None."""
    (reached,) = np.nonzero(curves.mean(axis=0) >= level) if curves.size else ([],)
    if not len(reached):
        return None
    return f"{reached[0] + 1} ({(reached[0] + 1) * updates:,})"


def curves_picture(results):
    """Draw the test accuracy of every row over epochs."""
    ends = plots.last_values(results, "accuracy")
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    axes = figure.subplots()
    plots.draw_curves(axes, results, "test_accuracy", list(ends), list(ends))
    for level in LEVELS:
        axes.axhline(level, color="0.7", linewidth=0.8, linestyle=":", zorder=1)
    axes.set(xlabel="epoch", ylabel="test accuracy")
    if min(ends.values(), default=0) > LEVELS[1]:  # small leads are to be seen
        axes.set_ylim(LEVELS[0], max(ends.values()) + 0.02)
    axes.set_title(plots.finding(results, "accuracy", ends), wrap=True)
    colors = plots.styles(list(ends))
    plots.name_lines(axes, [(layer, end, colors[layer][0]) for layer, end in ends.items()])
    return figure


if __name__ == "__main__":
    main()
