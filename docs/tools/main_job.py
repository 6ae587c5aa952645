"""What the README's main job found, beside the comparison that it repeats a part of."""

import json
from statistics import mean

import study

# isort: split
# The module before puts the examples on the path.
import quick_look

from papers.contestants import CONTESTANTS, REFERENCES
from papers.real_sequences_scores import best, scores, signed, verdict

QUICK = study.RESULTS / "quick_look"
# Beside TensorFlow, whose results the table has.
OTHERS = {"jax": "JAX", "torch": "PyTorch"}


def main_command():
    """Return its table, what other backends and more seeds say, and how its set was chosen.

    Raises:
        ValueError: if on its set, or on a backend, no layer of ours is ahead.
    """
    told = study.found()
    shown, others = read(QUICK), {title: read(QUICK / name) for name, title in OTHERS.items()}
    name = shown["settings"]["task"]["name"]
    words = {one: verdict(content)[2] for one, content in told.items()}
    if words[name] != "ours" or not all(map(quick_look.ahead, [shown, *others.values()])):
        raise ValueError(f"No layer of ours is ahead on {name}, or on some backend: {words}")
    elsewhere = "; ".join(f"{title} {of_leaders(one)}" for title, one in others.items())
    five = ", ".join(
        f"{study.name_of(layer)} {study.cell(told[name], layer)}"
        for layer in quick_look.LAYERS
        if layer in CONTESTANTS
    )
    ours, plain, even = ([*words.values()].count(word) for word in ("ours", "plain", "even"))
    simple = all(reference_ahead(told[one]) for one, word in words.items() if word == "ours")
    return (
        f"{quick_look.table(shown)}\n\n"
        f"The best of ours and the best plain layer on other backends: {elsewhere}. The whole "
        f"comparison has five seeds: {five}.\n\n"
        "We chose this set because it shows a difference. Of "
        f"{len(words)} real sets, our layers are ahead on {ours} by more than both standard "
        f"deviations together, the plain ones on {plain}; on {even} they are even."
        + " Where ours are ahead, a model that is not recurrent is better still."
        * simple
    )


def read(folder):
    path = folder / "results.json"
    return quick_look.grouped(json.loads(path.read_text(encoding="utf-8")))


def of_leaders(content):
    return " and ".join(
        f"{mean(scores(content, layer)):.2f}" for layer in quick_look.leaders(content)
    )


def reference_ahead(content):
    """Return whether a model that is not recurrent scores above every layer of a set."""
    references = [name for name in REFERENCES if name in content["layers"]]
    layer = best(content, CONTESTANTS)
    return any(signed(content, name) > signed(content, layer) for name in references)
