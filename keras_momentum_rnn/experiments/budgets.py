"""How much is trained: a small budget for every task, and the papers' own."""

import dataclasses

from keras_momentum_rnn.experiments.setups import Optimizer, Setup
from keras_momentum_rnn.layers.names import ready_layers
from keras_momentum_rnn.tasks.recipes import RECIPES, recipe

# What a small budget takes over of a recipe: the layer's own numbers, and nothing else.
NUMBERS = ("momentum", "step_size", "beta", "epsilon", "restart_period", "formulation")
# Recipes whose numbers stand for a task that no paper has.
NUMBERS_OF = {"digits": "mnist", "speech": "timit", "multiplication": "adding"}
# Updates between two evaluations, where the papers count updates alone.
UPDATES_PER_EPOCH = 100


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a small budget comes to for one task: the same for all layers.

    Attributes:
        optimizer: `Optimizer`.
        units: int, the width of each layer.
        batch_size: int.
        epochs: int.
        options: dict of the task's options.
        evaluated: int, how many samples of validation and test are scored, the first ones;
            None for all.
    """

    optimizer: Optimizer
    units: int
    batch_size: int
    epochs: int
    options: dict = dataclasses.field(default_factory=dict)
    evaluated: int | None = None


ADAM = Optimizer("Adam", 2e-3, 1.0)
RMSPROP = Optimizer("RMSprop", 2e-3, 1.0)
SMALL = {
    "digits": Budget(RMSPROP, 32, 64, 25),
    "mnist": Budget(RMSPROP, 24, 50, 5, {"subset": 1200}, 200),
    "pmnist": Budget(RMSPROP, 24, 50, 5, {"subset": 1200}, 200),
    "adding": Budget(ADAM, 32, 32, 8, {"variant": "mcrm", "samples": 1600, "held_out": 400}),
    "multiplication": Budget(ADAM, 32, 32, 8, {"samples": 1600, "held_out": 400}),
    "copying": Budget(RMSPROP, 32, 32, 6, {"blanks": 100, "samples": 1600, "held_out": 200}),
    "speech": Budget(ADAM, 32, 32, 12, {"frames": 60, "subset": 640}),
    "timit": Budget(ADAM, 32, 32, 12, {"frames": 60, "subset": 640}),
    "words": Budget(ADAM, 64, 20, 2, {"vary": False}),
    "characters": Budget(ADAM, 32, 64, 3),
    "memory5": Budget(RMSPROP, 32, 32, 10, {"samples": 1600, "held_out": 200}),
    "memory20": Budget(RMSPROP, 32, 32, 10, {"samples": 1600, "held_out": 200}),
}


def small_setups(task, options, layers, budget, units=None, numbers="paper"):
    """Return a `Setup` for each layer of a small budget.

    Args:
        task: name of the task.
        options: dict of its options.
        layers: list of names.
        budget: `Budget`.
        units: dict from names to widths other than the budget's.
        numbers: `"paper"`, the numbers that a recipe has for task and layer, or those of the
            layer where there is none; or `"default"`, those of the layer.
    """
    known = ready_layers()
    return {
        name: setup_of(
            known[name],
            (units or {}).get(name, budget.units),
            paper_numbers(task, options, name) if numbers == "paper" else {},
            budget,
        )
        for name in layers
    }


def setup_of(layer_class, units, arguments, budget):
    """Return the `Setup` of a layer with some arguments, in a small budget."""
    return Setup(
        layer_name=layer_class.__name__,
        units=units,
        arguments=arguments,
        optimizer=budget.optimizer.described(),
        batch_size=budget.batch_size,
        epochs=budget.epochs,
        new_layers=lambda **given: [layer_class(units, **{**arguments, **given})],
        new_optimizer=budget.optimizer.new,
        source="small budget",
    )


def paper_numbers(task, options, layer):
    """Return the numbers of a layer's rule in the smallest recipe for a task, or none."""
    task = NUMBERS_OF.get(task, task)
    if task == "mnist" and options.get("permute"):
        task = "pmnist"
    rows = [row for row in RECIPES if (row.task, row.layer_name) == (task, layer)]
    if not rows:
        return {}
    smallest = min(rows, key=lambda row: width(row.units))
    return {name: value for name, value in smallest.arguments.items() if name in NUMBERS}


def width(units):
    """Return the units of a layer, or of a stack of layers together."""
    return sum(units) if isinstance(units, tuple) else units


def paper_setups(task, options, layers, units=None, epochs=None, learning_rate=None):
    """Return a `Setup` for each layer as its recipe has it, and the task's options.

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
    setups, found = {}, None
    for name in layers:
        row = recipe(task, name, (units or {}).get(name), **telling(task, options))
        if learning_rate is not None:
            row = dataclasses.replace(row, learning_rate=learning_rate)
        data = {**row.options, **samples(row)}
        if found not in (None, data):
            raise ValueError(
                f"`layers` must have recipes for the same data: {layers[0]} has {found}, "
                f"{name} has {data}. Received: layers={list(layers)}"
            )
        setups[name], found = recipe_setup(row, epochs), data
    return setups, {**found, **options}


def telling(task, options):
    """Return the options by which recipes of a task are told apart."""
    names = {name for row in RECIPES if row.task == task for name in row.options}
    return {name: value for name, value in options.items() if name in names}


def samples(row):
    """Return how many samples an epoch has, where a recipe counts updates alone."""
    return {"samples": UPDATES_PER_EPOCH * row.batch_size} if row.updates_per_epoch == 1 else {}


def recipe_setup(row, epochs=None):
    """Return the `Setup` of a recipe."""
    counted = row.epochs // UPDATES_PER_EPOCH if row.updates_per_epoch == 1 else row.epochs
    optimizer = {
        "class": row.optimizer_name,
        "learning_rate": row.learning_rate,
        "global_clipnorm": row.clipnorm,
        **row.optimizer_arguments.get(row.optimizer_name, {}),
    }
    return Setup(
        layer_name=row.layer_name,
        units=row.units,
        arguments=row.arguments,
        optimizer=optimizer,
        batch_size=row.batch_size,
        epochs=epochs or counted,
        new_layers=row.new_layers,
        new_optimizer=lambda: row.optimizer,
        callbacks=row.callbacks,
        model_options=row.model_options,
        source=f"{row.source}; follows {row.follows}",
    )
