"""Show the results of `measure.py` as tables and pictures, and in the pages.

    python benchmarks/report.py

Reads benchmarks/results/*.json; writes tables.md, ratios.png and scaling.png beside them, and
the tables and sentences of the README and the pages below, each between its two comments.
"""

import argparse
import json
from pathlib import Path

import matplotlib.pyplot as plt
import speed_page
from matplotlib.ticker import LogLocator, NullFormatter

from keras_momentum_rnn.presentation import (
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    markdown_table,
    with_tables,
)

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md"] + [
    ROOT / "docs" / name for name in ("speed.md", "deploy.md", "guides/orthogonal.md")
]
# The results of other benchmarks, and the functions of `speed_page` that make a page's part.
OTHERS = {
    "native.json": ("native", "waiting"),
    "quantised.json": ("quantised",),
    "streaming.json": ("streaming",),
}
# The cases of the table of training steps, and those whose ratios are drawn.
SHOWN = ("main", "pmnist-128")
DRAWN = ("main", "pmnist-128", "pmnist-256", "ptb", "orthogonal")
COLORS = {
    "the layer it replaces": BLUE,
    "LSTM": ORANGE,
    "RNN(LSTMCell)": VERMILION,
    "released loop": GREEN,
}


def load(folder):
    """Return the results by file and case; each must be one that `measure.py` wrote."""
    files = sorted(folder.glob("[cg]pu-*.json"))
    if not files:
        raise SystemExit(f"No results in {folder}: run benchmarks/measure.py first.")
    found = {}
    for file in files:
        for case, results in json.loads(file.read_text()).items():
            if not isinstance(results, dict) or not {"layers", "case"} <= results.keys():
                raise SystemExit(f"{file} is no result of benchmarks/measure.py.")
            found[file.stem, case] = results
    return found


def table(name, results):
    """Return one case's results in Markdown."""
    case = ", ".join(f"{k} {v}" for k, v in results["case"].items())
    versions = f"Keras {results['keras']}, {results['backend']} {results[results['backend']]}"
    head = (
        f"## {' '.join(name)}\n{case}. {results['device']}; Python {results['python']}, "
        f"{versions}; {results['rounds']} rounds. `{results['command']}`"
    )
    titles = ["layer", "path", "ms", "MB a sample", "beside", "ms", "training", "quartiles"]
    titles += ["inference", "first call", "memory"]
    rows = []
    for row in results["layers"]:
        for b in row["baselines"]:
            ratio = b["ratio"]
            low, high = ratio["training"]["quartiles"]
            rest = [ratio["inference"]["median"], ratio["first_call"], ratio.get("peak")]
            rows.append(
                [
                    row["layer"],
                    row["path"],
                    f"{row['training']:.0f}",
                    "" if row["peak"] is None else f"{round(row['peak'], 2)}",
                    b["layer"],
                    f"{b['training']:.0f}",
                    f"{ratio['training']['median']:.2f}",
                    f"{low:.2f} to {high:.2f}",
                    *("" if r is None else f"{r:.2f}" for r in rest),
                ]
            )
    return f"{head}\n\n{markdown_table(titles, rows)}\n"


def steps_table(found):
    """Return the ratios of a training step to the LSTM or GRU of each backend and device."""
    columns = [key for key in found if key[1] in SHOWN]
    heads = [f"{speed_page.head(found[key])}, {key[1]}" for key in columns]
    layers = dict.fromkeys(row["layer"] for key in columns for row in found[key]["layers"])
    rows = [
        [layer, *(times_text(found[key]["layers"], layer) for key in columns)]
        for layer in layers
    ]
    return markdown_table(["layer", *heads], rows)


def times_text(rows, layer):
    """Return the ratio of a layer to its first baseline among PyTorch's own, or to Keras's."""
    for row in rows:
        if row["layer"] == layer:
            ratio = speed_page.first_baseline(row)["ratio"]["training"]
            low, high = ratio["quartiles"]
            return f"{ratio['median']:.2f} ({low:.2f} to {high:.2f})"
    return ""


def draw_ratios(found, path):
    """Draw the ratio to each baseline by layer, with its quartiles: cases by backends."""
    files = list(dict.fromkeys(file for file, _ in found))
    cases = [case for case in DRAWN if any(key[1] == case for key in found)]
    heights = [max(len(r["layers"]) for k, r in found.items() if k[1] == c) for c in cases]
    figure, panels = plt.subplots(
        len(cases),
        len(files),
        figsize=(2 + 3.6 * len(files), 2 + 0.9 * len(cases) + 0.22 * sum(heights)),
        height_ratios=[height + 1 for height in heights],
        layout="constrained",
        squeeze=False,
        sharex=True,
        sharey="row",
    )
    entries = {}
    for panel, key in zip(panels.T.flat, ((file, case) for file in files for case in cases)):
        panel.set_title(" ".join(key), fontsize=10)
        panel.axvline(1, color="black", lw=0.8)
        panel.grid(axis="x", which="both", alpha=0.3)
        if key in found:
            draw_panel(panel, found[key]["layers"])
            handles, labels = panel.get_legend_handles_labels()
            entries |= dict(zip(labels, handles))
    for panel in panels[:, 0]:
        panel.invert_yaxis()
    for panel in panels[-1]:
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
    title = "time of a training step, as a ratio to that of"
    figure.legend(entries.values(), entries, title=title, loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=120)


