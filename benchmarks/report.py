"""Show the results of `measure.py` as tables and as a picture.

    python benchmarks/report.py

Reads benchmarks/results/*.json; writes tables.md and ratios.png beside them.
"""

import argparse
import json
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

RESULTS = Path(__file__).parent / "results"


def load(folder):
    """Return the results by file name; each must be one that `measure.py` wrote."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise SystemExit(f"No results in {folder}: run benchmarks/measure.py first.")
    found = {}
    for file in files:
        results = json.loads(file.read_text())
        if not {"layers", "case", "backend"} <= results.keys():
            raise SystemExit(f"{file} is no result of benchmarks/measure.py.")
        found[file.stem] = results
    return found


def table(name, results):
    """Return one file's results in Markdown."""
    case = ", ".join(f"{k} {v}" for k, v in results["case"].items())
    versions = f"Keras {results['keras']}, {results['backend']} {results[results['backend']]}"
    lines = [
        f"## {name}",
        f"{case}. {results['device']}; Python {results['python']}, {versions}; "
        f"{results['rounds']} rounds. `{results['command']}`",
        "",
        "| layer | path | ms | beside | ms | training | quartiles | inference | first call "
        "| memory |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results["layers"]:
        for b in row["baselines"]:
            ratio = b["ratio"]
            low, high = ratio["training"]["quartiles"]
            asked = ratio.get("inference", {}).get("median")
            rest = [asked, ratio.get("first_call"), ratio.get("peak")]
            lines.append(
                f"| {row['layer']} | {row['path']} | {row['training']:.0f} | {b['layer']} "
                f"| {b['training']:.0f} | {ratio['training']['median']:.2f} "
                f"| {low:.2f} to {high:.2f} | "
                + " | ".join("" if r is None else f"{r:.2f}" for r in rest)
                + " |"
            )
    return "\n".join(lines) + "\n"


def draw(found, path):
    """Draw the ratio to each baseline by layer, with its quartiles, a panel for each file."""
    height = sum(len(r["layers"]) for r in found.values())
    figure, panels = plt.subplots(
        len(found),
        figsize=(9, 1.2 * len(found) + 0.26 * height),
        height_ratios=[len(r["layers"]) + 2 for r in found.values()],
        layout="constrained",
        squeeze=False,
        sharex=True,
    )
    for panel, (name, results) in zip(panels[:, 0], found.items()):
        rows = results["layers"]
        kinds = dict.fromkeys(b["layer"] for row in rows for b in row["baselines"])
        for kind in kinds:
            points = [
                (i, b["ratio"]["training"])
                for i, row in enumerate(rows)
                for b in row["baselines"]
                if b["layer"] == kind
            ]
            middle = [r["median"] for _, r in points]
            spread = [
                [r["median"] - r["quartiles"][0] for _, r in points],
                [r["quartiles"][1] - r["median"] for _, r in points],
            ]
            panel.errorbar(
                middle, [i for i, _ in points], xerr=spread, fmt="o", ms=4, label=kind
            )
        panel.axvline(1, color="black", lw=0.8)
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_yticks(range(len(rows)), [row["layer"] for row in rows], fontsize=8)
        panel.invert_yaxis()
        panel.grid(axis="x", which="both", alpha=0.3)
        case = ", ".join(f"{k} {v}" for k, v in results["case"].items())
        panel.set_title(f"{name}: {case}", fontsize=10)
        panel.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    panels[-1, 0].set_xlabel(
        "time of a training step, as a ratio to that of the layer beside it"
    )
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    folder = parser.parse_args().results
    found = load(folder)
    text = "\n".join(table(name, results) for name, results in found.items())
    (folder / "tables.md").write_text(
        "# Time and memory beside other layers\nMilliseconds of a training step, the median of "
        "the rounds; every layer runs in turn with those it stands beside, in one process. "
        "The last five columns are ratios to them.\n\n" + text
    )
    draw(found, folder / "ratios.png")
    print(folder / "tables.md", folder / "ratios.png", sep="\n")


if __name__ == "__main__":
    main()
