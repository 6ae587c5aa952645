"""Show the results of `measure.py` as tables and pictures, and in the pages.

    python benchmarks/report.py

Reads benchmarks/results/*.json; writes tables.md, ratios.png and scaling.png beside them, and
the tables and sentences of the README and the pages below, each between its two comments.
"""

import argparse
import json
from pathlib import Path

import speed_page
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from papers.presentation import (
    COLORS,
    markdown_table,
    save_figures,
    tidy,
    with_tables,
)

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md"] + [
    ROOT / "docs" / name for name in ("speed.md", "deploy.md", "guides/orthogonal.md")
]
# The results of other benchmarks, and the functions of `speed_page` that make a page's part.
OTHERS = {
    "native.json": ("native", "narrow", "waiting"),
    "quantised.json": ("quantised",),
    "streaming.json": ("streaming",),
}
# The cases of the table of training steps.
SHOWN = ("main", "pmnist-128")
MARKERS = "os^D"
# The layers that are drawn over time steps, and their lines.
SCALED_OVER = {"MomentumLSTM": "-", "AdamLSTM": "--"}


def load(folder):
    """Return the results by file and case; each must be one that `measure.py` wrote."""
    files = sorted(folder.glob("[cg]pu-*.json"))
    if not files:
        raise SystemExit(f"No results in {folder}: run benchmarks/measure.py first.")
    found = {}
    for file in files:
        for case, results in json.loads(file.read_text()).items():
            if not isinstance(results, dict) or not {"layers", "case"} <= results.keys():
                raise SystemExit(f"{file} is not a result of benchmarks/measure.py.")
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
    """Draw the ratio to the layer that is replaced, with quartiles, by layer and backend."""
    columns = [key for key in found if key[1] == "main"]
    names = list(dict.fromkeys(row["layer"] for key in columns for row in found[key]["layers"]))
    figure = Figure(figsize=(8, 1.6 + 0.3 * len(names)), layout="constrained")
    axes, kinds = figure.subplots(), {}
    for number, key in enumerate(columns):
        for row in found[key]["layers"]:
            ratio = speed_page.first_baseline(row)["ratio"]["training"]
            middle, (low, high) = ratio["median"], ratio["quartiles"]
            height = names.index(row["layer"]) + 0.22 * (number - (len(columns) - 1) / 2)
            spread = [[middle - low], [high - middle]]
            look = {"fmt": MARKERS[number % 4], "color": COLORS[number % 6], "ms": 5}
            kinds[speed_page.head(found[key])] = axes.errorbar(
                middle, height, xerr=spread, **look
            )
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 5, 7)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("\u2190 faster    time of a training step, ratio    slower \u2192")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_title(f"Beside the layer it replaces, without the native kernel:\n{ranges(found)}")
    axes.legend(kinds.values(), kinds, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    tidy(axes)
    save_figures(path.parent, {path.name: figure})


def ranges(found):
    """Return the least and the largest ratio of linear and of scaled rules, in words."""
    told = []
    for kind, starts in (
        ("linear rules", ("Momentum", "NAG", "SR")),
        ("Adam and RMSProp", ("Adam", "RMSProp")),
    ):
        ratios = [
            speed_page.first_baseline(row)["ratio"]["training"]["median"]
            for (_, case), results in found.items()
            for row in results["layers"]
            if case == "main" and row["layer"].startswith(starts)
        ]
        if ratios:
            told.append(f"{kind} take {min(ratios):.2f} to {max(ratios):.2f} of its time")
    return ", ".join(told).replace(" of its time, ", ", ")


def draw_scaling(found, path):
    """Draw time and memory of a training step over time steps, as ratios to the LSTM's."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels, longest = figure.subplots(1, 2), {}
    backends = {file: speed_page.head(results) for (file, _), results in found.items()}
    for number, file in enumerate(backends):
        for axes, what in zip(panels, ("training", "peak")):
            for layer, style in SCALED_OVER.items():
                points = scaling(found, file, layer, what)
                if points:
                    look = {"color": COLORS[number % 6], "marker": MARKERS[number % 4]}
                    name = f"{layer}, {backends[file]}"
                    axes.plot(*zip(*points), style, ms=4, label=name, **look)
                    longest.setdefault((layer, what), []).append(points[-1][1])
    for axes, what in zip(panels, ("time of a training step", "memory of a training step")):
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="time steps", ylabel="ratio to the backend's LSTM", title=what)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_ylim(0, None)
        tidy(axes)
    slowest = [
        f"{layer} {min(found):.2f} to {max(found):.2f}"
        for (layer, what), found in longest.items()
        if what == "training"
    ]
    figure.suptitle(
        "Time and memory as ratios to the LSTM's; time at the longest sequence:\n"
        + ("; ".join(slowest) or "not measured")
    )
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    save_figures(path.parent, {path.name: figure})


def scaling(found, file, layer, what):
    """Return [(time steps, ratio to the plain layer), ...], the shortest sequence first."""
    points = {}
    for (name, case), results in found.items():
        for row in results["layers"]:
            if name == file and case.startswith("time-") and row["layer"] == layer:
                ratio = speed_page.first_baseline(row)["ratio"].get(what)
                if ratio:
                    ratio = ratio["median"] if what == "training" else ratio
                    points[results["case"]["time"]] = ratio
    return sorted(points.items())


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
