"""Write the tables and sentences on speed into the README and the pages.

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
# The results of the native kernel on PyTorch whose idle threads sleep.
PASSIVE = "torch, OMP_WAIT_POLICY=passive"
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
        "waiting": waiting(kernel),
        "speed_in_short": speed_in_short(kernel, results("cpu-torch")),
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


def speed_in_short(results, on_torch):
    """Return the README's sentences on speed.

    Args:
        results: of `native.py`, by backends and cases.
        on_torch: of layers on PyTorch without the kernel, by cases.
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
    row = next(r for r in on_torch["keras-256"]["layers"] if r["layer"] == "MomentumLSTM")
    keras = next(b for b in row["baselines"] if b["layer"] == "keras.layers.LSTM")
    times = f"{1 / keras['ratio']['training']['median']:.0f}"
    return (
        "Time of a training step on two CPU cores (128 steps, 128 units), divided by that of "
        "the plain LSTM. Below 1 is faster than plain:\n\n"
        f"{markdown_table(head, rows)}\n\n"
        "The plain LSTM is Keras's; on PyTorch it is `torch.nn.LSTM`, since Keras's own takes "
        f"{times} times as long as `MomentumLSTM` there (256 steps). No GPU has been "
        "measured. Conditions, memory and more sizes: `docs/speed.md`."
    )


def waiting(results):
    """Return what PyTorch's idle threads cost, in a sentence."""
    usual, passive = (
        results[name]["main"]["layers"]["MomentumLSTM"] for name in ("torch", PASSIVE)
    )
    return (
        "- **PyTorch's idle threads** spin on the cores for some milliseconds after each "
        f"operation, and take them from the kernel. With `{PASSIVE.partition(', ')[2]}` in the "
        f"environment MomentumLSTM takes {passive['native']:.1f} ms a step, not "
        f"{usual['native']:.1f}; but `torch.nn.LSTM` takes {passive['baseline']:.1f}, not "
        f"{usual['baseline']:.1f}."
    )


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