def draw_panel(panel, rows):
    """Draw one case on one backend."""
    named = {"keras.layers.RNN(LSTMCell)": "RNN(LSTMCell)", "released loop": "released loop"}
    points = {}
    for i, row in enumerate(rows):
        for number, b in enumerate(row["baselines"]):
            kind = named.get(b["layer"], "LSTM" if number else "the layer it replaces")
            points.setdefault(kind, []).append((i, b["ratio"]["training"]))
    for kind, found in points.items():
        middle = [r["median"] for _, r in found]
        spread = [
            [r["median"] - r["quartiles"][0] for _, r in found],
            [r["quartiles"][1] - r["median"] for _, r in found],
        ]
        numbers = [i for i, _ in found]
        look = {"color": COLORS[kind], "label": kind, "fmt": "o", "ms": 4}
        panel.errorbar(middle, numbers, xerr=spread, **look)
    panel.set_yticks(range(len(rows)), [row["layer"] for row in rows], fontsize=8)
    panel.set_ylim(-0.6, len(rows) - 0.4)


def draw_scaling(found, path):
    """Draw time and memory of a training step over time and over units, by backend."""
    files = dict.fromkeys(file for file, _ in found)
    figure, panels = plt.subplots(
        4, len(files), figsize=(4.2 * len(files), 12), layout="constrained", squeeze=False
    )
    for column, file in enumerate(files):
        for row, (size, what) in enumerate(
            (size, what) for what in ("training", "peak") for size in ("time", "units")
        ):
            panel = panels[row, column]
            for layer, points in scaling(found, file, size, what).items():
                style = "--" if layer.startswith(("keras", "torch")) else "-"
                panel.plot(*zip(*sorted(points)), style, marker="o", ms=4, label=layer)
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.grid(alpha=0.3)
            panel.set_xlabel({"time": "time steps", "units": "units"}[size])
            panel.set_ylabel({"training": "ms a step of training", "peak": "MB a sample"}[what])
            if row == 0:
                panel.set_title(file)
                panel.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def scaling(found, file, size, what):
    """Return [(size, number), ...] for each layer, over the cases that differ in one size."""
    lines = {}
    for (name, case), results in found.items():
        if name != file or not (case.startswith(size) or (size, case) == ("units", "main")):
            continue
        for row in results["layers"]:
            if row["layer"] not in ("MomentumLSTM", "AdamLSTM"):
                continue
            for one in (row, *row["baselines"]):
                if one.get(what) and one["layer"].endswith("LSTM"):
                    points = lines.setdefault(one["layer"], {})
                    points.setdefault(results["case"][size], one[what])
    return {layer: list(points.items()) for layer, points in lines.items()}


def all_tables(folder, found):
    """Return what stands between the comments of the pages, by name."""
    tables = {"benchmarks": steps_table(found), **speed_page.tables(found)}
    for file, names in OTHERS.items():
        if (folder / file).exists():
            results = json.loads((folder / file).read_text())
            tables |= {name: getattr(speed_page, name)(results) for name in names}
            if file == "native.json":
                tables["speed_in_short"] = speed_page.speed_in_short(results, found)
    return tables


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument(
        "--pages", type=Path, nargs="*", default=PAGES, help="files that show the tables"
    )
    options = parser.parse_args()
    folder, found = options.results, load(options.results)
    text = "\n".join(table(name, results) for name, results in found.items())
    (folder / "tables.md").write_text(
        "# Time and memory beside other layers\nMilliseconds of a training step, the median of "
        "the rounds, and the most memory that it takes; every layer runs in turn with those it "
        "stands beside, in one process. The last five columns are ratios to them.\n\n" + text
    )
    draw_ratios(found, folder / "ratios.png")
    draw_scaling(found, folder / "scaling.png")
    tables = all_tables(folder, found)
    for page in options.pages:
        page.write_text(with_tables(page.read_text(), tables, page))
    written = [folder / name for name in ("tables.md", "ratios.png", "scaling.png")]
    print(*written, *options.pages, sep="\n")


if __name__ == "__main__":
    main()
