"""The tables and sentences on speed in the README and the pages, from the results."""

from papers.presentation import markdown_table

BACKENDS = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}
MOMENTUM, SCALED = ["MomentumLSTM", "NAGLSTM", "SRLSTM"], ["AdamLSTM", "RMSPropLSTM"]
TWO = ["MomentumLSTM", "AdamLSTM"]
CASES = ("main", "pmnist-128")
# The results of the native kernel on PyTorch whose idle threads sleep.
PASSIVE = "torch, OMP_WAIT_POLICY=passive"
# What the names of results end with where the processor has no AVX-512.
NARROW = ", without AVX-512"
# What is aimed at, by what is measured: the layers, and the aim on PyTorch where it differs.
AIMS = (
    ("training step: momentum, NAG, SR", "training", MOMENTUM, "1.0; PyTorch 1.1"),
    ("training step: Adam, RMSProp", "training", SCALED, "1.3; PyTorch 1.8"),
    ("MCRM to RNN(LSTMCell), equal parameters", "training", ["MCRM"], "1.3"),
    ("memory: momentum, SR", "peak", ["MomentumLSTM", "SRLSTM"], "1.05"),
    ("memory: Adam", "peak", ["AdamLSTM"], "1.3"),
    ("first call", "first_call", MOMENTUM + SCALED, "1.5"),
)
# Nguyen et al. (2020), Tables 14 and 15: time and memory as ratios to LSTM.
PAPER = {
    "MomentumLSTM": ("1.20", "1.00"),
    "SRLSTM": ("1.35", "1.00"),
    "RMSPropLSTM": ("1.61", "1.58"),
    "AdamLSTM": ("1.67", "1.58"),
}


def tables(found):
    """Return the tables by the name of their comments.

    Args:
        found: dict from (file, case) to results, of `report.load`.
    """
    heads = {file: head(results) for (file, _), results in found.items()}
    return {
        "aims": aims(found, heads),
        "scaling": scaling(found, heads),
        "paper": beside_paper(found, heads),
        "orthogonal": orthogonal(found, heads),
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


def speed_in_short(results, found):
    """Return the README's sentences on speed.

    Args:
        results: of `native.py`, by backends and cases.
        found: of `measure.py`, by files and cases.
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
    keras = [to_keras(found, file, "MomentumLSTM") for file, _ in found]
    times = next(text.partition("/")[2] for text in keras if text)
    return (
        "Time of a training step on two CPU cores (128 steps, 128 units), divided by that of "
        "the plain LSTM. Below 1 is faster than plain:\n\n"
        f"{markdown_table(head, rows)}\n\n"
        "The plain LSTM is Keras's; on PyTorch it is `torch.nn.LSTM`, since Keras's own takes "
        f"{times} times as long as `MomentumLSTM` there (256 steps). No GPU has been "
        "measured. Conditions, memory and more sizes: `docs/speed.md`."
    )


def waiting(results):
    """Return what PyTorch's idle threads cost, in a sentence, or nothing if not measured."""
    if PASSIVE not in results:
        return ""
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


def head(results):
    """Return the backend, and the device where it is no CPU."""
    device = results["device"].partition(",")[0]
    return BACKENDS[results["backend"]] + ("" if device == "cpu" else f" {device.upper()}")


def aims(found, heads):
    """Each aim beside the range over the layers, in `main` and then in `pmnist-128`."""
    rows = []
    for title, what, layers, aim in AIMS:
        cells = [
            "; ".join(filter(None, (span(found, file, case, layers, what) for case in CASES)))
            for file in heads
        ]
        rows.append([title, aim, *cells])
    rows.insert(2, ["256 steps, to Keras's LSTM", "PyTorch 1/25; Adam 1/15"])
    for file in heads:
        rows[2].append("; ".join(filter(None, (to_keras(found, file, n) for n in TWO))))
    return markdown_table(["", "aim", *heads.values()], rows)


def to_keras(found, file, layer):
    """Return what part of the time of Keras's LSTM a layer takes, where that is little."""
    row = row_of(found, file, "keras-256", layer) or {"baselines": []}
    ratios = [b["ratio"] for b in row["baselines"] if b["layer"] == "keras.layers.LSTM"]
    return f"1/{1 / ratios[0]['training']['median']:.0f}" if ratios else ""


def scaling(found, heads):
    """Milliseconds and memory of two layers over the length, and their ratios to LSTM."""
    titles = [t for unit in ("ms", "MB") for layer in TWO for t in (f"{layer}, {unit}", "to")]
    rows = []
    for (file, case), results in found.items():
        if case.startswith("time-"):
            cells = []
            for what, digits in (("training", 0), ("peak", 2)):
                for layer in TWO:
                    row = row_of(found, file, case, layer)
                    number = None if row is None else row[what]
                    cells.append("" if number is None else f"{number:,.{digits}f}")
                    cells.append(span(found, file, case, [layer], what))
            rows.append([heads[file], f"{results['case']['time']:,}", *cells])
    order = list(heads.values())
    rows.sort(key=lambda row: (order.index(row[0]), int(row[1].replace(",", ""))))
    return markdown_table(["", "time steps", *titles], rows)


def beside_paper(found, heads):
    """The paper's ratios beside ours, of time and of memory."""
    titles = ["", "paper, time", *heads.values(), "paper, memory", *heads.values()]
    rows = []
    for layer, papers in PAPER.items():
        row = [layer]
        for paper, what in zip(papers, ("training", "peak")):
            row += [paper, *(span(found, file, CASES[1], [layer], what) for file in heads)]
        rows.append(row)
    return markdown_table(titles, rows)


def orthogonal(found, heads):
    """Time of the orthogonal layers to a plain layer and to an LSTM."""
    rows = []
    for layer in ("DTRIV", "MomentumDTRIV", "AdamDTRIV"):
        for kind, names in (("plain layer", ("SimpleRNN", "RNN")), ("LSTM", ("LSTM",))):
            cells = []
            for file in heads:
                row = row_of(found, file, "orthogonal", layer) or {"baselines": []}
                beside = [
                    b["ratio"]["training"]["median"]
                    for b in row["baselines"]
                    if b["layer"].split(".")[-1] in names
                ]
                cells.append(f"{beside[0]:.2f}" if beside else "")
            rows.append([layer, kind, *cells])
    return markdown_table(["170 units", "to", *heads.values()], rows)


def span(found, file, case, layers, what):
    """Return the least and the greatest ratio of some layers to what they stand for."""
    ratios = []
    for layer in layers:
        row = row_of(found, file, case, layer)
        ratio = None if row is None else first_baseline(row)["ratio"].get(what)
        if ratio is not None:
            ratios.append(ratio["median"] if isinstance(ratio, dict) else ratio)
    texts = (
        list(dict.fromkeys(f"{r:.2f}" for r in (min(ratios), max(ratios)))) if ratios else []
    )
    return " to ".join(texts)


def first_baseline(row):
    """Return the baseline of equal parameters, else PyTorch's own, else Keras's."""
    equal = [b for b in row["baselines"] if b["layer"].endswith("(LSTMCell)")]
    own = [b for b in row["baselines"] if b["layer"].startswith("torch.nn.")]
    return (equal or own or row["baselines"])[0]


def row_of(found, file, case, layer):
    rows = found.get((file, case), {"layers": []})["layers"]
    return next((row for row in rows if row["layer"] == layer), None)
