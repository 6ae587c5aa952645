"""The settings that the papers published, by task, layer and size."""

from typing import Any

from papers.tasks.recipe import Recipe
from papers.tasks.recipe_tables import RECIPES

__all__ = ["RECIPES", "Recipe", "recipe"]


def recipe(
    task: str, layer: str, units: int | tuple[int, ...] | None = None, **options: Any
) -> Recipe:
    """Return the settings that a paper published for a task, a layer and its size.

    Args:
        task: `"mnist"`, `"pmnist"` (one pixel a step, permuted in the latter), `"copying"`,
            `"adding"`, `"characters"`, `"multiplication"`, `"memory5"` or `"memory20"`; or
            `"timit"` or `"words"`, of which there are settings and no task.
        layer: name of a layer, such as `"AdamLSTM"` or `"SimpleRNN"`.
        units: int, one of the published sizes, or a tuple for a stack of layers. Leave it out
            if only one size is published.
        **options: options of the task, where several are published: `blanks=2000` for
            copying.

    Returns:
        A `Recipe`.

    Raises:
        ValueError: if no paper, or more than one, has settings for them, with a list of what
            the papers have for the task.

    Example:

    >>> from papers.tasks import recipe
    >>> settings = recipe("pmnist", "AdamLSTM", units=256)
    >>> layer, optimizer = settings.layer, settings.optimizer
    >>> layer.momentum, layer.step_size, layer.beta, layer.epsilon
    (0.6, 1.0, 0.01, 1e-16)
    >>> settings.learning_rate, settings.clipnorm, settings.batch_size, settings.epochs
    (0.001, 1.0, 128, 150)
    >>> settings.source
    'Nguyen et al. (2020), Table 8, Table 6'

    Reference:
        Nguyen et al. (2020), appendix A and Tables 6 to 10; Mohamed and Claudel (2018), Table
        2; Sutskever et al. (2013), Tables 4 and 5 and section 4.2. RMSprop steps as
        PyTorch's, with which the tables of the first two were made. Keras's Adam adds 1e-7 to
        the root of its second moment, PyTorch's 1e-8.
    """
    matching = [
        found
        for found in RECIPES
        if (found.task, found.layer_name) == (task, layer)
        and units in (None, found.units)
        and all(found.options.get(name) == value for name, value in options.items())
    ]
    if len(matching) != 1:
        given = "".join(f", {name}={value!r}" for name, value in options.items())
        known = [str(found) for found in RECIPES if found.task == task]
        raise ValueError(
            "`task`, `layer`, `units` and the options of the task must name one recipe of the "
            f"papers. Of {task} they have: {', '.join(known) or 'none'}. Received: "
            f"task={task!r}, layer={layer!r}, units={units!r}{given}"
        )
    return matching[0]
