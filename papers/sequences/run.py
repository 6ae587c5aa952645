"""Does a rule help the layer it is put on? The layers of the pairs train on real sequences.

    python -m papers.sequences.run --recordings ../recordings
    python -m papers.sequences.run --sets Coffee Trace --output runs/pairs
    python -m papers.sequences.report runs/pairs

Needs the packages that new_sets.py names; protocol.md says what is compared, and how. The
output directory receives a folder for each set, with results.json. The same command resumes
after an interruption: results.json is written after every search and every run, and holds all
that a machine needs to go on. The searches themselves, in the folders `search`, are needed only
for a search that has not ended. Several processes may train different sets at a time.
"""

from pathlib import Path

from rich import print

from keras_momentum_rnn.atomic_files import locked, read_results, write_json
from papers.command_line import documented_parser, folder, positive, run_example
from papers.experiments.results_file import surroundings
from papers.files import differences
from papers.sequences.layers import CLIPNORM, CONTESTANTS, RATES
from papers.sequences.new_sets import PARTS, SETS, load
from papers.sequences.training import searched, trained
from papers.tasks.archive import MASK_VALUE


def main(argv=None):
    return run_example(__file__, argv, parse, study)


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--sets", nargs="+", choices=[*SETS], help="in this order; default: all")
    add("--recordings", type=folder, help="with {digit}_{speaker}_{take}.wav, for Speakers")
    add("--layers", nargs="+", choices=[*CONTESTANTS], default=[*CONTESTANTS], help="by name")
    add("--units", type=positive(int), default=32, help="of the LSTM whose size all have")
    add("--trials", type=positive(int), default=8, help="of each layer's search")
    add("--seeds", type=positive(int), default=5, help="runs of each layer with the best")
    add("--updates", type=positive(int), default=50, help="of an epoch")
    add("--epochs", type=positive(int), default=80, help="at most")
    add("--patience", type=positive(int), default=15, help="epochs without a better loss")
    add("--batch-size", type=positive(int), default=16, help="sequences per update")
    add("--output", type=Path, default=Path("runs/pairs"), help="for results")
    options = parser.parse_args(argv)
    if options.sets is None:
        options.sets = [name for name in SETS if name != "Speakers" or options.recordings]
    if "Speakers" in options.sets and not options.recordings:
        parser.error("Speakers needs --recordings, the folder of its wav files")
    return options


def study(options, command):
    """Train the layers on all sets, as far as they are not trained."""
    contestants = [CONTESTANTS[name] for name in options.layers]
    for name in options.sets:
        compare_on(load(name, options.recordings), contestants, options, command)


def compare_on(task, contestants, options, command):
    """Train contestants on a set, and return what its results.json holds.

    Args:
        task: `Task`.
        contestants: list of `Contestant`.
        options: with the budget and the output directory.
        command: str, the command line.
    """
    path = options.output / task.name / "results.json"
    budget = budget_of(task, options)
    settings = {"task": described(task), "budget": budget}
    around = surroundings()
    new = {"commands": [], **around, "settings": settings, "setups": {}, "runs": []}
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent / "lock", wait=False):
        content = read_results(path, new)
        if missing := [n for n in ("settings", "setups", "runs") if n not in content]:
            raise ValueError(f"{path} lacks {missing}; repair it or choose another output")
        there = {name: content.get(name) for name in around}
        if different := differences({**content["settings"], **there}, {**settings, **around}):
            raise ValueError(f"{path} has other settings:{''.join(different)}")
        content["commands"] = list(dict.fromkeys([*content["commands"], command]))
        write_json(path, content)  # before a search begins: it goes on with this budget alone
        done = {(run["layer"], run["seed"]) for run in content["runs"]}
        for contestant in contestants:
            layer, setups = contestant.layer, content["setups"]
            if layer not in setups:
                search = path.parent / "search" / layer
                setups[layer] = searched(contestant, task, budget, search)
                write_json(path, content)
            for seed in range(options.seeds):
                if (layer, seed) in done:
                    continue
                run = trained(contestant, setups[layer], task, budget, seed)
                content["runs"].append(run)
                write_json(path, content)
                told = "diverged" if run["test"] is None else f"{run['test'][task.metric]:.3f}"
                print(f"{task.name}: {layer}, seed {seed}: {told}, {run['seconds']:.0f} s")
    return content


def described(task):
    """Return what results.json says of a task."""
    return {
        "name": task.name,
        "samples": [len(getattr(task, part)) for part in PARTS],
        "steps": task.input_shape[0],
        "channels": task.input_shape[1],
        "masked": bool((task.test.x == MASK_VALUE).any()),
        "metric": task.metric,
        "larger_is_better": task.larger_is_better,
        "chance": {name: round(value, 10) for name, value in task.chance.items()},
    }


def budget_of(task, options):
    """Return what all layers get on a set."""
    return {
        "units of the LSTM": options.units,
        "parameters": CONTESTANTS["LSTM"].parameters(task, options.units),
        "trials": options.trials,
        "updates of an epoch": options.updates,
        "epochs at most": options.epochs,
        "patience": options.patience,
        "batch size": options.batch_size,
        "learning rates": list(RATES),
        "clipnorm": CLIPNORM,
    }


if __name__ == "__main__":
    main()
