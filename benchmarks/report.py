"""Write the tables on speed into the README and the pages.

    python benchmarks/report.py

Reads benchmarks/results/*.json; writes what stands between two comments of its name on a page.
"""

import json
from pathlib import Path

from papers.presentation import markdown_table, with_tables

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = [ROOT / "README.md"] + [ROOT / "docs" / name for name in ("speed.md", "deploy.md")]
BACKENDS = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}
TWO = ["MomentumLSTM", "AdamLSTM"]
# What the names of results end with where the processor has no AVX-512.
NARROW = ", without AVX-512"


def results(name):
    """Return the results of a benchmark by the name of its file."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def tables():
    """Return what stands between the comments of the pages, by name."""
    kernel = results("native")
    return {
        "native": native(kernel),
        "narrow": narrow(kernel),
        "speed_in_short": speed_in_short(kernel),
        "streaming": streaming(results("streaming")),
        "quantised": quantised(results("quantised")),
    }


def native(results):
    """Return a table of the layers with and without the native kernel.

    Args:
        results: dict from backends to cases to results, of `native.py`.
    """
    backends = [backend for backend in BACKENDS if backend in results]
    rows = []
    for case in dict.fromkeys(case for b in backends for case in results[b]):
        for layer in next(results[b][case]["layers"] for b in backends if case in results[b]):
            cells = []
            for backend in backends:
                row = results[backend].get(case, {"layers": {}})["layers"].get(layer)
                cells += [""] * 3 if row is None else [
                    f"{row['native']:.1f}",
                    f"{row['ratio']['median']:.2f}",
                    f"{row['ratio_without']['median']:.2f}",
                ]  # fmt: skip
            rows.append([case, layer, *cells])
    titles = [t for b in backends for t in (f"{BACKENDS[b]}, ms", "ratio", "without")]
    return markdown_table(["case", "layer", *titles], rows)


def narrow(results):
    """Return the table of `native` for a processor without AVX-512."""
    mine = [name for name in results if name.endswith(NARROW)]
    return native({name.removesuffix(NARROW): results[name] for name in mine})


def speed_in_short(results):
    """Return the README's table on speed.

    Args:
        results: of `native.py`, by backends and cases.
    """
    rows = []
    for backend, name in BACKENDS.items():
        if backend in results:
            cells = [
                f"{results[backend]['main']['layers'][layer][what]['median']:.2f}"
                for layer in TWO
                for what in ("ratio", "ratio_without")
            ]
            rows.append([name, *cells])
    head = ["", *(t for n in TWO for t in (f"`{n}`, extra `cpu`", f"`{n}`, without"))]
    return markdown_table(head, rows)


def streaming(results):
    """Return a table of the files of one step, of `streaming.py`."""
    rows = [
        [
            layer,
            f"{found['step']['microseconds']:.1f}",
            f"{found['step']['to the LSTM']:.2f}",
            f"{found['step']['bytes'] / 1000:,.0f}",
            f"{found['sequence']['bytes'] / 1000:,.0f}",
        ]
        for layer, found in results["layers"].items()
    ]
    titles = ["layer", "µs a step", "to LSTM", "KB, one step", "KB, 100 steps written out"]
    return markdown_table(titles, rows)


def quantised(results):
    """Return a table of files in fewer bits, of `quantised.py`."""
    rows = []
    for layer, files in results["layers"].items():
        cells = [f"{100 * files['litert float32']['accuracy']:.1f}"]
        for kind in ("litert float16", "litert int8", "onnx float16", "onnx int8"):
            file, plain = files[kind], files[f"{kind.split()[0]} float32"]
            lost = 100 * (file["accuracy"] - plain["accuracy"])
            cells.append(f"{lost:+.1f} ({100 * file['changed']:.1f})")
        rows.append([layer, *cells, *(sizes(files, name) for name in ("litert", "onnx"))])
    titles = ["layer", "float32, %", "LiteRT float16", "int8", "ONNX float16", "int8"]
    return markdown_table([*titles, "KB, LiteRT", "KB, ONNX"], rows)


def sizes(files, name):
    """Return the sizes of a format's files in float32, float16 and int8."""
    kinds = ("float32", "float16", "int8")
    return ", ".join(f"{files[f'{name} {kind}']['bytes'] / 1000:.0f}" for kind in kinds)


def main():
    found = tables()
    for page in PAGES:
        page.write_text(with_tables(page.read_text(), found, page))


if __name__ == "__main__":
    main()
