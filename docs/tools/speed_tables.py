"""Tables on speed, and a picture, from what the benchmarks measured."""

import json
from pathlib import Path

from matplotlib.figure import Figure

from docs.tools.score_tables import BACKENDS
from papers.presentation import markdown_table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
IN_SHORT = ["MomentumLSTM", "RMSPropLSTM"]
IN_FEW_ROWS = [
    *("MomentumLSTM", "AdamLSTM", "MomentumGRU", "MomentumRNN", "MomentumDTRIV", "MCRM"),
]
# What the names of results end with where the processor has no AVX-512.
NARROW = ", without AVX-512"


def results(name):
    """Return the results of a benchmark by the name of its file."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def tables():
    """Return what stands between the comments of the pages, by name."""
    kernel = results("native")
    return {
        "models": models(results("models")),
        "native": native(kernel),
        "narrow": narrow(kernel),
        "lengths": lengths(results("lengths")),
        "speed_in_short": speed_in_short(kernel),
        "streaming": streaming(results("streaming")),
        "quantised": quantised(results("quantised")),
        "gpu": gpu(results("gpu")),
    }


def models(results):
    """Return a table of models of keras.io, of `models.py`."""
    rows = []
    for backend, processors in results.items():
        for processor, found in processors.items():
            for model, row in found.items():
                cells = [f"{row['keras']:,.0f}", f"{row['accelerated']:,.0f}"]
                cells += [
                    spread(row["ratio"]),
                    spread(row["to_torch"]) if "torch" in row else "",
                ]
                rows.append([model, BACKENDS[backend], processor, *cells])
    titles = ["model", "backend", "processor", "Keras, ms", "accelerated, ms", "ratio"]
    return markdown_table([*titles, "to `torch.nn.LSTM`"], sorted(rows))


def spread(ratio):
    return "{:.2f} ({:.2f} to {:.2f})".format(ratio["median"], *ratio["quartiles"])


def draw_models():
    """Draw the ratio of each model and backend; on PyTorch that to `torch.nn.LSTM`."""
    figure, measured = Figure(figsize=(7, 3.2), layout="constrained"), results("models")
    axes = figure.subplots()
    names = list(next(iter(measured["torch"].values())))
    for i, (backend, label) in enumerate(BACKENDS.items()):
        found = next(iter(measured[backend].values()))
        kind = "to_torch" if backend == "torch" else "ratio"
        ratios = [found[name][kind]["median"] for name in names]
        places = [n + 0.27 * (i - 1) for n in range(len(names))]
        bars = axes.barh(places, ratios, 0.25, label=label)
        axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.05)
    axes.set_xlabel("time of an update / that of Keras's LSTM (PyTorch: of torch.nn.LSTM)")
    figure.legend(frameon=False, loc="outside lower center", ncols=len(BACKENDS))
    worst = max(bar.get_width() for bars in axes.containers for bar in bars)
    best = min(bar.get_width() for bars in axes.containers for bar in bars)
    axes.set_title(
        f"Accelerated models train in {best:.2f} to {worst:.2f} of the time, two CPU cores"
    )
    figure.savefig(RESULTS / "models.png", dpi=150)


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
    shown = {}
    for name in results:
        if name.endswith(NARROW):
            main = results[name]["main"]
            layers = {layer: main["layers"][layer] for layer in IN_FEW_ROWS}
            shown[name.removesuffix(NARROW)] = {"main": main | {"layers": layers}}
    return native(shown)


def lengths(results):
    """Return a table of sequences of unequal length and recurrent dropout, of `lengths.py`.

    Of several processors it has the first one of each backend.
    """
    columns = {
        "jax": ("padded", "masked"),
        "tensorflow": ("padded", "masked"),
        "torch": ("padded", "masked", "packed"),
    }
    found = {backend: next(iter(results[backend].values())) for backend in columns}
    rows = []
    for model, means in found["jax"].items():
        for mean in means:
            cells = []
            for backend, others in columns.items():
                row = found[backend][model][mean]
                medians = {name: f"{r['median']:.2f}" for name, r in row["ratio"].items()}
                cells += [f"{row['ours']:.0f}", *(medians.get(name, "") for name in others)]
            rows.append([model, mean, *cells])
    titles = [
        title
        for backend, others in columns.items()
        for title in (f"{BACKENDS[backend]}, ms", *(f"to {name}" for name in others))
    ]
    return markdown_table(["model", "mean length", *titles], rows)


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
                for layer in IN_SHORT
                for what in ("ratio", "ratio_without")
            ]
            rows.append([name, *cells])
    head = ["", *(t for n in IN_SHORT for t in (f"`{n}`, extra `cpu`", f"`{n}`, without"))]
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


def gpu(results):
    """Return a table of layers beside Keras's own on a GPU, of `gpu.py`."""
    cases = dict.fromkeys(case for found in results.values() for case in found)
    rows = []
    for case in cases:
        all_layers = [found[case]["layers"] for found in results.values() if case in found]
        for layer in max(all_layers, key=len):
            cells = []
            for found in results.values():
                row = found.get(case, {"layers": {}})["layers"].get(layer)
                cells += [""] * 3 if row is None else [
                    f"{row['ours']:.1f}",
                    spread(row["ratio"]),
                    f"{row['predict']['median']:.2f}",
                ]  # fmt: skip
            rows.append([case, layer, *cells])
    told = [name.split(", ") for name in results]
    names = [", ".join([BACKENDS[backend], *rest]) for backend, _, *rest in told]
    titles = [t for name in names for t in (f"{name}, ms", "ratio", "predicting")]
    return markdown_table(["case", "layer", *titles], rows)


def sizes(files, name):
    """Return the sizes of a format's files in float32, float16 and int8."""
    kinds = ("float32", "float16", "int8")
    return ", ".join(f"{files[f'{name} {kind}']['bytes'] / 1000:.0f}" for kind in kinds)
