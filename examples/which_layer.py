"""Which layer suits your data? The comparison on real sequences, small, on a file of yours.

    python examples/which_layer.py mydata.csv
    python examples/which_layer.py mydata.npz --layers LSTM GRU RMSPropLSTM
    python examples/which_layer.py folder

A .csv has one row for each step, in the order of time, and a head: the columns `sequence`
(which one the step belongs to) and `label` (the same in all steps of a sequence), in any place;
all others are channels of numbers, empty where a value is missing. An .npz has `x`, of shape
(samples, steps, channels), NaN past a shorter sequence's end, and `y`, of shape (samples,);
`x_test` and `y_test` if you have a test set. A folder has NAME_TRAIN.ts and NAME_TEST.ts.

Labels are classes, unless they are numbers with a decimal point (.csv) or floats (.npz): then
they are numbers to be told. Without a test set, `--test` of the sequences, drawn by class, are
for test.

Layers, searches and report are those of papers/real_sequences.py, with fewer trials and
seeds. The output directory receives the data as .ts files, results.json, report.md and
pictures. After an interruption the same command goes on.
"""

import argparse
import contextlib
import csv
import math
from pathlib import Path

import numpy as np
from rich import print

from keras_momentum_rnn.atomic_files import replaced
from papers import real_sequences, real_sequences_report
from papers.command_line import documented_parser, new_folder, positive, run_example
from papers.contestants import EVERY, REFERENCES
from papers.tasks.archive import available, chosen

LAYERS = (
    "LSTM",
    "GRU",
    "Standardised-LSTM",
    "RMSPropLSTM",
    "MomentumLSTM",
    "linear",
    "MiniRocket",
)
NAME = "data"


def main(argv=None):
    return run_example(__file__, argv, parse, which)


def parse(argv):
    parser = documented_parser(__doc__)
    add, known = parser.add_argument, [*EVERY, *REFERENCES]
    add("data", type=Path, help="a .csv, an .npz, or a folder with .ts files")
    add("--layers", nargs="+", choices=known, default=list(LAYERS), help="what to compare")
    add("--test", type=share, default=0.3, help="of the sequences, where no test set is given")
    add("--units", type=positive(int), default=32, help="of the LSTM whose size all have")
    add("--trials", type=positive(int), default=4, help="of each layer's search")
    add("--seeds", type=real_sequences_report.several, default=3, help="runs with the best")
    add("--epochs", type=positive(int), default=40, help="at most, of 50 updates each")
    add("--output", type=new_folder, default=Path("runs/which_layer"), help="for results")
    return parser.parse_args(argv)


def share(text):
    value = positive(float)(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"must be below 1. Received: {text}")
    return value


def which(options, command):
    """Compare the layers, write the report, and return the results."""
    found = prepared(options)
    (name,) = available(found)
    given = [f"--sets={name}", f"--folder={found}", f"--output={options.output}"]
    given += [f"--{n}={getattr(options, n)}" for n in ("units", "trials", "seeds", "epochs")]
    arguments = real_sequences.parse([*given, "--layers", *options.layers])
    results = real_sequences.study(arguments, command)[name]
    told = [str(options.output), f"--seeds={options.seeds}"]
    real_sequences_report.report(real_sequences_report.parse(told), command)
    return results


def prepared(options):
    """Return a folder that has the data as the .ts files of one set.

    Raises:
        ValueError: if the data is none of what this reads.
    """
    if options.data.is_dir():
        if len(found := available(options.data)) != 1:
            raise ValueError(
                "`data` must have one pair NAME_TRAIN.ts and NAME_TEST.ts. "
                f"Received: {str(options.data)!r} with {', '.join(found) or 'none'}"
            )
        return options.data
    read = {".csv": read_csv, ".npz": read_npz}.get(options.data.suffix)
    if read is None or not options.data.exists():
        raise ValueError(
            "`data` must be an existing .csv or .npz, or a folder with .ts files. "
            f"Received: {str(options.data)!r}"
        )
    training, testing = read(options.data)
    labels = np.array(training[1])
    by_class = labels.dtype.kind != "f"
    if testing is None:
        held_out = chosen(labels, options.test, by_class, np.random.default_rng(0))
        testing, training = (
            [part(of, mask) for of in training] for mask in (held_out, ~held_out)
        )
    classes = sorted(set(training[1])) if by_class else None
    if by_class and (new := set(testing[1]) - set(classes)):
        raise ValueError(f"The test set has classes that the training set lacks: {new}")
    where = options.output / "sets"
    where.mkdir(parents=True, exist_ok=True)
    began = options.output / NAME / "results.json"
    began = began if began.exists() else None
    for split, (series, targets) in (("TRAIN", training), ("TEST", testing)):
        write(where / f"{NAME}_{split}.ts", series, targets, classes, began)
        print(f"{split}: {len(series)} sequences of {series[0].shape[1]} channels")
    return where


