"""The numbers of the pages are those of the committed results."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the examples need it")
pytest.importorskip("rich", reason="the examples need it")

from autoencoder_report import TABLE_1, TABLE_3

from keras_momentum_rnn.tasks import mohamed2018, nguyen2020, sutskever2013

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "initialisation_and_momentum.md"
RESULTS = ROOT / "examples" / "results"
COLUMNS = ["0", "0.98N", "0.995N", "0.98M", "0.995M"]

pytestmark = [
    pytest.mark.any_backend,
    pytest.mark.skipif(
        not (PAGE.exists() and RESULTS.exists()), reason="only a checkout has docs and results"
    ),
]


def results(name):
    return json.loads((RESULTS / name / "results.json").read_text())


def tables():
    """Return the tables of the page, each a dict from the first cell of a row to the others."""
    found = re.findall(r"(?:^\|.*\|\n)+", PAGE.read_text(), flags=re.MULTILINE)
    cells = [[line.strip("|").split("|") for line in text.splitlines()] for text in found]
    return [{row[0].strip(): [c.strip() for c in row[1:]] for row in table} for table in cells]


def rounded(value, like):
    """Return a number with as many decimals as a text has, and no cell for None."""
    if value is None:
        return ""
    return f"{value:.{len(like.partition('.')[2])}f}"


def check(cells, values):
    assert cells == [rounded(value, cell) for cell, value in zip(cells, values, strict=True)]


def autoencoder(method, momentum, rate=0.01, scale=1, data="curves", what="error"):
    named = {"method": method, "momentum": momentum, "learning_rate": rate, "scale": scale}
    (run,) = [
        r for r in results(f"deep_autoencoders/{data}")["runs"] if named.items() <= r.items()
    ]
    return run[what]


def last(name, row, metric="loss"):
    """Return what a row of long dependencies has on validation at its end."""
    (run,) = [r for r in results(f"long_dependencies/{name}")["runs"] if r["layer"] == row]
    return run["curve"][-1][f"validation_{metric}"]


def test_tables_of_autoencoders():
    momenta, paper = [0.9, 0.99, 0.999], TABLE_1["curves"]
    errors, scales = tables()[:2]
    sgd = min(autoencoder("SGD", 0.0, rate) for rate in (0.01, 0.05))
    check(errors["CM"], [sgd, *(autoencoder("CM", m) for m in momenta)])
    check(errors["NAG"], [None, *(autoencoder("NAG", m) for m in momenta)])
    check(errors["paper, CM"], [paper["SGD", 0], *(paper["CM", m] for m in momenta)])
    check(errors["paper, NAG"], [None, *(paper["NAG", m] for m in momenta)])
    check(scales["here"], [autoencoder("NAG", 0.9, scale=float(s)) for s in scales["scale"]])
    check(scales["paper"], [TABLE_3[float(s)] for s in scales["scale"]])


def test_sentences_on_autoencoders():
    text = PAGE.read_text()
    before, after = (autoencoder("NAG", 0.99, what=name) for name in ("before", "error"))
    assert f"NAG at 0.99 from {before:.1f} to {after:.1f};" in text
    before, after = (autoencoder("NAG", 0.9, what=name) for name in ("before", "error"))
    assert f"the same updates give {before:.1f} to {after:.1f}." in text
    sgd, cm, nag = (
        autoencoder(name, momentum, data="mnist")
        for name, momentum in (("SGD", 0.0), ("CM", 0.9), ("NAG", 0.9))
    )
    assert f"SGD {sgd:.1f}, CM and NAG with momentum 0.9 {cm:.1f} and {nag:.1f}" in text


def test_tables_of_long_dependencies():
    pilot, ends = tables()[2:4]
    for name, row in {
        "0": "0",
        "0.98, Nesterov's form": "0.98N",
        "0.98, classical": "0.98M",
        "0.995, Nesterov's form": "0.995N",
        "0.995, classical": "0.995M",
    }.items():
        rates = [f"{float(rate):g}" for rate in pilot["momentum"]]
        check(pilot[name], [last("memory20/pilot", f"SimpleRNN {row} at {r}") for r in rates])
    assert ends[""] == COLUMNS
    check(ends["loss"], [last("memory20", f"SimpleRNN {column}") for column in COLUMNS])
    runs = {run["layer"]: run for run in results("long_dependencies/memory20")["runs"]}
    rates = [
        runs[f"SimpleRNN {column}"]["setup"]["optimizer"]["learning_rate"] for column in COLUMNS
    ]
    assert [float(rate) for rate in ends["learning rate"]] == rates


def test_sentences_on_long_dependencies():
    text = PAGE.read_text()
    slow = "memory20_rate_0.00001"
    assert f"0.98N ends at {last(slow, 'SimpleRNN 0.98N'):.3f} and 0.995N at " in text
    assert f"0.995N at {last(slow, 'SimpleRNN 0.995N'):.3f} (" in text
    again = "memory20_rate_0.0001"
    assert f"0.98N ends at {last(again, 'SimpleRNN 0.98N'):.3f} (" in text
    wrong = results(f"long_dependencies/{again}")["best"]["test"]["wrong_symbols"]
    assert f"an AdamRNN recalls something, with {wrong:.1f} of ten symbols wrong" in text


def table_5(row, task="adding"):
    """Return the share of wrong sequences of each seed, of a row of a task, as text."""
    found = [r for r in results(f"sutskever_table5/{task}")["runs"] if r["layer"] == row]
    return [f"{run['test']['zero_one_loss']:.3f}" for run in found]


def test_sentences_on_table_5():
    found, text = results("sutskever_table5/adding"), PAGE.read_text()
    assert {run["seed"] for run in found["runs"]} == {0, 1}
    assert all(len(run["curve"]) == 50 for run in found["runs"])
    constant = found["settings"]["chance"]["zero_one_loss"]
    assert f"a constant output has {constant:.3f}" in text
    wrong = {
        column: table_5(f"SimpleRNN {column}") for column in sutskever2013.COLUMNS if column in
        ("0", "0.98N", "0.995N", "0.995M")
    }  # fmt: skip
    assert max(map(float, wrong["0.995N"])) < 0.01  # "learns to add with both seeds"
    for column in ("0.98N", "0.995M"):
        assert f"{column} has {' and '.join(wrong[column])}" in text
    assert f"The plain network without momentum has {' and '.join(wrong['0'])}" in text
    for layer in ("MomentumRNN", "AdamRNN", "RMSPropRNN"):
        assert f"`{layer}` {' and '.join(table_5(f'{layer} 0.995N'))}" in text
    for name in ("adding_warm_zero", "adding_classical_rate_0.0001"):
        (run,) = results(f"sutskever_table5/{name}")["runs"]
        error = run["test"]["zero_one_loss"]
        assert f"does not bring that: {error:.3f} with one seed" in text
    report = (RESULTS / "sutskever_table5" / "adding" / "report.md").read_text()
    best = "SimpleRNN 0.995N against SimpleRNN"
    assert f"within the spread of seeds: {best} 0.98N, {best} 0.995M." in report
    paper = (ROOT / "docs" / "papers" / "sutskever.md").read_text()
    assert f"leaves {' and '.join(wrong['0.995N'])} of the sequences wrong" in paper


def test_sentences_on_table_5_of_multiplication():
    found, text = results("sutskever_table5/multiplication"), PAGE.read_text()
    assert all(len(run["curve"]) == 50 for run in found["runs"])
    constant = found["settings"]["chance"]["zero_one_loss"]
    assert f"They are shares as above; a constant output has {constant:.3f}" in text
    paper = dict(zip(sutskever2013.COLUMNS, sutskever2013.ERRORS["multiplication"]))
    seeds = {c: table_5(f"SimpleRNN {c}", "multiplication") for c in paper if c != "biases"}
    assert {len(errors) for errors in seeds.values()} <= {1, 2}
    wrong = {column: " and ".join(errors) for column, errors in seeds.items()}
    assert f"learns to multiply, with {wrong['0.995N']} of the sequences wrong" in text
    assert f"0.98N, with {wrong['0.98N']}, where the paper has {paper['0.98N']:g}" in text
    assert f"learns little: {wrong['0']}, where the paper has {paper['0']:g}" in text
    assert f"the seed: {wrong['0.9N']}; the paper has {paper['0.9N']:g}" in text
    assert f"0.9M has {wrong['0.9M']}, where the paper has {paper['0.9M']:g}" in text
    assert f"than Nesterov's: {wrong['0.98M']}, and {wrong['0.995M']}." in text
    for momentum in ("0.98", "0.995"):
        assert max(seeds[f"{momentum}N"]) < min(seeds[f"{momentum}M"])
    pilot = results("sutskever_table5/multiplication/pilot")["runs"]
    # "After its 5,000 updates every row was close to a constant output"
    assert min(run["curve"][-1]["validation_zero_one_loss"] for run in pilot) > 0.8
    rates = [run["setup"]["optimizer"]["learning_rate"] for run in found["runs"]]
    assert rates.count(1e-3) > len(rates) / 2
    page = (ROOT / "docs" / "papers" / "sutskever.md").read_text()
    assert f"{wrong['0.995N']} wrong with Nesterov momentum of 0.995" in page
    assert f"0.995, {wrong['0']} without momentum" in page


def test_sentences_on_table_1_of_mcrm():
    text = (ROOT / "docs" / "papers" / "mcrm.md").read_text()
    runs = {run["layer"]: run for run in results("mcrm_table1")["runs"]}
    losses = {
        layer: np.array([epoch["test_loss"] for epoch in run["curve"]])
        for layer, run in runs.items()
    }
    paper = dict(zip(mohamed2018.LAYERS, mohamed2018.RESULTS["adding"]))
    assert all(len(losses[layer]) == 60 for layer in paper)
    assert min(paper, key=lambda layer: runs[layer]["test"]["loss"]) == "MCRM"
    assert f"after the last epoch {losses['MCRM'][-1]:.1e}, near the paper's" in text
    learned = {layer: first(losses[layer] < 1e-3) for layer in paper}
    assert learned.pop("MCRM") == learned.pop("GRU") == 2 < min(learned.values())
    rivals = ("GRU", "LSTM", "NestedLSTM")
    assert max(first(losses[layer] < paper[layer]) for layer in rivals) == 9
    last = {layer: np.median(losses[layer][-10:]) for layer in (*rivals, "MCRM")}
    ratios = [round(last[layer] / last["MCRM"]) for layer in rivals]
    assert f"epochs is {min(ratios)} to {max(ratios)} times that of `MCRM`" in text
    assert first(losses["LSTM"] < 0.02) == 5
    assert all(first(losses[layer] < 0.02) == 1 for layer in ("AdamLSTM", "RMSPropLSTM"))
    assert runs["LSTM"]["test"]["loss"] < runs["AdamLSTM"]["test"]["loss"]


def first(true):
    """Return the first epoch, counted from 1, where something is true; 100 if none is."""
    return int(np.argmax(true)) + 1 if true.any() else 100


def test_sentences_on_the_paper():
    text = (ROOT / "docs" / "papers" / "sutskever.md").read_text()
    sgd, momentum = autoencoder("SGD", 0.0, rate=0.05), autoencoder("NAG", 0.9)
    assert f"squared error {sgd:.1f} by SGD at the better of two learning rates" in text
    assert f"{momentum:.1f} with momentum 0.9 in both forms" in text
    pairs = [(autoencoder("CM", m), autoencoder("NAG", m)) for m in (0.99, 0.999)]
    assert (
        "at 0.99 {:.1f} by the classical form and {:.1f} by Nesterov's, at 0.999 {:.1f} "
        "and {:.1f} ("
    ).format(*pairs[0], *pairs[1]) in text


@pytest.mark.parametrize("name", ["streaming", "quantised"])
def test_tables_of_files(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import speed_page

    measured = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())
    table = getattr(speed_page, name)(measured)
    assert (
        f"writes what follows -->\n\n{table}\n\n<!-- {name} end"
        in (ROOT / "docs" / "deploy.md").read_text()
    )


def test_sentence_on_quantised_files():
    found = json.loads((ROOT / "benchmarks" / "results" / "quantised.json").read_text())
    most = {"float16": 0, "int8": 0}
    for files in found["layers"].values():
        for kind in ("litert", "onnx"):
            for bits in most:
                lost = [files[f"{kind} {width}"]["accuracy"] for width in ("float32", bits)]
                most[bits] = max(most[bits], 100 * (lost[0] - lost[1]))
    assert (
        f"at most {max(most.values()):.1f} percentage points, and with float16 at most "
        f"{most['float16']:.1f}."
    ) in (ROOT / "docs" / "deploy.md").read_text()


def test_sentence_on_the_choice_of_a_backend():
    found = json.loads((ROOT / "benchmarks" / "results" / "native.json").read_text())
    text = (ROOT / "docs" / "guides" / "speed_up.md").read_text()

    def milliseconds(case, what="native"):
        return [
            found[backend][case]["layers"]["MomentumLSTM"][what]
            for backend in ("jax", "tensorflow", "torch")
        ]

    assert "{:.1f} ms on JAX, {:.1f} on TensorFlow, {:.1f} on PyTorch in a small".format(
        *milliseconds("small")
    ) in text  # fmt: skip
    assert "{:.1f}, {:.1f} and {:.1f} ms in a larger".format(*milliseconds("main")) in text
    jax, tensorflow, torch = milliseconds("small", "without")
    assert 2 < tensorflow / max(jax, torch) < 2.5


def test_sentence_on_processors_without_avx_512():
    found = json.loads((ROOT / "benchmarks" / "results" / "native.json").read_text())
    wide, narrow, slower = [], [], []
    for backend in ("jax", "tensorflow", "torch"):
        rows = found[backend]["main"]["layers"]
        for layer, row in found[f"{backend}, without AVX-512"]["main"]["layers"].items():
            wide.append(rows[layer]["ratio"]["median"])
            narrow.append(row["ratio"]["median"])
            slower.append(row["baseline"] / rows[layer]["baseline"])
    assert np.mean(narrow) == pytest.approx(np.mean(wide), abs=0.05)
    assert np.median(slower) > 1.5
    assert "Yes, by about as much." in (ROOT / "docs" / "speed.md").read_text()


def scores(name):
    """Return the mean test score of each layer, and of a constant output."""
    found = results(name)
    constant = found["constant"][found["settings"]["metric"]]
    return {row["layer"]: row["test"] for row in found["summary"]}, constant


def test_sentences_on_which_layer():
    """What the README and the page on the choice of a layer say of the table in both."""
    ahead = []
    names = "digits", "digits_permuted", "mnist_subset", "adding", "copying", "characters"
    for name in names:
        found, constant = scores(name)
        sign = 1 if results(name)["settings"]["larger_is_better"] else -1
        ours = max(
            sign * found[f"{rule}LSTM"] for rule in ("Momentum", "NAG", "SR", "Adam", "RMSProp")
        )
        plain = max(sign * found["GRU"], sign * found["SimpleRNN"])
        if name == "copying":
            assert all(score > 0.95 * constant for score in found.values())
        else:
            assert sign * found["RMSPropLSTM"] > sign * found["LSTM"]
            ahead += [name] if plain > ours else []
    # Permuted digits are in the table with MomentumDTRIV, which is ahead there.
    assert ahead == ["digits", "digits_permuted", "characters"]


def test_sentences_on_digits_read_longer():
    text = (ROOT / "docs" / "papers" / "momentumrnn.md").read_text()
    found, _ = scores("pixel_digits")
    assert {run["setup"]["epochs"] for run in results("pixel_digits")["runs"]} == {80}
    assert {run["setup"]["epochs"] for run in results("digits")["runs"]} == {25}
    ours, lstm = found["RMSPropLSTM"], found["LSTM"]
    assert f"only `RMSPropLSTM` does: {ours:.3f} against {lstm:.3f} (" in text
    report = (RESULTS / "pixel_digits" / "report.md").read_text()
    assert "yes for RMSPropLSTM; within the spread of seeds: MomentumLSTM, AdamLSTM, " in report


def test_sentences_on_the_papers_own_numbers():
    text = (ROOT / "docs" / "papers" / "momentumrnn.md").read_text()
    errors, texts = nguyen2020.SPEECH_ERRORS, nguyen2020.PERPLEXITIES
    ours, lstm = errors[120, "RMSPropLSTM"][1], errors[120, "LSTM"][1]
    assert f"level with LSTM: {ours:.2f} against {lstm:.2f}." in text
    adam, rms, lstm = (texts[layer][1] for layer in ("AdamLSTM", "RMSPropLSTM", "LSTM"))
    assert f"perplexities {adam:.2f} and {rms:.2f} against {lstm:.2f}." in text


def test_sentences_on_speech():
    """Where the scores depend on the epoch that validation picks."""
    text = (ROOT / "docs" / "papers" / "momentumrnn.md").read_text()
    ends = {}
    for run in results("speech")["runs"]:
        ends.setdefault(run["layer"], []).append(run["curve"][-1]["test_mse"])
    lstm, ours = (sorted(ends[layer]) for layer in ("LSTM", "MomentumLSTM"))
    assert (
        f"the three seeds of LSTM have {lstm[0]:.2f} to {lstm[-1]:.2f} and those of "
        f"`MomentumLSTM` {ours[0]:.2f} to {ours[-1]:.2f}"
    ) in text
    found, _ = scores("speech")
    assert f"({found['MomentumLSTM']:.2f} against {found['LSTM']:.2f})" in text


def test_minutes_of_the_comparisons():
    text = (ROOT / "docs" / "guides" / "compare.md").read_text()
    minutes = [
        sum(epoch["seconds"] for run in results(name)["runs"] for epoch in run["curve"]) / 60
        for name in ("speech", "mnist_subset")
    ]
    told = "It takes from {:.0f} minutes (speech) to {:.0f} (MNIST subset)"
    assert told.format(*minutes) in text
