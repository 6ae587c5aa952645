"""What a search starts from is what the papers' tables have."""

import pytest

from keras_momentum_rnn.tuning import available_layers, paper_trials
from papers.tasks.recipes import RECIPES

NUMBERS = {"momentum", "step_size", "beta", "restart_period", "rebase_every"}
# Each task of a search with its name among the recipes and, for copying, the blanks.
TASKS = {
    "mnist": ("mnist", None),
    "pmnist": ("pmnist", None),
    "timit": ("timit", None),
    "ptb": ("words", None),
    "copying_1k": ("copying", 1000),
    "copying_2k": ("copying", 2000),
    "adding": ("adding", None),
}


@pytest.mark.parametrize("task", TASKS)
def test_the_first_trials_of_a_search_are_those_of_the_tables(task):
    found = []
    for row in RECIPES:
        numbers = {name: value for name, value in row.arguments.items() if name in NUMBERS}
        trial = {"layer": row.layer_name, **numbers}
        is_of_task = (row.task, row.options.get("blanks")) == TASKS[task]
        if is_of_task and "step_size" in numbers and trial not in found:
            found.append(trial)
    expected = paper_trials([*available_layers()], [task])
    assert len(found) == len(expected) and all(trial in expected for trial in found)