def part(values, mask):
    return [value for value, wanted in zip(values, mask) if wanted]


def read_csv(path):
    """Return (list of (steps, channels), labels) of a .csv, and None for the test set."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        head = reader.fieldnames or []
        rows = [(reader.line_num, row) for row in reader]
    channels = [name for name in head if name not in ("sequence", "label")]
    if not {"sequence", "label"} <= set(head) or not channels or not rows:
        raise ValueError(
            f"{path} must have the columns `sequence`, `label` and one or more of numbers, and "
            f"rows. Received: {', '.join(head) or 'no columns'}; {len(rows)} rows"
        )
    if "" in head or len(set(head)) < len(head):
        raise ValueError(
            f"{path}: each column must have a name of its own. (pandas leaves out its index by "
            f"`to_csv(index=False)`.) Received: {', '.join(map(repr, head))}"
        )
    series, labels = {}, {}
    for line, row in rows:
        cells = [cell for name in head if (cell := row[name]) is not None]
        cells += row.get(None, [])
        if len(cells) != len(head):
            raise ValueError(
                f"{path}, line {line} must have {len(head)} cells, as the head has. "
                f"Received: {', '.join(cells)}"
            )
        name = row["sequence"]
        if not name or not row["label"]:
            raise ValueError(
                f"{path}, line {line}: each step must have a sequence and a label. "
                f"Received: sequence={name!r}, label={row['label']!r}"
            )
        if labels.setdefault(name, row["label"]) != row["label"]:
            raise ValueError(
                f"{path}, line {line}: sequence {name} has two labels. "
                f"Received: {labels[name]!r}, then {row['label']!r}"
            )
        try:
            step = [float(row[channel] or "nan") for channel in channels]
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from error
        series.setdefault(name, []).append(step)
    return ([np.array(one) for one in series.values()], labels_of(path, labels)), None


def labels_of(path, labels):
    """Return the labels of sequences, a list: numbers if some are, with a decimal point."""
    found = list(labels.values())
    if not any("." in label and is_number(label) for label in found):
        return found
    for name, label in labels.items():
        if not is_number(label):
            raise ValueError(
                f"{path}: where labels have a decimal point, all must be numbers. "
                f"Received: {label!r} of sequence {name}"
            )
    return [float(label) for label in found]


def is_number(text):
    with contextlib.suppress(ValueError):
        return math.isfinite(float(text))
    return False


def read_npz(path):
    """Return training and test set of an .npz, the latter None where it has none."""
    with np.load(path) as stored:
        sets = []
        for x, y in (("x", "y"), ("x_test", "y_test")):
            if x == "x_test" and not {x, y} & {*stored}:
                sets.append(None)
                continue
            if not {x, y} <= {*stored}:
                raise ValueError(f"{path} must have `{x}` and `{y}`. Received: {stored.files}")
            values, labels = np.asarray(stored[x], "float64"), stored[y]
            if values.ndim != 3 or labels.shape != values.shape[:1]:
                raise ValueError(
                    f"`{x}` must be (samples, steps, channels) and `{y}` (samples,). Received: "
                    f"{values.shape} and {labels.shape}"
                )
            sets.append(([without_end(one) for one in values], labels.tolist()))
    return sets


def without_end(sequence):
    """Return a sequence without the steps of NaN at its end."""
    present = np.flatnonzero(~np.isnan(sequence).all(axis=1))
    return sequence[: present[-1] + 1] if len(present) else sequence[:1]


def write(path, series, targets, classes, began=None):
    """Write a set as a .ts file, classes by their number.

    Args:
        path: its `Path`.
        series, targets: lists.
        classes: list, None where targets are numbers.
        began: `Path` of results, for which the file may not change, or None.

    Raises:
        ValueError: if it would.
    """
    same = len({len(one) for one in series}) == 1
    gaps = any(np.isnan(one).any() for one in series)
    channels = series[0].shape[1]
    label = "@targetLabel true"
    if classes is not None:
        targets = [classes.index(target) for target in targets]
        label = f"@classLabel true {' '.join(map(str, range(len(classes))))}"
    head = {
        "problemName": NAME,
        "timeStamps": "false",
        "missing": str(gaps).lower(),
        "univariate": str(channels == 1).lower(),
        "dimensions": channels,
        "equalLength": str(same).lower(),
    }
    lines = [f"@{name} {value}" for name, value in head.items()] + [label, "@data"]
    for one, target in zip(series, targets):
        told = [",".join("?" if np.isnan(v) else f"{v:.17g}" for v in row) for row in one.T]
        lines.append(":".join([*told, str(target)]))
    text = "\n".join(lines) + "\n"
    if began and path.exists() and path.read_text(encoding="utf-8") != text:
        raise ValueError(
            f"{began} holds results for other sequences, those of {path}; remove "
            f"{began.parent} or choose another output. `--test` changes sequences, too."
        )
    with replaced(path) as new:
        new.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
