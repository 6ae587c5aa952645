"""Which layer, when? Layers compared on real sequences, each with numbers searched for it.

    python -m papers.real_sequences
    python -m papers.real_sequences --sets GunPoint --layers LSTM GRU RMSPropLSTM
    python -m papers.real_sequences_report runs/real_sequences --output runs/report

Needs the extras `archive`, `examples` and `tuner`. The sets are those of the UCR and UEA
archives inside aeon and sktime, or in `--folder`, series of statsmodels, of which the next
value is to be told, scikit-learn's digits by rows and by pixels, and spoken digits, of which
`--recordings` names the folder; nothing is downloaded.

On each set all layers have as many parameters as an LSTM of `--units` units. For each layer,
`tuning.tune` makes `--trials` trials of learning rate and the layer's own numbers, the first by
default, and the validation loss chooses. With the best, `--seeds` fresh seeds train, each until
the validation loss has not improved for `--patience` epochs of `--updates` updates; the model
of the best epoch is tested once, and again with its inputs changed, see `perturbations.py`.

The output directory receives a folder for each set with the searches and results.json, see
`SCHEMA` in real_training.py. After an interruption the same command goes on: at most one trial
or one run is lost.
Sets may run in several processes at a time; layers, seeds and sets may be added later.
"""

from functools import partial
from pathlib import Path

import keras_tuner
from rich import print

from keras_momentum_rnn.atomic_files import differences
from keras_momentum_rnn.tuning import suggest_layer, tune
from papers.command_line import documented_parser, folder, new_folder, positive, run_example
from papers.contestants import (
    CONTESTANTS,
    EVERY,
    REFERENCES,
    SAMPLE,
    Contestant,
    excluded,
    parameters_of,
    solved_units,
)
from papers.experiments import runner
from papers.real_sets import SETS, loader
from papers.real_training import fit, new_run, results_file, sentence, train
from papers.reference_lines import reference_run

RATES = (3e-4, 3e-2)
DEFAULT_RATE = 3e-3
CLIPNORM = 1.0
# Of the searches; those of the runs begin at 0.
SEARCH_SEED = 1000


def main(argv=None):
    return run_example(__file__, argv, parse, study)


def parse(argv):
    parser = documented_parser(__doc__)
    add, known = parser.add_argument, [*EVERY, *REFERENCES]
    compared = [*CONTESTANTS, *REFERENCES]
    add("--sets", nargs="+", metavar="NAME", help="in this order; default: all there are")
    add("--folder", type=folder, help="with .ts files, in place of the sets inside aeon")
    add("--recordings", type=folder, help="with {digit}_{speaker}_{index}.wav, SpokenDigits")
    add("--layers", nargs="+", choices=known, default=compared, help="by name")
    add("--units", type=positive(int), default=32, help="of the LSTM whose size all have")
    add("--trials", type=positive(int), default=8, help="of each layer's search")
    add("--seeds", type=positive(int), default=5, help="runs of each layer with the best")
    add("--updates", type=positive(int), default=50, help="of an epoch")
    add("--epochs", type=positive(int), default=80, help="at most")
    add("--patience", type=positive(int), default=15, help="epochs without a better loss")
    add("--batch-size", type=positive(int), default=16, help="sequences per update")
    add("--output", type=new_folder, default=Path("runs/real_sequences"), help="for results")
    options = parser.parse_args(argv)
    if options.sets is None:
        options.sets = [n for n in SETS if n != "SpokenDigits" or options.recordings]
    if "SpokenDigits" in options.sets and not (options.recordings or options.folder):
        parser.error("SpokenDigits needs --recordings, the folder of its wav files")
    options.layers = list(dict.fromkeys(options.layers))
    return options


def study(options, command):
    """Compare the layers on all sets, and return the results by set."""
    return {name: compare_on(name, options, command) for name in dict.fromkeys(options.sets)}


def compare_on(name, options, command):
    """Compare the layers on a set, and return its results."""
    load = loader(name, options)
    loaded = {how: load(standardise=how) for how in ("training", SAMPLE)}
    task = loaded["training"]
    lstm = CONTESTANTS["LSTM"]
    budget = {
        "units of the LSTM": options.units,
        "parameters": parameters_of(task, lstm, options.units),
        "trials": options.trials,
        "updates of an epoch": options.updates,
        "epochs at most": options.epochs,
        "patience": options.patience,
        "batch_size": options.batch_size,
        "learning rates": RATES,
        "clipnorm": CLIPNORM,
    }
    results = results_file(options.output / name, task, budget, command)
    results.write()
    for layer in options.layers:
        new = [new_run(layer, seed) for seed in range(options.seeds)]
        if all(results.ended(results.known(run), 1) for run in new):
            continue
        print(f"{name}: {layer}")
        if why := excluded(layer, *task.input_shape):
            print(f"{layer} is left out: {why}")
            continue
        if layer in REFERENCES:
            for run in new:
                results.write(reference_run(run, task))
            continue
        contestant = EVERY[layer]
        given = loaded[contestant.standardise]
        setup = searched(contestant, given, budget, options, results.folder / "search" / layer)
        earlier = [run for run in results.content["runs"] if run["layer"] == layer]
        if different := [line for run in earlier for line in differences(run["setup"], setup)]:
            raise ValueError(f"The search of {layer} changed; remove its runs:{different}")
        runner.finish(
            [({**run, "setup": setup}, 1) for run in new],
            results,
            partial(train, contestant=contestant, task=given, base=task, budget=budget),
            whole=lambda run: 1,
            label=lambda run: f"{run['layer']}, seed {run['seed']}",
            sentence=partial(sentence, metric=task.metric),
            unit="run",
        )
    return results.content


class Search(keras_tuner.HyperModel):
    """The models of a search: one layer, its numbers and the learning rate to be chosen.

    Args:
        contestant: `Contestant`.
        task: `Task`.
        units: int.
        budget: dict, as in results.json.
    """

    objective = keras_tuner.Objective("val_loss", "min")

    def __init__(self, contestant, task, units, budget):
        super().__init__()
        self.contestant: Contestant = contestant
        self.task, self.units, self.budget = task, units, budget

    def build(self, hp):
        layer = suggest_layer(
            hp, [self.contestant.layer], self.units, **self.contestant.arguments
        )
        rate = hp.Float("learning_rate", *RATES, sampling="log")
        return self.contestant.model(self.task, layer, rate, self.budget["clipnorm"])

    def fit(self, hp, model, *args, callbacks=(), **kwargs):
        return fit(model, self.task, self.budget, SEARCH_SEED, callbacks)


def searched(contestant, task, budget, options, directory):
    """Return the setup that a search found, a dict."""
    units = solved_units(task, contestant, budget["parameters"])
    results = tune(
        Search(contestant, task, units, budget),
        directory=directory,
        max_trials=options.trials,
        epochs=options.epochs,
        first=[{"learning_rate": DEFAULT_RATE, **contestant.defaults()}],
        seed=SEARCH_SEED,
        validation_data=(task.validation.x, task.validation.y),
    )
    values = dict(results.best.values)
    rate = values.pop("learning_rate")
    numbers = {n: v for n, v in values.items() if n not in ("layer", "units")}
    return {
        "layer": contestant.layer,
        "units": units,
        "arguments": contestant.arguments,
        "numbers": numbers,
        "learning_rate": rate,
        "validation": results.best.score,
        "trials": sum(row.completed for row in results.rows),
    }


if __name__ == "__main__":
    main()
