"""How much is trained: a small budget for every task, and the papers' own."""

import dataclasses

from keras_momentum_rnn.layers.registry import available_layers
from papers.tasks.recipes import RECIPES, Recipe, recipe

# Tasks that no paper has, and the task whose hyperparameters they take.
NUMBERS_OF = {"digits": "mnist", "speech": "timit", "multiplication": "adding"}
# Updates between two evaluations, where the papers count only updates.
UPDATES_PER_EPOCH = 100


def small_budget(task, optimizer, units, batch_size, epochs, **options):
    """Return the recipe of an LSTM in a small budget; the other layers have the same."""
    return Recipe(
        task=task,
        options=options,
        layer_name="LSTM",
        units=units,
        arguments={},
        optimizer_name=optimizer,
        learning_rate=2e-3,
        clipnorm=1.0,
        batch_size=batch_size,
        epochs=epochs,
        source="small budget",
    )


SMALL = {
    budget.task: budget
    for budget in (
        small_budget("digits", "RMSprop", 32, 64, 25),
        small_budget("mnist", "RMSprop", 24, 50, 5, subset=1200),
        small_budget("pmnist", "RMSprop", 24, 50, 5, subset=1200),
        small_budget("adding", "Adam", 32, 32, 8, variant="mcrm", samples=1600, held_out=400),
        small_budget("multiplication", "Adam", 32, 32, 8, samples=1600, held_out=400),
        small_budget("copying", "RMSprop", 32, 32, 6, blanks=100, samples=1600, held_out=200),
        small_budget("speech", "Adam", 32, 32, 12, frames=60, subset=640),
        small_budget("timit", "Adam", 32, 32, 12, frames=60, subset=640),
        small_budget("archive", "Adam", 32, 16, 60, name="BasicMotions"),
        small_budget("words", "Adam", 64, 20, 2, vary=False),
        small_budget("characters", "Adam", 32, 64, 3),
        small_budget("memory5", "RMSprop", 32, 32, 10, samples=1600, held_out=200),
        small_budget("memory20", "RMSprop", 32, 32, 10, samples=1600, held_out=200),
    )
}
# How many samples of validation and test a small budget scores; by default all.
EVALUATED = {"mnist": 200, "pmnist": 200}


def paper_numbers(task, options, layer):
    """Return what the smallest recipe for a task says of a layer's rule, and of its form."""
    task = NUMBERS_OF.get(task, task)
    if task == "mnist" and options.get("permute"):
        task = "pmnist"
    rows = [row for row in RECIPES if (row.task, row.layer_name) == (task, layer)]
    if not rows:
        return {}
    rule = getattr(available_layers()[layer], "rule_class", None)
    names = {*getattr(rule, "hyperparameters", ()), "formulation"}
    smallest = min(rows, key=lambda row: width(row.units))
    return {name: value for name, value in smallest.arguments.items() if name in names}


def width(units):
    """Return the units of a layer, or of a stack of layers together."""
    return sum(units) if isinstance(units, tuple) else units


def paper_setups(task, options, layers, units=None, epochs=None, learning_rate=None):
    """Return the recipe of each layer, and the task's options.

    Args:
        task: name of the task.
        options: dict of its options, which may tell recipes apart.
        layers: list of names.
        units: dict from names to widths, where a recipe must be told by its size.
        epochs: int, in place of the recipes'.
        learning_rate: float, likewise; needed where a paper chose one of several.

    Raises:
        ValueError: if there is no recipe, or if those of two layers need other data.
    """
    if not layers:
        raise ValueError(
            "No paper has settings for such a task: take the small budget, or other units or "
            f"options. Received: {task=}, {units=}, {options=}"
        )
    given = {"epochs": epochs, "learning_rate": learning_rate}
    given = {name: value for name, value in given.items() if value is not None}
    setups, found = {}, None
    for name in layers:
        row = recipe(task, name, (units or {}).get(name), **telling(task, options))
        setups[name] = dataclasses.replace(row.grouped(UPDATES_PER_EPOCH), **given)
        data = {**row.options}
        if row.updates_per_epoch == 1:
            data["samples"] = UPDATES_PER_EPOCH * row.batch_size
        if found not in (None, data):
            raise ValueError(
                f"`layers` must have recipes for the same data: {layers[0]} has {found}, "
                f"{name} has {data}. Received: layers={list(layers)}"
            )
        found = data
    return setups, {**found, **options}


def telling(task, options):
    """Return the options by which recipes of a task are told apart."""
    names = {name for row in RECIPES if row.task == task for name in row.options}
    return {name: value for name, value in options.items() if name in names}
