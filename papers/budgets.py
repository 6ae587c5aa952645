"""How much is trained: a small budget for every task, and the papers' own."""

from keras_momentum_rnn.layers.registry import available_layers
from papers.tasks.recipe_tables import pytorch_rmsprop
from papers.tasks.recipes import RECIPES, Recipe, recipe

# Tasks that no paper has, and the task whose hyperparameters they take.
LIKE = {"digits": "mnist", "speech": "timit", "multiplication": "adding"}
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
        optimizer_arguments={"RMSprop": pytorch_rmsprop(rho=0.9)},
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
        small_budget("archive", "Adam", 32, 16, 60, name="BasicMotions"),
        small_budget("characters", "Adam", 32, 64, 3),
        small_budget("memory5", "RMSprop", 32, 32, 10, samples=1600, held_out=200),
        small_budget("memory20", "RMSprop", 32, 32, 10, samples=1600, held_out=200),
    )
}


def paper_hyperparameters(task, options, layer):
    """Return what the smallest recipe for a task says of a layer's rule, and of its form."""
    task = LIKE.get(task, task)
    if task == "mnist" and options.get("permute"):
        task = "pmnist"
    rows = [row for row in RECIPES if (row.task, row.layer_name) == (task, layer)]
    if not rows:
        return {}
    rule = getattr(available_layers()[layer], "rule_class", None)
    names = {*getattr(rule, "hyperparameters", ()), "formulation"}
    if layer == "SRLSTM":
        # The released form subtracts the bias inside the rule: only the second one can open
        # the forget gate.
        names.add("use_recurrent_bias")
    smallest = min(rows, key=lambda row: row.units)
    return {name: value for name, value in smallest.arguments.items() if name in names}


def paper_rows(task, options):
    """Return the recipes for a task, of those that differ by options what `options` say."""
    return [
        row
        for row in RECIPES
        if row.task == task
        and all(row.options.get(n, value) == value for n, value in options.items())
    ]


def paper_setups(task, options, layers, units=None):
    """Return the recipe of each layer, and the task's options.

    Args:
        task: name of the task.
        options: dict of its options, which may tell recipes apart.
        layers: list of names.
        units: int, where recipes must be told by their size.

    Raises:
        ValueError: if a layer has no recipe or several, or if those of two layers need other
            data.
    """
    named = {name for row in RECIPES if row.task == task for name in row.options}
    telling = {name: value for name, value in options.items() if name in named}
    setups = {name: recipe(task, name, units, **telling) for name in layers}
    if not setups:
        raise ValueError(f"No paper has settings for {task} with {units=} and {options=}")
    data = {name: dict(row.options) for name, row in setups.items()}
    for name, row in setups.items():
        if row.updates_per_epoch == 1:
            setups[name] = row.grouped(UPDATES_PER_EPOCH)
            data[name]["samples"] = UPDATES_PER_EPOCH * row.batch_size
    first, *others = data.values()
    if any(other != first for other in others):
        raise ValueError(f"`layers` must have recipes for the same data. Received: {data}")
    return setups, {**first, **options}
